package runner

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"runner.example/sdk/go/internal/codec"
	"runner.example/sdk/go/internal/host"
)

// Selection is a query over the rows of an entity that the caller may read:
//
//	var orders []Order
//	err := runner.Query("Order").
//		Select("id", "total").
//		Where("status", "=", "open").
//		OrderBy("createdAt", "desc").
//		Limit(20).
//		All(ctx, &orders)
//
// Each step gives a new Selection and leaves the one it is called on as it was.
// What the caller may not read is not there: it is neither counted nor found.
// An invalid query, such as one with a field that the caller may not read, is an error
// with the code invalid that names it.
type Selection struct {
	entity  string
	fields  []string
	where   []Condition
	orderBy []order
	limit   *int
	cursor  string
	include []inclusion
}

// inclusion is a relation whose rows a query includes.
type inclusion struct {
	relation string
	query    Selection
}

type order struct{ field, direction string }

// Query begins a query of an entity.
func Query(entity string) Selection { return Selection{entity: entity} }

// Select begins a query by the fields of its rows:
//
//	runner.Select("id", "total").From("Order").Where("status", "=", "open")
func Select(fields ...string) Selection { return Selection{}.Select(fields...) }

// From names the entity of a query that Select began.
func (q Selection) From(entity string) Selection {
	q.entity = entity
	return q
}

// Select names the fields of the rows; without it they are all that the caller
// may read.
func (q Selection) Select(fields ...string) Selection {
	q.fields = append(q.fields[:len(q.fields):len(q.fields)], fields...)
	return q
}

// Where adds a condition: all that are added must hold. The operators are =, !=,
// <, <=, >, >=, in, startsWith and contains. See Condition.IgnoreCase for texts. A value that
// is missing, such as a nil pointer, is an error: Null compares with null.
func (q Selection) Where(field, operator string, value any) Selection {
	return q.Match(Field(field, operator, value))
}

// Match adds conditions made by Field, And, Or and Not.
func (q Selection) Match(conditions ...Condition) Selection {
	q.where = appendConditions(q.where, conditions)
	return q
}

// OrderBy orders the rows by a field, ascending unless the direction is "desc";
// a second one orders what is equal in the first.
func (q Selection) OrderBy(field string, direction ...string) Selection {
	o := order{field, "asc"}
	for _, d := range direction {
		o.direction = d
	}
	q.orderBy = append(q.orderBy[:len(q.orderBy):len(q.orderBy)], o)
	return q
}

// Limit bounds the rows of one page, 1 to 1,000; without it there are 100.
func (q Selection) Limit(n int) Selection {
	q.limit = &n
	return q
}

// Include includes the row of a to-one relation in place of its id, or the rows of a to-many
// relation, with the caller's authority over them: a row that the caller may not read is null.
// The query has no entity:
//
//	runner.Query("Order").
//		Include("partner", runner.Select("name")).
//		Include("lines", runner.Select().OrderBy("position").Limit(20))
//
// Of a to-one relation it has only Select and Include. Includes may have includes, on two levels.
func (q Selection) Include(relation string, query Selection) Selection {
	q.include = append(q.include[:len(q.include):len(q.include)], inclusion{relation, query})
	return q
}

// All reads the rows, at most the limit, into what rows points to: a slice. With
// nil they are left with the runner, to be handed on (see Part).
func (q Selection) All(ctx *Context, rows any) error {
	_, err := q.Page(ctx, rows, "")
	return err
}

// Page is All for the rows behind a cursor, that of the page before; the first
// page has none. It gives the cursor of the next page, empty on the last one,
// and when rows is nil: then Result, handed on, has it as nextCursor. A cursor
// holds for the same query by the same caller alone.
func (q Selection) Page(ctx *Context, rows any, cursor string) (next string, err error) {
	q.cursor = cursor
	args, err := q.arguments(true)
	if err != nil {
		return "", err
	}
	if rows == nil {
		return "", ctx.operate("query", args, nil)
	}
	page := result{Rows: codec.Into{Dest: rows}}
	err = ctx.operate("query", args, &page)
	return page.NextCursor, err
}

// First reads the first row into what row points to, and reports whether there is one:
//
//	found, err := runner.Query("Order").Where("code", "=", code).First(ctx, &order)
//
// If row is nil, it only reports that.
func (q Selection) First(ctx *Context, row any) (found bool, err error) {
	if row == nil {
		row = new(struct{})
	}
	args, err := q.Limit(1).arguments(true)
	if err != nil {
		return false, err
	}
	first := result{Rows: codec.Into{Dest: row, One: true}}
	err = ctx.operate("query", args, &first)
	return first.Rows.Found, err
}

// FirstOrFail reads the first row into what row points to. If no row matches, the error
// has the code not_found. If the handler returns this error, the answer is 404. If row is nil,
// the row is left with the runner, to be handed on (see Part). The answer is then 404 without a row.
func (q Selection) FirstOrFail(ctx *Context, row any) error {
	if row == nil {
		return q.Limit(1).All(ctx, nil)
	}
	found, err := q.First(ctx, row)
	if err == nil && !found {
		return &HostError{Code: "not_found", Op: "query", Entity: q.entity, Message: "no row of " + q.entity + " matches the conditions"}
	}
	return err
}

// Count counts the rows, without regard to the limit; Select and OrderBy mean nothing to
// it.
func (q Selection) Count(ctx *Context) (int, error) {
	args, err := q.arguments(false)
	if err != nil {
		return 0, err
	}
	var counted result
	err = ctx.operate("count", args, &counted)
	return counted.Count, err
}

// Counts is the result of an operation with a limit.
type Counts struct {
	Count int
	// More reports whether other rows match.
	More bool
}

// CountAtMost is like Count, but stops at that number of rows, 1 to 1,000,000.
func (q Selection) CountAtMost(ctx *Context, rows int) (Counts, error) {
	args, err := q.arguments(false)
	if err != nil {
		return Counts{}, err
	}
	args = strconv.AppendInt(append(args[:len(args)-1], `,"atMost":`...), int64(rows), 10)
	return counted(ctx, "count", args, nil)
}

// arguments writes the arguments of query, or those of count.
func (q Selection) arguments(rows bool) ([]byte, error) {
	args := appendText([]byte(`{"from":`), q.entity)
	args, err := appendWhere(args, q.where, false)
	if err != nil || !rows {
		return append(args, '}'), err
	}
	args, err = q.appendOptions(args)
	return append(args, '}'), err
}

// appendOptions appends the members of a query beside its entity and its conditions, each after
// a comma.
func (q Selection) appendOptions(args []byte) ([]byte, error) {
	args = appendFields(args, q.fields)
	for i, o := range q.orderBy {
		if i == 0 {
			args = append(args, `,"orderBy":[`...)
		}
		args = appendText(append(args, '['), o.field)
		args = append(appendText(append(args, ','), o.direction), ']')
		args = append(args, separator(i, len(q.orderBy)))
	}
	args = appendLimit(args, q.limit)
	if q.cursor != "" {
		args = appendText(append(args, `,"cursor":`...), q.cursor)
	}
	return appendIncludes(args, q.include)
}

func appendIncludes(args []byte, include []inclusion) ([]byte, error) {
	for i, in := range include {
		if i == 0 {
			args = append(args, `,"include":{`...)
		} else {
			args = append(args, ',')
		}
		args = append(appendText(args, in.relation), ':')
		start := len(args)
		var err error
		if args, err = appendWhere(args, in.query.where, false); err != nil {
			return nil, err
		}
		if args, err = in.query.appendOptions(args); err != nil {
			return nil, err
		}
		if len(args) == start {
			args = append(args, ',')
		}
		args[start] = '{' // in place of the first comma
		args = append(args, '}')
	}
	if len(include) > 0 {
		args = append(args, '}')
	}
	return args, nil
}

// Lookup is one row by its id.
type Lookup struct {
	entity, id string
	fields     []string
	include    []inclusion
}

// Get looks up one row by its id; the fields are all that the caller may read
// unless some are named.
//
//	var order Order
//	err := runner.Get("Order", req.Param("id")).Row(ctx, &order)
func Get(entity, id string, fields ...string) Lookup {
	return Lookup{entity: entity, id: id, fields: fields}
}

// Include includes rows of a relation: see Selection.Include.
func (l Lookup) Include(relation string, query Selection) Lookup {
	l.include = append(l.include[:len(l.include):len(l.include)], inclusion{relation, query})
	return l
}

// Row reads the row into what row points to. A row that is not there and one
// that the caller may not read are the same error, with the code not_found. With
// nil the row is left with the runner, to be handed on.
func (l Lookup) Row(ctx *Context, row any) error {
	args := appendText([]byte(`{"from":`), l.entity)
	args, err := appendArgument(append(args, `,"id":`...), "get", "id", l.id)
	if err != nil {
		return err
	}
	args, err = appendIncludes(appendFields(args, l.fields), l.include)
	if err != nil {
		return err
	}
	args = append(args, '}')
	if row == nil {
		return ctx.operate("get", args, nil)
	}
	return ctx.operate("get", args, &result{Row: codec.Into{Dest: row}})
}

// Condition is what a row must be like.
type Condition struct {
	// Either a comparison of a field, or a word with conditions behind it.
	field, operator string
	value           any
	ignoreCase      bool
	word            string
	conditions      []Condition
}

// Null is the null of a condition, with = and !=:
//
//	runner.Query("Order").Where("paidAt", "=", runner.Null)
//
// Any other value that is null in JSON is taken for one that is missing. In the values of
// Insert and Update, nil is null too.
var Null = null{}

type null struct{}

// MarshalJSON implements json.Marshaler.
func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Field compares a field: see Selection.Where for the operators and the value.
func Field(field, operator string, value any) Condition {
	return Condition{field: field, operator: operator, value: value}
}

// IgnoreCase makes a comparison by Field with =, startsWith or contains one without regard to
// case, by the case folding of Unicode:
//
//	q.Match(runner.Field("name", "contains", text).IgnoreCase())
func (c Condition) IgnoreCase() Condition {
	c.ignoreCase = true
	return c
}

// And holds when all of the conditions do.
func And(conditions ...Condition) Condition {
	return Condition{word: "and", conditions: appendConditions(nil, conditions)}
}

// Or holds when one of the conditions does.
func Or(conditions ...Condition) Condition { return Condition{word: "or", conditions: conditions} }

// Not holds when the condition does not.
func Not(condition Condition) Condition {
	return Condition{word: "not", conditions: []Condition{condition}}
}

// appendConditions takes an And apart: a list of conditions is one.
func appendConditions(all, more []Condition) []Condition {
	all = all[:len(all):len(all)]
	for _, c := range more {
		if c.word == "and" {
			all = append(all, c.conditions...)
		} else {
			all = append(all, c)
		}
	}
	return all
}

func (c Condition) append(dst []byte) ([]byte, error) {
	var err error
	switch c.word {
	case "":
		dst = appendText(append(dst, '['), c.field)
		dst = appendText(append(dst, ','), c.operator)
		if dst, err = c.appendOperand(append(dst, ',')); err != nil {
			return nil, err
		}
		if c.ignoreCase {
			dst = append(dst, `,"ignoreCase"`...)
		}
		return append(dst, ']'), err
	case "and":
		return appendList(dst, c.conditions)
	default:
		dst = appendText(append(dst, '['), c.word)
		for _, inner := range c.conditions {
			if dst, err = inner.append(append(dst, ',')); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	}
}

// appendOperand appends the value that a field is compared with.
func (c Condition) appendOperand(dst []byte) ([]byte, error) {
	start := len(dst)
	dst, where, what := appendExact(dst, c.value)
	switch {
	case what != "" && where != "":
		what = "has " + what + " at " + strings.TrimPrefix(where, ".")
	case what != "":
		what = "is " + what
	case c.operator == "in" && isNilList(c.value):
		return append(dst[:start], "[]"...), nil
	case string(dst[start:]) == "null" && c.value != any(Null):
		what = "is nil"
	default:
		return dst, nil
	}
	return nil, invalid("query", "%s: the value of %s %s: check it before the query, or compare with runner.Null",
		c.field, c.operator, what)
}

// isNilList reports whether v is a nil slice, which is a list without elements everywhere in Go.
func isNilList(v any) bool {
	list := reflect.ValueOf(v)
	return list.Kind() == reflect.Slice && list.IsNil() && list.Type().Elem().Kind() != reflect.Uint8
}

func invalid(op, format string, values ...any) error {
	return &HostError{Code: "invalid", Message: fmt.Sprintf(format, values...), Op: op}
}

// appendWhere appends the conditions; without any it says nothing, or, when every
// row is meant, that.
func appendWhere(dst []byte, where []Condition, every bool) ([]byte, error) {
	if len(where) == 0 && !every {
		return dst, nil
	}
	return appendList(append(dst, `,"where":`...), where)
}

func appendList(dst []byte, conditions []Condition) ([]byte, error) {
	dst = append(dst, '[')
	for i, c := range conditions {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = c.append(dst); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendFields(dst []byte, fields []string) []byte { return appendNames(dst, "select", fields) }

// appendNames appends a member that is a list of names; without any it appends nothing.
func appendNames(dst []byte, member string, names []string) []byte {
	for i, f := range names {
		if i == 0 {
			dst = append(appendText(append(dst, ','), member), `:[`...)
		}
		dst = append(appendText(dst, f), separator(i, len(names)))
	}
	return dst
}

// separator stands behind the i-th of n items of a list.
func separator(i, n int) byte {
	if i == n-1 {
		return ']'
	}
	return ','
}

func appendText(dst []byte, s string) []byte {
	if isPlain(s) { // most are: no encoder needed
		return append(append(append(dst, '"'), s...), '"')
	}
	dst, _ = codec.Append(dst, s) // a string is always JSON
	return dst
}

func isPlain(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) < 0
}

// appendArgument appends the member of that name of an operation's arguments.
func appendArgument(dst []byte, op, member string, v any) ([]byte, error) {
	dst, where, what := appendExact(dst, v)
	if what == "" {
		return dst, nil
	}
	return nil, invalid(op, "%s: %s is %s: check it first, or use nil on purpose",
		op, strings.TrimPrefix(member+where, "."), what)
}

func appendExact(dst []byte, v any) (out []byte, where, what string) {
	if s, ok := v.(string); ok && isPlain(s) {
		return appendText(dst, s), "", ""
	}
	return codec.AppendExact(dst, v)
}

// result is what the operations on rows return: each has some of the members.
type result struct {
	Rows       codec.Into `json:"rows"`
	Row        codec.Into `json:"row"`
	NextCursor string     `json:"nextCursor"`
	Count      int        `json:"count"`
	More       bool       `json:"more"`
}

// operate runs an operation with the caller's authority. A nil result is left
// with the host.
func (c *Context) operate(op string, args []byte, result *result) error {
	if c == nil {
		return errors.New("runner: " + op + " without the handler's context")
	}
	if err := c.host.Call(op, args); err != nil || result == nil {
		return host.Of(op, err)
	}
	text, err := c.host.Result()
	if err == nil {
		err = codec.Envelope(text, result)
	}
	return host.Of(op, err)
}
