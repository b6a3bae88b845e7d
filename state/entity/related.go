package entity

import (
	"runner.example/schema"
	"runner.example/state/entity/layout"
)

// related returns the value of a field of the row that a row's relation refers to.
func (a *Access) related(from []schema.Value, relation *schema.Field, id string,
	want *schema.Field) (schema.Value, error) {
	t := a.Model.tableNamed(relation.Type.Entity.Name)
	tail, err := a.tailOfRelated(t, from, relation, id)
	if err != nil || len(tail) == 0 {
		return schema.Value{}, err
	}
	if len(a.pending.order) > 0 {
		if values, decided := a.pending.of(t, string(tail)); decided {
			return valueOf(values, want), nil
		}
	}
	values, err := a.lookUp(t, tail)
	return valueOf(values, want), err
}

// valueOf returns the value of a field; null if the row does not exist.
func valueOf(values []schema.Value, want *schema.Field) schema.Value {
	if values == nil {
		return schema.Value{}
	}
	return values[want.Pos]
}

// tailOfRelated returns the tail of the row that a row's relation refers to, empty when there
// is none. It is in the tenant of the referring row. Only from a row without a tenant can a
// caller of all tenants reach any. It is valid until the next call.
func (a *Access) tailOfRelated(t *table, from []schema.Value, relation *schema.Field, id string) ([]byte, error) {
	tenant, owner := a.Caller.Tenant, a.Model.owners[relation]
	switch {
	case t.Tenant < 0:
	case owner.Tenant >= 0:
		tenant = from[owner.Tenant].Text()
	case t.rights.AnyTenantFor(a.Caller):
		a.tail = a.tail[:0]
		for tail, err := range a.tails(t, id, true) {
			if err != nil {
				return nil, err
			}
			if len(a.tail) > 0 {
				return nil, severalTenants(t)
			}
			a.tail = append(a.tail, tail...)
		}
		return a.tail, nil
	}
	a.tail = t.Tail(a.tail[:0], tenant, id)
	return a.tail, nil
}

// exists searches for a row that makes x.Where true. Policies do not apply to it, but the
// tenant does: a caller without a tenant finds nothing where rows have one.
func (a *Access) exists(x *schema.Exists, outer *schema.RuleInput) (bool, error) {
	t := a.Model.tableNamed(x.Entity.Name)
	inner := outer.ForExists()
	anyTenant := t.rights.AnyTenantFor(a.Caller)
	if tenant, bound := a.bound(t, anyTenant); bound && tenant == "" {
		return false, nil
	}
	w := planInput{anyTenant: anyTenant}
	for _, equality := range x.Equal {
		v, ok := equality.Value(&inner)
		if !ok {
			return false, nil
		}
		w.equal = append(w.equal, equalTo{equality.Field.Pos, v})
	}
	found := false
	look := func(values []schema.Value) (more bool, err error) {
		inner.Row = values
		truth, err := x.Where.Eval(&inner)
		found = truth == schema.True
		return !found, err
	}
	err := a.scan(t, a.plan(t, &w), func(r *layout.Row) (bool, error) {
		if _, decided := a.pending.of(t, r.Tail); decided {
			return true, nil
		}
		return look(r.Values)
	})
	if err != nil || found || t != a.pending.table {
		return found, err
	}
	tenant, bound := a.bound(t, anyTenant)
	for _, tail := range a.pending.order {
		values := a.pending.rows[tail]
		if values == nil || bound && values[t.Tenant].Text() != tenant {
			continue
		}
		if err := a.touch(); err != nil {
			return false, err
		}
		if more, err := look(values); err != nil || !more {
			return found, err
		}
	}
	return false, nil
}

// lookedUpRows are rows that relations refer to, as the transaction sees them. Rows of one
// page or of one insert often refer to the same rows.
type lookedUpRows struct {
	rows  map[rowName]lookedUpRow
	bytes int // of the stored rows whose values are kept
}

type rowName struct {
	table *table
	tail  string
}

type lookedUpRow struct {
	values []schema.Value // nil: the row does not exist
	kept   bool           // otherwise the row must be read again
}

// The limits of the rows that are remembered, and of those whose values are kept. The
// content of rows does not decide which are remembered, because it must not change the
// number of rows that count as touched.
const (
	maxLookedUp      = 256
	maxLookedUpBytes = 1 << 20
)

func (l *lookedUpRows) clear() {
	clear(l.rows)
	l.bytes = 0
}

// lookUp returns the values of the row with that tail, nil when there is none. The caller
// must not change them. A remembered row does not count as touched.
func (a *Access) lookUp(t *table, tail []byte) ([]schema.Value, error) {
	l := &a.lookedUp
	row, known := l.rows[rowName{t, string(tail)}]
	switch {
	case row.kept:
		return row.values, nil
	case !known:
		if err := a.touch(); err != nil {
			return nil, err
		}
		if len(l.rows) == maxLookedUp {
			l.clear()
		}
	}
	r := layout.Row{Tail: string(tail), Values: make([]schema.Value, len(t.Slots))}
	exists, err := a.fetch(t, &r)
	if err != nil {
		return nil, err
	}
	var values []schema.Value
	if exists {
		values = r.Values
	}
	if l.bytes+len(r.Raw) <= maxLookedUpBytes {
		row = lookedUpRow{values, true}
		l.bytes += len(r.Raw)
	}
	if l.rows == nil {
		l.rows = map[rowName]lookedUpRow{}
	}
	l.rows[rowName{t, r.Tail}] = row
	return values, nil
}
