package query

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/internal/cost"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
	maxAtMost    = 1_000_000
	maxRows      = 1000 // of one insert
	// maxSelected is the limit of names in a select of untyped mode, where the schema has
	// no limit; maxOrder is the limit of terms in an orderBy.
	maxSelected = 256
	maxOrder    = 16
)

// Query is a parsed query, get, count, update or delete: names are resolved to positions,
// and it has nothing that the caller may not use.
type Query struct {
	entity string
	Where  Condition // opAnd
	// Order ends with the row's id. Only its first terms come from the caller.
	Order          []OrderTerm
	RequestedTerms int
	// Limit is the most rows of a page, of a count, an update or a delete; 0: a count, an update or a
	// delete does not name one.
	Limit int
	// After has the values of order in the last row of the previous page; nil: from the
	// start.
	After []schema.Value
	// Selected are the positions of the fields to return, in order.
	Selected []int
	// Includes are the relations whose rows are returned too, in order. Selected does not have
	// their fields.
	Includes []*Include
	// ID is the id of a get.
	ID string

	// Names are, in untyped mode, the members of a row that where and order use: rows have
	// their values in this order. The id is the first.
	Names []string
	// members are, in untyped mode, the members to return, in order; nil: all. If only is
	// not nil, others are never returned.
	members, only []string
	memberAt      map[string]int // positions in members

	binding [32]byte // of cursors; zero: not yet computed
}

// reader resolves the names in a query's arguments.
type reader struct {
	*Authority
	right *Right // restricts the names; nil: only the id
	id    Column
	// idToo: the id may be named even if the right does not include it.
	idToo bool
	names *[]string // untyped mode
}

// Costs in units of a cost.Meter.
const (
	RowUnits      = 1000 // finding or writing a row
	ArgumentUnits = 8    // reading a byte of arguments
)

// TimeOver converts the error of a cost.Meter to a fault.
func TimeOver(err error) error {
	return fault.Wrap(err, fault.Deadline, "the time of the request is over")
}

// Request is what an operation does, read from its arguments for a caller.
type Request struct {
	// Query is nil for an insert.
	Query *Query
	// Aggregation is that of an aggregate; its Query is Query.
	Aggregation *Aggregation
	// Inserted are the rows of an insert, Set the changes of an update.
	Inserted []Input
	Set      Input
}

// Request parses the arguments for the caller of auth. cursors seals the cursors of a query.
// Faults are Denied, when the caller has no right to the operation, and Invalid.
func (a *Arguments) Request(auth *Authority, cursors *CursorSealer) (r Request, err error) {
	switch a.op {
	case OpInsert:
		r.Inserted, err = a.inserted(auth)
		return r, err
	case OpAggregate:
		if r.Aggregation, err = a.aggregation(auth); err == nil {
			r.Query = r.Aggregation.Query
		}
		return r, err
	}
	if r.Query, err = a.query(auth, cursors); err == nil && a.op == OpUpdate {
		r.Set, err = a.set(auth)
	}
	return r, err
}

// query parses the arguments of a query, get, count, update or delete of an entity.
func (a *Arguments) query(auth *Authority, cursors *CursorSealer) (*Query, error) {
	action := schema.ActRead
	switch a.op {
	case OpUpdate:
		action = schema.ActUpdate
	case OpDelete:
		action = schema.ActDelete
	}
	if _, err := auth.may(action); err != nil {
		return nil, err
	}
	q := &Query{entity: auth.name, Where: Condition{op: opAnd}}
	if a.op == opQuery {
		q.Limit = defaultLimit
	}
	r := &reader{Authority: auth, right: auth.Read, names: &q.Names, idToo: action != schema.ActRead}
	if auth.entity != nil {
		r.id = auth.columns[auth.entity.ID.Pos]
	} else {
		r.id, q.Names = Column{name: "id"}, []string{"id"}
	}
	if err := a.readID(q); err != nil {
		return nil, err
	}
	if err := a.readRows(r, q); err != nil {
		return nil, err
	}
	if err := r.readSelect(a.members[memberSelect], q); err != nil {
		return nil, err
	}
	if err := r.readIncludes(a.members[memberInclude], q, 1, new(int)); err != nil {
		return nil, err
	}
	if raw := a.members[memberCursor]; raw != nil {
		return q, q.resume(raw, cursors, auth.Input.Caller)
	}
	return q, nil
}

// readRows parses which rows a query has, in which order, beside the conditions that it has
// already.
func (a *Arguments) readRows(r *reader, q *Query) error {
	if raw := a.members[memberWhere]; raw != nil {
		in := conditions{reader: r}
		where, err := in.list(raw, "where", 0)
		if err != nil {
			return err
		}
		q.Where.parts = append(q.Where.parts, where.parts...)
	}
	if err := r.readOrder(a.members[memberOrderBy], q); err != nil {
		return err
	}
	if err := a.readLimit(q, memberLimit, maxLimit); err != nil {
		return err
	}
	return a.readLimit(q, memberAtMost, maxAtMost)
}

func (a *Arguments) readID(q *Query) error {
	raw := a.members[memberID]
	if raw == nil {
		return nil
	}
	var ok bool
	if q.ID, ok = textOf(raw); !ok {
		return Invalidf("id: must be a string")
	}
	return nil
}

func (a *Arguments) readLimit(q *Query, m member, most int) error {
	raw := a.members[m]
	if raw == nil {
		return nil
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 1 || n > most {
		return invalidValue(m.String(), raw, "", "%s: must be a whole number from 1 to %d", m, most)
	}
	q.Limit = n
	return nil
}

// column resolves a name in a condition or an order.
func (r *reader) column(name, at string) (Column, error) {
	if r.idToo && name == r.id.name {
		return r.id, nil
	}
	if r.right == nil {
		return Column{}, unknownName(name, "cannot be used",
			"%s: %q cannot be used: without the right to read, only %s can", at, name, r.id.name)
	}
	if r.entity == nil {
		return r.untypedColumn(name, at)
	}
	f, err := r.readable(r.right, name, at)
	switch {
	case err != nil:
		return Column{}, err
	case f.Type.Kind == schema.ToMany:
		return Column{}, unknownName(name, "is a relation to many rows and cannot be used here",
			"%s: %s.%s is a to-many relation: ask %s where %s is the row's id",
			at, r.Authority.name, name, f.Type.Entity.Name, f.Inverse.Name)
	}
	return r.columns[f.Pos], nil
}

// untypedColumn returns the column of a member of untyped rows.
func (r *reader) untypedColumn(name, at string) (Column, error) {
	if !r.right.reaches(name) {
		return Column{}, r.noMember(name, at)
	}
	pos := slices.Index(*r.names, name)
	if pos < 0 {
		pos = len(*r.names)
		*r.names = append(*r.names, name)
	}
	return Column{name: name, Pos: pos}, nil
}

// reaches reports whether an untyped grant includes the member.
func (g *Right) reaches(name string) bool {
	return g.Only == nil || slices.Contains(g.Only, name)
}

func (r *reader) noMember(name, at string) error {
	return unknownName(name, notReadable, "%s: %s has no field %q that the caller may read%s",
		at, r.Authority.name, name, diag.DidYouMean(name, r.right.Only))
}

func (r *reader) readSelect(raw []byte, q *Query) error {
	switch {
	case r.right == nil:
		return nil
	case r.entity == nil:
		q.only = r.right.Only
	case raw == nil:
		q.Selected = r.right.selected
	}
	if raw == nil {
		return nil
	}
	if raw[0] != '[' {
		return Invalidf("select: must be a list of fields")
	}
	q.Selected, q.members, q.memberAt = []int{}, []string{}, map[string]int{}
	for i, elem := range elementsOf(raw) {
		if i == maxSelected && r.entity == nil {
			return Invalidf("select: at most %d fields are allowed", maxSelected)
		}
		at := ElementPath("select", i)
		name, ok := textOf(elem)
		if !ok {
			return Invalidf("%s: must be the name of a field", at)
		}
		if err := r.selectOne(name, at, q); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) selectOne(name, at string, q *Query) error {
	if r.entity == nil {
		_, twice := q.memberAt[name]
		switch {
		case !r.right.reaches(name):
			return r.noMember(name, at)
		case twice:
			return unknownName(name, "is given twice", "%s: %q is given twice", at, name)
		}
		q.memberAt[name] = len(q.members)
		q.members = append(q.members, name)
		return nil
	}
	f, err := r.readable(r.right, name, at)
	switch {
	case err != nil:
		return err
	case slices.Contains(q.Selected, f.Pos):
		return unknownName(name, "is given twice", "%s: %q is given twice", at, name)
	case f.Type.Kind == schema.ToMany:
		return unknownName(name, "is a relation to many rows and cannot be selected",
			"%s: %s.%s is a to-many relation and cannot be selected: name it in include",
			at, r.Authority.name, name)
	}
	q.Selected = append(q.Selected, f.Pos)
	return nil
}

// appendJSON appends the query in its canonical form, without select, limit and cursor: a
// cursor is bound to it.
func (q *Query) appendJSON(dst []byte) []byte {
	dst = AppendText(append(dst, `{"from":`...), q.entity)
	dst = q.Where.appendJSON(append(dst, `,"where":`...))
	dst = append(dst, `,"orderBy":[`...)
	for i := range q.Order[:q.RequestedTerms] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendText(append(dst, '['), q.Order[i].name)
		if q.Order[i].Desc {
			dst = append(dst, `,"desc"]`...)
		} else {
			dst = append(dst, `,"asc"]`...)
		}
	}
	return append(dst, `]}`...)
}

// ---- values to write ----

// Input is the values of one row from a caller.
type Input struct {
	// Values by Field.Pos; only those in Given are valid.
	Values []schema.Value
	Given  FieldSet
	// Text is the JSON object as it was given. It is valid until the operation returns.
	Text []byte
	// Object is, in untyped mode, the compact JSON object without its id; id is the one
	// that an import set.
	Object []byte
	ID     string
	// members are the members of object, in the set of an update.
	members map[string][]byte
}

// inserted parses the values of an insert and checks each field: its type, its limits, and
// that the caller may write it. It does not check for missing fields.
func (a *Arguments) inserted(auth *Authority) ([]Input, error) {
	right, err := auth.may(schema.ActInsert)
	if err != nil {
		return nil, err
	}
	raw := a.members[memberValues]
	switch raw[0] {
	case '{':
		in, err := auth.readInput(right, raw, "values")
		return []Input{in}, err
	case '[':
	default:
		return nil, invalidValue("values", raw, "must be an object or a list of objects", "values: must be an object or a list of objects")
	}
	var list []Input
	for i, elem := range elementsOf(raw) {
		if err := auth.Work.Spend(RowUnits); err != nil {
			return nil, TimeOver(err)
		}
		at := ElementPath("values", i)
		switch {
		case i == maxRows:
			return nil, fault.New(fault.Limit, "values: at most %d rows are allowed: insert fewer at a time", maxRows)
		case elem[0] != '{':
			return nil, invalidValue(at, elem, "must be an object", "%s: must be an object", at)
		}
		in, err := auth.readInput(right, elem, at)
		if err != nil {
			return nil, err
		}
		list = append(list, in)
	}
	return list, nil
}

// set parses the set of an update, checked like inserted.
func (a *Arguments) set(auth *Authority) (Input, error) {
	right, err := auth.may(schema.ActUpdate)
	if err != nil {
		return Input{}, err
	}
	raw := a.members[memberSet]
	if raw[0] != '{' {
		return Input{}, invalidValue("set", raw, "must be an object", "set: must be an object")
	}
	in, err := auth.readInput(right, raw, "set")
	if err == nil && auth.entity == nil {
		in.members = maps.Collect(membersOf(in.Object))
	}
	return in, err
}

func (a *Authority) readInput(right *Right, object []byte, at string) (Input, error) {
	if a.entity == nil {
		return a.readUntypedInput(right, object, at)
	}
	in := Input{Values: make([]schema.Value, len(a.entity.Fields)), Given: make(FieldSet, len(a.entity.Fields)), Text: object}
	for name, raw := range membersOf(object) {
		f, err := a.writable(right, name, at)
		if err != nil {
			return in, err
		}
		if f.Type.Kind == schema.FileKind {
			in.Values[f.Pos], err = a.readFile(&f.Type, raw)
		} else {
			in.Values[f.Pos], err = f.Type.ParseMetered(raw, a.Work)
		}
		if over := a.Work.Spend(ArgumentUnits * len(raw)); over != nil {
			return in, TimeOver(over)
		}
		if err != nil {
			return in, invalidValue(name, raw, err.Error(), "%s.%s: %v", at, name, err)
		}
		in.Given[f.Pos] = true
	}
	return in, nil
}

var errUnknownFile = errors.New(
	"must be a file that this request has: one that was sent with it, that its handler made, or that it has read in a row")

// readFile reads a file, of which only the id counts: the host knows the rest.
func (a *Authority) readFile(t *schema.Type, raw []byte) (schema.Value, error) {
	if raw[0] == 'n' {
		return t.ParseMetered(raw, a.Work)
	}
	if raw[0] != '{' {
		return schema.Value{}, errUnknownFile
	}
	for name, id := range membersOf(raw) {
		if text, ok := textOf(id); ok && name == "id" && a.FileOf != nil {
			if file, ok := a.FileOf(text); ok {
				v := schema.FileValue(file)
				return v, t.CheckBounds(v)
			}
		}
	}
	return schema.Value{}, errUnknownFile
}

// writable returns the field with that name if the caller may set it. If the caller may
// read the field, the error says why it cannot be set; otherwise it is the same as for a
// field that does not exist.
func (a *Authority) writable(right *Right, name, at string) (*schema.Field, error) {
	f := a.entity.Field(name)
	if f != nil && right.Fields[f.Pos] {
		return f, nil
	}
	if f != nil && a.Read != nil && a.Read.Fields[f.Pos] {
		if why := a.whyHosts(f); why != "" {
			return nil, unknownName(name, "cannot be set: "+why, "%s.%s: %s", at, name, why)
		}
	}
	return nil, unknownName(name, notWritable, "%s: %s has no field %q that the caller may write%s",
		at, a.name, name, diag.DidYouMean(name, a.names(right)))
}

func (a *Authority) whyHosts(f *schema.Field) string {
	switch {
	case f == a.entity.ID:
		return "ids are set by the host"
	case f == a.entity.Tenant:
		return "the tenant is the caller's and cannot be set"
	case f.Created, f.Updated:
		return "the host sets this time"
	case f.ReadOnly:
		return "the field is @readonly"
	case f.Type.Kind == schema.ToMany:
		return fmt.Sprintf("a to-many relation is set by %s.%s", f.Type.Entity.Name, f.Inverse.Name)
	}
	return ""
}

// ---- untyped mode ----

// UntypedRow is a row of untyped mode: a JSON object, and its id.
type UntypedRow struct {
	ID     string
	Object []byte
}

// AppendValues appends the values of the members with these names. When m fails, they are
// undefined.
func (r UntypedRow) AppendValues(dst []schema.Value, names []string, m *cost.Meter) []schema.Value {
	_ = m.Spend(len(r.Object))
	start := len(dst)
	for _, name := range names {
		v := schema.Value{}
		if name == "id" {
			v = schema.TextValue(r.ID)
		}
		dst = append(dst, v)
	}
	values := dst[start:]
	var at map[string]int
	if len(names) > fewNames {
		at = make(map[string]int, len(names))
		for i, name := range names {
			at[name] = i
		}
	}
	for name, raw := range membersOf(r.Object) {
		i, ok := at[name]
		if at == nil {
			i = slices.Index(names, name)
			ok = i >= 0
		}
		if ok && name != "id" {
			values[i] = untypedValue(raw, m)
		}
	}
	return dst
}

// Up to fewNames names are found faster one by one than by a map.
const fewNames = 8

func (a *Authority) readUntypedInput(right *Right, object []byte, at string) (Input, error) {
	in := Input{Object: []byte{'{'}}
	members := 0
	for name, raw := range membersOf(object) {
		if err := a.Work.Spend(ArgumentUnits * (len(name) + len(raw))); err != nil {
			return in, TimeOver(err)
		}
		switch {
		case name == "id" && a.allowance == a.importing:
			id, err := (&schema.Type{Kind: schema.ID}).Parse(raw)
			if err != nil {
				return in, invalidValue(name, raw, err.Error(), "%s.id: %v", at, err)
			}
			in.ID = id.Text()
			continue
		case name == "id":
			return in, unknownName(name, "cannot be set: ids are set by the host", "%s.id: ids are set by the host", at)
		case !right.reaches(name):
			return in, unknownName(name, notWritable, "%s: %s has no field %q that the caller may write%s",
				at, a.name, name, diag.DidYouMean(name, right.Only))
		}
		if members++; members > maxUntypedMembers {
			return in, invalidValue("", object, "", "%s: at most %d fields are allowed", at, maxUntypedMembers)
		}
		if members > 1 {
			in.Object = append(in.Object, ',')
		}
		in.Object = append(AppendText(in.Object, name), ':')
		var err error
		if in.Object, err = jsontext.AppendFormat(in.Object, raw); err != nil {
			return in, Invalidf("%s.%s: is not JSON", at, name)
		}
	}
	in.Object = append(in.Object, '}')
	return in, nil
}

// AppendObject appends the row with the selected members in order, or all that the caller
// may read.
func (q *Query) AppendObject(dst []byte, row UntypedRow) []byte {
	if q.members == nil {
		return row.AppendJSON(dst, q.only)
	}
	found := make([][]byte, len(q.members))
	for name, raw := range membersOf(row.Object) {
		if i, ok := q.memberAt[name]; ok {
			found[i] = raw
		}
	}
	if i, ok := q.memberAt["id"]; ok {
		found[i] = AppendText(nil, row.ID)
	}
	dst = append(dst, '{')
	start := len(dst)
	for i, raw := range found {
		if raw != nil {
			dst = appendMember(dst, start, q.members[i], raw)
		}
	}
	return append(dst, '}')
}

// AppendJSON appends the row with the members in only; nil: all.
func (r UntypedRow) AppendJSON(dst []byte, only []string) []byte {
	dst = append(dst, '{')
	start := len(dst)
	if only == nil || slices.Contains(only, "id") {
		dst = appendMember(dst, start, "id", AppendText(nil, r.ID))
	}
	for name, raw := range membersOf(r.Object) {
		if only == nil || slices.Contains(only, name) {
			dst = appendMember(dst, start, name, raw)
		}
	}
	return append(dst, '}')
}

// appendMember appends a member to the object that begins at start.
func appendMember(dst []byte, start int, name string, raw []byte) []byte {
	if len(dst) > start {
		dst = append(dst, ',')
	}
	return append(append(AppendText(dst, name), ':'), raw...)
}

// Merge returns the members of a compact JSON object with those of the input: replaced in
// place, or appended.
func (in *Input) Merge(old []byte) (string, error) {
	merged, n := []byte{'{'}, 0
	put := func(name string, raw []byte) {
		if n++; n > 1 {
			merged = append(merged, ',')
		}
		merged = append(append(AppendText(merged, name), ':'), raw...)
	}
	have := map[string]bool{}
	for name, raw := range membersOf(old) {
		if new, ok := in.members[name]; ok {
			raw, have[name] = new, true
		}
		put(name, raw)
	}
	for name, raw := range membersOf(in.Object) {
		if !have[name] {
			put(name, raw)
		}
	}
	if n > maxUntypedMembers {
		return "", fault.New(fault.TooLarge, "the row would have more than %d fields", maxUntypedMembers)
	}
	return string(append(merged, '}')), nil
}

// maxUntypedMembers is the number of members of an untyped row, without the id. The row
// grows with every update that adds one.
const maxUntypedMembers = 1000

// MayReadUntyped is MayRead in untyped mode.
func (a *Authority) MayReadUntyped(row UntypedRow) (bool, error) {
	return a.passesUntyped(a.Read, &row, nil, nil)
}

// MayInsertUntyped is MayInsert in untyped mode.
func (a *Authority) MayInsertUntyped(row UntypedRow) (bool, error) {
	return a.passesUntyped(a.Insert, &row, nil, &row)
}

func (a *Authority) mayFindUntyped(row UntypedRow) (bool, error) {
	return a.passesUntyped(cmp.Or(a.Read, everyRow), &row, nil, nil)
}

// everyRow is the right to find rows by id.
var everyRow = &Right{always: true}

// MayDeleteUntyped is MayDelete in untyped mode.
func (a *Authority) MayDeleteUntyped(row UntypedRow) (bool, error) {
	if may, err := a.mayFindUntyped(row); err != nil || !may {
		return false, err
	}
	return a.passesUntyped(a.delete, &row, nil, nil)
}

// MayUpdateUntyped is MayUpdate in untyped mode.
func (a *Authority) MayUpdateUntyped(old, new UntypedRow) (finds, makes bool, err error) {
	if finds, err = a.mayFindUntyped(old); err != nil || !finds {
		return false, false, err
	}
	if a.Update.readsNew && a.Read != nil {
		a.Input.NewUnknown = true
		finds, err = a.passesUntyped(a.Update, &old, &old, nil)
		a.Input.NewUnknown = false
		if err != nil || !finds {
			return false, false, err
		}
		if makes, err = a.passesUntyped(a.Update, &old, &old, &new); err != nil || !makes {
			return true, false, err
		}
	} else if finds, err = a.passesUntyped(a.Update, &old, &old, &new); err != nil || !finds {
		return false, false, err
	}
	makes, err = a.passesUntyped(a.Update, &new, &old, &new)
	return finds, makes, err
}

// passesUntyped evaluates a grant's rules; each reads its own members.
func (a *Authority) passesUntyped(r *Right, row, old, new *UntypedRow) (bool, error) {
	if r == nil {
		return false, nil
	}
	if r.always {
		a.observe(true, r.alwaysBy...)
		return true, nil
	}
	for _, rule := range r.allows {
		of := func(row *UntypedRow) []schema.Value {
			if row == nil {
				return nil
			}
			return row.AppendValues(make([]schema.Value, 0, len(rule.Names())), rule.Names(), a.Work)
		}
		a.Input.Row, a.Input.Old, a.Input.New = of(row), of(old), of(new)
		if err := a.Work.Err(); err != nil {
			return false, TimeOver(err)
		}
		truth, err := a.eval(rule.Rule, schema.True)
		if err != nil {
			return false, err
		}
		if a.observe(truth == schema.True, rule.by); truth == schema.True {
			return true, nil
		}
	}
	return false, nil
}

// NotFound is the error for an id of no row that the caller may read, whether the row
// exists or not.
func NotFound(entity string) error {
	return fault.New(fault.NotFound, "there is no %s with this id", entity)
}
