package runner

import (
	"strconv"

	"runner.example/sdk/go/internal/codec"
)

// Insertion puts new rows into an entity.
type Insertion struct {
	entity string
	values any
}

// Insert makes one row of an object (a struct or a map), or as many as a list
// has, at most 1,000. The runner fills in ids, defaults and the tenant, and takes
// no value for what is not the caller's to write.
//
//	var order struct{ ID string }
//	err := runner.Insert("Order", values).Row(ctx, &order)
//
// A field of a struct without a value is to be left out, not null or empty: mark
// it omitempty.
func Insert(entity string, values any) Insertion { return Insertion{entity, values} }

// Row inserts, and reads the new row (of several, the first) into what row
// points to; nil leaves it with the runner, to be handed on.
func (i Insertion) Row(ctx *Context, row any) error {
	if row == nil {
		return i.Rows(ctx, nil)
	}
	return i.run(ctx, &result{Rows: codec.Into{Dest: row, One: true}})
}

// Rows inserts, and reads the new rows into what rows points to: a slice; nil
// leaves them with the runner.
func (i Insertion) Rows(ctx *Context, rows any) error {
	if rows == nil {
		return i.run(ctx, nil)
	}
	return i.run(ctx, &result{Rows: codec.Into{Dest: rows}})
}

func (i Insertion) run(ctx *Context, into *result) error {
	args := appendText([]byte(`{"into":`), i.entity)
	args, err := appendArgument(append(args, `,"values":`...), "insert", "values", i.values)
	if err != nil {
		return err
	}
	return ctx.operate("insert", append(args, '}'), into)
}

// Change sets fields of rows.
type Change struct {
	entity string
	set    any
	where  []Condition
	every  bool
}

// Update sets the members of an object (a struct or a map) in the rows that the
// caller may read and change:
//
//	n, err := runner.Update("Order", map[string]any{"status": "paid"}).Where("id", "=", id).Run(ctx)
//
// What the object does not have stays as it is. So does a field of a struct that is omitempty
// and zero: to set one to zero or "", use a map, or a pointer, which only nil leaves out.
//
// Without a condition it is an error, unless Every says that all rows are meant.
// A row that the caller may not change as it is now is left alone; a change that
// would make of it what the caller may not make is an error with the code denied,
// and then no row is changed.
func Update(entity string, set any) Change { return Change{entity: entity, set: set} }

// Where adds a condition, as that of a query does.
func (u Change) Where(field, operator string, value any) Change {
	return u.Match(Field(field, operator, value))
}

// Match adds conditions made by Field, And, Or and Not.
func (u Change) Match(conditions ...Condition) Change {
	u.where = appendConditions(u.where, conditions)
	return u
}

// Every selects all rows; without a condition it is required.
func (u Change) Every() Change {
	u.every = true
	return u
}

// Limit changes at most that number of rows, 1 to 1,000. Run then reports whether other rows match:
//
//	done, err := runner.Update("Order", set).Where("status", "=", "open").Limit(500).Run(ctx)
//
// It is the last step.
func (u Change) Limit(rows int) LimitedChange { return LimitedChange{u, rows} }

// Run updates the rows and returns their number.
func (u Change) Run(ctx *Context) (int, error) { return u.Rows(ctx, nil) }

// Rows is Run that also reads the rows as they are now into what rows points
// to: a slice; nil leaves them with the runner.
func (u Change) Rows(ctx *Context, rows any) (int, error) {
	done, err := u.run(ctx, nil, rows)
	return done.Count, err
}

func (u Change) run(ctx *Context, limit *int, rows any) (Counts, error) {
	args := appendText([]byte(`{"in":`), u.entity)
	args, err := appendArgument(append(args, `,"set":`...), "update", "set", u.set)
	if err != nil {
		return Counts{}, err
	}
	if args, err = appendWhere(args, u.where, u.every); err != nil {
		return Counts{}, err
	}
	return counted(ctx, "update", appendLimit(args, limit), rows)
}

// LimitedChange is a Change with a limit.
type LimitedChange struct {
	change Change
	limit  int
}

// Run updates the rows. It returns their number, and whether other rows match.
func (l LimitedChange) Run(ctx *Context) (Counts, error) { return l.Rows(ctx, nil) }

// Rows is Run that also reads the rows as they are now: see Change.Rows.
func (l LimitedChange) Rows(ctx *Context, rows any) (Counts, error) {
	return l.change.run(ctx, &l.limit, rows)
}

// Removal deletes rows.
type Removal struct {
	entity string
	where  []Condition
	every  bool
}

// Remove deletes the rows that the caller may read and delete:
//
//	n, err := runner.Remove("Order").Where("id", "=", id).Run(ctx)
//
// Without a condition it is an error, unless Every says that all rows are meant.
func Remove(entity string) Removal { return Removal{entity: entity} }

// Where adds a condition, as that of a query does.
func (r Removal) Where(field, operator string, value any) Removal {
	return r.Match(Field(field, operator, value))
}

// Match adds conditions made by Field, And, Or and Not.
func (r Removal) Match(conditions ...Condition) Removal {
	r.where = appendConditions(r.where, conditions)
	return r
}

// Every selects all rows; without a condition it is required.
func (r Removal) Every() Removal {
	r.every = true
	return r
}

// Limit deletes at most that number of rows, 1 to 1,000. Run then reports whether other rows
// match. It is the last step.
func (r Removal) Limit(rows int) LimitedRemoval { return LimitedRemoval{r, rows} }

// Run deletes the rows and returns their number.
func (r Removal) Run(ctx *Context) (int, error) {
	done, err := r.run(ctx, nil)
	return done.Count, err
}

func (r Removal) run(ctx *Context, limit *int) (Counts, error) {
	args, err := appendWhere(appendText([]byte(`{"from":`), r.entity), r.where, r.every)
	if err != nil {
		return Counts{}, err
	}
	return counted(ctx, "delete", appendLimit(args, limit), nil)
}

// LimitedRemoval is a Removal with a limit.
type LimitedRemoval struct {
	removal Removal
	limit   int
}

// Run deletes the rows. It returns their number, and whether other rows match.
func (l LimitedRemoval) Run(ctx *Context) (Counts, error) { return l.removal.run(ctx, &l.limit) }

func appendLimit(args []byte, limit *int) []byte {
	if limit == nil {
		return args
	}
	return strconv.AppendInt(append(args, `,"limit":`...), int64(*limit), 10)
}

// counted runs an operation whose result has a count and may have rows.
func counted(ctx *Context, op string, args []byte, rows any) (Counts, error) {
	args = append(args, '}')
	into := result{Rows: codec.Into{Dest: rows}}
	err := ctx.operate(op, args, &into)
	return Counts{into.Count, into.More}, err
}
