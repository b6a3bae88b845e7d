package sandbox_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"runner.example/runtime/sandbox"
)

// stubbed imports a function of another host, twice with different types, and calls it in one of its handlers.
const stubbed = `(module
	(import "other" "log" (func $a (param i32)))
	(import "other" "log" (func $b (param i64) (result i64)))
	(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
	(memory (export "memory") 1)
	(func (export "good") (drop (call $send (i32.const 204) (i32.const 0) (i32.const 0))))
	(func (export "bad") (drop (call $b (i64.const 1)))))`

func TestStubsEndARunAndAreReleasedWithTheLastModule(t *testing.T) {
	ctx := context.Background()
	e := newEngine(t, sandbox.Options{})
	load := func(name, text string) *sandbox.Module {
		t.Helper()
		m, err := e.LoadAs(ctx, name, assembleText(t, text), sandbox.Settings{Stub: []string{"other"}})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	works := func(m *sandbox.Module) {
		t.Helper()
		if err := m.Run(newCall(ctx, new(bytes.Buffer)), "good"); err != nil {
			t.Fatal(err)
		}
		err := m.Run(newCall(ctx, new(bytes.Buffer)), "bad")
		if want := "called other.log, which the schema names in stub"; err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("a call of the stub: %v, want %q", err, want)
		}
	}
	stubs := func() int {
		n := 0
		for _, name := range []string{`stub "other" "log" (i32) -> ()`, `stub "other" "log" (i64) -> (i64)`} {
			if e.HasHostModule(name) {
				n++
			}
		}
		return n
	}
	first, second := load("first.wasm", stubbed), load("second.wasm", stubbed)
	if n := stubs(); n != 2 {
		t.Errorf("two modules with the same two stubs: %d host modules", n)
	}
	if err := first.Close(ctx); err != nil {
		t.Fatal(err)
	}
	works(second)
	if err := second.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if n := stubs(); n != 0 {
		t.Errorf("without a module that uses them: %d host modules", n)
	}
	refused := strings.Replace(stubbed, `(func (export "bad")`, `(func (export "_initialize") unreachable) (func (export "bad")`, 1)
	if _, err := e.LoadAs(ctx, "third.wasm", assembleText(t, refused), sandbox.Settings{Stub: []string{"other"}}); err == nil || stubs() != 0 {
		t.Errorf("after a module that is refused (%v): %d host modules", err, stubs())
	}
	again := load("first.wasm", stubbed)
	works(again)
	if err := again.Close(ctx); err != nil {
		t.Fatal(err)
	}
}
