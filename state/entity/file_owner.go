package entity

import (
	"errors"

	"runner.example/schema"
	"runner.example/state/entity/catalog"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// FileOwner names the field of a row that has a file, as references to blobs do: see layout.AppendFileReference. It is the
// same in all releases that declare the field, also under another name.
type FileOwner struct {
	Table, Field uint32
	Tail         string
}

// fileOwner returns the owner of the file in a slot of a row.
func (t *table) fileOwner(values []schema.Value, slot int) FileOwner {
	return FileOwner{t.Number, t.Slots[slot].Number, string(t.TailOf(nil, values))}
}

// FileOf returns the file that the owner has; false: it has none, or the schema does not declare its field. It evaluates no
// rules. Faults: Unavailable, and ErrOutdated.
func (m *Model) FileOf(tx *store.Tx, owner FileOwner) (schema.File, bool, error) {
	generation, err := catalog.ReadGeneration(tx)
	switch {
	case err != nil:
		return schema.File{}, false, storeFault(err)
	case generation != m.generation:
		return schema.File{}, false, ErrOutdated
	}
	t := m.fileTable(owner)
	if t == nil {
		return schema.File{}, false, nil
	}
	raw, err := tx.Get(append(append([]byte(nil), t.Prefix...), owner.Tail...))
	if err != nil {
		if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		return schema.File{}, false, err
	}
	files, err := layout.FilesIn(nil, string(raw))
	for i := range files {
		if files[i].Field == owner.Field {
			return files[i].File, true, nil
		}
	}
	return schema.File{}, false, err
}

// fileTable returns the table whose field the owner names; nil: the schema does not declare it.
func (m *Model) fileTable(owner FileOwner) *table {
	for _, t := range m.tables {
		if t.Number != owner.Table || t.Entity == nil {
			continue
		}
		for i := range t.Slots {
			if s := &t.Slots[i]; s.Number == owner.Field && s.Field.Type.Kind == schema.FileKind {
				return t
			}
		}
	}
	return nil
}
