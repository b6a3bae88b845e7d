package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"runner.example/schema"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// maxReports is the number of errors that Verify reports.
const maxReports = 20

// Verify checks in one snapshot that rows and indexes agree: every row can be read and its
// relations refer to existing rows, every built index has an entry for every row, every
// entry belongs to a row, and the store has nothing that is not in the catalog. Relations that
// are kept are not checked, because rows may be deleted regardless of them. The error has the
// first errors.
func Verify(ctx context.Context, st *store.Store) error {
	return st.View(ctx, func(tx *store.Tx) error {
		c, err := readCatalog(tx)
		if err != nil {
			return err
		}
		v := verification{tx: tx, tables: map[string]*layout.Table{}}
		for i := range c.Tables {
			t, err := newLayout(&c.Tables[i], nil)
			if err != nil {
				return fmt.Errorf("verify %s: %w", c.Tables[i].Name, err)
			}
			v.tables[t.Name] = t
		}
		if v.unbuilt, err = numbersIn(tx, layout.SpaceUnbuilt, func([]byte) bool { return true }); err != nil {
			return err
		}
		for i := range c.Tables {
			if err := v.table(&c.Tables[i]); err != nil {
				return err
			}
		}
		if err := v.unknownNumbers(c); err != nil {
			return err
		}
		return errors.Join(v.reports...)
	})
}

type verification struct {
	tx      *store.Tx
	tables  map[string]*layout.Table
	unbuilt []uint32
	reports []error
}

func (v *verification) report(format string, args ...any) {
	if len(v.reports) < maxReports {
		v.reports = append(v.reports, fmt.Errorf(format, args...))
	}
}

func (v *verification) table(entry *tableEntry) error {
	t := v.tables[entry.Name]
	err := layout.ScanRows(v.tx, t, nil, func(r *layout.Row) (bool, error) {
		for _, x := range t.Indexes {
			tail, err := v.tx.Get(t.EntryKey(nil, x, r.Values))
			missing := errors.Is(err, store.ErrNotFound)
			switch {
			case err != nil && !missing:
				return false, err
			case missing && !slices.Contains(v.unbuilt, x.Number):
				v.report("row %s of %s has no entry in index %d", r.Values[t.ID].Text(), t.Name, x.Number)
			case !missing && string(tail) != r.Tail:
				v.report("the entry of row %s of %s in index %d refers to another row", r.Values[t.ID].Text(), t.Name, x.Number)
			}
		}
		return len(v.reports) < maxReports, v.relations(entry, t, r)
	})
	if err != nil {
		return err
	}
	for _, x := range t.Indexes {
		if err := v.entries(t, x); err != nil {
			return err
		}
	}
	return nil
}

// relations checks that the row's relations refer to rows.
func (v *verification) relations(entry *tableEntry, t *layout.Table, r *layout.Row) error {
	for i := range entry.Fields {
		if entry.Kept || entry.Fields[i].Kept {
			continue
		}
		target := v.tables[strings.TrimPrefix(entry.Fields[i].Type, "-> ")]
		if value := r.Values[i]; target == nil || i == t.Tenant || value.IsNull() || target.Name == entry.Fields[i].Type {
			continue
		}
		found, err := refersToRow(v.tx, t, target, r.Values, r.Values[i])
		if err != nil {
			return err
		}
		if !found {
			v.report("%s of row %s of %s refers to a row that does not exist",
				entry.Fields[i].Name, r.Values[t.ID].Text(), t.Name)
		}
	}
	return nil
}

// refersToRow reports whether a relation of a row of t, with these values, refers to a row of the
// target.
func refersToRow(tx *store.Tx, t, target *layout.Table, values []schema.Value, id schema.Value) (bool, error) {
	prefix := append([]byte{}, target.Prefix...)
	switch {
	case target.Tenant < 0:
		prefix = target.Tail(prefix, "", id.Text())
	case t.Tenant >= 0:
		prefix = target.Tail(prefix, values[t.Tenant].Text(), id.Text())
	default:
		for _, err := range tx.Scan(layout.AppendEntry(append([]byte{}, target.Locator.Prefix...), id, false), nil, false) {
			return err == nil, err
		}
		return false, nil
	}
	_, err := tx.Get(prefix)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// entries checks that every entry belongs to a row.
func (v *verification) entries(t *layout.Table, x *layout.Index) error {
	for item, err := range v.tx.Scan(x.Prefix, nil, false) {
		if err != nil {
			return err
		}
		r, err := layout.ReadRow(v.tx, t, string(t.Prefix)+string(item.Value))
		switch {
		case err != nil:
			return err
		case r == nil:
			v.report("an entry of index %d of %s refers to a row that does not exist", x.Number, t.Name)
		case string(t.EntryKey(nil, x, r.Values)) != string(item.Key):
			v.report("index %d of %s has an entry for row %s that is not the row's", x.Number, t.Name, r.Values[t.ID].Text())
		}
		if len(v.reports) == maxReports {
			return nil
		}
	}
	return nil
}

// unknownNumbers looks for rows and entries whose numbers are not in the catalog.
func (v *verification) unknownNumbers(c *Catalog) error {
	dropped, err := numbersIn(v.tx, layout.SpaceDropped, func([]byte) bool { return true })
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
	if err := v.unknownNumbersIn(layout.SpaceRows, tables); err != nil {
		return err
	}
	return v.unknownNumbersIn(layout.SpaceEntries, indexes)
}

// unknownNumbersIn seeks from number to number.
func (v *verification) unknownNumbersIn(space string, known []uint32) error {
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
			v.report("%s%d is in the store, but not in the catalog", space, number)
		}
		if from = layout.PrefixEnd(layout.NumberedKey(space, number)); from == nil {
			return nil
		}
	}
}
