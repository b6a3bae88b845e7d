package outbound_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"runner.example/hostabi/outbound"
)

// FuzzRequest finds a URL that is taken and leads elsewhere than a declared origin,
// or a header that ends its line, and follows a redirect from what is taken.
func FuzzRequest(f *testing.F) {
	origins, err := outbound.ParseOrigins([]string{"https://api.example.com", "https://[2001:db8::1]:8443", "http://127.0.0.1:8000"})
	if err != nil {
		f.Fatal(err)
	}
	declared := []string{"https api.example.com ", "https 2001:db8::1 8443", "http 127.0.0.1 8000"}
	for _, target := range []string{
		"https://api.example.com/a?b=c#d", "https://API.example.com.:443", "https://[2001:DB8:0::1]:8443/x",
		"http://127.0.0.1:8000/%2f", "https://u@api.example.com", "https://api.example.com@evil.example/", `https://api.example.com\@evil.example`,
		"//api.example.com", "https://api.example.com:443:1/", "https://[2001:db8::1%25eth0]:8443/", "https:api.example.com",
	} {
		f.Add(target, "https://evil.example/", "x-a", "b")
	}
	f.Add("https://api.example.com/", "/there?x=\r\nhost: evil.example", "x-a\r\nhost", "b\r\nhost: evil.example")
	f.Fuzz(func(t *testing.T, target, location, name, value string) {
		request, err := outbound.NewRequest(origins, "GET", target, []outbound.Header{{Name: name, Value: value}}, nil)
		if err != nil {
			return
		}
		sent := outbound.Sent(t, request)
		for end := 3; request != nil && end > 0; end-- {
			line, _, _ := strings.Cut(sent, "\r\n")
			if fields := strings.Split(line, " "); len(fields) != 3 || fields[0] != "GET" || fields[2] != "HTTP/1.1" || !strings.HasPrefix(fields[1], "/") {
				t.Errorf("%q: request line %q", target, line)
			}
			if strings.Count(sent, "\r\n") > 6 || strings.Contains(strings.ReplaceAll(sent, "\r\n", ""), "\n") {
				t.Errorf("%q %q %q is sent as %q", target, name, value, sent)
			}
			u, err := url.Parse(outbound.Target(t, request))
			if err != nil || !slices.Contains(declared, u.Scheme+" "+u.Hostname()+" "+u.Port()) {
				t.Errorf("%q leads to %v, %v", target, u, err)
			}
			if request = outbound.Redirected(request, location); request != nil {
				sent = outbound.Sent(t, request)
			}
		}
	})
}
