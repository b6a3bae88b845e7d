package wazerofix_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	_ "runner.example/internal/wazerofix"
)

// selectModule has a function that stores the second operand of a select at 0. A call of the host
// moves the first one to the stack, so it is loaded right before the select. The loop has the
// compiler prefer the register that holds the copy of the second operand then.
const selectModule = `(module
  (import "host" "copy" (func $copy))
  (memory (export "memory") 1)
  (data (i32.const 16) "the right result")
  (func (export "f") (call $f (T.load (i32.const 64)) (T.load (i32.const 64))))
  (func $f (param $w T) (param $x T) (local $zero i32) (local $y T)
    (loop $again
      (block $out
        (br_if $out (local.get $zero))
        (T.store (i32.const 0)
          (if (result T) (local.get $zero)
            (then (OTHER (local.get $w) (local.get $x)))
            (else
              (call $copy)
              (local.set $y (T.load (i32.const 16)))
              (select (result T) (local.get $x) (local.get $y) (local.get $zero)))))
        (T.store (i32.const 32) (local.get $y))
        (return))
      (call $copy)
      (br $again))))`

// TestASelectOfFloatsOrVectorsHasItsSecondOperand also shows what would leak: bytes that the
// host has copied.
func TestASelectOfFloatsOrVectorsHasItsSecondOperand(t *testing.T) {
	ctx := context.Background()
	for typ, other := range map[string]string{"f32": "f32.add", "f64": "f64.add", "v128": "i8x16.add"} {
		module := wat(t, strings.NewReplacer("OTHER", other, "(T.", "("+typ+".", " T)", " "+typ+")").Replace(selectModule))
		for name, config := range map[string]wazero.RuntimeConfig{
			"compiler":    wazero.NewRuntimeConfigCompiler(),
			"interpreter": wazero.NewRuntimeConfigInterpreter(),
		} {
			r := wazero.NewRuntimeWithConfig(ctx, config)
			defer r.Close(ctx)
			secret, copied := bytes.Repeat([]byte("secret.."), 6), make([]byte, 64)
			_, err := r.NewHostModuleBuilder("host").NewFunctionBuilder().
				WithGoFunction(api.GoFunc(func(context.Context, []uint64) { copy(copied, secret) }), nil, nil).Export("copy").Instantiate(ctx)
			if err != nil {
				t.Fatal(err)
			}
			m, err := r.Instantiate(ctx, module)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.ExportedFunction("f").Call(ctx); err != nil {
				t.Fatal(err)
			}
			got, _ := m.Memory().Read(0, 16)
			want, _ := m.Memory().Read(32, 16)
			if !bytes.Equal(got, want) {
				t.Errorf("%s, %s: %q, want %q", typ, name, got, want)
			}
		}
	}
}

// wat makes a module of its text.
func wat(t *testing.T, text string) []byte {
	t.Helper()
	if _, err := exec.LookPath("wat2wasm"); err != nil && testing.Short() {
		t.Skip("wat2wasm is missing: apt-get install wabt")
	}
	out := filepath.Join(t.TempDir(), "module.wasm")
	assemble := exec.Command("wat2wasm", "-", "-o", out)
	assemble.Stdin = strings.NewReader(text)
	if said, err := assemble.CombinedOutput(); err != nil {
		t.Fatalf("wat2wasm (tools/setup.sh installs it): %v\n%s", err, said)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return module
}
