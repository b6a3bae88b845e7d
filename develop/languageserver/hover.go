package languageserver

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.lsp.dev/protocol"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

// Hover implements protocol.Server: what the name, setting or attribute at a place means.
func (s *Server) Hover(_ context.Context, params *protocol.HoverParams) (*protocol.Hover, error) {
	snap, f := s.located(params.TextDocument)
	if f == nil {
		return nil, nil
	}
	offset := f.offset(params.Position)
	shown := func(text string, span diag.Span) (*protocol.Hover, error) {
		r := f.of(span)
		return &protocol.Hover{Contents: &protocol.MarkupContent{Kind: protocol.MarkupKindMarkdown, Value: text}, Range: &r}, nil
	}
	if r, ok := snap.index.at(f, offset); ok {
		if text := s.describe(snap, r, offset); text != "" {
			return shown(text, r.span)
		}
		return nil, nil
	}
	for _, e := range snap.index.endpoints {
		if e.file != f || offset < e.whole.Start.Offset || offset > e.whole.End.Offset {
			continue
		}
		if e.own == nil || offset < e.own.Loc.Start.Offset || offset > e.own.Loc.End.Offset {
			return shown(s.describeEndpoint(snap, e), e.whole)
		}
	}
	if t, text := f.word(offset); text != "" {
		return shown(text, t.Loc)
	}
	return nil, nil
}

// tokenAt returns the index of the token that an offset is in or at the end of, -1 if there is none.
func (f *file) tokenAt(offset int) int {
	tokens := f.tree.Tokens
	n, _ := slices.BinarySearchFunc(tokens, offset, func(t syntax.Token, offset int) int {
		if t.Loc.End.Offset < offset {
			return -1
		}
		return 1
	})
	if n < len(tokens) && tokens[n].Loc.Start.Offset <= offset {
		return n
	}
	return -1
}

// word explains a word of the grammar.
func (f *file) word(offset int) (t syntax.Token, text string) {
	n := f.tokenAt(offset)
	if n < 0 {
		return t, ""
	}
	t = f.tree.Tokens[n]
	name, setting := strings.TrimLeft(t.Text, "@"), n+1 < len(f.tree.Tokens) && f.tree.Tokens[n+1].Text == ":"
	switch {
	case strings.HasPrefix(t.Text, "@@") && entityAttrs[name] != "":
		return t, code(t.Text) + "\n\n" + entityAttrs[name]
	case strings.HasPrefix(t.Text, "@") && fieldAttrs[name] != "":
		return t, code(t.Text) + "\n\n" + fieldAttrs[name]
	case strings.HasPrefix(t.Text, "@") && scopeAttrs[name] != "":
		return t, code(t.Text) + "\n\n" + scopeAttrs[name]
	case setting:
		known, ok := routeSettings[name]
		if !ok {
			known, ok = jobSettings[name]
		}
		if ok {
			return t, code(name) + "\n\n" + known.about + "\n\nDefault: " + known.standard
		}
	case t.Loc.Start.Col == 1 && declarations[name] != "":
		return t, code(name) + "\n\n" + declarations[name]
	}
	return t, ""
}

// code is a line of the schema language.
func code(text string) string { return "```schema\n" + text + "\n```" }

// describe explains a name.
func (s *Server) describe(snap *snapshot, r ref, offset int) string {
	if r.kind == kindHandler {
		for _, e := range snap.index.endpoints {
			if e.file == r.file && e.whole.Start.Offset <= offset && offset <= e.whole.End.Offset {
				return s.describeEndpoint(snap, e)
			}
		}
		return ""
	}
	d := snap.index.declared[r.symbol]
	if d == nil {
		return ""
	}
	var more []string
	head := string(d.kind) + " " + d.name
	switch node := d.node.(type) {
	case *syntax.FieldDecl:
		head = d.owner + "." + oneLine(d.file.slice(d.whole))
	case *syntax.EntityDecl:
		more = append(more, d.file.shape(d.name, node.Fields), snap.access(node))
	case *syntax.TypeDecl:
		more = append(more, d.file.shape(d.name, node.Fields))
	case *syntax.EnumDecl:
		head = oneLine(d.file.slice(d.whole))
	case *syntax.VarDecl, *syntax.SecretDecl, *syntax.AppDecl:
		head = oneLine(d.file.slice(d.whole))
	case *syntax.ScopeDecl:
		head = oneLine(d.file.slice(d.whole))
		more = append(more, snap.usesOf(d.name))
	case *enumValue:
		head = "value " + d.name + " of " + d.owner
	}
	parts := []string{code(head)}
	for _, part := range append([]string{d.doc}, more...) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n\n")
}

// maxShown is the length of the longest source that is shown on one line, in bytes.
const maxShown = 400

func relative(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + " …"
	}
	return text
}

// shape lists fields.
func (f *file) shape(name string, fields []*syntax.FieldDecl) string {
	var lines []string
	for _, field := range fields {
		lines = append(lines, "  "+oneLine(f.slice(field.Loc)))
	}
	return code(name + " {\n" + strings.Join(lines, "\n") + "\n}")
}

// access says who may do what on the rows of an entity.
func (s *snapshot) access(e *syntax.EntityDecl) string {
	f := s.named(e.Loc.File)
	var lines []string
	add := func(who string, verb string, actions []syntax.Ident, rule string) {
		var words []string
		for _, a := range actions {
			words = append(words, a.Name)
		}
		line := "- " + who + " " + verb + " " + strings.Join(words, ", ")
		if rule != "" {
			line += " when `" + rule + "`"
		}
		lines = append(lines, line)
	}
	for _, p := range e.Policies {
		who, verb, rule := "any caller", "may", ""
		if len(p.To) > 0 {
			var kinds []string
			for _, k := range p.To {
				kinds = append(kinds, "`"+oneLine(f.slice(k.Loc))+"`")
			}
			who = strings.Join(kinds, ", ")
		}
		if p.Effect.Name == "deny" {
			verb = "may not"
		}
		if p.When != nil {
			rule = oneLine(f.slice(p.When.Span()))
		}
		add(who, verb, p.Actions, rule)
	}
	for _, d := range s.index.order {
		scope, ok := d.node.(*syntax.ScopeDecl)
		if !ok {
			continue
		}
		for _, g := range scope.Grants {
			if !slices.ContainsFunc(g.Entities, func(id syntax.Ident) bool { return id.Name == e.Name.Name }) {
				continue
			}
			rule := ""
			if g.Where != nil {
				rule = oneLine(d.file.slice(g.Where.Span()))
			}
			add("`apiKey("+d.name+")`", "may", g.Actions, rule)
		}
	}
	if len(lines) == 0 {
		return "No caller can access it: it has no `@@allow`, and no scope has a `@grant` on it."
	}
	return "Who may do what:\n" + strings.Join(lines, "\n")
}

// usesOf lists what accepts keys of a scope or acts under it.
func (s *snapshot) usesOf(scope string) string {
	var titles []string
	for _, e := range s.index.endpoints {
		auth, _ := e.setting("auth")
		as, _ := e.setting("as")
		if auth != nil && accepts(auth.Auth, scope) || as != nil && as.Ref != nil && as.Ref.Name == scope {
			titles = append(titles, "`"+e.title+"`")
		}
	}
	if len(titles) == 0 {
		return "No route and no job uses it."
	}
	shown := titles[:min(len(titles), 10)]
	text := "Used by " + strings.Join(shown, ", ")
	if more := len(titles) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// accepts reports whether keys of a scope are accepted.
func accepts(m *syntax.AuthMode, scope string) bool {
	if m == nil {
		return false
	}
	return m.Kind.Name == "apiKey" && slices.ContainsFunc(m.Names, func(id syntax.Ident) bool { return id.Name == scope }) ||
		slices.ContainsFunc(m.Modes, func(mode *syntax.AuthMode) bool { return accepts(mode, scope) })
}

// describeEndpoint explains a route, a function or a job with its effective settings.
func (s *Server) describeEndpoint(snap *snapshot, e *endpoint) string {
	head := e.title
	if e.what == "route" {
		head += " -> " + e.handler.Name
	}
	parts := []string{code(head)}
	if e.doc != "" {
		parts = append(parts, e.doc)
	}
	known, order := routeSettings, syntax.AllWords().RouteSettings
	if e.what == "job" {
		known, order = jobSettings, syntax.AllWords().JobSettings
	}
	var lines []string
	for _, name := range order {
		value, own := e.effective(name)
		from := ""
		switch {
		case value == "" && !slices.Contains([]string{"auth", "rateLimit", "timeout", "stream", "body", "retries", "backoff"}, name):
			continue
		case value == "" && name == "auth" && !e.exposed:
			continue
		case value == "":
			value, from = known[name].standard, " (default)"
		case !own:
			value, from = "`"+value+"`", " (of the group)"
		default:
			value = "`" + value + "`"
		}
		lines = append(lines, "- "+name+": "+value+from)
	}
	parts = append(parts, strings.Join(lines, "\n"))
	places := s.handlerPlaces(snap, e.handler.Name)
	if len(places) > 0 && !isSchema(pathOf(places[0].URI)) {
		parts = append(parts, fmt.Sprintf("Handler: %s:%d", relative(snap.dir, pathOf(places[0].URI)), places[0].Range.Start.Line+1))
	} else {
		parts = append(parts, "Handler: not found in handlers/")
	}
	return strings.Join(parts, "\n\n")
}
