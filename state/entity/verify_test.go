package entity_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"runner.example/state/entity/catalog"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

const verifiedSchema = `app shop
entity Account { id: id, name: text @unique }
entity Member { id: id, account: Account @index, name: text
  @@index(name) }
`

// Each kind of disagreement between rows and indexes is found and named, whatever the size of the parts, and no other.
func TestDisagreementsOfRowsAndIndexesAreFound(t *testing.T) {
	h := newFixture(t, verifiedSchema)
	h.buildIndexes()
	for i := range 2 {
		account := h.insert(system, "Account", fmt.Sprintf(`{"name":"t%d"}`, i))
		h.insert(system, "Member", fmt.Sprintf(`{"account":%q,"name":"m%d"}`, account, i))
	}
	items := func(tx *store.Tx, space string) (all []store.Item) {
		for item, err := range tx.Scan([]byte(space), nil, false) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, store.Item{Key: bytes.Clone(item.Key), Value: bytes.Clone(item.Value)})
		}
		return all
	}
	update := func(change func(tx *store.Tx) error) {
		t.Helper()
		if _, err := h.store.Update(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	unknown := layout.NumberedKey(layout.SpaceRows, 4711)
	for _, row := range []struct {
		what string
		// damage changes rows or entries, which come in the order of the schema.
		damage func(tx *store.Tx, rows, entries []store.Item) error
		want   string
	}{
		{"nothing", func(*store.Tx, []store.Item, []store.Item) error { return nil }, ``},
		{"an entry is gone", func(tx *store.Tx, _, entries []store.Item) error {
			return tx.Delete(entries[0].Key)
		}, `row \S+ of Account has no entry in the unique index Account\(name\)`},
		{"an entry has the values of no row", func(tx *store.Tx, _, entries []store.Item) error {
			last := entries[len(entries)-1]
			return tx.Set(append(bytes.Clone(last.Key), 1), last.Value)
		}, `the index Member\(name\) has an entry with values that row \S+ does not have`},
		{"an entry refers to another row", func(tx *store.Tx, _, entries []store.Item) error {
			return tx.Set(entries[0].Key, entries[1].Value)
		}, `the entry of row \S+ of Account in the unique index Account\(name\) refers to another row\n` +
			`the unique index Account\(name\) has an entry with values that row \S+ does not have`},
		{"a row cannot be read", func(tx *store.Tx, rows, _ []store.Item) error {
			return tx.Set(rows[len(rows)-1].Key, []byte{0xff, 0xff})
		}, `a row of Member cannot be read, its key ends with "[^"]+": .+`},
		{"a row that others refer to is gone", func(tx *store.Tx, rows, _ []store.Item) error {
			return tx.Delete(rows[0].Key)
		}, `an entry of the unique index Account\(name\) refers to a row that does not exist\n` +
			`account of row \S+ of Member refers to a row that does not exist`},
		{"a row of no entity", func(tx *store.Tx, _, _ []store.Item) error {
			return tx.Set(unknown, []byte("x"))
		}, `the store has keys of .*4711, which belongs to no entity`},
	} {
		var rows, entries []store.Item
		update(func(tx *store.Tx) error {
			rows, entries = items(tx, layout.SpaceRows), items(tx, layout.SpaceEntries)
			return row.damage(tx, rows, entries)
		})
		for _, size := range []int{1, 2, 3, 1000} {
			var findings []string
			read := 0
			for from := new(catalog.VerifyPlace); from != nil; {
				part, err := catalog.VerifyPart(t.Context(), h.store, *from, size)
				if err != nil {
					t.Fatal(err)
				}
				findings = append(findings, part.Findings...)
				if read += part.Rows + part.Entries; part.Rows+part.Entries > size {
					t.Errorf("%s: %d rows and entries in a part of %d", row.what, part.Rows+part.Entries, size)
				}
				from = part.Next
			}
			if got := strings.Join(findings, "\n"); !regexp.MustCompile(`^` + row.want + `$`).MatchString(got) {
				t.Errorf("%s, in parts of %d: found %q, want %s", row.what, size, got, row.want)
			}
			if n := len(rows) + len(entries); read < n-1 || read > n+1 {
				t.Errorf("%s, in parts of %d: %d rows and entries were read, there are %d", row.what, size, read, n)
			}
		}
		update(func(tx *store.Tx) error { // as it was
			errs := []error{tx.Delete(unknown)}
			for _, item := range items(tx, layout.SpaceEntries) {
				errs = append(errs, tx.Delete(item.Key))
			}
			for _, item := range slices.Concat(rows, entries) {
				errs = append(errs, tx.Set(item.Key, item.Value))
			}
			return errors.Join(errs...)
		})
	}
}
