package compiler

import (
	"slices"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// names are the declarations of an app. If a name is declared twice, the first declaration
// counts.
type names struct {
	decls []syntax.Decl
	// named are the declarations that can be used as a type.
	named    map[string]syntax.Decl
	entities []*entityInfo
	byName   map[string]*entityInfo
	secrets  map[string]diag.Span
	// vars are the declared variables, and varUses the places where one stands for a literal.
	vars    map[string]*syntax.VarDecl
	varUses []syntax.VarUse
	scopes  map[string]*syntax.ScopeDecl
	// scopeNames are in order of declaration.
	scopeNames []string
	// granted are the entities that a @grant names.
	granted map[string]bool
}

func newNames() names {
	return names{
		named:   map[string]syntax.Decl{},
		byName:  map[string]*entityInfo{},
		secrets: map[string]diag.Span{},
		vars:    map[string]*syntax.VarDecl{},
		scopes:  map[string]*syntax.ScopeDecl{},
		granted: map[string]bool{},
	}
}

// entityInfo is an entity declaration with facts about it.
type entityInfo struct {
	decl *syntax.EntityDecl
	// fields has the first declaration of each name.
	fields map[string]*syntax.FieldDecl
	// tenant is the @tenant field, or nil.
	tenant *syntax.FieldDecl
	// allowed reports that the entity has an @@allow.
	allowed bool
}

func newEntityInfo(d *syntax.EntityDecl) *entityInfo {
	e := &entityInfo{decl: d, fields: map[string]*syntax.FieldDecl{}}
	for _, f := range d.Fields {
		if f.Name.Name != "" && e.fields[f.Name.Name] == nil {
			e.fields[f.Name.Name] = f
		}
		if e.tenant == nil && f.Attr("tenant") != nil {
			e.tenant = f
		}
	}
	for _, p := range d.Policies {
		e.allowed = e.allowed || p.Effect.Name == "allow"
	}
	return e
}

func (e *entityInfo) name() string { return e.decl.Name.Name }

// fieldNames are the names of the fields in order of declaration.
func (e *entityInfo) fieldNames() []string {
	var names []string
	for _, f := range e.decl.Fields {
		names = append(names, f.Name.Name)
	}
	return names
}

// entity returns the entity of that name, or nil.
func (n *names) entity(name string) *entityInfo {
	return n.byName[name]
}

func (n *names) entityNames() []string {
	var names []string
	for _, e := range n.entities {
		names = append(names, e.name())
	}
	return names
}

// target returns the entity that a field refers to, nil if it is not a relation.
func (n *names) target(f *syntax.FieldDecl) *entityInfo {
	if f.Type == nil {
		return nil
	}
	return n.entity(f.Type.Name.Name)
}

func (n *names) typeNames() []string {
	var names []string
	for _, d := range n.decls {
		switch d := d.(type) {
		case *syntax.EnumDecl:
			names = append(names, d.Name.Name)
		case *syntax.TypeDecl:
			names = append(names, d.Name.Name)
		case *syntax.EntityDecl:
			names = append(names, d.Name.Name)
		}
	}
	return names
}

// typeExists reports whether the field's type exists. If it does not, that was reported, and
// other errors of the field may only follow from it.
func (n *names) typeExists(f *syntax.FieldDecl) bool {
	return slices.Contains(schema.BuiltinTypes, f.Type.Name.Name) || n.named[f.Type.Name.Name] != nil
}

// describeType is the name of a type in messages: "string", "B[]".
func describeType(t *syntax.TypeRef) string {
	if t.List {
		return t.Name.Name + "[]"
	}
	return t.Name.Name
}

// seenNames detects repeated names.
type seenNames map[string]diag.Span

// add records the name and returns the span of its first occurrence.
func (t seenNames) add(id syntax.Ident) (first diag.Span, twice bool) {
	if id.Name == "" {
		return first, false
	}
	if first, twice = t[id.Name]; !twice {
		t[id.Name] = id.Loc
	}
	return first, twice
}

// collect records all declarations by name, before anything that refers to them is checked.
func (a *app) collect() {
	once := map[string]diag.Span{}
	types, scopes := seenNames{}, seenNames{}

	single := func(code, word string, span diag.Span) bool {
		first, twice := once[word]
		if !twice {
			once[word] = span
			return true
		}
		if code == "E300" {
			a.Errorf(code, span, "only one apiKeys block is allowed; the first is at %s", report.At(span, first))
		} else {
			a.Errorf(code, span, "%q may be declared only once; the first is at %s", word, report.At(span, first))
		}
		return false
	}
	declare := func(word string, name syntax.Ident, d syntax.Decl) {
		if name.Name == "" {
			return
		}
		if first, twice := types.add(name); twice {
			a.Errorf("E200", name.Loc, "%s %q is already declared at %s", word, name.Name, report.At(name.Loc, first))
			return
		}
		a.named[name.Name] = d
	}

	for _, d := range a.decls {
		switch d := d.(type) {
		case *syntax.AppDecl:
			if single("E120", "app", d.Keyword) {
				a.schema.App = d.Name.Name
			}
		case *syntax.AuthDecl:
			single("E120", "auth", d.Keyword)
		case *syntax.OutboundDecl:
			single("E120", "outbound", d.Keyword)
		case *syntax.PythonDecl:
			single("E120", "python", d.Keyword)
		case *syntax.APIKeysDecl:
			single("E300", "apiKeys", d.Keyword)
			a.collectScopes(d, scopes)
		case *syntax.SecretDecl:
			a.declareSecret(d)
		case *syntax.VarDecl:
			a.declareVar(d)
		case *syntax.EnumDecl:
			declare("enum", d.Name, d)
		case *syntax.TypeDecl:
			declare("type", d.Name, d)
		case *syntax.EntityDecl:
			a.schema.Typed = true
			declare("entity", d.Name, d)
			info := newEntityInfo(d)
			a.entities = append(a.entities, info)
			if a.named[d.Name.Name] == syntax.Decl(d) {
				a.byName[d.Name.Name] = info
			}
		}
	}
}

func (a *app) declareSecret(d *syntax.SecretDecl) {
	name := d.Name
	if name.Name == "" {
		return
	}
	if first, twice := a.secrets[name.Name]; twice {
		a.Errorf("E200", name.Loc, "secret %q is already declared at %s", name.Name, report.At(name.Loc, first))
		return
	}
	a.secrets[name.Name] = name.Loc
	a.schema.Secrets = append(a.schema.Secrets, name.Name)
}

// collectScopes records the scopes and the entities that their grants name.
func (a *app) collectScopes(d *syntax.APIKeysDecl, taken seenNames) {
	for _, block := range d.Blocks {
		for _, scope := range block.Scopes {
			for _, grant := range scope.Grants {
				for _, entity := range grant.Entities {
					a.granted[entity.Name] = true
				}
			}
			if scope.Name.Name == "" {
				continue
			}
			if first, twice := taken.add(scope.Name); twice {
				a.Errorf("E301", scope.Name.Loc, "scope %q is already declared at %s",
					scope.Name.Name, report.At(scope.Name.Loc, first))
				continue
			}
			a.scopes[scope.Name.Name] = scope
			a.scopeNames = append(a.scopeNames, scope.Name.Name)
		}
	}
}

// settingsOnce reports repeated settings.
func (a *app) settingsOnce(settings []*syntax.Setting) {
	taken := seenNames{}
	for _, s := range settings {
		if _, twice := taken.add(s.Name); twice {
			a.Errorf("E402", s.Name.Loc, "setting %q is given twice", s.Name.Name)
		}
	}
}
