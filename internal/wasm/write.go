package wasm

import "runner.example/internal/wasm/opcode"

// appendSection appends a section, unless it has no content.
func appendSection(out []byte, id byte, content []byte) []byte {
	if len(content) == 0 {
		return out
	}
	return appendSized(append(out, id), content)
}

// appendSized appends bytes behind their length.
func appendSized(b, content []byte) []byte {
	return append(appendU32(b, uint32(len(content))), content...)
}

func appendType(b []byte, t FuncType) []byte {
	b = appendSized(append(b, 0x60), bytesOf(t.Params))
	return appendSized(b, bytesOf(t.Results))
}

func appendImport(b []byte, i Import) []byte {
	b = appendName(appendName(b, i.Module), i.Name)
	return appendU32(append(b, byte(FunctionKind)), i.typeIndex)
}

// appendLimits appends the size of a table or a memory.
func appendLimits(b []byte, least, most uint32, hasMax bool) []byte {
	if !hasMax {
		return appendU32(append(b, 0), least)
	}
	return appendU32(appendU32(append(b, 1), least), most)
}

func appendTable(b []byte, t Table) []byte {
	return appendLimits(append(b, byte(t.Type)), t.Min, t.Max, t.HasMax)
}

func appendGlobalType(b []byte, g Global) []byte {
	b = append(b, byte(g.Type), 0)
	if g.Mutable {
		b[len(b)-1] = 1
	}
	return b
}

func appendExport(b []byte, e Export) []byte {
	return appendU32(append(appendName(b, e.Name), byte(e.Kind)), e.Index)
}

// appendConstant appends an initial value. function returns the number of a function.
func (m *Module) appendConstant(b []byte, c constant, function func(uint32) uint32) []byte {
	switch {
	case c.op == opcode.RefFunc:
		return append(appendU32(append(b, opcode.RefFunc), function(c.index)), opcode.End)
	case c.end == 0: // it was computed
		return append(appendSigned(append(b, c.op), c.value), opcode.End)
	}
	return append(b, m.bytes[c.start:c.end]...)
}

// appendElement appends an element segment. constant appends an initial value, and function
// returns the number of a function.
func (m *Module) appendElement(
	b []byte, e element, constant func([]byte, constant) []byte, function func(uint32) uint32,
) []byte {
	b = appendU32(b, e.form)
	if e.active() {
		if e.form&2 != 0 {
			b = appendU32(b, e.table)
		}
		b = constant(b, e.offset)
	}
	if e.hasKind() {
		b = append(b, e.kind)
	}
	b = appendU32(b, uint32(e.count))
	r := &reader{bytes: m.bytes, pos: e.start, end: e.end}
	for range e.count {
		if e.constants() {
			b = constant(b, m.readConstant(r, len(m.globals)))
		} else {
			b = appendU32(b, function(r.u32()))
		}
	}
	return b
}

// appendPassive appends a data segment as a passive one.
func (m *Module) appendPassive(b []byte, s segment) []byte {
	return appendSized(append(b, 1), m.bytes[s.start:s.end])
}

// body is the function's locals, code and closing end.
func (f Function) body(index func(name string) uint32) []byte {
	b := appendU32(nil, uint32(len(f.Locals)))
	for _, t := range f.Locals {
		b = append(b, 1, byte(t))
	}
	return append(append(b, f.Code(index)...), opcode.End)
}
