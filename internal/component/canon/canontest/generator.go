package canontest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"runner.example/internal/component"
	"runner.example/internal/component/canon"
)

// Generator makes types and values of them.
type Generator struct {
	T testing.TB
	*rand.Rand
	// NoHandles leaves out handles.
	NoHandles bool
}

// Fields makes fields of a record or parameters, or cases of a variant.
func (g Generator) Fields(n, depth int, named, optional bool) (all []component.Field) {
	for i := range n {
		f := component.Field{}
		if named {
			f.Name = fmt.Sprintf("f%d", i)
		}
		if !optional || g.IntN(3) > 0 {
			f.Type = g.Type(depth)
		}
		all = append(all, f)
	}
	return all
}

// Type makes a type whose parts are nested at most so deep.
func (g Generator) Type(depth int) *component.ValueType {
	kinds := []component.Kind{component.List, component.Record, component.Tuple, component.Variant, component.Option,
		component.Result, component.FixedList, component.Map, component.Flags, component.Enum, component.Own, component.Borrow}
	if g.NoHandles {
		kinds = kinds[:len(kinds)-2]
	}
	if depth == 0 || g.IntN(3) == 0 {
		return component.Primitive(component.Kind(g.IntN(int(component.ErrorContext))))
	}
	v := component.ValueType{Kind: kinds[g.IntN(len(kinds))]}
	switch v.Kind {
	case component.List, component.Option:
		v.Element = g.Type(depth - 1)
	case component.FixedList:
		v.Element, v.Length = g.Type(depth-1), 1+uint32(g.IntN(4))
	case component.Map:
		pair := []component.Field{{Type: component.Primitive(component.String)}, {Type: g.Type(depth - 1)}}
		v.Element = g.made(component.ValueType{Kind: component.Tuple, Fields: pair})
	case component.Record, component.Tuple:
		v.Fields = g.Fields(1+g.IntN(5), depth-1, v.Kind == component.Record, false)
	case component.Variant:
		v.Fields = g.Fields(1+g.IntN(5), depth-1, true, true)
	case component.Result:
		v.Fields = g.Fields(2, depth-1, true, true)
		v.Fields[0].Name, v.Fields[1].Name = "ok", "error"
	case component.Flags, component.Enum:
		n := []int{1 + g.IntN(8), 1 + g.IntN(32), 9 + g.IntN(8)}[g.IntN(3)]
		if v.Kind == component.Enum && g.IntN(4) == 0 {
			n = 257
		}
		for i := range n {
			v.Fields = append(v.Fields, component.Field{Name: fmt.Sprintf("c%d", i)})
		}
	case component.Own, component.Borrow:
		v.Resource = &component.Resource{}
	}
	return g.made(v)
}

// Value makes a value of a type.
func (g Generator) Value(t *component.ValueType) any {
	switch t.Kind {
	case component.Bool:
		return g.IntN(2) == 1
	case component.U8, component.U16, component.U32, component.U64:
		return g.Uint64() >> (64 - 8*t.Size())
	case component.S8, component.S16, component.S32, component.S64:
		return int64(g.Uint64()) >> (64 - 8*t.Size())
	case component.F32:
		return float64(float32(g.NormFloat64()))
	case component.F64:
		return []float64{g.NormFloat64(), math.Inf(-1), math.Copysign(0, -1)}[g.IntN(3)]
	case component.Char:
		return []rune{'a', 0, 0xd7ff, 0xe000, 0x10ffff}[g.IntN(5)]
	case component.String:
		return strings.Repeat("ö", g.IntN(4))
	case component.Record, component.Tuple:
		var all []any
		for _, f := range t.Fields {
			all = append(all, g.Value(f.Type))
		}
		return all
	case component.Variant, component.Enum, component.Option, component.Result:
		c := canon.Case{Index: uint32(g.IntN(len(t.Cases())))}
		if payload := t.Cases()[c.Index].Type; payload != nil {
			c.Value = g.Value(payload)
		}
		return c
	case component.List, component.Map:
		return g.list(t.Element, g.IntN(4))
	case component.FixedList:
		return g.list(t.Element, int(t.Length))
	case component.Flags:
		return g.Uint64() & (1<<len(t.Fields) - 1)
	}
	return g.Uint32()
}

func (g Generator) list(t *component.ValueType, n int) any {
	if t.Kind == component.U8 {
		all := make([]byte, n)
		for i := range all {
			all[i] = byte(g.Uint32())
		}
		return all
	}
	all := make([]any, n)
	for i := range all {
		all[i] = g.Value(t)
	}
	return all
}

func (g Generator) made(v component.ValueType) *component.ValueType {
	g.T.Helper()
	typ, err := component.New(v)
	if err != nil {
		g.T.Fatal(err)
	}
	return typ
}
