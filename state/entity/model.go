package entity

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/state/entity/catalog"
	"runner.example/state/entity/layout"
	"runner.example/state/entity/query"
	"runner.example/state/store"
)

// ErrOutdated means that another schema than the model's is active in the store. Nothing
// was done; the request belongs to the active release.
var ErrOutdated = catalog.ErrOutdated

// Options configure a model. The zero value is enough for tests.
type Options struct {
	// CursorKey encrypts the cursors of pages. They are valid under another model with the
	// same key.
	CursorKey [32]byte
	// Logger logs activations and missing indexes; nil discards them.
	Logger *slog.Logger
	// Also and KeepRemoved are for Activate: see catalog.Options.
	Also        func(*store.Tx) error
	KeepRemoved bool
}

// Model is a schema with the layout of its rows in a store. It is created by Activate,
// immutable except for indexes that become built, and safe for concurrent use.
type Model struct {
	schema     *schema.Schema
	store      *store.Store
	generation uint64
	tables     map[string]*table
	names      []string                 // of the tables, in the order of the schema
	owners     map[*schema.Field]*table // of relations
	cursors    *query.CursorSealer
	logger     *slog.Logger // nil: nothing is logged
	logged     sync.Map     // missing indexes that were logged, by operation, entity and index
}

// table is one entity: the layout of its rows, and what the schema says about them.
type table struct {
	*layout.Table
	rights *query.Rights
	labels []string // by slot: `"name":`; nil in untyped mode
	// referrers are the relations that refer to this table.
	referrers []referrer
	// relations are the slots that refer to rows, except the tenant.
	relations []relation
}

// newTable returns a table without rights and relations.
func newTable(rows *layout.Table) *table {
	t := &table{Table: rows}
	if t.Entity != nil {
		for _, s := range t.Slots {
			t.labels = append(t.labels, string(query.AppendText(nil, s.Field.Name))+":")
		}
	}
	return t
}

// object returns, in untyped mode, the row as conditions and rules see it.
func (t *table) object(values []schema.Value) query.UntypedRow {
	return query.UntypedRow{
		ID: values[layout.UntypedID].Text(), Object: layout.BorrowBytes(values[layout.UntypedObject].Text()),
	}
}

// relation is a slot that refers to a row of a table.
type relation struct {
	slot  int
	table *table
}

// referrer is a relation, seen from the table that it refers to.
type referrer struct {
	table    *table
	slot     int
	index    *layout.Index
	onDelete schema.OnDelete
}

// Activate activates the schema for the store's rows and returns its model: see
// catalog.Activate. Transactions of earlier models then fail with ErrOutdated. Indexes that are
// not built yet are built by BuildIndexes, and are not used until then.
func Activate(ctx context.Context, st *store.Store, s *schema.Schema, sources []diag.Source,
	opt Options) (*Model, error) {
	c, changed, err := catalog.Activate(ctx, st, s, catalog.Options{
		Sources: sources, Also: opt.Also, KeepRemoved: opt.KeepRemoved,
	})
	if err != nil {
		return nil, err
	}
	m, err := newModel(context.WithoutCancel(ctx), st, s, c, opt)
	if err == nil && changed && opt.Logger != nil {
		opt.Logger.Info("schema activated", "generation", m.generation)
		if kept := c.Kept(); len(kept) > 0 {
			opt.Logger.Info("fields of other releases kept", "fields", kept)
		}
	}
	return m, err
}

// Current returns the model of the schema if it is the active one of the store, or if there
// never was another. Unlike Activate it does not change rows of another schema: the model
// is nil then.
func Current(ctx context.Context, st *store.Store, s *schema.Schema, opt Options) (*Model, error) {
	var match catalog.Match
	err := st.View(ctx, func(tx *store.Tx) (err error) {
		match, err = catalog.MatchSchema(tx, s)
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("compare schema with rows: %w", err)
	case match.Empty && match.Changed:
		return Activate(ctx, st, s, nil, opt)
	case match.Changed:
		return nil, nil
	}
	return newModel(ctx, st, s, match.Catalog, opt)
}

// newModel returns the model of a schema with this catalog.
func newModel(ctx context.Context, st *store.Store, s *schema.Schema, c *catalog.Catalog, opt Options) (*Model, error) {
	m := &Model{
		schema: s, store: st, generation: c.Generation, tables: map[string]*table{}, owners: map[*schema.Field]*table{},
		names:   s.EntityNames(),
		cursors: query.NewCursorSealer(opt.CursorKey), logger: opt.Logger,
	}
	for _, name := range m.names {
		rows, err := c.Layout(s, name)
		if err != nil {
			return nil, fmt.Errorf("activate schema: %w", err)
		}
		t := newTable(rows)
		t.rights = query.NewRights(s, name)
		m.tables[name] = t
	}
	rights := map[string]*query.Rights{}
	for _, name := range m.names {
		m.connect(m.tables[name])
		rights[name] = m.tables[name].rights
	}
	query.Relate(rights)
	if err := catalog.MarkBuilt(ctx, st, m.layouts()); err != nil {
		return nil, fmt.Errorf("activate schema: %w", err)
	}
	return m, nil
}

// connect adds the tables that t has relations to.
func (m *Model) connect(t *table) {
	if t.Entity == nil {
		return
	}
	for _, f := range t.Entity.Fields {
		if f.Type.Kind != schema.Relation {
			continue
		}
		target := m.tables[f.Type.Entity.Name]
		m.owners[f] = t
		if f.Pos != t.Tenant {
			t.relations = append(t.relations, relation{f.Pos, target})
		}
		at := slices.IndexFunc(t.Indexes, func(x *layout.Index) bool { return t.isIndexOf(x, f.Pos) })
		target.referrers = append(target.referrers, referrer{t, f.Pos, t.Indexes[at], f.OnDelete})
	}
}

// isIndexOf reports whether the index is that of the relation in the slot.
func (t *table) isIndexOf(x *layout.Index, slot int) bool {
	want := []layout.Column{{Slot: slot}}
	if t.Tenant >= 0 && slot != t.Tenant {
		want = append(want, layout.Column{Slot: t.Tenant})
	}
	return !x.Unique && slices.Equal(x.Columns, want)
}

// layouts returns the tables in the order of the schema.
func (m *Model) layouts() []*layout.Table {
	var list []*layout.Table
	for _, name := range m.names {
		list = append(list, m.tables[name].Table)
	}
	return list
}

// BuildIndexes builds the indexes that are not built yet: see catalog.BuildIndexes. Any
// goroutine may call it while the model serves. progress may be nil.
func (m *Model) BuildIndexes(ctx context.Context, progress func(catalog.Progress)) error {
	return catalog.BuildIndexes(ctx, m.store, m.generation, m.layouts(), progress)
}

// tableNamed returns the table of an entity, nil when there is none.
func (m *Model) tableNamed(name string) *table { return m.tables[name] }

// Schema returns the schema of the model.
func (m *Model) Schema() *schema.Schema { return m.schema }
