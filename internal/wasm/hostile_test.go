package wasm_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/wasm"
)

// num is an unsigned LEB128 number.
func num(n uint64) []byte { return binary.AppendUvarint(nil, n) }

// section is a section with its content, which is joined.
func section(id byte, content ...[]byte) []byte {
	all := slices.Concat(content...)
	return slices.Concat([]byte{id}, num(uint64(len(all))), all)
}

func module(sections ...[]byte) []byte {
	return append([]byte("\x00asm\x01\x00\x00\x00"), slices.Concat(sections...)...)
}

// text is a byte string behind its length.
func text(s string) []byte { return append(num(uint64(len(s))), s...) }

// code is a module of one function () -> () with a memory, a table and a global.
func code(instructions ...byte) []byte {
	return withBody(append(append([]byte{0}, instructions...), 0x0b))
}

func withBody(body []byte) []byte {
	return module(
		section(1, []byte{2, 0x60, 0, 0, 0x60, 1, 0x7f, 1, 0x7f}),
		section(3, []byte{1, 0}),
		section(4, []byte{1, 0x70, 0, 4}),
		section(5, []byte{1, 0, 1}),
		section(6, []byte{1, 0x7f, 1, 0x41, 0, 0x0b}),
		section(9, []byte{1, 1, 0, 1, 0}),
		section(12, []byte{1}),
		section(10, []byte{1}, num(uint64(len(body))), body),
		section(11, []byte{1, 1, 0}),
	)
}

// many is n times the same.
func many(n int, b ...byte) []byte { return bytes.Repeat(b, n) }

// TestHostileModules wants every module refused with a line that says why, at
// no more memory than its size allows.
func TestHostileModules(t *testing.T) {
	if _, err := wasm.Parse(code(0x01), wasm.DefaultLimits()); err != nil {
		t.Fatal("the module that most rows are made of is refused itself: ", err)
	}
	small := wasm.DefaultLimits()
	small.Types, small.Imports, small.Functions, small.Globals, small.Exports = 10, 10, 10, 10, 10
	small.Elements, small.DataSegments, small.Customs, small.BodyBytes = 10, 10, 10, 100
	withMany := func(what ...byte) []byte { return slices.Concat(num(11), many(11, what...)) }
	aType := section(1, []byte{1, 0x60, 0, 0})
	for _, row := range []struct {
		name   string
		wasm   []byte
		limits wasm.Limits
		want   string
	}{
		{"nothing", nil, wasm.DefaultLimits(), "is empty"},
		{"text", []byte("(module (memory 1))"), wasm.DefaultLimits(), "is not a WebAssembly module"},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), wasm.DefaultLimits(), "is a WebAssembly component"},
		{"later version", []byte("\x00asm\x02\x00\x00\x00"), wasm.DefaultLimits(), "version 2"},
		{"large file", module(section(0, text("x"), make([]byte, 65<<20))), wasm.DefaultLimits(), "strip debug information"},

		{"section past the end", module([]byte{1, 5, 0}), wasm.DefaultLimits(), "the type section at byte 0x8 ends outside the file"},
		{"section of 4 GiB", module([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f}), wasm.DefaultLimits(), "ends outside the file"},
		{"section size of 33 bits", module([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x1f}), wasm.DefaultLimits(), "has no size"},
		{"section size of 6 bytes", module([]byte{1, 0x80, 0x80, 0x80, 0x80, 0x80, 0}), wasm.DefaultLimits(), "has no size"},
		{"unknown section", module(section(15)), wasm.DefaultLimits(), "unknown kind (15)"},
		{"strings section", module(section(14)), wasm.DefaultLimits(), "uses references to strings (stringref)"},
		{"tag section", module(section(13)), wasm.DefaultLimits(), "uses exception handling"},
		{"sections out of order", module(section(3, []byte{0}), section(1, []byte{0})), wasm.DefaultLimits(), "twice or out of order"},
		{"section twice", module(section(1, []byte{0}), section(1, []byte{0})), wasm.DefaultLimits(), "twice or out of order"},
		{"data count after code", module(section(10, []byte{0}), section(12, []byte{0})), wasm.DefaultLimits(), "out of order"},
		{"left over", module(section(1, []byte{0, 7})), wasm.DefaultLimits(), "1 bytes are left over"},
		{"too short", module(section(1, []byte{1, 0x60, 0})), wasm.DefaultLimits(), "cannot hold"},

		{"types past the limit", module(section(1, withMany(0x60, 0, 0))), small, "has 11 types, and may have 10"},
		{"types that are not there", module(section(1, num(1<<32-1))), wasm.DefaultLimits(), "types, and may have"},
		{"types that lie", module(section(1, num(9_999), many(100, 0x60, 0, 0))), wasm.DefaultLimits(), "9999 types are announced"},
		{"parameters past the limit", module(section(1, []byte{1, 0x60}, num(1001), many(1001, 0x7f), []byte{0})), wasm.DefaultLimits(), "1001 parameters or results"},
		{"imports past the limit", module(aType, section(2, withMany(0, 0, 0, 0))), small, "has 11 imports"},
		{"imports that lie", module(aType, section(2, num(1_000), many(10, 0, 0, 0, 0))), wasm.DefaultLimits(), "imports are announced"},
		{"functions past the limit", module(aType, section(3, withMany(0))), small, "has 11 functions"},
		{"functions that lie", module(aType, section(3, num(50_000), []byte{0})), wasm.DefaultLimits(), "functions are announced"},
		{"functions without code", module(aType, section(3, []byte{1, 0})), wasm.DefaultLimits(), "has no code"},
		{"code without functions", module(aType, section(10, []byte{1, 2, 0, 0x0b})), wasm.DefaultLimits(), "code for 1 functions, of which 0 are declared"},
		{"globals past the limit", module(section(6, withMany(0x7f, 0, 0x41, 0, 0x0b))), small, "has 11 globals"},
		{"tables past the limit", module(section(4, num(9), many(9, 0x70, 0, 1))), wasm.DefaultLimits(), "has 9 tables"},
		{"elements past the limit", module(section(4, []byte{1, 0x70, 0}, num(70_000))), wasm.DefaultLimits(), "tables of 70000 elements"},
		{"exports past the limit", module(section(5, []byte{1, 0, 1}), section(7, withMany(1, 'a', 2, 0))), small, "has 11 exports"},
		{"element segments past the limit", module(section(9, withMany(1, 0, 0))), small, "has 11 element segments"},
		{"elements in segments past the limit", module(section(9, []byte{2}, many(2, 5, 0x70, 6, 0xd0, 0x70, 0x0b, 0xd0, 0x70, 0x0b, 0xd0, 0x70, 0x0b, 0xd0, 0x70, 0x0b, 0xd0, 0x70, 0x0b, 0xd0, 0x70, 0x0b))), small, "more than 10 elements"},
		{"data segments past the limit", module(section(11, withMany(1, 0))), small, "has 11 data segments"},
		{"data count that lies", module(section(12, num(5)), section(11, []byte{0})), wasm.DefaultLimits(), "declares 5 data segments and has 0"},
		{"data count past the limit", module(section(12, num(1<<31))), wasm.DefaultLimits(), "data segments, and may have"},
		{"data that lies", module(section(5, []byte{1, 0, 1}), section(11, []byte{1, 0, 0x41, 0, 0x0b}, num(1<<31))), wasm.DefaultLimits(), "bytes are announced"},
		{"customs past the limit", module(many(11, section(0, text("a"))...)), small, "more than 10 custom sections"},
		{"custom without a name", module(section(0)), wasm.DefaultLimits(), "custom section"},
		{"custom whose name lies", module(section(0, num(100), []byte("abc"))), wasm.DefaultLimits(), "100 bytes are announced"},
		{"custom section whose name is not text", module(section(0, text("\xff\xfe"))), wasm.DefaultLimits(), "not UTF-8"},
		{"two name sections", module(section(0, text("name")), section(0, text("name"))), wasm.DefaultLimits(), "twice"},

		{"body past the limit", code(many(1<<20, 1)...), wasm.DefaultLimits(), "has a function of 1024 KiB (number 0)"},
		{"body past the section", module(aType, section(3, []byte{1, 0}), section(10, []byte{1, 99, 0, 0x0b})), wasm.DefaultLimits(), "ends outside the section"},
		{"body without an end", withBody([]byte{0, 1}), wasm.DefaultLimits(), "ends too early"},
		{"body with two ends", withBody([]byte{0, 0x0b, 0x0b}), wasm.DefaultLimits(), "1 bytes left over"},
		{"locals past the limit", withBody(slices.Concat([]byte{1}, num(10_001), []byte{0x7f, 0x0b})), wasm.DefaultLimits(), "more than 10000 locals"},
		{"locals that overflow", withBody([]byte{2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0x0b}), wasm.DefaultLimits(), "more than 10000 locals"},
		{"groups of locals that lie", withBody([]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0x0b}), wasm.DefaultLimits(), "groups of locals"},
		{"locals of all functions", module(aType, section(3, num(1000), many(1000, 0)),
			section(10, num(1000), many(1000, 6, 1, 0x90, 0x4e, 0x7f, 0x01, 0x0b))), wasm.DefaultLimits(), "more than 2000000 locals in all"},
		{"blocks in blocks", code(slices.Concat(many(100_000, 0x02, 0x40), many(100_000, 0x0b))...), wasm.DefaultLimits(), "nested more than 10000 deep"},
		{"large br_table", code(slices.Concat([]byte{0x41, 0, 0x0e}, num(1<<31), many(1000, 0))...), wasm.DefaultLimits(), "targets in one br_table"},
		{"blocks of many values", module(section(1, []byte{2, 0x60, 0, 0, 0x60, 0}, num(1000), many(1000, 0x7f)), section(3, []byte{1, 0}),
			section(10, []byte{1}, num(3*2000+2*1+1), []byte{0}, many(2000, 0x02, 1, 0x00), []byte{0x0b, 0x0b})), wasm.DefaultLimits(), "pass more than"},

		{"branches without end", code(many(100_000, 0x41, 0, 0x04, 0x40, 0x0b)...), wasm.DefaultLimits(), "would take more than 2m0s to compile (function 0 alone 3m20s)"},
		{"loops without end", code(many(100_000, 0x03, 0x40, 0x0b)...), wasm.DefaultLimits(), "to compile (function 0 alone"},
		{"locals at many branches", withBody(slices.Concat([]byte{1}, num(9_999), []byte{0x7f}, many(2_000, 0x41, 0, 0x04, 0x40, 0x0b), []byte{0x0b})), wasm.DefaultLimits(), "to compile (function 0 alone"},

		{"imported memory", module(section(2, []byte{1}, text("env"), text("memory"), []byte{2, 0, 1})), wasm.DefaultLimits(), "imports its memory (\"env.memory\"): build it so that it has and exports its own"},
		{"imported table", module(section(2, []byte{1}, text("env"), text("t"), []byte{1, 0x70, 0, 1})), wasm.DefaultLimits(), "\"env.t\", which is not a function"},
		{"imported global", module(section(2, []byte{1}, text("env"), text("g"), []byte{3, 0x7f, 1})), wasm.DefaultLimits(), "\"env.g\", which is not a function"},
		{"shared memory", module(section(5, []byte{1, 3, 1, 2})), wasm.DefaultLimits(), "shared memory: build it without threads"},
		{"64-bit memory", module(section(5, []byte{1, 4, 1})), wasm.DefaultLimits(), "64-bit memory: build it for wasm32"},
		{"paged memory", module(section(5, []byte{1, 8, 1, 0})), wasm.DefaultLimits(), "custom page sizes"},
		{"two memories", module(section(5, []byte{2, 0, 1, 0, 1})), wasm.DefaultLimits(), "has 2 memories"},
		{"memory past 4 GiB", module(section(5, []byte{1, 0}, num(65_537))), wasm.DefaultLimits(), "more than 65536 pages"},
		{"memory upside down", module(section(5, []byte{1, 1, 2, 1})), wasm.DefaultLimits(), "at least 2 and at most 1"},

		{"second memory used", code(0x41, 0, 0x28, 0x42, 1, 0, 0x1a), wasm.DefaultLimits(), "uses several memories"},
		{"tail call of an unknown function", code(0x12, 9), wasm.DefaultLimits(), "function 9 is named, and there are 1"},
		{"tail call of an unknown type", code(0x41, 0, 0x13, 9, 0), wasm.DefaultLimits(), "type 9 is named, and there are 2"},
		{"tail call through an unknown table", code(0x41, 0, 0x13, 0, 9), wasm.DefaultLimits(), "table 9 of 1"},
		{"exceptions", code(0x06, 0x40, 0x0b), wasm.DefaultLimits(), "uses exception handling"},
		{"throw_ref", code(0x0a), wasm.DefaultLimits(), "uses exception handling"},
		{"rethrow", code(0x09, 0), wasm.DefaultLimits(), "uses exception handling, which cannot be run: build it without WebAssembly exceptions (-fno-exceptions"},
		{"try_table", code(0x1f, 0x40, 0, 0x0b), wasm.DefaultLimits(), "uses exception handling"},
		{"exception reference", module(section(1, []byte{1, 0x60, 1, 0x69, 0})), wasm.DefaultLimits(), "uses exception handling"},
		{"unaligned atomic", code(0x41, 0, 0xfe, 0x10, 1, 0, 0x1a), wasm.DefaultLimits(), "an atomic access with an alignment of 2^1 instead of 2^2"},
		{"atomic of a second memory", code(0x41, 0, 0xfe, 0x10, 0x42, 1, 0, 0x1a), wasm.DefaultLimits(), "uses several memories"},
		{"atomic without a memory", module(aType, section(3, []byte{1, 0}), section(10, []byte{1, 9, 0, 0x41, 0, 0xfe, 0x10, 2, 0, 0x1a, 0x0b})), wasm.DefaultLimits(), "a memory that is not there"},
		{"unknown atomic", code(0xfe, 0x04), wasm.DefaultLimits(), "unknown instruction (0xfe 0x4)"},
		{"atomic in a long form", code(0xfe, 0x90, 0x00, 2, 0), wasm.DefaultLimits(), "unknown instruction (0xfe 0x90)"},
		{"fence of another order", code(0xfe, 0x03, 1), wasm.DefaultLimits(), "a fence of an unknown order"},
		{"atomic of a struct", code(0xfe, 0x5c, 0, 0, 0), wasm.DefaultLimits(), "uses shared-everything threads"},
		{"shared type", module(section(1, []byte{1, 0x65, 0x60, 0, 0})), wasm.DefaultLimits(), "uses shared-everything threads"},
		{"continuation type", module(section(1, []byte{1, 0x5d, 0, 0})), wasm.DefaultLimits(), "uses stack switching"},
		{"suspend", code(0xe2, 0), wasm.DefaultLimits(), "uses stack switching"},
		{"garbage collection", code(0xfb, 0, 0), wasm.DefaultLimits(), "uses garbage-collected types"},
		{"struct type", module(section(1, []byte{1, 0x5f, 0, 0})), wasm.DefaultLimits(), "uses garbage-collected types"},
		{"call_ref", code(0x14, 0), wasm.DefaultLimits(), "uses typed function references"},
		{"relaxed vectors", code(0xfd, 0x80, 0x02), wasm.DefaultLimits(), "uses relaxed SIMD"},
		{"half-precision vectors", code(0xfd, 0xa0, 0x02), wasm.DefaultLimits(), "uses half-precision floats, which cannot be run: build it with -mno-fp16"},
		{"half-precision load", code(0xfc, 0x30, 1, 0), wasm.DefaultLimits(), "uses half-precision floats"},
		{"wide arithmetic", code(0xfc, 19), wasm.DefaultLimits(), "uses wide arithmetic"},
		{"constant of a value too few", module(section(6, []byte{1, 0x7f, 0, 0x41, 1, 0x6a, 0x0b})), wasm.DefaultLimits(), "an initial value without an operand"},
		{"constant of a value too many", module(section(6, []byte{1, 0x7f, 0, 0x41, 1, 0x41, 1, 0x0b})), wasm.DefaultLimits(), "an initial value of 2 values"},
		{"constant of two types", module(section(6, []byte{1, 0x7f, 0, 0x41, 1, 0x42, 1, 0x6a, 0x0b})), wasm.DefaultLimits(), "computed from i32 and i64"},
		{"constant of a quotient", module(section(6, []byte{1, 0x7f, 0, 0x41, 1, 0x41, 1, 0x6d, 0x0b})), wasm.DefaultLimits(), "not a constant (0x6d)"},
		{"constant of a global", module(section(6, []byte{2, 0x7f, 0, 0x41, 1, 0x0b, 0x7f, 0, 0x41, 1, 0x23, 0, 0x6a, 0x0b})), wasm.DefaultLimits(), "with global 0, which it does not import"},
		{"data of a second memory", module(section(5, []byte{1, 0, 1}), section(11, []byte{1, 2, 1, 0x41, 0, 0x0b, 0})), wasm.DefaultLimits(), "uses several memories"},
		{"unknown instruction", code(0xff), wasm.DefaultLimits(), "unknown instruction (0xff)"},
		{"vector instruction in a long form", code(0xfd, 0x8c, 0x00), wasm.DefaultLimits(), "unknown instruction"},
		{"vector instruction in a longer form", code(0xfd, 0x8c, 0x81, 0x00), wasm.DefaultLimits(), "unknown instruction"},
		{"unused vector instruction", code(0xfd, 0x9a, 0x01), wasm.DefaultLimits(), "unknown instruction"},
		{"misc instruction in a long form", code(0xfc, 0x8b, 0x00, 0), wasm.DefaultLimits(), "unknown instruction"},
		{"block type in a long form", code(0x02, 0xc0, 0x7f, 0x0b), wasm.DefaultLimits(), "a block of type -64"},

		{"unknown type", module(aType, section(3, []byte{1, 7})), wasm.DefaultLimits(), "type 7 is named, and there are 1"},
		{"unknown function", code(0x10, 1), wasm.DefaultLimits(), "function 1 is named, and there are 1"},
		{"unknown local", code(0x20, 0, 0x1a), wasm.DefaultLimits(), "local 0 of 0"},
		{"unknown global", code(0x23, 1, 0x1a), wasm.DefaultLimits(), "global 1 of 1"},
		{"unknown global in a far index", code(0x23, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x1a), wasm.DefaultLimits(), "global 4294967295 of 1"},
		{"unknown label", code(0x0c, 1), wasm.DefaultLimits(), "a branch out of 2 blocks, of 1"},
		{"unknown block type", code(0x02, 5, 0x0b), wasm.DefaultLimits(), "a block of type 5"},
		{"unknown table", code(0x41, 0, 0x25, 1, 0x1a), wasm.DefaultLimits(), "table 1 of 1"},
		{"unknown element segment", code(0xfc, 13, 1), wasm.DefaultLimits(), "element segment 1 of 1"},
		{"unknown data segment", code(0xfc, 9, 1), wasm.DefaultLimits(), "data segment 1 of 1"},
		{"unknown export", module(section(7, []byte{1, 1, 'a', 3, 0})), wasm.DefaultLimits(), `export "a" is number 0 of 0`},
		{"export twice", module(section(5, []byte{1, 0, 1}), section(7, []byte{2, 1, 'a', 2, 0, 1, 'a', 2, 0})), wasm.DefaultLimits(), `"a" is exported twice`},
		{"unknown start", module(section(8, []byte{0})), wasm.DefaultLimits(), "function 0 is named"},
		{"global of a later one", module(section(6, []byte{1, 0x7f, 0, 0x23, 0, 0x0b})), wasm.DefaultLimits(), "not there yet"},
		{"data whose place can change", module(section(5, []byte{1, 0, 1}), section(6, []byte{1, 0x7f, 1, 0x41, 0, 0x0b}), section(11, []byte{1, 0, 0x23, 0, 0x0b, 0})),
			wasm.DefaultLimits(), "that of global 0, which can change"},
		{"large i32", code(0x41, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x1a), wasm.DefaultLimits(), "more bits than it may"},
		{"long i64", code(append([]byte{0x42}, many(11, 0x80)...)...), wasm.DefaultLimits(), "more bits than it may"},
		{"no memory", module(aType, section(3, []byte{1, 0}), section(10, []byte{1, 8, 0, 0x41, 0, 0x28, 2, 0, 0x1a, 0x0b})), wasm.DefaultLimits(), "a memory that is not there"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := wasm.Parse(row.wasm, row.limits)
			runtime.ReadMemStats(&after)
			switch {
			case err == nil:
				t.Fatal("was accepted")
			case !strings.Contains(err.Error(), row.want):
				t.Errorf("refused with %q, want %q in it", err, row.want)
			case strings.Contains(err.Error(), "\n"):
				t.Errorf("refused with more than one line: %q", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > uint64(16*len(row.wasm)+256<<10) {
				t.Errorf("took %d bytes for a module of %d", took, len(row.wasm))
			}
		})
	}
}

func TestModuleCutAnywhereIsRefused(t *testing.T) {
	whole := generate(1)
	ends := map[int]bool{8: true} // where a section ends, what is before may be a module
	for pos := 8; pos < len(whole); {
		size, n := binary.Uvarint(whole[pos+1:])
		pos += 1 + n + int(size)
		ends[pos] = true
	}
	for n := range whole {
		if _, err := wasm.Parse(whole[:n:n], wasm.DefaultLimits()); err == nil && !ends[n] {
			t.Errorf("the first %d of %d bytes were accepted", n, len(whole))
		}
	}
}

func TestAccessToAddedFunctionsAndGlobalsIsRefused(t *testing.T) {
	// The module's one global is number 0; fuel would be number 1, depth 2.
	for index := byte(1); index < 4; index++ {
		for _, body := range [][]byte{{0x41, 0, 0x24, index}, {0x23, index, 0x1a}} {
			if _, err := wasm.Parse(code(body...), wasm.DefaultLimits()); err == nil {
				t.Errorf("code that names global %d was accepted", index)
			}
		}
	}
	m, err := wasm.Parse(module(section(6, []byte{1, 0x7f, 1, 0x41, 0, 0x0b}), section(7, []byte{1}, text("\x00g0"), []byte{3, 0})), wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.Rewrite(everything); err == nil || !strings.Contains(err.Error(), "are the host's") {
		t.Errorf("a module that exports the host's names: error %v", err)
	}
}
