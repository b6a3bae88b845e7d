package sandbox_test

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"runner.example/tests/harness"
)

// oneFunction returns a module whose handler "hello" has the given code and one local.
func oneFunction(code ...[]byte) string {
	num := func(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }
	section := func(id byte, content ...[]byte) []byte {
		all := slices.Concat(content...)
		return slices.Concat([]byte{id}, num(len(all)), all)
	}
	body := slices.Concat([]byte{1, 1, 0x7f}, slices.Concat(code...), []byte{0x0b})
	return string(slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{1, 0x60, 0, 0}),
		section(3, []byte{1, 0}),
		section(5, []byte{1, 0, 1}),
		section(7, []byte{2, 5}, []byte("hello"), []byte{0, 0, 6}, []byte("memory"), []byte{2, 0}),
		section(10, []byte{1}, num(len(body)), body)))
}

// targets returns a br_table with n targets.
func targets(n int) []byte {
	return slices.Concat([]byte{0x41, 0, 0x0e}, binary.AppendUvarint(nil, uint64(n)), make([]byte, n+1))
}

func TestAModuleThatTakesTooMuchToCompileIsRefused(t *testing.T) {
	divs := []byte(strings.Repeat("\x20\x00\x20\x00\x6d\x21\x00", 100_000))
	for what, row := range map[string]struct{ module, toml, want string }{
		"estimated":  {oneFunction(targets(200_000)), "", "runner: error: build/large.wasm: would take more than 30s to compile (function 0 alone 1m12s)"},
		"seen":       {oneFunction([]byte(strings.Repeat("\x10\x00", 100_000))), "[sandbox]\ncompile_timeout = \"50ms\"\n", "runner: error: build/large.wasm: takes more than 50ms to compile, function 0 most of it"},
		"for memory": {oneFunction(divs), "[sandbox]\ncompile_memory = \"64mb\"\n", "runner: error: build/large.wasm: takes more than 64 MiB to compile, function 0 most of it"},
	} {
		t.Run(what, func(t *testing.T) {
			a := harness.NewApp(t, harness.TinySchema, row.toml, "echo")
			if err := os.Rename(a.Path("build/echo.wasm"), a.Path("echo.wasm")); err != nil {
				t.Fatal(err)
			}
			a.Write("build/large.wasm", row.module)
			for _, args := range [][]string{{"check", "--modules"}, {"serve", "--listen", "127.0.0.1:0"}} {
				if r := a.Run(args...); r.Status != 3 || !strings.HasPrefix(lastLine(r.Stderr), row.want) {
					t.Errorf("%s ends with status %d, want 3 and %q:\n%s", args[0], r.Status, row.want, r.Stderr)
				}
			}
			// The previous release keeps serving.
			if err := os.Rename(a.Path("build/large.wasm"), a.Path("large.wasm")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(a.Path("echo.wasm"), a.Path("build/echo.wasm")); err != nil {
				t.Fatal(err)
			}
			s := a.Serve()
			if err := os.Rename(a.Path("large.wasm"), a.Path("build/large.wasm")); err != nil {
				t.Fatal(err)
			}
			if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			s.WaitUntil("the reload is refused", func() bool { return strings.Contains(s.Stderr.String(), "to compile") })
			if got := s.Do("GET", "/hello", ""); got.Status != 200 {
				t.Errorf("after the reload: %d %s", got.Status, got.Body)
			}
		})
	}
}

// lastLine returns the last line of a text.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// A module that may take long to compile is compiled by another process, by the server and
// by check.
func TestALargeModuleIsCompiledAndServed(t *testing.T) {
	for _, command := range []string{"serve", "check"} {
		a := harness.NewApp(t, harness.TinySchema, "[sandbox]\ncompile_timeout = \"500ms\"\n")
		// The estimate is above the limit; compiling takes a tenth of it.
		a.Write("build/large.wasm", oneFunction([]byte{0x0f}, []byte(strings.Repeat("\x20\x00\x20\x00\x36\x02\x00", 20_000))))
		switch command {
		case "check":
			a.Must("check", "--modules")
		default:
			s := a.Serve()
			if got := s.Do("GET", "/hello", ""); got.Problem(t).Code != "handler_failed" {
				t.Errorf("answers %d %s", got.Status, got.Body)
			}
		}
	}
}
