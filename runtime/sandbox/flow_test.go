package sandbox_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// TestAHandlerOfAsyncFunctionsAnswers runs testdata/component/flow.wasm, a component of WASI 0.3, in one sandbox. Each
// run traps if its memory was used before.
func TestAHandlerOfAsyncFunctionsAnswers(t *testing.T) {
	file, err := os.ReadFile("testdata/component/flow.wasm")
	if err != nil {
		t.Fatal(err)
	}
	m := loadAs(t, newEngine(t, sandbox.Options{Instances: 1, NoBreaker: true}), "build/flow.wasm", file)
	body := strings.Repeat("0123456789", 1000)
	for i := range 100 {
		row := []struct {
			path, want, cause string
			status            int
		}{
			{"/echo", body, "", 200},
			{"/nothing", "", "without a result", 500},
			{"/copy", body, "", 200},
			{"/trap", "", "unreachable", 500},
			{"/wait", "waited", "", 200},
			{"/fail", "", "", 504},
			{"/stuck", "", "waits for something that cannot happen", 500},
		}[i%7]
		ctx, cancel := context.WithTimeout(context.Background(), plenty)
		call := newCall(ctx, new(bytes.Buffer))
		call.Request.Path, call.Request.Body = []byte(row.path), []byte(body)
		begun := time.Now()
		err := m.Run(call, "flow")
		cancel()
		switch {
		case row.cause == "" && (err != nil || call.Response.Status != row.status || string(call.Response.Body) != row.want):
			t.Fatalf("run %d of %s: %v, %d %.100q", i, row.path, err, call.Response.Status, call.Response.Body)
		case row.cause != "" && (fault.CodeOf(err) != fault.HandlerFailed || !strings.Contains(fault.Of(err).Cause.Error(), row.cause)):
			t.Fatalf("run %d of %s: %v, %v", i, row.path, err, fault.Of(err).Cause)
		case row.path == "/wait" && time.Since(begun) < 30*time.Millisecond:
			t.Fatalf("run %d of %s waited only for %s", i, row.path, time.Since(begun))
		}
		if idle, err := m.Restored(); err != nil || idle != 1 {
			t.Fatalf("after run %d: %d sandboxes, %v", i, idle, err)
		}
	}
}
