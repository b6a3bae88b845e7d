package query

import (
	"slices"

	"runner.example/internal/caller"
	"runner.example/internal/cost"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema"
)

// Rights is what callers may do with the rows of one entity, compiled once from
// grants and policies. It is immutable and safe for concurrent use.
type Rights struct {
	schema *schema.Schema
	name   string
	entity *schema.Entity // nil in untyped mode

	session, anonymous *allowance
	// system is for operators, within for those who name a tenant, importing for those
	// who bring rows from elsewhere.
	system, within, importing *allowance
	// keys and as are for API keys and for anonymous callers under a scope, by
	// the scope's name.
	keys, as map[string]*allowance

	columns []Column // by Field.Pos; nil in untyped mode
}

// allowance is what one sort of callers may do, by action. Nil is nothing at
// all.
type allowance struct {
	Read, Insert, Update, delete *Right
	// anyTenant: rows of every tenant are within reach, and an insert has to
	// name one.
	AnyTenant bool
}

// Right is what rows an action reaches and which of their fields.
type Right struct {
	// never: no row passes, some @@deny is without condition.
	never bool
	// always: every row passes the allows, some allow or grant is without
	// condition.
	always bool
	denies []*schema.Rule // each must be false
	allows []*schema.Rule // one must be true, unless always

	Fields FieldSet
	// selected are the positions of fields without the to-many ones.
	selected []int
	// Only bounds the fields in untyped mode; nil: all.
	Only []string
}

// FieldSet is a set of fields by Field.Pos.
type FieldSet []bool

// NewRights compiles what the schema lets callers do with the entity of that
// name.
func NewRights(s *schema.Schema, name string) *Rights {
	r := &Rights{schema: s, name: name, entity: s.Entity(name), keys: map[string]*allowance{}, as: map[string]*allowance{}}
	if r.entity != nil {
		for _, f := range r.entity.Fields {
			r.columns = append(r.columns, Column{name: f.Name, Pos: f.Pos, typ: &f.Type})
		}
	}
	r.system, r.within, r.importing = r.everything(false, true), r.everything(false, false), r.everything(true, true)
	r.session = r.allowed(nil, &caller.Caller{Kind: caller.Session})
	r.anonymous = r.allowed(nil, &caller.Caller{Kind: caller.Anonymous})
	for _, scope := range s.APIKeys.Scopes {
		r.keys[scope.Name] = r.allowed(scope, &caller.Caller{Kind: caller.APIKey, Scope: scope.Name})
		r.as[scope.Name] = r.allowed(scope, &caller.Caller{Kind: caller.Anonymous, As: scope.Name})
	}
	return r
}

// allowed compiles what a sort of callers may do: with a scope what its grants
// say and no policy adds to, without one what policies allow. Denies hold for
// both.
func (r *Rights) allowed(scope *schema.Scope, who *caller.Caller) *allowance {
	a := &allowance{AnyTenant: scope != nil && scope.AllTenants}
	for action, into := range a.actions() {
		var got *Right
		switch {
		case scope != nil:
			got = r.granted(scope, action)
		case r.entity == nil:
			got = &Right{always: true} // untyped: every row of the tenant
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

// selectAll notes what a read gives back when nothing is named.
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

// actions are the fields of an allowance by their action.
func (a *allowance) actions() map[schema.ActionSet]**Right {
	return map[schema.ActionSet]**Right{
		schema.ActRead: &a.Read, schema.ActInsert: &a.Insert, schema.ActUpdate: &a.Update, schema.ActDelete: &a.delete,
	}
}

// granted is what the scope's one grant of the action on the entity gives.
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

// permitted is what the policies allow.
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

// bound fills in the fields that the action reaches: those a grant names, else
// all but hidden ones; for writing none that the host alone sets.
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

// isHosts reports that no guest sets the field.
func (r *Rights) isHosts(f *schema.Field) bool {
	return f == r.entity.ID || f == r.entity.Tenant || f.ReadOnly || f.Created || f.Updated || f.Type.Kind == schema.ToMany
}

// idsAreGiven reports that an identity provider makes the ids of the rows.
func (r *Rights) idsAreGiven() bool {
	return r.name == r.schema.Auth.User || r.name == r.schema.Auth.Tenant
}

// everything is what operators may do: all, but for what the host sets, which
// only an import brings with it. No row changes its id or tenant.
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

// nothing is the allowance of keys whose scope is no more.
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
	if who.Kind == caller.Anonymous {
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

// Authority is what one caller may do with the rows of one entity, for one
// goroutine within one transaction.
type Authority struct {
	*Rights
	*allowance
	// Scene is what rules see besides rows: the caller, the time, other rows.
	Scene schema.Scene
	Work  *cost.Meter // of reading arguments; nil counts nothing
}

// For is the caller's. The scene names the caller and holds no rows yet.
func (r *Rights) For(scene schema.Scene) Authority {
	return Authority{Rights: r, allowance: r.of(scene.Caller), Scene: scene}
}

// AllowImport lets the caller set ids and times of inserted rows.
func (a *Authority) AllowImport() { a.allowance = a.importing }

// may returns the right to an action, nil and a Denied fault when the caller
// has none at all.
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
	who := a.Scene.Caller
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

// tenantless reports that the entity's rows belong to tenants and the caller to
// none.
func (a *Authority) tenantless() bool {
	return a.entity != nil && a.entity.Tenant != nil && !a.AnyTenant && a.Scene.Caller.Tenant == ""
}

// MayRead reports whether the caller may see the row. Only the store fails.
func (a *Authority) MayRead(row []schema.Value) (bool, error) {
	a.Scene.Row, a.Scene.Old, a.Scene.New = row, nil, nil
	return a.passes(a.Read)
}

// MayInsert reports whether the caller may add the row.
func (a *Authority) MayInsert(row []schema.Value) (bool, error) {
	a.Scene.Row, a.Scene.Old, a.Scene.New = row, nil, row
	return a.passes(a.Insert)
}

// mayFind reports whether an update or a delete may find the row at all. Without
// any right to read it finds rows by id alone; with one it finds no row that a
// query would not, else its where would tell what such rows hold.
func (a *Authority) mayFind(row []schema.Value) (bool, error) {
	if a.Read == nil {
		return true, nil
	}
	return a.MayRead(row)
}

// MayDelete reports whether the caller may find and remove the row.
func (a *Authority) MayDelete(row []schema.Value) (bool, error) {
	if may, err := a.mayFind(row); err != nil || !may {
		return false, err
	}
	a.Scene.Row, a.Scene.Old, a.Scene.New = row, nil, nil
	return a.passes(a.delete)
}

// MayUpdate reports whether an update may find the old row, and, if so, whether
// it may make the new one of it. A row that is not found is passed over; one
// that may not become what it should is an error.
func (a *Authority) MayUpdate(old, new []schema.Value) (finds, makes bool, err error) {
	if finds, err = a.mayFind(old); err != nil || !finds {
		return false, false, err
	}
	a.Scene.Row, a.Scene.Old, a.Scene.New = old, old, new
	if finds, err = a.passes(a.Update); err != nil || !finds {
		return false, false, err
	}
	a.Scene.Row = new
	makes, err = a.passes(a.Update)
	return finds, makes, err
}

// passes asks the right about the scene.
func (a *Authority) passes(r *Right) (bool, error) {
	if r == nil || r.never || !a.inTenant(a.Scene.Row) {
		return false, nil
	}
	for _, rule := range r.denies {
		if truth, err := rule.Eval(&a.Scene); err != nil || truth != schema.False {
			return false, err
		}
	}
	if r.always {
		return true, nil
	}
	for _, rule := range r.allows {
		if truth, err := rule.Eval(&a.Scene); err != nil || truth == schema.True {
			return err == nil, err
		}
	}
	return false, nil
}

// inTenant reports that the row is of the caller's tenant. In untyped mode rows
// have no tenant of their own: their keys do.
func (a *Authority) inTenant(row []schema.Value) bool {
	if a.AnyTenant || a.entity == nil || a.entity.Tenant == nil {
		return true
	}
	tenant := a.Scene.Caller.Tenant
	return tenant != "" && row[a.entity.Tenant.Pos].Text() == tenant
}

// ---- fields ----

// readable finds a field that the caller may read, by name. One that is hidden
// or not granted fails as one that does not exist does.
func (a *Authority) readable(r *Right, name, at string) (*schema.Field, error) {
	if f := a.entity.Field(name); f != nil && r.Fields[f.Pos] {
		return f, nil
	}
	return nil, Invalidf("%s: %s has no field %q that the caller may read%s", at, a.name, name, diag.DidYouMean(name, a.names(r)))
}

// names are those of the fields that the right reaches.
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

// ReturnedFields are the positions that an insert gives back of a row: what the caller
// may read of it or, of a row that it may not read, what it gave and what the
// host made.
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
