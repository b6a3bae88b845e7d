package compiler

import (
	"runner.example/schema"
	"runner.example/schema/model"
	"runner.example/schema/syntax"
)

// policyChecker checks the @@allow and @@deny rules of entities.
type policyChecker struct {
	*app
	rules ruleChecker
}

// checkPolicies checks the @@allow and @@deny of all entities.
func (c *policyChecker) checkPolicies() {
	for _, e := range c.entities {
		for _, p := range e.decl.Policies {
			c.checkPolicy(e, p)
		}
	}
}

func (c *policyChecker) checkPolicy(e *entityInfo, p *syntax.PolicyDecl) {
	head := p.Loc.To(p.Effect.Loc)
	c.checkActions(p.Actions, policyActions)
	for _, kind := range p.To {
		if kind.Scope != nil && c.scopes[kind.Scope.Name] == nil {
			c.Missing(kind.Scope.Name, "E242", kind.Loc, "`to apiKey(%s)`: no scope of that name%s",
				kind.Scope.Name, c.DidYouMean(kind.Scope.Name, c.scopeNames))
		}
		if kind.Name.Name == "apiKey" && p.Effect.Name == "allow" {
			c.Errorf("E316", head, "@@allow to apiKey: keys get their rights only from @grant; `to apiKey` is for @@deny")
		}
	}
	if p.Effect.Name == "allow" && len(p.To) == 0 && p.When == nil {
		c.Errorf("E228", head,
			"@@allow without `to` and `when` also gives anonymous callers access to %s: write `to session`, or `to anonymous` if that is meant",
			e.name())
	}
	if p.Effect.Name == "allow" {
		c.checkAllowedInsert(e, p)
	}
	if p.When == nil {
		return
	}
	c.rules.checkRule(p.When, ruleScope{entity: e, old: onlyUpdates(p.Actions)})
	if p.Effect.Name != "deny" {
		return
	}
	if truth, _ := model.Rule(p.When).Eval(&schema.RuleInput{}); truth == schema.True {
		c.Warnf("W229", head, "the `when` of this @@deny is always true (omit it if that is meant)")
	}
}

// checkAllowedInsert warns of an @@allow of inserts on an entity with a required field that
// only a grant can name.
func (c *policyChecker) checkAllowedInsert(e *entityInfo, p *syntax.PolicyDecl) {
	insert := wordFor("insert", p.Actions)
	if insert == nil {
		return
	}
	for _, f := range e.decl.Fields {
		if mustBeGiven(f) && f.Attr("hidden") != nil && f.Attr("readonly") == nil {
			c.Warnf("W317", insert.Loc,
				"@@allow lets no caller insert a %s: its required field %s is @hidden, and only a @grant can name it (give it a default, or make it optional)",
				e.name(), f.Name.Name)
			return
		}
	}
}
