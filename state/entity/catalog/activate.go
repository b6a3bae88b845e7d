package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// maxActivations is the number of attempts of an activation when the first rows of a table
// are written meanwhile.
const maxActivations = 5

var errAgain = errors.New("the rows of the store have changed meanwhile")

// ErrOutdated means that another schema is active in the store. Nothing
// was done; the request belongs to the active release.
var ErrOutdated error = fault.New(fault.Unavailable, "the schema has changed meanwhile; try again")

// Options configure an activation. The zero value is valid.
type Options struct {
	// Sources are those of the schema.
	Sources []diag.Source
	// Also, if not nil, is called in the transaction of the change, and in one of its own if the
	// catalog does not change. Its error refuses the activation. It may be called several times.
	Also func(*store.Tx) error
	// KeepRemoved keeps entities and fields of rows that the schema does not declare, instead of
	// refusing it. What is kept already stays kept in any case.
	KeepRemoved bool
}

// Activate activates the schema for the store's rows. It returns the catalog, and
// whether it has changed. A schema that the rows violate is refused with a *ChangeError,
// and nothing has changed; otherwise the change is one transaction.
//
// Fields and entities are added without touching a row. New unique indexes, and those of relations
// that were kept, are built and verified before the change, while the old schema serves. Others are
// built by BuildIndexes. If values of rows must be checked, transactions of the old schema fail with
// ErrOutdated for the last moment of it, even if the change is refused then. Activations of one
// store must not run at the same time. When ctx ends, the activation ends too, unless its change
// is already being committed: then it succeeds. In a cluster only the owner activates: the error matches
// store.ErrNotOwner if this node is not the owner, or another one was meanwhile.
//
// Kept fields and entities that the schema declares again are usual ones from then on. Their
// values are as they were, and are checked like those of any changed schema.
func Activate(ctx context.Context, st *store.Store, s *schema.Schema,
	opt Options) (c *Catalog, changed bool, err error) {
	if opt.Also == nil {
		opt.Also = func(*store.Tx) error { return nil }
	}
	owner, err := beginTenure(ctx, st)
	if err == nil {
		err = owner.takeOver(ctx)
	}
	if err != nil {
		return nil, false, fmt.Errorf("activate schema: %w", err)
	}
	for try := 1; ; try++ {
		a := activation{tenure: owner, schema: s, opt: opt}
		c, err := a.run(ctx)
		var refused *ChangeError
		switch {
		case err == nil:
			return c, a.changed, nil
		case errors.As(err, &refused):
			return nil, false, refused
		case !errors.Is(err, errAgain) || try == maxActivations:
			return nil, false, fmt.Errorf("activate schema: %w", err)
		}
	}
}

// activation is one attempt.
type activation struct {
	tenure
	schema  *schema.Schema
	opt     Options
	changed bool // the catalog has changed

	mu sync.Mutex
	// written has the keys of rows that were written and are not in the new indexes yet.
	written map[string]bool
	// entered has the rows written since the view as they are in new indexes, by
	// key; nil: without an entry.
	entered map[string]*layout.Row
	// deleted has the keys of rows that were deleted since the view.
	deleted map[string]bool
}

// run returns the active catalog.
func (a *activation) run(ctx context.Context) (c *Catalog, err error) {
	a.written, a.entered, a.deleted = map[string]bool{}, map[string]*layout.Row{}, map[string]bool{}
	stop := a.store.OnApply([]byte(layout.SpaceRows), func(_ store.Seq, ch store.Change) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.written[string(ch.Key)] = true
		if ch.Deleted {
			a.deleted[string(ch.Key)] = true
		}
	})
	defer stop()
	err = a.store.View(ctx, func(view *store.Tx) error {
		m, err := compare(view, a.schema, fileOf(a.schema, a.opt.Sources), a.opt.KeepRemoved)
		if err != nil {
			return err
		}
		if err := m.survey(view); err != nil {
			return err
		}
		if m.list.HasErrors() {
			return &ChangeError{m.list}
		}
		c = m.new
		if a.changed = m.changed; !m.changed {
			return a.decide(ctx, a.opt.Also)
		}
		if err := a.reserve(ctx, m); err != nil {
			return err
		}
		if err := a.buildAhead(ctx, view, m); err != nil {
			return err
		}
		if err := a.catchUp(ctx, view, m); err != nil {
			return err
		}
		return a.commit(ctx, view, m)
	})
	return c, err
}

// reserve assigns numbers to new tables and indexes. Indexes that get entries before the
// change are marked, so that they are dropped if the change fails.
func (a *activation) reserve(ctx context.Context, m *migration) error {
	var first uint32
	_, err := a.update(ctx, func(tx *store.Tx) error {
		next, err := readNumber(tx, layout.KeyNext)
		if err != nil {
			return err
		}
		first = max(1, uint32(next))
		for i := range m.fresh {
			if err := tx.Set(layout.NumberedKey(layout.SpaceDropped, first+uint32(i)), []byte{markReserved}); err != nil {
				return err
			}
		}
		return tx.Set([]byte(layout.KeyNext), binary.BigEndian.AppendUint32(nil, first+uint32(len(m.fresh))))
	})
	if err != nil {
		return err
	}
	for i, number := range m.fresh {
		*number = first + uint32(i)
	}
	for _, s := range m.surveys { // again, because the indexes have prefixes now
		if err := s.lay(m); err != nil {
			return err
		}
	}
	return nil
}

// The values of a mark in spaceDropped.
const (
	markReserved = 1 // by an activation that has not ended
	markDropped  = 2
)

// buildBatch is the number of entries that are written at once, buildBytes about the number
// of bytes of them, or of the rows that are read for them.
const (
	buildBatch = 1000
	buildBytes = 4 << 20
)

// takeBatch is the number of rows whose entries in so many indexes are updated at once:
// each row removes one entry and adds another in each index, which fit into a transaction.
func takeBatch(indexes int) int {
	return max(1, min(buildBatch/4, buildBytes/(2*layout.MaxEntryBytes*max(1, indexes))))
}

// buildAhead writes the entries of the view's rows to the new indexes. Duplicates
// were excluded before.
func (a *activation) buildAhead(ctx context.Context, view *store.Tx, m *migration) error {
	for _, s := range m.surveys {
		for _, at := range s.ahead {
			if err := a.buildOne(ctx, view, s, s.table.Indexes[at]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *activation) buildOne(ctx context.Context, view *store.Tx, s *survey, x *layout.Index) error {
	type entry struct{ key, tail []byte }
	var batch []entry
	bytes := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		_, err := a.update(ctx, func(tx *store.Tx) error {
			for _, e := range batch {
				if err := tx.Set(e.key, e.tail); err != nil {
					return err
				}
			}
			return nil
		})
		batch, bytes = nil, 0
		return err
	}
	err := layout.ScanRows(view, s.table, nil, func(r *layout.Row) (bool, error) {
		e := entry{s.table.EntryKey(nil, x, r.Values), []byte(r.Tail)}
		batch = append(batch, e)
		if bytes += len(e.key) + len(e.tail); len(batch) >= buildBatch || bytes > buildBytes {
			return true, flush()
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// catchUpRounds is the number of times that rows written meanwhile are added before writers
// are stopped for the rest.
const catchUpRounds = 20

// catchUp adds most of the rows written since the view.
func (a *activation) catchUp(ctx context.Context, view *store.Tx, m *migration) error {
	for range catchUpRounds {
		left := 0
		for _, s := range m.surveys {
			keys := a.takeWritten(s.table)
			left += len(keys)
			for some := range slices.Chunk(keys, takeBatch(len(s.ahead))) {
				var step catchUpStep
				_, err := a.update(ctx, func(tx *store.Tx) (err error) {
					step, err = a.updateEntries(tx, view, s, some)
					return err
				})
				if errors.Is(err, store.ErrConflict) { // they are being written: later
					a.putBack(some)
					continue
				}
				if err != nil {
					return err
				}
				for i, key := range some {
					a.entered[key] = step.entered[i]
				}
				a.putBack(step.misfits)
			}
		}
		if left < buildBatch {
			return nil
		}
	}
	return nil
}

// takeWritten removes and returns the keys of a table's written rows.
func (a *activation) takeWritten(t *layout.Table) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var keys []string
	for key := range a.written {
		if strings.HasPrefix(key, string(t.Prefix)) {
			keys = append(keys, key)
			delete(a.written, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (a *activation) putBack(keys []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range keys {
		a.written[key] = true
	}
}

// catchUpStep is the result of adding some rows.
type catchUpStep struct {
	entered []*layout.Row // by the keys that were added
	// misfits are the keys of rows that violate the schema; list has the reasons. The rows
	// may still change until writers are stopped.
	misfits []string
	list    diag.List
}

// updateEntries updates the entries of some rows in the new indexes to the transaction's
// snapshot, and checks the rows like the survey.
func (a *activation) updateEntries(tx, view *store.Tx, s *survey, keys []string) (step catchUpStep, err error) {
	if err := a.removeEntries(tx, view, s, keys); err != nil {
		return step, err
	}
	return a.enter(tx, s, keys)
}

// removeEntries removes the entries of some rows from the new indexes.
func (a *activation) removeEntries(tx, view *store.Tx, s *survey, keys []string) (err error) {
	for _, key := range keys {
		was, known := a.entered[key]
		if !known {
			if was, err = layout.ReadRow(view, s.table, key); err != nil {
				return err
			}
		}
		if was == nil {
			continue
		}
		for _, at := range s.ahead {
			if err := tx.Delete(s.table.EntryKey(nil, s.table.Indexes[at], was.Values)); err != nil {
				return err
			}
		}
	}
	return nil
}

// enter adds rows without entries to the new indexes.
func (a *activation) enter(tx *store.Tx, s *survey, keys []string) (step catchUpStep, err error) {
	for _, key := range keys {
		is, err := layout.ReadRow(tx, s.table, key)
		if err != nil {
			return step, err
		}
		found := len(step.list)
		if is != nil {
			if err := s.enter(tx, is, &step.list); err != nil {
				return step, err
			}
		}
		if len(step.list) > found {
			step.misfits = append(step.misfits, key)
			is = nil
		}
		step.entered = append(step.entered, is)
	}
	return step, nil
}

// frozen is set in the generation while an activation stops writers: no model has such a
// generation.
const frozen = 1 << 63

// commit makes the change. If existing rows must be checked, writers are stopped first:
// they fail with ErrOutdated until it is over.
func (a *activation) commit(ctx context.Context, view *store.Tx, m *migration) (err error) {
	if len(m.surveys) > 0 {
		defer func() {
			if err != nil {
				left := a.unfreeze(context.WithoutCancel(ctx))
				if errors.Is(left, store.ErrNotOwner) { // the next owner does it
					left = nil
				}
				err = errors.Join(err, left)
			}
		}()
		if err := a.freeze(ctx, m.old.Generation); err != nil {
			return err
		}
	}
	for _, s := range m.surveys {
		if err := a.addRest(ctx, view, s); err != nil {
			return err
		}
		if err := a.checkDeleted(ctx, s); err != nil {
			return err
		}
	}
	return a.decide(ctx, func(tx *store.Tx) error {
		now, err := readCatalog(tx)
		if err != nil {
			return err
		}
		if now.text() != m.old.text() { // something that was kept has been dropped
			return errAgain
		}
		for _, number := range m.empty {
			filled, err := hasRows(tx, number)
			if err != nil {
				return err
			}
			if filled {
				return errAgain
			}
		}
		if err := m.mark(tx); err != nil {
			return err
		}
		m.new.Generation = m.old.Generation + 1
		if err := m.new.write(tx); err != nil {
			return err
		}
		return a.opt.Also(tx)
	})
}

// decide runs the last transaction of an activation. The end of ctx cannot leave its outcome unknown.
func (a *activation) decide(ctx context.Context, do func(*store.Tx) error) error {
	if err := a.store.Barrier(ctx); err != nil { // ctx counts for the last time here
		return err
	}
	_, err := a.update(context.WithoutCancel(ctx), do)
	return err
}

// addRest adds the rows that were written and not added yet, while writers are stopped.
// All old entries are removed before new ones are added, because rows may have exchanged
// their values.
func (a *activation) addRest(ctx context.Context, view *store.Tx, s *survey) error {
	keys := a.takeWritten(s.table)
	batch := takeBatch(len(s.ahead))
	for some := range slices.Chunk(keys, batch) {
		_, err := a.update(ctx, func(tx *store.Tx) error { return a.removeEntries(tx, view, s, some) })
		if err != nil {
			return err
		}
	}
	for some := range slices.Chunk(keys, batch) {
		var step catchUpStep
		_, err := a.update(ctx, func(tx *store.Tx) (err error) {
			step, err = a.enter(tx, s, some)
			return err
		})
		if err != nil {
			return err
		}
		if step.list.HasErrors() {
			return &ChangeError{step.list}
		}
	}
	return nil
}

// freeze stops writers; the rows have that generation.
func (a *activation) freeze(ctx context.Context, generation uint64) error {
	_, err := a.update(ctx, func(tx *store.Tx) error { return writeGeneration(tx, generation|frozen) })
	return err
}

// unfreeze ends freeze, whose outcome may be unknown: it writes the generation in any case,
// so that it conflicts with a freeze that is being committed, and then sees it. A change
// that was committed although its activation failed is kept.
func (a *activation) unfreeze(ctx context.Context) error {
	_, err := a.update(ctx, func(tx *store.Tx) error {
		generation, err := readNumber(tx, layout.KeyGeneration)
		if err != nil {
			return err
		}
		return writeGeneration(tx, generation&^frozen)
	})
	return err
}

func writeGeneration(tx *store.Tx, generation uint64) error {
	return tx.Set([]byte(layout.KeyGeneration), binary.BigEndian.AppendUint64(nil, generation))
}

// mark records which indexes must be built, and which dropped.
func (m *migration) mark(tx *store.Tx) error {
	for _, number := range m.fresh {
		if err := tx.Delete(layout.NumberedKey(layout.SpaceDropped, *number)); err != nil {
			return err
		}
	}
	for _, number := range m.unbuilt {
		if err := tx.Set(layout.NumberedKey(layout.SpaceUnbuilt, *number), nil); err != nil {
			return err
		}
	}
	for _, number := range m.dropped {
		if err := tx.Set(layout.NumberedKey(layout.SpaceDropped, number), []byte{markDropped}); err != nil {
			return err
		}
		if err := tx.Delete(layout.NumberedKey(layout.SpaceUnbuilt, number)); err != nil {
			return err
		}
	}
	return nil
}

// enter checks a row like the survey and adds it to the new indexes, unless it violates the
// schema: then the list has the reason, and no index has an entry.
func (s *survey) enter(tx *store.Tx, r *layout.Row, list *diag.List) error {
	found := len(*list)
	if err := s.inspect(tx, r.Values, list); err != nil {
		return err
	}
	for _, at := range s.ahead {
		x := s.table.Indexes[at]
		if !x.Unique || x.HasNull(r.Values) {
			continue
		}
		holder, err := tx.Get(s.table.EntryKey(nil, x, r.Values))
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return err
		default:
			other := make([]schema.Value, len(s.table.Slots))
			if err := s.table.ReadTail(other, string(holder)); err != nil {
				return err
			}
			s.reportSame(list, at, other[s.table.ID].Text(), r.Values[s.table.ID].Text())
		}
	}
	if len(*list) > found {
		return nil
	}
	for _, at := range s.ahead {
		if err := tx.Set(s.table.EntryKey(nil, s.table.Indexes[at], r.Values), []byte(r.Tail)); err != nil {
			return err
		}
	}
	return nil
}
