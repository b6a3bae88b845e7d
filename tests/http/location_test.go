package http_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// locationParts make targets of redirects that parsers of URLs may read differently.
var locationParts = [][]string{
	{"https://", "https://", "https://", "http://", "HTTPS://", "/", "/", "//", "///", "https:", "https:/", "https:///", `https:\\`, `/\`, `\\`, "\t//", "ftp://", "wss:", "myapp://", "./", "?", ".", "data:", ""},
	{"good.example", "evil.example", "a", "1.2.3.4", "[::1]", "127.1", "0x7f", "0x7f.1", "2130706433", "0177.0.0.1", "1.2.3", "4294967295", "xn--bcher-kva.example", "user", ""},
	{"", "", "@", `\`, "/", "?", "#", ":", ":443", ":80", ":8443", ":0443", ":65536", ":pw@", "%40", "%2f", "%5c", "%2e", "%65", "[", "]", "[::1]", ".", "..", "-", "_", "~", "!", "$", "&", "'", "(", ")", "*", "+", ",", ";", "=", "|", "^", "<", ">", "{", "}", "`", `"`, "\t", " ", "\u00a0", "\u00ad", "\u0085", "\u200b", "\u2028", "。", "．", "／", "＼", "＠", "：", "ｅ", "ß", "é", "İ", "👍", "0x", "09", "%", "%zz"},
}

const locationsInNode = `
import { readFileSync } from "node:fs";
const host = (value) => { try { return new URL(value, "https://base.example:8443/a/b").host; } catch { return null; } };
console.log(JSON.stringify(JSON.parse(readFileSync(0)).map(host)));
`

// The host that a browser goes to is the one that is written in the Location, for people and for Go.
func TestBrowsersGoToTheHostThatALocationNames(t *testing.T) {
	s := harness.NewApp(t, harness.ProbeSchema, "", "echo").Serve()
	seed, count := rand.Uint64(), 3000
	if harness.Soak {
		count = 300_000
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	part := func(i int) string { return locationParts[i][r.IntN(len(locationParts[i]))] }
	sent := []string{`https://evil.example\@good.example`, "https://good.example@evil.example", "https://evil。example", "https://0x7f.1"}
	for len(sent) < count {
		target := part(0) + part(1)
		for range r.IntN(4) {
			target += part(2) + part(1)
		}
		sent = append(sent, strings.Trim(target+part(2), " \t"))
	}
	var accepted []string
	for _, target := range sent {
		if status, location := redirect(t, s, target); status == 302 {
			if !sameURI(location, target) {
				t.Errorf("%q is sent as %q", target, location)
			}
			if _, known := defaultPorts[schemeOf(location)]; !known {
				continue // an app opens it
			}
			accepted = append(accepted, location)
		}
	}
	if len(accepted) < count/20 || len(accepted) > count*19/20 {
		t.Errorf("%d of %d are accepted", len(accepted), count)
	}
	input, err := json.Marshal(accepted)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.Command("node", "--input-type=module", "--eval", locationsInNode)
	node.Stdin = strings.NewReader(string(input))
	out, err := node.Output()
	if err != nil {
		t.Fatal(err)
	}
	var hosts []*string
	if err := json.Unmarshal(out, &hosts); err != nil || len(hosts) != len(accepted) {
		t.Fatalf("%v: %s", err, out)
	}
	base, err := url.Parse("https://base.example:8443/a/b")
	if err != nil {
		t.Fatal(err)
	}
	for i, target := range accepted {
		if hosts[i] == nil {
			continue // a browser goes nowhere
		}
		got, written := canonicalHost("https", *hosts[i]), canonicalHost("https", base.Host)
		if scheme, rest, ok := strings.Cut(target, "://"); ok && !strings.HasPrefix(target, "/") {
			scheme = strings.ToLower(scheme)
			end := strings.IndexAny(rest+"/", "/?#")
			got, written = canonicalHost(scheme, *hosts[i]), canonicalHost(scheme, rest[:end])
		}
		if got != written {
			t.Errorf("%q leads a browser to %s, and %s is written", target, got, written)
		}
		if u, err := base.Parse(target); err == nil && canonicalHost(u.Scheme, u.Host) != got {
			t.Errorf("%q leads a browser to %s, and Go to %s", target, got, u.Host)
		}
	}
}

// defaultPorts are those of the schemes whose URLs browsers open, and of a relative reference.
var defaultPorts = map[string]string{"": "443", "http": "80", "https": "443", "ftp": "21", "ws": "80", "wss": "443"}

// schemeOf returns the scheme of a URI in lower case, empty of a relative reference.
func schemeOf(location string) string {
	m := regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*):`).FindStringSubmatch(location)
	if m == nil {
		return ""
	}
	return strings.ToLower(m[1])
}

// sameURI reports whether location is target in ASCII, with other characters encoded.
func sameURI(location, target string) bool {
	for _, r := range location {
		if r <= ' ' || r >= 0x7f {
			return false
		}
	}
	encoded := regexp.MustCompile("[^!-~]|[\"<>^`{|}]").ReplaceAllStringFunc(target, func(c string) string { return fmt.Sprintf("%%%X", []byte(c)) })
	return strings.ReplaceAll(location, "%", "") == strings.ReplaceAll(encoded, "%", "") // of several bytes, Sprintf writes one %
}

// redirect asks for a redirect. It does not use an http.Client, which parses the Location.
func redirect(t *testing.T, s *harness.Server, target string) (status int, location string) {
	t.Helper()
	req, err := http.NewRequest("GET", s.URL+"/redirect", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Location", target)
	res, err := harness.Client.Transport.RoundTrip(req)
	if err != nil {
		t.Fatalf("%q: %v", target, err)
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Location")
}

// canonicalHost returns a host with its port in one form: DNS ignores the case, and an IPv6 address has several.
func canonicalHost(scheme, text string) string {
	u := url.URL{Host: strings.ToLower(text)}
	host, port := u.Hostname(), strings.TrimLeft(u.Port(), "0")
	if address, err := netip.ParseAddr(host); err == nil {
		host = address.String()
	}
	if port == defaultPorts[scheme] {
		port = ""
	}
	return host + ":" + port
}
