package entity

import (
	"runner.example/schema"
	"runner.example/state/entity/layout"
	"runner.example/state/entity/query"
)

// included is a relation whose rows an operation returns inside its own rows. The embedded
// operation reads the included rows, and writes to the answer of the outer operation.
type included struct {
	operation
	*query.Include
	label string // `"name":`
	// written has the start and the end in the answer of each row of a to-one relation that is
	// already there, by its tail. So each row is read once.
	written map[string][2]int
	// input and index are used to plan the scans of a to-many relation. All scans use the same
	// index. Both are nil before the first scan.
	input *planInput
	index *layout.Index
}

// includesOf returns what the rows of a query of the table include.
func (a *Access) includesOf(q *query.Query, t *table, out *Result) []*included {
	var list []*included
	for _, x := range q.Includes {
		target := a.Model.tableNamed(x.Field.Type.Entity.Name)
		n := &included{Include: x, label: t.labels[x.Field.Pos], written: map[string][2]int{}}
		n.operation = operation{
			Access: a, table: target, auth: x.Auth, query: x.Query, out: out, includes: a.includesOf(x.Query, target, out),
		}
		list = append(list, n)
	}
	return list
}

// including copies the values of a row that its includes need; nil without includes.
func (o *operation) including(values []schema.Value) []schema.Value {
	if len(o.includes) == 0 {
		return nil
	}
	kept := make([]schema.Value, len(values))
	keep := func(slot int) {
		if slot >= 0 {
			kept[slot] = ownText(values[slot])
		}
	}
	keep(o.table.ID)
	keep(o.table.Tenant)
	for _, n := range o.includes {
		keep(n.Field.Pos)
	}
	return kept
}

// appendIncluded appends the included rows to the row with these values, which ends the
// answer.
func (o *operation) appendIncluded(values []schema.Value) error {
	if len(o.includes) == 0 {
		return nil
	}
	o.out.JSON = o.out.JSON[:len(o.out.JSON)-1] // the brace
	for _, n := range o.includes {
		if o.out.JSON[len(o.out.JSON)-1] != '{' {
			o.out.JSON = append(o.out.JSON, ',')
		}
		o.out.JSON = append(o.out.JSON, n.label...)
		appendRows := n.appendOne
		if n.IsMany() {
			appendRows = n.appendMany
		}
		if err := appendRows(values); err != nil {
			return err
		}
	}
	o.out.JSON = append(o.out.JSON, '}')
	return nil
}

// appendOne appends the row that the relation of the row refers to: null if there is none, or
// if the caller may not read it.
func (n *included) appendOne(from []schema.Value) error {
	id := from[n.Field.Pos]
	if id.IsNull() {
		n.appendNull()
		return nil
	}
	found, err := n.tailOfRelated(n.table, from, n.Field, id.Text())
	if err != nil {
		return err
	}
	if len(found) == 0 {
		n.appendNull()
		return nil
	}
	tail := string(found)
	if at, ok := n.written[tail]; ok {
		row := n.out.JSON[at[0]:at[1]]
		n.out.JSON = append(n.out.JSON, row...)
		return n.spend(rowByteUnits * len(row))
	}
	start := len(n.out.JSON)
	if err := n.appendTail(tail); err != nil {
		return err
	}
	n.written[tail] = [2]int{start, len(n.out.JSON)}
	return nil
}

// appendTail appends the row with that tail, or null.
func (n *included) appendTail(tail string) error {
	values, err := n.lookUp(n.table, []byte(tail))
	if err != nil {
		return err
	}
	may := values != nil
	if may {
		may, err = n.auth.MayRead(values)
	}
	switch {
	case err != nil:
		return err
	case !may:
		n.appendNull()
		return nil
	}
	n.out.JSON = n.appendRow(n.out.JSON, values)
	return n.appendIncluded(values)
}

func (n *included) appendNull() { n.out.JSON = append(n.out.JSON, "null"...) }

// appendMany appends the rows whose relations refer to the row.
func (n *included) appendMany(from []schema.Value) error {
	n.Bind(from)
	n.out.JSON = append(n.out.JSON, '[')
	if _, err := n.listPlanned(n.planMany(), n.input, &rowWriter{operation: &n.operation, included: true}); err != nil {
		return err
	}
	n.out.JSON = append(n.out.JSON, ']')
	return nil
}

// planMany returns the plan for the row that the query is bound to. The plans for all rows differ only
// in values that every row can have: so the index of the first is the best for all.
func (n *included) planMany() plan {
	if n.input == nil {
		n.input = n.planInput(true)
	}
	var p plan
	ok := false
	if n.index != nil {
		p, ok = n.planIndex(n.table, n.index, n.input)
	}
	if !ok {
		p = n.plan(n.table, n.input)
	}
	if n.index = p.index; p.index != nil {
		p.within = p.index.Prefix
	}
	return p
}
