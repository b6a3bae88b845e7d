package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"runner.example/internal/wait"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// Progress is the progress of one index build.
type Progress struct {
	Entity string
	// Fields are those of the index, joined by ", ".
	Fields string
	// Rows is the number of rows entered so far, Total the number at the start.
	Rows, Total int
	Done        bool
}

// BuildIndexes adds existing rows to the indexes of the tables that are not built yet, and
// removes the entries of dropped indexes. It works in small transactions beside those that
// serve; stopped, it continues where it was when it is called again, for the same or a later
// schema. When the generation is not the active one any more it ends, because the rest is
// for the later schema. An index is used from the moment it is built. progress may be nil.
//
// In a cluster the owner does that. On another node BuildIndexes waits until it is the owner, and
// meanwhile makes indexes used here that the owner has built.
func BuildIndexes(ctx context.Context, st *store.Store, generation uint64, tables []*layout.Table,
	progress func(Progress)) error {
	if progress == nil {
		progress = func(Progress) {}
	}
	for {
		owner, err := beginTenure(ctx, st)
		if err == nil {
			b := builder{owner, generation, progress}
			err = b.run(ctx, tables)
		}
		if !errors.Is(err, store.ErrNotOwner) {
			return err
		}
		if err := followBuilt(ctx, st, tables); err != nil {
			return fmt.Errorf("follow the builds of indexes: %w", err)
		}
	}
}

// builder builds the indexes of one generation.
type builder struct {
	tenure
	generation uint64
	progress   func(Progress)
}

func (b *builder) run(ctx context.Context, tables []*layout.Table) error {
	for _, t := range tables {
		for _, x := range t.Indexes {
			if x.IsBuilt() {
				continue
			}
			err := b.build(ctx, t, x)
			if errors.Is(err, ErrOutdated) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("build index of %s over %s: %w", t.Name, x.Names(t), err)
			}
		}
	}
	if err := b.dropAll(ctx, markDropped); err != nil {
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

// MarkBuilt marks the indexes of the tables that are built, for transactions that begin afterwards.
func MarkBuilt(ctx context.Context, st *store.Store, tables []*layout.Table) error {
	var unbuilt []uint32
	var seen store.Seq
	err := st.View(ctx, func(tx *store.Tx) (err error) {
		if seen, err = tx.Snapshot(); err != nil {
			return err
		}
		unbuilt, err = numbersIn(tx, layout.SpaceUnbuilt, func([]byte) bool { return true })
		return err
	})
	if err != nil {
		return err
	}
	for _, t := range tables {
		for _, x := range t.Indexes {
			if !x.IsBuilt() && !slices.Contains(unbuilt, x.Number) {
				x.MarkBuilt(seen)
			}
		}
	}
	return nil
}

func (b *builder) build(ctx context.Context, t *layout.Table, x *layout.Index) error {
	p := Progress{Entity: t.Name, Fields: x.Names(t)}
	err := b.store.View(ctx, func(tx *store.Tx) error {
		for _, err := range tx.Scan(t.Prefix, nil, false) {
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
		seq, err := b.update(ctx, func(tx *store.Tx) (err error) {
			step, err = b.buildSome(tx, t, x, batch)
			return err
		})
		switch {
		case errors.Is(err, store.ErrConflict) && batch > 1:
			batch /= 2 // rows are being written here: take fewer at a time
			continue
		case errors.Is(err, errFrozen): // nothing can be written until the activation has ended
			if wait.For(ctx, frozenPause) != nil {
				return context.Cause(ctx)
			}
			continue
		case err != nil:
			return err
		}
		batch = min(buildBatch, batch*2)
		p.Rows += step.rows
		p.Done = step.last
		if p.Done {
			x.MarkBuilt(max(seq, step.seen))
		}
		b.progress(p)
	}
	return nil
}

// errFrozen means that an activation has frozen the rows.
var errFrozen = errors.New("rows are frozen")

// frozenPause is about as long as rows are frozen.
const frozenPause = 10 * time.Millisecond

type buildStep struct {
	rows int
	last bool
	// seen is the snapshot of the step's transaction.
	seen store.Seq
}

// buildSome adds the next rows to the index and records how far it came. It reads the rows,
// so a concurrent write to one of them is a conflict.
func (b *builder) buildSome(tx *store.Tx, t *layout.Table, x *layout.Index, batch int) (step buildStep, err error) {
	generation, err := readNumber(tx, layout.KeyGeneration)
	if err != nil {
		return step, err
	}
	switch generation {
	case b.generation:
	case b.generation | frozen:
		return step, errFrozen
	default:
		return step, ErrOutdated
	}
	mark := layout.NumberedKey(layout.SpaceUnbuilt, x.Number)
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
		from = append(append(append(from, t.Prefix...), until...), 0)
	}
	bytes, last := 0, []byte{}
	step.last = true
	err = layout.ScanRows(tx, t, from, func(r *layout.Row) (bool, error) {
		if step.rows == batch || bytes > buildBytes {
			step.last = false
			return false, nil
		}
		key := t.EntryKey(nil, x, r.Values)
		if !tx.Fits(2, len(key)+len(mark)+2*len(r.Tail)) { // the entry, and the position
			step.last = false
			return false, nil
		}
		step.rows++
		bytes += len(r.Raw)
		last = append(last[:0], r.Tail...)
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

// dropSome removes some entries of an index, and its mark with the last of them.
func dropSome(tx *store.Tx, number uint32) (more bool, err error) {
	mark := layout.NumberedKey(layout.SpaceDropped, number)
	n := 0
	for item, err := range tx.Scan(layout.NumberedKey(layout.SpaceEntries, number), nil, false) {
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
