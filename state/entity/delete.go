package entity

import (
	"slices"
	"strings"

	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/state/entity/layout"
	"runner.example/state/entity/query"
)

// maxFollowing is the number of rows that one delete may affect: those deleted with it and
// those whose relation is cleared.
const maxFollowing = 10_000

// delete deletes the rows that the query finds, and applies @onDelete to the rows that
// refer to them.
func (o *operation) delete() error {
	var found []layout.Row
	d := deletion{Access: o.Access, gone: map[string]bool{}, cleared: map[string]*clearing{}}
	err := o.find(func(r *layout.Row) (bool, error) {
		may, err := o.mayDelete(r.Values)
		if err == nil && may {
			may, err = o.matches(o.asked(r.Values))
		}
		if err != nil || !may {
			return err == nil, err
		}
		if len(found) == maxChanged {
			return false, o.tooMany()
		}
		if err := d.keep(r); err != nil {
			return false, err
		}
		kept, err := o.table.CloneRow(r)
		found = append(found, kept)
		return true, err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b layout.Row) int {
		return strings.Compare(a.Values[o.table.ID].Text(), b.Values[o.table.ID].Text())
	})
	count := 0
	for _, r := range found {
		if err := o.alive(); err != nil {
			return err
		}
		if count > 0 { // earlier deletions may have changed what its rules see
			if may, err := o.mayDelete(r.Values); err != nil {
				return err
			} else if !may {
				continue
			}
		}
		count++
		o.pending.decide(r.Tail, nil)
		d.remove(o.table, r)
	}
	if err := d.follow(); err != nil {
		return err
	}
	c, err := d.changes()
	if err != nil {
		return err
	}
	o.answerCount(count)
	o.out.JSON = append(o.out.JSON, '}')
	if err := o.apply(c); err != nil {
		return err
	}
	for key := range d.gone {
		delete(o.inserted, key)
	}
	return nil
}

// mayDelete checks the authority over a row.
func (o *operation) mayDelete(values []schema.Value) (bool, error) {
	if o.table.Entity == nil {
		return o.auth.MayDeleteUntyped(o.table.object(values))
	}
	return o.auth.MayDelete(values)
}

// deletion is what one delete does to the rows of all tables.
type deletion struct {
	*Access
	byteBudget
	following int // affected rows
	removed   []removal
	gone      map[string]bool // keys of deleted rows
	// cleared are the rows whose relation is cleared, by key; order has the keys in the
	// order found.
	cleared map[string]*clearing
	order   []string
}

type removal struct {
	table *table
	layout.Row
}

type clearing struct {
	table *table
	layout.Row
	values []schema.Value // in their new form
}

func (d *deletion) remove(t *table, r layout.Row) {
	key := string(d.rowKey(t, r.Tail))
	if !d.gone[key] {
		d.gone[key] = true
		d.removed = append(d.removed, removal{t, r})
	}
}

// follow finds the rows that refer to deleted ones, transitively. The schema says what
// happens to them, so their rules are not checked.
func (d *deletion) follow() error {
	for i := 0; i < len(d.removed); i++ {
		gone := d.removed[i]
		for k := range gone.table.referrers {
			if from := &gone.table.referrers[k]; from.onDelete != schema.Restrict {
				if err := d.cascade(&gone, from); err != nil {
					return err
				}
			}
		}
	}
	for i := range d.removed { // now the deleted rows are known
		gone := &d.removed[i]
		for k := range gone.table.referrers {
			if from := &gone.table.referrers[k]; from.onDelete == schema.Restrict {
				if err := d.checkGone(gone, from); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// plan returns the plan for the rows that refer to one.
func (from *referrer) plan(to *removal) plan {
	prefix := layout.AppendEntry(append([]byte{}, from.index.Prefix...), to.Values[to.table.ID], false)
	if to.table.Tenant >= 0 && from.index.TenantColumn > 0 {
		prefix = layout.AppendEntry(prefix, to.Values[to.table.Tenant], false)
	}
	return plan{index: from.index, ranges: []keyRange{{prefix: prefix, lo: prefix}}}
}

// cascade deletes the rows that refer to one, or clears their relation.
func (d *deletion) cascade(gone *removal, from *referrer) error {
	t := from.table
	return d.scan(t, from.plan(gone), func(r *layout.Row) (bool, error) {
		key := string(d.rowKey(t, r.Tail))
		if d.gone[key] {
			return true, nil
		}
		if have := d.cleared[key]; have != nil && from.onDelete == schema.Clear {
			have.values[from.slot] = schema.Value{}
			return true, nil
		}
		if d.following++; d.following > maxFollowing {
			return false, fault.New(fault.Limit, "more than %d rows refer to the deleted rows: delete them first", maxFollowing)
		}
		if err := d.keep(r); err != nil {
			return false, err
		}
		kept, err := t.CloneRow(r)
		if err != nil {
			return false, err
		}
		if from.onDelete == schema.Cascade {
			d.remove(t, kept)
			return true, nil
		}
		have := &clearing{table: t, Row: kept, values: append([]schema.Value{}, kept.Values...)}
		d.cleared[key] = have
		d.order = append(d.order, key)
		have.values[from.slot] = schema.Value{}
		return true, nil
	})
}

// checkGone refuses the delete when a row that stays refers to a deleted one.
func (d *deletion) checkGone(gone *removal, from *referrer) error {
	stays := false
	err := d.scan(from.table, from.plan(gone), func(r *layout.Row) (bool, error) {
		stays = !d.gone[string(d.rowKey(from.table, r.Tail))]
		return !stays, nil
	})
	if err != nil || !stays {
		return err
	}
	return fault.New(fault.Conflict, "%s.%s still refers to this %s: delete those rows first",
		from.table.Name, from.table.Slots[from.slot].Field.Name, gone.table.Name).
		About(fault.Subject{Public: "it is still referred to: delete first what refers to it"})
}

// changes collects the changes of all rows.
func (d *deletion) changes() (*changes, error) {
	c := &changes{}
	for i := range d.removed {
		if err := d.spend(query.RowUnits); err != nil {
			return nil, err
		}
		r := &d.removed[i]
		c.put(r.table, &r.Row, nil)
	}
	for _, key := range d.order {
		if err := d.spend(query.RowUnits); err != nil {
			return nil, err
		}
		if r := d.cleared[key]; !d.gone[key] {
			c.put(r.table, &r.Row, r.values)
		}
	}
	return c, nil
}
