package query

import (
	"slices"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/timezone"
	"runner.example/schema"
)

// Grouping is a field that an aggregate groups by. The rows of a group have the same value of the field, or values
// in the same day, week or month.
type Grouping struct {
	Field *schema.Field
	// Type is the type of a group's value: the type of the field, or a date if there is a period.
	Type *schema.Type

	period string // empty: none
	zone   *time.Location
}

// The periods of a Grouping.
const (
	periodDay   = "day"
	periodWeek  = "week"
	periodMonth = "month"
)

// Of returns the value of the group of a row. For a period it is the first day, in the time zone of the grouping.
func (g *Grouping) Of(v schema.Value) schema.Value {
	if g.period == "" || v.IsNull() {
		return v
	}
	var at time.Time
	if v.Kind() == schema.KindTime {
		at = time.UnixMilli(v.Int()).In(g.zone)
	} else {
		at = time.Unix(v.Int()*24*60*60, 0).UTC()
	}
	year, month, day := at.Date()
	first := inCalendar(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))
	switch g.period {
	case periodWeek:
		first = first.AddDate(0, 0, -(int(first.Weekday())+6)%7) // days since Monday
	case periodMonth:
		first = first.AddDate(0, 0, 1-first.Day())
	}
	return schema.Today(inCalendar(first))
}

// The first and the last date.
var firstDate, lastDate = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// inCalendar returns the date that is nearest to a day: at the end of the year 9999, zones east of UTC are in the year
// 10000, and the first week begins before the year 0.
func inCalendar(day time.Time) time.Time {
	switch {
	case day.Before(firstDate):
		return firstDate
	case day.After(lastDate):
		return lastDate
	}
	return day
}

// HasPeriod reports whether rows are grouped by a day, week or month.
func (g *Grouping) HasPeriod() bool { return g.period != "" }

// readGroupBy parses groupBy: a list of field names, of [field, period] and of [field, period, zone]. It returns nil
// if groupBy is omitted.
func (r *reader) readGroupBy(raw []byte) ([]Grouping, error) {
	if raw == nil {
		return nil, nil
	}
	if raw[0] != '[' {
		return nil, Invalidf("%s: must be a list of fields", memberGroupBy)
	}
	var list []Grouping
	for i, elem := range elementsOf(raw) {
		at := ElementPath(memberGroupBy.String(), i)
		if i == MaxGroupFields {
			return nil, Invalidf("groupBy: at most %d fields are allowed", MaxGroupFields)
		}
		g, err := r.readGrouping(elem, at)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(other Grouping) bool { return other.Field == g.Field }) {
			return nil, Invalidf("%s: %q is given twice", at, g.Field.Name)
		}
		list = append(list, g)
	}
	return list, nil
}

func (r *reader) readGrouping(raw []byte, at string) (g Grouping, err error) {
	if raw[0] != '[' {
		if g.Field, err = r.readField(memberGroupBy, raw, at, (*Column).sorts); err == nil {
			g.Type = &g.Field.Type
		}
		return g, err
	}
	var parts [][]byte
	for _, part := range elementsOf(raw) {
		parts = append(parts, part)
	}
	if len(parts) < 2 || len(parts) > 3 {
		return g, Invalidf("%s: must be [field, period] or [field, period, time zone]", at)
	}
	isTime := false
	g.Field, err = r.readField(memberGroupBy, parts[0], at, func(c *Column) bool {
		isTime = !c.isList() && c.kind() == schema.Time
		return isTime || !c.isList() && c.kind() == schema.Date
	})
	if err != nil {
		return g, err
	}
	g.Type = &schema.Type{Kind: schema.Date}
	g.period, _ = textOf(parts[1])
	if !slices.Contains([]string{periodDay, periodWeek, periodMonth}, g.period) {
		return g, invalidValue("groupBy", parts[1], "the period must be day, week or month",
			"%s: the period must be %q, %q or %q", at, periodDay, periodWeek, periodMonth)
	}
	g.zone = time.UTC
	if len(parts) < 3 || string(parts[2]) == "null" {
		return g, nil
	}
	name, ok := textOf(parts[2])
	switch {
	case !ok:
		return g, invalidValue("groupBy", parts[2], "the time zone must be a name",
			"%s: the time zone must be a name, such as \"Europe/Berlin\"", at)
	case !isTime:
		return g, Invalidf("%s: %s is a date and has no time zone: remove the time zone", at, g.Field.Name)
	}
	if g.zone, err = timezone.Load(name); err != nil {
		return g, invalidValue("groupBy", parts[2], fault.Of(err).Detail, "%s: %s", at, fault.Of(err).Detail)
	}
	return g, nil
}
