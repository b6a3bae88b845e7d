package layout

import (
	"slices"
	"strings"
	"sync/atomic"

	"runner.example/internal/casefold"
	"runner.example/schema"
	"runner.example/state/store"
)

// Table is the layout of the rows of one entity. It is immutable once created, except for
// indexes that become built.
type Table struct {
	Name   string
	Entity *schema.Entity // nil in untyped mode, and where only the catalog is known
	Number uint32
	Prefix []byte // of the rows' keys

	// Slots are the values of a row in memory: of a declared entity those of Field.Pos, of
	// an untyped one id, tenant and the JSON object.
	Slots []Slot
	// stored are the slots of a stored row, in the order of their numbers.
	stored []int
	// byNumber is the slot of a number, -1 for none.
	byNumber []int
	// kept are the numbers of fields that only other schemas declare; rows may have them.
	kept         []uint32
	mayHaveFiles bool
	ID           int // slot
	Tenant       int // slot; -1 without

	Indexes []*Index
	// Locator finds rows by id in all tenants; nil without tenants.
	Locator *Index
}

// Slot is one value of a row in memory.
type Slot struct {
	Number uint32 // of the field; 0: not stored
	// Missing is the value in rows that were written before the field was added.
	Missing schema.Value
	Field   *schema.Field // nil in untyped mode
	// Renamed are the renamed values of an enum; nil without any.
	Renamed *Renamed
}

// Renamed are the values of an enum that stored rows have under other texts than their names, because
// they were renamed. Values in memory and index entries have the names.
type Renamed struct{ stored, names map[string]string }

// NewRenamed returns the renamed values, given the stored texts by name.
func NewRenamed(stored map[string]string) *Renamed {
	r := &Renamed{stored, make(map[string]string, len(stored))}
	for name, text := range stored {
		r.names[text] = name
	}
	return r
}

// Stored returns a value as rows have it.
func (r *Renamed) Stored(v schema.Value) schema.Value { return r.replace(v, r.stored) }

// Named returns a value that rows have, under its name.
func (r *Renamed) Named(v schema.Value) schema.Value { return r.replace(v, r.names) }

// replace returns the value, or the list, with other texts.
func (r *Renamed) replace(v schema.Value, with map[string]string) schema.Value {
	switch v.Kind() {
	case schema.KindText:
		if text, ok := with[v.Text()]; ok {
			return schema.TextValue(text)
		}
	case schema.KindList:
		list := make([]schema.Value, len(v.List()))
		for i, elem := range v.List() {
			list[i] = r.replace(elem, with)
		}
		return schema.ListValue(list)
	}
	return v
}

// The slots of an untyped row.
const (
	UntypedID = iota
	UntypedTenant
	UntypedObject
	UntypedSlots
)

// Index is one order of a table's rows.
type Index struct {
	Number  uint32
	Prefix  []byte // of its entries' keys
	Columns []Column
	Unique  bool
	// builtAt is the commit from which on every row has its entry, plus one: a snapshot
	// before it must not read the index. 0: not built; writes maintain it already.
	builtAt atomic.Uint64
	// TenantColumn is the position of the tenant among the columns, -1 when the entries end
	// with it or the table has none.
	TenantColumn int
}

// Column is a column of an index.
type Column struct {
	Slot int
	Desc bool
	// IgnoreCase: entries have the folded text.
	IgnoreCase bool
}

// Of returns the value of the column in a row's entry, from that of the row.
func (c Column) Of(v schema.Value) schema.Value {
	if c.IgnoreCase && v.Kind() == schema.KindText {
		return schema.TextValue(casefold.Fold(v.Text()))
	}
	return v
}

// MarkBuilt states that every row has its entry in the index from that commit on.
func (x *Index) MarkBuilt(commit store.Seq) { x.builtAt.Store(uint64(commit) + 1) }

// IsBuilt reports whether a snapshot of any commit can read the index.
func (x *Index) IsBuilt() bool { return x.builtAt.Load() > 0 }

// IsBuiltAt reports whether a snapshot of that commit can read the index.
func (x *Index) IsBuiltAt(commit uint64) bool {
	built := x.builtAt.Load()
	return built > 0 && built <= commit+1
}

// IDDesc reports whether entries with equal columns are in descending order of ids and
// tenants: then an index can be scanned in both directions.
func (x *Index) IDDesc() bool {
	return len(x.Columns) > 0 && x.Columns[len(x.Columns)-1].Desc
}

// Names returns the names of the index's columns, except the tenant.
func (x *Index) Names(t *Table) string {
	var list []string
	for _, c := range x.Columns {
		if c.Slot != t.Tenant || len(x.Columns) == 1 {
			list = append(list, t.Slots[c.Slot].Field.Name)
		}
	}
	return strings.Join(list, ", ")
}

// EntryKey appends the key of the row's entry in the index.
func (t *Table) EntryKey(dst []byte, x *Index, values []schema.Value) []byte {
	dst = append(dst, x.Prefix...)
	whole := x.Unique
	for _, c := range x.Columns {
		v := c.Of(values[c.Slot])
		whole = whole && !v.IsNull()
		dst = AppendEntry(dst, v, c.Desc)
	}
	if whole {
		return dst
	}
	return t.entryEnd(dst, x, values)
}

// entryEnd appends what distinguishes rows with equal columns.
func (t *Table) entryEnd(dst []byte, x *Index, values []schema.Value) []byte {
	dst = AppendEntry(dst, values[t.ID], x.IDDesc())
	if t.Tenant >= 0 && x.TenantColumn < 0 {
		dst = AppendEntry(dst, values[t.Tenant], x.IDDesc())
	}
	return dst
}

// Tail appends the tail of the row's key.
func (t *Table) Tail(dst []byte, tenant, id string) []byte {
	if t.Tenant >= 0 {
		dst = appendTextEntry(dst, tenant)
	}
	return append(dst, id...)
}

// TailOf appends the tail of a row's key from its values.
func (t *Table) TailOf(dst []byte, values []schema.Value) []byte {
	tenant := ""
	if t.Tenant >= 0 {
		tenant = values[t.Tenant].Text()
	}
	return t.Tail(dst, tenant, values[t.ID].Text())
}

// ReadTail sets the values that a tail contains; their texts are parts of it.
func (t *Table) ReadTail(values []schema.Value, tail string) error {
	if t.Tenant >= 0 {
		tenant, rest, ok := cutTextEntry(tail)
		if !ok {
			return ErrDamaged
		}
		values[t.Tenant] = schema.TextValue(tenant)
		tail = rest
	}
	values[t.ID] = schema.TextValue(tail)
	return nil
}

// isHeld reports whether the slot's value is in the key of the row.
func (t *Table) isHeld(slot int) bool { return slot == t.ID || slot == t.Tenant }

// SetSlots sets Slots, and which of them a stored row has. kept are the numbers of fields without
// a slot that AppendRow carries over. ID and Tenant must be set before.
func (t *Table) SetSlots(slots []Slot, kept []uint32) {
	t.Slots, t.kept, t.mayHaveFiles = slots, kept, len(kept) > 0
	highest := uint32(0)
	for i, s := range t.Slots {
		t.mayHaveFiles = t.mayHaveFiles || s.Field != nil && s.Field.Type.Kind == schema.FileKind
		if s.Number > 0 && !t.isHeld(i) {
			t.stored = append(t.stored, i)
			highest = max(highest, s.Number)
		}
	}
	slices.SortFunc(t.stored, func(a, b int) int { return int(t.Slots[a].Number) - int(t.Slots[b].Number) })
	t.byNumber = make([]int, highest+1)
	for i := range t.byNumber {
		t.byNumber[i] = -1
	}
	for _, i := range t.stored {
		t.byNumber[t.Slots[i].Number] = i
	}
}

// AddIndex adds an index over the fields with these numbers; a negative number is a
// descending column. ignoreCase is for the columns other than the tenant.
func (t *Table) AddIndex(number uint32, columns []int64, unique, ignoreCase bool) {
	x := &Index{Number: number, Prefix: NumberedKey(SpaceEntries, number), Unique: unique, TenantColumn: -1}
	for _, c := range columns {
		column := Column{Desc: c < 0}
		for i := range t.Slots {
			if int64(t.Slots[i].Number) == c || int64(t.Slots[i].Number) == -c {
				column.Slot = i
			}
		}
		if column.Slot == t.Tenant {
			x.TenantColumn = len(x.Columns)
		} else {
			column.IgnoreCase = ignoreCase
		}
		x.Columns = append(x.Columns, column)
	}
	if len(x.Columns) == 0 {
		t.Locator = x
	}
	t.Indexes = append(t.Indexes, x)
}

// HasNull reports whether a unique index does not apply to the row.
func (x *Index) HasNull(values []schema.Value) bool {
	return slices.ContainsFunc(x.Columns, func(c Column) bool { return values[c.Slot].IsNull() })
}
