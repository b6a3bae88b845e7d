package query

import (
	"slices"

	"runner.example/internal/caller"
	"runner.example/schema"
)

// Right is which rows an action reaches, and which of their fields.
type Right struct {
	// never: no row passes, because a @@deny has no condition. neverBy are these.
	never   bool
	neverBy []any
	// always: every row passes the allows, because an allow or a grant has no condition. alwaysBy are these.
	always   bool
	alwaysBy []any
	denies   []clause // all must be false
	allows   []clause // one must be true, unless always is set
	// readsNew: a rule of both reads the new row of an update.
	readsNew bool

	Fields FieldSet
	// selected are the positions of the fields, except to-many relations.
	selected []int
	// Only restricts the fields in untyped mode; nil: all.
	Only []string
}

// clause is a condition, and the *schema.Policy or the *schema.Grant that has it.
type clause struct {
	*schema.Rule
	by any
}

// granted returns the right of the scope's grant of the action on the entity.
func (r *Rights) granted(scope *schema.Scope, action schema.ActionSet) *Right {
	for i := range scope.Grants {
		g := &scope.Grants[i]
		if !g.Allows.Has(action) || !slices.Contains(g.Entities, r.name) {
			continue
		}
		got := &Right{}
		got.allow(g, g.Rule(r.entity))
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
		got.allow(p, p.When)
	}
	return got
}

func (g *Right) allow(by any, when *schema.Rule) {
	if when == nil {
		g.always, g.alwaysBy = true, append(g.alwaysBy, by)
		return
	}
	g.allows = append(g.allows, clause{when, by})
	g.readsNew = g.readsNew || when.ReadsNew()
}

func (r *Rights) deny(got *Right, action schema.ActionSet, who *caller.Caller) {
	if r.entity == nil {
		return
	}
	for _, p := range r.entity.Policies {
		switch {
		case !p.Deny || !p.Actions.Has(action) || !p.Concerns(who):
		case p.When == nil:
			got.never, got.neverBy = true, append(got.neverBy, p)
		default:
			got.denies = append(got.denies, clause{p.When, p})
			got.readsNew = got.readsNew || p.When.ReadsNew()
		}
	}
}

// passes evaluates the right for the input.
func (a *Authority) passes(r *Right) (bool, error) {
	if r == nil || !a.inTenant(a.Input.Row) {
		return false, nil
	}
	if r.never {
		a.observe(false, r.neverBy...)
		return false, nil
	}
	for _, rule := range r.denies {
		truth, err := a.eval(rule.Rule, schema.False)
		if err != nil {
			return false, err
		}
		if a.observe(truth == schema.False, rule.by); truth != schema.False {
			return false, nil
		}
	}
	if r.always {
		a.observe(true, r.alwaysBy...)
		return true, nil
	}
	for _, rule := range r.allows {
		truth, err := a.eval(rule.Rule, schema.True)
		if err != nil {
			return false, err
		}
		if a.observe(truth == schema.True, rule.by); truth == schema.True {
			return true, nil
		}
	}
	return false, nil
}

// observe tells the observer, if there is one, what rules have decided.
func (a *Authority) observe(allowed bool, rules ...any) {
	if a.Input.Observe == nil {
		return
	}
	for _, rule := range rules {
		a.Input.Observe(rule, a.name, allowed)
	}
}

// eval evaluates a rule for the input. While the new row of an update is not known, a rule that reads it does
// not keep the row from being found: if it is unknown, the result is the truth that lets the row pass.
func (a *Authority) eval(rule *schema.Rule, passing schema.Truth) (schema.Truth, error) {
	truth, err := rule.Eval(&a.Input)
	if err == nil && truth == schema.Unknown && a.Input.NewUnknown && rule.ReadsNew() {
		truth = passing
	}
	return truth, err
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

// ReadRules describes the rules that decide what the caller may read. Each has its place in the schema, or the name of
// its scope.
func (a *Authority) ReadRules() (rules []string) {
	who := a.Input.Caller
	name := who.Scope + who.As // a caller has one of them, or none
	scope := a.schema.Scope(name)
	switch {
	case who.Kind == caller.System:
		return []string{"an operator reads all rows"}
	case scope != nil:
		for _, g := range scope.Grants {
			if g.Allows.Has(schema.ActRead) && slices.Contains(g.Entities, a.name) {
				rule := "@grant read on " + a.name + " of scope " + name
				if g.Rule(a.entity) != nil {
					rule += ", if its condition holds"
				}
				rules = append(rules, rule)
			}
		}
	}
	if a.entity == nil {
		return append(rules, "the rows of the caller's tenant")
	}
	for _, p := range a.entity.Policies {
		if !p.Actions.Has(schema.ActRead) || !p.Concerns(who) || !p.Deny && scope != nil {
			continue
		}
		rule := "@@allow read"
		if p.Deny {
			rule = "@@deny read"
		}
		rules = append(rules, rule+" at "+p.Span.String())
	}
	if a.entity.Tenant != nil && !a.AnyTenant {
		rules = append(rules, "rows of tenant "+who.Tenant)
	}
	return rules
}
