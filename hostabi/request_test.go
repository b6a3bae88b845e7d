package hostabi_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
)

func TestAHandlerReadsItsRequest(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for _, row := range []struct {
		function string
		args     []any
		want     string
		n        int32
	}{
		{"request_method", nil, "POST", 4},
		{"request_path", nil, "/v1/things/a%20b", 16},
		{"request_param", []any{"id"}, "a b", 3},
		{"request_param", []any{"ID"}, "", notFound},
		{"request_query", []any{"q"}, "1", 1},
		{"request_query", []any{"empty"}, "", 0},
		{"request_query", []any{"none"}, "", notFound},
		{"request_query", []any{""}, "", notFound},
		{"request_header", []any{"content-type"}, "application/json", 16},
		{"request_header", []any{"Content-Type"}, "", notFound},
		{"request_header", []any{"x-ü"}, "ö", 2},
		{"request_header", []any{"x-\xff"}, "", invalid},
		{"request_body", []any{0}, `{"n":1}`, 7},
		{"request_pairs", []any{0}, "\x02\x00\x00\x00\x03\x00\x00\x00ida b", 13},
		{"request_pairs", []any{3}, "\x00\x00\x00\x00\x10\x00\x00\x00q=1&empty=&%71=2", 24},
		{"request_pairs", []any{9}, "", invalid},
		{"request_pairs", []any{-1}, "", invalid},
	} {
		if got, n := g.get(row.function, row.args...); got != row.want || n != row.n {
			t.Errorf("%s(%v) = %d %q, want %d %q", row.function, row.args, n, got, row.n, row.want)
		}
	}
	g.call.Request.Headers = []abi.Pair{{Name: []byte("a"), Value: []byte("\xe9")}, {Name: []byte("b"), Value: []byte("é")}}
	for kind, want := range map[int]string{
		2: "\x01\x00\x00\x00\x02\x00\x00\x00aé\x01\x00\x00\x00\x02\x00\x00\x00bé",
		4: "\x01\x00\x00\x00\x02\x00\x00\x00aé\x01\x00\x00\x00\x04\x00\x00\x00bÃ©",
	} {
		if got, n := g.get("request_pairs", kind); got != want || int(n) != len(want) {
			t.Errorf("headers of kind %d are %d %q, want %q", kind, n, got, want)
		}
	}
	if got, n := g.get("request_header", "a"); got != "é" || n != 2 {
		t.Errorf("a header of ISO 8859-1 is %d %q", n, got)
	}
	got, _ := g.get("request_pairs", 1)
	want := "\x01\x00\x00\x00\x01\x00\x00\x00q1" + "\x05\x00\x00\x00\x00\x00\x00\x00empty" + "\x01\x00\x00\x00\x01\x00\x00\x00q2"
	if got != want {
		t.Errorf("all of the query is %q, want %q", got, want)
	}
}

func TestAValueLargerThanTheBufferReturnsOnlyItsLength(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	memory := g.module.Memory()
	for _, row := range []struct {
		function string
		args     []any
		length   int32
	}{{"request_path", nil, 16}, {"request_param", []any{"id"}, 3}, {"request_pairs", []any{2}, 50}, {"request_method", nil, 4}, {"request_header", []any{"x-ü"}, 2}} {
		whole, _ := g.get(row.function, row.args...)
		for capacity := range row.length + 2 {
			memory.WriteString(room, strings.Repeat("#", 64))
			n := g.raw(row.function, append(g.words(row.args), room, uint32(capacity))...)
			b, _ := memory.Read(room, 64)
			want := "" // nothing, or all of it in a buffer that it just fits into
			if capacity >= row.length {
				want = whole
			}
			if n != row.length || string(b) != want+strings.Repeat("#", 64-len(want)) {
				t.Errorf("%s into %d bytes: %d, and memory reads %q, want %q", row.function, capacity, n, b, want)
			}
		}
	}
}

func TestTheBodyIsReadInPieces(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for _, row := range []struct{ offset, capacity, n int32 }{
		{0, 3, 7}, {3, 3, 4}, {6, 3, 1}, {7, 3, 0}, {8, 3, 0}, {1 << 30, 3, 0}, {-1, 3, invalid}, {0, 0, 7}, {0, 6, 7}, {0, 7, 7}, {0, 8, 7}, {3, 4, 4}, {6, 1, 1},
	} {
		g.module.Memory().WriteString(room, "########")
		n := g.raw("request_body", uint32(row.offset), room, uint32(row.capacity))
		want := "########"
		if row.n > 0 {
			piece := `{"n":1}`[row.offset:][:min(row.capacity, row.n)]
			want = piece + want[len(piece):]
		}
		if b, _ := g.module.Memory().Read(room, 8); n != row.n || string(b) != want {
			t.Errorf("from %d into %d: %d and %q, want %d and %q", row.offset, row.capacity, n, b, row.n, want)
		}
	}
}

func TestTheContextHasTheCallerAndTheDeadline(t *testing.T) {
	end := time.Date(2030, 1, 2, 3, 4, 5, 678e6, time.UTC)
	for _, row := range []struct {
		who  caller.Caller
		auth string
	}{
		{caller.Caller{}, `{"kind":"anonymous"}`},
		{caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "t1", Roles: []string{"a", "b"}},
			`{"kind":"session","userId":"u1","tenant":"t1","roles":["a","b"]}`},
		{caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Scope: "s", Capability: "c:s", Tenant: "t1", Metadata: json.RawMessage(`{"plan":"pro"}`)},
			`{"kind":"apiKey","tenant":"t1","keyId":"key_1","scope":"s","capability":"c:s","metadata":{"plan":"pro"}}`},
	} {
		g := newGuest(t, hostabi.Limits{})
		ctx, cancel := context.WithDeadline(context.Background(), end)
		defer cancel()
		scheme := "http"
		if g.call.Request.Secure = row.who.Kind == caller.Session; g.call.Request.Secure {
			scheme = "https"
		}
		g.call.Context, g.call.Caller = ctx, row.who
		want := `{"requestId":"01j000000000000000000000aa","route":"/v1/things/:id","scheme":"` + scheme + `","auth":` + row.auth + `,"deadline":"2030-01-02T03:04:05.678Z"}`
		for range 2 {
			if got, n := g.get("context"); got != want || int(n) != len(want) {
				t.Errorf("context is %d\n%s, want\n%s", n, got, want)
			}
		}
	}
}
