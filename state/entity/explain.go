package entity

import (
	"fmt"
	"strings"

	"runner.example/state/entity/layout"
	"runner.example/state/entity/query"
)

// Explanation says how a query finds its rows, and how many it reads for one page.
type Explanation struct {
	// Scan names what the query reads: "index Order(status, createdAt desc)", "rows by id", "all rows".
	Scan string `json:"scan"`
	// Narrowed are the fields that narrow the scan, by a condition of the query or by a value of the caller:
	// "status = …", "total range", "partner in 3 values".
	Narrowed []string `json:"narrowed"`
	// Sorted reports whether rows are read in the order of the page. If not, all rows are read and then sorted.
	Sorted bool `json:"sorted"`
	// Scanned is the number of rows that were read. Of these, the caller may not read Hidden rows, and where does
	// not match Rejected rows.
	Scanned  int `json:"scanned"`
	Hidden   int `json:"hidden"`
	Rejected int `json:"rejected"`
	// Rules are the rules that decide what the caller may read, with their places in the schema.
	Rules []string `json:"rules"`
	// Missing is an index that would avoid the rejected rows or the sorting, as the schema declares it. It is empty
	// if there is none.
	Missing string `json:"missing,omitempty"`
}

// Explain runs a query of the guest ABI and says how it found its rows. The arguments and the errors are those of
// Do; out gets the page. Included rows are not explained.
func (a *Access) Explain(args []byte, out *Result) (*Explanation, error) {
	e := &Explanation{Narrowed: []string{}, Rules: []string{}}
	a.explained = e
	defer func() { a.explained = nil }()
	if err := a.Do("query", args, out); err != nil {
		return nil, err
	}
	return e, nil
}

// explain describes the plan of a search.
func (o *operation) explain(e *Explanation, p *plan, w *planInput) {
	e.Sorted = p.sorted
	e.Rules = append(e.Rules, o.auth.ReadRules()...)
	switch t := o.table; {
	case p.points != nil:
		e.Scan = "rows by id"
		e.Narrowed = append(e.Narrowed, values("id", len(p.points)))
	case p.index == nil:
		e.Scan = "all rows"
		if w.ids != (query.Span{}) {
			e.Scan, e.Narrowed = "rows by id", append(e.Narrowed, "id range")
		}
	default:
		e.Scan = "index " + t.Name + "(" + strings.Join(o.columnNames(p.index.Columns), ", ") + ")"
		if len(p.index.Columns) == 0 {
			e.Scan = "all rows"
		}
		o.explainIndex(e, p, w)
	}
	if tenant, bound := o.bound(o.table, w.anyTenant); bound && o.table.Tenant >= 0 && p.index == nil {
		e.Narrowed = append(e.Narrowed, "tenant "+tenant)
	}
}

// explainIndex names the columns of the plan's index that narrow its ranges, as planIndex finds them.
func (o *operation) explainIndex(e *Explanation, p *plan, w *planInput) {
	_, bound := o.bound(o.table, w.anyTenant)
	among := false
	for _, c := range p.index.Columns {
		name := o.columnNames([]layout.Column{{Slot: c.Slot}})[0]
		_, known := w.at(c.Slot)
		_, within := w.where.Within(c.Slot)
		list, several := w.where.OneOf(c.Slot)
		if c.IgnoreCase {
			_, known = w.foldedAt(c)
			_, within = w.where.WithinFolded(c.Slot)
			several = false
		}
		switch {
		case known || bound && c.Slot == o.table.Tenant:
			e.Narrowed = append(e.Narrowed, values(name, 1))
		case several && !among:
			among = true
			e.Narrowed = append(e.Narrowed, values(name, len(list)))
		default:
			if within && !among {
				e.Narrowed = append(e.Narrowed, name+" range")
			}
			return
		}
	}
}

// values describes a field of which n values are read.
func values(name string, n int) string {
	if n == 1 {
		return name + " = …"
	}
	return fmt.Sprintf("%s in %d values", name, n)
}
