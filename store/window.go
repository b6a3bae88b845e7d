package store

import (
	"hash/maphash"
	"sort"
	"strings"
)

// span is a range of keys that was read: from lo up to and without hi; a nil
// hi is the end of all keys.
type span struct{ lo, hi []byte }

// window has the keys that the last entries of the log wrote, which is all that deciding a
// commit needs. How far it reaches back depends only on the entries: at most size of them,
// and at most maxWindowBytes of keys.
type window struct {
	size int
	// floor: entries up to this one are dropped. Badger keeps every version above it.
	floor Seq
	// start was the newest entry when this process opened the store: the window has no
	// earlier ones. Then floor is what the log says, and start is later.
	start   Seq
	entries []written // ascending; entries[head:] are in the window
	head    int
	bytes   int
	// last has the newest entry in the window that wrote a key with that hash.
	last map[uint64]Seq
	seed maphash.Seed
}

// written is what one entry wrote: its keys in ascending order. A window has hundreds of
// thousands of keys. They are in one string, so that the garbage collector has no pointers
// to follow.
type written struct {
	seq  Seq
	text string   // of all keys
	ends []uint32 // where each ends in text
}

func (e *written) key(i int) string {
	if i == 0 {
		return e.text[:e.ends[0]]
	}
	return e.text[e.ends[i-1]:e.ends[i]]
}

// from returns the index of the first key at or after lo.
func (e *written) from(lo string) int {
	return sort.Search(len(e.ends), func(i int) bool { return e.key(i) >= lo })
}

// wrote reports whether the entry wrote key.
func (e *written) wrote(key string) bool {
	i := e.from(key)
	return i < len(e.ends) && e.key(i) == key
}

func (e *written) bytes() int { return len(e.text) + windowKeyBytes*len(e.ends) }

// The size limit of all keys in the window, and the bytes that each key takes in addition
// to its length.
const (
	maxWindowBytes = 16 << 20
	windowKeyBytes = 32
)

func newWindow(size int, floor, start Seq) window {
	return window{size: size, floor: floor, start: start, last: make(map[uint64]Seq), seed: maphash.MakeSeed()}
}

func (w *window) hash(key string) uint64 { return maphash.String(w.seed, key) }

// add adds the keys that entry seq wrote, ascending and unique, and drops entries over the
// limits.
func (w *window) add(seq Seq, keys []string) {
	e := written{seq: seq, text: strings.Join(keys, ""), ends: make([]uint32, 0, len(keys))}
	end := uint32(0)
	for _, k := range keys {
		w.last[w.hash(k)] = seq
		end += uint32(len(k))
		e.ends = append(e.ends, end)
	}
	w.entries = append(w.entries, e)
	w.bytes += e.bytes()
	for n := len(w.entries) - w.head; n > w.size || n > 1 && w.bytes > maxWindowBytes; n-- {
		w.dropOldest()
	}
	if w.head > w.size && w.head > len(w.entries)/2 {
		n := copy(w.entries, w.entries[w.head:])
		clear(w.entries[n:])
		w.entries, w.head = w.entries[:n], 0
	}
}

// dropOldest drops the oldest entry.
func (w *window) dropOldest() {
	e := &w.entries[w.head]
	for i := range e.ends {
		if h := w.hash(e.key(i)); w.last[h] == e.seq {
			delete(w.last, h)
		}
	}
	w.floor = e.seq
	w.bytes -= e.bytes()
	*e = written{}
	w.head++
}

// tooOld reports whether the window lacks some of the writes after snap.
func (w *window) tooOld(snap Seq) bool { return snap < max(w.floor, w.start) }

// wroteKey reports whether an entry after snap wrote key.
func (w *window) wroteKey(key string, snap Seq) bool {
	seq := w.last[w.hash(key)]
	if seq <= snap {
		return false
	}
	after := w.after(snap)
	newest := sort.Search(len(after), func(i int) bool { return after[i].seq >= seq })
	for i := newest; i >= 0; i-- { // the first, unless it wrote another key with this hash
		if after[i].wrote(key) {
			return true
		}
	}
	return false
}

// wroteIn returns a key in r that an entry after snap wrote.
func (w *window) wroteIn(r span, snap Seq) (string, bool) {
	after := w.after(snap)
	for i := len(after) - 1; i >= 0; i-- {
		e := &after[i]
		if at := e.from(string(r.lo)); at < len(e.ends) && r.below(e.key(at)) {
			return e.key(at), true
		}
	}
	return "", false
}

// after returns the entries after snap.
func (w *window) after(snap Seq) []written {
	es := w.entries[w.head:]
	return es[sort.Search(len(es), func(i int) bool { return es[i].seq > snap }):]
}

// below reports whether key is before the end of the span.
func (r span) below(key string) bool { return r.hi == nil || key < string(r.hi) }
