package entity

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/store"
)

// maxActivations is the number of attempts of an activation when the first rows of a table
// are written meanwhile.
const maxActivations = 5

var errAgain = errors.New("the rows of the store have changed meanwhile")

// Activate activates the schema for the store's rows and returns its model. A schema that
// the rows violate is refused with a *ChangeError, and nothing has changed; otherwise the
// change is one transaction. Transactions of earlier models then fail with ErrOutdated.
//
// Fields and entities are added without touching a row. New unique indexes are built and
// verified before the change, while the old model serves. Others are built by BuildIndexes,
// and are not used until then. If values of rows must be checked, transactions of the old
// model fail with ErrOutdated for the last moment of it, even if the change is refused
// then. sources are those of the schema. Activations of one store must not run at the same
// time. When ctx ends, the activation ends too, unless its change is already being
// committed: then it succeeds.
func Activate(ctx context.Context, st *store.Store, s *schema.Schema, sources []diag.Source, opt Options) (*Model, error) {
	if err := errors.Join(thaw(ctx, st), dropAbandoned(ctx, st)); err != nil {
		return nil, fmt.Errorf("activate schema: %w", err)
	}
	for try := 1; ; try++ {
		a := activation{store: st, schema: s, sources: sources}
		c, err := a.run(ctx)
		var refused *ChangeError
		switch {
		case err == nil:
			m, err := newModel(context.WithoutCancel(ctx), st, s, c, opt)
			if err == nil && a.changed && opt.Logger != nil {
				opt.Logger.Info("schema activated", "generation", m.generation)
			}
			return m, err
		case errors.As(err, &refused):
			return nil, refused
		case !errors.Is(err, errAgain) || try == maxActivations:
			return nil, fmt.Errorf("activate schema: %w", err)
		}
	}
}

// activation is one attempt.
type activation struct {
	store   *store.Store
	schema  *schema.Schema
	sources []diag.Source
	changed bool // the catalog has changed

	mu sync.Mutex
	// written has the keys of rows that were written and are not in the new indexes yet.
	written map[string]bool
	// entered has the rows written since the view as they are in new unique indexes, by
	// key; nil: without an entry.
	entered map[string]*row
}

// run returns the active catalog.
func (a *activation) run(ctx context.Context) (c *catalog, err error) {
	a.written, a.entered = map[string]bool{}, map[string]*row{}
	stop := a.store.OnApply([]byte(spaceRows), func(_ store.Seq, ch store.Change) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.written[string(ch.Key)] = true
	})
	defer stop()
	err = a.store.View(ctx, func(view *store.Tx) error {
		m, err := compare(view, a.schema, fileOf(a.schema, a.sources))
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
			return nil
		}
		if err := a.reserve(ctx, m); err != nil {
			return err
		}
		if err := a.buildUnique(ctx, view, m); err != nil {
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
	_, err := a.store.Update(ctx, func(tx *store.Tx) error {
		next, err := readNumber(tx, keyNext)
		if err != nil {
			return err
		}
		first = max(1, uint32(next))
		for i := range m.fresh {
			if err := tx.Set(numbered(spaceDropped, first+uint32(i)), []byte{markReserved}); err != nil {
				return err
			}
		}
		return tx.Set([]byte(keyNext), binary.BigEndian.AppendUint32(nil, first+uint32(len(m.fresh))))
	})
	if err != nil {
		return err
	}
	for i, number := range m.fresh {
		*number = first + uint32(i)
	}
	for _, s := range m.surveys { // again, because the indexes have prefixes now
		if s.table, err = newTable(s.entry, s.entity); err != nil {
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
	return max(1, min(buildBatch/4, buildBytes/(2*maxEntryBytes*max(1, indexes))))
}

// buildUnique writes the entries of the view's rows to the new unique indexes. Duplicates
// were excluded before.
func (a *activation) buildUnique(ctx context.Context, view *store.Tx, m *migration) error {
	for _, s := range m.surveys {
		for _, at := range s.unique {
			if err := a.buildOne(ctx, view, s, s.table.indexes[at]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *activation) buildOne(ctx context.Context, view *store.Tx, s *survey, x *index) error {
	c := &changes{}
	flush := func() error {
		if len(c.list) == 0 {
			return nil
		}
		_, err := a.store.Update(ctx, func(tx *store.Tx) error {
			for _, ch := range c.list {
				if err := tx.Set([]byte(ch.key), ch.value); err != nil {
					return err
				}
			}
			return nil
		})
		c = &changes{}
		return err
	}
	err := eachRow(view, s.table, nil, func(r *row) (bool, error) {
		c.set(s.table.entryKey(nil, x, r.values), []byte(r.tail))
		if len(c.list) >= buildBatch || c.bytes > buildBytes {
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
			for some := range slices.Chunk(keys, takeBatch(len(s.unique))) {
				var step catchingUp
				_, err := a.store.Update(ctx, func(tx *store.Tx) (err error) {
					step, err = a.takeIn(tx, view, s, some)
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
func (a *activation) takeWritten(t *table) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var keys []string
	for key := range a.written {
		if strings.HasPrefix(key, string(t.prefix)) {
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

// catchingUp is the result of adding some rows.
type catchingUp struct {
	entered []*row // by the keys that were added
	// misfits are the keys of rows that violate the schema; list has the reasons. The rows
	// may still change until writers are stopped.
	misfits []string
	list    diag.List
}

// takeIn updates the entries of some rows in the new unique indexes to the transaction's
// snapshot, and checks the rows like the survey.
func (a *activation) takeIn(tx, view *store.Tx, s *survey, keys []string) (step catchingUp, err error) {
	if err := a.takeOut(tx, view, s, keys); err != nil {
		return step, err
	}
	return a.enter(tx, s, keys)
}

// takeOut removes the entries of some rows from the new unique indexes.
func (a *activation) takeOut(tx, view *store.Tx, s *survey, keys []string) (err error) {
	for _, key := range keys {
		was, known := a.entered[key]
		if !known {
			if was, err = rowAt(view, s.table, key); err != nil {
				return err
			}
		}
		if was == nil {
			continue
		}
		for _, at := range s.unique {
			if err := tx.Delete(s.table.entryKey(nil, s.table.indexes[at], was.values)); err != nil {
				return err
			}
		}
	}
	return nil
}

// enter adds rows without entries to the new unique indexes.
func (a *activation) enter(tx *store.Tx, s *survey, keys []string) (step catchingUp, err error) {
	for _, key := range keys {
		is, err := rowAt(tx, s.table, key)
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
				err = errors.Join(err, unfreeze(context.WithoutCancel(ctx), a.store))
			}
		}()
		if err := freeze(ctx, a.store, m.old.Generation); err != nil {
			return err
		}
	}
	for _, s := range m.surveys {
		if err := a.takeRest(ctx, view, s); err != nil {
			return err
		}
	}
	if err := a.store.Barrier(ctx); err != nil { // ctx counts for the last time here
		return err
	}
	_, err = a.store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
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
		return m.new.write(tx)
	})
	return err
}

// takeRest adds the rows that were written and not added yet, while writers are stopped.
// All old entries are removed before new ones are added, because rows may have exchanged
// their values.
func (a *activation) takeRest(ctx context.Context, view *store.Tx, s *survey) error {
	keys := a.takeWritten(s.table)
	batch := takeBatch(len(s.unique))
	for some := range slices.Chunk(keys, batch) {
		_, err := a.store.Update(ctx, func(tx *store.Tx) error { return a.takeOut(tx, view, s, some) })
		if err != nil {
			return err
		}
	}
	for some := range slices.Chunk(keys, batch) {
		var step catchingUp
		_, err := a.store.Update(ctx, func(tx *store.Tx) (err error) {
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
func freeze(ctx context.Context, st *store.Store, generation uint64) error {
	_, err := st.Update(ctx, func(tx *store.Tx) error { return writeGeneration(tx, generation|frozen) })
	return err
}

// unfreeze ends freeze, whose outcome may be unknown: it writes the generation in any case,
// so that it conflicts with a freeze that is being committed, and then sees it. A change
// that was committed although its activation failed is kept.
func unfreeze(ctx context.Context, st *store.Store) error {
	_, err := st.Update(ctx, func(tx *store.Tx) error {
		generation, err := readNumber(tx, keyGeneration)
		if err != nil {
			return err
		}
		return writeGeneration(tx, generation&^frozen)
	})
	return err
}

// thaw ends the freeze of an activation that did not end.
func thaw(ctx context.Context, st *store.Store) error {
	_, err := st.Update(ctx, func(tx *store.Tx) error {
		generation, err := readNumber(tx, keyGeneration)
		if err != nil || generation&frozen == 0 {
			return err
		}
		return writeGeneration(tx, generation&^frozen)
	})
	return err
}

func writeGeneration(tx *store.Tx, generation uint64) error {
	return tx.Set([]byte(keyGeneration), binary.BigEndian.AppendUint64(nil, generation))
}

// mark records which indexes must be built, and which dropped.
func (m *migration) mark(tx *store.Tx) error {
	for _, number := range m.fresh {
		if err := tx.Delete(numbered(spaceDropped, *number)); err != nil {
			return err
		}
	}
	for _, number := range m.unbuilt {
		if err := tx.Set(numbered(spaceUnbuilt, *number), nil); err != nil {
			return err
		}
	}
	for _, number := range m.dropped {
		if err := tx.Set(numbered(spaceDropped, number), []byte{markDropped}); err != nil {
			return err
		}
		if err := tx.Delete(numbered(spaceUnbuilt, number)); err != nil {
			return err
		}
	}
	return nil
}

// enter checks a row like the survey and adds it to the new unique indexes, unless it
// violates the schema: then the list has the reason, and no index has an entry.
func (s *survey) enter(tx *store.Tx, r *row, list *diag.List) error {
	found := len(*list)
	s.inspect(r.values, list)
	for _, at := range s.unique {
		x := s.table.indexes[at]
		if x.hasNull(r.values) {
			continue
		}
		holder, err := tx.Get(s.table.entryKey(nil, x, r.values))
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return err
		default:
			other := make([]schema.Value, len(s.table.slots))
			if err := s.table.readTail(other, string(holder)); err != nil {
				return err
			}
			s.tellSame(list, at, other[s.table.id].Text(), r.values[s.table.id].Text())
		}
	}
	if len(*list) > found {
		return nil
	}
	for _, at := range s.unique {
		if err := tx.Set(s.table.entryKey(nil, s.table.indexes[at], r.values), []byte(r.tail)); err != nil {
			return err
		}
	}
	return nil
}

// rowAt reads the row of a key, nil when there is none.
func rowAt(tx *store.Tx, t *table, key string) (*row, error) {
	raw, err := tx.Get([]byte(key))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	r := &row{tail: key[len(t.prefix):], raw: borrow(raw), values: make([]schema.Value, len(t.slots))}
	return r, r.decode(t)
}

// newModel returns the model of a schema with this catalog.
func newModel(ctx context.Context, st *store.Store, s *schema.Schema, c *catalog, opt Options) (*Model, error) {
	m := &Model{
		schema: s, store: st, generation: c.Generation, tables: map[string]*table{}, owners: map[*schema.Field]*table{}, names: s.EntityNames(),
		cursors: newSealer(opt.CursorKey),
	}
	for _, name := range m.names {
		t, err := newTable(c.table(name), s.Entity(name))
		if err != nil {
			return nil, fmt.Errorf("activate schema: %s: %w", name, err)
		}
		t.rights = newRights(s, name)
		m.tables[name] = t
	}
	for _, name := range m.names {
		m.connect(m.tables[name])
	}
	unbuilt, err := m.unbuilt(ctx)
	if err != nil {
		return nil, fmt.Errorf("activate schema: %w", err)
	}
	for _, t := range m.tables {
		for _, x := range t.indexes {
			if !slices.Contains(unbuilt, x.number) {
				x.builtAt.Store(1)
			}
		}
	}
	return m, nil
}

// connect adds the tables that t has relations to.
func (m *Model) connect(t *table) {
	if t.entity == nil {
		return
	}
	for _, f := range t.entity.Fields {
		if f.Type.Kind != schema.Relation {
			continue
		}
		target := m.tables[f.Type.Entity.Name]
		m.owners[f] = t
		if f.Pos != t.tenant {
			t.relations = append(t.relations, relation{f.Pos, target})
		}
		at := slices.IndexFunc(t.indexes, func(x *index) bool { return t.leadsBy(x, f.Pos) })
		target.referrers = append(target.referrers, referrer{t, f.Pos, t.indexes[at], f.OnDelete})
	}
}

// leadsBy reports whether the index is the one of the relation in that slot.
func (t *table) leadsBy(x *index, slot int) bool {
	want := []indexColumn{{slot: slot}}
	if t.tenant >= 0 && slot != t.tenant {
		want = append(want, indexColumn{slot: t.tenant})
	}
	return !x.unique && slices.Equal(x.columns, want)
}
