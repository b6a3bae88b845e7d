package catalog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"runner.example/internal/casefold"
	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// Catalog is the record of the active schema: the part that stored rows depend on, with the
// numbers in keys and rows. A number is never assigned twice.
type Catalog struct {
	Generation uint64       `json:"generation"`
	Tables     []tableEntry `json:"tables"`
}

type tableEntry struct {
	Name string `json:"name"`
	// Was are earlier names of the table, which older releases may declare.
	Was    []string `json:"was,omitempty"`
	Number uint32   `json:"number"`
	// Untyped tables hold JSON objects without declared fields.
	Untyped bool `json:"untyped,omitempty"`
	// Kept tables are those of entities that only other schemas declare. They have rows.
	Kept bool `json:"kept,omitempty"`
	// Tenant is the number of the @tenant field; 0 without one.
	Tenant    uint32       `json:"tenant,omitempty"`
	ID        uint32       `json:"id,omitempty"`
	NextField uint32       `json:"nextField"`
	Fields    []fieldEntry `json:"fields,omitempty"`
	Indexes   []indexEntry `json:"indexes,omitempty"`
}

type fieldEntry struct {
	Name string `json:"name"`
	// Was are earlier names of the field, which older releases may declare.
	Was    []string `json:"was,omitempty"`
	Number uint32   `json:"number"`
	// Type is the part of the type that old values depend on: "decimal(2)", "text[]", "->
	// Order".
	Type     string `json:"type"`
	Optional bool   `json:"optional,omitempty"`
	// Enum are the values that rows may have.
	Enum []string `json:"enum,omitempty"`
	// Renamed has the values of Enum that had other names, by their names.
	Renamed map[string]renamedValue `json:"renamed,omitempty"`
	// Bounds are the limits of values; earlier versions recorded none.
	Bounds bounds `json:"bounds,omitzero"`
	// Missing is the value in rows that were written before the field was added: a kind and
	// its payload, nil for null.
	Missing []byte `json:"missing,omitempty"`
	// Kept fields are those that only other schemas declare. Rows may have them.
	Kept bool `json:"kept,omitempty"`
}

// renamedValue is a value of an enum that had other names.
type renamedValue struct {
	// Stored is the text that rows have for it.
	Stored string   `json:"stored"`
	Was    []string `json:"was,omitempty"`
}

type indexEntry struct {
	Number uint32 `json:"number"`
	// Columns are numbers of fields, negative for descending ones.
	Columns []int64 `json:"columns,omitempty"`
	Unique  bool    `json:"unique,omitempty"`
	// IgnoreCase is the version of Unicode with which the texts in entries are folded; empty:
	// they are not. An index of another version is built anew.
	IgnoreCase string `json:"ignoreCase,omitempty"`

	span diag.Span // where it is declared; not stored
}

// readCatalog returns the active catalog; an empty one if no schema was ever activated.
func readCatalog(tx *store.Tx) (*Catalog, error) {
	c := &Catalog{}
	raw, err := tx.Get([]byte(layout.KeyCatalog))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return c, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("read catalog of entities: %w", err)
	}
	return c, nil
}

// ReadGeneration returns the generation of the active catalog, 0 without one. While an
// activation stops writers, it is one that no catalog has.
func ReadGeneration(tx *store.Tx) (uint64, error) { return readNumber(tx, layout.KeyGeneration) }

// write stores the catalog and its generation.
func (c *Catalog) write(tx *store.Tx) error {
	if err := c.writeTables(tx); err != nil {
		return err
	}
	return tx.Set([]byte(layout.KeyGeneration), binary.BigEndian.AppendUint64(nil, c.Generation))
}

// writeTables stores the catalog. Its generation has not changed.
func (c *Catalog) writeTables(tx *store.Tx) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write catalog of entities: %w", err)
	}
	return tx.Set([]byte(layout.KeyCatalog), raw)
}

// readNumber reads a big endian number of 4 or 8 bytes; 0 if the key does not exist.
func readNumber(tx *store.Tx, key string) (uint64, error) {
	raw, err := tx.Get([]byte(key))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case len(raw) == 8:
		return binary.BigEndian.Uint64(raw), nil
	case len(raw) == 4:
		return uint64(binary.BigEndian.Uint32(raw)), nil
	}
	return 0, fmt.Errorf("read %s: %w", key, layout.ErrDamaged)
}

// text returns what the catalog says about tables.
func (c *Catalog) text() string {
	text, _ := json.Marshal(c.Tables)
	return string(text)
}

func (c *Catalog) table(name string) *tableEntry {
	for i := range c.Tables {
		if c.Tables[i].Name == name {
			return &c.Tables[i]
		}
	}
	return nil
}

// field returns the entry of a declared field.
func (t *tableEntry) field(name string) *fieldEntry {
	for i := range t.Fields {
		if t.Fields[i].Name == name && !t.Fields[i].Kept {
			return &t.Fields[i]
		}
	}
	return nil
}

// Kept returns the names of the entities and fields that are kept, and that the active schema
// does not declare: "Order", "Partner.note".
func (c *Catalog) Kept() (names []string) {
	for _, t := range c.Tables {
		if t.Kept {
			names = append(names, t.Name)
			continue
		}
		for _, f := range t.Fields {
			if f.Kept {
				names = append(names, t.Name+"."+f.Name)
			}
		}
	}
	return names
}

// typeName returns the part of a field's type that stored values depend on.
func typeName(t *schema.Type) string {
	name := t.Kind.String()
	switch t.Kind {
	case schema.String, schema.Text:
		name = "text"
	case schema.Decimal:
		name += "(" + strconv.Itoa(t.Places) + ")"
	case schema.Relation:
		name = "-> " + t.Entity.Name
	}
	if t.List {
		name += "[]"
	}
	return name
}

// fits reports whether values stored as one type are values of the other.
func fits(stored, declared string) bool {
	from, list := strings.CutSuffix(stored, "[]")
	to, toList := strings.CutSuffix(declared, "[]")
	return list == toList && (from == to || to == "text" && (from == "email" || from == "url"))
}

// indexesOf returns the indexes that an entity needs, without numbers and duplicates: the
// declared ones, which begin with the tenant, and one for each relation, which deletes of
// its target use in all tenants.
func indexesOf(e *schema.Entity, number func(*schema.Field) uint32) []indexEntry {
	var list []indexEntry
	add := func(x indexEntry) {
		if !slices.ContainsFunc(list, func(y indexEntry) bool { return x.same(y) }) {
			list = append(list, x)
		}
	}
	if e.Tenant != nil {
		add(indexEntry{}) // by id, in all tenants
	}
	for _, declared := range e.Indexes {
		x := indexEntry{Unique: declared.Unique, span: declared.Span}
		if declared.IgnoreCase {
			x.IgnoreCase = casefold.Version
		}
		if e.Tenant != nil && !declared.Global {
			x.Columns = append(x.Columns, int64(number(e.Tenant)))
		}
		for _, c := range declared.Columns {
			switch {
			case c.Field == e.Tenant && !declared.Global:
			case c.Desc:
				x.Columns = append(x.Columns, -int64(number(c.Field)))
			default:
				x.Columns = append(x.Columns, int64(number(c.Field)))
			}
		}
		add(x)
	}
	for _, f := range e.Fields {
		if f.Type.Kind != schema.Relation {
			continue
		}
		x := indexEntry{Columns: []int64{int64(number(f))}, span: f.Span}
		if e.Tenant != nil && f != e.Tenant {
			x.Columns = append(x.Columns, int64(number(e.Tenant)))
		}
		add(x)
	}
	return list
}

// Layout returns the layout of the rows of an entity of the schema.
func (c *Catalog) Layout(s *schema.Schema, name string) (*layout.Table, error) {
	t, err := newLayout(c.table(name), s.Entity(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// newLayout returns the layout that the catalog's entry describes, for a declared entity,
// or for none: then its slots are the fields of the entry alone, kept ones included.
func newLayout(entry *tableEntry, e *schema.Entity) (*layout.Table, error) {
	t := &layout.Table{
		Name: entry.Name, Entity: e, Number: entry.Number,
		Prefix: layout.NumberedKey(layout.SpaceRows, entry.Number), Tenant: -1,
	}
	var slots []layout.Slot
	var kept []uint32
	switch {
	case entry.Untyped:
		t.Tenant = layout.UntypedTenant
		slots = make([]layout.Slot, layout.UntypedSlots)
		slots[layout.UntypedObject] = layout.Slot{Number: 1}
	case e != nil:
		for _, f := range e.Fields {
			s, err := slotOf(entry.field(f.Name))
			if err != nil {
				return nil, err
			}
			s.Field = f
			slots = append(slots, s)
		}
		for _, f := range entry.Fields {
			if f.Kept {
				kept = append(kept, f.Number)
			}
		}
		t.ID = e.ID.Pos
		if e.Tenant != nil {
			t.Tenant = e.Tenant.Pos
		}
	default:
		for i := range entry.Fields {
			s, err := slotOf(&entry.Fields[i])
			if err != nil {
				return nil, err
			}
			switch s.Number {
			case entry.ID:
				t.ID = i
			case entry.Tenant:
				t.Tenant = i
			}
			slots = append(slots, s)
		}
	}
	t.SetSlots(slots, kept)
	for _, x := range entry.Indexes {
		t.AddIndex(x.Number, x.Columns, x.Unique, x.IgnoreCase != "")
	}
	return t, nil
}

// slotOf returns the slot of a field, which is nil when the field is not stored.
func slotOf(f *fieldEntry) (s layout.Slot, err error) {
	if f == nil {
		return s, nil
	}
	s.Number, s.Renamed = f.Number, f.renamedValues()
	if f.Missing != nil {
		s.Missing, err = layout.DecodeValue(string(f.Missing))
		if s.Renamed != nil {
			s.Missing = s.Renamed.Named(s.Missing)
		}
	}
	return s, err
}
