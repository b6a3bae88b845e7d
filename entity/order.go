package entity

import (
	"slices"

	"runner.example/schema"
)

// orderTerm is one column of an order.
type orderTerm struct {
	column
	desc bool
}

// Rows are ordered by the terms of orderBy and, where these are equal, by id in
// the direction of the last of them, ascending without any: so one index serves
// both directions. The last term of every query's order is the id (for those who
// reach several tenants, the tenant), and no two rows are equal. Null comes before every value, false before true, texts are in
// the order of their code points, enums in that of their names; desc turns all of
// it round.

// readOrder parses orderBy, nil when omitted, and appends the id unless it is in it.
func (r *reader) readOrder(raw []byte, q *query) error {
	if raw != nil && raw[0] != '[' {
		return invalid("orderBy: must be a list of [field, direction]")
	}
	if raw != nil {
		for i, elem := range elementsOf(raw) {
			if i == maxOrder {
				return invalid("orderBy: more than %d terms", maxOrder)
			}
			term, err := r.readTerm(elem, place("orderBy", i))
			if err != nil {
				return err
			}
			if q.orders(term.pos) {
				return invalid("%s: %q is given twice", place("orderBy", i), term.name)
			}
			q.order = append(q.order, term)
		}
	}
	q.written = len(q.order)
	if !q.orders(r.id.pos) {
		desc := q.written > 0 && q.order[q.written-1].desc
		q.order = append(q.order, orderTerm{r.id, desc})
	}
	// Ids from an identity provider may be equal in several tenants.
	if r.entity != nil && r.entity.Tenant != nil && r.anyTenant && !q.orders(r.entity.Tenant.Pos) {
		last := &q.order[len(q.order)-1]
		q.order = append(q.order, orderTerm{r.columns[r.entity.Tenant.Pos], last.desc})
	}
	return nil
}

func (r *reader) readTerm(raw []byte, at string) (orderTerm, error) {
	var words []string
	if raw[0] == '[' {
		for _, part := range elementsOf(raw) {
			word, _ := textOf(part)
			words = append(words, word)
		}
	}
	if len(words) != 2 || words[1] != "asc" && words[1] != "desc" {
		return orderTerm{}, invalid(`%s: must be [field, "asc"] or [field, "desc"]`, at)
	}
	column, err := r.column(words[0], at)
	if err == nil && !column.sorts() {
		err = invalid("%s: %s cannot be ordered", at, words[0])
	}
	return orderTerm{column, words[1] == "desc"}, err
}

// orders reports whether one of the terms is the column at pos.
func (q *query) orders(pos int) bool {
	return slices.ContainsFunc(q.order, func(t orderTerm) bool { return t.pos == pos })
}

// compareRows compares two rows by the query's order.
func (q *query) compareRows(a, b []schema.Value) int {
	for i := range q.order {
		t := &q.order[i]
		if order := t.compare(a[t.pos], b[t.pos]); order != 0 {
			return order
		}
	}
	return 0
}

func (t *orderTerm) compare(a, b schema.Value) int {
	order := compareValues(a, b)
	if t.desc {
		return -order
	}
	return order
}

// isAfter reports whether the row comes after the end of the previous page; always true for
// the first page.
func (q *query) isAfter(row []schema.Value) bool {
	for i, v := range q.after {
		if order := q.order[i].compare(row[q.order[i].pos], v); order != 0 {
			return order > 0
		}
	}
	return q.after == nil
}
