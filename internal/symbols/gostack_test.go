package symbols_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"runner.example/internal/symbols"
	"runner.example/internal/wasm"
)

// stopped is a module from Go that has called the host.
type stopped struct {
	wasm               []byte
	imports, functions int
	memory             []byte
	at                 symbols.GoStop
}

// gocrash builds a module of handlers that fail.
var gocrash = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "gocrash-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "gocrash.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, "../../runtime/sandbox/testdata/gocrash")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	return os.ReadFile(out)
})

// stopAtOutput runs a handler of runtime/sandbox/testdata/gocrash until it writes to standard output.
func stopAtOutput(t testing.TB, handler string) (s stopped) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the Go compiler")
	}
	var err error
	if s.wasm, err = gocrash(); err != nil {
		t.Fatal(err)
	}
	parsed, err := wasm.Parse(s.wasm, wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	s.imports, s.functions = len(parsed.Imports()), parsed.Functions()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	var m api.Module
	see := writer(func(p []byte) {
		whole, _ := m.Memory().Read(0, m.Memory().Size())
		global := func(i int) uint64 { return m.(experimental.InternalModule).Global(i).Get() }
		s.memory, s.at = bytes.Clone(whole), symbols.GoStop{SP: uint32(global(0)), G: global(2), Function: -1, Block: -1}
	})
	if m, err = r.InstantiateWithConfig(ctx, s.wasm, wazero.NewModuleConfig().WithStartFunctions("_initialize").WithStdout(see)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.ExportedFunction(handler).Call(ctx); err != nil || s.memory == nil {
		t.Fatalf("%s: %v, or it wrote nothing", handler, err)
	}
	return s
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

var _ io.Writer = writer(nil)

// TestTheStackOfAGoroutineIsInMemory walks the stack of a handler that has called the host in a deferred
// function, while it panics.
func TestTheStackOfAGoroutineIsInMemory(t *testing.T) {
	s := stopAtOutput(t, "recovered")
	g := symbols.FindGoTables(s.memory, s.imports, s.functions)
	if g == nil {
		t.Fatal("the tables of Go are not found")
	}
	var own []string
	for _, f := range symbols.GoFrames(g.Stack(s.memory, s.at), s.wasm) {
		if f.Line == 0 || f.File == "" || f.Offset == 0 || strings.HasPrefix(f.Function, "runtime.") {
			t.Errorf("the frame %v is not complete", f)
		}
		if strings.HasPrefix(f.Function, "main.") || f.Function == "panic" {
			own = append(own, f.Function+" in "+f.File)
		}
	}
	const file = " in runtime/sandbox/testdata/gocrash/main.go"
	if got, want := strings.Join(own, ", "), "main.recovered.func1"+file+", panic in runtime/panic.go, main.fail"+file+", main.recovered"+file; got != want {
		t.Errorf("the stack is\n%s, want\n%s", got, want)
	}
	names := g.Names(s.memory)
	for index, name := range names {
		if int(index) < s.imports || int(index) >= s.imports+s.functions || name == "" {
			t.Errorf("function %d is %q", index, name)
		}
	}
	if all := slices.Collect(maps.Values(names)); len(all) < s.functions-5 || !slices.Contains(all, "main.recovered") || !slices.Contains(all, "runtime.gopanic") {
		t.Errorf("%d of %d functions have names", len(all), s.functions)
	}
	if symbols.FindGoTables(s.memory, s.imports, s.functions+1) != nil || symbols.FindGoTables(s.memory[:1<<16], s.imports, s.functions) != nil {
		t.Error("tables are found that are not those of the module")
	}
}

// TestMemoryOfGoIsNotTrusted changes words of the memory that the walk reads, and the place where it
// begins. Whatever they are, it ends with at most 32 frames.
func TestMemoryOfGoIsNotTrusted(t *testing.T) {
	s := stopAtOutput(t, "recovered")
	g := symbols.FindGoTables(s.memory, s.imports, s.functions)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	n := 2000
	if os.Getenv("RUNNER_SOAK") != "" {
		n = 300_000
	}
	different := map[string]bool{}
	memory := bytes.Clone(s.memory)
	var changed []uint64
	for range n {
		for _, place := range changed {
			copy(memory[place:place+8], s.memory[place:])
		}
		changed = changed[:0]
		at := s.at
		for range 1 + r.IntN(3) {
			from := []uint64{uint64(s.at.SP), s.at.G, binary.LittleEndian.Uint64(s.memory[s.at.G+48:]), uint64(len(memory)) / 4}[r.IntN(4)]
			place := (from + 8*uint64(r.IntN(64))) % uint64(len(memory)-8)
			binary.LittleEndian.PutUint64(memory[place:], r.Uint64()>>r.IntN(64))
			changed = append(changed, place)
		}
		switch r.IntN(4) {
		case 0:
			at.SP = r.Uint32() >> r.IntN(32)
		case 1:
			at.G = r.Uint64() >> r.IntN(64)
		case 2:
			at.Function, at.Block = r.IntN(s.imports+s.functions+9)-4, r.IntN(1<<17)-1
		}
		tables := g
		if r.IntN(20) == 0 {
			if tables = symbols.FindGoTables(memory, s.imports, s.functions); tables == nil {
				continue
			}
		}
		frames := symbols.GoFrames(tables.Stack(memory, at), nil)
		if len(frames) > symbols.MaxFrames {
			t.Fatalf("%d frames", len(frames))
		}
		different[fmt.Sprint(frames)] = true
	}
	if len(different) < n/100 {
		t.Errorf("only %d different stacks: the changes are not where the walk reads", len(different))
	}
	for _, size := range []int{0, 1, 100, int(s.at.SP) + 4} {
		_ = g.Stack(s.memory[:size], s.at)
	}
}

// goMemory is memory that looks like that of a Go module with one function, which has called itself
// until the stack was full. Its tables by program counter have an odd number of steps without effect.
func goMemory(steps int, advance byte) []byte {
	const header, data, index, function, names, tree, stack, tables = 0x100, 0x200, 0x400, 0x500, 0x600, 0x700, 0x1000, 0x9000
	memory := make([]byte, tables, tables+2*steps+8)
	words := func(at int, all ...uint64) {
		for i, n := range all {
			binary.LittleEndian.PutUint64(memory[at+8*i:], n)
		}
	}
	copy(memory[header:], "\xf1\xff\xff\xff\x00\x00\x01\x08")
	words(header+8, 1, 0, 0, names-header)
	size := uint64(2*steps + 8)
	words(data, header, names, 0x20, 0x20, 0, 0, 0, 0, 0, 0, tables, size, size, function, 0x100, 0x100, index, 1, 1, 0, 0x1000<<16)
	words(data+8*34, names)
	words(data+8*40, tree)
	copy(memory[names:], "\x00main.f\x00main.g\x00")
	for i, n := range map[int]uint32{1: 1, 4: 1, 5: 1, 6: 1, 7: 3, 10: 4 << 24, 13: 1, 17: 0} {
		binary.LittleEndian.PutUint32(memory[function+4*i:], n)
	}
	binary.LittleEndian.PutUint32(memory[tree+4:], 8)
	for at := stack; at < tables; at += 8 {
		words(at, 0x1000<<16|0xfff0)
	}
	memory = append(memory, 0, 2, 0) // value 0
	for i := range steps {
		memory = append(memory, byte(2-i%2), advance) // 1, 0, 1, …
	}
	return append(memory, 1, 0xff, 0xff, 3, 0)
}

// A guest may keep any tables in its memory, and cannot be stopped while they are read.
func TestTablesOfGoAreReadWithALimit(t *testing.T) {
	for _, row := range []struct {
		steps   int
		advance byte
		whole   bool
	}{{3, 0, true}, {60_001, 1, false}, {1<<21 + 1, 0, false}} {
		memory := goMemory(row.steps, row.advance)
		g := symbols.FindGoTables(memory, 0, 1)
		if g == nil {
			t.Fatal("the tables are not found")
		}
		frames := symbols.GoFrames(g.Stack(memory, symbols.GoStop{SP: 0x1000, Function: -1}), nil)
		if whole := len(frames) == symbols.MaxFrames; whole != row.whole {
			t.Errorf("%d steps: %d frames", row.steps, len(frames))
		}
	}
}
