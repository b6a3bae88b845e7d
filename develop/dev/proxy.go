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

// proxy passes requests that no route matches to another development server, with their WebSockets. The other server gets
// no credentials of the app: it serves a page, and its packages come from many authors.
type proxy struct {
	*httputil.ReverseProxy
	target string
	log    *devLog
	schema func() *schema.Schema // the active one, or nil
	// anyHost: [front] hosts is not set, so requests for every host arrive.
	anyHost bool
	down    atomic.Bool // the last request has found no server
}

// newProxy returns a proxy to the target, which the configuration has checked. Its schema must be set before it is used.
func newProxy(target string, https bool, log_ *devLog) *proxy {
	to, _ := url.Parse(target)
	p := &proxy{target: target, log: log_}
	p.ReverseProxy = &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true}, // it is the client's choice
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.SetXForwarded()
			if https {
				r.Out.Header.Set("X-Forwarded-Proto", "https")
			}
			p.strip(r.Out)
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

// ServeHTTP passes a request. The other server gets its own address as host, so it cannot refuse other names itself: with a
// name that leads to this machine, a page of anyone could read what it serves.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.anyHost && !isLocal(r.Host) {
		http.Error(w, "[dev] proxy: the Host is neither localhost nor an address: add it to [front] hosts", http.StatusMisdirectedRequest)
		return
	}
	p.ReverseProxy.ServeHTTP(w, r)
}

// isLocal reports whether a Host, with or without a port, is localhost, a name below it, or an address.
func isLocal(host string) bool {
	u := url.URL{Host: host}
	name := strings.ToLower(u.Hostname())
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || net.ParseIP(name) != nil
}

// close closes the connections to the target that are idle.
func (p *proxy) close() { p.Transport.(*http.Transport).CloseIdleConnections() }

// strip removes the credentials of the app, as handlers do not get them either.
func (p *proxy) strip(r *http.Request) {
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

// fail answers a request that the target has not answered.
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
