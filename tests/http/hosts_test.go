package http_test

import (
	"fmt"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

func TestHostsOfTheSettingsAreServed(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, "[front]\nhosts = [\"api.example.com\", \"*.example.org\"]\n", "echo", "hostile")
	s := a.Serve()
	ask := func(path, host string) string {
		t.Helper()
		reply := s.Raw("GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n", harness.Timeout)
		status, _, _ := strings.Cut(strings.TrimPrefix(reply, "HTTP/1.1 "), " ")
		return status
	}
	for host, want := range map[string]string{
		"api.example.com": "200", "shop.example.org": "200", "Shop.Example.Org:8080": "200", "a.b.example.org": "400", "example.org": "400", "10.0.0.7": "400",
	} {
		if got := ask("/hello", host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
		for _, path := range []string{"/_health", "/_health/live", "/_health/ready"} {
			if got := ask(path, host); got != "200" {
				t.Errorf("%s of %s: %s", path, host, got)
			}
		}
		if got := ask("/_healthy", host); (got == "400") != (want == "400") {
			t.Errorf("/_healthy of %s: %s", host, got)
		}
	}
}

// Each host is logged once, and not more of them than a client may fill the log with.
func TestARefusedHostIsLoggedOnce(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, "[front]\nhosts = [\"api.example.com\"]\n", "echo", "hostile")
	s := a.Serve()
	ask := func(host string) {
		t.Helper()
		if reply := s.Raw("GET /hello HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n", harness.Timeout); !strings.HasPrefix(reply, "HTTP/1.1 400 ") {
			t.Fatalf("%s: %s", host, reply)
		}
	}
	for _, host := range []string{"shop.example.com", "SHOP.example.com", "shop.example.com", "shop.example.com:80"} {
		ask(host)
	}
	s.WaitForOutput(`"host":"shop\.example\.com:80","address":"127\.0\.0\.1"`)
	lines := func() int { return strings.Count(s.Stderr.String(), `"host refused: it is not in [front] hosts"`) }
	if n := lines(); n != 2 {
		t.Errorf("%d lines for two hosts", n)
	}
	long := strings.Repeat("a", 4000)
	ask(long)
	for i := range 110 {
		ask(fmt.Sprintf("h%d.example.com", i))
	}
	s.WaitForOutput(`more hosts refused; not logged until the next reload`)
	if n := lines(); n != 100 || strings.Contains(s.Stderr.String(), long[:300]) {
		t.Errorf("%d lines of refused hosts", n)
	}
	a.Must("reload")
	ask("later.example.com")
	s.WaitForOutput(`"host":"later\.example\.com"`)
}
