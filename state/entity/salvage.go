package entity

import (
	"context"
	"errors"
	"fmt"

	"runner.example/schema"
	"runner.example/state/entity/catalog"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// StoredRow is a row in the store. Its bytes are borrowed.
type StoredRow struct {
	Key    []byte // of the row in the store
	Tenant string // "" without
	JSON   []byte // an object of all fields, hidden ones included
	Err    error  // why the row cannot be read; then JSON is nil
}

// ErrNoCatalog means that the store has rows, but not the catalog that assigns them to
// entities.
var ErrNoCatalog = errors.New("the entity catalog cannot be read, and rows cannot be read without it")

// EachRow calls fn for every row of every entity in a salvaged store, entity by entity. It
// reads only rows and the catalog. The schema must be the active one of the store, or one that
// declares entities and fields that are kept. It returns those that it does not declare.
func EachRow(ctx context.Context, st *store.Store, s *schema.Schema,
	fn func(entity string, row *StoredRow) error) (kept []string, err error) {
	err = st.View(ctx, func(tx *store.Tx) error {
		match, err := catalog.MatchSchema(tx, s)
		if err != nil {
			return fmt.Errorf("compare schema with rows: %w", err)
		}
		if match.Empty {
			return noRows(tx)
		}
		if match.Changed && !match.Readable {
			return errors.New("the schema in the app directory is not the active one of the store: restore that one")
		}
		kept = match.Catalog.Kept()
		for _, name := range s.EntityNames() {
			rows, err := match.Catalog.Layout(s, name)
			if err != nil {
				return err
			}
			if err := newTable(rows).eachStored(tx, func(row *StoredRow) error { return fn(name, row) }); err != nil {
				return err
			}
		}
		return nil
	})
	return kept, err
}

// noRows fails if there are rows.
func noRows(tx *store.Tx) error {
	for _, err := range tx.Scan([]byte(layout.SpaceRows), nil, false) {
		if err != nil {
			return err
		}
		return ErrNoCatalog
	}
	return nil
}

func (t *table) eachStored(tx *store.Tx, fn func(*StoredRow) error) error {
	var positions []int
	if t.Entity != nil {
		for _, f := range t.Entity.Fields {
			if f.Type.Kind != schema.ToMany {
				positions = append(positions, f.Pos)
			}
		}
	}
	r := layout.Row{Values: make([]schema.Value, len(t.Slots))}
	stored := &StoredRow{}
	for item, err := range tx.Scan(t.Prefix, nil, false) {
		if err != nil {
			return err
		}
		r.Tail, r.Raw = layout.BorrowString(item.Key[len(t.Prefix):]), layout.BorrowString(item.Value)
		stored.Key, stored.Tenant, stored.JSON = item.Key, "", stored.JSON[:0]
		if stored.Err = t.DecodeRow(&r); stored.Err == nil {
			if t.Tenant >= 0 {
				stored.Tenant = r.Values[t.Tenant].Text()
			}
			if t.Entity == nil {
				stored.JSON = t.object(r.Values).AppendJSON(stored.JSON, nil)
			} else {
				stored.JSON = t.appendFields(stored.JSON, r.Values, positions)
			}
		}
		if err := fn(stored); err != nil {
			return err
		}
	}
	return nil
}
