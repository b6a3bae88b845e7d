package entity

import (
	"slices"
	"strings"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/state/entity/layout"
	"runner.example/state/entity/query"
)

// delete deletes the rows that the query finds, and applies @onDelete to the rows that
// refer to them.
func (o *operation) delete() error {
	found, more, err := o.findToDelete()
	if err != nil {
		return err
	}
	d := deletion{Access: o.Access, gone: map[string]bool{}, cleared: map[string]*clearing{}}
	if o.Part > 0 && o.Caller.Kind == caller.System {
		return o.deletePart(&d, found)
	}
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
		if err := d.remove(o.table, &r); err != nil {
			return err
		}
	}
	if err := d.apply(); err != nil {
		return err
	}
	o.answerCount(count, more)
	o.out.JSON = append(o.out.JSON, '}')
	return nil
}

// findToDelete returns the rows to delete, by id. more: there are others, beyond the limit of the
// operation.
func (o *operation) findToDelete() (found []layout.Row, more bool, err error) {
	var kept finding
	err = o.find(func(r *layout.Row) (bool, error) {
		may, err := o.mayDelete(r.Values)
		if err == nil && may {
			may, err = o.matches(o.asked(r.Values))
		}
		if err != nil || !may {
			return err == nil, err
		}
		if ok, err := kept.take(o, r); err != nil || !ok {
			return false, err
		}
		own, err := o.table.CloneRow(r)
		found = append(found, own)
		return true, err
	})
	slices.SortFunc(found, func(a, b layout.Row) int {
		return strings.Compare(a.Values[o.table.ID].Text(), b.Values[o.table.ID].Text())
	})
	return found, kept.more, err
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
	changes // of the deleted rows
	removed []removal
	gone    map[string]bool // keys of deleted rows
	// cleared are the rows whose relation is cleared, by key; order has the keys in the
	// order found, and clearedBytes is their length.
	cleared      map[string]*clearing
	order        []string
	clearedBytes int
}

// removal is what is kept of a deleted row: its id, and its tenant if it has one.
type removal struct {
	table      *table
	id, tenant schema.Value
}

type clearing struct {
	table *table
	layout.Row
	values []schema.Value // in their new form
}

// remove deletes a row, which may be borrowed.
func (d *deletion) remove(t *table, r *layout.Row) error {
	key := string(d.rowKey(t, r.Tail))
	if d.gone[key] {
		return nil
	}
	d.gone[key] = true
	d.removed = append(d.removed, removalOf(t, r))
	d.put(t, r, nil)
	return d.checkSize()
}

func removalOf(t *table, r *layout.Row) removal {
	gone := removal{table: t, id: ownText(r.Values[t.ID])}
	if t.Tenant >= 0 {
		gone.tenant = ownText(r.Values[t.Tenant])
	}
	return gone
}

// checkSize fails when the changes are too many for one transaction. A cleared row is counted as if only
// the row were written.
func (d *deletion) checkSize() error {
	if d.Tx.Fits(len(d.list)+len(d.order), d.bytes+d.clearedBytes) {
		return nil
	}
	return errTooManyDeleted
}

var errTooManyDeleted = fault.New(fault.Limit,
	"too many rows refer to the deleted rows for one transaction: delete the referring rows first, in batches").
	WithHint("use runner data delete --cascade: it deletes the referring rows first, in batches")

// apply applies @onDelete to the rows that refer to the deleted ones, and then all changes.
func (d *deletion) apply() error {
	if err := d.follow(); err != nil {
		return err
	}
	for _, key := range d.order {
		if err := d.spend(query.RowUnits); err != nil {
			return err
		}
		if r := d.cleared[key]; !d.gone[key] {
			d.put(r.table, &r.Row, r.values)
		}
	}
	d.order = nil // they are in the list
	d.clearedBytes = 0
	if err := d.checkSize(); err != nil {
		return err
	}
	if err := d.Access.apply(&d.changes); err != nil {
		return err
	}
	for key := range d.gone {
		delete(d.inserted, key)
	}
	return nil
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
	prefix := layout.AppendEntry(append([]byte{}, from.index.Prefix...), to.id, false)
	if to.table.Tenant >= 0 && from.index.TenantColumn > 0 {
		prefix = layout.AppendEntry(prefix, to.tenant, false)
	}
	return plan{index: from.index, ranges: []keyRange{{prefix: prefix, lo: prefix}}}
}

// cascade deletes the rows that refer to one, or clears their relation.
func (d *deletion) cascade(gone *removal, from *referrer) error {
	return d.scan(from.table, from.plan(gone), func(r *layout.Row) (bool, error) {
		return true, d.affect(from, r)
	})
}

// affect deletes a row that refers to a deleted one, or clears its relation.
func (d *deletion) affect(from *referrer, r *layout.Row) error {
	t := from.table
	key := string(d.rowKey(t, r.Tail))
	have := d.cleared[key]
	switch {
	case d.gone[key]:
		return nil
	case from.onDelete == schema.Cascade:
		return d.remove(t, r)
	case have == nil:
		kept, err := t.CloneRow(r)
		if err != nil {
			return err
		}
		have = &clearing{table: t, Row: kept, values: append([]schema.Value{}, kept.Values...)}
		d.cleared[key] = have
		d.order = append(d.order, key)
		d.clearedBytes += len(key) + len(r.Raw)
	}
	have.values[from.slot] = schema.Value{}
	return d.checkSize()
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
		About(fault.Subject{Public: "other rows still refer to this row: delete those first"})
}
