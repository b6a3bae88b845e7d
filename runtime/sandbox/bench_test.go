package sandbox_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/files"
	"runner.example/runtime/sandbox"
	"runner.example/tests/bench/arms"
)

// buildGo compiles a directory of testdata into a module.
func buildGo(t testing.TB, name string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), name+".wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, "./testdata/"+name)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

const orderJSON = `{"id":"o-17","total":12.5,"tags":["new","paid"]}`

func benchmarkRestore(b *testing.B, wasm []byte, handler string) {
	e := newEngine(b, sandbox.Options{})
	dirty, pristine := loadAs(b, e, "dirty.wasm", wasm), loadAs(b, e, "pristine.wasm", wasm) // each with its own sandbox
	call := newCall(context.Background(), new(bytes.Buffer))
	call.Request.Body = []byte(orderJSON)
	call.Host.Limits.CPU = time.Hour
	arm := func(run func(*hostabi.Call, string) error) func() {
		return func() {
			if err := run(call, handler); err != nil {
				b.Fatal(err)
			}
		}
	}
	arms.Alternate(b, 50, [2]string{"none", "restored"}, [2]func(){arm(dirty.RunWithoutRestore), arm(pristine.Run)})
}

func BenchmarkRestoreSmall(b *testing.B) { benchmarkRestore(b, assemble(b, "small"), "handle") }

func BenchmarkRestoreGo(b *testing.B) { benchmarkRestore(b, buildGo(b, "gohello"), "handle") }

// BenchmarkSteady counts what a request allocates once its sandbox is there.
func BenchmarkSteady(b *testing.B) {
	for _, row := range []struct {
		name string
		wasm []byte
	}{{"small", assemble(b, "small")}, {"go", buildGo(b, "gohello")}} {
		b.Run(row.name, func(b *testing.B) {
			m := load(b, newEngine(b, sandbox.Options{}), row.wasm)
			call := newCall(context.Background(), new(bytes.Buffer))
			call.Request.Body = []byte(orderJSON)
			b.ReportAllocs()
			for b.Loop() {
				if err := m.Run(call, "handle"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkIdle measures the memory of an idle sandbox: after a request, and after a long
// idle time. RUNNER_BENCH_MODULES names more modules, as name=path,…: programs, or with a handler hello. A program
// name=path=directory runs main.py of that directory.
func BenchmarkIdle(b *testing.B) {
	const n = 300
	type row struct {
		name, handler string
		wasm          []byte
		settings      sandbox.Settings
	}
	rows := []row{{name: "small", handler: "handle", wasm: assemble(b, "small")}, {name: "go", handler: "handle", wasm: buildGo(b, "gohello")}}
	for pair := range strings.FieldsFuncSeq(os.Getenv("RUNNER_BENCH_MODULES"), func(c rune) bool { return c == ',' }) {
		name, path, _ := strings.Cut(pair, "=")
		path, dir, script := strings.Cut(path, "=")
		wasm, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		r := row{name: name, handler: "hello", wasm: wasm}
		if script {
			text, err := os.ReadFile(filepath.Join(dir, "main.py"))
			if err != nil {
				b.Fatal(err)
			}
			main := files.File{Path: "main.py", Size: int64(len(text)), Read: func() ([]byte, error) { return text, nil }}
			r.settings.Program = &sandbox.Program{Args: []string{"/app/main.py"}, Files: []files.File{main}, Timeout: time.Minute}
			r.handler = name
		}
		rows = append(rows, r)
	}
	for _, row := range rows {
		b.Run(row.name, func(b *testing.B) {
			m, err := newEngine(b, sandbox.Options{TotalMemoryBytes: 1 << 40}).LoadAs(b.Context(), row.name+".wasm", row.wasm, row.settings)
			if err != nil {
				b.Fatal(err)
			}
			call := newCall(context.Background(), new(bytes.Buffer))
			call.Request.Path = []byte("/hello")
			call.Request.Body = []byte(orderJSON)
			call.Request.Params = []abi.Pair{{Name: []byte("what"), Value: []byte("hello")}}
			handler := cmp.Or(m.Command(), row.handler)
			for b.Loop() {
				before := anonymous(b)
				if err := m.Fill(n, call, handler); err != nil {
					b.Fatal(err)
				}
				used := anonymous(b)
				if err := m.Trim(); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(used-before)/n/1024, "used-KiB")
				b.ReportMetric(float64(anonymous(b)-before)/n/1024, "trimmed-KiB")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// anonymous is the memory of this process that is its own (RssAnon).
func anonymous(b *testing.B) (bytes int64) {
	b.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			if _, err := fmt.Sscanf(rest, "%d kB", &bytes); err != nil {
				b.Fatal(err)
			}
		}
	}
	return bytes << 10
}

// BenchmarkClone makes a sandbox of a module that is loaded, and throws it away.
func BenchmarkClone(b *testing.B) {
	for _, row := range []struct {
		name string
		wasm []byte
	}{{"small", assemble(b, "small")}, {"go", buildGo(b, "gohello")}} {
		b.Run(row.name, func(b *testing.B) {
			m := load(b, newEngine(b, sandbox.Options{}), row.wasm)
			for b.Loop() {
				if err := m.CloneOnce(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
