package query

import (
	"runner.example/internal/caller"
	"runner.example/internal/cost"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema"
)

// Authority is what one caller may do with the rows of one entity, for one goroutine in one
// transaction.
type Authority struct {
	*Rights
	*allowance
	// Input is the input of rules without rows: the caller, the time, access to other rows.
	Input schema.RuleInput
	Work  *cost.Meter // meters the reading of arguments; may be nil
	// FileOf returns the file with that id, if the caller may write it into a row; nil: there are none.
	FileOf func(id string) (schema.File, bool)
}

// For returns the authority of the caller of input, which has no rows yet.
func (r *Rights) For(input schema.RuleInput) Authority {
	return Authority{Rights: r, allowance: r.of(input.Caller), Input: input}
}

// AllowImport lets the caller set ids and times of inserted rows.
func (a *Authority) AllowImport() { a.allowance = a.importing }

// may returns the right to an action. If the caller has none, it returns nil and a Denied
// fault.
func (a *Authority) may(action schema.ActionSet) (*Right, error) {
	got, verb := a.Read, "read"
	switch action {
	case schema.ActInsert:
		got, verb = a.Insert, "insert"
	case schema.ActUpdate:
		got, verb = a.Update, "update"
	case schema.ActDelete:
		got, verb = a.delete, "delete"
	}
	who := a.Input.Caller
	switch {
	case got != nil && a.tenantless():
		return nil, fault.New(fault.Denied, "rows of %s belong to tenants, and the caller has none", a.name)
	case got != nil:
		return got, nil
	case who.Kind == caller.APIKey:
		return nil, fault.New(fault.Denied, "the scope %q grants no %s on %s", who.Scope, verb, a.name)
	case who.Kind == caller.Anonymous && who.As != "":
		return nil, fault.New(fault.Denied, "the scope %q grants no %s on %s", who.As, verb, a.name)
	case who.Kind == caller.Anonymous:
		return nil, fault.New(fault.Denied,
			"no @@allow of %s lets callers of kind anonymous %s: add one, or give the route the grants of a scope with as:", a.name, verb)
	}
	return nil, fault.New(fault.Denied, "no @@allow of %s lets callers of kind %s %s", a.name, who.Kind, verb)
}

// tenantless reports whether the entity's rows belong to tenants and the caller has none.
func (a *Authority) tenantless() bool {
	return a.entity != nil && a.entity.Tenant != nil && !a.AnyTenant && a.Input.Caller.Tenant == ""
}

// MayRead reports whether the caller may read the row. Errors are the store's.
func (a *Authority) MayRead(row []schema.Value) (bool, error) {
	a.Input.Row, a.Input.Old, a.Input.New = row, nil, nil
	return a.passes(a.Read)
}

// MayInsert reports whether the caller may insert the row.
func (a *Authority) MayInsert(row []schema.Value) (bool, error) {
	a.Input.Row, a.Input.Old, a.Input.New = row, nil, row
	return a.passes(a.Insert)
}

// mayFind reports whether an update or a delete may find the row. Without any right to
// read, it finds rows by id only. With one, it finds only rows that a query would:
// otherwise its where would reveal values of such rows.
func (a *Authority) mayFind(row []schema.Value) (bool, error) {
	if a.Read == nil {
		return true, nil
	}
	return a.MayRead(row)
}

// MayDelete reports whether the caller may find and delete the row.
func (a *Authority) MayDelete(row []schema.Value) (bool, error) {
	if may, err := a.mayFind(row); err != nil || !may {
		return false, err
	}
	a.Input.Row, a.Input.Old, a.Input.New = row, nil, nil
	return a.passes(a.delete)
}

// MayUpdate reports whether an update may find the old row and, if so, whether it may
// change it to the new one. A row that is not found is skipped; a forbidden change is an
// error.
//
// The old row is found by what the rules say of it while the new one is not known. The change is then judged
// with both, so a rule that compares them forbids the change, and does not hide the row. Without any right to
// read, the error would reveal that there is a row: the rules then find it with the new one.
func (a *Authority) MayUpdate(old, new []schema.Value) (finds, makes bool, err error) {
	if finds, err = a.mayFind(old); err != nil || !finds {
		return false, false, err
	}
	a.Input.Row, a.Input.Old, a.Input.New = old, old, new
	if a.Update.readsNew && a.Read != nil {
		a.Input.New, a.Input.NewUnknown = nil, true
		finds, err = a.passes(a.Update)
		a.Input.New, a.Input.NewUnknown = new, false
		if err != nil || !finds {
			return false, false, err
		}
		if makes, err = a.passes(a.Update); err != nil || !makes {
			return true, false, err
		}
	} else if finds, err = a.passes(a.Update); err != nil || !finds {
		return false, false, err
	}
	a.Input.Row = new
	makes, err = a.passes(a.Update)
	return finds, makes, err
}

// ---- fields ----

// readable returns the field with that name if the caller may read it. The error for a
// hidden field, or one that is not granted, is the same as for one that does not exist.
func (a *Authority) readable(r *Right, name, at string) (*schema.Field, error) {
	if f := a.entity.Field(name); f != nil && r.Fields[f.Pos] {
		return f, nil
	}
	return nil, unknownName(name, notReadable, "%s: %s has no field %q that the caller may read%s",
		at, a.name, name, diag.DidYouMean(name, a.names(r)))
}

// names returns the names of the fields that the right reaches.
func (a *Authority) names(r *Right) []string {
	if a.entity == nil {
		return r.Only
	}
	var list []string
	for _, f := range a.entity.Fields {
		if r.Fields[f.Pos] {
			list = append(list, f.Name)
		}
	}
	return list
}

// ReturnedFields are the positions of the fields that an insert returns: those that the
// caller may read or, if it may not read the row, those that it gave and those that the
// host set.
func (a *Authority) ReturnedFields(row []schema.Value, given FieldSet) ([]int, error) {
	if a.Read != nil {
		may, err := a.MayRead(row)
		if err != nil {
			return nil, err
		}
		if may {
			return a.Read.selected, nil
		}
	}
	var list []int
	for _, f := range a.entity.Fields {
		if made := f == a.entity.ID || f.Created || f.Updated; given[f.Pos] || made && !f.Hidden {
			list = append(list, f.Pos)
		}
	}
	return list, nil
}
