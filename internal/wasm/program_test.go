package wasm_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"runner.example/internal/wasm"
)

// program builds testdata/program as handlers in Go are built.
func program(t testing.TB) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-o", out, "./testdata/program")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if message, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, message)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// trace is all that can be seen of a real module that was run.
type trace struct {
	Results [][]uint64
	Memory  []string
	Traps   []string
}

func (s *trace) see(m api.Module, results []uint64) {
	all, _ := m.Memory().Read(0, m.Memory().Size())
	s.Results = append(s.Results, results)
	s.Memory = append(s.Memory, fmt.Sprintf("%d %x", len(all), sha256.Sum256(all)))
}

// runProgram runs the Go program. Its chance and its clocks are those of a new
// runtime, which are always the same.
func runProgram(t *testing.T, bytes []byte, done *wasm.Rewritten) (seen trace) {
	ctx := context.Background()
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	wasi_snapshot_preview1.MustInstantiate(ctx, h)
	m := h.instantiate(t, bytes, done)
	for _, row := range []struct {
		export string
		args   []uint64
	}{
		{"_initialize", nil}, {"roundTrip", []uint64{20}}, {"digest", []uint64{20}}, {"mixture", []uint64{50}},
		{"recurse", []uint64{3_000}}, {"spawn", []uint64{30}}, {"roundTrip", []uint64{3}},
	} {
		results, err := h.call(m, row.export, row.args...)
		if err != nil {
			t.Fatal(row.export, err)
		}
		seen.see(m, results)
	}
	return seen
}

func TestGoProgramDoesTheSameWhenRewritten(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Go and takes seconds: left out by -short")
	}
	original := program(t)
	want := runProgram(t, original, &wasm.Rewritten{})
	options := everything
	options.MaxStack = 4 << 20 // as the sandbox has it
	bytes, done := mustRewrite(t, original, options)
	if diff := cmp.Diff(want, runProgram(t, bytes, done)); diff != "" {
		t.Errorf("(-original +rewritten)\n%s", diff)
	}
	if reasons := mustParse(t, original).Eligibility(); reasons != nil {
		t.Errorf("a Go program is not eligible: %q", reasons)
	}
}

// runGuest calls every plain export of a guest, with a host that answers every
// import with a number made of its name and arguments.
func runGuest(t *testing.T, original, bytes []byte, done *wasm.Rewritten) (seen trace) {
	ctx := context.Background()
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	compiled, err := h.CompileModule(ctx, original)
	if err != nil {
		t.Fatal(err)
	}
	builder := h.NewHostModuleBuilder("runner")
	for _, f := range compiled.ImportedFunctions() {
		_, name, _ := f.Import()
		builder.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
			sum := fnv.New32()
			for i, t := range f.ParamTypes() {
				if t == api.ValueTypeI32 { // whose upper half is undefined
					stack[i] = uint64(uint32(stack[i]))
				}
			}
			fmt.Fprintln(sum, name, stack[:len(f.ParamTypes())])
			if len(stack) > 0 {
				stack[0] = uint64(sum.Sum32() % 100)
			}
		}), f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	if _, err := builder.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m := h.instantiate(t, bytes, done)
	for _, name := range slices.Sorted(maps.Keys(compiled.ExportedFunctions())) {
		if len(compiled.ExportedFunctions()[name].ParamTypes()) > 0 {
			continue
		}
		results, err := m.ExportedFunction(name).Call(ctx)
		if err != nil {
			seen.Traps = append(seen.Traps, name+": "+trap(err))
		}
		seen.see(m, results)
	}
	return seen
}

func TestGuestsDoTheSameWhenRewritten(t *testing.T) {
	all := guests(t)
	for _, name := range []string{"echo.wat", "small.wat"} { // those that end by themselves
		original := all[name]
		want := runGuest(t, original, original, &wasm.Rewritten{})
		bytes, done := mustRewrite(t, original, everything)
		if diff := cmp.Diff(want, runGuest(t, original, bytes, done)); diff != "" {
			t.Errorf("%s: (-original +rewritten)\n%s", name, diff)
		}
		if len(want.Results) == 0 {
			t.Errorf("%s: nothing was run", name)
		}
	}
}
