package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/hostabi/outbound"
	"runner.example/internal/fairqueue"
)

// TestSSRF is what must not be reached, in all the ways to say it.
func TestSSRF(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	t.Run("URLs", func(t *testing.T) {
		for target, want := range map[string]outbound.Reason{
			"https://127.0.0.1:" + w.port:                        outbound.Denied,
			"https://localhost:" + w.port:                        outbound.Denied,
			"https://[::1]:" + w.port:                            outbound.Denied,
			"https://[::ffff:127.0.0.1]:" + w.port:               outbound.Denied,
			"https://[::ffff:7f00:1]:" + w.port:                  outbound.Denied,
			"https://[64:ff9b::7f00:1]:" + w.port:                outbound.Denied,
			"https://0x7f.1:" + w.port:                           outbound.Denied,
			"https://0177.0.0.1:" + w.port:                       outbound.Denied,
			"https://2130706433:" + w.port:                       outbound.Denied,
			"https://127.1:" + w.port:                            outbound.Denied,
			"https://0/":                                         outbound.Denied,
			"https://169.254.169.254/latest/meta-data":           outbound.Denied,
			"http://169.254.169.254/latest/meta-data":            outbound.Denied,
			"http://example.com:" + w.port:                       outbound.Denied, // not this scheme
			"https://example.com":                                outbound.Denied, // not this port
			"https://other.example.com:" + w.port:                outbound.Denied,
			"https://example.com.evil.test:" + w.port:            outbound.Denied,
			"https://evilexample.com:" + w.port:                  outbound.Denied,
			"https://evil.test:" + w.port + "#example.com":       outbound.Denied,
			"https://evil.test:" + w.port + "\\@example.com":     outbound.Invalid,
			"https://example.com:" + w.port + "@evil.test":       outbound.Invalid,
			"https://user:pw@example.com:" + w.port:              outbound.Invalid,
			"https://example.com%2eevil.test:" + w.port:          outbound.Invalid,
			"https://ｅxample.com:" + w.port:                      outbound.Denied,
			"//example.com:" + w.port:                            outbound.Invalid,
			"/path":                                              outbound.Invalid,
			"":                                                   outbound.Invalid,
			"https:example.com:" + w.port:                        outbound.Invalid,
			"https://":                                           outbound.Invalid,
			"file:///etc/passwd":                                 outbound.Invalid,
			"gopher://example.com:" + w.port:                     outbound.Invalid,
			"https://example.com:" + w.port + "/\r\nHost: x":     outbound.Invalid,
			"https://example.com:" + w.port + "/a b\x00":         outbound.Invalid,
			"https://example.com:99999999/":                      outbound.Denied,
			w.url("example.com", "/"+strings.Repeat("x", 9<<10)): outbound.TooLarge,
		} {
			r, err := outbound.NewRequest(w.origins(), "GET", target, nil, nil)
			if reasonOf(err) != want || r != nil && err == nil {
				t.Errorf("%.60q: %v, want %s", target, err, want)
			}
		}
	})
	t.Run("addresses", func(t *testing.T) {
		for _, c := range []struct{ when, addresses string }{
			{"always", `0.0.0.0 0.1.2.3 169.254.0.1 169.254.169.254 192.0.0.192 192.0.2.1 192.88.99.1 198.18.0.1 198.51.100.1 203.0.113.1
				224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16 100.100.100.200
				:: ::ffff:169.254.169.254 ::169.254.169.254 64:ff9b::a9fe:a9fe 64:ff9b:1::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1 100::1
				2001::1 2001:db8::1 2002:a9fe:a9fe:: 3fff::1 5f00::1 fd00:ec2::254 fd20:ce::254 fd00:42::42 fd00:c1::a9fe:a9fe`},
			{"unless opened", `127.0.0.1 127.255.255.254 10.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 100.127.255.255
				::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 fc00::1 fd12:3456::1`},
		} {
			for address := range strings.FieldsSeq(c.addresses) {
				w.resolve = func(string) []string { return []string{address} }
				w.options.AllowPrivate = c.when == "always"
				if _, err := w.get(w.client(), w.url("example.com", "/")); reasonOf(err) != outbound.Denied || strings.Contains(errorOf(err).Detail, address) {
					t.Errorf("%s, %s: %v", address, c.when, err)
				}
			}
		}
	})
	t.Run("DNS that flips", func(t *testing.T) {
		w.options.AllowPrivate = true
		answers := []string{"127.0.0.1", "169.254.169.254"}
		w.resolve = func(string) []string {
			answer := answers[:1]
			answers = answers[1:]
			return answer
		}
		w.lookups.Store(0)
		c := w.client()
		if _, err := w.get(c, w.url("example.com", "/")); err != nil || w.lookups.Load() != 1 {
			t.Fatalf("with a name that is checked and dialled as one: %v after %d look-ups", err, w.lookups.Load())
		}
		w.server.CloseClientConnections()
		c.Close()
		if _, err := w.get(c, w.url("example.com", "/")); reasonOf(err) != outbound.Denied {
			t.Errorf("after the name has flipped: %v", err)
		}
	})
	t.Run("names with many addresses", func(t *testing.T) {
		w.resolve = func(string) []string { return []string{"169.254.169.254", "127.0.0.1"} }
		if answer, err := w.get(w.client(), w.url("example.com", "/")); err != nil || answer.Status != 200 {
			t.Errorf("the one that may be reached is not: %v", err)
		}
	})
	t.Run("the socket itself", func(t *testing.T) {
		w.options.AllowPrivate = false
		if err := w.client().Control("127.0.0.1:1"); !errors.Is(err, outbound.ErrUnreachable) {
			t.Errorf("a socket to loopback: %v", err)
		}
		if err := w.client().Control("93.184.216.34:443"); err != nil {
			t.Errorf("a socket to a public address: %v", err)
		}
	})
	t.Run("public hosts", func(t *testing.T) {
		w.options.AllowPrivate = true // for declared origins alone
		public := w.origins().WithPublic(true)
		for target, want := range map[string]outbound.Reason{
			"https://hooks.test:8443/":         outbound.Denied,
			"http://hooks.test:" + w.port:      outbound.Denied,
			"http://127.0.0.1/":                outbound.Denied,
			"http://10.0.0.1/":                 outbound.Denied,
			"http://[::ffff:10.0.0.1]/":        outbound.Denied,
			"http://169.254.169.254/":          outbound.Denied,
			"ftp://hooks.test/":                outbound.Invalid,
			"https://a:b@hooks.test/":          outbound.Invalid,
			"http://hooks.test:80/":            "",
			"https://hooks.test:443/":          "",
			"http://hooks.test:443/":           "",
			"https://93.184.216.34/":           "",
			w.url("example.com", "/"):          "", // declared
			w.url("other.example.com", "/"):    outbound.Denied,
			"https://[2606:2800:220:1::1]:80/": "",
		} {
			_, err := outbound.NewRequest(public, "GET", target, nil, nil)
			if reasonOf(err) != want {
				t.Errorf("%s: %v, want %q", target, err, want)
			}
			if _, err := outbound.NewRequest(w.origins(), "GET", target, nil, nil); want == "" && target != w.url("example.com", "/") && reasonOf(err) != outbound.Denied {
				t.Errorf("%s without public: %v", target, err)
			}
		}
		c := w.client()
		for _, address := range []string{"127.0.0.1", "10.0.0.1", "100.64.0.1", "169.254.169.254", "::1", "fd00::1", "::ffff:127.0.0.1"} {
			w.resolve = func(string) []string { return []string{address} }
			r, err := outbound.NewRequest(public, "GET", "http://hooks.test/", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Do(t.Context(), fairqueue.Parties{}, r, nil); reasonOf(err) != outbound.Denied {
				t.Errorf("a name at %s: %v", address, err)
			}
			if err := c.ControlPublic(net.JoinHostPort(address, "80")); !errors.Is(err, outbound.ErrUnreachable) {
				t.Errorf("a socket to %s: %v", address, err)
			}
		}
		if err := c.ControlPublic("93.184.216.34:443"); err != nil {
			t.Errorf("a socket to a public address: %v", err)
		}
		r, err := outbound.NewRequest(public, "GET", "https://hooks.test/", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for location, follows := range map[string]bool{
			"http://other.test/": true, "/here": true, "http://10.0.0.1/": false, w.url("example.com", "/"): false, "https://hooks.test:8443/": false,
		} {
			if next := outbound.Redirected(r, location); (next != nil) != follows {
				t.Errorf("a redirect from a public host to %s is followed: %v", location, next != nil)
			}
		}
		declared, err := outbound.NewRequest(public, "GET", w.url("example.com", "/"), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if outbound.Redirected(declared, "https://hooks.test/") != nil || outbound.Redirected(declared, w.url("api.example.com", "/")) == nil {
			t.Error("a redirect from a declared origin goes to others than declared ones")
		}
		w.resolve = nil
	})
	t.Run("proxies of the environment", func(t *testing.T) {
		t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
		w.options.AllowPrivate = true
		w.resolve = nil
		if _, err := w.get(w.client(), w.url("example.com", "/")); err != nil {
			t.Errorf("a proxy was asked: %v", err)
		}
	})
}

// A connection whose handshake fails, here because the certificate has other names, is closed and does
// not count any more.
func TestAFailedHandshakeReturnsItsConnection(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	w.options.Connections = 2
	c := w.client()
	for range 5 {
		origins, err := outbound.ParseOrigins([]string{w.url("localhost", "")})
		if err != nil {
			t.Fatal(err)
		}
		r, err := outbound.NewRequest(origins, "GET", w.url("localhost", "/"), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err = c.Do(ctx, fairqueue.Parties{"asker"}, r, nil)
		cancel()
		if errorOf(err).Kind != outbound.KindCertificate {
			t.Fatalf("%v, want the error of the certificate", err)
		}
	}
	if _, err := w.get(c, w.url("example.com", "/")); err != nil {
		t.Error(err)
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Proto) })
	c := w.client()
	for range 20 {
		if answer, err := w.get(c, w.url("example.com", "/")); err != nil || string(answer.Body) != "HTTP/1.1" {
			t.Fatal(answer, err)
		}
	}
	// net/http closes a connection if its writing goroutine does not report within 50 ms.
	if n := w.conns.Load(); n > 5 {
		t.Errorf("20 requests took %d connections", n)
	}
}

func TestAnIdleConnectionIsClosedForAnother(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {})
	w.options.Connections = 1
	c := w.client()
	for i := range 6 {
		if _, err := w.get(c, w.url(names[i%2], "/")); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	if n := w.conns.Load(); n != 6 {
		t.Errorf("6 requests to two names in turn, with one connection at a time, took %d", n)
	}
	var callers sync.WaitGroup
	for i := range 20 {
		callers.Go(func() {
			if _, err := w.get(c, w.url(names[i%2], "/")); err != nil {
				t.Errorf("one of many at the same time: %v", err)
			}
		})
	}
	callers.Wait()
	w.options.Resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no names today") }
	c = w.client()
	for range 3 { // what fails leaves its room, too
		if _, err := w.get(c, w.url("example.com", "/")); reasonOf(err) != outbound.Unavailable {
			t.Fatal(err)
		}
	}
}

// A dial, and a handshake, end with the fetch that they were for.
func TestADialEndsWithItsFetch(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	looked := make(chan error, 1)
	resolve := w.options.Resolve
	ctx, cancel := context.WithCancel(t.Context())
	w.options.Resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) {
		cancel()
		<-ctx.Done()
		looked <- ctx.Err()
		return nil, ctx.Err()
	}
	if _, err := w.client().Do(ctx, fairqueue.Parties{"asker"}, w.request("GET", w.url("example.com", "/"), ""), nil); err != context.Canceled {
		t.Error(err)
	}
	if err := <-looked; err != context.Canceled {
		t.Errorf("the dial ends of itself: %v", err)
	}

	w.options.Resolve = resolve
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, w.port, _ = net.SplitHostPort(ln.Addr().String())
	const own = 4 * time.Second // less than the limit of a handshake
	took := own
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan time.Duration, 1)
		go func() { // accepts, and says nothing
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 1))
			cancel()
			began := time.Now()
			_, _ = io.Copy(io.Discard, conn)
			gone <- time.Since(began)
		}()
		if _, err := w.client().Do(ctx, fairqueue.Parties{"asker"}, w.request("GET", w.url("example.com", "/"), ""), nil); err != context.Canceled {
			t.Error(err)
		}
		took = min(took, <-gone)
	}
	if took >= own {
		t.Error("a handshake does not end with its fetch")
	}
}
