package query

import (
	"slices"

	"runner.example/internal/caller"
	"runner.example/internal/cost"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema"
)

// Rights are what callers may do with the rows of one entity, compiled once from grants and
// policies. It is immutable and safe for concurrent use.
type Rights struct {
	schema *schema.Schema
	name   string
	entity *schema.Entity // nil in untyped mode

	session, anonymous *allowance
	// system is for operators, within for operators that name a tenant, importing for
	// imports.
	system, within, importing *allowance
	// keys and as are for API keys and for anonymous callers with a scope, by the scope's
	// name.
	keys, as map[string]*allowance
	// asWithin is as for callers that belong to a tenant.
	asWithin map[string]*allowance

	columns []Column           // by Field.Pos; nil in untyped mode
	others  map[string]*Rights // of all entities, for includes
}

// allowance is what callers of one kind may do, by action. A nil right permits nothing.
type allowance struct {
	Read, Insert, Update, delete *Right
	// AnyTenant: the caller reaches rows of every tenant, and an insert must name one.
	AnyTenant bool
}

// Right is which rows an action reaches, and which of their fields.
type Right struct {
	// never: no row passes, because a @@deny has no condition.
	never bool
	// always: every row passes the allows, because an allow or a grant has no condition.
	always bool
	denies []*schema.Rule // all must be false
	allows []*schema.Rule // one must be true, unless always is set

	Fields FieldSet
	// selected are the positions of the fields, except to-many relations.
	selected []int
	// Only restricts the fields in untyped mode; nil: all.
	Only []string
}

// FieldSet is a set of fields by Field.Pos.
type FieldSet []bool

// NewRights compiles what the schema lets callers do with the entity of that name.
func NewRights(s *schema.Schema, name string) *Rights {
	r := &Rights{schema: s, name: name, entity: s.Entity(name), keys: map[string]*allowance{}, as: map[string]*allowance{}, asWithin: map[string]*allowance{}}
	if r.entity != nil {
		for _, f := range r.entity.Fields {
			r.columns = append(r.columns, Column{name: f.Name, Pos: f.Pos, typ: &f.Type})
		}
	}
	r.system, r.within, r.importing = r.everything(false, true), r.everything(false, false), r.everything(true, true)
	r.session = r.allowed(nil, false, &caller.Caller{Kind: caller.Session})
	r.anonymous = r.allowed(nil, false, &caller.Caller{Kind: caller.Anonymous})
	for _, scope := range s.APIKeys.Scopes {
		r.keys[scope.Name] = r.allowed(scope, scope.AllTenants, &caller.Caller{Kind: caller.APIKey, Scope: scope.Name})
		as := &caller.Caller{Kind: caller.Anonymous, As: scope.Name}
		r.as[scope.Name] = r.allowed(scope, scope.AllTenants, as)
		r.asWithin[scope.Name] = r.allowed(scope, false, as)
	}
	return r
}

// allowed compiles what callers of a kind may do. With a scope, its grants decide, and
// policies add nothing; without one, policies decide. Denies apply to both.
func (r *Rights) allowed(scope *schema.Scope, anyTenant bool, who *caller.Caller) *allowance {
	a := &allowance{AnyTenant: anyTenant}
	for action, into := range a.actions() {
		var got *Right
		switch {
		case scope != nil:
			got = r.granted(scope, action)
		case r.entity == nil:
			got = &Right{always: true} // untyped mode: every row of the tenant
		default:
			got = r.permitted(action, who)
		}
		if got != nil {
			r.deny(got, action, who)
			r.bound(got, action, a.AnyTenant)
		}
		*into = got
	}
	a.selectAll(r.entity)
	return a
}

// selectAll sets the fields that a read returns without a select.
func (a *allowance) selectAll(e *schema.Entity) {
	if e == nil || a.Read == nil {
		return
	}
	for _, f := range e.Fields {
		if a.Read.Fields[f.Pos] && f.Type.Kind != schema.ToMany {
			a.Read.selected = append(a.Read.selected, f.Pos)
		}
	}
}

// actions returns the rights of an allowance by action.
func (a *allowance) actions() map[schema.ActionSet]**Right {
	return map[schema.ActionSet]**Right{
		schema.ActRead: &a.Read, schema.ActInsert: &a.Insert, schema.ActUpdate: &a.Update, schema.ActDelete: &a.delete,
	}
}

// granted returns the right of the scope's grant of the action on the entity.
func (r *Rights) granted(scope *schema.Scope, action schema.ActionSet) *Right {
	for i := range scope.Grants {
		g := &scope.Grants[i]
		if !g.Allows.Has(action) || !slices.Contains(g.Entities, r.name) {
			continue
		}
		got := &Right{}
		got.allow(g.Rule(r.entity))
		switch {
		case g.Fields == nil:
		case r.entity == nil:
			got.Only = g.Fields
		default:
			got.Fields = make(FieldSet, len(r.entity.Fields))
			for _, name := range g.Fields {
				got.Fields[r.entity.Field(name).Pos] = true
			}
		}
		return got
	}
	return nil
}

// permitted returns the right that the policies give.
func (r *Rights) permitted(action schema.ActionSet, who *caller.Caller) *Right {
	var got *Right
	for _, p := range r.entity.Policies {
		if p.Deny || !p.Actions.Has(action) || !p.Concerns(who) {
			continue
		}
		if got == nil {
			got = &Right{}
		}
		got.allow(p.When)
	}
	return got
}

func (g *Right) allow(when *schema.Rule) {
	if when == nil {
		g.always = true
		return
	}
	g.allows = append(g.allows, when)
}

func (r *Rights) deny(got *Right, action schema.ActionSet, who *caller.Caller) {
	if r.entity == nil {
		return
	}
	for _, p := range r.entity.Policies {
		switch {
		case !p.Deny || !p.Actions.Has(action) || !p.Concerns(who):
		case p.When == nil:
			got.never = true
		default:
			got.denies = append(got.denies, p.When)
		}
	}
}

// bound sets the fields that the action reaches: those that a grant names, or else all
// except hidden ones; for writes without those that only the host sets.
func (r *Rights) bound(got *Right, action schema.ActionSet, anyTenant bool) {
	if r.entity == nil {
		return
	}
	if got.Fields == nil {
		got.Fields = make(FieldSet, len(r.entity.Fields))
		for _, f := range r.entity.Fields {
			got.Fields[f.Pos] = !f.Hidden
		}
	}
	if action == schema.ActRead || action == schema.ActDelete {
		return
	}
	insert := action == schema.ActInsert
	for _, f := range r.entity.Fields {
		switch {
		case f == r.entity.ID && insert && r.idsAreGiven():
		case f == r.entity.Tenant && insert && anyTenant:
			got.Fields[f.Pos] = true
		case r.isHosts(f):
			got.Fields[f.Pos] = false
		}
	}
}

// isHosts reports whether only the host sets the field.
func (r *Rights) isHosts(f *schema.Field) bool {
	return f == r.entity.ID || f == r.entity.Tenant || f.ReadOnly || f.Created || f.Updated || f.Type.Kind == schema.ToMany
}

// idsAreGiven reports whether an identity provider assigns the ids of the rows.
func (r *Rights) idsAreGiven() bool {
	return r.name == r.schema.Auth.User || r.name == r.schema.Auth.Tenant
}

// everything is what operators may do: everything, except fields that the host sets, which
// only an import may write. The id and the tenant of a row never change.
func (r *Rights) everything(importing, anyTenant bool) *allowance {
	a := &allowance{AnyTenant: anyTenant}
	for action, into := range a.actions() {
		got := &Right{always: true}
		*into = got
		if r.entity == nil {
			continue
		}
		insert, write := action == schema.ActInsert, action != schema.ActRead
		got.Fields = make(FieldSet, len(r.entity.Fields))
		for _, f := range r.entity.Fields {
			reached := true
			switch {
			case !write:
			case f == r.entity.ID:
				reached = insert && (importing || r.idsAreGiven())
			case f == r.entity.Tenant:
				reached = insert && anyTenant
			case f.Created, f.Updated:
				reached = insert && importing
			case f.Type.Kind == schema.ToMany:
				reached = false
			}
			got.Fields[f.Pos] = reached
		}
	}
	a.selectAll(r.entity)
	return a
}

// nothing is the allowance of keys whose scope was removed.
var nothing = &allowance{}

func (r *Rights) of(who *caller.Caller) *allowance {
	switch {
	case who.Kind == caller.System && who.Tenant != "":
		return r.within
	case who.Kind == caller.System:
		return r.system
	case who.Kind == caller.Session:
		return r.session
	case who.Kind == caller.Anonymous && who.As == "":
		return r.anonymous
	}
	in, name := r.keys, who.Scope
	switch {
	case who.Kind == caller.Anonymous && who.Tenant != "": // a job that a caller of the tenant has enqueued
		in, name = r.asWithin, who.As
	case who.Kind == caller.Anonymous:
		in, name = r.as, who.As
	}
	if a := in[name]; a != nil {
		return a
	}
	if scope := r.schema.ScopeOf(name, who.Capability); scope != nil && who.Kind == caller.APIKey {
		return in[scope.Name]
	}
	return nothing
}

// AnyTenantFor reports whether the caller may reach rows of all tenants.
func (r *Rights) AnyTenantFor(who *caller.Caller) bool { return r.of(who).AnyTenant }

// ---- one caller ----

// Authority is what one caller may do with the rows of one entity, for one goroutine in one
// transaction.
type Authority struct {
	*Rights
	*allowance
	// Input is the input of rules without rows: the caller, the time, access to other rows.
	Input schema.RuleInput
	Work  *cost.Meter // meters the reading of arguments; may be nil
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
func (a *Authority) MayUpdate(old, new []schema.Value) (finds, makes bool, err error) {
	if finds, err = a.mayFind(old); err != nil || !finds {
		return false, false, err
	}
	a.Input.Row, a.Input.Old, a.Input.New = old, old, new
	if finds, err = a.passes(a.Update); err != nil || !finds {
		return false, false, err
	}
	a.Input.Row = new
	makes, err = a.passes(a.Update)
	return finds, makes, err
}

// passes evaluates the right for the input.
func (a *Authority) passes(r *Right) (bool, error) {
	if r == nil || r.never || !a.inTenant(a.Input.Row) {
		return false, nil
	}
	for _, rule := range r.denies {
		if truth, err := rule.Eval(&a.Input); err != nil || truth != schema.False {
			return false, err
		}
	}
	if r.always {
		return true, nil
	}
	for _, rule := range r.allows {
		if truth, err := rule.Eval(&a.Input); err != nil || truth == schema.True {
			return err == nil, err
		}
	}
	return false, nil
}

// inTenant reports whether the row belongs to the caller's tenant. In untyped mode, rows
// have no tenant field: their keys have the tenant.
func (a *Authority) inTenant(row []schema.Value) bool {
	if a.AnyTenant || a.entity == nil || a.entity.Tenant == nil {
		return true
	}
	tenant := a.Input.Caller.Tenant
	return tenant != "" && row[a.entity.Tenant.Pos].Text() == tenant
}

// ---- fields ----

// readable returns the field with that name if the caller may read it. The error for a
// hidden field, or one that is not granted, is the same as for one that does not exist.
func (a *Authority) readable(r *Right, name, at string) (*schema.Field, error) {
	if f := a.entity.Field(name); f != nil && r.Fields[f.Pos] {
		return f, nil
	}
	return nil, Invalidf("%s: %s has no field %q that the caller may read%s", at, a.name, name, diag.DidYouMean(name, a.names(r)))
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
