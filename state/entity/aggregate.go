package entity

import (
	"maps"
	"slices"
	"strconv"

	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/state/entity/layout"
	"runner.example/state/entity/query"
)

// maxGroups is the limit of groups in one answer.
const maxGroups = 1000

// periodUnits is the cost of finding the day, week or month of a time.
const periodUnits = 200

// computeUnits is the cost of adding a value to a group, in units of a cost.Meter.
const computeUnits = 200

// group is what is known of the rows of one group.
type group struct {
	by       []schema.Value
	rows     int
	computed []computed
}

// computed is the state of a function over the rows of a group.
type computed struct {
	total total        // of a sum or an average
	best  schema.Value // of a least or a greatest value
}

// aggregation is a running aggregate.
type aggregation struct {
	*operation
	*query.Aggregation
	groups map[string]*group // by their entries, which sort like the values
	key    []byte
	bytes  int // of the texts that are kept
}

// aggregate returns what is computed of each group of rows, in the order of the groups.
func (o *operation) aggregate(wanted *query.Aggregation) error {
	a := &aggregation{operation: o, Aggregation: wanted, groups: map[string]*group{}}
	if len(a.By) == 0 { // a group even without rows
		a.groups[""] = &group{computed: make([]computed, len(a.Computed))}
	}
	input := o.planInput(false)
	err := o.search(o.plan(o.table, input), input, func(r *layout.Row, _ []schema.Value) (bool, error) {
		return true, a.add(r.Values)
	})
	if err != nil {
		return err
	}
	w := o.rowsOf()
	for _, key := range slices.Sorted(maps.Keys(a.groups)) {
		w.begin()
		if err := a.append(a.groups[key]); err != nil {
			return err
		}
		if err := w.done(nil); err != nil {
			return err
		}
	}
	w.end()
	o.out.JSON = append(o.out.JSON, '}')
	return nil
}

// add adds a row to its group.
func (a *aggregation) add(values []schema.Value) error {
	g, err := a.groupOf(values)
	if err != nil {
		return err
	}
	g.rows++
	if err := a.spend(computeUnits * len(g.computed)); err != nil {
		return err
	}
	for i := range g.computed {
		c, wanted := &g.computed[i], &a.Computed[i]
		v := values[wanted.Field.Pos]
		switch {
		case v.IsNull():
		case wanted.Function == query.Sum || wanted.Function == query.Avg:
			c.total.add(v)
		case c.best.IsNull() || isBetter(wanted.Function, v, c.best):
			if err := a.keep(len(v.Text()) - len(c.best.Text())); err != nil {
				return err
			}
			c.best = ownText(v)
		}
	}
	return nil
}

func isBetter(f query.Function, v, best schema.Value) bool {
	order, _ := v.Compare(best)
	return f == query.Min && order < 0 || f == query.Max && order > 0
}

// groupOf returns the group of a row.
func (a *aggregation) groupOf(values []schema.Value) (*group, error) {
	a.key = a.key[:0]
	var by [query.MaxGroupFields]schema.Value
	for i := range a.By {
		g := &a.By[i]
		if g.HasPeriod() {
			if err := a.spend(periodUnits); err != nil {
				return nil, err
			}
		}
		by[i] = g.Of(values[g.Field.Pos])
		a.key = layout.AppendEntry(a.key, by[i], false)
	}
	if g := a.groups[string(a.key)]; g != nil {
		return g, nil
	}
	if len(a.groups) == maxGroups {
		return nil, fault.New(fault.Limit,
			"groupBy: there are more than %d groups: narrow where, or group by a field with fewer values", maxGroups)
	}
	if err := a.keep(2 * len(a.key)); err != nil {
		return nil, err
	}
	g := &group{computed: make([]computed, len(a.Computed))}
	for i := range a.By {
		g.by = append(g.by, ownText(by[i]))
	}
	a.groups[string(a.key)] = g
	return g, nil
}

// keep counts bytes of texts against the limit.
func (a *aggregation) keep(n int) error {
	if a.bytes += n; a.bytes > maxSortBytes {
		return fault.New(fault.Limit, "the texts of the groups are longer than %d MiB: group by a shorter field",
			maxSortBytes>>20)
	}
	return nil
}

// append appends a group to the answer.
func (a *aggregation) append(g *group) error {
	dst := append(a.out.JSON, '{')
	if len(a.By) > 0 {
		dst = append(dst, `"group":{`...)
		for i := range a.By {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = a.By[i].Type.AppendJSON(append(dst, a.table.labels[a.By[i].Field.Pos]...), g.by[i])
		}
		dst = append(dst, '}', ',')
	}
	if a.Count {
		dst = append(strconv.AppendInt(append(dst, `"count":`...), int64(g.rows), 10), ',')
	}
	for i := range g.computed {
		wanted := &a.Computed[i]
		if i == 0 || a.Computed[i-1].Function != wanted.Function {
			dst = append(append(append(dst, '"'), wanted.Function.String()...), `":{`...)
		}
		var err error
		if dst, err = g.computed[i].append(append(dst, a.table.labels[wanted.Field.Pos]...), wanted); err != nil {
			return err
		}
		if i+1 == len(g.computed) || a.Computed[i+1].Function != wanted.Function {
			dst = append(dst, '}')
		}
		dst = append(dst, ',')
	}
	dst[len(dst)-1] = '}' // in place of the last comma
	a.out.JSON = dst
	return nil
}

// append appends the value of a function.
func (c *computed) append(dst []byte, wanted *query.Computed) ([]byte, error) {
	switch wanted.Function {
	case query.Sum:
		return c.total.appendSum(dst, wanted.Field)
	case query.Avg:
		return c.total.appendAvg(dst, wanted.Field), nil
	}
	return wanted.Field.Type.AppendJSON(dst, c.best), nil
}
