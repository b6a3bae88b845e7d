package dev

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"

	"runner.example/internal/system/socket"
	"runner.example/schema"
)

// proxy forwards requests that no route matches to another development server, WebSockets included. The other server does
// not get the credentials of the app: it only serves a page, and runs packages of many authors.
type proxy struct {
	*httputil.ReverseProxy
	target string
	log    *devLog
	schema func() *schema.Schema // returns the active one, or nil
	// anyHost: [front] hosts is not set, so requests for any host arrive.
	anyHost bool
	down    atomic.Bool // the last request could not connect
}

// newProxy returns a proxy to a target that the configuration has checked. Set schema before the first request.
func newProxy(target string, https bool, log_ *devLog) *proxy {
	to, _ := url.Parse(target)
	p := &proxy{target: target, log: log_}
	p.ReverseProxy = &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true}, // the Accept-Encoding of the client is forwarded
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.SetXForwarded()
			if https {
				r.Out.Header.Set("X-Forwarded-Proto", "https")
			}
			p.removeCredentials(r.Out)
		},
		ModifyResponse: func(*http.Response) error {
			p.down.Store(false)
			return nil
		},
		FlushInterval: -1,
		ErrorHandler:  p.fail,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	return p
}

// ServeHTTP forwards a request. The other server gets its own address as Host, so it cannot refuse other hosts itself. Without
// the check here, DNS rebinding would let any page on the web read what it serves.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.anyHost && !isLocal(r.Host) {
		http.Error(w, "[dev] proxy: the Host is neither localhost nor an IP address: add it to [front] hosts", http.StatusMisdirectedRequest)
		return
	}
	p.ReverseProxy.ServeHTTP(w, r)
}

// isLocal reports whether a Host, with or without a port, is localhost, a subdomain of it, or an IP address.
func isLocal(host string) bool {
	u := url.URL{Host: host}
	name := strings.ToLower(u.Hostname())
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || net.ParseIP(name) != nil
}

// close closes the idle connections to the target.
func (p *proxy) close() { p.Transport.(*http.Transport).CloseIdleConnections() }

// removeCredentials removes the credentials of the app.
func (p *proxy) removeCredentials(r *http.Request) {
	r.Header.Del("Authorization")
	r.Header.Del("X-Api-Key")
	s := p.schema()
	if s == nil || s.Auth.Cookie == nil {
		return
	}
	var kept []string
	for _, line := range r.Header.Values("Cookie") {
		for cookie := range strings.SplitSeq(line, ";") {
			cookie = strings.TrimSpace(cookie)
			if name, _, _ := strings.Cut(cookie, "="); strings.TrimSpace(name) != s.Auth.Cookie.Name {
				kept = append(kept, cookie)
			}
		}
	}
	r.Header.Del("Cookie")
	if len(kept) > 0 {
		r.Header.Set("Cookie", strings.Join(kept, "; "))
	}
}

// fail answers a request when the target does not.
func (p *proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil { // the client is gone
		return
	}
	text := fmt.Sprintf("[dev] proxy: %s does not answer: %v", p.target, socket.Cause(err))
	if !p.down.Swap(true) {
		p.log.event(devEvent{Event: "log", Level: "warn", Message: text}, "warning: "+text)
	}
	http.Error(w, text, http.StatusBadGateway)
}
