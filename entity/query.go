package entity

import (
	"cmp"
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
	maxRows      = 1000 // of one insert
	// maxSelected bounds the names in a select of untyped mode, where the schema
	// does not; maxOrder the terms of an orderBy.
	maxSelected = 256
	maxOrder    = 16
)

// query is what a query, get, count, update or delete asks for: names resolved
// to positions, and nothing in it that the caller may not ask.
type query struct {
	entity string
	where  condition // opAnd
	// order ends with the row's id. Only written terms come from the caller.
	order   []orderTerm
	written int
	limit   int
	// after holds the values of order in the last row of the page before; nil:
	// from the start.
	after []schema.Value
	// selected are the positions to give back, in this order.
	selected []int
	// id is the row that a get is about.
	id string

	// names are, in untyped mode, the members of a row that where and order look
	// at: rows hold their values in this order. The id is the first.
	names []string
	// members are, in untyped mode, those to give back, in this order; nil: all
	// that only, unless nil, names.
	members, only []string
	memberAt      map[string]int // places in members

	binding [32]byte // of cursors; zero: not yet computed
}

// reader resolves the names in a query's arguments.
type reader struct {
	*authority
	right *right // bounds the names; nil: none but the id
	id    column
	// idToo: the id may be named whatever the right says.
	idToo bool
	names *[]string // untyped mode
}

// query reads the arguments of a query, get, count, update or delete of an
// entity. Faults are Denied, when the caller has no right to the operation, and
// Invalid.
func (a *arguments) query(auth *authority, cursors *sealer) (*query, error) {
	action := schema.ActRead
	switch a.op {
	case opUpdate:
		action = schema.ActUpdate
	case opDelete:
		action = schema.ActDelete
	}
	if _, err := auth.may(action); err != nil {
		return nil, err
	}
	q := &query{entity: auth.name, where: condition{op: opAnd}, limit: defaultLimit}
	r := &reader{authority: auth, right: auth.read, names: &q.names, idToo: action != schema.ActRead}
	if auth.entity != nil {
		r.id = auth.columns[auth.entity.ID.Pos]
	} else {
		r.id, q.names = column{name: "id"}, []string{"id"}
	}
	if err := a.readID(q); err != nil {
		return nil, err
	}
	if raw := a.members[memberWhere]; raw != nil {
		in := conditions{reader: r}
		var err error
		if q.where, err = in.list(raw, "where", 0); err != nil {
			return nil, err
		}
	}
	if err := r.readOrder(a.members[memberOrderBy], q); err != nil {
		return nil, err
	}
	if err := a.readLimit(q); err != nil {
		return nil, err
	}
	if err := r.readSelect(a.members[memberSelect], q); err != nil {
		return nil, err
	}
	if raw := a.members[memberCursor]; raw != nil {
		return q, q.resume(raw, cursors, auth.scene.Caller)
	}
	return q, nil
}

func (a *arguments) readID(q *query) error {
	raw := a.members[memberID]
	if raw == nil {
		return nil
	}
	var ok bool
	if q.id, ok = textOf(raw); !ok {
		return invalid("id: must be a string")
	}
	return nil
}

func (a *arguments) readLimit(q *query) error {
	raw := a.members[memberLimit]
	if raw == nil {
		return nil
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 1 || n > maxLimit {
		return invalid("limit: must be a whole number from 1 to %d", maxLimit)
	}
	q.limit = n
	return nil
}

// column finds what a condition or an order names.
func (r *reader) column(name, at string) (column, error) {
	if r.idToo && name == r.id.name {
		return r.id, nil
	}
	if r.right == nil {
		return column{}, invalid("%s: %q cannot be named: without the right to read, only %s can", at, name, r.id.name)
	}
	if r.entity == nil {
		return r.freeColumn(name, at)
	}
	f, err := r.readable(r.right, name, at)
	switch {
	case err != nil:
		return column{}, err
	case f.Type.Kind == schema.ToMany:
		return column{}, invalid("%s: %s.%s is a to-many relation: ask %s where %s is the row's id", at, r.authority.name, name, f.Type.Entity.Name, f.Inverse.Name)
	}
	return r.columns[f.Pos], nil
}

// freeColumn gives the place of a member of untyped rows.
func (r *reader) freeColumn(name, at string) (column, error) {
	if !r.right.reaches(name) {
		return column{}, r.noMember(name, at)
	}
	pos := slices.Index(*r.names, name)
	if pos < 0 {
		pos = len(*r.names)
		*r.names = append(*r.names, name)
	}
	return column{name: name, pos: pos}, nil
}

// reaches reports that an untyped grant lets the member pass.
func (g *right) reaches(name string) bool {
	return g.only == nil || slices.Contains(g.only, name)
}

func (r *reader) noMember(name, at string) error {
	return invalid("%s: %s has no field %q that the caller may read%s", at, r.authority.name, name, diag.DidYouMean(name, r.right.only))
}

func (r *reader) readSelect(raw []byte, q *query) error {
	switch {
	case r.right == nil:
		return nil
	case r.entity == nil:
		q.only = r.right.only
	case raw == nil:
		q.selected = r.right.selected
	}
	if raw == nil {
		return nil
	}
	if raw[0] != '[' {
		return invalid("select: must be a list of fields")
	}
	q.selected, q.members, q.memberAt = []int{}, []string{}, map[string]int{}
	for i, elem := range elementsOf(raw) {
		if i == maxSelected && r.entity == nil {
			return invalid("select: more than %d fields", maxSelected)
		}
		at := place("select", i)
		name, ok := textOf(elem)
		if !ok {
			return invalid("%s: must be the name of a field", at)
		}
		if err := r.selectOne(name, at, q); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) selectOne(name, at string, q *query) error {
	if r.entity == nil {
		_, twice := q.memberAt[name]
		switch {
		case !r.right.reaches(name):
			return r.noMember(name, at)
		case twice:
			return invalid("%s: %q is given twice", at, name)
		}
		q.memberAt[name] = len(q.members)
		q.members = append(q.members, name)
		return nil
	}
	f, err := r.readable(r.right, name, at)
	switch {
	case err != nil:
		return err
	case slices.Contains(q.selected, f.Pos):
		return invalid("%s: %q is given twice", at, name)
	case f.Type.Kind == schema.ToMany:
		return invalid("%s: %s.%s is a to-many relation and cannot be selected: query %s", at, r.authority.name, name, f.Type.Entity.Name)
	}
	q.selected = append(q.selected, f.Pos)
	return nil
}

// appendJSON appends the query as arguments in their one canonical form,
// without its select, limit and cursor: what a cursor is bound to.
func (q *query) appendJSON(dst []byte) []byte {
	dst = appendText(append(dst, `{"from":`...), q.entity)
	dst = q.where.appendJSON(append(dst, `,"where":`...))
	dst = append(dst, `,"orderBy":[`...)
	for i := range q.order[:q.written] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(append(dst, '['), q.order[i].name)
		if q.order[i].desc {
			dst = append(dst, `,"desc"]`...)
		} else {
			dst = append(dst, `,"asc"]`...)
		}
	}
	return append(dst, `]}`...)
}

// ---- what is written ----

// input is what a caller gives for one row.
type input struct {
	// values by Field.Pos; only those given count.
	values []schema.Value
	given  fieldSet
	// object is, in untyped mode, the compact JSON object without its id; id is
	// the one that an import gave.
	object []byte
	id     string
	// members are those of object, in the set of an update.
	members map[string][]byte
}

// inputs reads the values of an insert, checked field by field: types, bounds,
// and that the caller may write them. What is missing is for the caller of this
// to see. Faults are Denied and Invalid.
func (a *arguments) inputs(auth *authority) ([]input, error) {
	right, err := auth.may(schema.ActInsert)
	if err != nil {
		return nil, err
	}
	raw := a.members[memberValues]
	switch raw[0] {
	case '{':
		in, err := auth.readInput(right, raw, "values")
		return []input{in}, err
	case '[':
	default:
		return nil, invalid("values: must be an object or a list of objects")
	}
	var list []input
	for i, elem := range elementsOf(raw) {
		if err := auth.work.Spend(rowUnits); err != nil {
			return nil, timeOver(err)
		}
		at := place("values", i)
		switch {
		case i == maxRows:
			return nil, invalid("values: more than %d rows", maxRows)
		case elem[0] != '{':
			return nil, invalid("%s: must be an object", at)
		}
		in, err := auth.readInput(right, elem, at)
		if err != nil {
			return nil, err
		}
		list = append(list, in)
	}
	return list, nil
}

// changes reads the set of an update, checked as by inputs.
func (a *arguments) changes(auth *authority) (input, error) {
	right, err := auth.may(schema.ActUpdate)
	if err != nil {
		return input{}, err
	}
	raw := a.members[memberSet]
	if raw[0] != '{' {
		return input{}, invalid("set: must be an object")
	}
	in, err := auth.readInput(right, raw, "set")
	if err == nil && auth.entity == nil {
		in.members = maps.Collect(membersOf(in.object))
	}
	return in, err
}

func (a *authority) readInput(right *right, object []byte, at string) (input, error) {
	if a.entity == nil {
		return a.readFreeInput(right, object, at)
	}
	in := input{values: make([]schema.Value, len(a.entity.Fields)), given: make(fieldSet, len(a.entity.Fields))}
	for name, raw := range membersOf(object) {
		f, err := a.writable(right, name, at)
		if err != nil {
			return in, err
		}
		in.values[f.Pos], err = f.Type.ParseMetered(raw, a.work)
		if over := a.work.Spend(argumentUnits * len(raw)); over != nil {
			return in, timeOver(over)
		}
		if err != nil {
			return in, invalid("%s.%s: %v", at, name, err)
		}
		in.given[f.Pos] = true
	}
	return in, nil
}

// writable finds a field that the caller may set, by name. Why a field that the
// caller may read cannot be set is told; any other fails as one that does not
// exist does.
func (a *authority) writable(right *right, name, at string) (*schema.Field, error) {
	f := a.entity.Field(name)
	if f != nil && right.fields[f.Pos] {
		return f, nil
	}
	if f != nil && a.read != nil && a.read.fields[f.Pos] {
		if why := a.whyHosts(f); why != "" {
			return nil, invalid("%s.%s: %s", at, name, why)
		}
	}
	return nil, invalid("%s: %s has no field %q that the caller may write%s", at, a.name, name, diag.DidYouMean(name, a.names(right)))
}

func (a *authority) whyHosts(f *schema.Field) string {
	switch {
	case f == a.entity.ID:
		return "ids are made by the host and never given"
	case f == a.entity.Tenant:
		return "the tenant is the caller's and never given"
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

// freeRow is a row of untyped mode: a JSON object, and its id.
type freeRow struct {
	id     string
	object []byte
}

// appendValues appends the values of the members called names. When m fails, they mean
// nothing.
func (r freeRow) appendValues(dst []schema.Value, names []string, m *cost.Meter) []schema.Value {
	_ = m.Spend(len(r.object))
	start := len(dst)
	for _, name := range names {
		v := schema.Value{}
		if name == "id" {
			v = schema.TextValue(r.id)
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
	for name, raw := range membersOf(r.object) {
		i, ok := at[name]
		if at == nil {
			i = slices.Index(names, name)
			ok = i >= 0
		}
		if ok && name != "id" {
			values[i] = freeValue(raw, m)
		}
	}
	return dst
}

// fewNames are found one by one sooner than by a map.
const fewNames = 8

func (a *authority) readFreeInput(right *right, object []byte, at string) (input, error) {
	in := input{object: []byte{'{'}}
	members := 0
	for name, raw := range membersOf(object) {
		if err := a.work.Spend(argumentUnits * (len(name) + len(raw))); err != nil {
			return in, timeOver(err)
		}
		switch {
		case name == "id" && a.allowance == a.importing:
			id, err := (&schema.Type{Kind: schema.ID}).Parse(raw)
			if err != nil {
				return in, invalid("%s.id: %v", at, err)
			}
			in.id = id.Text()
			continue
		case name == "id":
			return in, invalid("%s.id: ids are made by the host and never given", at)
		case !right.reaches(name):
			return in, invalid("%s: %s has no field %q that the caller may write%s", at, a.name, name, diag.DidYouMean(name, right.only))
		}
		if members++; members > maxFreeMembers {
			return in, invalid("%s: more than %d fields", at, maxFreeMembers)
		}
		if members > 1 {
			in.object = append(in.object, ',')
		}
		in.object = append(appendText(in.object, name), ':')
		var err error
		if in.object, err = jsontext.AppendFormat(in.object, raw); err != nil {
			return in, invalid("%s.%s: is not JSON", at, name)
		}
	}
	in.object = append(in.object, '}')
	return in, nil
}

// mayReadFree is mayRead of untyped mode; so below.
func (a *authority) mayReadFree(row freeRow) (bool, error) {
	return a.passesFree(a.read, &row, nil, nil)
}

func (a *authority) mayInsertFree(row freeRow) (bool, error) {
	return a.passesFree(a.insert, &row, nil, &row)
}

func (a *authority) mayFindFree(row freeRow) (bool, error) {
	return a.passesFree(cmp.Or(a.read, everyRow), &row, nil, nil)
}

// everyRow is the right of those who find rows by id alone.
var everyRow = &right{always: true}

func (a *authority) mayDeleteFree(row freeRow) (bool, error) {
	if may, err := a.mayFindFree(row); err != nil || !may {
		return false, err
	}
	return a.passesFree(a.delete, &row, nil, nil)
}

func (a *authority) mayUpdateFree(old, new freeRow) (finds, makes bool, err error) {
	if finds, err = a.mayFindFree(old); err != nil || !finds {
		return false, false, err
	}
	if finds, err = a.passesFree(a.update, &old, &old, &new); err != nil || !finds {
		return false, false, err
	}
	makes, err = a.passesFree(a.update, &new, &old, &new)
	return finds, makes, err
}

// passesFree asks a grant's rules, each of which looks at members of its own.
func (a *authority) passesFree(r *right, row, old, new *freeRow) (bool, error) {
	if r == nil || r.always {
		return r != nil, nil
	}
	for _, rule := range r.allows {
		of := func(row *freeRow) []schema.Value {
			if row == nil {
				return nil
			}
			return row.appendValues(make([]schema.Value, 0, len(rule.Names())), rule.Names(), a.work)
		}
		a.scene.Row, a.scene.Old, a.scene.New = of(row), of(old), of(new)
		if err := a.work.Err(); err != nil {
			return false, timeOver(err)
		}
		if truth, err := rule.Eval(&a.scene); err != nil || truth == schema.True {
			return err == nil, err
		}
	}
	return false, nil
}

// notFound is the answer to every id that leads to no row that the caller may
// see, whether there is one or not.
func notFound(entity string) error {
	return fault.New(fault.NotFound, "there is no %s with this id", entity)
}
