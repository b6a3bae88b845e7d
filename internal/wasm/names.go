package wasm

// Parts of the name section, by their numbers (WebAssembly Core 2.0, appendix
// "Custom Sections", and the extended name section proposal).
const (
	namesModule   = 0
	namesFunction = 1
	namesLocal    = 2
	namesLabel    = 3
	namesType     = 4
	namesTable    = 5
	namesMemory   = 6
	namesGlobal   = 7
	namesElement  = 8
	namesData     = 9
)

// names rewrites the name section with the functions' new indices. Damaged and unknown
// parts are dropped, since names do not change what a module does. Names of labels where
// code was added are dropped too, and names of elements past the limit.
func (w *rewriter) names(c custom) []byte {
	r := &reader{bytes: w.m.bytes, pos: c.body, end: c.end}
	left := w.m.limits.NameEntries
	var out []byte
	last := -1
	for r.pos < r.end {
		id := r.byte()
		size := r.u32()
		if r.err != nil || uint64(size) > uint64(r.left()) || int(id) <= last {
			return out
		}
		last = int(id)
		s := &reader{bytes: w.m.bytes, pos: r.pos, end: r.pos + int(size)}
		r.pos = s.end
		if part := w.namePart(id, s, &left); s.err == nil && s.pos == s.end && len(part) > 0 {
			out = append(appendU32(append(out, id), uint32(len(part))), part...)
		}
	}
	return out
}

func (w *rewriter) namePart(id byte, r *reader, left *int) []byte {
	switch id {
	case namesModule:
		return appendName(nil, r.name())
	case namesFunction:
		return w.functionNames(r, left)
	case namesLocal:
		return w.nestedNames(r, left)
	case namesLabel:
		if w.Fuel == nil && w.MaxStack == 0 {
			return w.nestedNames(r, left)
		}
	case namesType, namesTable, namesMemory, namesGlobal, namesElement, namesData:
		return copyNames(nil, r, left)
	}
	return nil
}

// copyNames copies a name map: u32 count · u32 index, name.
func copyNames(b []byte, r *reader, left *int) []byte {
	n := r.count("names", *left, 2)
	*left -= n
	b = appendU32(b, uint32(n))
	for range n {
		if b = appendU32(b, r.u32()); r.err != nil {
			return nil
		}
		b = appendName(b, r.name())
	}
	return b
}

func (w *rewriter) functionNames(r *reader, left *int) []byte {
	n := r.count("names", *left, 2)
	*left -= n
	b := appendU32(make([]byte, 0, r.left()+r.left()/8), uint32(n+len(w.added)))
	next := int64(0)
	named := false // those that were added
	for range n {
		index := w.named(r, &next)
		if !named && int(index) >= len(w.m.imports) {
			b = w.addedNames(b)
			named = true
		}
		b = appendName(appendU32(b, w.function(index)), r.name())
		if r.err != nil {
			return nil
		}
	}
	if !named {
		b = w.addedNames(b)
	}
	return b
}

// named reads the index of a function that has a name; they must grow.
func (w *rewriter) named(r *reader, next *int64) uint32 {
	index := w.m.functionIndex(r)
	if int64(index) < *next {
		r.fail("names are out of order")
	}
	*next = int64(index) + 1
	return index
}

// addedNames names the functions that were added.
func (w *rewriter) addedNames(b []byte) []byte {
	for i, f := range w.added {
		b = appendName(appendU32(b, uint32(len(w.m.imports)+i)), f.Module+"."+f.Name)
	}
	return b
}

// nestedNames copies a map from functions to name maps.
func (w *rewriter) nestedNames(r *reader, left *int) []byte {
	n := r.count("names", *left, 2)
	*left -= n
	b := appendU32(nil, uint32(n))
	next := int64(0)
	for range n {
		b = appendU32(b, w.function(w.named(r, &next)))
		if b = copyNames(b, r, left); r.err != nil {
			return nil
		}
	}
	return b
}
