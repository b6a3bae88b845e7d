package catalog

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// ChangeError says which rows violate a schema.
type ChangeError struct {
	// List has places in the refused schema.
	List diag.List
}

// Error returns the first error and the number of the others.
func (e *ChangeError) Error() string {
	sorted := e.List.Sorted()
	text := "existing rows violate the schema: " + sorted[0].String()
	if more := len(sorted) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// Compare returns what Activate would refuse with the present rows of the store. It writes
// nothing.
func Compare(ctx context.Context, st *store.Store, s *schema.Schema) (diag.List, error) {
	_, list, err := Plan(ctx, st, s)
	return list, err
}

// Match is how a schema relates to the active catalog of a store.
type Match struct {
	Catalog *Catalog // of the schema
	Empty   bool     // no schema was ever activated
	Changed bool     // the schema is not the active one
	// Readable: all that the schema declares is stored, so its layouts read the rows. What is kept
	// may be missing in the schema, or be declared.
	Readable bool
}

// MatchSchema compares the schema with the active catalog. Rows are not checked.
func MatchSchema(tx *store.Tx, s *schema.Schema) (Match, error) {
	m, err := compare(tx, s, "", false)
	if err != nil {
		return Match{}, err
	}
	return Match{
		Catalog: m.new, Empty: m.old.Generation == 0, Changed: m.changed, Readable: !m.grown && !m.list.HasErrors(),
	}, nil
}

// migration is the difference between the active catalog and a schema.
type migration struct {
	schema   *schema.Schema
	file     string // for errors without a place in the schema
	keep     bool   // keeps what the schema does not declare
	now      time.Time
	old, new *Catalog
	list     diag.List
	changed  bool
	grown    bool // the schema has entities or fields that are not stored
	// priors are the active entries of tables, by the names of the schema.
	priors map[string]*tableEntry
	// ambiguous are stored names that an @was names beside a declared one (reported).
	ambiguous []string
	// refused are the new fields that were refused, as Entity.field.
	refused []string
	// surveys are the tables whose rows must be checked; empty are those that must stay
	// without rows until the change.
	surveys []*survey
	empty   []uint32
	// fresh are the numbers in new that are not assigned yet; 0 until then.
	fresh []*uint32
	// unbuilt are new indexes of tables with rows that are built after the change. dropped are
	// numbers of indexes that are dropped.
	unbuilt []*uint32
	dropped []uint32
}

// survey is what is checked in the rows of one table.
type survey struct {
	entity *schema.Entity
	entry  *tableEntry
	active *tableEntry   // before the change: commands that change rows first use its names
	table  *layout.Table // with the new fields; indexes get their numbers later
	nulls  []int         // slots that have become required
	lacks  []int         // slots of kept fields that are required
	bounds []int         // slots whose values have narrower bounds
	enums  []enumSurvey
	// ahead are the new indexes that are built before the change, by position among the table's:
	// unique ones, and those of relations that were kept. lengths are the new indexes whose
	// entries may be too long.
	ahead, lengths []int
	// relations are those that were kept.
	relations []returned
}

type enumSurvey struct {
	slot    int
	removed map[string]string // names by stored texts
}

// compare returns the changes of the schema, and what is refused regardless of the rows'
// values. What depends on values is checked by the survey.
func compare(tx *store.Tx, s *schema.Schema, file string, keep bool) (*migration, error) {
	old, err := readCatalog(tx)
	if err != nil {
		return nil, err
	}
	m := &migration{schema: s, file: file, keep: keep, now: tx.Now(), old: old, new: &Catalog{Generation: old.Generation}}
	if err := m.matchTables(tx); err != nil {
		return nil, err
	}
	for _, name := range s.EntityNames() {
		if err := m.table(tx, name); err != nil {
			return nil, err
		}
	}
	for i := range old.Tables {
		if err := m.removed(tx, &old.Tables[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(m.new.Tables, func(a, b tableEntry) int { return strings.Compare(a.Name, b.Name) })
	m.changed = old.text() != m.new.text()
	for i := range m.new.Tables { // sorted: the entries keep their positions
		if err := m.findFresh(tx, &m.new.Tables[i]); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// fileOf returns a file of the schema, for errors about what is in none.
func fileOf(s *schema.Schema, sources []diag.Source) string {
	switch {
	case len(sources) > 0:
		return sources[0].Name
	case len(s.Entities) > 0:
		return s.Entities[0].Span.File
	case len(s.Routes) > 0:
		return s.Routes[0].Span.File
	}
	return ""
}

// hasRows reports whether the table with that number has rows.
func hasRows(tx *store.Tx, number uint32) (bool, error) {
	for _, err := range tx.Scan(layout.NumberedKey(layout.SpaceRows, number), nil, false) {
		return err == nil, err
	}
	return false, nil
}

// table adds the entry of a declared entity, or of one named in grants.
func (m *migration) table(tx *store.Tx, name string) error {
	e := m.schema.Entity(name)
	have := m.priors[name]
	entry := tableEntry{Name: name, Untyped: e == nil, NextField: 1}
	filled := false
	if have != nil {
		var err error
		if filled, err = hasRows(tx, have.Number); err != nil {
			return err
		}
		if filled && have.Untyped != entry.Untyped {
			m.list.Errorf("E601", m.spanOf(e), "%s has rows that were written %s: export and delete them first",
				name, m.wayOf(have))
			return nil
		}
		if have.Untyped == entry.Untyped {
			entry.Number, entry.NextField = have.Number, have.NextField
			entry.Was = m.tableNames(have, name)
		}
	}
	if e == nil {
		entry.Indexes = []indexEntry{{}} // by id, in all tenants
		if entry.Number != 0 {
			entry.Indexes = have.Indexes
		}
		m.new.Tables = append(m.new.Tables, entry)
		return nil
	}
	m.indexes(&entry, have, e, m.fields(&entry, have, filled, e))
	m.new.Tables = append(m.new.Tables, entry)
	return nil
}

func (m *migration) wayOf(have *tableEntry) string {
	if have.Untyped {
		return "before any entity was declared"
	}
	return "while entities were declared"
}

func (m *migration) spanOf(e *schema.Entity) diag.Span {
	if e == nil {
		return diag.Span{File: m.file}
	}
	return e.Span
}

// fields adds the entries of an entity's fields, and of those that are kept. have is the active
// entry, nil for none; filled: it has rows. It returns the numbers of the fields whose values have
// been renamed.
func (m *migration) fields(entry, have *tableEntry, filled bool, e *schema.Entity) (renamed []uint32) {
	priors := m.matchFields(have, filled, e)
	for _, f := range e.Fields {
		if f.Type.Kind == schema.ToMany {
			continue
		}
		field := fieldEntry{Name: f.Name, Type: typeName(&f.Type), Optional: f.Type.Optional, Bounds: boundsOf(&f.Type)}
		if f.Type.Kind == schema.EnumKind {
			field.Enum = f.Type.Enum.Values
		}
		if prior := priors[f]; prior != nil && fits(m.typeNow(prior.Type), field.Type) {
			field.Number, field.Missing, field.Was = prior.Number, prior.Missing, fieldNames(prior, e, f.Name)
			if field.Enum != nil && m.values(&field, prior, filled, f, e) {
				renamed = append(renamed, field.Number)
			}
			if filled && prior.Kept && !prior.Optional && prior.Missing == nil {
				field.Missing = m.missing(&field, f)
			}
		} else {
			field.Number = entry.NextField
			entry.NextField++
			m.grown = true
			if filled {
				m.added(&field, prior, f, e)
			}
		}
		entry.Fields = append(entry.Fields, field)
		if f == e.ID {
			entry.ID = field.Number
		}
		if f == e.Tenant {
			entry.Tenant = field.Number
		}
	}
	if have != nil && !have.Untyped {
		m.keepFields(entry, have, filled, e, priors)
	}
	slices.SortFunc(entry.Fields, func(a, b fieldEntry) int { return int(a.Number) - int(b.Number) })
	if filled {
		m.compareFields(entry, have, e)
	}
	return renamed
}

// keepFields adds the entries of fields that the entity does not declare any more, or refuses
// that.
func (m *migration) keepFields(entry, have *tableEntry, filled bool, e *schema.Entity,
	priors map[*schema.Field]*fieldEntry) {
	claimed := map[uint32]bool{} // declared, or reported because the type is another one
	for _, prior := range priors {
		claimed[prior.Number] = true
	}
	for i := range have.Fields {
		prior := have.Fields[i]
		prior.Type = m.typeNow(prior.Type)
		switch {
		case claimed[prior.Number]:
		case prior.Number == have.Tenant: // reported for the entity
		case slices.Contains(m.ambiguous, e.Name+"."+prior.Name):
		case prior.Kept || filled && (have.Kept || m.keep || isRemoved(e.Removed, prior.Name)):
			prior.Kept = true
			entry.Fields = append(entry.Fields, prior)
		case filled:
			m.list.Errorf("E601", e.Span,
				"%s.%s was removed, and %s has rows: declare it with @removed, so rows keep its values, or write @was(%q) at the field that it is called now",
				e.Name, prior.Name, e.Name, prior.Name)
		}
	}
}

// isRemoved reports whether the schema declares the name with @removed.
func isRemoved(list []schema.Removed, name string) bool {
	return slices.ContainsFunc(list, func(r schema.Removed) bool { return r.Name == name })
}

// added sets the value of a new field in existing rows.
func (m *migration) added(field, prior *fieldEntry, f *schema.Field, e *schema.Entity) {
	switch {
	case prior != nil:
		m.refused = append(m.refused, e.Name+"."+f.Name)
		m.list.Errorf("E601", f.Span,
			"the type of %s.%s was %s, and %s has rows: add a field with another name, copy the values (runner data each %s --call <function> --all), and mark this one @removed",
			e.Name, f.Name, m.typeNow(prior.Type), e.Name, e.Name)
	case f == e.Tenant: // reported for the entity
		m.refused = append(m.refused, e.Name+"."+f.Name)
	default:
		if field.Missing = m.missing(field, f); field.Missing == nil && !f.Type.Optional {
			m.refused = append(m.refused, e.Name+"."+f.Name)
			m.list.Errorf("E602", f.Span,
				"%s.%s is a new required field, and %s has rows without it: give it a default; or make it optional, fill it (runner data each %s --call <function> --where \"%s = null\"), and make it required then",
				e.Name, f.Name, e.Name, e.Name, f.Name)
		}
	}
}

// missing returns the value of a field in rows that lack it: its default, nil without one.
func (m *migration) missing(field *fieldEntry, f *schema.Field) []byte {
	switch {
	case f.HasDefault:
		v := f.Default
		if renamed := field.renamedValues(); renamed != nil {
			v = renamed.Stored(v)
		}
		return layout.AppendKinded(nil, v)
	case f.DefaultNow || f.Created || f.Updated:
		return layout.AppendKinded(nil, f.Type.Now(m.now))
	}
	return nil
}

// compareFields finds changes of declared fields that existing rows do not allow.
func (m *migration) compareFields(entry, have *tableEntry, e *schema.Entity) {
	s := &survey{entity: e, active: have}
	for i := range have.Fields {
		prior := &have.Fields[i]
		at := slices.IndexFunc(entry.Fields, func(f fieldEntry) bool { return f.Number == prior.Number && !f.Kept })
		if at < 0 {
			continue
		}
		now := &entry.Fields[at]
		pos := e.Field(now.Name).Pos
		switch {
		case now.Optional:
		case prior.Optional:
			s.nulls = append(s.nulls, pos)
		case prior.Kept && now.Missing == nil:
			s.lacks = append(s.lacks, pos)
		}
		if t := &e.Fields[pos].Type; t.Kind == schema.Relation && (have.Kept || prior.Kept) && now.Number != entry.Tenant {
			s.relations = append(s.relations, returned{slot: pos, entity: t.Entity})
		}
		if now.Bounds.narrows(prior.Bounds, &e.Fields[pos].Type) {
			s.bounds = append(s.bounds, pos)
		}
		if removed := removedValues(prior, now); len(removed) > 0 {
			s.enums = append(s.enums, enumSurvey{pos, removed})
		}
	}
	switch {
	case have.Tenant == entry.Tenant:
	case entry.Tenant == 0:
		m.list.Errorf("E604", e.Span,
			"the @tenant field of %s was removed, and rows belong to several tenants: keep the field, or export and delete the rows first",
			e.Name)
	default:
		m.list.Errorf("E604", e.Tenant.Span,
			"%s.%s is a new @tenant field, and %s has rows without a tenant: export and delete them, and import them with a tenant",
			e.Name, e.Tenant.Name, e.Name)
	}
	if s.nulls != nil || s.lacks != nil || s.bounds != nil || s.enums != nil || s.relations != nil {
		m.surveys = append(m.surveys, s)
	}
}

// indexes adds the entries of an entity's indexes; existing ones keep their numbers, unless they
// have the values of an enum under earlier names.
func (m *migration) indexes(entry, have *tableEntry, e *schema.Entity, renamed []uint32) {
	entry.Indexes = indexesOf(e, func(f *schema.Field) uint32 { return entry.field(f.Name).Number })
	var prior []indexEntry
	if have != nil && have.Number == entry.Number {
		prior = have.Indexes
	}
	for i := range entry.Indexes {
		x := &entry.Indexes[i]
		outdated := slices.ContainsFunc(x.Columns, func(c int64) bool { return slices.Contains(renamed, uint32(max(c, -c))) })
		if at := slices.IndexFunc(prior, x.same); at >= 0 && !outdated {
			x.Number = prior[at].Number
		}
	}
	for i := range prior {
		if !slices.ContainsFunc(entry.Indexes, func(x indexEntry) bool { return x.Number == prior[i].Number }) {
			m.dropped = append(m.dropped, prior[i].Number)
		}
	}
}

// same reports whether the two are the same index.
func (x *indexEntry) same(y indexEntry) bool {
	return x.Unique == y.Unique && x.IgnoreCase == y.IgnoreCase && slices.Equal(x.Columns, y.Columns)
}

// removed checks a table that the schema may not have any more. Rows of untyped ones stay
// until a grant names them again. A kept table keeps its indexes, because its rows do not change.
func (m *migration) removed(tx *store.Tx, have *tableEntry) error {
	if m.claims(have) {
		return nil
	}
	filled, err := hasRows(tx, have.Number)
	switch {
	case err != nil:
		return err
	case !filled:
		m.empty = append(m.empty, have.Number)
		for _, x := range have.Indexes {
			m.dropped = append(m.dropped, x.Number)
		}
	case have.Untyped:
		m.new.Tables = append(m.new.Tables, *have)
	case have.Kept || m.keep || isRemoved(m.schema.Removed, have.Name):
		kept := *have
		kept.Kept = true
		kept.Fields = slices.Clone(have.Fields)
		for i := range kept.Fields {
			kept.Fields[i].Type = m.typeNow(kept.Fields[i].Type)
		}
		m.new.Tables = append(m.new.Tables, kept)
	case slices.Contains(m.ambiguous, have.Name):
	default:
		m.list.Errorf("E601", diag.Span{File: m.file},
			"entity %s was removed, and it has rows: declare it with @removed, so the rows are kept, or write @was(%q) after the name that it has now",
			have.Name, have.Name)
	}
	return nil
}

// findFresh records the numbers that a table's entry lacks, and what its new indexes
// require of rows.
func (m *migration) findFresh(tx *store.Tx, entry *tableEntry) error {
	if entry.Number == 0 {
		m.grown = true
		m.fresh = append(m.fresh, &entry.Number)
	}
	filled, err := hasRows(tx, entry.Number)
	if err != nil {
		return err
	}
	if !filled && entry.Number != 0 && m.changed {
		m.empty = append(m.empty, entry.Number)
	}
	e := m.schema.Entity(entry.Name)
	at := slices.IndexFunc(m.surveys, func(s *survey) bool { return s.entity == e })
	s := &survey{entity: e, active: m.priors[entry.Name]}
	if at >= 0 {
		s = m.surveys[at]
	}
	s.entry = entry
	for i := range entry.Indexes {
		x := &entry.Indexes[i]
		if x.Number != 0 {
			continue
		}
		m.fresh = append(m.fresh, &x.Number)
		switch {
		case !filled:
			continue
		case x.Unique || s.isOfKept(x):
			s.ahead = append(s.ahead, i)
		default:
			m.unbuilt = append(m.unbuilt, &x.Number)
		}
		if mayBeLong(x, entry, e) {
			s.lengths = append(s.lengths, i)
		}
	}
	if at < 0 && (s.ahead != nil || s.lengths != nil) {
		m.surveys = append(m.surveys, s)
	}
	return nil
}

// unboundedTexts are the types whose values have no limit of their own.
var unboundedTexts = []schema.TypeKind{schema.String, schema.Text, schema.Email, schema.URL}

// mayBeLong reports whether an entry of the index may exceed the limit.
func mayBeLong(x *indexEntry, entry *tableEntry, e *schema.Entity) bool {
	bytes := 0
	for _, c := range x.Columns {
		for i := range entry.Fields {
			if field := &entry.Fields[i]; int64(field.Number) == c || int64(field.Number) == -c {
				t := &e.Field(field.Name).Type
				if t.MaxLen == 0 && slices.Contains(unboundedTexts, t.Kind) {
					return true
				}
				bytes += 16 + 2*4*t.MaxLen
			}
		}
	}
	return bytes > layout.MaxEntryBytes
}

// survey checks the rows, and adds to the list.
func (m *migration) survey(tx *store.Tx) error {
	if m.list.HasErrors() {
		return nil
	}
	for _, s := range m.surveys {
		if err := s.lay(m); err != nil {
			return err
		}
		if err := s.scan(tx, m); err != nil {
			return err
		}
	}
	return nil
}

// lay sets the layouts of the tables.
func (s *survey) lay(m *migration) (err error) {
	if s.table, err = newLayout(s.entry, s.entity); err != nil {
		return err
	}
	for i := range s.relations {
		rel := &s.relations[i]
		if rel.target, err = newLayout(m.new.table(rel.entity.Name), rel.entity); err != nil {
			return err
		}
	}
	return nil
}

func (s *survey) scan(tx *store.Tx, m *migration) error {
	seed := maphash.MakeSeed()
	hashes := make([][]uint64, len(s.ahead))
	found := len(m.list)
	var key []byte
	err := layout.ScanRows(tx, s.table, nil, func(r *layout.Row) (bool, error) {
		if err := s.inspect(tx, r.Values, &m.list); err != nil {
			return false, err
		}
		s.refer(r.Values)
		for i, at := range s.ahead {
			if x := s.table.Indexes[at]; x.Unique && !x.HasNull(r.Values) {
				key = s.table.EntryKey(key[:0], x, r.Values)
				hashes[i] = append(hashes[i], maphash.Bytes(seed, key))
			}
		}
		return len(m.list) < found+maxFindings, nil
	})
	if err != nil || len(m.list) > found {
		return err
	}
	for i := range s.relations {
		slices.Sort(s.relations[i].referred)
	}
	for i, at := range s.ahead {
		if twice := repeated(hashes[i]); len(twice) > 0 {
			if err := s.reportRepeated(tx, m, at, seed, twice); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxFindings is the number of errors reported for one table's rows.
const maxFindings = 20

// inspect reports the errors of a single row.
func (s *survey) inspect(tx *store.Tx, values []schema.Value, list *diag.List) error {
	e, id, active := s.entity, values[s.table.ID].Text(), s.active.Name
	for _, slot := range s.nulls {
		if values[slot].IsNull() {
			f := e.Fields[slot]
			list.Errorf("E602", f.Span,
				"%s.%s has become required, and row %s has no value for it: keep the field optional, or fill it first: runner data update %s --where \"%s = null\" --set %s=<value>",
				e.Name, f.Name, id, active, s.activeName(slot), s.activeName(slot))
		}
	}
	for _, slot := range s.lacks {
		if values[slot].IsNull() {
			f := e.Fields[slot]
			list.Errorf("E602", f.Span,
				"%s.%s is required, and row %s has no value for it, because it was inserted while a release without the field was active: give the field a default, make it optional, or delete the row first",
				e.Name, f.Name, id)
		}
	}
	for _, slot := range s.bounds {
		f := e.Fields[slot]
		if err := f.Type.CheckBounds(values[slot]); err != nil {
			list.Errorf("E606", f.Span,
				"%s.%s of row %s violates its new bounds: it %v; keep the wider bounds, or change the row first: runner data update %s --where \"id = %s\" --set %s=<value>",
				e.Name, f.Name, id, err, active, id, s.activeName(slot))
		}
	}
	for _, enum := range s.enums {
		if name := anyOf(values[enum.slot], enum.removed); name != "" {
			f, field := e.Fields[enum.slot], s.activeName(enum.slot)
			list.Errorf("E605", f.Span,
				"row %s of %s has the value %q, which was removed from %s.%s: keep the value in the enum, or change the rows first: runner data update %s --where \"%s %s %s\" --set %s=<value>",
				id, e.Name, name, e.Name, f.Name, active, field, equals(&f.Type), name, field)
		}
	}
	for _, at := range s.lengths {
		x := s.table.Indexes[at]
		if len(s.table.EntryKey(nil, x, values)) > layout.MaxEntryBytes {
			list.Errorf("E603", s.entry.Indexes[at].span,
				"row %s of %s is too long for the index of %s: the indexed fields together may take %d bytes; shorten a value first",
				id, e.Name, x.Names(s.table), layout.MaxEntryBytes)
		}
	}
	return s.inspectRelations(tx, values, list)
}

// equals returns the operator with which a condition finds a value, or lists with it.
func equals(t *schema.Type) string {
	if t.List {
		return "contains"
	}
	return "="
}

// activeName returns the name that a field has before the change.
func (s *survey) activeName(slot int) string {
	f := s.entity.Fields[slot]
	number := s.entry.field(f.Name).Number
	at := slices.IndexFunc(s.active.Fields, func(prior fieldEntry) bool { return prior.Number == number })
	return s.active.Fields[at].Name
}

// anyOf returns the name of an enum's value, or of one in a list, if it is among the texts.
func anyOf(v schema.Value, names map[string]string) string {
	if v.Kind() == schema.KindText {
		return names[v.Text()]
	}
	for _, elem := range v.List() {
		if name := names[elem.Text()]; name != "" {
			return name
		}
	}
	return ""
}

// repeated returns the numbers that occur more than once; it sorts them.
func repeated(list []uint64) map[uint64]bool {
	slices.Sort(list)
	twice := map[uint64]bool{}
	for i := 1; i < len(list); i++ {
		if list[i] == list[i-1] {
			twice[list[i]] = true
		}
	}
	return twice
}

// reportRepeated compares the rows whose keys in a unique index may be equal, and reports the
// first two that are.
func (s *survey) reportRepeated(tx *store.Tx, m *migration, at int, seed maphash.Seed, twice map[uint64]bool) error {
	x := s.table.Indexes[at]
	holder := map[string]string{}
	return layout.ScanRows(tx, s.table, nil, func(r *layout.Row) (bool, error) {
		if x.HasNull(r.Values) {
			return true, nil
		}
		key := s.table.EntryKey(nil, x, r.Values)
		if !twice[maphash.Bytes(seed, key)] {
			return true, nil
		}
		id := strings.Clone(r.Values[s.table.ID].Text())
		if other, taken := holder[string(key)]; taken {
			s.reportSame(&m.list, at, other, id)
			return false, nil
		}
		holder[string(key)] = id
		return true, nil
	})
}

func (s *survey) reportSame(list *diag.List, at int, one, other string) {
	list.Errorf("E603", s.entry.Indexes[at].span,
		"rows %s and %s of %s have the same %s, which has become unique: change one of them first: runner data update %[5]s --where \"id = %[1]s\" --set <field>=<value>",
		one, other, s.entity.Name, s.table.Indexes[at].Names(s.table), s.active.Name)
}
