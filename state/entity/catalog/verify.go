package catalog

import (
	"bytes"
	"cmp"
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

// MaxFindings is the maximum number of findings of one part of a verification.
const MaxFindings = 20

// VerifyPlace is where a verification continues. The zero value is the beginning.
type VerifyPlace struct {
	// Table is the number of the table, Index that of one of its indexes; 0: its rows.
	Table uint32 `json:"table,omitempty"`
	Index uint32 `json:"index,omitempty"`
	// Key is the key that was read last in it; nil: it was not begun.
	Key []byte `json:"key,omitempty"`
	// Files: all tables are verified, and the references to the contents of files are next.
	Files bool `json:"files,omitempty"`
}

// VerifiedPart is the result of VerifyPart.
type VerifiedPart struct {
	// Rows and Entries are the numbers of rows and entries that were read.
	Rows    int `json:"rows"`
	Entries int `json:"entries"`
	// Findings say, each in one line, where rows and indexes disagree.
	Findings []string `json:"findings"`
	// Next is where the next part continues; nil: this was the last one.
	Next *VerifyPlace `json:"next,omitempty"`
}

// Verify checks that rows and indexes agree, see VerifyPart. The error has the first findings.
func Verify(ctx context.Context, st *store.Store) error {
	var errs []error
	for from := new(VerifyPlace); from != nil && len(errs) < MaxFindings; {
		part, err := VerifyPart(ctx, st, *from, 100_000)
		if err != nil {
			return err
		}
		for _, finding := range part.Findings {
			errs = append(errs, errors.New(finding))
		}
		from = part.Next
	}
	return errors.Join(errs...)
}

// VerifyPart checks in one snapshot that rows, indexes and references to the contents of files agree. It begins at from, and ends after limit rows and
// entries, or after MaxFindings findings. Every row must be readable, and its relations must refer to existing rows.
// Every built index must have an entry for every row, and every entry must belong to a row. All keys must belong to the
// catalog. Kept relations are not checked, because rows may be deleted regardless of them. Rows may be written
// during a part and between two parts.
func VerifyPart(ctx context.Context, st *store.Store, from VerifyPlace, limit int) (part VerifiedPart, err error) {
	err = st.View(ctx, func(tx *store.Tx) error {
		c, err := readCatalog(tx)
		if err != nil {
			return err
		}
		v := verification{tx: tx, tables: map[string]*layout.Table{}, left: limit, part: VerifiedPart{Findings: []string{}}}
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
		byNumber := slices.SortedFunc(slices.Values(c.Tables), func(a, b tableEntry) int { return cmp.Compare(a.Number, b.Number) })
		for i := range byNumber {
			if entry := &byNumber[i]; entry.Number >= from.Table && !from.Files {
				if entry.Number > from.Table {
					from = VerifyPlace{Table: entry.Number}
				}
				if full, err := v.table(entry, from); err != nil || full {
					part = v.part
					return err
				}
			}
		}
		if !from.Files {
			from = VerifyPlace{Files: true}
		}
		full, err := v.references(from)
		if err == nil && !full {
			err = v.unknownNumbers(c)
		}
		part = v.part
		return err
	})
	return part, err
}

type verification struct {
	tx      *store.Tx
	tables  map[string]*layout.Table
	unbuilt []uint32
	left    int // how many rows and entries the part may still read
	part    VerifiedPart
}

func (v *verification) report(format string, args ...any) {
	if len(v.part.Findings) < MaxFindings {
		v.part.Findings = append(v.part.Findings, fmt.Sprintf(format, args...))
	}
}

// isFull reports whether the part ends after this key. If it does, it sets where the next part continues.
func (v *verification) isFull(at VerifyPlace, key []byte) bool {
	if v.left--; v.left > 0 && len(v.part.Findings) < MaxFindings {
		return false
	}
	at.Key = bytes.Clone(key)
	v.part.Next = &at
	return true
}

// after returns the first possible key after the last one that was read, and nil at the beginning.
func (p VerifyPlace) after() []byte {
	if p.Key == nil {
		return nil
	}
	return append(bytes.Clone(p.Key), 0)
}

// table checks a table's rows and indexes from a place on, and reports whether the part is full.
func (v *verification) table(entry *tableEntry, from VerifyPlace) (full bool, err error) {
	t := v.tables[entry.Name]
	if from.Index == 0 {
		if full, err := v.rows(entry, t, from); err != nil || full {
			return full, err
		}
	}
	byNumber := slices.SortedFunc(slices.Values(t.Indexes), func(a, b *layout.Index) int { return cmp.Compare(a.Number, b.Number) })
	for _, x := range byNumber {
		if x.Number < from.Index {
			continue
		}
		if x.Number > from.Index {
			from = VerifyPlace{Table: entry.Number, Index: x.Number}
		}
		if full, err := v.entries(entry, t, x, from); err != nil || full {
			return full, err
		}
	}
	return false, nil
}

// rows checks that every row has its entries, and that its relations refer to rows.
func (v *verification) rows(entry *tableEntry, t *layout.Table, from VerifyPlace) (full bool, err error) {
	r := layout.Row{Values: make([]schema.Value, len(t.Slots))}
	for item, err := range v.tx.Scan(t.Prefix, from.after(), false) {
		if err != nil {
			return false, err
		}
		v.part.Rows++
		r.Tail, r.Raw = layout.BorrowString(item.Key[len(t.Prefix):]), layout.BorrowString(item.Value)
		if err := t.DecodeRow(&r); err != nil {
			v.report("a row of %s cannot be read, its key ends with %q: %v", t.Name, item.Key[len(t.Prefix):], err)
		} else if err := v.row(entry, t, &r); err != nil {
			return false, err
		}
		if v.isFull(from, item.Key) {
			return true, nil
		}
	}
	return false, nil
}

func (v *verification) row(entry *tableEntry, t *layout.Table, r *layout.Row) error {
	for _, x := range t.Indexes {
		tail, err := v.tx.Get(t.EntryKey(nil, x, r.Values))
		missing := errors.Is(err, store.ErrNotFound)
		switch {
		case err != nil && !missing:
			return err
		case missing && !slices.Contains(v.unbuilt, x.Number):
			v.report("row %s of %s has no entry in the %s", r.Values[t.ID].Text(), t.Name, nameOf(entry, x))
		case !missing && string(tail) != r.Tail:
			v.report("the entry of row %s of %s in the %s refers to another row", r.Values[t.ID].Text(), t.Name, nameOf(entry, x))
		}
	}
	files, err := layout.FilesIn(nil, r.Raw)
	if err != nil {
		return err
	}
	for _, f := range files {
		_, err := v.tx.Get(layout.AppendFileReference(nil, f.File, t.Number, f.Field, r.Tail))
		switch {
		case errors.Is(err, store.ErrNotFound):
			v.report("row %s of %s has a file without a reference to its contents", r.Values[t.ID].Text(), t.Name)
		case err != nil:
			return err
		}
	}
	return v.relations(entry, t, r)
}

// references checks that each reference to a blob is that of a row which has a file with these contents.
func (v *verification) references(from VerifyPlace) (full bool, err error) {
	for item, err := range v.tx.Scan([]byte(store.BlobPrefix), from.after(), false) {
		if err != nil {
			return false, err
		}
		v.part.Entries++
		has, err := v.hasFile(item.Key)
		if err != nil {
			return false, err
		}
		if !has {
			v.report("a reference to contents is of a row that does not have such a file")
		}
		if v.isFull(from, item.Key) {
			return true, nil
		}
	}
	return false, nil
}

// hasFile reports whether the row of a reference has the file.
func (v *verification) hasFile(key []byte) (bool, error) {
	digest, owner, ok := store.CutBlobReference(key)
	if !ok {
		return false, nil
	}
	table, field, tail, ok := layout.CutFileOwner(owner)
	if !ok {
		return false, nil
	}
	raw, err := v.tx.Get(append(layout.NumberedKey(layout.SpaceRows, table), tail...))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	files, err := layout.FilesIn(nil, string(raw))
	if err != nil {
		return true, nil // reported by rows
	}
	return slices.ContainsFunc(files, func(f layout.FileIn) bool { return f.Field == field && f.SHA256 == digest }), nil
}

// nameOf names an index: "unique index Team(name)".
func nameOf(entry *tableEntry, x *layout.Index) string {
	kind := "index "
	if x.Unique {
		kind = "unique index "
	}
	at := slices.IndexFunc(entry.Indexes, func(e indexEntry) bool { return e.Number == x.Number })
	if at < 0 {
		return fmt.Sprint(kind, x.Number, " of ", entry.Name)
	}
	return kind + indexName(entry, &entry.Indexes[at])
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
			v.report("%s of row %s of %s refers to a row that does not exist", entry.Fields[i].Name, r.Values[t.ID].Text(), t.Name)
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
func (v *verification) entries(entry *tableEntry, t *layout.Table, x *layout.Index, from VerifyPlace) (full bool, err error) {
	for item, err := range v.tx.Scan(x.Prefix, from.after(), false) {
		if err != nil {
			return false, err
		}
		v.part.Entries++
		raw, err := v.tx.Get([]byte(string(t.Prefix) + string(item.Value)))
		switch {
		case errors.Is(err, store.ErrNotFound):
			v.report("an entry of the %s refers to a row that does not exist", nameOf(entry, x))
		case err != nil:
			return false, err
		default:
			v.entry(entry, t, x, item, raw)
		}
		if v.isFull(from, item.Key) {
			return true, nil
		}
	}
	return false, nil
}

// entry checks that an entry has the values of its row. rows has reported a row that cannot be read.
func (v *verification) entry(entry *tableEntry, t *layout.Table, x *layout.Index, item store.Item, raw []byte) {
	r := layout.Row{Tail: string(item.Value), Raw: layout.BorrowString(raw), Values: make([]schema.Value, len(t.Slots))}
	if err := t.DecodeRow(&r); err == nil && string(t.EntryKey(nil, x, r.Values)) != string(item.Key) {
		v.report("the %s has an entry with values that row %s does not have", nameOf(entry, x), r.Values[t.ID].Text())
	}
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
			v.report("the store has keys of %s%d, which belongs to no entity", space, number)
		}
		if from = layout.PrefixEnd(layout.NumberedKey(space, number)); from == nil {
			return nil
		}
	}
}
