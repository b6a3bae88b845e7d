package query

import (
	"runner.example/internal/caller"
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

// FieldSet is a set of fields by Field.Pos.
type FieldSet []bool

// NewRights compiles what the schema lets callers do with the entity of that name.
func NewRights(s *schema.Schema, name string) *Rights {
	r := &Rights{
		schema: s, name: name, entity: s.Entity(name), keys: map[string]*allowance{}, as: map[string]*allowance{},
		asWithin: map[string]*allowance{},
	}
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
