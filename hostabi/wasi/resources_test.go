package wasi_test

import (
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/wasi"
)

// component calls a function of the module "component", which must not trap.
func (g *guest) component(name string, core ...uint64) uint64 {
	g.t.Helper()
	core = append(core, 0)
	if trap := g.raw(g.functions["component "+name], core); trap != nil {
		g.t.Fatalf("%s: %v", name, trap)
	}
	return core[0]
}

func (g *guest) componentTraps(want, name string, core ...uint64) {
	g.t.Helper()
	if trap := g.raw(g.functions["component "+name], append(core, 0)); trap == nil || !strings.Contains(trap.Error(), want) {
		g.t.Errorf("%s: %v, want %q", name, trap, want)
	}
}

// Each instance of a component has its own handles, also of what it has made before the first request.
func TestInstancesHaveTheirOwnHandles(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	request := g.call.Request
	g.call.Request = nil
	g.begin(nil)
	g.call.Initializing(true)
	out := g.do("wasi:cli/stdout@0.2 get-stdout").(uint32)
	g.component("instance", 2)
	if own := g.component("resource_new", 2, 7, 100); own != 1 {
		t.Errorf("the first handle of another instance is %d", own)
	}
	handles, err := wasi.HandlesOf(g.call)
	if err != nil {
		t.Fatal(err)
	}
	g.call.Initializing(false)
	g.call.End()
	g.call.Request = request
	for range 2 {
		g.begin(handles)
		if rep := g.component("resource_rep", 2, 7, 1); rep != 100 {
			t.Errorf("the representation is %d", rep)
		}
		g.componentTraps("handle 2 of a resource of the component is unknown", "resource_rep", 2, 7, 2)
		g.componentTraps("not of the component's resource 8", "resource_rep", 2, 8, 1)
		g.componentTraps("handle 1 is of output-stream", "resource_rep", 0, 7, 1)
		g.componentTraps("handle 1 of a resource of the component is unknown", "resource_rep", 1, 7, 1)
		g.component("instance", 0)
		g.expect("#0", streams+"[method]output-stream.blocking-write-and-flush", out, []byte("hello\n"))
		g.component("instance", 2)
		g.traps("handle 1 is of the component's resource 7, not of output-stream",
			streams+"[method]output-stream.blocking-write-and-flush", out, []byte("hello\n"))
		if dropped := g.component("resource_drop", 2, 7, 1); dropped != 1<<32|100 {
			t.Errorf("resource_drop: %#x", dropped)
		}
		g.componentTraps("is unknown, or was dropped", "resource_drop", 2, 7, 1)
		g.call.End()
	}
}

// What is borrowed is so for a call, and what is passed on leaves its table.
func TestHandlesAreLentForCalls(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.componentTraps("a call ends that has not begun", "end_call")
	g.componentTraps("component instance 5000 does not exist", "instance", 5000)
	h := g.component("resource_new", 0, 3, 100)
	g.componentTraps("borrowed outside of a call", "resource_lend", 0, 1, 3, h)
	g.component("begin_call")
	lent := g.component("resource_lend", 0, 1, 3, h)
	g.componentTraps("cannot be dropped or passed on: a call has borrowed it", "resource_drop", 0, 3, h)
	g.componentTraps("cannot be dropped or passed on: a call has borrowed it", "resource_move", 0, 1, 3, h)
	g.componentTraps("is borrowed: only its owner can pass it on", "resource_move", 1, 0, 3, lent)
	g.component("begin_call")
	again := g.component("resource_lend", 1, 2, 3, lent)
	if rep := g.component("resource_lend", 1, 1<<32-1, 3, lent); rep != 100 {
		t.Errorf("the representation is %d", rep)
	}
	g.componentTraps("cannot be dropped: a call has borrowed it", "resource_drop", 1, 3, lent)
	g.componentTraps("not dropped 1 of the handles", "end_call")
	if dropped := g.component("resource_drop", 2, 3, again); dropped != 0 {
		t.Errorf("a borrowed handle is destroyed: %#x", dropped)
	}
	g.component("end_call")
	g.component("resource_drop", 1, 3, lent)
	g.component("end_call")
	if moved := g.component("resource_move", 0, 1, 3, h); moved != 1 {
		t.Errorf("it is passed on as %d", moved)
	}
	g.componentTraps("is unknown, or was dropped", "resource_rep", 0, 3, h)
	for reason, want := range []string{"a rule of the canonical ABI", "calls out", "not a char", "a case that", "not aligned", "longer than", "a rule"} {
		g.componentTraps(want, "trap", uint64(reason))
	}
	g.componentTraps("not UTF-8", "utf8", 1<<30, 1)
}
