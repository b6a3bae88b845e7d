package wasm

import (
	"slices"
)

// write puts the sections together.
func (w *merger) write() []byte {
	size := 1 << 10
	for _, p := range w.parts {
		size += len(p.bytes) + len(p.bytes)/8
	}
	out := append(make([]byte, 0, size), magic+"\x01\x00\x00\x00"...)
	for _, id := range sectionOrder {
		count, content := w.section(id)
		switch {
		case id == sectionStart && w.start >= 0:
			out = appendSection(out, id, appendU32(nil, uint32(w.start)))
		case id == sectionDataCount && count > 0:
			out = appendSection(out, id, appendU32(nil, uint32(count)))
		case count > 0:
			out = append(out, id)
			before := appendU32(nil, uint32(count))
			out = append(appendU32(out, uint32(len(before)+len(content))), before...)
			out = append(out, content...)
		}
	}
	if names := w.nameSection(); names != nil {
		out = AppendCustom(out, "name", names)
	}
	return out
}

// section returns the entries of a section and their number.
func (w *merger) section(id byte) (count int, b []byte) {
	switch id {
	case sectionType:
		for _, t := range w.types {
			b = appendType(b, t)
		}
		return len(w.types), b
	case sectionImport:
		for _, i := range w.Imports {
			b = appendImport(b, i)
		}
		return len(w.Imports), b
	case sectionFunction:
		for _, f := range w.functions[len(w.Imports):] {
			b = appendU32(b, f.typeIndex)
		}
		return len(w.functions) - len(w.Imports), b
	case sectionTable:
		for _, t := range w.tables {
			b = appendTable(b, t.Table)
		}
		return len(w.tables), b
	case sectionMemory:
		if w.live < 0 {
			return 0, nil
		}
		m := w.memories[w.live]
		return 1, appendLimits(b, m.MinPages, m.MaxPages, m.HasMax)
	case sectionGlobal:
		for _, g := range w.globals {
			b = w.constant(appendGlobalType(b, g.Global), g.from, g.init)
		}
		return len(w.globals), b
	case sectionExport:
		for _, e := range w.exports {
			b = appendExport(b, e)
		}
		return len(w.exports), b
	case sectionElement:
		return w.elementSection()
	case sectionDataCount:
		return w.data, nil
	case sectionCode:
		return w.codeSection()
	case sectionData:
		return w.data, w.dataSection()
	}
	return 0, nil
}

// constant appends an initial value of a part.
func (w *merger) constant(b []byte, p *part, c constant) []byte {
	p, c = w.value(p, c)
	return p.appendConstant(b, c, p.function)
}

// elementSection ends with a segment that declares the functions that parts have declared by an export.
func (w *merger) elementSection() (count int, b []byte) {
	var declared []byte
	functions := 0
	for _, p := range w.parts {
		constant := func(b []byte, c constant) []byte { return w.constant(b, p, c) }
		for i, e := range p.Module.elements {
			if e.active() {
				if e.table = p.to.tables[e.table]; !e.hasKind() && e.constants() {
					e.kind = byte(FuncRef)
				}
				e.form |= 2
			}
			if p.elementSteps[i] {
				e.form = e.form&4 | 1
			}
			b = p.appendElement(b, e, constant, p.function)
		}
		for _, e := range p.Module.exports {
			if e.Kind == FunctionKind && p.inTable != nil && p.inTable[e.Index] {
				declared = appendU32(declared, p.function(e.Index))
				functions++
			}
		}
	}
	if functions == 0 {
		return w.elements, b
	}
	return w.elements + 1, append(appendU32(append(b, 3, 0), uint32(functions)), declared...)
}

func (w *merger) codeSection() (count int, b []byte) {
	var code []byte
	for _, p := range w.parts {
		for _, f := range p.Module.functions {
			code = append(code[:0], p.bytes[f.start:f.code]...)
			code = p.to.code(code, p.bytes[f.code:f.end])
			if locals := f.code - f.start; p.to.empty {
				code = append(code[:locals:locals], p.to.withoutMemory(code[locals:])...)
			}
			b = appendSized(b, code)
		}
	}
	for _, h := range w.helpers {
		b = appendSized(b, h.body)
	}
	return len(w.functions) - len(w.Imports), b
}

func (w *merger) dataSection() (b []byte) {
	for _, p := range w.parts {
		for i, s := range p.Module.data {
			if s.passive || p.dataSteps[i] || p.to.empty {
				b = p.appendPassive(b, s)
				continue
			}
			b = w.constant(append(b, 0), p, s.offset)
			b = appendSized(b, p.bytes[s.start:s.end])
		}
	}
	return b
}

// nameSection has the names of the parts' functions and of the added ones.
func (w *merger) nameSection() []byte {
	var names []FunctionName
	for _, p := range w.parts {
		section := p.nameSection()
		if section == nil {
			continue
		}
		for _, n := range FunctionNames(p.bytes[section.body:section.end]) {
			if i := int64(n.Function) - int64(len(p.Module.imports)); i >= 0 && i < int64(len(p.Module.functions)) {
				names = append(names, FunctionName{p.first + uint32(i), n.Name})
			}
		}
	}
	first := uint32(len(w.functions) - len(w.helpers))
	for i, f := range w.Functions {
		if f.Name != "" {
			names = append(names, FunctionName{first + uint32(i), []byte(f.Name)})
		}
	}
	if names == nil {
		return nil
	}
	names = slices.CompactFunc(names, func(a, b FunctionName) bool { return a.Function == b.Function })
	list := appendU32(nil, uint32(len(names)))
	for _, n := range names {
		list = appendSized(appendU32(list, n.Function), n.Name)
	}
	return appendSized([]byte{functionNames}, list)
}
