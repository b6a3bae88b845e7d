package store

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"runner.example/state/store/commitlog"
)

// Reads has the keys and ranges of keys that a View has read, including absent keys, and the commit that the View saw. One
// goroutine may use it at a time. A later Widen does not change a watch of it.
type Reads struct {
	// Snapshot is the newest commit that the View saw.
	Snapshot Seq

	keys  []string         // ascending and unique, none in a span
	spans []commitlog.Span // ascending; no two overlap or touch
}

// ViewReads is View, and returns what fn has read, for Watch. It returns the Reads also if fn returns an error. They are
// nil if fn did not run.
func (s *Store) ViewReads(ctx context.Context, fn func(*Tx) error) (*Reads, error) {
	if s.isClosed() {
		return nil, errClosed
	}
	tx := &Tx{store: s, ctx: ctx, records: true}
	defer tx.end()
	err := tx.result(fn(tx))
	return tx.allReads(), err
}

// allReads returns what t has read, with copies of the ranges.
func (t *Tx) allReads() *Reads {
	r := &Reads{Snapshot: t.snap, keys: t.reads}
	if t.snapshot == nil { // nothing was read
		r.Snapshot = t.store.appliedSeq()
	}
	for _, s := range t.spans {
		r.spans = append(r.spans, *s)
	}
	r.normalize()
	for i, s := range r.spans {
		r.spans[i] = commitlog.Span{Lo: slices.Clone(s.Lo), Hi: slices.Clone(s.Hi)}
	}
	return r
}

// Len returns the number of keys and ranges. A key that was read twice counts once, as do ranges that overlap or touch.
func (r *Reads) Len() int { return len(r.keys) + len(r.spans) }

// Widen replaces keys and ranges of r by fewer and larger ranges. prefix must return a prefix of its argument. Each key
// becomes the range of all keys with its prefix, unless the prefix is the key itself. Each range is extended to all keys
// with the prefix of its start, unless that prefix is empty.
func (r *Reads) Widen(prefix func(key string) string) {
	wide := Reads{Snapshot: r.Snapshot}
	last := ""
	for _, key := range r.keys {
		switch p := prefix(key); p {
		case key:
			wide.keys = append(wide.keys, key)
		case last: // most keys have the prefix of the one before
		default:
			wide.spans = append(wide.spans, commitlog.PrefixSpan([]byte(p), nil, false))
			last = p
		}
	}
	for _, s := range r.spans {
		if p := prefix(string(s.Lo)); p != "" {
			all := commitlog.PrefixSpan([]byte(p), nil, false)
			if commitlog.CompareEnds(s.Hi, all.Hi) > 0 {
				all.Hi = s.Hi
			}
			s = all
		}
		wide.spans = append(wide.spans, s)
	}
	wide.normalize()
	*r = wide
}

// normalize sorts keys and spans, merges spans that overlap or touch, and removes keys that are in a span.
func (r *Reads) normalize() {
	slices.SortFunc(r.spans, func(a, b commitlog.Span) int { return bytes.Compare(a.Lo, b.Lo) })
	spans := r.spans[:0]
	for _, s := range r.spans {
		if n := len(spans) - 1; n >= 0 && (spans[n].Hi == nil || bytes.Compare(s.Lo, spans[n].Hi) <= 0) {
			if commitlog.CompareEnds(s.Hi, spans[n].Hi) > 0 {
				spans[n].Hi = s.Hi
			}
			continue
		}
		spans = append(spans, s)
	}
	clear(r.spans[len(spans):])
	r.spans = spans
	slices.Sort(r.keys)
	r.keys = slices.DeleteFunc(slices.Compact(r.keys), r.inSpan)
}

// inSpan reports whether key is in a span. The spans must be in order.
func (r *Reads) inSpan(key string) bool {
	i := sort.Search(len(r.spans), func(i int) bool { return string(r.spans[i].Lo) > key })
	return i > 0 && r.spans[i-1].Has(key)
}
