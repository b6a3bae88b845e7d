package harness

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// Answer is an HTTP response whose body has been read.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Problem is a problem+json body.
type Problem struct {
	Type, Title, Detail, Instance, Code string
	Status                              int
	RequestID                           string `json:"requestId"`
	Errors                              []struct{ Field, Message string }
}

func (a Answer) Problem(t testing.TB) Problem {
	t.Helper()
	if ct := a.Header.Get("Content-Type"); ct != "application/problem+json" {
		t.Fatalf("status %d, content type %q, body %q: not problem+json", a.Status, ct, a.Body)
	}
	var p Problem
	if err := json.Unmarshal([]byte(a.Body), &p); err != nil {
		t.Fatalf("read problem %q: %v", a.Body, err)
	}
	if p.Status != a.Status || p.RequestID == "" || p.RequestID != a.Header.Get("X-Request-Id") {
		t.Errorf("problem %q contradicts its response: status %d, X-Request-Id %q", a.Body, a.Status, a.Header.Get("X-Request-Id"))
	}
	return p
}

// Cookie returns the cookie that the response sets, in the form in which a browser sends it.
func (a Answer) Cookie(t testing.TB) string {
	t.Helper()
	cookie, _ := a.CookieAndAttributes(t)
	return cookie
}

// CookieAndAttributes returns Cookie and the rest of the header.
func (a Answer) CookieAndAttributes(t testing.TB) (cookie, attributes string) {
	t.Helper()
	lines := a.Header.Values("Set-Cookie")
	if len(lines) != 1 {
		t.Fatalf("%d %s with Set-Cookie %q", a.Status, a.Body, lines)
	}
	cookie, attributes, _ = strings.Cut(lines[0], "; ")
	return cookie, attributes
}

// CheckAnswer checks the rules that hold for every response. It returns the status, and the
// problem's code if there is one: "404 route_not_found".
func CheckAnswer(t *testing.T, a Answer) string {
	t.Helper()
	if !requestID.MatchString(a.Header.Get("X-Request-Id")) || len(a.Header.Values("X-Request-Id")) != 1 {
		t.Errorf("X-Request-Id %q", a.Header.Values("X-Request-Id"))
	}
	if a.Header.Get("Server") != "" {
		t.Errorf("Server: %s", a.Header.Get("Server"))
	}
	text := fmt.Sprint(a.Status)
	if a.Status == http.StatusNoContent && (a.Body != "" || a.Header.Get("Content-Type") != "") {
		t.Errorf("204 with Content-Type %q and body %q", a.Header.Get("Content-Type"), a.Body)
	}
	if (a.Status == 401) != (a.Header.Get("WWW-Authenticate") != "") && a.Status != 403 {
		t.Errorf("status %d with WWW-Authenticate %q", a.Status, a.Header.Get("WWW-Authenticate"))
	}
	switch a.Status {
	case 401, 403, 429:
		if a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("status %d with Cache-Control %q", a.Status, a.Header.Get("Cache-Control"))
		}
	case 405:
		if a.Header.Get("Allow") == "" {
			t.Error("405 without Allow")
		}
	}
	if a.Status >= 400 && a.Body != "" {
		p := a.Problem(t)
		if p.Title == "" || p.Type == "" || p.Instance == "" {
			t.Errorf("a member of the problem is missing: %s", a.Body)
		}
		text += " " + p.Code
	}
	return text
}

// Dump is the request that the guest echo received.
type Dump struct {
	Method, Path           string
	Params, Query, Headers [][2]string
	Body                   string
	Context                struct {
		RequestID, Route, Scheme, Deadline string
		Auth                               map[string]any
	}
}

func ReadDump(t *testing.T, a Answer) Dump {
	t.Helper()
	if a.Status != 200 {
		t.Fatalf("dump answered %d %q", a.Status, a.Body)
	}
	rest := []byte(a.Body)
	section := func() []byte {
		n := binary.LittleEndian.Uint32(rest)
		s := rest[4 : 4+n]
		rest = rest[4+n:]
		return s
	}
	pairs := func(b []byte) (all [][2]string) {
		for len(b) > 0 {
			n, v := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
			all = append(all, [2]string{string(b[8 : 8+n]), string(b[8+n : 8+n+v])})
			b = b[8+n+v:]
		}
		return all
	}
	d := Dump{Method: string(section()), Path: string(section())}
	d.Params, d.Query, d.Headers, d.Body = pairs(section()), pairs(section()), pairs(section()), string(section())
	if err := json.Unmarshal(section(), &d.Context); err != nil {
		t.Fatalf("read the context: %v", err)
	}
	return d
}

func (d Dump) Header(name string) string {
	for _, h := range d.Headers {
		if h[0] == name {
			return h[1]
		}
	}
	return ""
}

var MaskedID = regexp.MustCompile(`[0-9a-z]{26}`)

var requestID = regexp.MustCompile(`^[0-9a-z]{26}$`)
