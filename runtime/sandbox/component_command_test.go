package sandbox_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// TestACommandThatIsAComponentAnswersAsCGIScriptsDo runs testdata/component/command.wasm in one sandbox. Each run traps if
// its memory was used before.
func TestACommandThatIsAComponentAnswersAsCGIScriptsDo(t *testing.T) {
	m := loadAs(t, newEngine(t, sandbox.Options{Instances: 1, NoBreaker: true}), "build/command.wasm", componentFile(t, "command"))
	if m.Command() != "command" {
		t.Fatalf("its handlers are %q", m.Handlers())
	}
	for i := range 50 {
		row := []struct{ body, cause string }{
			{"abc", ""}, {"x", "exited with status 1"}, {"ends", ""}, {"", "exited with status 1"}, {"long", "a body of more than"},
		}[i%5]
		call := newCall(context.Background(), new(bytes.Buffer))
		call.Host = hostabi.NewHost(hostabi.Host{Logger: call.Host.Logger, Limits: hostabi.Limits{ResponseBytes: 10000}})
		call.Request.Body = []byte(row.body)
		err := m.Run(call, "command")
		want := "GATEWAY_INTERFACE=CGI/1.1\n" + row.body
		switch {
		case row.cause == "" && (err != nil || call.Response.Status != 200 || string(call.Response.Body) != want):
			t.Fatalf("run %d with %q: %v, %d %q", i, row.body, err, call.Response.Status, call.Response.Body)
		case row.cause != "" && (fault.CodeOf(err) != fault.HandlerFailed || !strings.Contains(fault.Of(err).Cause.Error(), row.cause)):
			t.Fatalf("run %d with %q: %v, %v", i, row.body, err, fault.Of(err))
		}
		if idle, err := m.Restored(); err != nil || idle != 1 {
			t.Fatalf("after run %d: %d sandboxes, %v", i, idle, err)
		}
	}
}
