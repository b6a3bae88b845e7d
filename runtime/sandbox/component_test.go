package sandbox_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// counterComponent returns testdata/component/counter.wasm.
func counterComponent(t testing.TB) []byte { return componentFile(t, "counter") }

// componentFile returns a component of testdata/component, which make.mjs makes.
func componentFile(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.ReadFile("testdata/component/" + name + ".wasm")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAComponentIsAsNewInEachRequest: its memory, its globals and its handles are those of no other request, also after
// one that traps, that never ends, or that drops a handle which it does not have.
func TestAComponentIsAsNewInEachRequest(t *testing.T) {
	m := loadAs(t, newEngine(t, sandbox.Options{Instances: 1, NoBreaker: true}), "build/counter.wasm", counterComponent(t))
	if m.Command() != "counter" {
		t.Fatalf("its handlers are %q, its own name is %q", m.Handlers(), m.Command())
	}
	for i := range 200 {
		path := []string{"/a", "/trap", "/b", "/forged", "/spin"}[i%5]
		timeout := plenty
		if path == "/spin" {
			timeout = time.Millisecond
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		call := newCall(ctx, new(bytes.Buffer))
		call.Request.Path = []byte(path)
		err := m.Run(call, "counter")
		cancel()
		want := path[1:2] + " 11\n"
		switch {
		case i%5 == 0 || i%5 == 2:
			if err != nil || call.Response.Status != 200 || string(call.Response.Body) != want {
				t.Fatalf("run %d: %v, %d %q, want %q", i, err, call.Response.Status, call.Response.Body, want)
			}
		case path == "/spin" && fault.CodeOf(err) != fault.HandlerTimeout, path != "/spin" && fault.CodeOf(err) != fault.HandlerFailed:
			t.Fatalf("run %d of %s: %v, %d %q", i, path, err, call.Response.Status, call.Response.Body)
		case path == "/forged" && !strings.Contains(err.Error()+fault.Of(err).Cause.Error(), "handle 9 of output-stream is unknown"):
			t.Fatalf("run %d: %v", i, fault.Of(err).Cause)
		}
		if idle, err := m.Restored(); err != nil || idle != 1 {
			t.Fatalf("after run %d: %d sandboxes, %v", i, idle, err)
		}
	}
}

// TestAComponentHasTheLimitsOfAHandler: its calls of the host count.
func TestAComponentHasTheLimitsOfAHandler(t *testing.T) {
	m := loadAs(t, newEngine(t, sandbox.Options{Instances: 1}), "build/counter.wasm", counterComponent(t))
	for calls := 1; ; calls++ {
		call := newCall(context.Background(), new(bytes.Buffer))
		call.Host = hostabi.NewHost(hostabi.Host{Logger: call.Host.Logger, Limits: hostabi.Limits{HostCalls: calls}})
		call.Request.Path = []byte("/a")
		err := m.Run(call, "counter")
		if err == nil {
			if calls < 8 {
				t.Errorf("it needed only %d calls", calls)
			}
			return
		}
		if calls > 50 || !strings.Contains(fault.Of(err).Cause.Error(), "may call the host") {
			t.Fatalf("with %d calls: %v", calls, fault.Of(err).Cause)
		}
	}
}

// TestOnlyComponentsImportTheInterfacesOfComponents: another module could call them in any order.
func TestOnlyComponentsImportTheInterfacesOfComponents(t *testing.T) {
	e := newEngine(t, sandbox.Options{})
	for _, row := range []struct{ imports, want string }{
		{`(import "wasi:random/random@0.2" "get-random-u64" (func (result i64)))`, "wasi:random/random@0.2.get-random-u64"},
		{`(import "component" "begin_http" (func (result i32)))`, "component.begin_http"},
	} {
		module := assembleText(t, `(module `+row.imports+` (memory (export "memory") 1) (func (export "h")))`)
		if _, err := e.LoadAs(context.Background(), "build/x.wasm", module, sandbox.Settings{}); err == nil ||
			!strings.Contains(err.Error(), "imports "+row.want) {
			t.Errorf("%s: %v", row.imports, err)
		}
	}
}

// TestInstancesOfAComponentAreAsNewInEachRequest: the handles that they have, and what they have begun, are those of no
// other request, however it ends.
func TestInstancesOfAComponentAreAsNewInEachRequest(t *testing.T) {
	file, err := os.ReadFile("testdata/component/instances.wasm")
	if err != nil {
		t.Fatal(err)
	}
	m := loadAs(t, newEngine(t, sandbox.Options{Instances: 1, NoBreaker: true}), "build/instances.wasm", file)
	for i := range 60 {
		row := [][2]string{
			{"/ok", "handler returned without an answer"},
			{"/destructor", "unreachable"},
			{"/forged", "handle 9 of a resource of the component is unknown"},
			{"/twice", "handle 1 of a resource of the component is unknown"},
			{"/post-return", "the component calls out while it allocates memory for a value, or after it has returned"},
			{"/recursion", "stack"},
			{"/many", "a request may have 65536 handles"},
			{"/spin"},
		}[i%8]
		timeout := plenty
		if row[0] == "/spin" {
			timeout = time.Millisecond
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		call := newCall(ctx, new(bytes.Buffer))
		call.Request.Path = []byte(row[0])
		err := m.Run(call, "instances")
		cancel()
		switch {
		case row[0] == "/spin" && fault.CodeOf(err) != fault.HandlerTimeout:
			t.Fatalf("run %d: %v", i, err)
		case row[1] != "" && (err == nil || !strings.Contains(err.Error()+fault.Of(err).Cause.Error(), row[1])):
			t.Fatalf("run %d of %s: %v", i, row[0], err)
		}
		if idle, err := m.Restored(); err != nil || idle != 1 {
			t.Fatalf("after run %d: %d sandboxes, %v", i, idle, err)
		}
	}
}
