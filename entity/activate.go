package entity

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/store"
)

// maxActivations is how often an activation begins again because another one, or
// the first rows of a table, came between.
const maxActivations = 5

var errAgain = errors.New("the store's rows changed meanwhile")

// Activate makes the store's rows obey the schema and returns its model. What the
// rows do not fit is refused with a *ChangeError, and nothing has changed; else
// the change is one transaction. Transactions of models made before then fail
// with ErrOutdated.
//
// Fields and entities are added without touching a row. New unique indexes are
// built and verified before the change is made, while the old model goes on
// serving; others are built by BuildIndexes, and until then not used. The sources
// are those of the schema. Activations of one store must not run at the same
// time.
func Activate(ctx context.Context, st *store.Store, s *schema.Schema, sources []diag.Source, opt Options) (*Model, error) {
	if err := dropAbandoned(ctx, st); err != nil {
		return nil, fmt.Errorf("activate schema: %w", err)
	}
	for try := 1; ; try++ {
		a := activation{store: st, schema: s, sources: sources}
		c, err := a.run(ctx)
		var refused *ChangeError
		switch {
		case err == nil:
			return newModel(ctx, st, s, c, opt)
		case errors.As(err, &refused):
			return nil, refused
		case !errors.Is(err, errAgain) || try == maxActivations:
			return nil, fmt.Errorf("activate schema: %w", err)
		}
	}
}

// activation is one try.
type activation struct {
	store   *store.Store
	schema  *schema.Schema
	sources []diag.Source

	mu sync.Mutex
	// written are the keys of rows that were written since it began.
	written map[string]bool
}

// run returns the catalog that the rows obey now.
func (a *activation) run(ctx context.Context) (c *catalog, err error) {
	a.written = map[string]bool{}
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
		if !m.changed {
			return nil
		}
		if err := a.reserve(ctx, m); err != nil {
			return err
		}
		if err := a.buildUnique(ctx, view, m); err != nil {
			return err
		}
		return a.commit(ctx, view, m)
	})
	return c, err
}

// reserve gives numbers to the new tables and indexes. Those that get entries
// before the change is made are marked, so that they are dropped if it never is.
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
	for _, s := range m.surveys { // again, now that the indexes have prefixes
		if s.table, err = newTable(s.entry, s.entity); err != nil {
			return err
		}
	}
	return nil
}

// What a mark in spaceDropped says.
const (
	markReserved = 1 // by an activation that is not over
	markDropped  = 2
)

// buildBatch is how many entries are written at once, and buildBytes how many
// bytes of rows are read for them.
const (
	buildBatch = 1000
	buildBytes = 4 << 20
)

// buildUnique enters the rows of the view into the new unique indexes. It has
// been found that no two have the same keys.
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
		if len(c.list) >= buildBatch {
			return true, flush()
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// commit makes the change, once what was written since the view was taken fits
// too.
func (a *activation) commit(ctx context.Context, view *store.Tx, m *migration) error {
	_, err := a.store.Update(ctx, func(tx *store.Tx) error {
		generation, err := readNumber(tx, keyGeneration)
		if err != nil {
			return err
		}
		if generation != m.old.Generation {
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
		for _, s := range m.surveys {
			if err := tx.DependOn(s.table.prefix); err != nil {
				return err
			}
			if err := a.catchUp(tx, view, s); err != nil {
				return err
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

// mark says which indexes have yet to be built, and which to be dropped.
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

// catchUp brings the new unique indexes of a table up to the transaction's
// snapshot, and asks the rows written since the view what the survey asked the
// others.
func (a *activation) catchUp(tx, view *store.Tx, s *survey) error {
	a.mu.Lock()
	var keys []string
	for key := range a.written {
		if len(key) > len(s.table.prefix) && key[:len(s.table.prefix)] == string(s.table.prefix) {
			keys = append(keys, key)
		}
	}
	a.mu.Unlock()
	slices.Sort(keys)
	var now []row
	for _, key := range keys {
		was, err := rowAt(view, s.table, key)
		if err != nil {
			return err
		}
		if was != nil {
			for _, at := range s.unique {
				if err := tx.Delete(s.table.entryKey(nil, s.table.indexes[at], was.values)); err != nil {
					return err
				}
			}
		}
		is, err := rowAt(tx, s.table, key)
		if err != nil {
			return err
		}
		if is != nil {
			now = append(now, *is)
		}
	}
	var list diag.List
	for i := range now {
		s.inspect(now[i].values, &list)
		for _, at := range s.unique {
			if err := s.enter(tx, at, &now[i], &list); err != nil {
				return err
			}
		}
	}
	if list.HasErrors() {
		return &ChangeError{list}
	}
	return nil
}

// enter puts a row into a unique index unless another has its place.
func (s *survey) enter(tx *store.Tx, at int, r *row, list *diag.List) error {
	x := s.table.indexes[at]
	key := s.table.entryKey(nil, x, r.values)
	if x.hasNull(r.values) {
		return tx.Set(key, []byte(r.tail))
	}
	holder, err := tx.Get(key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return tx.Set(key, []byte(r.tail))
	case err != nil:
		return err
	}
	other := row{tail: string(holder), values: make([]schema.Value, len(s.table.slots))}
	if err := s.table.readTail(other.values, other.tail); err != nil {
		return err
	}
	s.tellSame(list, at, other.values[s.table.id].Text(), r.values[s.table.id].Text())
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

// newModel makes the model of a schema whose rows obey the catalog.
func newModel(ctx context.Context, st *store.Store, s *schema.Schema, c *catalog, opt Options) (*Model, error) {
	m := &Model{
		schema: s, store: st, generation: c.Generation, tables: map[string]*table{}, names: s.EntityNames(),
		cursors: newSealer(opt.CursorKey), logger: opt.Logger,
	}
	if m.logger == nil {
		m.logger = slog.New(slog.DiscardHandler)
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
			x.built.Store(!slices.Contains(unbuilt, x.number))
		}
	}
	return m, nil
}

// connect tells the tables that t has relations to.
func (m *Model) connect(t *table) {
	if t.entity == nil {
		return
	}
	for _, f := range t.entity.Fields {
		if f.Type.Kind != schema.Relation {
			continue
		}
		target := m.tables[f.Type.Entity.Name]
		if f.Pos != t.tenant {
			t.relations = append(t.relations, relation{f.Pos, target})
		}
		onDelete := f.OnDelete
		if onDelete == schema.Clear && !f.Type.Optional {
			onDelete = schema.Restrict // there is nothing to clear it to
		}
		at := slices.IndexFunc(t.indexes, func(x *index) bool { return t.leadsBy(x, f.Pos) })
		target.referrers = append(target.referrers, referrer{t, f.Pos, t.indexes[at], onDelete})
	}
}

// leadsBy reports that the index is the one that every relation has.
func (t *table) leadsBy(x *index, slot int) bool {
	want := []indexColumn{{slot: slot}}
	if t.tenant >= 0 && slot != t.tenant {
		want = append(want, indexColumn{slot: t.tenant})
	}
	return !x.unique && slices.Equal(x.columns, want)
}
