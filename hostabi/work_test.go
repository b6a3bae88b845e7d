package hostabi_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/tests/harness"
)

var soak = os.Getenv("RUNNER_SOAK") != ""

// threadTime is what this thread has used of a processor.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	return harness.CPUTime(t, harness.ThisThread)
}

// pieces calls a function and gives the CPU time of the pieces of it between
// which its owner was asked whether it may go on, in order of length. It ends the
// function when it was asked so often; 0: never.
func (g *guest) pieces(function string, words []uint32, most int) (all []time.Duration, ended bool) {
	g.t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	t := g.t.(*testing.T)
	errOver := errors.New("over")
	last := threadTime(t)
	look := func() {
		now := threadTime(t)
		all = append(all, now-last)
		last = now
	}
	owner := &hostabi.Guest{Context: g.call.Context, Sandbox: &recordingSandbox{working: func() error {
		if look(); len(all) == most {
			return errOver
		}
		return nil
	}}}
	owner.Bind(g.call)
	f, ok := g.functions[function]
	if !ok {
		f = g.wasi[function]
	}
	stack := make([]uint64, max(1, len(words)))
	for i, w := range words {
		stack[i] = uint64(w)
	}
	defer func() {
		look()
		slices.Sort(all)
		if p := recover(); p == errOver {
			ended = true
		} else if p != nil {
			panic(p)
		}
	}()
	f.Fn.Call(owner, g.module, stack)
	return
}

// different returns n letters that are not ASCII.
func different(n int) string {
	letters := make([]rune, n)
	for i := range letters {
		letters[i] = '一' + rune(n-i)*7
	}
	return string(letters)
}

// Whatever a handler has the host compute is cut into pieces that take some
// milliseconds at most, and ends at the end of one.
func TestLongWorkIsDoneInPieces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	const mega = 1 << 20
	g := newGuest(t, hostabi.Limits{HostCalls: 1 << 30, MovedBytes: 1 << 40, StoreOps: 1 << 30})
	if _, ok := g.module.Memory().Grow(512); !ok {
		t.Fatal("no more memory")
	}
	wide := make([]string, 1000)
	for i := range wide {
		wide[i] = fmt.Sprintf(`{"n":%d}`, i)
	}
	if _, n := g.op("insert", `{"into":"Thing","values":[`+strings.Join(wide, ",")+`]}`); n < 0 {
		t.Fatal("insert")
	}
	members := make([]string, 15_000)
	for i := range members {
		members[i] = fmt.Sprintf(`"member%d":1`, i)
	}
	numbers := strings.Repeat("1,", 900) + "1"
	for range 200 {
		if made, n := g.op("apiKeys.create", `{"scope":"read_only"}`); n < 0 {
			t.Fatal(made)
		}
	}
	for _, row := range []struct {
		name     string
		least    int // pieces; some are fewer than usual, as the order of new rows is random
		op, args string
	}{
		{"keys", 7, "apiKeys.list", `{"scope":"admin"}`},
		{"a digest", 67, "digest", `{"algorithm":"SHA-512","data":"` + strings.Repeat("a", 2*mega-100) + `"}`},
		{"a signature of base64", 51, "hmac", `{"algorithm":"SHA-384","key":"k","data":{"base64":"` + strings.Repeat("aaaa", mega/2-100) + `"}}`},
		{"a long key", 67, "hmac", `{"algorithm":"SHA-512","data":"k","key":"` + strings.Repeat("a", 2*mega-100) + `"}`},
		{"escapes", 14, "digest", `{"algorithm":"SHA-256","data":"` + strings.Repeat(`\u0061`, mega/3-50) + `"}`},
		{"texts that are compared", 6, "timingSafeEqual", `{"a":"` + strings.Repeat("a", mega-50) + `","b":"` + strings.Repeat("a", mega-50) + `"}`},
		{"a domain", 2, "domainToASCII", `{"domain":"` + different(340) + `"}`},
		{"brackets", 1399, "digest", `{"data":[` + strings.Repeat("[],", 2*mega/3-100) + `0]}`},
		{"members", 2, "digest", `{` + strings.Join(members, ",") + `}`},
		{"members within", 35, "digest", `{"data":{` + strings.Join(members, ",") + `}}`},
		{"headers", 30, "fetch", `{"url":"https://a","headers":[` + strings.Repeat(`["",""],`, 7000) + `["a","b"]]}`},
		{"members of a row", 3, "insert", `{"into":"Thing","values":{` + strings.Join(members[:10_000], ",") + `}}`},
		{"brackets in a row", 4, "insert", `{"into":"Thing","values":{"n":[` + strings.Repeat("[],", 80_000) + `0]}}`},
		{"rows", 78, "insert", `{"into":"Thing","values":[` + strings.Join(wide, ",") + `]}`},
		{"an update", 400, "update", `{"in":"Thing","set":{"n":1},"where":[["n","<",100]]}`},
		{"conditions", 400, "count", `{"from":"Thing","where":[["or"` + strings.Repeat(`,["n","in",[`+numbers+`]]`, 100) + `]]}`},
		{"a count", 400, "count", `{"from":"Thing","where":[["or"` + strings.Repeat(`,["n","=",-1]`, 250) + `]]}`},
		{"a page", 400, "query", `{"from":"Thing","orderBy":[["n","desc"]],"limit":1000}`},
		{"a delete", 400, "delete", `{"from":"Thing","where":[["n","<",100]]}`},
	} {
		// What the collector and others do to the thread may spoil one measurement. Only
		// the first try finds the rows that a delete removes.
		worst, count := time.Hour, 0
		for try := range 3 {
			g.next = 1024
			g.call.Begin()
			all, _ := g.pieces("call", g.words([]any{row.op, row.args}), 0)
			worst = min(worst, all[len(all)-1])
			if try == 0 {
				count = len(all)
			}
		}
		t.Logf("%s: %d pieces, the longest takes %s", row.name, count, worst)
		if count < row.least {
			t.Errorf("%s: %d pieces, want %d at least", row.name, count, row.least)
		}
		if soak && worst > 10*time.Millisecond { // a quiet machine: a hypervisor that gives the processor to others counts it as ours
			t.Errorf("%s: a piece takes %s", row.name, worst)
		}
		if count < 4 {
			continue
		}
		g.next = 1024
		g.call.Begin()
		if all, ended := g.pieces("call", g.words([]any{row.op, row.args}), 2); !ended || len(all) > 3 {
			t.Errorf("%s: it was to end at the second look: %t, after %d", row.name, ended, len(all))
		}
	}
	g.call.Begin()
	if all, _ := g.pieces("random_get", []uint32{65536, 8 * mega}, 0); len(all) < 16 {
		t.Errorf("8 MiB of chance are %d pieces, the longest %s", len(all), all[len(all)-1])
	}
}
