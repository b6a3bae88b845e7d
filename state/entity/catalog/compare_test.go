package catalog_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/entity/catalog"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

const base = `
auth { session cookie { idle: 30m } }
enum Colour { red, green, blue }
entity Item {
  id: id
  name: string(1..20)
  size: int?
  colour: Colour = red
  @@allow all to session
}`

func compile(t *testing.T, text string) *schema.Schema {
	t.Helper()
	s, list := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
	if s == nil {
		t.Fatalf("the schema does not compile: %v", list)
	}
	return s
}

// activated returns a store in which the base schema is active, and its layout of Item.
func activated(t *testing.T) (*store.Store, *layout.Table) {
	t.Helper()
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	s := compile(t, base)
	c, changed, err := catalog.Activate(context.Background(), st, s, catalog.Options{})
	if err != nil || !changed {
		t.Fatalf("changed %t, %v", changed, err)
	}
	table, err := c.Layout(s, "Item")
	if err != nil {
		t.Fatal(err)
	}
	return st, table
}

// insert stores a row with the colour green and without a size, and its index entries.
func insert(t *testing.T, st *store.Store, table *layout.Table, id string) {
	t.Helper()
	values := make([]schema.Value, len(table.Slots))
	values[table.ID] = schema.TextValue(id)
	values[table.Entity.Field("name").Pos] = schema.TextValue("a")
	values[table.Entity.Field("colour").Pos] = schema.TextValue("green")
	_, err := st.Update(context.Background(), func(tx *store.Tx) error {
		tail := table.TailOf(nil, values)
		err := tx.Set(append(append([]byte{}, table.Prefix...), tail...), table.AppendRow(nil, values, ""))
		for _, x := range table.Indexes {
			err = errors.Join(err, tx.Set(table.EntryKey(nil, x, values), tail))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// match compares the schema with the active catalog.
func match(t *testing.T, st *store.Store, s *schema.Schema) (m catalog.Match) {
	t.Helper()
	err := st.View(context.Background(), func(tx *store.Tx) (err error) {
		m, err = catalog.MatchSchema(tx, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOnlyDifferencesInStoredRowsAreChanges(t *testing.T) {
	cases := []struct {
		name, old, new string
		changed        bool
		refused        string // the code, in a store with rows
	}{
		{name: "the same schema"},
		{name: "another policy", old: "@@allow all", new: "@@allow read"},
		{name: "a hidden field", old: "size: int?", new: "size: int? @hidden"},
		{name: "another order of fields", old: "name: string(1..20)\n  size: int?", new: "size: int?\n  name: string(1..20)"},
		{name: "wider bounds of a text", old: "string(1..20)", new: "string(0..30)", changed: true},
		{name: "narrower bounds that all rows keep", old: "string(1..20)", new: "string(1..10)", changed: true},
		{name: "narrower bounds that a row violates", old: "string(1..20)", new: "string(15..20)", changed: true, refused: "E606"},
		{name: "a new enum value", old: "green, blue", new: "green, blue, grey", changed: true},
		{name: "a new optional field", old: "size: int?", new: "size: int?\n  note: text?", changed: true},
		{name: "a new field with a default", old: "size: int?", new: "size: int?\n  weight: int = 1", changed: true},
		{name: "a new index", old: "@@allow", new: "@@index(size)\n  @@allow", changed: true},
		{name: "a removed enum value that no row has", old: "green, blue", new: "green", changed: true},
		{name: "a removed enum value that a row has", old: "green, blue", new: "blue", changed: true, refused: "E605"},
		{name: "a new required field", old: "size: int?", new: "size: int?\n  weight: int", changed: true, refused: "E602"},
		{name: "a field that becomes required", old: "size: int?", new: "size: int", changed: true, refused: "E602"},
		{name: "a removed field", old: "  size: int?\n", changed: true, refused: "E601"},
		{name: "a field of another type", old: "size: int?", new: "size: bool?", changed: true, refused: "E601"},
		{name: "a unique field with duplicates", old: "string(1..20)", new: "string(1..20) @unique", changed: true, refused: "E603"},
		{name: "a removed entity", old: "entity Item", new: "entity Other", changed: true, refused: "E601"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(base, c.old) {
				t.Fatalf("%q is not in the schema", c.old)
			}
			next := compile(t, strings.Replace(base, c.old, c.new, 1))
			st, table := activated(t)

			refusals := func() string {
				list, err := catalog.Compare(context.Background(), st, next)
				if err != nil {
					t.Fatal(err)
				}
				codes := map[string]bool{}
				for _, d := range list {
					codes[d.Code] = true
				}
				if len(codes) > 1 {
					t.Errorf("several codes: %v", list)
				}
				for code := range codes {
					return code
				}
				return ""
			}
			if m := match(t, st, next); m.Changed != c.changed || m.Empty {
				t.Errorf("changed %t, want %t; empty %t", m.Changed, c.changed, m.Empty)
			}
			if got := refusals(); got != "" {
				t.Errorf("without rows it is refused: %s", got)
			}
			insert(t, st, table, "1")
			insert(t, st, table, "2")
			if got := refusals(); got != c.refused {
				t.Errorf("with rows: refused with %q, want %q", got, c.refused)
			}
			if m := match(t, st, compile(t, base)); m.Changed {
				t.Error("Compare changed the catalog")
			}

			_, changed, err := catalog.Activate(context.Background(), st, next, catalog.Options{})
			var refused *catalog.ChangeError
			if errors.As(err, &refused) != (c.refused != "") || refused == nil && err != nil {
				t.Errorf("Activate and Compare do not agree: %v", err)
			}
			if want := c.changed && c.refused == ""; changed != want {
				t.Errorf("activated: changed %t, want %t", changed, want)
			}
			active := next
			if c.refused != "" {
				active = compile(t, base)
			}
			if m := match(t, st, active); m.Changed {
				t.Error("the active catalog is not that of the expected schema")
			}
			if err := catalog.Verify(context.Background(), st); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAStoreWithoutCatalogIsEmpty(t *testing.T) {
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if m := match(t, st, compile(t, base)); !m.Empty || !m.Changed {
		t.Errorf("empty %t, changed %t", m.Empty, m.Changed)
	}
}

func TestWhatElseIsActivatedIsOneChangeWithTheCatalog(t *testing.T) {
	st, _ := activated(t)
	key := []byte("pointer")
	generation := func() (n uint64) {
		t.Helper()
		err := st.View(t.Context(), func(tx *store.Tx) (err error) {
			n, err = catalog.ReadGeneration(tx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	pointer := func() string {
		t.Helper()
		var value []byte
		err := st.View(t.Context(), func(tx *store.Tx) (err error) {
			value, err = tx.Get(key)
			return err
		})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		return string(value)
	}
	wider := compile(t, base+"\nentity Other {\n  id: id\n  @@allow all to session\n}")
	refusal := errors.New("refused")
	for _, step := range []struct {
		name    string
		schema  *schema.Schema
		err     error
		changed bool
	}{
		{"the same schema, refused", compile(t, base), refusal, false},
		{"the same schema", compile(t, base), nil, false},
		{"another schema, refused", wider, refusal, false},
		{"another schema", wider, nil, true},
	} {
		t.Run(step.name, func(t *testing.T) {
			wantGeneration, wantPointer := generation(), pointer()
			_, changed, err := catalog.Activate(t.Context(), st, step.schema, catalog.Options{Also: func(tx *store.Tx) error {
				if err := tx.Set(key, []byte(step.name)); err != nil {
					return err
				}
				return step.err
			}})
			if step.err == nil {
				wantPointer = step.name
			}
			if step.changed {
				wantGeneration++
			}
			if !errors.Is(err, step.err) || changed != step.changed || generation() != wantGeneration || pointer() != wantPointer {
				t.Errorf("changed %t, %v; generation %d, want %d; pointer %q, want %q", changed, err, generation(), wantGeneration, pointer(), wantPointer)
			}
		})
	}
}
