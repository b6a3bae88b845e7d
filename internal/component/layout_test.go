package component_test

import (
	"strings"
	"testing"

	"runner.example/internal/component"
	"runner.example/internal/wasm"
)

func made(t *testing.T, v component.ValueType) *component.ValueType {
	t.Helper()
	v2, err := component.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return v2
}

func fields(types ...*component.ValueType) (all []component.Field) {
	for i, v := range types {
		all = append(all, component.Field{Name: string(rune('a' + i)), Type: v})
	}
	return all
}

func labels(n int) (all []component.Field) {
	for i := range n {
		all = append(all, component.Field{Name: "l" + strings.Repeat("a", i%50) + "-" + strings.Repeat("b", 1+i/50)})
	}
	return all
}

func flatText(flat []wasm.ValueType) string {
	var names []string
	for _, f := range flat {
		names = append(names, f.String())
	}
	return strings.Join(names, " ")
}

func TestValuesAreLaidOutAsTheCanonicalABISays(t *testing.T) {
	p := component.Primitive
	u8, u16, u32, u64 := p(component.U8), p(component.U16), p(component.U32), p(component.U64)
	f32, f64, str := p(component.F32), p(component.F64), p(component.String)
	list := func(e *component.ValueType) *component.ValueType {
		return made(t, component.ValueType{Kind: component.List, Element: e})
	}
	tuple := func(types ...*component.ValueType) *component.ValueType {
		f := fields(types...)
		for i := range f {
			f[i].Name = ""
		}
		return made(t, component.ValueType{Kind: component.Tuple, Fields: f})
	}
	variant := func(types ...*component.ValueType) *component.ValueType {
		return made(t, component.ValueType{Kind: component.Variant, Fields: fields(types...)})
	}
	option := func(e *component.ValueType) *component.ValueType {
		return made(t, component.ValueType{Kind: component.Option, Element: e})
	}
	result := func(ok, err *component.ValueType) *component.ValueType {
		return made(t, component.ValueType{Kind: component.Result, Fields: []component.Field{{Name: "ok", Type: ok}, {Name: "error", Type: err}}})
	}
	of := func(k component.Kind, n int) *component.ValueType {
		return made(t, component.ValueType{Kind: k, Fields: labels(n)})
	}
	fixed := func(e *component.ValueType, n uint32) *component.ValueType {
		return made(t, component.ValueType{Kind: component.FixedList, Element: e, Length: n})
	}
	resource := &component.Resource{}
	for _, c := range []struct {
		name        string
		is          *component.ValueType
		size, align uint32
		flat        string
	}{
		{"bool", p(component.Bool), 1, 1, "i32"},
		{"s16", p(component.S16), 2, 2, "i32"},
		{"char", p(component.Char), 4, 4, "i32"},
		{"u64", u64, 8, 8, "i64"},
		{"f32", f32, 4, 4, "f32"},
		{"f64", f64, 8, 8, "f64"},
		{"string", str, 8, 4, "i32 i32"},
		{"error-context", p(component.ErrorContext), 4, 4, "i32"},
		{"list of u64", list(u64), 8, 4, "i32 i32"},
		{"record with gaps", made(t, component.ValueType{Kind: component.Record, Fields: fields(u8, u64, u16)}), 24, 8, "i32 i64 i32"},
		{"tuple at its end", tuple(u32, u8), 8, 4, "i32 i32"},
		{"flags of 8", of(component.Flags, 8), 1, 1, "i32"},
		{"flags of 9", of(component.Flags, 9), 2, 2, "i32"},
		{"flags of 17", of(component.Flags, 17), 4, 4, "i32"},
		{"flags of 32", of(component.Flags, 32), 4, 4, "i32"},
		{"enum of 256", of(component.Enum, 256), 1, 1, "i32"},
		{"enum of 257", of(component.Enum, 257), 2, 2, "i32"},
		{"option of u8", option(u8), 2, 1, "i32 i32"},
		{"option of u64", option(u64), 16, 8, "i32 i64"},
		{"option of option of u32", option(option(u32)), 12, 4, "i32 i32 i32"},
		{"result without payloads", result(nil, nil), 1, 1, "i32"},
		{"result of u8 or string", result(u8, str), 12, 4, "i32 i32 i32"},
		{"variant of i32 and f32", variant(u32, f32), 8, 4, "i32 i32"},
		{"variant of f32 and f32", variant(f32, f32), 8, 4, "i32 f32"},
		{"variant of i32 and i64", variant(u32, u64), 16, 8, "i32 i64"},
		{"variant of f32 and f64", variant(f32, f64), 16, 8, "i32 i64"},
		{"variant of f64 and i64", variant(f64, u64), 16, 8, "i32 i64"},
		{"variant of string and u64", variant(str, u64), 16, 8, "i32 i64 i32"},
		{"fixed list", fixed(u16, 3), 6, 2, "i32 i32 i32"},
		{"own", made(t, component.ValueType{Kind: component.Own, Resource: resource}), 4, 4, "i32"},
		{"stream", made(t, component.ValueType{Kind: component.Stream, Element: str}), 4, 4, "i32"},
		{"16 values", fixed(u32, 16), 64, 4, strings.TrimSpace(strings.Repeat("i32 ", 16))},
	} {
		flat, ok := c.is.Flat()
		if c.is.Size() != c.size || c.is.Align() != c.align || flatText(flat) != c.flat || !ok {
			t.Errorf("%s: size %d, align %d, flat %s (%t); want %d, %d, %s", c.name, c.is.Size(), c.is.Align(), flatText(flat), ok, c.size, c.align, c.flat)
		}
	}
	if _, ok := fixed(u32, 17).Flat(); ok {
		t.Error("17 values are passed flat")
	}
	record := made(t, component.ValueType{Kind: component.Record, Fields: fields(u8, u64, u16)})
	if record.Offset(0) != 0 || record.Offset(1) != 8 || record.Offset(2) != 16 {
		t.Error("offsets of fields:", record.Offset(0), record.Offset(1), record.Offset(2))
	}
	for _, c := range []struct {
		is             *component.ValueType
		discr, payload uint32
	}{{option(u8), 1, 1}, {option(u64), 1, 8}, {of(component.Enum, 257), 2, 2}, {result(nil, str), 1, 4}} {
		if c.is.DiscriminantSize() != c.discr || c.is.PayloadOffset() != c.payload {
			t.Errorf("%s: discriminant %d, payload at %d; want %d, %d", c.is, c.is.DiscriminantSize(), c.is.PayloadOffset(), c.discr, c.payload)
		}
	}
	if made(t, component.ValueType{Kind: component.Stream, Element: str}).HasPointers() || !option(str).HasPointers() {
		t.Error("what has pointers")
	}
}

func TestFunctionsLookToCoreModulesAsTheCanonicalABISays(t *testing.T) {
	p := component.Primitive
	u32, str := p(component.U32), p(component.String)
	n := func(n int) (all []component.Field) {
		for i := range n {
			all = append(all, component.Field{Name: string(rune('a' + i)), Type: u32})
		}
		return all
	}
	i := func(n int) string { return strings.TrimSpace(strings.Repeat("i32 ", n)) }
	shape := func(s component.CoreShape) string {
		text := flatText(s.Params) + " > " + flatText(s.Results)
		if s.ParamsInMemory {
			text += " params"
		}
		if s.ResultInMemory {
			text += " result"
		}
		return text
	}
	for _, c := range []struct {
		name                string
		is                  component.FuncType
		lifted, lowered     string
		callback, stackless string // lifted and lowered as async
	}{
		{"nothing", component.FuncType{}, " > ", " > ", " > i32", " > i32"},
		{"a number", component.FuncType{Params: n(1), Result: u32}, "i32 > i32", "i32 > i32", "i32 > i32", "i32 i32 > i32 result"},
		{"a string", component.FuncType{Params: fields(str), Result: str}, "i32 i32 > i32 result", "i32 i32 i32 >  result", "i32 i32 > i32", "i32 i32 i32 > i32 result"},
		{"five", component.FuncType{Params: n(5)}, i(5) + " > ", i(5) + " > ", i(5) + " > i32", "i32 > i32 params"},
		{"sixteen", component.FuncType{Params: n(16)}, i(16) + " > ", i(16) + " > ", i(16) + " > i32", "i32 > i32 params"},
		{"seventeen", component.FuncType{Params: n(17)}, "i32 >  params", "i32 >  params", "i32 > i32 params", "i32 > i32 params"},
	} {
		for _, got := range []struct{ name, got, want string }{
			{"lifted", shape(c.is.Lifted(false, false)), c.lifted},
			{"lowered", shape(c.is.Lowered(false)), c.lowered},
			{"lifted with callback", shape(c.is.Lifted(true, true)), c.callback},
			{"lowered as async", shape(c.is.Lowered(true)), c.stackless},
		} {
			if got.got != got.want {
				t.Errorf("%s, %s: %q, want %q", c.name, got.name, got.got, got.want)
			}
		}
	}
	if got := shape(component.Returned(str)); got != "i32 i32 > " {
		t.Errorf("task.return: %q", got)
	}
	offsets, size, align := component.ParamsLayout(fields(p(component.U8), p(component.U64)))
	if len(offsets) != 2 || offsets[1] != 8 || size != 16 || align != 8 {
		t.Error("parameters in memory:", offsets, size, align)
	}
}

func TestTypesThatCannotBeAreRefused(t *testing.T) {
	u8 := component.Primitive(component.U8)
	resource := &component.Resource{}
	borrow := made(t, component.ValueType{Kind: component.Borrow, Resource: resource})
	huge := made(t, component.ValueType{Kind: component.FixedList, Element: u8, Length: 1<<28 - 1})
	twice := u8
	for range 15 {
		twice = made(t, component.ValueType{Kind: component.Tuple, Fields: []component.Field{{Type: twice}, {Type: twice}}})
	}
	deep := u8
	for range 99 {
		deep = made(t, component.ValueType{Kind: component.Option, Element: deep})
	}
	for want, v := range map[string]component.ValueType{
		"a record needs at least one part":              {Kind: component.Record},
		"33 flags, and there may be 32":                 {Kind: component.Flags, Fields: labels(33)},
		"10001 parts, and it may have 10000 (maxField":  {Kind: component.Enum, Fields: labels(10_001)},
		`enum: the name "A" is there twice`:             {Kind: component.Enum, Fields: []component.Field{{Name: "a"}, {Name: "A"}}},
		`record: "a_b" is not a name in kebab-case`:     {Kind: component.Record, Fields: []component.Field{{Name: "a_b", Type: u8}}},
		"takes more than 268435455 bytes (maxValueByte": {Kind: component.FixedList, Element: huge, Length: 2},
		"a list of fixed length 0":                      {Kind: component.FixedList, Element: u8},
		"a stream of char":                              {Kind: component.Stream, Element: component.Primitive(component.Char)},
		"a future of borrowed handles":                  {Kind: component.Future, Element: borrow},
		"(maxTypeSize)":                                 {Kind: component.Tuple, Fields: []component.Field{{Type: twice}, {Type: twice}}},
		"nested more than 100 deep (maxTypeDepth)":      {Kind: component.Option, Element: deep},
	} {
		if _, err := component.New(v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
