package compiler

import (
	"regexp"
	"slices"
	"time"
	"unicode"

	"runner.example/schema"
	"runner.example/schema/model"
	"runner.example/schema/syntax"
)

// scopeChecker checks the apiKeys block and builds its part of the model.
type scopeChecker struct {
	*app
	rules ruleChecker
}

const (
	defaultPrefix = "rnk"
	// maxGrace is the maximum grace period of a rotation that can be declared.
	maxGrace = 30 * 24 * time.Hour
)

var (
	prefixForm = regexp.MustCompile(`^[a-z][a-z0-9]{1,7}$`)
	// reservedPrefixes begin other tokens: the prefix says what kind of credential was found in a log.
	reservedPrefixes = []string{"rns", "rnp"}
	systemForm       = regexp.MustCompile(`^[A-Za-z0-9.:_-]{1,64}$`)
)

// checkAPIKeys checks the apiKeys block and builds its part of the model.
func (c *scopeChecker) checkAPIKeys() {
	keys := &c.schema.APIKeys
	keys.Prefix, keys.MaxGrace = defaultPrefix, maxGrace
	systems := map[string]syntax.Ident{}
	for _, d := range c.decls {
		block, ok := d.(*syntax.APIKeysDecl)
		if !ok {
			continue
		}
		c.checkKeySettings(block.Settings)
		for _, scopes := range block.Blocks {
			for _, scope := range scopes.Scopes {
				c.checkScope(scope)
				c.checkSystem(scope, systems)
				keys.Scopes = append(keys.Scopes, buildScope(scope))
			}
		}
	}
}

func (c *scopeChecker) checkKeySettings(settings []*syntax.Setting) {
	c.settingsOnce(settings)
	keys := &c.schema.APIKeys
	var lifetime *syntax.Setting
	for _, s := range settings {
		switch s.Name.Name {
		case "prefix":
			c.checkKeyPrefix(s.Value)
		case "defaultLifetime":
			keys.DefaultLifetime, _ = c.Duration(s.Value, "d")
			lifetime = s
		case "maxLifetime":
			keys.MaxLifetime, _ = c.Duration(s.Value, "d")
		case "maxGrace":
			if grace, ok := c.Duration(s.Value, "d"); ok && grace > maxGrace {
				c.Errorf("E311", s.Value.Span(), "maxGrace %s is longer than 30d", raw(s.Value))
			} else if ok {
				keys.MaxGrace = grace
			}
		case "maxPerTenant":
			if lit, ok := c.Literal(s.Value, syntax.IntLit, "a number"); ok && lit.Int < 1 {
				c.Expected(s.Value, "a number above zero")
			} else if ok {
				keys.MaxPerTenant = int(lit.Int)
			}
		}
	}
	if lifetime == nil || keys.MaxLifetime == 0 || keys.DefaultLifetime <= keys.MaxLifetime {
		return
	}
	for _, s := range settings {
		if s.Name.Name == "maxLifetime" && s.Value != nil {
			c.Errorf("E311", lifetime.Value.Span(), "defaultLifetime %s is longer than maxLifetime %s",
				raw(lifetime.Value), raw(s.Value))
			return
		}
	}
}

func (c *scopeChecker) checkKeyPrefix(v syntax.SettingValue) {
	lit, ok := c.String(v)
	switch {
	case !ok:
	case !prefixForm.MatchString(lit.Text):
		c.Errorf("E310", lit.Loc,
			"the token prefix %q must be 2-8 lower-case letters or digits, beginning with a letter", lit.Text)
	case slices.Contains(reservedPrefixes, lit.Text):
		c.Errorf("E310", lit.Loc, "the token prefix %q is reserved for sessions (rns) and platform keys (rnp)", lit.Text)
	default:
		c.schema.APIKeys.Prefix = lit.Text
	}
}

// raw is a literal as written.
func raw(v syntax.SettingValue) string {
	if lit, ok := v.(*syntax.Literal); ok {
		return lit.Raw
	}
	return ""
}

// checkSystem checks the scope's @system id; systems has the ids so far.
func (c *scopeChecker) checkSystem(scope *syntax.ScopeDecl, systems map[string]syntax.Ident) {
	if scope.System == nil {
		return
	}
	id := scope.System.Text
	if !systemForm.MatchString(id) {
		c.Errorf("E303", scope.System.Loc, "@system needs a non-empty id (1-64 of letters, digits, . : _ -)")
		return
	}
	if first, twice := systems[id]; !twice {
		systems[id] = scope.Name
	} else if first.Name != scope.Name.Name {
		c.Warnf("W302", scope.Name.Loc,
			"scopes %q and %q share the system id %q; keys of one do not work on routes of the other",
			first.Name, scope.Name.Name, id)
	}
}

func (c *scopeChecker) checkScope(scope *syntax.ScopeDecl) {
	name := scope.Name
	if len(scope.Grants) == 0 && !c.MayDeclare("grant") {
		c.Warnf("W304", name.Loc, "scope %q grants nothing: its keys can call routes but cannot reach any entity", name.Name)
	}
	granted := map[string]map[string]bool{}
	for _, grant := range scope.Grants {
		c.checkGrant(grant)
		c.checkOverlap(scope, grant, granted)
	}
	if c.isBroad(granted) {
		c.Warnf("W313", name.Loc, "scope %q grants write or delete on every entity: prefer several narrow scopes", name.Name)
	}
	for _, span := range scope.AllTenants[min(1, len(scope.AllTenants)):] {
		c.Errorf("E402", span, "@allTenants is given twice")
	}
	c.rules.checkCallerRules(scope.Issues)
	c.rules.checkCallerRules(scope.Manages)
	if len(scope.AllTenants) > 0 && len(scope.Issues) > 0 {
		c.Errorf("E314", name.Loc,
			"scope %q is @allTenants and has @issue: a user of one tenant could create a key for all tenants", name.Name)
	}
	if len(scope.AllTenants) > 0 && len(scope.Manages) > 0 {
		c.Errorf("E314", name.Loc, "scope %q is @allTenants and has @manage: its keys are not of one tenant", name.Name)
	}
}

func (c *scopeChecker) checkGrant(grant *syntax.GrantDecl) {
	c.checkActions(grant.Actions, grantActions)
	for _, name := range grant.Entities {
		switch first, _ := firstRune(name.Name); {
		case name.Name == "":
		case c.schema.Typed:
			c.checkGrantOn(grant, name)
		case !unicode.IsUpper(first):
			c.Warnf("W202", name.Loc, "entity names begin with a capital letter: %q", name.Name)
		}
	}
	if !c.schema.Typed && grant.Where != nil {
		c.rules.checkRule(grant.Where, ruleScope{old: onlyUpdates(grant.Actions)})
	}
}

// checkGrantOn checks a grant for one of its entities.
func (c *scopeChecker) checkGrantOn(grant *syntax.GrantDecl, name syntax.Ident) {
	e := c.entity(name.Name)
	if e == nil {
		c.Missing(name.Name, "E306", name.Loc, "@grant names the unknown entity %q%s",
			name.Name, c.DidYouMean(name.Name, c.entityNames()))
		return
	}
	for _, field := range grant.Fields {
		f := e.fields[field.Name]
		switch {
		case field.Name == "":
		case f == nil:
			c.Missing(field.Name, "E307", field.Loc, "%s has no field %q%s",
				name.Name, field.Name, c.DidYouMean(field.Name, e.fieldNames()))
		case f.Attr("hidden") != nil && wordFor("read", grant.Actions) != nil:
			c.Warnf("W308", field.Loc, "fields(...) names the @hidden field %s: every key of this scope can read it", field.Name)
		}
	}
	c.checkGrantedInsert(grant, e)
	if grant.Where != nil {
		c.rules.checkRule(grant.Where, ruleScope{entity: e, old: onlyUpdates(grant.Actions)})
	}
}

// checkGrantedInsert warns of a grant of inserts that lacks a required field.
func (c *scopeChecker) checkGrantedInsert(grant *syntax.GrantDecl, e *entityInfo) {
	insert := wordFor("insert", grant.Actions)
	if insert == nil {
		return
	}
	for _, f := range e.decl.Fields {
		isNamed := slices.Contains(model.Names(grant.Fields), f.Name.Name)
		switch {
		case isNamed || !mustBeGiven(f) || f.Attr("readonly") != nil || c.MayDeclare(f.Name.Name):
		case grant.HasFields:
			c.Warnf("W317", insert.Loc,
				"no key of this scope can insert a %s: its required field %s is not in fields(...) (add it, give it a default, or make it optional)",
				e.name(), f.Name.Name)
			return
		case f.Attr("hidden") != nil:
			c.Warnf("W317", insert.Loc,
				"no key of this scope can insert a %s: its required field %s is @hidden (name it in fields(...), give it a default, or make it optional)",
				e.name(), f.Name.Name)
			return
		}
	}
}

// checkOverlap reports actions that an earlier @grant of the scope grants. granted has the
// single actions by entity.
func (c *scopeChecker) checkOverlap(scope *syntax.ScopeDecl, grant *syntax.GrantDecl,
	granted map[string]map[string]bool) {
	mine := map[string]map[string]bool{}
	for _, entity := range grant.Entities {
		if mine[entity.Name] != nil {
			c.Errorf("E315", grant.Loc, "scope %q names %s twice in one @grant", scope.Name.Name, entity.Name)
			continue
		}
		mine[entity.Name] = map[string]bool{}
		reported := map[string]bool{}
		for _, action := range grant.Actions {
			if !slices.Contains(grantActions, action.Name) {
				continue // reported
			}
			for _, part := range model.ActionParts(action.Name) {
				mine[entity.Name][part] = true
				if granted[entity.Name][part] && !reported[part] {
					reported[part] = true
					c.Errorf("E315", grant.Loc,
						"scope %q grants %s on %s twice: write one @grant for each entity and action", scope.Name.Name, part, entity.Name)
				}
			}
		}
	}
	for entity, parts := range mine {
		if granted[entity] == nil {
			granted[entity] = map[string]bool{}
		}
		for part := range parts {
			granted[entity][part] = true
		}
	}
}

// isBroad reports whether there are several entities and all can be written or deleted.
func (c *scopeChecker) isBroad(granted map[string]map[string]bool) bool {
	all := c.entityNames()
	if !c.schema.Typed {
		all = nil
		for name := range c.granted {
			all = append(all, name)
		}
	}
	if len(all) < 2 || c.Broken() {
		return false
	}
	return !slices.ContainsFunc(all, func(name string) bool {
		has := granted[name]
		return !has["delete"] && !(has["insert"] && has["update"])
	})
}

func buildScope(d *syntax.ScopeDecl) *schema.Scope {
	scope := &schema.Scope{Name: d.Name.Name, AllTenants: len(d.AllTenants) > 0, Doc: d.Doc}
	if d.System != nil {
		scope.System = d.System.Text
	}
	for _, grant := range d.Grants {
		built := schema.Grant{Actions: model.Names(grant.Actions), Entities: model.Names(grant.Entities)}
		built.Allows = model.Actions(built.Actions)
		if grant.HasFields {
			built.Fields = model.Names(grant.Fields)
		}
		scope.Grants = append(scope.Grants, built)
	}
	return scope
}
