package operations_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// slowModule is a module whose handler hello answers with a text. One of its functions takes a while to compile. It is a
// program that waits for requests, or has ordinary handlers.
func slowModule(t *testing.T, a *harness.App, waits bool, answer string) {
	t.Helper()
	handler := `(func (export "hello") (call $answer))`
	if waits {
		handler = `(import "runner" "request_next" (func $next (param i32 i32) (result i32)))
		(data (i32.const 100) "hello")
		(func (export "_start") (loop (drop (call $next (i32.const 100) (i32.const 5))) (call $answer) (br 0)))`
	}
	// Imports come first.
	imports, rest, found := strings.Cut(handler, "\n")
	if !found {
		imports, rest = "", handler
	}
	text := fmt.Sprintf(`(module %s
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(memory (export "memory") 2)
		(data (i32.const 0) %q)
		(func $answer (drop (call $send (i32.const 200) (i32.const 0) (i32.const %d))))
		%s
		(func (param i32 i32) %s))`,
		imports, answer, len(answer), rest, strings.Repeat("(i32.store (local.get 0) (local.get 1))\n", 60_000))
	a.Write("slow.wat", text)
	if err := os.MkdirAll(a.Path("build"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("wat2wasm", a.Path("slow.wat"), "-o", a.Path("build/slow.wasm")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// killCompilers kills the processes that compile modules for a server, and returns how many there were. A server starts
// other processes too: Go tries at the first start whether the kernel has descriptors of processes.
func killCompilers(t *testing.T, s *harness.Server) (killed int) {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		// A thread or a process may have ended.
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", s.Cmd.Process.Pid, task.Name()))
		for _, child := range strings.Fields(string(text)) {
			command, _ := os.ReadFile("/proc/" + child + "/cmdline")
			pid, err := strconv.Atoi(child)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(command), "\x00compile-module\x00") && harness.KillProcess(pid) {
				killed++
			}
		}
	}
	return killed
}

// The process that compiles a module is killed. The module is refused, the previous one serves, and the next attempt
// compiles it.
func TestAKilledCompileProcessRefusesTheModule(t *testing.T) {
	for kind, waits := range map[string]bool{"handlers": false, "a program that waits": true} {
		t.Run(kind, func(t *testing.T) {
			if waits {
				harness.NeedPatches(t)
			}
			a := harness.NewApp(t, harness.TinySchema, "[sandbox]\ncompile_timeout = \"5s\"\n", "echo")
			s := a.Serve()
			before := s.Want(200, nil, "GET", "/hello", "")
			if err := os.Remove(a.Path("build/echo.wasm")); err != nil {
				t.Fatal(err)
			}
			slowModule(t, a, waits, `"compiled"`)
			reloaded := make(chan harness.Result, 1)
			go func() { reloaded <- a.Run("reload") }()
			s.WaitUntil("a compile process", func() bool { return killCompilers(t, s) > 0 })
			if r := <-reloaded; r.Status == 0 || !strings.Contains(r.Stderr, "build/slow.wasm: cannot be compiled: the compiler process failed: signal: killed") {
				t.Errorf("%d %s", r.Status, r.Stderr)
			}
			if got := s.Want(200, nil, "GET", "/hello", ""); got.Body != before.Body {
				t.Errorf("%s, want %s", got.Body, before.Body)
			}
			a.Must("reload")
			if got := s.Want(200, nil, "GET", "/hello", ""); got.Body != `"compiled"` {
				t.Errorf("after another reload: %s", got.Body)
			}
		})
	}
}
