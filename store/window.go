package store

import "sort"

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
	last    map[string]Seq // key → the newest entry in the window that wrote it
}

// written is what one entry wrote: its keys in ascending order.
type written struct {
	seq   Seq
	keys  []string
	bytes int
}

// maxWindowBytes bounds the keys in the window, each counted as its length and 64 bytes.
const maxWindowBytes = 32 << 20

func newWindow(size int, floor, start Seq) window {
	return window{size: size, floor: floor, start: start, last: make(map[string]Seq)}
}

// add adds the keys that entry seq wrote, ascending and unique, and drops entries over the
// limits.
func (w *window) add(seq Seq, keys []string) {
	bytes := 0
	for _, k := range keys {
		w.last[k] = seq
		bytes += len(k) + 64
	}
	w.entries = append(w.entries, written{seq, keys, bytes})
	w.bytes += bytes
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
	for _, k := range e.keys {
		if w.last[k] == e.seq {
			delete(w.last, k)
		}
	}
	w.floor = e.seq
	w.bytes -= e.bytes
	*e = written{}
	w.head++
}

// tooOld reports whether the window lacks some of the writes after snap.
func (w *window) tooOld(snap Seq) bool { return snap < max(w.floor, w.start) }

// wroteKey reports whether an entry after snap wrote key.
func (w *window) wroteKey(key string, snap Seq) bool { return w.last[key] > snap }

// wroteIn returns a key in r that an entry after snap wrote.
func (w *window) wroteIn(r span, snap Seq) (string, bool) {
	es := w.entries[w.head:]
	from := sort.Search(len(es), func(i int) bool { return es[i].seq > snap })
	for i := len(es) - 1; i >= from; i-- {
		keys := es[i].keys
		at := sort.Search(len(keys), func(k int) bool { return keys[k] >= string(r.lo) })
		if at < len(keys) && r.below(keys[at]) {
			return keys[at], true
		}
	}
	return "", false
}

// below reports whether key is before the end of the span.
func (r span) below(key string) bool { return r.hi == nil || key < string(r.hi) }
