package runner

import (
	"slices"

	"runner.example/sdk/go/internal/codec"
)

// Aggregation computes over the rows of an entity that the caller may read:
//
//	var groups []struct {
//		Group struct{ Status string }
//		Count int
//		Sum   struct{ Total *string }
//	}
//	err := runner.Aggregate("Order").GroupBy("status").Sum("total").Count().All(ctx, &groups)
//
// Each step gives a new Aggregation and leaves the one it is called on as it was. Null is no
// value: a function without values is null. Sums are exact; an average of decimals has six more
// places.
type Aggregation struct {
	entity string
	where  []Condition
	by     []grouping
	count  bool
	fields [4][]string // of functions
}

// grouping is a field to group by, or a field with a period and maybe a time zone.
type grouping []string

// The functions of an Aggregation, by the positions of their fields.
var functions = [4]string{"sum", "avg", "min", "max"}

// Aggregate begins an aggregation of an entity.
func Aggregate(entity string) Aggregation { return Aggregation{entity: entity} }

// Where adds a condition: see Selection.Where.
func (a Aggregation) Where(field, operator string, value any) Aggregation {
	return a.Match(Field(field, operator, value))
}

// Match adds conditions made by Field, And, Or and Not.
func (a Aggregation) Match(conditions ...Condition) Aggregation {
	a.where = appendConditions(a.where, conditions)
	return a
}

// GroupBy names the fields, at most two, that are equal in a group. Without it all rows are one
// group. There may be 1,000 groups; they are ordered by these fields.
func (a Aggregation) GroupBy(fields ...string) Aggregation {
	a.by = slices.Clone(a.by)
	for _, f := range fields {
		a.by = append(a.by, grouping{f})
	}
	return a
}

// GroupByTime groups by the "day", "week" or "month" of a time, in a time zone such as
// "Europe/Berlin"; without one in UTC. The group has the first day of the period, such as
// "2026-10-25". Weeks begin on Monday. A date has no time zone.
func (a Aggregation) GroupByTime(field, period string, zone ...string) Aggregation {
	a.by = append(slices.Clone(a.by), append(grouping{field, period}, zone...))
	return a
}

// Count computes the number of rows, as "count".
func (a Aggregation) Count() Aggregation {
	a.count = true
	return a
}

// Sum computes the sums of fields, as "sum".
func (a Aggregation) Sum(fields ...string) Aggregation { return a.with(0, fields) }

// Avg computes the averages of fields, as "avg".
func (a Aggregation) Avg(fields ...string) Aggregation { return a.with(1, fields) }

// Min computes the least values of fields, as "min".
func (a Aggregation) Min(fields ...string) Aggregation { return a.with(2, fields) }

// Max computes the greatest values of fields, as "max".
func (a Aggregation) Max(fields ...string) Aggregation { return a.with(3, fields) }

func (a Aggregation) with(function int, fields []string) Aggregation {
	a.fields[function] = slices.Concat(a.fields[function], fields)
	return a
}

// All reads the groups into what groups points to: a slice. With nil they are left with the
// runner, to be handed on (see Part).
func (a Aggregation) All(ctx *Context, groups any) error {
	args := appendText([]byte(`{"from":`), a.entity)
	args, err := appendWhere(args, a.where, false)
	if err != nil {
		return err
	}
	args = appendGroupings(args, a.by)
	if a.count {
		args = append(args, `,"count":true`...)
	}
	for i, name := range functions {
		args = appendNames(args, name, a.fields[i])
	}
	args = append(args, '}')
	if groups == nil {
		return ctx.operate("aggregate", args, nil)
	}
	return ctx.operate("aggregate", args, &result{Rows: codec.Into{Dest: groups}})
}

func appendGroupings(args []byte, by []grouping) []byte {
	for i, g := range by {
		if i == 0 {
			args = append(args, `,"groupBy":[`...)
		}
		if len(g) > 1 {
			args = append(args, '[')
		}
		for k, part := range g {
			if args = appendText(args, part); len(g) > 1 {
				args = append(args, separator(k, len(g)))
			}
		}
		args = append(args, separator(i, len(by)))
	}
	return args
}
