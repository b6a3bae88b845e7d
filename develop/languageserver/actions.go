package languageserver

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

// CodeAction implements protocol.Server: fixes of diagnostics, and the stub of a handler.
func (s *Server) CodeAction(_ context.Context, params *protocol.CodeActionParams) ([]protocol.CommandOrCodeAction, error) {
	snap, f := s.located(params.TextDocument)
	only := params.Context.Only
	if f == nil || len(only) > 0 && !slices.Contains(only, protocol.CodeActionKindQuickFix) && !slices.Contains(only, "") {
		return nil, nil
	}
	all := []protocol.CommandOrCodeAction{}
	for _, d := range params.Context.Diagnostics {
		x := &fixer{server: s, snapshot: snap, file: f, diagnostic: d, start: f.offset(d.Range.Start), end: f.offset(d.Range.End)}
		x.end = max(x.end, x.start)
		if code, ok := d.Code.(protocol.String); ok {
			x.code = string(code)
		}
		if message, ok := d.Message.(protocol.String); ok {
			x.message = string(message)
		}
		x.find()
		all = append(all, x.actions...)
	}
	return append(all, s.stubs(snap, f, f.offset(params.Range.Start))...), nil
}

// fixer finds the fixes of a diagnostic.
type fixer struct {
	server *Server
	*snapshot
	file          *file
	diagnostic    protocol.Diagnostic
	code, message string
	start, end    int
	actions       []protocol.CommandOrCodeAction
}

// fix offers edits of one file.
func (x *fixer) fix(title string, f *file, edits ...protocol.TextEdit) {
	x.offer(title, map[uri.URI][]protocol.TextEdit{f.uri(): edits})
}

func (x *fixer) offer(title string, changes map[uri.URI][]protocol.TextEdit) {
	kind := protocol.CodeActionKindQuickFix
	x.actions = append(x.actions, &protocol.CodeAction{
		Title: title, Kind: &kind, Diagnostics: []protocol.Diagnostic{x.diagnostic},
		Edit: &protocol.WorkspaceEdit{Changes: changes},
	})
}

// replace offers another text for the place of the diagnostic.
func (x *fixer) replace(with string) {
	x.fix("Write "+with, x.file, x.file.edit(x.start, x.end, with))
}

func (x *fixer) text() string { return string(x.file.src[x.start:x.end]) }

var (
	didYouMean   = regexp.MustCompile(`\(did you mean (.+?)\?\)`)
	quotedText   = regexp.MustCompile(`"([^"]*)"`)
	listWritten  = regexp.MustCompile(`^a list is written (\S+)$`)
	quotesWanted = regexp.MustCompile(`(?:write it in quotes, |written in quotes in rules: )("[^"]*")`)
	nameWanted   = regexp.MustCompile(`is not a name: .* such as (\w+)$`)
	ruleWritten  = regexp.MustCompile(`^a role is a condition: write (@@.+)$`)
	addWanted    = regexp.MustCompile("(?:add|declare) `([^`]+)`")
	typeWanted   = regexp.MustCompile(`: write (\w+\(\d+\)), with the length`)
	missingName  = regexp.MustCompile(`apiKey\((\w+)\)|no scope named "(\w+)"|no scope of that name`)
	missingRole  = regexp.MustCompile(`^session\(([^)]+)\): no such role|^"([^"]+)" is not a role`)
	missingType  = regexp.MustCompile(`unknown (?:type|entity) "([A-Z]\w*)"|no type named "(\w+)"`)
	wordPattern  = regexp.MustCompile(`@*[A-Za-z_]\w*`)
)

// group returns the first group of a pattern that matches the message, "" if none does.
func (x *fixer) group(pattern *regexp.Regexp) string {
	m := pattern.FindStringSubmatch(x.message)
	for _, group := range m[min(len(m), 1):] {
		if group != "" {
			return group
		}
	}
	return ""
}

// find offers what the message says to write, and what the code needs.
func (x *fixer) find() {
	x.suggestions()
	if list := x.group(listWritten); list != "" {
		x.replace(list)
	}
	if quoted := x.group(quotesWanted); quoted != "" {
		x.replace(quoted)
	}
	if name := x.group(nameWanted); name != "" {
		x.replace(name)
	}
	if strings.Contains(x.message, "without quotes") {
		if name, err := strconv.Unquote(x.text()); err == nil {
			x.replace(name)
		}
	}
	if rule := x.group(ruleWritten); rule != "" {
		if from := strings.LastIndex(string(x.file.src[:x.start]), "@@"); from >= 0 {
			x.fix("Write "+rule, x.file, x.file.edit(from, x.end, rule))
		}
	}
	if strings.Contains(x.message, "(entity rules are written @@") {
		x.replace("@" + x.text())
	}
	if strings.Contains(x.message, "make it optional") {
		x.optional()
	}
	x.added()
	x.byCode()
}

// suggestions offers the words after "did you mean".
func (x *fixer) suggestions() {
	m := didYouMean.FindStringSubmatch(x.message)
	if m == nil {
		if x.code == "E105" {
			if mode := diag.Suggest(x.text(), syntax.AllWords().AuthModes); mode != "" {
				x.replace(mode)
			}
		}
		return
	}
	for _, quoted := range quotedText.FindAllStringSubmatch(m[1], -1) {
		if from, to, ok := x.wrongWord(quoted[1]); ok {
			x.fix("Change to "+quoted[1], x.file, x.file.edit(from, to, quoted[1]))
		}
	}
}

// wrongWord returns the offsets of the word that a suggestion replaces: the only one at the place of the
// diagnostic, or the one that is similar or quoted in the message.
func (x *fixer) wrongWord(suggestion string) (from, to int, ok bool) {
	text := x.text()
	if strings.Contains(suggestion, ".") { // auth.userId
		return x.start, x.end, true
	}
	words := wordPattern.FindAllStringIndex(text, -1)
	for _, w := range words {
		word := text[w[0]:w[1]]
		marks := len(word) - len(strings.TrimLeft(word, "@"))
		if strings.HasPrefix(suggestion, "@") {
			marks = 0
		}
		similar := diag.Suggest(word[marks:], []string{suggestion}) == suggestion
		if len(words) == 1 || similar && word[marks:] != suggestion {
			return x.start + w[0] + marks, x.start + w[1], true
		}
	}
	for _, w := range words {
		if strings.Contains(x.message, strconv.Quote(text[w[0]:w[1]])) {
			return x.start + w[0], x.start + w[1], true
		}
	}
	return 0, 0, false
}

// added offers the declaration that the message says to add.
func (x *fixer) added() {
	text := x.group(addWanted)
	switch word, _, _ := strings.Cut(text, " "); word {
	case "secret", "var", "auth":
		x.declare("Add "+text, text)
	case "session":
		if auth, f := x.auth(); auth != nil {
			x.inBody("Add "+text, f, auth.Loc, text)
		}
	case "id:":
		if e := x.entityAt(); e != nil {
			x.inBodyFirst("Add "+text, x.file, e.Loc, text)
		}
	}
}

// byCode offers what a diagnostic with that code needs.
func (x *fixer) byCode() {
	switch x.code {
	case "E400", "E500":
		x.addAuth()
	case "W416":
		for _, limit := range []string{"rateLimit: 60/minute by ip", "rateLimit: none"} {
			x.addSetting(limit)
		}
	case "E515":
		if strings.Contains(x.message, "add `as:") {
			for _, scope := range x.index.names(kindScope, "") {
				x.addSetting("as: " + scope)
			}
		}
	case "E410", "E413", "E242":
		if name := x.group(missingName); name != "" {
			x.addScope(name)
		}
	case "E411", "E237":
		if role := x.group(missingRole); role != "" {
			x.addRole(role)
		}
	case "E212", "E236", "E306", "E503":
		x.declareType()
	case "E222":
		if f := x.fieldAt(); f != nil && f.Type != nil && f.Type.Optional {
			end := f.Type.Loc.End.Offset
			x.fix("Make "+f.Name.Name+" required", x.file, x.file.edit(end-1, end, ""))
		}
	case "E245":
		x.optional()
	case "E228":
		if p := x.policyAt(); p != nil && len(p.Actions) > 0 {
			end := p.Actions[len(p.Actions)-1].Loc.End.Offset
			for _, to := range []string{" to session", " to anonymous"} {
				x.fix("Add"+to, x.file, x.file.edit(end, end, to))
			}
		}
	case "W227":
		if e := x.entityAt(); e != nil {
			x.inBody("Add @@allow read, write to session", x.file, e.Loc, "@@allow read, write to session")
		}
	case "W243":
		x.addIndex()
	case "E220":
		x.addInverse()
	case "E247":
		if f := x.fieldAt(); f != nil && f.Type != nil {
			if typ := x.group(typeWanted); typ != "" {
				x.fix("Write "+typ, x.file, x.file.edit(f.Type.Name.Loc.Start.Offset, f.Type.Name.Loc.End.Offset, typ))
			}
		}
	case "E401":
		x.prefix(func(path string) string { return "/" + path })
	case "E403":
		x.prefix(func(path string) string { return strings.TrimRight(path, "/") })
	case "E202", "W202":
		x.fixCase()
	}
}

// prefix offers a changed path or prefix.
func (x *fixer) prefix(change func(string) string) {
	text := x.text()
	if path, err := strconv.Unquote(text); err == nil {
		x.replace(strconv.Quote(change(path)))
	} else {
		x.replace(change(text))
	}
}

func (x *fixer) fixCase() {
	r, ok := x.index.at(x.file, x.start)
	if !ok || r.name == "" {
		return
	}
	first, rest := r.name[:1], r.name[1:]
	name := strings.ToUpper(first) + rest
	if r.kind == kindField {
		name = strings.ToLower(first) + rest
	}
	x.offer("Rename to "+name, x.server.renameEdits(x.snapshot, r, name))
}

// ---- settings ----

// endpointAt returns the route, function or job of the diagnostic, or nil.
func (x *fixer) endpointAt() *endpoint {
	for _, e := range x.index.endpoints {
		if e.file == x.file && e.whole.Start.Offset <= x.start && x.start <= e.whole.End.Offset {
			return e
		}
	}
	return nil
}

// settingEdit returns the edit that adds a setting to a list. The list is nil if the parentheses are missing.
func (f *file) settingEdit(list *syntax.RouteSettings, end int, setting string) protocol.TextEdit {
	if list == nil || f.src[list.Loc.End.Offset-1] != ')' {
		return f.edit(end, end, " ("+setting+")")
	}
	end = list.Loc.End.Offset - 1
	before := strings.TrimRight(string(f.src[:end]), " \t\n")
	switch {
	case strings.HasSuffix(before, "("):
	case strings.HasSuffix(before, ","):
		setting = " " + setting
	default:
		setting = ", " + setting
	}
	return f.edit(len(before), len(before), setting)
}

func (x *fixer) addSetting(setting string) {
	if e := x.endpointAt(); e != nil {
		x.fix("Add "+setting, x.file, x.file.settingEdit(e.own, e.end, setting))
	}
}

// maxModes is the number of scopes that are offered for a route.
const maxModes = 5

func (x *fixer) addAuth() {
	e := x.endpointAt()
	if e == nil {
		return
	}
	var modes []string
	if auth, _ := x.auth(); auth != nil && len(auth.Sessions) > 0 {
		modes = append(modes, "session")
	}
	for _, scope := range x.index.names(kindScope, "") {
		if len(modes) < maxModes {
			modes = append(modes, "apiKey("+scope+")")
		}
	}
	modes = append(modes, "none")
	for _, mode := range modes {
		x.addSetting("auth: " + mode)
	}
	if e.group == nil || e.group.Prefix == nil {
		return
	}
	for _, mode := range modes {
		x.fix("Add auth: "+mode+" to the group "+e.group.Prefix.Raw, x.file, x.file.settingEdit(e.group.Settings, e.group.Settings.Loc.End.Offset, "auth: "+mode))
	}
}

// ---- declarations ----

// auth returns the auth block with its file, or nil.
func (x *fixer) auth() (*syntax.AuthDecl, *file) {
	for _, f := range x.files {
		for _, d := range f.tree.Decls {
			if auth, ok := d.(*syntax.AuthDecl); ok {
				return auth, f
			}
		}
	}
	return nil, nil
}

// declAt returns the declaration that the diagnostic is in, or nil.
func (x *fixer) declAt() syntax.Decl {
	for _, d := range x.file.tree.Decls {
		if d.Span().Start.Offset <= x.start && x.start <= d.Span().End.Offset {
			return d
		}
	}
	return nil
}

// declare offers a declaration before the one that the diagnostic is in.
func (x *fixer) declare(title, text string) {
	at := 0
	if d := x.declAt(); d != nil {
		at = x.file.beforeDoc(d.Span().Start.Offset)
	}
	x.fix(title, x.file, x.file.edit(at, at, text+"\n\n"))
}

// beforeDoc returns the offset of the comments above a declaration.
func (f *file) beforeDoc(offset int) int {
	for i := len(f.tree.Comments) - 1; i >= 0; i-- {
		c := f.tree.Comments[i]
		if c.Loc.End.Offset <= offset && c.OwnLine && strings.Trim(string(f.src[c.Loc.End.Offset:offset]), " \t\n") == "" &&
			strings.Count(string(f.src[c.Loc.End.Offset:offset]), "\n") == 1 {
			offset = c.Loc.Start.Offset
		}
	}
	return offset
}

func (x *fixer) declareType() {
	name := x.group(missingType)
	if name == "" || syntax.IsName(name) && !(name[0] >= 'A' && name[0] <= 'Z') {
		return
	}
	if x.code != "E503" {
		x.declare("Declare entity "+name, "entity "+name+" {\n  id: id\n}")
	}
	if x.code == "E503" || x.code == "E212" {
		x.declare("Declare type "+name, "type "+name+" {\n}")
	}
}

// inBody offers a line at the end of a block.
func (x *fixer) inBody(title string, f *file, block diag.Span, line string) {
	end := block.End.Offset - 1
	if end < 0 || f.src[end] != '}' {
		return
	}
	text := strings.TrimRight(string(f.src[:end]), " \t")
	if strings.HasSuffix(text, "\n") {
		x.fix(title, f, f.edit(len(text), len(text), f.indent(block)+line+"\n"))
	} else {
		x.fix(title, f, f.edit(end, end, line+" "))
	}
}

// inBodyFirst offers a line at the beginning of a block.
func (x *fixer) inBodyFirst(title string, f *file, block diag.Span, line string) {
	open := strings.IndexByte(f.slice(block), '{')
	if open < 0 {
		return
	}
	at := block.Start.Offset + open + 1
	if rest := string(f.src[at:]); strings.HasPrefix(strings.TrimLeft(rest, " \t"), "\n") {
		x.fix(title, f, f.edit(at, at, "\n"+f.indent(block)+line))
	} else {
		x.fix(title, f, f.edit(at, at, " "+line))
	}
}

// indent is the space before the lines of a block.
func (f *file) indent(block diag.Span) string {
	line := string(f.line(block.Start.Line - 1))
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))] + "  "
}

// entityAt returns the entity that the diagnostic is in, or nil.
func (x *fixer) entityAt() *syntax.EntityDecl {
	e, _ := x.declAt().(*syntax.EntityDecl)
	return e
}

// fieldAt returns the field of the diagnostic, or nil.
func (x *fixer) fieldAt() *syntax.FieldDecl {
	for _, d := range x.index.order {
		if f, ok := d.node.(*syntax.FieldDecl); ok && d.file == x.file && f.Loc.Start.Offset <= x.start && x.start <= f.Loc.End.Offset {
			return f
		}
	}
	return nil
}

func (x *fixer) policyAt() *syntax.PolicyDecl {
	if e := x.entityAt(); e != nil {
		for _, p := range e.Policies {
			if p.Loc.Start.Offset <= x.start && x.start <= p.Loc.End.Offset {
				return p
			}
		}
	}
	return nil
}

// optional offers to make the field of the diagnostic optional.
func (x *fixer) optional() {
	if f := x.fieldAt(); f != nil && f.Type != nil && !f.Type.Optional {
		end := f.Type.Loc.End.Offset
		x.fix("Make "+f.Name.Name+" optional", x.file, x.file.edit(end, end, "?"))
	}
}

func (x *fixer) addInverse() {
	f, e := x.fieldAt(), x.entityAt()
	if f == nil || e == nil || f.Type == nil {
		return
	}
	for _, name := range x.index.names(kindField, f.Type.Name.Name) {
		if x.index.target(f.Type.Name.Name, name) == e.Name.Name {
			end := f.Type.Loc.End.Offset
			x.fix("Add @inverse("+name+")", x.file, x.file.edit(end, end, " @inverse("+name+")"))
		}
	}
}

// addScope offers a scope in the apiKeys block, or the block with it.
func (x *fixer) addScope(name string) {
	title, scope := "Add the scope "+name, name+`: @system("`+name+`") { }`
	for _, f := range x.files {
		for _, d := range f.tree.Decls {
			keys, ok := d.(*syntax.APIKeysDecl)
			if !ok {
				continue
			}
			if len(keys.Blocks) == 0 {
				x.inBody(title, f, keys.Loc, "scopes: {\n    "+scope+"\n  }")
				return
			}
			block := keys.Blocks[0]
			if len(block.Scopes) == 0 {
				x.inBody(title, f, block.Loc, scope)
				return
			}
			last := block.Scopes[len(block.Scopes)-1].Loc
			end, before := last.End.Offset, ","
			if rest := strings.TrimLeft(string(f.src[end:]), " \t\n"); strings.HasPrefix(rest, ",") {
				end, before = len(f.src)-len(rest)+1, ""
			}
			x.fix(title, f, f.edit(end, end, before+"\n"+strings.TrimSuffix(f.indent(last), "  ")+scope))
			return
		}
	}
	x.declare(title, "apiKeys {\n  scopes: {\n    "+scope+"\n  }\n}")
}

// addRole offers a role in the auth block.
func (x *fixer) addRole(name string) {
	title, written := "Add the role "+name, name
	if !syntax.IsName(name) {
		written = strconv.Quote(name)
	}
	auth, f := x.auth()
	if auth == nil {
		x.declare(title, "auth {\n  roles: ["+written+"]\n}")
		return
	}
	for _, s := range auth.Settings {
		list, ok := s.Value.(*syntax.ListSetting)
		if s.Name.Name != "roles" || !ok {
			continue
		}
		if len(list.Elems) > 0 {
			end := list.Elems[len(list.Elems)-1].Span().End.Offset
			x.fix(title, f, f.edit(end, end, ", "+written))
		}
		return
	}
	x.inBody(title, f, auth.Loc, "roles: ["+written+"]")
}

// addIndex offers the index that serves an exists.
func (x *fixer) addIndex() {
	e := x.existsAt()
	if e == nil {
		return
	}
	d := x.index.declared[symbol{kind: kindEntity, name: e.Entity.Name}]
	if d == nil {
		return
	}
	var fields []string
	for _, name := range equalFields(e.Where) {
		if x.index.field(d.name, name) != nil && !slices.Contains(fields, name) {
			fields = append(fields, name)
		}
	}
	if len(fields) > 0 {
		index := fmt.Sprintf("@@index(%s)", strings.Join(fields, ", "))
		x.inBody("Add "+index+" to "+d.name, d.file, d.whole, index)
	}
}

// existsAt returns the exists of the diagnostic, or nil.
func (x *fixer) existsAt() (found *syntax.ExistsExpr) {
	look := func(e syntax.Expr) {
		if inner := existsIn(e, x.start); inner != nil {
			found = inner
		}
	}
	for _, d := range x.file.tree.Decls {
		switch d := d.(type) {
		case *syntax.EntityDecl:
			for _, p := range d.Policies {
				look(p.When)
			}
		case *syntax.APIKeysDecl:
			for _, block := range d.Blocks {
				for _, scope := range block.Scopes {
					for _, g := range scope.Grants {
						look(g.Where)
					}
				}
			}
		}
	}
	return found
}

func existsIn(e syntax.Expr, offset int) *syntax.ExistsExpr {
	switch e := e.(type) {
	case *syntax.ExistsExpr:
		if e.Loc.Start.Offset == offset {
			return e
		}
	case *syntax.ParenExpr:
		return existsIn(e.X, offset)
	case *syntax.NotExpr:
		return existsIn(e.X, offset)
	case *syntax.BinaryExpr:
		if found := existsIn(e.X, offset); found != nil {
			return found
		}
		return existsIn(e.Y, offset)
	}
	return nil
}

// equalFields are the names that a rule requires to be equal to something.
func equalFields(e syntax.Expr) []string {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return equalFields(e.X)
	case *syntax.BinaryExpr:
		if e.Op == syntax.OpAnd {
			return append(equalFields(e.X), equalFields(e.Y)...)
		}
		if e.Op != syntax.OpEqual {
			return nil
		}
		var names []string
		for _, side := range []syntax.Expr{e.X, e.Y} {
			if name, ok := side.(*syntax.NameExpr); ok && len(name.Parts) == 1 {
				names = append(names, name.Parts[0].Name)
			}
		}
		return names
	}
	return nil
}
