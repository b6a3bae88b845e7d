package entity

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/store"
)

// catalog is what the rows in the store obey: the part of the schema last
// activated that they depend on, with the numbers that stand in keys and rows. A
// number is never given twice.
type catalog struct {
	Generation uint64         `json:"generation"`
	Tables     []catalogTable `json:"tables"`
}

type catalogTable struct {
	Name   string `json:"name"`
	Number uint32 `json:"number"`
	// Untyped tables hold free JSON objects.
	Untyped bool `json:"untyped,omitempty"`
	// Tenant is the number of the @tenant field; 0 without.
	Tenant    uint32         `json:"tenant,omitempty"`
	ID        uint32         `json:"id,omitempty"`
	NextField uint32         `json:"nextField"`
	Fields    []catalogField `json:"fields,omitempty"`
	Indexes   []catalogIndex `json:"indexes,omitempty"`
}

type catalogField struct {
	Name   string `json:"name"`
	Number uint32 `json:"number"`
	// Type is what a change of makes old values unreadable: "decimal(2)",
	// "text[]", "-> Order".
	Type     string `json:"type"`
	Optional bool   `json:"optional,omitempty"`
	// Enum are the values that rows may hold.
	Enum []string `json:"enum,omitempty"`
	// Missing is the value of rows that were written before the field was added:
	// a kind and its payload, nil for null.
	Missing []byte `json:"missing,omitempty"`
}

type catalogIndex struct {
	Number uint32 `json:"number"`
	// Columns are numbers of fields, negative ones descending.
	Columns []int64 `json:"columns,omitempty"`
	Unique  bool    `json:"unique,omitempty"`

	span diag.Span // where it is declared; not stored
}

// readCatalog returns what the store's rows obey; an empty catalog when nothing
// was ever activated.
func readCatalog(tx *store.Tx) (*catalog, error) {
	c := &catalog{}
	raw, err := tx.Get([]byte(keyCatalog))
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

// write stores the catalog and its generation.
func (c *catalog) write(tx *store.Tx) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write catalog of entities: %w", err)
	}
	if err := tx.Set([]byte(keyCatalog), raw); err != nil {
		return err
	}
	return tx.Set([]byte(keyGeneration), binary.BigEndian.AppendUint64(nil, c.Generation))
}

// readNumber reads a big endian number of 4 or 8 bytes; a key that is missing
// holds 0.
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
	return 0, fmt.Errorf("read %s: %w", key, errRow)
}

func (c *catalog) table(name string) *catalogTable {
	for i := range c.Tables {
		if c.Tables[i].Name == name {
			return &c.Tables[i]
		}
	}
	return nil
}

func (t *catalogTable) field(name string) *catalogField {
	for i := range t.Fields {
		if t.Fields[i].Name == name {
			return &t.Fields[i]
		}
	}
	return nil
}

// typeName is the part of a field's type that stored values depend on.
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

// fits reports that values stored as one type are values of the other.
func fits(stored, declared string) bool {
	from, list := strings.CutSuffix(stored, "[]")
	to, toList := strings.CutSuffix(declared, "[]")
	return list == toList && (from == to || to == "text" && (from == "email" || from == "url"))
}

// indexesOf are the indexes that an entity needs, without numbers, none twice:
// the declared ones, which begin with the tenant, and one for each relation,
// which the deleting of its target asks, whatever the tenant.
func indexesOf(e *schema.Entity, number func(*schema.Field) uint32) []catalogIndex {
	var list []catalogIndex
	add := func(x catalogIndex) {
		if !slices.ContainsFunc(list, func(y catalogIndex) bool { return x.same(y) }) {
			list = append(list, x)
		}
	}
	if e.Tenant != nil {
		add(catalogIndex{}) // by id, whatever the tenant
	}
	for _, declared := range e.Indexes {
		x := catalogIndex{Unique: declared.Unique, span: declared.Span}
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
		x := catalogIndex{Columns: []int64{int64(number(f))}, span: f.Span}
		if e.Tenant != nil && f != e.Tenant {
			x.Columns = append(x.Columns, int64(number(e.Tenant)))
		}
		add(x)
	}
	return list
}

// newTable makes the table that the catalog's entry describes, for a declared
// entity, or for none: then its slots are the fields of the entry alone.
func newTable(entry *catalogTable, e *schema.Entity) (*table, error) {
	t := &table{name: entry.Name, entity: e, number: entry.Number, prefix: numbered(spaceRows, entry.Number), tenant: -1}
	switch {
	case entry.Untyped:
		t.tenant = freeTenant
		t.slots = make([]slot, freeSlots)
		t.slots[freeObject] = slot{number: 1}
	case e != nil:
		for _, f := range e.Fields {
			s := slot{field: f, label: string(appendText(nil, f.Name)) + ":"}
			if have := entry.field(f.Name); have != nil {
				if err := s.fill(have); err != nil {
					return nil, err
				}
			}
			t.slots = append(t.slots, s)
		}
		t.id = e.ID.Pos
		if e.Tenant != nil {
			t.tenant = e.Tenant.Pos
		}
	default:
		for i := range entry.Fields {
			s := slot{}
			if err := s.fill(&entry.Fields[i]); err != nil {
				return nil, err
			}
			switch s.number {
			case entry.ID:
				t.id = i
			case entry.Tenant:
				t.tenant = i
			}
			t.slots = append(t.slots, s)
		}
	}
	t.setStored()
	for i := range entry.Indexes {
		t.addIndex(&entry.Indexes[i])
	}
	return t, nil
}

func (s *slot) fill(have *catalogField) (err error) {
	s.number = have.Number
	if have.Missing != nil {
		s.missing, err = decodeValue(string(have.Missing))
	}
	return err
}

func (t *table) addIndex(entry *catalogIndex) {
	x := &index{number: entry.Number, prefix: numbered(spaceEntries, entry.Number), unique: entry.Unique, tenantColumn: -1}
	for _, c := range entry.Columns {
		column := indexColumn{desc: c < 0}
		for i := range t.slots {
			if int64(t.slots[i].number) == c || int64(t.slots[i].number) == -c {
				column.slot = i
			}
		}
		if column.slot == t.tenant {
			x.tenantColumn = len(x.columns)
		}
		x.columns = append(x.columns, column)
	}
	if len(x.columns) == 0 {
		t.locator = x
	}
	t.indexes = append(t.indexes, x)
}
