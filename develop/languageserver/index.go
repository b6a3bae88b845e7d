package languageserver

import (
	"cmp"
	"slices"
	"strings"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

// kind is what a name is the name of.
type kind string

const (
	kindEntity  kind = "entity"
	kindEnum    kind = "enum"
	kindType    kind = "type"
	kindField   kind = "field"     // of an entity or a type, its owner
	kindValue   kind = "value"     // of an enum, its owner
	kindParam   kind = "parameter" // of a function or a job, its owner
	kindScope   kind = "scope"
	kindRole    kind = "role"
	kindSecret  kind = "secret"
	kindVar     kind = "variable"
	kindHandler kind = "handler"
	kindModule  kind = "module"
	kindAppName kind = "app"
	kindUnknown kind = ""
)

// symbol identifies what a name means.
type symbol struct {
	kind        kind
	owner, name string
}

// ref is a place where a symbol is named.
type ref struct {
	symbol
	file *file
	// span is the name alone, without quotes.
	span diag.Span
	// declares reports that the symbol is declared there.
	declares bool
}

// declaration is what a symbol is declared by.
type declaration struct {
	ref
	// node is the declaration in the tree: *syntax.FieldDecl, and so on.
	node any
	// whole is the span of the declaration.
	whole diag.Span
	doc   string
}

// endpoint is a route, a function or a job with its effective settings.
type endpoint struct {
	file *file
	// handler is the name of the handler.
	handler syntax.Ident
	// title is "GET /v1/orders/:id", "function name" or "job name".
	title string
	// whole is the span of the declaration, and own its settings; nil without parentheses.
	whole diag.Span
	own   *syntax.RouteSettings
	doc   string
	// inherited are the settings of the groups, of which the last one of a name counts.
	inherited []*syntax.RouteSetting
	// end is where settings can be added.
	end int
	// what is "route", "function" or "job"; exposed reports a function with a URL.
	what    string
	exposed bool
	// group is the nearest group, nil for a function or a job.
	group *syntax.RoutesDecl
}

// index is what the names in the files of an app mean.
type index struct {
	// refs are all names by file, in order.
	refs map[*file][]ref
	// declared has the first declaration of each symbol. order lists them in order.
	declared  map[symbol]*declaration
	order     []*declaration
	endpoints []*endpoint
}

func newIndex(files []*file) *index {
	x := &index{refs: map[*file][]ref{}, declared: map[symbol]*declaration{}}
	for _, f := range files {
		x.refs[f] = make([]ref, 0, len(f.tree.Tokens)/3)
		(&declarer{x, f}).decls()
	}
	for _, f := range files {
		(&referrer{x, f}).decls()
	}
	for _, refs := range x.refs {
		slices.SortStableFunc(refs, func(a, b ref) int { return cmp.Compare(a.span.Start.Offset, b.span.Start.Offset) })
	}
	return x
}

// places returns the refs of a symbol in all files.
func (x *index) places(of symbol) (all []ref) {
	for _, refs := range x.refs {
		for i := range refs {
			if refs[i].name == of.name && refs[i].symbol == of {
				all = append(all, refs[i])
			}
		}
	}
	return all
}

// at returns the name at an offset: one that begins before it and does not end before it.
func (x *index) at(f *file, offset int) (ref, bool) {
	refs := x.refs[f]
	n, _ := slices.BinarySearchFunc(refs, offset, func(r ref, offset int) int { return cmp.Compare(r.span.End.Offset, offset) })
	if n < len(refs) && refs[n].span.Start.Offset <= offset {
		return refs[n], true
	}
	return ref{}, false
}

// named returns the entity, enum or type of that name as a symbol.
func (x *index) named(name string) (symbol, bool) {
	for _, k := range []kind{kindEntity, kindEnum, kindType} {
		if s := (symbol{kind: k, name: name}); x.declared[s] != nil {
			return s, true
		}
	}
	return symbol{}, false
}

// names are the names of all symbols of a kind and an owner, in order of declaration.
func (x *index) names(k kind, owner string) (names []string) {
	for _, d := range x.order {
		if d.kind == k && d.owner == owner {
			names = append(names, d.name)
		}
	}
	return names
}

// field returns the field of an entity or a type, or nil.
func (x *index) field(owner, name string) *syntax.FieldDecl {
	if d := x.declared[symbol{kindField, owner, name}]; d != nil {
		return d.node.(*syntax.FieldDecl)
	}
	return nil
}

// target returns the name of the type of a field, "" if there is none.
func (x *index) target(owner, field string) string {
	if f := x.field(owner, field); f != nil && f.Type != nil {
		return f.Type.Name.Name
	}
	return ""
}

func (x *index) isEntity(name string) bool {
	return x.declared[symbol{kind: kindEntity, name: name}] != nil
}

func (x *index) isEnum(name string) bool {
	return x.declared[symbol{kind: kindEnum, name: name}] != nil
}

// add records a name, unless it is missing. The quotes of a string are not part of it.
func (x *index) add(f *file, k kind, owner string, id syntax.Ident, declares bool) (ref, bool) {
	if id.Name == "" {
		return ref{}, false
	}
	span := id.Loc
	if text := f.slice(span); strings.HasPrefix(text, `"`) && len(text) >= 2 {
		span.Start.Offset++
		span.Start.Col++
		span.End.Offset--
		span.End.Col--
	}
	r := ref{symbol{k, owner, id.Name}, f, span, declares}
	x.refs[f] = append(x.refs[f], r)
	return r, true
}

// declarer records the declarations of a file.
type declarer struct {
	*index
	file *file
}

func (d *declarer) declare(k kind, owner string, id syntax.Ident, node any, whole diag.Span, doc string) {
	r, ok := d.add(d.file, k, owner, id, true)
	if !ok {
		return
	}
	found := &declaration{r, node, whole, doc}
	d.order = append(d.order, found)
	if d.declared[r.symbol] == nil {
		d.declared[r.symbol] = found
	}
}

func (d *declarer) decls() {
	for _, decl := range d.file.tree.Decls {
		switch decl := decl.(type) {
		case *syntax.AppDecl:
			d.declare(kindAppName, "", decl.Name, decl, decl.Loc, decl.Doc)
		case *syntax.SecretDecl:
			d.declare(kindSecret, "", decl.Name, decl, decl.Loc, decl.Doc)
		case *syntax.VarDecl:
			d.declare(kindVar, "", decl.Name, decl, decl.Loc, decl.Doc)
		case *syntax.ModuleDecl:
			d.declare(kindModule, "", decl.Name, decl, decl.Loc, decl.Doc)
		case *syntax.AuthDecl:
			d.roles(decl)
		case *syntax.EnumDecl:
			d.declare(kindEnum, "", decl.Name, decl, decl.Loc, decl.Doc)
			for i, v := range decl.Values {
				d.declare(kindValue, decl.Name.Name, v, &enumValue{decl, i}, v.Loc, "")
			}
		case *syntax.TypeDecl:
			d.declare(kindType, "", decl.Name, decl, decl.Loc, decl.Doc)
			d.fields(kindField, decl.Name.Name, decl.Fields)
		case *syntax.EntityDecl:
			d.declare(kindEntity, "", decl.Name, decl, decl.Loc, decl.Doc)
			d.fields(kindField, decl.Name.Name, decl.Fields)
		case *syntax.APIKeysDecl:
			for _, block := range decl.Blocks {
				for _, scope := range block.Scopes {
					d.declare(kindScope, "", scope.Name, scope, scope.Loc, scope.Doc)
				}
			}
		case *syntax.FunctionsDecl:
			for _, f := range decl.Functions {
				d.function(f, decl.Settings, "function")
			}
		case *syntax.JobsDecl:
			for _, f := range decl.Jobs {
				d.function(f, decl.Settings, "job")
			}
		case *syntax.RoutesDecl:
			d.group(decl, "", nil)
		}
	}
}

// enumValue is a value of an enum.
type enumValue struct {
	enum *syntax.EnumDecl
	n    int
}

func (d *declarer) fields(k kind, owner string, fields []*syntax.FieldDecl) {
	for _, f := range fields {
		d.declare(k, owner, f.Name, f, f.Loc, f.Doc)
	}
}

func (d *declarer) roles(decl *syntax.AuthDecl) {
	for _, s := range decl.Settings {
		list, ok := s.Value.(*syntax.ListSetting)
		if s.Name.Name != "roles" || !ok {
			continue
		}
		for _, elem := range list.Elems {
			switch elem := elem.(type) {
			case *syntax.NameSetting:
				d.declare(kindRole, "", elem.Name, elem, elem.Loc, "")
			case *syntax.Literal:
				d.declare(kindRole, "", syntax.Ident{Node: elem.Node, Name: elem.Text}, elem, elem.Loc, "")
			}
		}
	}
}

// notInherited are the settings of a group that its routes, functions or jobs do not have.
var notInherited = []string{"as", "mints", "query", "stream", "live", "upload", "concurrency", "schedule"}

// inner returns the settings that something in a group inherits, if the group has own settings and those
// of the groups around it.
func inner(outer []*syntax.RouteSetting, own *syntax.RouteSettings) []*syntax.RouteSetting {
	if own == nil {
		return outer
	}
	all := slices.Clone(outer)
	for _, s := range own.List {
		if !slices.Contains(notInherited, s.Name.Name) {
			all = append(all, s)
		}
	}
	return all
}

func (d *declarer) function(f *syntax.FunctionDecl, group *syntax.RouteSettings, what string) {
	d.declare(kindHandler, "", f.Name, f, f.Loc, f.Doc)
	d.fields(kindParam, f.Name.Name, f.Params)
	d.endpoints = append(d.endpoints, &endpoint{
		file: d.file, handler: f.Name, title: what + " " + f.Name.Name, whole: f.Loc, own: f.Settings, doc: f.Doc,
		inherited: inner(nil, group), end: f.Loc.End.Offset, what: what, exposed: f.Expose,
	})
}

func (d *declarer) group(g *syntax.RoutesDecl, prefix string, outer []*syntax.RouteSetting) {
	inherited := inner(outer, g.Settings)
	if g.Prefix != nil && g.Prefix.Text != "/" {
		prefix += g.Prefix.Text
	}
	for _, item := range g.Items {
		switch item := item.(type) {
		case *syntax.RoutesDecl:
			d.group(item, prefix, inherited)
		case *syntax.RouteDecl:
			path := prefix + item.Path.Raw
			if item.Path.Raw == "/" && prefix != "" {
				path = prefix
			}
			d.endpoints = append(d.endpoints, &endpoint{
				file: d.file, handler: item.Handler, title: item.Method.Name + " " + path, whole: item.Loc, own: item.Settings,
				doc: item.Doc, inherited: inherited, end: item.Loc.End.Offset, what: "route", exposed: true,
				group: g,
			})
		}
	}
}

// referrer records the names in a file that refer to declarations of all files.
type referrer struct {
	*index
	file *file
}

func (r *referrer) refer(k kind, owner string, ids ...syntax.Ident) {
	for _, id := range ids {
		r.add(r.file, k, owner, id, false)
	}
}

func (r *referrer) decls() {
	for _, use := range r.file.tree.VarUses {
		r.refer(kindVar, "", use.Name)
	}
	for _, decl := range r.file.tree.Decls {
		switch decl := decl.(type) {
		case *syntax.AuthDecl:
			r.auth(decl)
		case *syntax.TypeDecl:
			r.fields(decl.Name.Name, decl.Fields)
		case *syntax.EntityDecl:
			r.entity(decl)
		case *syntax.APIKeysDecl:
			r.apiKeys(decl)
		case *syntax.FunctionsDecl:
			r.settings(decl.Settings)
			for _, f := range decl.Functions {
				r.function(f)
			}
		case *syntax.JobsDecl:
			r.settings(decl.Settings)
			for _, f := range decl.Jobs {
				r.function(f)
			}
		case *syntax.RoutesDecl:
			r.routes(decl)
		case *syntax.AssetsDecl:
			r.settings(decl.Settings)
		}
	}
}

func (r *referrer) auth(decl *syntax.AuthDecl) {
	for _, s := range decl.Settings {
		if name, ok := s.Value.(*syntax.NameSetting); ok && (s.Name.Name == "user" || s.Name.Name == "tenant") {
			r.refer(kindEntity, "", name.Name)
		}
	}
	for _, session := range decl.Sessions {
		for _, m := range session.Manages {
			r.rule(m.When, rows{})
		}
	}
}

func (r *referrer) fields(owner string, fields []*syntax.FieldDecl) {
	for _, f := range fields {
		r.typeRef(f.Type)
		if f.Type != nil && r.isEnum(f.Type.Name.Name) {
			r.value(f.Type.Name.Name, f.Default)
		}
		if inverse := f.Attr("inverse"); inverse != nil && inverse.Ref != nil && f.Type != nil {
			r.refer(kindField, f.Type.Name.Name, *inverse.Ref)
		}
	}
}

// value records the values of an enum in a default.
func (r *referrer) value(enum string, v syntax.SettingValue) {
	switch v := v.(type) {
	case *syntax.NameSetting:
		r.refer(kindValue, enum, v.Name)
	case *syntax.ListSetting:
		for _, elem := range v.Elems {
			r.value(enum, elem)
		}
	}
}

func (r *referrer) typeRef(t *syntax.TypeRef) {
	if t == nil {
		return
	}
	if s, ok := r.named(t.Name.Name); ok {
		r.refer(s.kind, "", t.Name)
	}
}

func (r *referrer) entity(decl *syntax.EntityDecl) {
	name := decl.Name.Name
	r.fields(name, decl.Fields)
	for _, attr := range decl.Attrs {
		for _, c := range attr.Columns {
			r.refer(kindField, name, c.Name)
		}
	}
	for _, p := range decl.Policies {
		for _, k := range p.To {
			if k.Scope != nil {
				r.refer(kindScope, "", *k.Scope)
			}
		}
		r.rule(p.When, rows{row: name})
	}
}

func (r *referrer) apiKeys(decl *syntax.APIKeysDecl) {
	for _, block := range decl.Blocks {
		for _, scope := range block.Scopes {
			for _, g := range scope.Grants {
				r.refer(kindEntity, "", g.Entities...)
				for _, e := range g.Entities {
					for _, f := range g.Fields {
						if r.field(e.Name, f.Name) != nil {
							r.refer(kindField, e.Name, f)
						}
					}
					r.rule(g.Where, rows{row: e.Name})
				}
			}
			for _, rule := range slices.Concat(scope.Issues, scope.Manages) {
				r.rule(rule.When, rows{})
			}
		}
	}
}

func (r *referrer) function(f *syntax.FunctionDecl) {
	r.fields(f.Name.Name, f.Params)
	r.typeRef(f.Result)
	r.settings(f.Settings)
	if f.Settings == nil {
		return
	}
	for _, s := range f.Settings.List {
		if s.Concurrency == nil || s.Concurrency.By == nil {
			continue
		}
		if by := *s.Concurrency.By; r.declared[symbol{kindParam, f.Name.Name, by.Name}] != nil {
			r.refer(kindParam, f.Name.Name, by)
		}
	}
}

func (r *referrer) routes(g *syntax.RoutesDecl) {
	r.settings(g.Settings)
	for _, item := range g.Items {
		switch item := item.(type) {
		case *syntax.RoutesDecl:
			r.routes(item)
		case *syntax.AssetsDecl:
			r.settings(item.Settings)
		case *syntax.RouteDecl:
			if f := item.File; f != nil {
				r.refer(kindEntity, "", f.Entity)
				r.refer(kindField, f.Entity.Name, f.Field)
			} else {
				r.refer(kindHandler, "", item.Handler)
			}
			r.typeRef(item.Result)
			r.settings(item.Settings)
		}
	}
}

func (r *referrer) settings(list *syntax.RouteSettings) {
	if list == nil {
		return
	}
	for _, s := range list.List {
		switch {
		case s.Auth != nil:
			r.mode(s.Auth)
		case s.Ref != nil && s.Name.Name == "as":
			r.refer(kindScope, "", *s.Ref)
		case s.Ref != nil:
			r.refer(kindType, "", *s.Ref)
		case s.Verify != nil:
			r.refer(kindSecret, "", s.Verify.Secret)
		}
	}
}

func (r *referrer) mode(m *syntax.AuthMode) {
	switch m.Kind.Name {
	case "session":
		r.refer(kindRole, "", m.Names...)
	case "apiKey":
		r.refer(kindScope, "", m.Names...)
	}
	for _, mode := range m.Modes {
		r.mode(mode)
	}
}
