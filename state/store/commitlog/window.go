package commitlog

import (
	"hash/maphash"
	"sort"
	"strings"
)

// Window has the keys that the newest entries of the log wrote, and the newest batch of each
// of their proposers, which is all that deciding an entry needs. How far it reaches back
// depends only on the entries: at most MaxWindowEntries, and at most maxWindowBytes of keys.
type Window struct {
	size    int // in entries
	floor   Seq // entries up to this one are dropped
	entries []written
	head    int // entries[head:] are in the window, ascending
	bytes   int
	// last has the newest entry in the window that wrote a key with that hash.
	last map[uint64]Seq
	seed maphash.Seed
	// newest has the newest batch of each proposer.
	newest map[uint64]position
}

// position is where the log has a batch.
type position struct {
	batch uint64
	seq   Seq
}

// Record is what a window needs of an entry, except its keys.
type Record struct {
	Seq Seq
	ID
	// Bytes is what the keys count. It is more than those that Restore gets for the entry, if
	// some were written again later.
	Bytes uint32
}

// written is what one entry wrote: its keys in ascending order. A window has hundreds of
// thousands of keys. They are in one string, so that the garbage collector has no pointers
// to follow.
type written struct {
	Record
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

const (
	// MaxWindowEntries is how many entries a window has. All nodes must have the same.
	MaxWindowEntries = 16_384
	// maxWindowBytes is the size limit of all keys in the window.
	maxWindowBytes = 16 << 20
	// windowKeyBytes is what each key takes in addition to its length.
	windowKeyBytes = 32
)

// NewWindow returns the window of a log whose entries up to floor are dropped. The size is
// MaxWindowEntries, except in tests.
func NewWindow(size int, floor Seq) *Window {
	return &Window{
		size: size, floor: floor, last: make(map[uint64]Seq), seed: maphash.MakeSeed(), newest: make(map[uint64]position),
	}
}

// Size returns the size with which the window was made.
func (w *Window) Size() int { return w.size }

// Floor returns the newest entry that is dropped. The versions of keys above it are needed to
// restore the window.
func (w *Window) Floor() Seq { return w.floor }

func (w *Window) hash(key string) uint64 { return maphash.String(w.seed, key) }

// Add adds the decided entry seq, which is the next one, and drops entries over the limits. It
// returns what Restore needs.
func (w *Window) Add(seq Seq, e *Entry) Record {
	keys := e.committedKeys()
	r := Record{Seq: seq, ID: e.ID}
	for _, k := range keys {
		r.Bytes += uint32(len(k) + windowKeyBytes)
	}
	w.Restore(r, keys)
	for n := len(w.entries) - w.head; n > w.size || n > 1 && w.bytes > maxWindowBytes; n-- {
		w.dropOldest()
	}
	if w.head > w.size && w.head > len(w.entries)/2 {
		n := copy(w.entries, w.entries[w.head:])
		clear(w.entries[n:])
		w.entries, w.head = w.entries[:n], 0
	}
	return r
}

// Restore adds an entry that the log already had, with the keys that it wrote, ascending
// and unique. Keys that a later entry wrote too may be missing. Entries are restored in their
// order, beginning after the floor.
func (w *Window) Restore(r Record, keys []string) {
	e := written{Record: r, text: strings.Join(keys, ""), ends: make([]uint32, 0, len(keys))}
	end := uint32(0)
	for _, k := range keys {
		w.last[w.hash(k)] = r.Seq
		end += uint32(len(k))
		e.ends = append(e.ends, end)
	}
	w.entries = append(w.entries, e)
	w.bytes += int(r.Bytes)
	if at, ok := w.newest[r.Proposer]; !ok || r.Batch >= at.batch {
		w.newest[r.Proposer] = position{r.Batch, r.Seq}
	}
}

// dropOldest drops the oldest entry.
func (w *Window) dropOldest() {
	e := &w.entries[w.head]
	for i := range e.ends {
		if h := w.hash(e.key(i)); w.last[h] == e.Seq {
			delete(w.last, h)
		}
	}
	if w.newest[e.Proposer].seq == e.Seq {
		delete(w.newest, e.Proposer)
	}
	w.floor = e.Seq
	w.bytes -= int(e.Bytes)
	*e = written{}
	w.head++
}

// Decide sets the verdict of each proposal of e, the next entry. An entry that the log had
// before changes nothing: while the window has its first occurrence, its batch is not newer
// than the newest of its proposer, and afterwards its base is before the window. admit is called
// for each proposal that may commit, in order, and returns whether it fits into one commit with
// those before.
func (w *Window) Decide(e *Entry, admit func(*Proposal) bool) {
	switch {
	case e.Base < w.floor:
		e.setAll(TooOld)
		return
	case e.Batch <= w.newest[e.Proposer].batch:
		e.setAll(Duplicate)
		return
	}
	var before []*Proposal // those of e that commit
	for _, p := range e.Proposals {
		p.Verdict = w.judge(p, before)
		if p.Verdict.Outcome != Committed {
			continue
		}
		if !admit(p) {
			p.Verdict = Verdict{Outcome: TooLarge}
			continue
		}
		before = append(before, p)
	}
}

// judge looks for writes after p's snapshot to anything p read: those of
// entries in the window and those of the proposals before it in its own entry.
func (w *Window) judge(p *Proposal, before []*Proposal) Verdict {
	if len(p.Reads) == 0 && len(p.Spans) == 0 {
		return Verdict{}
	}
	if p.Snapshot < w.floor {
		return Verdict{Outcome: TooOld}
	}
	for _, key := range p.Reads {
		if w.wroteKey(key, p.Snapshot) {
			return Verdict{Conflict, key}
		}
		for _, b := range before {
			if i := b.at(key); i < len(b.Writes) && b.Writes[i].Key == key {
				return Verdict{Conflict, key}
			}
		}
	}
	for _, r := range p.Spans {
		if key, ok := w.wroteIn(r, p.Snapshot); ok {
			return Verdict{Conflict, key}
		}
		for _, b := range before {
			if i := b.at(string(r.Lo)); i < len(b.Writes) && r.below(b.Writes[i].Key) {
				return Verdict{Conflict, b.Writes[i].Key}
			}
		}
	}
	return Verdict{}
}

// Wrote reports whether an entry after that one wrote one of the keys, or a key in one of the spans. It is true also if
// the window does not reach back so far.
func (w *Window) Wrote(after Seq, keys []string, spans []Span) bool {
	return w.judge(&Proposal{Snapshot: after, Reads: keys, Spans: spans}, nil).Outcome != Committed
}

// wroteKey reports whether an entry after snap wrote key.
func (w *Window) wroteKey(key string, snap Seq) bool {
	seq := w.last[w.hash(key)]
	if seq <= snap {
		return false
	}
	after := w.after(snap)
	newest := sort.Search(len(after), func(i int) bool { return after[i].Seq >= seq })
	for i := newest; i >= 0; i-- { // the first, unless it wrote another key with this hash
		if after[i].wrote(key) {
			return true
		}
	}
	return false
}

// wroteIn returns a key in r that an entry after snap wrote.
func (w *Window) wroteIn(r Span, snap Seq) (string, bool) {
	after := w.after(snap)
	for i := len(after) - 1; i >= 0; i-- {
		e := &after[i]
		if at := e.from(string(r.Lo)); at < len(e.ends) && r.below(e.key(at)) {
			return e.key(at), true
		}
	}
	return "", false
}

// after returns the entries after snap.
func (w *Window) after(snap Seq) []written {
	es := w.entries[w.head:]
	return es[sort.Search(len(es), func(i int) bool { return es[i].Seq > snap }):]
}
