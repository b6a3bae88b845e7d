package hostabi_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/hostabi"
)

// take reads the outcome of a ticket.
func (g *guest) take(ticket int32) (map[string]any, int32) {
	g.t.Helper()
	n := g.raw("call_take", uint32(ticket))
	return g.result("call_take", n), n
}

func TestPendingOperationsRunInTheirOrder(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.do("call", "secret", `{"name":"SIGNING_KEY"}`)
	create := g.do("call_start", "apiKeys.create", `{"scope":"read_only"}`)
	list := g.do("call_start", "apiKeys.list", "")
	wrong := g.do("call_start", "apiKeys.get", `{"id":"key_x"}`)
	if create != 0 || list != 1 || wrong != 2 {
		t.Fatalf("tickets %d, %d, %d", create, list, wrong)
	}
	if text, _ := g.get("call_result", 0); text != `{"value":"s3cr3t"}` {
		t.Errorf("starting operations changed the last result to %s", text)
	}
	for want := range int32(3) {
		if n := g.raw("call_wait"); n != want {
			t.Errorf("call_wait: %d, want %d", n, want)
		}
	}
	if n := g.raw("call_wait"); n != notFound {
		t.Errorf("call_wait when all were returned: %d", n)
	}
	if result, n := g.take(wrong); n != notFound || result["code"] != "not_found" || !strings.HasPrefix(result["message"].(string), "apiKeys.get") {
		t.Errorf("a look-up of nothing: %d %v", n, result)
	}
	keys, n := g.take(list)
	if n < 0 || len(keys["keys"].([]any)) != 1 {
		t.Errorf("the list, begun after the key was made: %d %v", n, keys)
	}
	if key, n := g.take(create); n < 0 || key["token"] == nil {
		t.Errorf("the key: %d %v", n, key)
	}
	if n := g.raw("response_send_result", 200, 0); n != 0 || !strings.Contains(string(g.call.Response.Body), "token") {
		t.Errorf("what was taken last cannot be sent on: %d", n)
	}
}

func TestAPendingOperationIsTakenOnce(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	if n := g.raw("call_wait"); n != notFound {
		t.Errorf("call_wait with nothing started: %d", n)
	}
	first := g.do("call_start", "secret", `{"name":"SIGNING_KEY"}`)
	second := g.do("call_start", "secret", `{"name":"SIGNING_KEY"}`)
	if result, n := g.take(first); n < 0 || result["value"] != "s3cr3t" {
		t.Errorf("taken without having waited: %d %v", n, result)
	}
	if n := g.raw("call_wait"); n != second {
		t.Errorf("call_wait returns %d, want the one that was not taken", n)
	}
	if n := g.raw("call_wait"); n != notFound {
		t.Errorf("call_wait: %d, want nothing", n)
	}
	for _, ticket := range []int32{first, second + 1, -1, 1 << 30} {
		if result, n := g.take(ticket); n != invalid || result["code"] != "invalid" {
			t.Errorf("ticket %d: %d %v", ticket, n, result)
		}
	}
	g.call.Begin()
	if result, n := g.take(second); n != invalid {
		t.Errorf("a ticket of the run before: %d %v", n, result)
	}
}

func TestAnErrorOfAPendingOperationIsItsResult(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	ticket := g.do("call_start", "digest", `{"algorithm":"MD5","data":""}`)
	if result, n := g.take(ticket); ticket != 0 || n != invalid || !strings.HasPrefix(fmt.Sprint(result["message"]), "digest: member") {
		t.Errorf("ticket %d: %d %v", ticket, n, result)
	}
	if n := g.do("call_start", "diggest", ""); n != invalid {
		t.Errorf("an operation that there is not: %d", n)
	}
	if text, _ := g.get("call_result", 0); !strings.Contains(text, `did you mean \"digest\"?`) {
		t.Errorf("its error: %s", text)
	}
}

func TestSleepsRunConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{})
		began := time.Now()
		passed := func(want time.Duration, what string) {
			t.Helper()
			if got := time.Since(began); got != want {
				t.Errorf("%s: after %v, want %v", what, got, want)
			}
		}
		g.do("call_start", "sleep", `{"seconds":60}`)
		short := g.do("call_start", "sleep", `{"seconds":0.03}`)
		if n := g.raw("call_wait"); n != short {
			t.Errorf("call_wait: %d", n)
		}
		passed(30*time.Millisecond, "the short one ends")
		if result, n := g.take(short); n != 2 || len(result) != 0 {
			t.Errorf("%d %v", n, result)
		}
		if result, n := g.op("sleep", `{"seconds":0}`); n != 2 {
			t.Errorf("no time: %d %v", n, result)
		}
		g.call.End()
		passed(30*time.Millisecond, "the end, which does not wait for the long one")
		for _, args := range []string{`{}`, `{"seconds":-1}`, `{"seconds":61}`, `{"seconds":"1"}`, `{"seconds":1e300}`} {
			if result, n := g.op("sleep", args); n != invalid {
				t.Errorf("%s: %d %v", args, n, result)
			}
		}
	})
}

func TestPendingOperationsAreLimited(t *testing.T) {
	t.Run("in number", func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{})
		for i := range 64 {
			if n := g.do("call_start", "secret", `{"name":"SIGNING_KEY"}`); n != int32(i) {
				t.Fatalf("ticket %d: %d", i, n)
			}
		}
		if n := g.do("call_start", "secret", `{"name":"SIGNING_KEY"}`); n != limit {
			t.Errorf("one more: %d", n)
		}
		g.take(7)
		if n := g.do("call_start", "secret", `{"name":"SIGNING_KEY"}`); n != 64 {
			t.Errorf("after one was taken: %d", n)
		}
	})
	t.Run("in store operations", func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{StoreOps: 2})
		g.do("call_start", "apiKeys.list", "")
		g.do("call", "apiKeys.list", "")
		if n := g.do("call_start", "apiKeys.list", ""); n != limit {
			t.Errorf("the third: %d", n)
		}
	})
}
