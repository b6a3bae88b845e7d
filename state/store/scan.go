package store

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"runner.example/state/store/commitlog"
)

// Item is one key with its value. Its bytes are borrowed: they are valid until the next step
// of the loop, and must not be changed.
type Item struct {
	Key, Value []byte
	// Version is the sequence number of the commit that wrote it; 0 if this
	// transaction did.
	Version Seq
}

// ctxEvery is after how many items a scan checks whether the context has ended.
const ctxEvery = 256

// Scan yields the keys that begin with prefix, in ascending order, or descending if
// reverse. It starts at from, inclusive; an empty from starts at the first key of the
// prefix (the last if reverse). An empty prefix matches all keys. Both are copied.
//
// The transaction's writes are visible, also those made during the loop at keys ahead of
// it. The range from the start to the last key yielded becomes part of the read set, or
// the whole range if the loop ran to its end. An error ends the loop.
func (t *Tx) Scan(prefix, from []byte, reverse bool) iter.Seq2[Item, error] {
	span := commitlog.PrefixSpan(prefix, from, reverse)
	return t.ScanRange(nil, span.Lo, span.Hi, reverse)
}

// ScanRange is Scan for the keys from lo (inclusive) to hi (exclusive). A nil hi means no upper bound.
//
// within is for an operation that scans many ranges of one prefix: it is that prefix, and all keys of the
// range must begin with it. The iterator is then kept for later scans with the same prefix, until the
// transaction ends. Otherwise within is nil.
//
// The arguments are not copied: they must not change until the transaction has ended.
func (t *Tx) ScanRange(within, lo, hi []byte, reverse bool) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if hi != nil && bytes.Compare(lo, hi) >= 0 {
			return
		}
		if err := t.scan(within, lo, hi, reverse, yield); err != nil {
			yield(Item{}, fmt.Errorf("scan store: %w", err))
		}
	}
}

// scan yields the items of a range until yield returns false.
func (t *Tx) scan(within, lo, hi []byte, reverse bool, yield func(Item, error) bool) (err error) {
	r := t.reading()
	defer r.done(&err)
	c, err := t.newCursor(within, lo, hi, reverse)
	if err != nil {
		return err
	}
	defer c.close()
	for n := 1; ; n++ {
		item, ok, err := c.next()
		if err == nil && n%ctxEvery == 0 && t.ctx.Err() != nil {
			err = unavailable(context.Cause(t.ctx))
		}
		if err != nil || !ok || r.metDamage() {
			return err
		}
		r.leave()
		if !yield(item, nil) {
			return nil
		}
		r.enter()
	}
}

// cursor walks over a range, merging the keys of the snapshot with the transaction's own
// writes.
type cursor struct {
	tx      *Tx
	it      iterator
	within  []byte // the prefix of it, which tx.idle gets; nil: it is closed with the cursor
	reverse bool
	all     commitlog.Span // the range asked for
	// The rest of the range: from lo up to and without hi, nil for no bound. The bound
	// that moves is in edge.
	lo, hi []byte
	edge   []byte
	read   *commitlog.Span // the range consumed, part of the read set; nil before the first step
	key    []byte          // buffer for the keys of own writes
}

func (t *Tx) newCursor(within, lo, hi []byte, reverse bool) (*cursor, error) {
	if t.ended {
		return nil, errEnded
	}
	if err := t.begin(); err != nil {
		return nil, err
	}
	c := &cursor{tx: t, reverse: reverse, all: commitlog.Span{Lo: lo, Hi: hi}, lo: lo, hi: hi}
	from, to := dataKeys(c.all)
	prefix := commonPrefix(from, to)
	if n := 1 + len(within); n > 1 && len(prefix) >= n && bytes.Equal(prefix[1:n], within) {
		c.within, prefix = within, prefix[:n]
		for i, was := range t.idle {
			if was.reverse == reverse && bytes.Equal(was.within, within) {
				c.it = was.it
				t.idle = slices.Delete(t.idle, i, i+1)
				break
			}
		}
	}
	if c.it == nil {
		c.it = t.snapshot.newIterator(prefix, reverse)
		t.iters = append(t.iters, c.it)
	}
	if reverse {
		c.it.Seek(to)
	} else {
		c.it.Seek(from)
	}
	return c, nil
}

// dataKeys returns the bounds of r as dataKey does.
func dataKeys(r commitlog.Span) (from, to []byte) {
	if r.Hi == nil {
		return dataKey(nil, r.Lo), []byte{spaceData + 1}
	}
	return dataKey(nil, r.Lo), dataKey(nil, r.Hi)
}

// commonPrefix returns the common prefix of a and b, which every key from a to b has. With
// it Badger skips tables, and its iterator does not end at a key that is only out of range.
func commonPrefix(a, b []byte) []byte {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

func (c *cursor) close() {
	if c.tx.ended { // then it was closed
		return
	}
	if c.within != nil {
		c.tx.idle = append(c.tx.idle, c)
		return
	}
	c.it.Close()
	if i := slices.Index(c.tx.iters, c.it); i >= 0 {
		c.tx.iters = slices.Delete(c.tx.iters, i, i+1)
	}
}

// next returns the next item; false at the end of the range.
func (c *cursor) next() (Item, bool, error) {
	for {
		if c.tx.ended {
			return Item{}, false, errEnded
		}
		key := c.peek()
		if w := c.own(key); w != nil {
			c.passed([]byte(w.Key))
			if w.Deleted {
				continue
			}
			c.key = append(c.key[:0], w.Key...)
			return Item{Key: c.key, Value: w.Value}, true, nil
		}
		if key == nil {
			c.passedAll()
			return Item{}, false, nil
		}
		c.passed(key)
		value, version, err := c.tx.snapshot.read(c.it)
		return Item{Key: key, Value: value, Version: version}, err == nil, err
	}
}

// peek returns the key of the snapshot that comes next in what is left of the range,
// nil if there is none.
func (c *cursor) peek() []byte {
	for key := c.it.UserKey(); key != nil; key = c.it.UserKey() {
		low := bytes.Compare(key, c.lo) < 0
		high := c.hi != nil && bytes.Compare(key, c.hi) >= 0
		switch {
		case !low && !high:
			return key
		case low == c.reverse: // beyond the far end
			return nil
		}
		c.it.Next()
	}
	return nil
}

// own returns the transaction's write that comes before the next key of the snapshot or replaces
// it; nil if there is none. A nil key means that there is no next key.
func (c *cursor) own(key []byte) *commitlog.Write {
	if c.reverse {
		w := c.tx.writes.Last(c.lo, c.hi)
		if w == nil || key != nil && w.Key < string(key) {
			return nil
		}
		return w
	}
	w := c.tx.writes.First(c.lo, c.hi)
	if w == nil || key != nil && w.Key > string(key) {
		return nil
	}
	return w
}

// passed moves the near end of the range past key and extends the read set up to there.
func (c *cursor) passed(key []byte) {
	c.begun()
	c.edge = append(c.edge[:0], key...)
	if c.reverse {
		c.hi, c.read.Lo = c.edge, c.edge
		return
	}
	c.edge = append(c.edge, 0)
	c.lo, c.read.Hi = c.edge, c.edge
}

// passedAll extends the read set to the whole range.
func (c *cursor) passedAll() {
	c.begun()
	*c.read = c.all
}

// begun adds the range of this cursor to the read set.
func (c *cursor) begun() {
	if c.read != nil {
		return
	}
	r := c.all
	c.read = &r
	if c.tx.records {
		c.tx.spans = append(c.tx.spans, c.read)
	}
}
