package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/state/store"
)

// Step is one change of the stored rows' schema.
type Step struct {
	// Change is "add", "rename", "widen", "remove", "return", "keep", "check", "build" or "drop".
	Change string `json:"change"`
	// What is an entity, a field, an enum's value or an index: "Order", "Order.note",
	// "Order.status sent", "Order(status, number)".
	What string `json:"what"`
	// Rows is the number of rows that are concerned. Only those of a check are read, and only those
	// of an index are written, as its entries.
	Rows int `json:"rows"`
	// How says what happens.
	How string `json:"how"`
}

// Plan returns what an activation of the schema would do with the present rows of the store, and
// what it would refuse. It writes nothing.
func Plan(ctx context.Context, st *store.Store, s *schema.Schema) (steps []Step, list diag.List, err error) {
	err = st.View(ctx, func(tx *store.Tx) error {
		m, err := compare(tx, s, fileOf(s, nil), false)
		if err != nil {
			return err
		}
		p := planner{tx: tx, m: m}
		if err := p.run(); err != nil {
			return err
		}
		steps = p.steps
		err = m.survey(tx)
		list = m.list
		return err
	})
	return steps, list, err
}

type planner struct {
	tx    *store.Tx
	m     *migration
	steps []Step
}

func (p *planner) add(change, what, how string, args ...any) {
	p.steps = append(p.steps, Step{Change: change, What: what, How: fmt.Sprintf(how, args...)})
}

func (p *planner) run() error {
	for i := range p.m.new.Tables {
		now := &p.m.new.Tables[i]
		before := p.m.priors[now.Name]
		if before == nil && now.Kept {
			before = p.m.old.table(now.Name)
		}
		switch {
		case before == nil:
			p.add("add", now.Name, "a new entity")
		case before.Number != now.Number || now.Untyped: // without rows, or without fields
		default:
			if err := p.stored(now, before); err != nil {
				return err
			}
		}
	}
	return nil
}

// stored adds the changes of a table that exists. Its rows are counted only if there are any.
func (p *planner) stored(now, before *tableEntry) error {
	filled, err := hasRows(p.tx, now.Number)
	if err != nil {
		return err
	}
	first := len(p.steps)
	p.table(now, before, filled)
	if !filled || first == len(p.steps) {
		return nil
	}
	rows, err := countRows(p.tx, now.Number)
	for i := range p.steps[first:] {
		p.steps[first+i].Rows = rows
	}
	return err
}

func (p *planner) table(now, before *tableEntry, filled bool) {
	switch {
	case now.Kept && !before.Kept:
		p.add("remove", now.Name, "the rows are kept: runner data drop %s deletes them for good", now.Name)
		return
	case now.Kept:
		p.add("keep", now.Name, "not declared: runner data drop %s deletes the rows for good", now.Name)
		return
	case before.Kept:
		p.add("return", now.Name, "the rows that were kept")
	}
	if now.Name != before.Name {
		p.add("rename", now.Name, "was %s; no row is written", before.Name)
	}
	for i := range now.Fields {
		p.field(now, before, &now.Fields[i], filled)
	}
	p.checks(now, filled)
	p.indexes(now, before, filled)
}

func (p *planner) field(table, tableBefore *tableEntry, now *fieldEntry, filled bool) {
	what := table.Name + "." + now.Name
	at := slices.IndexFunc(tableBefore.Fields, func(f fieldEntry) bool { return f.Number == now.Number })
	if at < 0 && slices.Contains(p.m.refused, what) {
		return
	}
	if at < 0 {
		how := "a new field; rows have null"
		if !filled {
			how = "a new field"
		} else if now.Missing != nil {
			how = "a new field; rows have its default"
		}
		p.add("add", what, "%s", how)
		return
	}
	before := &tableBefore.Fields[at]
	switch {
	case now.Kept && !before.Kept:
		p.add("remove", what, "the values are kept: runner data drop %s deletes them for good", what)
	case now.Kept:
		p.add("keep", what, "not declared: runner data drop %s deletes the values for good", what)
	case before.Kept:
		p.add("return", what, "the values that were kept")
	}
	if now.Name != before.Name {
		p.add("rename", what, "was %s; no row is written", before.Name)
	}
	if prior := p.m.typeNow(before.Type); prior != now.Type && filled {
		p.add("widen", what, "was %s; it cannot be narrowed again, also not by a rollback, while there are rows", prior)
	}
	for _, name := range now.Enum {
		text := now.storedText(name)
		for _, prior := range before.Enum {
			if prior != name && before.storedText(prior) == text {
				p.add("rename", what+" "+name, "was %s; no row is written", prior)
			}
		}
	}
}

// checks adds what is compared with the rows.
func (p *planner) checks(now *tableEntry, filled bool) {
	at := slices.IndexFunc(p.m.surveys, func(s *survey) bool { return s.entry == now })
	if at < 0 || !filled {
		return
	}
	s := p.m.surveys[at]
	add := func(slot int, how string) { p.add("check", now.Name+"."+s.entity.Fields[slot].Name, "%s", how) }
	for _, slot := range s.nulls {
		add(slot, "every row must have a value")
	}
	for _, slot := range s.lacks {
		add(slot, "every row must have a value")
	}
	for _, slot := range s.bounds {
		add(slot, "every value must be within the new limits")
	}
	for _, enum := range s.enums {
		var names []string
		for _, name := range enum.removed {
			names = append(names, name)
		}
		slices.Sort(names)
		add(enum.slot, "no row may have "+strings.Join(names, ", "))
	}
	for _, rel := range s.relations {
		add(rel.slot, "every value must refer to a row")
	}
}

func (p *planner) indexes(now, before *tableEntry, filled bool) {
	at := slices.IndexFunc(p.m.surveys, func(s *survey) bool { return s.entry == now })
	for i := range now.Indexes {
		x := &now.Indexes[i]
		switch {
		case x.Number != 0 || !filled:
		case x.Unique:
			p.add("build", indexName(now, x), "unique: rows are compared, and it is built before the schema becomes active")
		case at >= 0 && slices.Contains(p.m.surveys[at].ahead, i):
			p.add("build", indexName(now, x), "built before the schema becomes active")
		default:
			p.add("build", indexName(now, x), "built in the background; queries scan until then")
		}
	}
	for i := range before.Indexes {
		x := &before.Indexes[i]
		if slices.Contains(p.m.dropped, x.Number) {
			p.add("drop", indexName(before, x), "deleted in the background")
		}
	}
}

// indexName returns the columns of an index, without the tenant: "Order(status, total desc)".
func indexName(t *tableEntry, x *indexEntry) string {
	var names []string
	for _, c := range x.Columns {
		number := uint32(max(c, -c))
		at := slices.IndexFunc(t.Fields, func(f fieldEntry) bool { return f.Number == number })
		if at < 0 || number == t.Tenant && len(x.Columns) > 1 {
			continue
		}
		name := t.Fields[at].Name
		if c < 0 {
			name += " desc"
		}
		names = append(names, name)
	}
	if x.Columns == nil {
		names = []string{"id"}
	}
	return t.Name + "(" + strings.Join(names, ", ") + ")"
}
