package entity

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/store"
)

// ErrOutdated means that another schema than the model's is active in the store. Nothing
// was done; the request belongs to the active release.
var ErrOutdated error = fault.New(fault.Unavailable, "the schema has changed meanwhile; try again")

// Options configure a model. The zero value is enough for tests.
type Options struct {
	// CursorKey encrypts the cursors of pages. They are valid under another model with the
	// same key.
	CursorKey [32]byte
	// Logger logs activations; nil discards them.
	Logger *slog.Logger
}

// Model is a schema with the layout of its rows in a store. It is created by Activate,
// immutable except for indexes that become built, and safe for concurrent use.
type Model struct {
	schema     *schema.Schema
	store      *store.Store
	generation uint64
	tables     map[string]*table
	names      []string                 // of the tables, in the order of the schema
	owners     map[*schema.Field]*table // of relations
	cursors    *sealer
}

// table is one entity and the layout of its rows.
type table struct {
	name   string
	entity *schema.Entity // nil in untyped mode
	rights *rights
	number uint32
	prefix []byte // of the rows' keys

	// slots are the values of a row in memory: of a declared entity those of Field.Pos, of
	// an untyped one id, tenant and the JSON object.
	slots []slot
	// stored are the slots of a stored row, in the order of their numbers.
	stored []int
	// byNumber is the slot of a number, -1 for none.
	byNumber []int
	id       int // slot
	tenant   int // slot; -1 without

	indexes []*index
	// locator finds rows by id in all tenants; nil without tenants.
	locator *index
	// referrers are the relations that refer to this table.
	referrers []referrer
	// relations are the slots that refer to rows, except the tenant.
	relations []relation
}

// slot is one value of a row in memory.
type slot struct {
	number uint32 // of the field; 0: not stored
	// missing is the value in rows that were written before the field was added.
	missing schema.Value
	field   *schema.Field // nil in untyped mode
	label   string        // `"name":`
}

// The slots of an untyped row.
const (
	freeID = iota
	freeTenant
	freeObject
	freeSlots
)

// relation is a slot that refers to a row of a table.
type relation struct {
	slot  int
	table *table
}

// referrer is a relation, seen from the table that it refers to.
type referrer struct {
	table    *table
	slot     int
	index    *index
	onDelete schema.OnDelete
}

// index is one order of a table's rows.
type index struct {
	number  uint32
	prefix  []byte // of its entries' keys
	columns []indexColumn
	unique  bool
	// builtAt is the commit from which on every row has its entry, plus one: a snapshot
	// before it must not read the index. 0: writes maintain it, and it is not read.
	builtAt atomic.Uint64
	// tenantColumn is the position of the tenant among the columns, -1 when the entries end
	// with it or the table has none.
	tenantColumn int
}

type indexColumn struct {
	slot int
	desc bool
}

// idDesc reports whether entries with equal columns are in descending order of ids and
// tenants: then an index can be scanned in both directions.
func (x *index) idDesc() bool {
	return len(x.columns) > 0 && x.columns[len(x.columns)-1].desc
}

// names returns the names of the index's columns, except the tenant.
func (x *index) names(t *table) string {
	var list []string
	for _, c := range x.columns {
		if c.slot != t.tenant || len(x.columns) == 1 {
			list = append(list, t.slots[c.slot].field.Name)
		}
	}
	return strings.Join(list, ", ")
}

// tableNamed returns the table of an entity, nil when there is none.
func (m *Model) tableNamed(name string) *table { return m.tables[name] }

// Schema returns the schema of the model.
func (m *Model) Schema() *schema.Schema { return m.schema }

// entryKey appends the key of the row's entry in the index.
func (t *table) entryKey(dst []byte, x *index, values []schema.Value) []byte {
	dst = append(dst, x.prefix...)
	whole := x.unique
	for _, c := range x.columns {
		v := values[c.slot]
		whole = whole && !v.IsNull()
		dst = appendEntry(dst, v, c.desc)
	}
	if whole {
		return dst
	}
	return t.entryEnd(dst, x, values)
}

// entryEnd appends what distinguishes rows with equal columns.
func (t *table) entryEnd(dst []byte, x *index, values []schema.Value) []byte {
	dst = appendEntry(dst, values[t.id], x.idDesc())
	if t.tenant >= 0 && x.tenantColumn < 0 {
		dst = appendEntry(dst, values[t.tenant], x.idDesc())
	}
	return dst
}

// tail appends the tail of the row's key.
func (t *table) tail(dst []byte, tenant, id string) []byte {
	if t.tenant >= 0 {
		dst = appendTextEntry(dst, tenant)
	}
	return append(dst, id...)
}

// tailOf appends the tail of a row's key from its values.
func (t *table) tailOf(dst []byte, values []schema.Value) []byte {
	tenant := ""
	if t.tenant >= 0 {
		tenant = values[t.tenant].Text()
	}
	return t.tail(dst, tenant, values[t.id].Text())
}

// readTail sets the values that a tail contains; their texts are parts of it.
func (t *table) readTail(values []schema.Value, tail string) error {
	if t.tenant >= 0 {
		tenant, rest, ok := cutTextEntry(tail)
		if !ok {
			return errRow
		}
		values[t.tenant] = schema.TextValue(tenant)
		tail = rest
	}
	values[t.id] = schema.TextValue(tail)
	return nil
}

// isHeld reports whether the slot's value is in the key of the row.
func (t *table) isHeld(slot int) bool { return slot == t.id || slot == t.tenant }

// setStored sets the slots of a stored row and their order.
func (t *table) setStored() {
	highest := uint32(0)
	for i, s := range t.slots {
		if s.number > 0 && !t.isHeld(i) {
			t.stored = append(t.stored, i)
			highest = max(highest, s.number)
		}
	}
	slices.SortFunc(t.stored, func(a, b int) int { return int(t.slots[a].number) - int(t.slots[b].number) })
	t.byNumber = make([]int, highest+1)
	for i := range t.byNumber {
		t.byNumber[i] = -1
	}
	for _, i := range t.stored {
		t.byNumber[t.slots[i].number] = i
	}
}
