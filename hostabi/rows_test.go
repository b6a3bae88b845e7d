package hostabi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/state/store"
)

func TestRowsAreReadAndWrittenWithTheCallersAuthority(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	made, n := g.op("insert", `{"into":"Thing","values":[{"n":1},{"n":2}]}`)
	rows, _ := made["rows"].([]any)
	if n < 0 || len(rows) != 2 {
		t.Fatalf("insert: %v", made)
	}
	id := rows[0].(map[string]any)["id"].(string)
	for _, row := range []struct{ op, args, want string }{
		{"get", fmt.Sprintf(`{"from":"Thing","id":%q}`, id), fmt.Sprintf(`{"row":{"id":%q,"n":1}}`, id)},
		{"count", `{"from":"Thing"}`, `{"count":2}`},
		{"query", `{"from":"Thing","where":[["n",">",1]],"select":["n"]}`, `{"rows":[{"n":2}],"nextCursor":null}`},
		{"delete", `{"from":"Thing","where":[["n","=",2]]}`, `{"count":1}`},
		{"update", `{"in":"Thing","set":{"n":7},"where":[]}`, fmt.Sprintf(`{"count":1,"rows":[{"id":%q,"n":7}]}`, id)},
	} {
		if n := g.do("call", row.op, row.args); n < 0 {
			t.Errorf("%s: %d", row.op, n)
		}
		if text, _ := g.get("call_result", 0); text != row.want {
			t.Errorf("%s %s: %s, want %s", row.op, row.args, text, row.want)
		}
	}
	g.call.Begin()
	g.call.Caller = caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "t2"}
	if got, _ := g.op("count", `{"from":"Thing"}`); fmt.Sprint(got["count"]) != "0" {
		t.Errorf("another tenant counts %v", got)
	}
	if got, n := g.op("get", fmt.Sprintf(`{"from":"Thing","id":%q}`, id)); n != notFound {
		t.Errorf("another tenant gets %v", got)
	}
	g.call.Begin()
	g.call.Caller = caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Scope: "read_only", Tenant: "t1"}
	if got, n := g.op("insert", `{"into":"Thing","values":{}}`); n != denied || got["code"] != "denied" {
		t.Errorf("a key that may only read inserts: %d %v", n, got)
	}
}

func TestErrorsInOperationsOnRowsNameTheirCause(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for _, row := range []struct{ op, args, says string }{
		{"query", `{"from":"Thin"}`, `query: from: unknown entity "Thin" (did you mean "Thing"?)`},
		{"query", `{"from":"Thing","order":[]}`, `query: unknown member "order"`},
		{"query", `{"from":"Thing","where":[["n","==",1]]}`, `query: where[0]`},
		{"insert", `{"into":"Thing"}`, `insert: member "values" is missing`},
		{"delete", `{"from":"Thing"}`, `delete: where is missing`},
		{"get", ``, `get: `},
	} {
		got, n := g.op(row.op, row.args)
		if message, _ := got["message"].(string); n != invalid || !strings.HasPrefix(message, row.says) {
			t.Errorf("%s %s: %d %v, want invalid with %q", row.op, row.args, n, got, row.says)
		}
	}
}

func TestRowsAreSentWithoutACopyThroughTheGuest(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	send := func(op, args string, part int) string {
		t.Helper()
		g.call.Response.Reset()
		if n := g.do("call", op, args); n < 0 {
			t.Fatalf("%s: %d", op, n)
		}
		if n := g.raw("response_send_result", 200, uint32(part)); n != 0 {
			return abi.Errno(n).String()
		}
		return string(g.call.Response.Body)
	}
	if got := send("query", `{"from":"Thing"}`, abi.PartRow); got != "not_found" {
		t.Errorf("the first of no rows: %s", got)
	}
	if got := send("query", `{"from":"Thing"}`, abi.PartRows); got != "[]" {
		t.Errorf("no rows: %s", got)
	}
	g.log.Reset()
	for range 2 {
		g.do("call", "query", `{"from":"Thing"}`)
		if n := g.raw("response_send_result", 201, uint32(abi.PartRow)); n != invalid || g.log.Len() > 0 {
			t.Errorf("no row for a status that is not of a look-up: %d, %s", n, g.log)
		}
	}
	one := send("insert", `{"into":"Thing","values":{"n":1}}`, abi.PartRow)
	var id string
	if _, err := fmt.Sscanf(one, `{"id":%q,"n":1}`, &id); err != nil {
		t.Fatalf("the new row: %s", one)
	}
	get := fmt.Sprintf(`{"from":"Thing","id":%q}`, id)
	for _, row := range []struct {
		op, args string
		part     int
		want     string
	}{
		{"get", get, abi.PartRow, one},
		{"get", get, abi.PartAll, `{"row":` + one + `}`},
		{"get", get, abi.PartRows, "invalid"},
		{"query", `{"from":"Thing"}`, abi.PartRows, "[" + one + "]"},
		{"query", `{"from":"Thing"}`, abi.PartRow, one},
		{"query", `{"from":"Thing"}`, abi.PartAll, `{"rows":[` + one + `],"nextCursor":null}`},
		{"count", `{"from":"Thing"}`, abi.PartRows, "invalid"},
		{"count", `{"from":"Thing"}`, abi.PartRow, "invalid"},
		{"update", `{"in":"Thing","set":{},"where":[]}`, abi.PartRow, one},
	} {
		if got := send(row.op, row.args, row.part); got != row.want {
			t.Errorf("part %d of %s: %s, want %s", row.part, row.op, got, row.want)
		}
	}
	g.log.Reset()
	if got := send("query", `{"from":"Thing","where":[["n","=",9]]}`, abi.PartRow); got != "not_found" || !strings.Contains(g.log.String(), `"msg":"writes discarded"`) {
		t.Errorf("no row after a write: %s, and the log has %s", got, g.log)
	}
}

func TestRowsAreCountedOverAllOperationsOfARun(t *testing.T) {
	g := newGuest(t, hostabi.Limits{Rows: 3})
	for range 2 { // each run starts from the beginning
		for i := range 5 {
			want := notFound
			if i >= 3 {
				want = limit
			}
			if got, n := g.op("get", `{"from":"Thing","id":"none"}`); n != want {
				t.Fatalf("look-up %d: %d %v, want %d", i+1, n, got, want)
			}
		}
		if got, n := g.op("secret", `{"name":"SIGNING_KEY"}`); n < 0 {
			t.Errorf("an operation without rows: %v", got)
		}
		g.call.Begin()
	}
}

// A release continues to serve while the next one replaces it. Its operations on rows
// after that must not be committed.
func TestAnOutdatedReleaseIsDetected(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	if got, n := g.op("count", `{"from":"Thing"}`); n < 0 || g.call.Outdated() {
		t.Fatalf("before: %v", got)
	}
	activate(t, g.store, strings.Replace(appSchema, "read on Thing", "read on Thing, Other", 1))
	_, err := g.store.Update(context.Background(), func(tx *store.Tx) error {
		g.call.Tx = tx
		g.call.Begin()
		if got, n := g.op("count", `{"from":"Thing"}`); n != int32(abi.Unavailable) || !g.call.Outdated() {
			t.Errorf("after: %d %v", n, got)
		}
		g.call.Begin()
		if g.call.Outdated() {
			t.Error("the next run is outdated before it began")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// dying is a context that ends after a number of calls.
type dying struct {
	context.Context
	left int
}

func (d *dying) Err() error {
	if d.left--; d.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestAnOperationPastTheDeadlineUnwindsTheGuest(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	if _, n := g.op("insert", `{"into":"Thing","values":[{"n":1},{"n":2},{"n":3},{"n":4},{"n":5},{"n":6},{"n":7},{"n":8}]}`); n < 0 {
		t.Fatalf("insert: %d", n)
	}
	g.call.Begin()
	ctx := &dying{context.Background(), 4}
	g.call.Context = ctx
	defer func() {
		if r := recover(); r != hostabi.ErrTimeOver || ctx.left < -3 {
			t.Errorf("a walk over rows: %v, and the time was asked for %d times more", r, -ctx.left)
		}
	}()
	g.do("call", "count", `{"from":"Thing"}`)
}
