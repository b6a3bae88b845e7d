package entity

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"runner.example/schema"
	"runner.example/store"
)

// maxWrongs is the number of errors that Verify reports.
const maxWrongs = 20

// Verify checks in one snapshot that rows and indexes agree: every row can be read and its
// relations refer to existing rows, every built index has an entry for every row, every
// entry belongs to a row, and the store has nothing that is not in the catalog. The error
// has the first errors.
func Verify(ctx context.Context, st *store.Store) error {
	return st.View(ctx, func(tx *store.Tx) error {
		c, err := readCatalog(tx)
		if err != nil {
			return err
		}
		v := verification{tx: tx, tables: map[string]*table{}}
		for i := range c.Tables {
			t, err := newTable(&c.Tables[i], nil)
			if err != nil {
				return fmt.Errorf("verify %s: %w", c.Tables[i].Name, err)
			}
			v.tables[t.name] = t
		}
		if v.unbuilt, err = numbersIn(tx, spaceUnbuilt, func([]byte) bool { return true }); err != nil {
			return err
		}
		for i := range c.Tables {
			if err := v.table(&c.Tables[i]); err != nil {
				return err
			}
		}
		if err := v.strays(c); err != nil {
			return err
		}
		return errors.Join(v.wrongs...)
	})
}

type verification struct {
	tx      *store.Tx
	tables  map[string]*table
	unbuilt []uint32
	wrongs  []error
}

func (v *verification) wrong(format string, args ...any) {
	if len(v.wrongs) < maxWrongs {
		v.wrongs = append(v.wrongs, fmt.Errorf(format, args...))
	}
}

func (v *verification) table(entry *catalogTable) error {
	t := v.tables[entry.Name]
	err := eachRow(v.tx, t, nil, func(r *row) (bool, error) {
		for _, x := range t.indexes {
			tail, err := v.tx.Get(t.entryKey(nil, x, r.values))
			missing := errors.Is(err, store.ErrNotFound)
			switch {
			case err != nil && !missing:
				return false, err
			case missing && !slices.Contains(v.unbuilt, x.number):
				v.wrong("row %s of %s has no entry in index %d", r.values[t.id].Text(), t.name, x.number)
			case !missing && string(tail) != r.tail:
				v.wrong("the entry of row %s of %s in index %d refers to another row", r.values[t.id].Text(), t.name, x.number)
			}
		}
		return len(v.wrongs) < maxWrongs, v.relations(entry, t, r)
	})
	if err != nil {
		return err
	}
	for _, x := range t.indexes {
		if err := v.entries(t, x); err != nil {
			return err
		}
	}
	return nil
}

// relations checks that the row's relations refer to rows.
func (v *verification) relations(entry *catalogTable, t *table, r *row) error {
	for i := range entry.Fields {
		target := v.tables[strings.TrimPrefix(entry.Fields[i].Type, "-> ")]
		if value := r.values[i]; target == nil || i == t.tenant || value.IsNull() || target.name == entry.Fields[i].Type {
			continue
		}
		found, err := v.leads(t, target, r, r.values[i])
		if err != nil {
			return err
		}
		if !found {
			v.wrong("%s of row %s of %s refers to a row that does not exist", entry.Fields[i].Name, r.values[t.id].Text(), t.name)
		}
	}
	return nil
}

func (v *verification) leads(t, target *table, r *row, id schema.Value) (bool, error) {
	prefix := append([]byte{}, target.prefix...)
	switch {
	case target.tenant < 0:
		prefix = target.tail(prefix, "", id.Text())
	case t.tenant >= 0:
		prefix = target.tail(prefix, r.values[t.tenant].Text(), id.Text())
	default:
		for _, err := range v.tx.Scan(appendEntry(append([]byte{}, target.locator.prefix...), id, false), nil, false) {
			return err == nil, err
		}
		return false, nil
	}
	_, err := v.tx.Get(prefix)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// entries checks that every entry belongs to a row.
func (v *verification) entries(t *table, x *index) error {
	for item, err := range v.tx.Scan(x.prefix, nil, false) {
		if err != nil {
			return err
		}
		r, err := rowAt(v.tx, t, string(t.prefix)+string(item.Value))
		switch {
		case err != nil:
			return err
		case r == nil:
			v.wrong("an entry of index %d of %s refers to a row that does not exist", x.number, t.name)
		case string(t.entryKey(nil, x, r.values)) != string(item.Key):
			v.wrong("index %d of %s has an entry for row %s that is not the row's", x.number, t.name, r.values[t.id].Text())
		}
		if len(v.wrongs) == maxWrongs {
			return nil
		}
	}
	return nil
}

// strays looks for rows and entries whose numbers are not in the catalog.
func (v *verification) strays(c *catalog) error {
	dropped, err := numbersIn(v.tx, spaceDropped, func([]byte) bool { return true })
	if err != nil {
		return err
	}
	tables, indexes := []uint32{}, dropped
	for _, t := range c.Tables {
		tables = append(tables, t.Number)
		for _, x := range t.Indexes {
			indexes = append(indexes, x.Number)
		}
	}
	if err := v.straysIn(spaceRows, tables); err != nil {
		return err
	}
	return v.straysIn(spaceEntries, indexes)
}

// straysIn seeks from number to number.
func (v *verification) straysIn(space string, known []uint32) error {
	for from := []byte(nil); ; {
		var number uint32
		found := false
		for item, err := range v.tx.Scan([]byte(space), from, false) {
			if err != nil {
				return err
			}
			if found = len(item.Key) >= len(space)+4; found {
				number = binary.BigEndian.Uint32(item.Key[len(space):])
			}
			break
		}
		if !found {
			return nil
		}
		if !slices.Contains(known, number) {
			v.wrong("%s%d is in the store, but not in the catalog", space, number)
		}
		if from = after(numbered(space, number)); from == nil {
			return nil
		}
	}
}
