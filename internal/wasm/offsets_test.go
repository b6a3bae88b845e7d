package wasm_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/internal/wasm"
)

// withLines adds DWARF that says that all code is one line, so that wazero shows the offset of
// each call in traces. It replaces other debug information.
func withLines(module []byte) []byte {
	u32 := func(b []byte, n uint32) []byte { return binary.LittleEndian.AppendUint32(b, n) }
	sized := func(b []byte) []byte { return append(u32(nil, uint32(len(b))), b...) }
	const last = 1 << 30
	abbrev := []byte{
		1, 0x11, 0, // a unit without children
		0x10, 0x17, // stmt_list: offset
		0x11, 0x01, // low_pc: address
		0x12, 0x06, // high_pc: four bytes
		0, 0, 0,
	}
	info := []byte{4, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0}
	info = sized(u32(u32(info, 1), last))
	header := []byte{1, 1, 1, 0xff, 4, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1} // up to the lengths of opcodes
	header = append(header, 0)                                        // no directories
	header = append(header, "a.c\x00\x00\x00\x00\x00"...)
	program := u32([]byte{0, 5, 2}, 1) // address 1
	program = append(program, 1)       // a row
	program = append(u32(append(program, 0, 5, 2), last), 0, 1, 1)
	line := sized(append(append(u32([]byte{4, 0}, uint32(len(header))), header...), program...))
	for _, s := range []struct {
		name    string
		content []byte
	}{{".debug_abbrev", abbrev}, {".debug_info", info}, {".debug_line", line}} {
		module = slices.Concat(module, section(0, text(s.name), s.content))
	}
	return module
}

var shownOffset = regexp.MustCompile(`(?m)^\t\t0x([0-9a-f]+): a\.c:1`)

// tracedOffsets are the offsets of the active calls in an error of wazero, innermost first.
func tracedOffsets(err error) (all []uint32) {
	for _, m := range shownOffset.FindAllStringSubmatch(err.Error(), -1) {
		n, _ := strconv.ParseUint(m[1], 16, 32)
		all = append(all, uint32(n))
	}
	return all
}

// traps calls every export of a generated module, and returns the offsets of each trap.
func traps(t *testing.T, h *host, seed uint64, module []byte, done *wasm.Rewritten) (all []string) {
	ctx := context.Background()
	m, err := h.InstantiateWithConfig(ctx, withLines(module), wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(ctx)
	see := func(name string, err error) {
		if err == nil {
			return
		}
		offsets := tracedOffsets(err)
		full := len(offsets) == 30
		if done.Offsets != nil {
			original := offsets[:0]
			for _, o := range offsets {
				if from, ok := done.Offsets.Original(o); ok {
					original = append(original, from)
				}
			}
			offsets = original
		}
		if full { // functions that were added may hide others
			offsets = offsets[:20]
		}
		if seed%2 == 0 { // tail calls, of which some become ordinary ones, have removed the others or not
			offsets = offsets[:min(1, len(offsets))]
		}
		all = append(all, fmt.Sprintf("%s: %s %x", name, trap(err), offsets))
	}
	for _, d := range done.Data {
		m.Memory().Write(d.Offset, d.Bytes)
	}
	random := rand.New(rand.NewPCG(seed, 1))
	for name, definition := range exports(m) {
		args := make([]uint64, len(definition.ParamTypes()))
		for i, p := range definition.ParamTypes() {
			args[i] = random.Uint64() >> random.IntN(64)
			if p == api.ValueTypeI32 || p == api.ValueTypeF32 {
				args[i] &= 1<<32 - 1
			}
		}
		m.ExportedGlobal("budget").(api.MutableGlobal).Set(100)
		_, err := m.ExportedFunction(name).Call(ctx, args...)
		see(name, err)
		if done.Depth != "" {
			m.ExportedGlobal(done.Depth).(api.MutableGlobal).Set(0)
		}
	}
	return all
}

// TestOffsetsOfTrapsAreThoseOfTheOriginal runs generated modules in all forms. Each active call
// of a trap must be where wazero finds it in the original. RUNNER_SOAK=1 runs many more.
func TestOffsetsOfTrapsAreThoseOfTheOriginal(t *testing.T) {
	n := 60
	if os.Getenv("RUNNER_SOAK") != "" {
		n = 5_000
	}
	first := rand.Uint64() >> 16
	t.Logf("seeds %d to %d", first, first+uint64(n)-1)
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	_, err := h.NewHostModuleBuilder("env").NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { stack[0] = uint64(uint32(stack[0])*3 + 1) }),
			[]api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}).Export("host").Instantiate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	compared, nested := 0, 0
	for seed := first; seed < first+uint64(n); seed++ {
		original := generate(seed)
		want := traps(t, h, seed, withoutStart(original), &wasm.Rewritten{})
		for _, trap := range want {
			compared++
			if strings.Count(trap[strings.LastIndex(trap, "["):], " ") > 0 {
				nested++
			}
		}
		for _, o := range forms[1:] {
			form := *o
			form.Offsets = true
			bytes, done := mustRewrite(t, withoutStart(original), form)
			if got := traps(t, h, seed, bytes, done); !slices.Equal(got, want) {
				t.Fatalf("seed %d, %+v:\n%s\nwant\n%s", seed, form, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
	t.Logf("%d traps, %d of them in nested calls", compared, nested)
	if nested < n/10 { // half of the modules have tail calls, of which only the innermost call is compared
		t.Error("too few traps to tell much")
	}
}

// A guest that is ended at a refill of a loop is at the loop's beginning, not at its end.
func TestARefillOfALoopIsAtItsBeginning(t *testing.T) {
	original := watModule(t, `(module (memory (export "memory") 1) (func (export "run") (nop) (loop (nop) (nop) (br 0))))`)
	parsed, err := wasm.Parse(original, wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	want := uint32(bytes.Index(original[parsed.CodeStart():], []byte{3, 0x40})) // loop, without a result
	form := everything
	form.Offsets = true
	rewritten, done := mustRewrite(t, original, form)
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	h.atMost = 2
	_, err = h.call(h.instantiate(t, withLines(rewritten), done), "run")
	if err == nil {
		t.Fatal("the loop ends")
	}
	var at []uint32
	for _, offset := range tracedOffsets(err) {
		if from, ok := done.Offsets.Original(offset); ok {
			at = append(at, from)
		}
	}
	if !slices.Equal(at, []uint32{want}) {
		t.Errorf("it is at %d, want %d: %v", at, want, err)
	}
}

// withoutStart removes the start section, so that every module can be instantiated.
func withoutStart(module []byte) []byte {
	out := slices.Clone(module[:8])
	for pos := 8; pos < len(module); {
		size, n := binary.Uvarint(module[pos+1:])
		end := pos + 1 + n + int(size)
		if module[pos] != 8 {
			out = append(out, module[pos:end]...)
		}
		pos = end
	}
	return out
}
