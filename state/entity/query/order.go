package query

import (
	"slices"

	"runner.example/schema"
)

// OrderTerm is one column of an order.
type OrderTerm struct {
	Column
	Desc bool
}

// Rows are ordered by the terms of orderBy and, where these are equal, by id, in the
// direction of the last term, or ascending without any. So one index serves both
// directions. The last term of every order is the id (for callers that reach several
// tenants, the tenant), so no two rows are equal. Null comes before every value, false
// before true. Texts are ordered by code points, enums by their names. desc reverses all of
// this.

// readOrder parses orderBy, nil when omitted, and appends the id unless it is in it.
func (r *reader) readOrder(raw []byte, q *Query) error {
	if raw != nil && raw[0] != '[' {
		return Invalidf("orderBy: must be a list of [field, direction]")
	}
	if raw != nil {
		for i, elem := range elementsOf(raw) {
			if i == maxOrder {
				return Invalidf("orderBy: at most %d fields are allowed", maxOrder)
			}
			term, err := r.readTerm(elem, ElementPath("orderBy", i))
			if err != nil {
				return err
			}
			if q.orders(term.Pos) {
				return unknownName(term.name, "is given twice", "%s: %q is given twice", ElementPath("orderBy", i), term.name)
			}
			q.Order = append(q.Order, term)
		}
	}
	q.RequestedTerms = len(q.Order)
	if !q.orders(r.id.Pos) {
		desc := q.RequestedTerms > 0 && q.Order[q.RequestedTerms-1].Desc
		q.Order = append(q.Order, OrderTerm{r.id, desc})
	}
	// Ids from an identity provider may be equal in several tenants.
	if r.entity != nil && r.entity.Tenant != nil && r.AnyTenant && !q.orders(r.entity.Tenant.Pos) {
		last := &q.Order[len(q.Order)-1]
		q.Order = append(q.Order, OrderTerm{r.columns[r.entity.Tenant.Pos], last.Desc})
	}
	return nil
}

func (r *reader) readTerm(raw []byte, at string) (OrderTerm, error) {
	var words []string
	if raw[0] == '[' {
		for _, part := range elementsOf(raw) {
			word, _ := textOf(part)
			words = append(words, word)
		}
	}
	if len(words) != 2 || words[1] != "asc" && words[1] != "desc" {
		return OrderTerm{}, invalidValue("orderBy", wrongDirection(raw), `the direction must be "asc" or "desc"`,
			`%s: must be [field, "asc"] or [field, "desc"]`, at)
	}
	column, err := r.column(words[0], at)
	if err == nil && !column.sorts() {
		err = unknownName(words[0], "cannot be ordered", "%s: %s cannot be ordered", at, words[0])
	}
	return OrderTerm{column, words[1] == "desc"}, err
}

// wrongDirection returns the direction of a term, or the term if it has none.
func wrongDirection(raw []byte) []byte {
	if raw[0] == '[' {
		for i, part := range elementsOf(raw) {
			if i == 1 {
				return part
			}
		}
	}
	return raw
}

// orders reports whether one of the terms is the column at pos.
func (q *Query) orders(pos int) bool {
	return slices.ContainsFunc(q.Order, func(t OrderTerm) bool { return t.Pos == pos })
}

// CompareRows compares two rows by the query's order.
func (q *Query) CompareRows(a, b []schema.Value) int {
	for i := range q.Order {
		t := &q.Order[i]
		if order := t.compare(a[t.Pos], b[t.Pos]); order != 0 {
			return order
		}
	}
	return 0
}

func (t *OrderTerm) compare(a, b schema.Value) int {
	order := compareValues(a, b)
	if t.Desc {
		return -order
	}
	return order
}

// IsAfter reports whether the row comes after the end of the previous page; always true for
// the first page.
func (q *Query) IsAfter(row []schema.Value) bool {
	for i, v := range q.After {
		if order := q.Order[i].compare(row[q.Order[i].Pos], v); order != 0 {
			return order > 0
		}
	}
	return q.After == nil
}
