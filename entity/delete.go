package entity

import (
	"slices"
	"strings"

	"runner.example/internal/fault"
	"runner.example/schema"
)

// maxFollowing bounds how many rows one delete may take along: those that go too
// and those that lose a relation.
const maxFollowing = 10_000

// delete removes the rows that the query finds, and does to the rows that lead to
// them what the schema says.
func (o *operating) delete() error {
	var found []row
	d := deletion{Access: o.Access, gone: map[string]bool{}, cleared: map[string]*clearing{}}
	err := o.find(func(r *row) (bool, error) {
		may, err := o.mayDelete(r.values)
		if err == nil && may {
			may, err = o.matches(o.asked(r.values))
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
		kept, err := r.own(o.table)
		found = append(found, kept)
		return true, err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b row) int {
		return strings.Compare(a.values[o.table.id].Text(), b.values[o.table.id].Text())
	})
	count := 0
	for _, r := range found {
		if err := o.alive(); err != nil {
			return err
		}
		if count > 0 { // those before it may have changed what its rules see
			if may, err := o.mayDelete(r.values); err != nil {
				return err
			} else if !may {
				continue
			}
		}
		count++
		o.ahead.decide(r.tail, nil)
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

// mayDelete asks the authority about a row.
func (o *operating) mayDelete(values []schema.Value) (bool, error) {
	if o.table.entity == nil {
		return o.auth.mayDeleteFree(o.table.object(values))
	}
	return o.auth.mayDelete(values)
}

// deletion is what one delete does to the rows of all tables.
type deletion struct {
	*Access
	room
	following int // rows taken along
	removed   []removal
	gone      map[string]bool // keys of removed
	// cleared are the rows that lose a relation, by key; order holds the keys in
	// the order found.
	cleared map[string]*clearing
	order   []string
}

type removal struct {
	table *table
	row
}

type clearing struct {
	table *table
	row
	values []schema.Value // as they become
}

func (d *deletion) remove(t *table, r row) {
	key := string(d.rowKey(t, r.tail))
	if !d.gone[key] {
		d.gone[key] = true
		d.removed = append(d.removed, removal{t, r})
	}
}

// follow finds the rows that lead to removed ones, and those that lead to what is
// removed thereby. The schema's author has said what becomes of them, so no rule
// of theirs is asked.
func (d *deletion) follow() error {
	for i := 0; i < len(d.removed); i++ {
		gone := d.removed[i]
		for k := range gone.table.referrers {
			if from := &gone.table.referrers[k]; from.onDelete != schema.Restrict {
				if err := d.takeAlong(&gone, from); err != nil {
					return err
				}
			}
		}
	}
	for i := range d.removed { // now that it is known what goes
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

// leading is the plan of the rows that lead to one.
func (from *referrer) leading(to *removal) plan {
	prefix := appendEntry(append([]byte{}, from.index.prefix...), to.values[to.table.id], false)
	if to.table.tenant >= 0 && from.index.tenantColumn > 0 {
		prefix = appendEntry(prefix, to.values[to.table.tenant], false)
	}
	return plan{index: from.index, ranges: []keyRange{{prefix: prefix, lo: prefix}}}
}

// takeAlong removes the rows that lead to one, or clears their relation.
func (d *deletion) takeAlong(gone *removal, from *referrer) error {
	t := from.table
	return d.walk(t, from.leading(gone), func(r *row) (bool, error) {
		key := string(d.rowKey(t, r.tail))
		if d.gone[key] {
			return true, nil
		}
		if have := d.cleared[key]; have != nil && from.onDelete == schema.Clear {
			have.values[from.slot] = schema.Value{}
			return true, nil
		}
		if d.following++; d.following > maxFollowing {
			return false, fault.New(fault.Limit, "more than %d rows lead to what would be deleted: delete them first", maxFollowing)
		}
		if err := d.keep(r); err != nil {
			return false, err
		}
		kept, err := r.own(t)
		if err != nil {
			return false, err
		}
		if from.onDelete == schema.Cascade {
			d.remove(t, kept)
			return true, nil
		}
		have := &clearing{table: t, row: kept, values: append([]schema.Value{}, kept.values...)}
		d.cleared[key] = have
		d.order = append(d.order, key)
		have.values[from.slot] = schema.Value{}
		return true, nil
	})
}

// checkGone refuses the delete when a row that stays leads to one that goes.
func (d *deletion) checkGone(gone *removal, from *referrer) error {
	stays := false
	err := d.walk(from.table, from.leading(gone), func(r *row) (bool, error) {
		stays = !d.gone[string(d.rowKey(from.table, r.tail))]
		return !stays, nil
	})
	if err != nil || !stays {
		return err
	}
	return fault.New(fault.Conflict, "%s.%s still leads to this %s: delete those rows first",
		from.table.name, from.table.slots[from.slot].field.Name, gone.table.name)
}

// changes gathers what becomes of all rows.
func (d *deletion) changes() (*changes, error) {
	c := &changes{}
	for i := range d.removed {
		if err := d.spend(rowUnits); err != nil {
			return nil, err
		}
		r := &d.removed[i]
		c.put(r.table, r.tail, r.row.values, nil)
	}
	for _, key := range d.order {
		if err := d.spend(rowUnits); err != nil {
			return nil, err
		}
		if r := d.cleared[key]; !d.gone[key] {
			c.put(r.table, r.tail, r.row.values, r.values)
		}
	}
	return c, nil
}
