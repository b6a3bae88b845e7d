//go:build patched

package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"runner.example/runtime/guard"
)

// specCommand is a step of a test of WebAssembly's specification, as wast2json writes it.
type specCommand struct {
	Type     string `json:"type"`
	Line     int    `json:"line"`
	Filename string `json:"filename"`
	Name     string `json:"name"`
	Action   *struct {
		Type   string `json:"type"`
		Module string `json:"module"`
		Field  string `json:"field"`
		Args   []struct {
			Type  string          `json:"type"`
			Value json.RawMessage `json:"value"`
		} `json:"args"`
	} `json:"action"`
}

// specMachine runs the steps of one file.
type specMachine struct {
	wazero.Runtime
	ctx     context.Context
	guarded bool
	last    api.Module
	named   map[string]api.Module
	used    []*memory
}

func newSpecMachine(t *testing.T, guarded bool) *specMachine {
	t.Helper()
	ctx := context.Background()
	m := &specMachine{
		Runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features)),
		ctx:     ctx, guarded: guarded, named: map[string]api.Module{},
	}
	b := m.NewHostModuleBuilder("spectest")
	for name, f := range map[string]any{
		"print": func() {}, "print_i32": func(uint32) {}, "print_i64": func(uint64) {},
		"print_f32": func(float32) {}, "print_f64": func(float64) {},
		"print_i32_f32": func(uint32, float32) {}, "print_f64_f64": func(float64, float64) {},
	} {
		b.NewFunctionBuilder().WithFunc(f).Export(name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	return m
}

// allocate makes a guarded memory.
func (m *specMachine) allocate(least, most uint64) experimental.LinearMemory {
	made := &memory{}
	m.used = append(m.used, made)
	return made.Allocate(least, most)
}

// close closes the runtime, and unmaps the memories.
func (m *specMachine) close(t *testing.T) {
	t.Helper()
	if err := m.Close(m.ctx); err != nil {
		t.Error(err)
	}
	for _, used := range m.used {
		used.Release()
	}
}

// step returns what a step does, as text.
func (m *specMachine) step(t *testing.T, dir string, c *specCommand) string {
	t.Helper()
	switch {
	case c.Filename != "" && (c.Type == "module" || c.Type == "assert_uninstantiable" || c.Type == "assert_unlinkable"):
		module, err := os.ReadFile(filepath.Join(dir, c.Filename))
		if err != nil {
			t.Fatal(err)
		}
		compileCtx, ctx := m.ctx, m.ctx
		if m.guarded {
			compileCtx = guard.Compile(m.ctx)
			ctx = experimental.WithMemoryAllocator(m.ctx, experimental.MemoryAllocatorFunc(m.allocate))
		}
		compiled, err := m.CompileModule(compileCtx, module)
		if err != nil {
			return err.Error()
		}
		instance, err := m.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(""))
		if err != nil {
			return err.Error()
		}
		m.last = instance
		if c.Name != "" {
			m.named[c.Name] = instance
		}
		return ""
	case c.Action != nil && c.Action.Type == "invoke":
		on := m.last
		if c.Action.Module != "" {
			on = m.named[c.Action.Module]
		}
		if on == nil {
			return "no module"
		}
		f := on.ExportedFunction(c.Action.Field)
		if f == nil {
			return "no function"
		}
		var args []uint64
		for _, a := range c.Action.Args {
			var text string
			if json.Unmarshal(a.Value, &text) != nil {
				return "" // a vector
			}
			n, _ := strconv.ParseUint(text, 10, 64) // a NaN is 0
			args = append(args, n)
		}
		results, err := f.Call(m.ctx, args...)
		return fmt.Sprint(results, err)
	}
	return ""
}

// Both kinds of code do the same in all steps of the tests of WebAssembly's specification, which wazero has
// beside its own.
func TestTheSpecificationsTestsDoTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	steps := 0
	for version, least := range map[string]int{"v1": 50, "v2": 50, "tail-call": 2, "threads": 1} {
		dir, err := filepath.Abs("../../bin/modules/wazero/internal/integration_test/spectest/" + version + "/testdata")
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil || len(files) < least {
			t.Fatalf("%s has %d files: %v", dir, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var test struct {
				Commands []specCommand `json:"commands"`
			}
			if err := json.Unmarshal(text, &test); err != nil {
				t.Fatal(err)
			}
			plain, guarded := newSpecMachine(t, false), newSpecMachine(t, true)
			for i := range test.Commands {
				c := &test.Commands[i]
				want, have := plain.step(t, dir, c), guarded.step(t, dir, c)
				if want != have {
					t.Errorf("%s/%s, line %d: guarded %s, compared %s", version, filepath.Base(file), c.Line, have, want)
				}
				steps++
			}
			plain.close(t)
			guarded.close(t)
		}
	}
	t.Logf("%d steps", steps)
	if steps < 30_000 {
		t.Errorf("only %d steps", steps)
	}
}
