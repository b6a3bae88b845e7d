package entity

import (
	"errors"
	"iter"

	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// decode decodes the values of a row that was found.
func (a *Access) decode(t *table, r *layout.Row) error {
	if err := a.spend(rowByteUnits * len(r.Raw)); err != nil {
		return err
	}
	return t.DecodeRow(r)
}

// rowByteUnits is the cost of reading and answering a byte of a row, in units of a
// cost.Meter.
const rowByteUnits = 2

// rowKey returns the key of a row, valid until the next call.
func (a *Access) rowKey(t *table, tail string) []byte {
	a.key = append(append(a.key[:0], t.Prefix...), tail...)
	return a.key
}

// read returns the row with that tail, false when there is none. It counts as touched
// either way. The caller owns the row.
func (a *Access) read(t *table, tail string) (layout.Row, bool, error) {
	r := layout.Row{Tail: tail, Values: make([]schema.Value, len(t.Slots))}
	found, err := a.readInto(t, &r)
	return r, found, err
}

// readInto reads the row of r.tail.
func (a *Access) readInto(t *table, r *layout.Row) (bool, error) {
	if err := a.touch(); err != nil {
		return false, err
	}
	return a.fetch(t, r)
}

// fetch is readInto of a row that is counted.
func (a *Access) fetch(t *table, r *layout.Row) (bool, error) {
	raw, err := a.Tx.Get(a.rowKey(t, r.Tail))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, storeFault(err)
	}
	r.Raw = layout.BorrowString(raw) // owned by this function
	return true, a.decode(t, r)
}

// bound returns the tenant that the caller is bound to in a table; false when rows of any
// tenant can be reached, or the table has no tenants.
func (a *Access) bound(t *table, anyTenant bool) (string, bool) {
	return a.Caller.Tenant, t.Tenant >= 0 && !anyTenant
}

// tails yields the tails of the rows that may have that id and that the caller may reach:
// that of its tenant or, for a caller of all tenants, those of all tenants that have one. A
// row with such a tail may not exist.
func (a *Access) tails(t *table, id string, anyTenant bool) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if tenant, bound := a.bound(t, anyTenant); bound || t.Tenant < 0 {
			yield(string(t.Tail(nil, tenant, id)), nil)
			return
		}
		prefix := layout.AppendEntry(append([]byte{}, t.Locator.Prefix...), schema.TextValue(id), false)
		none := true
		for item, err := range a.Tx.Scan(prefix, nil, false) {
			if err != nil {
				yield("", storeFault(err))
				return
			}
			none = false
			if !yield(string(item.Value), nil) {
				return
			}
		}
		if none { // counted like a row that does not exist
			if err := a.touch(); err != nil {
				yield("", err)
			}
		}
	}
}

// theOne reads the row with that id that passes, false when there is none. Ids from an
// identity provider may be equal in several tenants: when more than one of these passes,
// the result is a conflict.
func (a *Access) theOne(t *table, id string, anyTenant bool,
	passes func(*layout.Row) (bool, error)) (one layout.Row, found bool, err error) {
	for tail, err := range a.tails(t, id, anyTenant) {
		if err != nil {
			return one, false, err
		}
		r, exists, err := a.read(t, tail)
		if err == nil && exists {
			exists, err = passes(&r)
		}
		switch {
		case err != nil:
			return one, false, err
		case !exists:
		case found:
			return one, false, severalTenants(t)
		default:
			one, found = r, true
		}
	}
	return one, found, nil
}

func severalTenants(t *table) error {
	return fault.New(fault.Conflict, "several tenants have a %s with this id, and the tenant is not given", t.Name)
}

// take returns a buffer for a row's values; give returns it.
func (a *Access) take(t *table) []schema.Value {
	for i := len(a.free) - 1; i >= 0; i-- {
		if free := a.free[i]; cap(free) >= len(t.Slots) {
			a.free = append(a.free[:i], a.free[i+1:]...)
			return free[:len(t.Slots)]
		}
	}
	return make([]schema.Value, len(t.Slots))
}

func (a *Access) give(values []schema.Value) { a.free = append(a.free, values) }
