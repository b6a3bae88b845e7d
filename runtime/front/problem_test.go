package front_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/runtime/front"
)

func TestEveryCodeHasAStatusAndAProblem(t *testing.T) {
	want := map[fault.Code]int{
		fault.RouteNotFound: 404, fault.MethodNotAllowed: 405, fault.MethodNotImplemented: 501, fault.BadPath: 400,
		fault.InvalidRequest: 400, fault.HTTPVersion: 505, fault.URITooLong: 414, fault.HeadersTooLarge: 431,
		fault.RequestTimeout: 408, fault.BodyTooLarge: 413, fault.UnsupportedEncoding: 415, fault.PreconditionFailed: 412, fault.RangeNotSatisfiable: 416, fault.InvalidJSON: 400, fault.InvalidInput: 400, fault.MissingCredentials: 401,
		fault.InvalidToken: 401, fault.MissingSignature: 400, fault.InvalidSignature: 401, fault.InsufficientScope: 403, fault.InsufficientRole: 403, fault.CrossOrigin: 403, fault.RateLimited: 429,
		fault.Overloaded: 503, fault.NotReady: 503, fault.HandlerFailed: 500, fault.HandlerTimeout: 504,
		fault.HandlerOutOfMemory: 500, fault.HandlerUnavailable: 503, fault.KeyStoreStale: 503, fault.BadRequest: 400, fault.Unauthorized: 401, fault.Forbidden: 403,
		fault.Error: 500, fault.NotFound: 404, fault.Invalid: 500, fault.Denied: 403, fault.Conflict: 409,
		fault.WriteConflict: 409,
		fault.TooLarge:      413, fault.Limit: 422, fault.Unavailable: 503, fault.DiskFull: 503, fault.Deadline: 500, fault.Internal: 500, fault.NotActivated: 500,
	}
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		x.Refuse(&fault.Fault{Code: fault.Code(x.Request.Path[1:])}, front.Extra{})
	})
	for _, code := range fault.All() {
		a := s.talk(t, "GET /"+string(code)+" HTTP/1.1\r\nHost: a\r\n\r\n")[0]
		p := problemOf(t, a)
		if a.StatusCode != want[code] || p.Status != want[code] {
			t.Errorf("%s: status %d, in the body %d, want %d", code, a.StatusCode, p.Status, want[code])
		}
		id := a.Header.Get("X-Request-Id")
		if p.Code != string(code) || p.Title != http.StatusText(want[code]) || p.Detail == "" || p.Type != "about:blank" ||
			p.RequestID != id || p.Instance != "urn:ulid:"+id {
			t.Errorf("%s: %+v", code, p)
		}
		if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s: Content-Type %q", code, got)
		}
		if got, want := a.Header.Get("Cache-Control") == "no-store", a.StatusCode == 401 || a.StatusCode == 403 || a.StatusCode == 429; got != want {
			t.Errorf("%s: Cache-Control %q", code, a.Header.Get("Cache-Control"))
		}
	}
	if len(want) != len(fault.All()) {
		t.Errorf("%d codes, %d rows here", len(fault.All()), len(want))
	}
}

func TestARefusalSaysWhatToDoInItsHeaders(t *testing.T) {
	for _, row := range []struct {
		name  string
		err   error
		realm string
		extra front.Extra
		want  map[string]string
	}{
		{"no credential", &fault.Fault{Code: fault.MissingCredentials}, "orders", front.Extra{}, map[string]string{"Www-Authenticate": `Bearer realm="orders"`}},
		{"no credential, no app", &fault.Fault{Code: fault.MissingCredentials}, "", front.Extra{}, map[string]string{"Www-Authenticate": `Bearer realm="runner"`}},
		{"a bad token", &fault.Fault{Code: fault.InvalidToken}, "orders", front.Extra{}, map[string]string{"Www-Authenticate": `Bearer realm="orders", error="invalid_token"`}},
		{"the wrong scope", &fault.Fault{Code: fault.InsufficientScope}, "orders", front.Extra{Scope: "reader writer"}, map[string]string{"Www-Authenticate": `Bearer realm="orders", error="insufficient_scope", scope="reader writer"`}},
		{"odd names", &fault.Fault{Code: fault.InsufficientScope}, "a\"b\\\r\nX: y", front.Extra{Scope: `"`}, map[string]string{"Www-Authenticate": `Bearer realm="a\"b\\X: y", error="insufficient_scope", scope="\""`}},
		{"the wrong role", &fault.Fault{Code: fault.InsufficientRole}, "orders", front.Extra{}, map[string]string{"Www-Authenticate": ""}},
		{"another method", &fault.Fault{Code: fault.MethodNotAllowed}, "", front.Extra{Allow: "GET, HEAD"}, map[string]string{"Allow": "GET, HEAD"}},
		{"too often", &fault.Fault{Code: fault.RateLimited}, "", front.Extra{RetryAfter: 17}, map[string]string{"Retry-After": "17"}},
		{"no room", &fault.Fault{Code: fault.Overloaded}, "", front.Extra{}, map[string]string{"Retry-After": "1"}},
		{"not ours", errors.New("secret cause"), "", front.Extra{}, map[string]string{"Retry-After": "", "Allow": "", "Www-Authenticate": ""}},
	} {
		a := answered(t, func(x *front.Exchange) {
			x.Realm = row.realm
			x.Refuse(row.err, row.extra)
		})
		for name, want := range row.want {
			if got := strings.Join(a.Header[name], "|"); got != want {
				t.Errorf("%s: %s is %q, want %q", row.name, name, got, want)
			}
		}
		if strings.Contains(a.body, "secret") {
			t.Errorf("%s: %s", row.name, a.body)
		}
	}
}

func TestARefusalListsItsErrors(t *testing.T) {
	a := answered(t, func(x *front.Exchange) {
		x.Refuse(&fault.Fault{Code: fault.InvalidInput}, front.Extra{Errors: []byte(`[{"field":"a","message":"is missing"}]`)})
	})
	if p := problemOf(t, a); p.Status != 400 || !strings.HasSuffix(a.body, `","errors":[{"field":"a","message":"is missing"}]}`) {
		t.Errorf("%s", a.body)
	}
}

func TestARefusalOnAPrivateRouteIsNotCacheable(t *testing.T) {
	a := answered(t, func(x *front.Exchange) {
		x.Private = true
		x.Refuse(&fault.Fault{Code: fault.NotFound}, front.Extra{})
	})
	if a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Vary") != "Authorization, Cookie, X-API-Key" {
		t.Errorf("%v", a.Header)
	}
}

func TestRefusalsOfOneKindAreIndistinguishable(t *testing.T) {
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		x.Refuse(fault.Wrap(errors.New("a cause"), fault.InvalidToken, "token %s", x.Request.Path), front.Extra{})
	})
	var seen []string
	for _, path := range []string{"/unknown", "/revoked", "/expired"} {
		nc := s.dial(t)
		if _, err := nc.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		var raw bytes.Buffer
		if _, err := raw.ReadFrom(nc); err != nil {
			t.Fatal(err)
		}
		a := readAnswer(t, bufio.NewReader(bytes.NewReader(raw.Bytes())), "GET")
		masked := strings.ReplaceAll(raw.String(), a.Header.Get("X-Request-Id"), "ID")
		seen = append(seen, strings.ReplaceAll(masked, a.Header.Get("Date"), "DATE"))
	}
	if seen[0] != seen[1] || seen[0] != seen[2] {
		t.Errorf("%q", seen)
	}
}

func TestAnErrorHelpersAnswerIsAProblem(t *testing.T) {
	a := answered(t, func(x *front.Exchange) {
		x.Realm = "orders"
		x.Send(&abi.Response{Status: 401, Code: "unauthorized", Detail: "who \"are\" you?\n", Headers: pairs("x-mine", "1", "content-type", "text/plain", "content-encoding", "gzip")})
	})
	p := problemOf(t, a)
	if a.StatusCode != 401 || p.Status != 401 || p.Code != "unauthorized" || p.Detail != "who \"are\" you?\n" || p.Title != "Unauthorized" {
		t.Errorf("%d %+v", a.StatusCode, p)
	}
	want := map[string]string{"X-Mine": "1", "Content-Type": "application/problem+json", "Content-Encoding": "", "Www-Authenticate": `Bearer realm="orders"`, "Cache-Control": "no-store"}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got := a.Header.Get(name); got != want[name] {
			t.Errorf("%s: %q, want %q", name, got, want[name])
		}
	}
	a = answered(t, func(x *front.Exchange) { x.Send(&abi.Response{Status: 599, Code: "error"}) })
	if p := problemOf(t, a); a.StatusCode != 599 || p.Title != "Error" || p.Code != "error" {
		t.Errorf("%d %+v", a.StatusCode, p)
	}
}

func TestAnErrorWithoutADetailGetsThatOfItsCode(t *testing.T) {
	for code, want := range map[string]string{
		"bad_request":    "bad request",
		"handler_failed": "the handler failed: the log has the cause under this requestId",
		"error":          "the request failed",
		"out_of_tea":     "the request failed",
	} {
		a := answered(t, func(x *front.Exchange) { x.Send(&abi.Response{Status: 422, Code: code}) })
		if p := problemOf(t, a); p.Detail != want || p.Code != code || p.Status != 422 {
			t.Errorf("%s: %+v, want the detail %q", code, p, want)
		}
	}
}

func TestCodesOfStatusesAreTheHostsOwn(t *testing.T) {
	for status := 400; status < 600; status++ {
		if code := fault.OfStatus(status); code != fault.Error && front.StatusOf(code) != status {
			t.Errorf("%d has the code %s, which the host answers with %d", status, code, front.StatusOf(code))
		}
	}
}

func FuzzProblemsAreJSON(f *testing.F) {
	f.Add("plain", "a_code")
	f.Add("\"\\\x00\x1f\x7f\u2028\xff\xed\xa0\x80é", "\n")
	var detail, code string
	s := newStage()
	startOn(f, s, front.Options{}, func(x *front.Exchange) {
		x.Send(&abi.Response{Status: 400, Detail: detail, Code: code})
	})
	f.Fuzz(func(t *testing.T, d, c string) {
		if c == "" {
			return
		}
		detail, code = d, c
		a := readAnswer(t, bufio.NewReader(bytes.NewReader(s.play("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 0))), "GET")
		if !json.Valid([]byte(a.body)) || !utf8.ValidString(a.body) {
			t.Fatalf("%q", a.body)
		}
		text := func(s string) (out string) {
			quoted, err := json.Marshal(s)
			if err == nil {
				err = json.Unmarshal(quoted, &out)
			}
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		if p := problemOf(t, a); d != "" && p.Detail != text(d) || p.Detail == "" || p.Code != text(c) {
			t.Errorf("%+v of %q, %q", p, d, c)
		}
	})
}
