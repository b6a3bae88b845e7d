package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/wait"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// Drop deletes entities and fields for good that are kept: that the active schema does not declare.
// A field is removed from each row, an entity's rows are deleted. It works in transactions beside
// those that serve, and never changes the generation: no model reads what is kept.
//
//	rows      the field is removed from each row that has it; or rows are deleted
//	catalog   the entry is removed, in the transaction of the last rows
//	indexes   entries of a dropped entity's indexes are deleted, which were marked before its rows
//
// Interrupted, it can begin again: rows without the field stay as they are. It begins again by itself if
// another schema was active between two steps, because rows may have got the field meanwhile.

// DropStep is what one transaction of a drop has done.
type DropStep struct {
	// Looked is the number of rows that were read, Changed that of those that were changed or deleted.
	Looked, Changed int
	// Next is the position for the next step: the generation of the catalog, and the key of a row. It is
	// nil after the last one.
	Next []byte
}

// dropBatch is the number of rows that one transaction reads. It leaves dropReserve bytes of the
// transaction to the catalog and the audit.
const (
	dropBatch   = 500
	dropReserve = 1 << 20
)

// kept is an entity or a field that can be dropped.
type kept struct {
	catalog *Catalog
	table   *tableEntry
	field   *fieldEntry // nil: the whole table
}

// CountKept returns the number of rows of the entity with that name, or of the entity that has the
// field: "Order", "Order.note". The error is a fault: NotFound if nothing of that name is kept, Invalid
// if the active schema declares it.
func CountKept(ctx context.Context, st *store.Store, name string) (rows int, err error) {
	err = st.View(ctx, func(tx *store.Tx) error {
		k, err := findKept(tx, name)
		if err != nil {
			return err
		}
		rows, err = countRows(tx, k.table.Number)
		return err
	})
	return rows, err
}

func countRows(tx *store.Tx, number uint32) (rows int, err error) {
	for _, err := range tx.Scan(layout.NumberedKey(layout.SpaceRows, number), nil, false) {
		if err != nil {
			return 0, err
		}
		rows++
	}
	return rows, nil
}

func findKept(tx *store.Tx, name string) (k kept, err error) {
	if k.catalog, err = readCatalog(tx); err != nil {
		return k, err
	}
	entity, field, isField := strings.Cut(name, ".")
	if k.table = k.catalog.table(entity); k.table != nil && isField {
		at := slices.IndexFunc(k.table.Fields, func(f fieldEntry) bool {
			return f.Name == field && (f.Kept || !k.table.Kept)
		})
		if at >= 0 {
			k.field = &k.table.Fields[at]
		}
	}
	switch {
	case k.table == nil || isField && k.field == nil:
		return k, fault.New(fault.NotFound, "rows have no %s%s", name, diag.DidYouMean(name, k.catalog.Kept())).
			WithHint("runner check --against <data> lists stored fields and entities that the schema does not declare")
	case isField && !k.field.Kept, !isField && !k.table.Kept:
		return k, fault.New(fault.Invalid,
			"the active release declares %s: activate one that declares it with @removed first", name)
	}
	return k, nil
}

// Drop deletes a part of what is kept under that name, from a position on; nil is the begin. also is
// called in the same transaction with what the step does. The error is one of CountKept, or of the
// store. Any node of a cluster may do it.
func Drop(ctx context.Context, st *store.Store, name string, from []byte,
	also func(*store.Tx, DropStep) error) (step DropStep, err error) {
	for batch := dropBatch; ; {
		_, err = st.Update(ctx, func(tx *store.Tx) error {
			generation, err := readNumber(tx, layout.KeyGeneration)
			switch {
			case err != nil:
				return err
			case generation&frozen != 0:
				return errFrozen
			}
			k, err := findKept(tx, name)
			if err != nil {
				return err
			}
			key := keyAt(from, generation)
			if k.field != nil {
				step, err = k.dropField(tx, key, batch)
			} else {
				step, err = k.dropRows(tx, key)
			}
			if err != nil {
				return err
			}
			if step.Next != nil {
				step.Next = append(binary.BigEndian.AppendUint64(nil, generation), step.Next...)
			}
			return also(tx, step)
		})
		switch {
		case errors.Is(err, store.ErrConflict) && batch > 1:
			batch /= 2 // rows are being written here: take fewer at a time
		case errors.Is(err, errFrozen): // nothing can be written until the activation has ended
			if wait.For(ctx, frozenPause) != nil {
				return step, context.Cause(ctx)
			}
		default:
			return step, err
		}
	}
}

// keyAt returns the key of a position, nil if it is the begin or one of another generation.
func keyAt(position []byte, generation uint64) []byte {
	const prefix = 8
	if len(position) <= prefix || binary.BigEndian.Uint64(position) != generation {
		return nil
	}
	return position[prefix:]
}

// dropField removes the field from some rows, and its entry with the last of them.
func (k *kept) dropField(tx *store.Tx, from []byte, batch int) (step DropStep, err error) {
	prefix := layout.NumberedKey(layout.SpaceRows, k.table.Number)
	bytes := 0
	for item, err := range tx.Scan(prefix, from, false) {
		if err != nil {
			return step, err
		}
		if step.Looked == batch || bytes > buildBytes {
			step.Next = slices.Clone(item.Key)
			return step, nil
		}
		bytes += len(item.Value)
		rest, has, err := layout.WithoutField(string(item.Value), k.field.Number)
		if err != nil {
			return step, err
		}
		if has {
			if !tx.Fits(5, 2*len(item.Key)+len(rest)+dropReserve) {
				step.Next = slices.Clone(item.Key)
				return step, nil
			}
			if err := k.dropReferences(tx, item, k.field.Number); err != nil {
				return step, err
			}
			if err := tx.Set(slices.Clone(item.Key), rest); err != nil {
				return step, err
			}
			step.Changed++
		}
		step.Looked++
	}
	number := k.field.Number
	k.table.Fields = slices.DeleteFunc(k.table.Fields, func(f fieldEntry) bool { return f.Number == number })
	return step, k.catalog.writeTables(tx)
}

// dropRows deletes some rows of the table, and its entry with the last of them. Its indexes are
// marked first: their entries are deleted with those of other indexes that were dropped.
func (k *kept) dropRows(tx *store.Tx, from []byte) (step DropStep, err error) {
	changed := len(k.table.Indexes) > 0
	m := migration{}
	for _, x := range k.table.Indexes {
		m.dropped = append(m.dropped, x.Number)
	}
	if err := m.mark(tx); err != nil {
		return step, err
	}
	k.table.Indexes = nil
	for item, err := range tx.Scan(layout.NumberedKey(layout.SpaceRows, k.table.Number), from, false) {
		if err != nil {
			return step, err
		}
		if step.Looked == dropBatch || !tx.Fits(4, len(item.Key)+dropReserve) {
			step.Next = slices.Clone(item.Key)
			break
		}
		if err := k.dropReferences(tx, item, 0); err != nil {
			return step, err
		}
		if err := tx.Delete(slices.Clone(item.Key)); err != nil {
			return step, err
		}
		step.Looked++
		step.Changed++
	}
	if step.Next == nil {
		name := k.table.Name
		k.catalog.Tables = slices.DeleteFunc(k.catalog.Tables, func(t tableEntry) bool { return t.Name == name })
		changed = true
	}
	if !changed {
		return step, nil
	}
	return step, k.catalog.writeTables(tx)
}

// dropReferences deletes the references of a row to the blobs of its files in a field; 0: in all of them.
func (k *kept) dropReferences(tx *store.Tx, row store.Item, field uint32) error {
	files, err := layout.FilesIn(nil, layout.BorrowString(row.Value))
	if err != nil {
		return err
	}
	tail := layout.BorrowString(row.Key[len(layout.SpaceRows)+4:])
	for _, f := range files {
		if field != 0 && f.Field != field {
			continue
		}
		if err := tx.Delete(layout.AppendFileReference(nil, f.File, k.table.Number, f.Field, tail)); err != nil {
			return err
		}
	}
	return nil
}

// DeleteDropped deletes the entries of indexes that were dropped. BuildIndexes does the same.
func DeleteDropped(ctx context.Context, st *store.Store) error {
	var numbers []uint32
	err := st.View(ctx, func(tx *store.Tx) (err error) {
		numbers, err = numbersIn(tx, layout.SpaceDropped, func(value []byte) bool {
			return len(value) == 1 && value[0] == markDropped
		})
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
