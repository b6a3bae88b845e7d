package canon_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/component"
	"runner.example/internal/component/canon"
	"runner.example/internal/component/canon/canontest"
	"runner.example/internal/wasm"
)

func made(t testing.TB, v component.ValueType) *component.ValueType {
	t.Helper()
	typ, err := component.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

func TestValuesComeBackAsTheyWere(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	g := canontest.Generator{T: t, Rand: rand.New(rand.NewPCG(seed, 0))}
	flats, memory := 0, make([]byte, 1<<20)
	var lowered canon.Lowered // keeps nothing of the value before
	for range 3000 {
		typ := g.Type(4)
		v := g.Value(typ)
		h := &canontest.Heap{Memory: memory, Free: uint32(1 + g.IntN(64))}
		if err := lowered.Lower(typ, v); err != nil {
			t.Fatalf("seed %d: %s: %v", seed, typ, err)
		}
		at := h.Place(t, &lowered)
		lifter := canon.Lifter{Memory: memory, Budget: 1 << 20}
		back, err := lifter.Load(typ, at)
		if err != nil || !reflect.DeepEqual(back, v) {
			t.Fatalf("seed %d: %s: %#v came back as %#v, %v", seed, typ, v, back, err)
		}
		reader := canon.Reader{Lifter: canon.Lifter{Memory: memory, Budget: 1 << 20}, Fail: func(err error) { t.Fatal(err) }}
		if !isAt(reader.Place(typ, at), typ, v) || reader.Budget < lifter.Budget {
			t.Fatalf("seed %d: %s: %#v is read as something else, and %d bytes are left of %d", seed, typ, v, reader.Budget, lifter.Budget)
		}
		flat, ok := typ.Flat()
		if !ok {
			continue
		}
		flats++
		f := &component.FuncType{Params: []component.Field{{Name: "a", Type: typ}}}
		core := h.Params(t, f, v)
		if len(flat) == 1 {
			if got := canon.LowerFlat(typ, v); got != core[0] && !(got == 1 && core[0] == 0xabcd) {
				t.Fatalf("seed %d: %s: %#v is passed as %#x, want %#x", seed, typ, v, got, core[0])
			}
		}
		all, err := lifter.Params(f, f.Lowered(false), core)
		if err != nil || !reflect.DeepEqual(all, []any{v}) {
			t.Fatalf("seed %d: %s: %#v came back flat as %#v, %v", seed, typ, v, all, err)
		}
	}
	if flats < 1000 {
		t.Errorf("seed %d: only %d of the values were passed flat", seed, flats)
	}
}

func TestManyParametersAreInMemory(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	g := canontest.Generator{T: t, Rand: rand.New(rand.NewPCG(seed, 1))}
	for range 100 {
		f := &component.FuncType{Params: g.Fields(17, 2, true, false)}
		var values []any
		for _, p := range f.Params {
			values = append(values, g.Value(p.Type))
		}
		h := &canontest.Heap{Memory: make([]byte, 1<<16)}
		core := h.Params(t, f, values...)
		lifter := canon.Lifter{Memory: h.Memory, Budget: 1 << 20}
		back, err := lifter.Params(f, f.Lowered(false), core)
		if err != nil || !reflect.DeepEqual(back, values) {
			t.Fatalf("seed %d: %#v came back as %#v, %v", seed, values, back, err)
		}
	}
}

// What is invalid is refused, and what the canonical ABI permits is not.
func TestTheCanonicalABITraps(t *testing.T) {
	prim := component.Primitive
	list := func(of *component.ValueType) *component.ValueType {
		return made(t, component.ValueType{Kind: component.List, Element: of})
	}
	three := []component.Field{{Name: "a", Type: prim(component.U8)}, {Name: "b"}, {Name: "c"}}
	variant := made(t, component.ValueType{Kind: component.Variant, Fields: three})
	enum := made(t, component.ValueType{Kind: component.Enum, Fields: []component.Field{{Name: "a"}, {Name: "b"}}})
	flags := made(t, component.ValueType{Kind: component.Flags, Fields: []component.Field{{Name: "a"}, {Name: "b"}}})
	option := made(t, component.ValueType{Kind: component.Option, Element: prim(component.U8)})
	memory := make([]byte, 64)
	copy(memory[8:], "a\xffb\x00\x00\x00\x00\x00")
	for _, c := range []struct {
		what string
		typ  *component.ValueType
		core []uint64
		want any // or the error
	}{
		{"a bool of 2", prim(component.Bool), []uint64{2}, true},
		{"a bool whose low bits are 0", prim(component.Bool), []uint64{1 << 32}, false},
		{"a u8 with higher bits", prim(component.U8), []uint64{0x1ff}, uint64(255)},
		{"an s8 with higher bits", prim(component.S8), []uint64{0x180}, int64(-128)},
		{"an s16", prim(component.S16), []uint64{0xffff}, int64(-1)},
		{"an s32", prim(component.S32), []uint64{0xfffffffe}, int64(-2)},
		{"the last char", prim(component.Char), []uint64{0x10ffff}, rune(0x10ffff)},
		{"a char too high", prim(component.Char), []uint64{0x110000}, errors.New("0x110000 is not a char")},
		{"a char of a surrogate", prim(component.Char), []uint64{0xd800}, errors.New("0xd800 is not a char")},
		{"another surrogate", prim(component.Char), []uint64{0xdfff}, errors.New("0xdfff is not a char")},
		{"a char with bit 31", prim(component.Char), []uint64{0x80000041}, errors.New("0x80000041 is not a char")},
		{"flags that are not there", flags, []uint64{0xfffffffe}, uint64(2)},
		{"an enum", enum, []uint64{1}, canon.Case{Index: 1}},
		{"an enum too high", enum, []uint64{2}, errors.New("case 2 of a type that has 2")},
		{"a variant too high", variant, []uint64{3, 0}, errors.New("case 3 of a type that has 3")},
		{"a variant without payload", variant, []uint64{1, 77}, canon.Case{Index: 1}},
		{"an option too high", option, []uint64{2, 0}, errors.New("case 2 of an option")},
		{"a string", prim(component.String), []uint64{8, 1}, "a"},
		{"a string that is not UTF-8", prim(component.String), []uint64{8, 2}, errors.New("a string that is not UTF-8")},
		{"a string at the end", prim(component.String), []uint64{60, 4}, "\x00\x00\x00\x00"},
		{"a string behind the end", prim(component.String), []uint64{60, 5},
			errors.New("string: 5 bytes at 0x3c are outside of memory")},
		{"an empty string at the end", prim(component.String), []uint64{64, 0}, ""},
		{"an empty string behind the end", prim(component.String), []uint64{65, 0},
			errors.New("string: 0 bytes at 0x41 are outside of memory")},
		{"a string that wraps around", prim(component.String), []uint64{0xffffffff, 2},
			errors.New("string: 2 bytes at 0xffffffff are outside of memory")},
		{"a string longer than any", prim(component.String), []uint64{0, 1 << 28},
			errors.New("a string of more than 268435455 bytes")},
		{"a list whose size overflows", list(prim(component.U64)), []uint64{0, 1 << 29},
			errors.New("a list of more than 268435455 bytes")},
		{"a list", list(prim(component.U16)), []uint64{8, 2}, []any{uint64(0xff61), uint64('b')}},
		{"a list that is not aligned", list(prim(component.U16)), []uint64{9, 1},
			errors.New("list: pointer 0x9 is not aligned to 2 bytes")},
		{"an empty list that is not aligned", list(prim(component.U16)), []uint64{9, 0},
			errors.New("list: pointer 0x9 is not aligned to 2 bytes")},
		{"a list beyond the budget", list(prim(component.U8)), []uint64{0, 41}, canon.ErrBudget},
		{"small elements beyond the budget", list(prim(component.Bool)), []uint64{0, 3}, canon.ErrBudget},
		{"a NaN with bits", prim(component.F64), []uint64{0xfff8000000001234}, math.Float64frombits(0x7ff8000000000000)},
	} {
		lifter := canon.Lifter{Memory: memory, Budget: 40}
		got, rest, err := lifter.Flat(c.typ, append(slices.Clone(c.core), 99))
		if want, ok := c.want.(error); ok {
			if err == nil || err.Error() != want.Error() {
				t.Errorf("%s: %#v, %v; want %v", c.what, got, err, want)
			}
			continue
		}
		same := reflect.DeepEqual(got, c.want)
		if f, ok := c.want.(float64); ok && err == nil {
			same = math.Float64bits(f) == math.Float64bits(got.(float64))
		}
		if err != nil || !same || len(rest) != 1 {
			t.Errorf("%s: %#v, %v, %v; want %#v", c.what, got, rest, err, c.want)
		}
	}
}

// isAt compares what a Place can read of a value.
func isAt(p canon.Place, t *component.ValueType, v any) bool {
	switch t.Kind {
	case component.U8, component.U16, component.U32, component.U64:
		return p.Unsigned() == v
	case component.Record, component.Tuple:
		for i, f := range t.Fields {
			if !isAt(p.Field(i), f.Type, v.([]any)[i]) {
				return false
			}
		}
	case component.Variant, component.Enum, component.Option, component.Result:
		c := v.(canon.Case)
		index, payload := p.Case()
		of := t.Cases()[c.Index].Type
		return index == c.Index && (of == nil || isAt(payload, of, c.Value))
	case component.String:
		return string(p.Bytes()) == v
	case component.List, component.Map:
		if b, ok := v.([]byte); ok {
			return bytes.Equal(p.Bytes(), b)
		}
		elements := v.([]any)
		if p.Length() != len(elements) {
			return false
		}
		for i, e := range elements {
			if !isAt(p.Element(i), t.Element, e) {
				return false
			}
		}
	}
	return true
}

// What Load refuses is given to Fail, which does not return.
func TestWhatAReaderReadsIsChecked(t *testing.T) {
	text := component.Primitive(component.String)
	for want, read := range map[string]func(*canon.Reader){
		"pointer 0x2 is not aligned to 4 bytes":         func(r *canon.Reader) { r.Place(text, 2) },
		"8 bytes at 0x20 are outside of memory":         func(r *canon.Reader) { r.Place(text, 32) },
		"string: 9 bytes at 0x18 are outside of memory": func(r *canon.Reader) { r.Place(text, 0).Bytes() },
		"a string that is not UTF-8":                    func(r *canon.Reader) { r.Place(text, 8).Bytes() },
		"the values have too many bytes":                func(r *canon.Reader) { r.Place(text, 16).Length() },
		"case 9 of a type that has 2": func(r *canon.Reader) {
			r.Place(made(t, component.ValueType{Kind: component.Result, Fields: []component.Field{{Name: "ok"}, {Name: "error"}}}), 4).Case()
		},
	} {
		memory := []byte("\x18\x00\x00\x00\x09\x00\x00\x00\x18\x00\x00\x00\x01\x00\x00\x00\x19\x00\x00\x00\x06\x00\x00\x00\xffabcdefg")
		r := &canon.Reader{Lifter: canon.Lifter{Memory: memory, Budget: 5}, Fail: func(err error) { panic(err) }}
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			}()
			read(r)
		}()
	}
}

func TestPointersToValuesAreChecked(t *testing.T) {
	u32 := component.Primitive(component.U32)
	lifter := canon.Lifter{Memory: make([]byte, 8)}
	for at, want := range map[uint32]string{
		4: "<nil>", 5: "pointer 0x5 is not aligned to 4 bytes", 8: "4 bytes at 0x8 are outside of memory",
		0xfffffffc: "4 bytes at 0xfffffffc are outside of memory",
	} {
		if _, err := lifter.Load(u32, at); fmt.Sprint(err) != want {
			t.Errorf("Load at %#x: %v, want %s", at, err, want)
		}
		var lowered canon.Lowered
		if err := lowered.Lower(u32, uint64(7)); err != nil {
			t.Fatal(err)
		}
		if err := lowered.Write(lifter.Memory, at); fmt.Sprint(err) != want {
			t.Errorf("Write at %#x: %v, want %s", at, err, want)
		}
	}
}

// Outer blocks come first, empty lists need none.
func TestBlocksAreAllocatedFromTheOutside(t *testing.T) {
	bytes := made(t, component.ValueType{Kind: component.List, Element: component.Primitive(component.U8)})
	pair := made(t, component.ValueType{Kind: component.Tuple,
		Fields: []component.Field{{Type: component.Primitive(component.String)}, {Type: bytes}}})
	var lowered canon.Lowered
	err := lowered.Lower(made(t, component.ValueType{Kind: component.List, Element: pair}),
		[]any{[]any{"one", []byte("1")}, []any{"", []byte("22")}})
	if err != nil {
		t.Fatal(err)
	}
	h := &canontest.Heap{Memory: make([]byte, 256)}
	var blocks []string
	for size, align, ok := lowered.Next(0); ok; size, align, ok = lowered.Next(0) {
		at := h.Realloc(size, align)
		blocks = append(blocks, fmt.Sprintf("%d/%d", size, align))
		if err := lowered.Write(h.Memory, at); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(blocks, " "); got != "8/4 32/4 3/1 1/1 2/1" || lowered.Size() != 46 {
		t.Errorf("blocks %s of %d bytes", got, lowered.Size())
	}
}

// FuzzLift lifts values of any type from any memory: an error, or a value that is valid.
func FuzzLift(f *testing.F) {
	f.Add(uint64(1), uint32(0), []byte("\x08\x00\x00\x00\x01\x00\x00\x00abcdefgh"))
	f.Fuzz(func(t *testing.T, seed uint64, at uint32, memory []byte) {
		g := canontest.Generator{T: t, Rand: rand.New(rand.NewPCG(seed, 0))}
		typ := g.Type(3)
		lifter := canon.Lifter{Memory: memory, Budget: len(memory)}
		v, err := lifter.Load(typ, at)
		if err == nil {
			if err := new(canon.Lowered).Lower(typ, v); err != nil {
				t.Errorf("%s: %#v is lifted and cannot be lowered: %v", typ, v, err)
			}
		}
		if flat, ok := typ.Flat(); ok {
			core := make([]uint64, len(flat))
			for i := range core {
				core[i] = g.Uint64() >> (8 * g.IntN(8))
				if flat[i] != wasm.I64 && flat[i] != wasm.F64 {
					core[i] = uint64(uint32(core[i]))
				}
			}
			if _, rest, err := lifter.Flat(typ, core); err == nil && len(rest) != 0 {
				t.Errorf("%s: %d of %d core values are left", typ, len(rest), len(core))
			}
		}
	})
}
