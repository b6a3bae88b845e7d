// Command skeleton makes a small component of a large one: each core module keeps its imports and
// exports and loses its code. It reads a component from the standard input and writes one to the
// standard output. The samples of testdata were made with it:
//
//	starlingmonkey-0.2.wasm  componentize-js 0.23, a fetch listener, world of
//	                         wasi:http/incoming-handler@0.2.10 and wasi:http/types@0.2.10
//	quickjs-0.3.wasm         jco 1.35 componentize --backend quickjs, world of wasi:http/handler@0.3.0
//	command-0.2.wasm         jco 1.35 new --wasi-command of a Go program for wasip1
package main

import (
	"encoding/binary"
	"io"
	"log"
	"os"

	"runner.example/internal/wasm"
)

func main() {
	file, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.Write(component(file)); err != nil {
		log.Fatal(err)
	}
}

func component(file []byte) []byte {
	out := append([]byte{}, file[:8]...)
	for rest := file[8:]; len(rest) > 0; {
		id := rest[0]
		size, n := binary.Uvarint(rest[1:])
		content := rest[1+n : 1+n+int(size)]
		rest = rest[1+n+int(size):]
		switch id {
		case 0:
			continue
		case 1:
			content = module(content)
		case 4:
			content = component(content)
		}
		out = sized(append(out, id), content)
	}
	return out
}

// module makes a core module with the imports and exports of another.
func module(file []byte) []byte {
	limits := wasm.DefaultLimits()
	m, err := wasm.ParsePart(file, limits)
	if err != nil {
		log.Fatal(err)
	}
	var types, imported, functions, tables, memories, globals, exported, code vector
	count := map[wasm.Kind]int{}
	for _, e := range m.Externals() {
		count[e.Kind]++
		b := append(name(name(nil, e.Module), e.Name), byte(e.Kind))
		imported.add(describe(b, m, e.Kind, e.Index, &types))
	}
	for _, e := range m.Exports() {
		index := count[e.Kind]
		count[e.Kind]++
		exported.add(number(append(name(nil, e.Name), byte(e.Kind)), uint64(index)))
		switch b := describe(nil, m, e.Kind, e.Index, &types); e.Kind {
		case wasm.FunctionKind:
			functions.add(b)
			code.add([]byte{3, 0, 0, 0x0b}) // unreachable
		case wasm.TableKind:
			tables.add(b)
		case wasm.MemoryKind:
			memories.add(b)
		case wasm.GlobalKind:
			globals.add(append(b, initial[m.Globals()[e.Index].Type]...))
		}
	}
	out := append([]byte{}, file[:8]...)
	for _, s := range []struct {
		id byte
		vector
	}{{1, types}, {2, imported}, {3, functions}, {4, tables}, {5, memories}, {6, globals}, {7, exported}, {10, code}} {
		if s.n > 0 {
			out = sized(append(out, s.id), append(number(nil, uint64(s.n)), s.bytes...))
		}
	}
	return out
}

var initial = map[wasm.ValueType][]byte{wasm.I32: {0x41, 0, 0x0b}, wasm.I64: {0x42, 0, 0x0b}}

// describe appends the type of an import or of a definition.
func describe(b []byte, m *wasm.Module, kind wasm.Kind, index uint32, types *vector) []byte {
	switch kind {
	case wasm.FunctionKind:
		f := m.FunctionType(index)
		t := number([]byte{0x60}, uint64(len(f.Params)))
		for _, p := range f.Params {
			t = append(t, byte(p))
		}
		t = number(t, uint64(len(f.Results)))
		for _, r := range f.Results {
			t = append(t, byte(r))
		}
		types.add(t)
		return number(b, uint64(types.n-1))
	case wasm.TableKind:
		t := m.Tables()[index]
		return size(append(b, byte(t.Type)), t.Min, t.Max, t.HasMax)
	case wasm.MemoryKind:
		return size(b, m.Memory().MinPages, m.Memory().MaxPages, m.Memory().HasMax)
	}
	g := m.Globals()[index]
	b = append(b, byte(g.Type), 0)
	if g.Mutable {
		b[len(b)-1] = 1
	}
	return b
}

type vector struct {
	n     int
	bytes []byte
}

func (v *vector) add(b []byte) { v.n, v.bytes = v.n+1, append(v.bytes, b...) }

func number(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }

func name(b []byte, s string) []byte { return append(number(b, uint64(len(s))), s...) }

func sized(b, content []byte) []byte { return append(number(b, uint64(len(content))), content...) }

func size(b []byte, least, most uint32, hasMax bool) []byte {
	if !hasMax {
		return number(append(b, 0), uint64(least))
	}
	return number(number(append(b, 1), uint64(least)), uint64(most))
}
