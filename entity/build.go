package entity

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"runner.example/store"
)

// Progress tells how far the building of an index is.
type Progress struct {
	Entity string
	// Fields are those of the index, joined by ", ".
	Fields string
	// Rows are those entered so far, of Total that there were at the start.
	Rows, Total int
	Done        bool
}

// BuildIndexes enters the rows that there are into the indexes that were added,
// and removes what is left of indexes that are no more. It works in small
// transactions beside those that serve; stopped, it goes on where it was when it
// is called again, by a model of the same or a later schema. When the schema is
// changed it ends, since that is for the later model. An index is used from the
// moment it is built. progress may be nil.
func (m *Model) BuildIndexes(ctx context.Context, progress func(Progress)) error {
	if progress == nil {
		progress = func(Progress) {}
	}
	for _, name := range m.names {
		t := m.tables[name]
		for _, x := range t.indexes {
			if x.builtAt.Load() > 0 {
				continue
			}
			err := m.build(ctx, t, x, progress)
			if errors.Is(err, ErrOutdated) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("build index of %s over %s: %w", name, x.names(t), err)
			}
		}
	}
	if err := dropAll(ctx, m.store, markDropped); err != nil {
		return fmt.Errorf("drop indexes: %w", err)
	}
	return nil
}

// numbersIn returns the numbers of the keys in a space whose values are accepted.
func numbersIn(tx *store.Tx, space string, accept func(value []byte) bool) ([]uint32, error) {
	var numbers []uint32
	for item, err := range tx.Scan([]byte(space), nil, false) {
		if err != nil {
			return nil, err
		}
		if len(item.Key) == len(space)+4 && accept(item.Value) {
			numbers = append(numbers, binary.BigEndian.Uint32(item.Key[len(space):]))
		}
	}
	return numbers, nil
}

// unbuilt returns the numbers of the indexes that have yet to be built.
func (m *Model) unbuilt(ctx context.Context) (numbers []uint32, err error) {
	err = m.store.View(ctx, func(tx *store.Tx) error {
		numbers, err = numbersIn(tx, spaceUnbuilt, func([]byte) bool { return true })
		return err
	})
	return numbers, err
}

func (m *Model) build(ctx context.Context, t *table, x *index, progress func(Progress)) error {
	p := Progress{Entity: t.name, Fields: x.names(t)}
	err := m.store.View(ctx, func(tx *store.Tx) error {
		for _, err := range tx.Scan(t.prefix, nil, false) {
			if err != nil {
				return err
			}
			p.Total++
		}
		return nil
	})
	if err != nil {
		return err
	}
	for batch := buildBatch; !p.Done; {
		var step buildStep
		seq, err := m.store.Update(ctx, func(tx *store.Tx) (err error) {
			step, err = m.buildSome(tx, t, x, batch)
			return err
		})
		switch {
		case errors.Is(err, store.ErrConflict) && batch > 1:
			batch /= 2 // rows are being written here: take fewer at a time
			continue
		case errors.Is(err, errFrozen): // nothing can be written for a moment
			if err := pause(ctx); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		batch = min(buildBatch, batch*2)
		p.Rows += step.rows
		p.Done = step.last
		if p.Done {
			x.builtAt.Store(uint64(max(seq, step.seen)) + 1)
		}
		progress(p)
	}
	return nil
}

// errFrozen: an activation holds the rows still.
var errFrozen = errors.New("rows are held still")

// pause waits for about as long as rows are held still.
func pause(ctx context.Context) error {
	timer := time.NewTimer(10 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type buildStep struct {
	rows int
	last bool
	// seen is what the step's transaction saw of the store.
	seen store.Seq
}

// buildSome enters the next rows into the index and notes how far it came. The
// rows are read, so a write to one of them at the same time is a conflict.
func (m *Model) buildSome(tx *store.Tx, t *table, x *index, batch int) (step buildStep, err error) {
	generation, err := readNumber(tx, keyGeneration)
	if err != nil {
		return step, err
	}
	switch generation {
	case m.generation:
	case m.generation | frozen:
		return step, errFrozen
	default:
		return step, ErrOutdated
	}
	mark := numbered(spaceUnbuilt, x.number)
	until, err := tx.Get(mark)
	if errors.Is(err, store.ErrNotFound) {
		step.seen, err = tx.Snapshot()
		step.last = true
		return step, err
	}
	if err != nil {
		return step, err
	}
	var from []byte
	if len(until) > 0 {
		from = append(append(append(from, t.prefix...), until...), 0)
	}
	bytes, last := 0, []byte{}
	step.last = true
	err = eachRow(tx, t, from, func(r *row) (bool, error) {
		if step.rows == batch || bytes > buildBytes {
			step.last = false
			return false, nil
		}
		key := t.entryKey(nil, x, r.values)
		if !tx.Fits(2, len(key)+len(mark)+2*len(r.tail)) { // the entry, and how far it is
			step.last = false
			return false, nil
		}
		step.rows++
		bytes += len(r.raw)
		last = append(last[:0], r.tail...)
		return true, tx.Set(key, last)
	})
	switch {
	case err != nil:
		return step, err
	case step.last:
		return step, tx.Delete(mark)
	}
	return step, tx.Set(mark, last)
}

// dropAbandoned removes what activations have left that never came to their end.
func dropAbandoned(ctx context.Context, st *store.Store) error {
	return dropAll(ctx, st, markReserved)
}

// dropAll removes the entries of all indexes with that mark.
func dropAll(ctx context.Context, st *store.Store, mark byte) error {
	var numbers []uint32
	err := st.View(ctx, func(tx *store.Tx) (err error) {
		numbers, err = numbersIn(tx, spaceDropped, func(value []byte) bool { return len(value) == 1 && value[0] == mark })
		return err
	})
	for _, number := range numbers {
		for more := true; more && err == nil; {
			_, err = st.Update(ctx, func(tx *store.Tx) error {
				more, err = dropSome(tx, number)
				return err
			})
		}
	}
	return err
}

// dropSome removes some entries of an index, and its mark with the last of them.
func dropSome(tx *store.Tx, number uint32) (more bool, err error) {
	mark := numbered(spaceDropped, number)
	n := 0
	for item, err := range tx.Scan(numbered(spaceEntries, number), nil, false) {
		if err != nil {
			return false, err
		}
		if n == buildBatch || !tx.Fits(2, len(item.Key)+len(mark)) {
			return true, nil
		}
		if err := tx.Delete(item.Key); err != nil {
			return false, err
		}
		n++
	}
	return false, tx.Delete(mark)
}
