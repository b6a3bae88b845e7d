package watch

import (
	"bytes"
	"iter"
	"maps"

	"runner.example/state/store/commitlog"
)

// Index has entries, each with a value. The zero value is empty. It is for one goroutine at a time.
type Index[T any] struct {
	entries map[*Entry[T]]struct{}
	keys    map[string]*members[T]
	ranges  tree[T]
}

// Entry is an element of an index. Its keys and spans are those given to Add.
type Entry[T any] struct {
	Value     T
	keys      []string
	spans     []commitlog.Span
	positions []position[T] // of the keys, then of the spans
}

// position is the index of an entry among the members of one key or range.
type position[T any] struct {
	of *members[T]
	at int
}

// members has the entries of one key or range.
type members[T any] struct{ all []member[T] }

// member is an entry, with the index of this position in its positions.
type member[T any] struct {
	entry    *Entry[T]
	position int
}

// Add adds an entry with these keys and spans and returns it. The slices and their elements belong to the index until
// the entry is removed: the caller must not change them. A span whose end is before its start has no keys.
func (x *Index[T]) Add(value T, keys []string, spans []commitlog.Span) *Entry[T] {
	if x.entries == nil {
		x.entries, x.keys = make(map[*Entry[T]]struct{}), make(map[string]*members[T])
	}
	e := &Entry[T]{Value: value, keys: keys, spans: spans, positions: make([]position[T], 0, len(keys)+len(spans))}
	for _, key := range keys {
		m := x.keys[key]
		if m == nil {
			m = new(members[T])
			x.keys[key] = m
		}
		m.add(e)
	}
	for _, span := range spans {
		x.ranges.insert(span).add(e)
	}
	x.entries[e] = struct{}{}
	return e
}

// Remove removes an entry. It does nothing if the entry was removed before.
func (x *Index[T]) Remove(e *Entry[T]) {
	if _, has := x.entries[e]; !has {
		return
	}
	delete(x.entries, e)
	for i, key := range e.keys {
		if e.positions[i].remove() {
			delete(x.keys, key)
		}
	}
	for i, span := range e.spans {
		if e.positions[len(e.keys)+i].remove() {
			x.ranges.remove(span)
		}
	}
	e.keys, e.spans, e.positions = nil, nil, nil
}

// Match appends to found the entries that have the key, or a range with the key, and returns the extended slice. An entry
// is appended once for each of its keys and ranges that match.
func (x *Index[T]) Match(key string, found []*Entry[T]) []*Entry[T] {
	if m := x.keys[key]; m != nil {
		found = m.appendTo(found)
	}
	return x.ranges.match(key, found)
}

// Len returns the number of entries.
func (x *Index[T]) Len() int { return len(x.entries) }

// All yields all entries in any order. The loop may remove entries.
func (x *Index[T]) All() iter.Seq[*Entry[T]] { return maps.Keys(x.entries) }

func (m *members[T]) add(e *Entry[T]) {
	m.all = append(m.all, member[T]{e, len(e.positions)})
	e.positions = append(e.positions, position[T]{m, len(m.all) - 1})
}

func (m *members[T]) appendTo(found []*Entry[T]) []*Entry[T] {
	for i := range m.all {
		found = append(found, m.all[i].entry)
	}
	return found
}

// remove removes the member at p, and moves the last member there. It reports whether no member is left.
func (p position[T]) remove() (empty bool) {
	m := p.of
	last := len(m.all) - 1
	m.all[p.at] = m.all[last]
	m.all[last] = member[T]{}
	m.all = m.all[:last]
	if p.at < last {
		moved := m.all[p.at]
		moved.entry.positions[moved.position].at = p.at
	}
	return last == 0
}

// compareSpans orders spans by their starts, then by their ends.
func compareSpans(a, b commitlog.Span) int {
	if c := bytes.Compare(a.Lo, b.Lo); c != 0 {
		return c
	}
	return commitlog.CompareEnds(a.Hi, b.Hi)
}
