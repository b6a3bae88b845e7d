package format

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

// Format returns the text of src in canonical form: the same declarations and comments in
// the same order, indented by two spaces, with the arrows of neighbouring routes aligned.
// It keeps deliberate line breaks: blank lines (at most one), lists and small blocks that
// are broken after the opening bracket, and rules that are broken at `and`, `or`, `to`,
// `when`, `where` and `fields`. Formatting is idempotent. If src has errors, the result is
// nil and the list has them.
func Format(src diag.Source) ([]byte, diag.List) {
	file, diags := syntax.Parse(src)
	if len(diags) > 0 {
		return nil, diags
	}
	p := &printer{tokens: file.Tokens, comments: file.Comments, closers: closers(file.Tokens)}
	p.file(file)
	if p.out.Len() > syntax.MaxFileBytes {
		top := diag.Pos{Line: 1, Col: 1}
		diags.Errorf("E007", diag.Span{File: src.Name, Start: top, End: top}, "the formatted file would be larger than 1 MiB")
		return nil, diags
	}
	return p.out.Bytes(), nil
}

// gap is the whitespace before the next token.
type gap int

const (
	gapNone  gap = iota
	gapSpace     // printer.spaces spaces
	gapLine      // a new line of a block
	gapWrap      // a new line inside an item, indented one level more
)

// printer walks the tree and writes it token by token. It follows the tokens of the source
// in step, except commas, which are optional. So each comment is written between the same
// two tokens as in the source.
type printer struct {
	out      bytes.Buffer
	tokens   []syntax.Token
	closers  map[int]int // opening bracket → closing bracket, as indices of tokens
	comments []syntax.Comment
	done     int // tokens written
	indent   int
	gap      gap
	spaces   int
	// srcLine is the source line on which the last token or comment written ended.
	srcLine int
	// opened reports that the last token written opened a block, so no blank line follows.
	opened bool
	// apart reports that a blank line precedes the next line.
	apart bool
}

func closers(tokens []syntax.Token) map[int]int {
	pairs := make(map[int]int)
	var open []int
	for i, t := range tokens {
		switch {
		case t.Text == "{", t.Text == "(", t.Text == "[":
			open = append(open, i)
		case t.Text == "}", t.Text == ")", t.Text == "]":
			pairs[open[len(open)-1]] = i
			open = open[:len(open)-1]
		}
	}
	return pairs
}

// ---- writing ----

// emit writes the next token. It must be the next token of the source, or another spelling
// of it.
func (p *printer) emit(text string) {
	t := p.tokens[p.done]
	if text != t.Text && !(text == string(syntax.OpOr) && t.Text == "||" ||
		text == string(syntax.OpAnd) && t.Text == "&&" || text == "not" && t.Text == "!") {
		panic("BUG: printing " + text + " where the source has " + t.Text)
	}
	p.flushComments(t.Loc.Start.Offset)
	p.writeGap(t.Loc.Start.Line)
	p.out.WriteString(text)
	p.srcLine = t.Loc.End.Line
	p.done++
}

// comma writes a comma, which the source may not have.
func (p *printer) comma() { p.out.WriteByte(',') }

func (p *printer) space() { p.pad(1) }

func (p *printer) pad(n int) { p.gap, p.spaces = gapSpace, n }

func (p *printer) line() { p.gap = gapLine }

// wrap breaks the line before the next token if the source has a line break there or, with
// later, after that token.
func (p *printer) wrap(later bool) {
	p.space()
	next := p.tokens[p.done]
	broken := next.Loc.Start.Line > p.tokens[p.done-1].Loc.End.Line
	if later {
		broken = broken || p.tokens[p.done+1].Loc.Start.Line > next.Loc.End.Line
	}
	if broken {
		p.gap = gapWrap
	}
}

// writeGap writes the gap before a token or comment that is on line srcLine of the source.
func (p *printer) writeGap(srcLine int) {
	switch p.gap {
	case gapSpace:
		for range p.spaces {
			p.out.WriteByte(' ')
		}
	case gapLine, gapWrap:
		if p.out.Len() > 0 {
			p.out.WriteByte('\n')
			if p.apart || !p.opened && srcLine > p.srcLine+1 {
				p.out.WriteByte('\n')
			}
		}
		depth := p.indent
		if p.gap == gapWrap {
			depth++
		}
		for range depth {
			p.out.WriteString("  ")
		}
		p.apart = false
	}
	p.gap, p.opened = gapNone, false
}

// flushComments writes the comments that begin before offset.
func (p *printer) flushComments(offset int) {
	due := p.gap
	for len(p.comments) > 0 && p.comments[0].Loc.Start.Offset < offset {
		c := p.comments[0]
		p.comments = p.comments[1:]
		switch {
		case c.OwnLine:
			p.gap = newLine(due)
			p.writeGap(c.Loc.Start.Line)
		case p.out.Len() > 0:
			p.out.WriteByte(' ')
		}
		p.out.WriteString(c.Text)
		p.srcLine = c.Loc.End.Line
		p.gapAfter(c, due)
	}
}

// newLine is the gap to use instead of due if the line must end.
func newLine(due gap) gap {
	if due == gapLine {
		return gapLine
	}
	return gapWrap
}

// gapAfter sets the gap after a comment that was written when due was the pending gap.
func (p *printer) gapAfter(c syntax.Comment, due gap) {
	continues := p.done < len(p.tokens) && p.tokens[p.done].Loc.Start.Line == c.Loc.End.Line
	switch {
	case strings.HasPrefix(c.Text, "//"), c.OwnLine && !continues:
		p.gap = newLine(due)
	case c.OwnLine, due == gapNone:
		p.space()
	default:
		p.gap = due
	}
}

// open writes an opening bracket. It reports whether the contents are on lines of their
// own, because the source has a line break there or a comment that needs one.
func (p *printer) open(bracket string, always bool) (lines bool) {
	at := p.done
	p.emit(bracket)
	end := p.closers[at]
	from, to := p.tokens[at].Loc, p.tokens[end].Loc
	noted := false
	for _, c := range p.comments {
		if c.Loc.Start.Offset > to.Start.Offset {
			break
		}
		noted = noted || c.OwnLine || strings.HasPrefix(c.Text, "//")
	}
	empty := end == at+1
	lines = noted || !empty && (always || p.tokens[at+1].Loc.Start.Line > from.End.Line)
	if lines {
		p.indent++
		p.opened = true
		p.line()
	}
	return lines
}

// close writes the bracket that closes open's.
func (p *printer) close(bracket string, lines bool) {
	if lines {
		p.line()
		p.flushComments(p.tokens[p.done].Loc.Start.Offset)
		p.indent--
		p.opened = true // no blank line before it
		p.line()
	}
	p.emit(bracket)
}

// block writes `{ items }` with n items. sep follows each item but the last on one line,
// sepLines on separate lines.
func (p *printer) block(n int, always bool, sep, sepLines string, item func(i int)) {
	p.space()
	lines := p.open("{", always)
	if !lines && n > 0 {
		p.space()
	}
	for i := range n {
		item(i)
		switch {
		case lines:
			if i < n-1 {
				p.out.WriteString(sepLines)
			}
			p.line()
		default:
			if i < n-1 {
				p.out.WriteString(sep)
			}
			p.space()
		}
	}
	p.close("}", lines)
}

// list writes elements separated by commas between brackets.
func (p *printer) list(open, closer string, n int, elem func(i int)) {
	lines := p.open(open, false)
	for i := range n {
		if i > 0 {
			p.comma()
			p.space()
			if lines {
				p.line()
			}
		}
		elem(i)
	}
	p.close(closer, lines)
}

// ---- declarations ----

func (p *printer) file(f *syntax.File) {
	for i, d := range f.Decls {
		p.line()
		p.decl(d)
		p.apart = i < len(f.Decls)-1 && bytes.HasSuffix(p.out.Bytes(), []byte("\n}"))
	}
	p.line()
	p.flushComments(f.Size + 1)
	if p.out.Len() > 0 {
		p.out.WriteByte('\n')
	}
}

func (p *printer) decl(d syntax.Decl) {
	switch d := d.(type) {
	case *syntax.AppDecl:
		p.emit("app")
		p.spaced(d.Name.Name)
	case *syntax.SecretDecl:
		p.emit("secret")
		p.spaced(d.Name.Name)
	case *syntax.VarDecl:
		p.variable(d)
	case *syntax.OutboundDecl:
		p.emit("outbound")
		p.block(len(d.Settings), false, ",", "", func(i int) { p.setting(d.Settings[i]) })
	case *syntax.ModuleDecl:
		p.emit("module")
		p.space()
		if d.Quoted != nil {
			p.literal(d.Quoted)
		} else {
			p.emit(d.Name.Name)
		}
		p.block(len(d.Settings), false, ",", "", func(i int) { p.setting(d.Settings[i]) })
	case *syntax.PythonDecl:
		p.emit("python")
		p.block(len(d.Settings), false, ",", "", func(i int) { p.setting(d.Settings[i]) })
	case *syntax.AuthDecl:
		p.auth(d)
	case *syntax.EnumDecl:
		p.emit("enum")
		p.spaced(d.Name.Name)
		p.block(len(d.Values), false, ",", ",", func(i int) {
			p.emit(d.Values[i].Name)
			p.attrs(d.Attrs[i])
		})
	case *syntax.TypeDecl:
		p.emit("type")
		p.spaced(d.Name.Name)
		p.block(len(d.Fields), false, ",", "", func(i int) { p.field(d.Fields[i]) })
	case *syntax.EntityDecl:
		p.entity(d)
	case *syntax.APIKeysDecl:
		p.apiKeys(d)
	case *syntax.FunctionsDecl:
		p.emit("functions")
		if d.Settings != nil {
			p.settings(d.Settings)
		}
		p.block(len(d.Functions), true, "", "", func(i int) { p.function(d.Functions[i]) })
	case *syntax.JobsDecl:
		p.emit("jobs")
		if d.Settings != nil {
			p.settings(d.Settings)
		}
		p.block(len(d.Jobs), true, "", "", func(i int) { p.function(d.Jobs[i]) })
	case *syntax.RoutesDecl:
		p.routes(d)
	case *syntax.AssetsDecl:
		p.assets(d)
	}
}

// spaced writes a token with one space before it.
func (p *printer) spaced(text string) {
	p.space()
	p.emit(text)
}

// part is an item of a block whose items are in several lists of the tree.
type part struct {
	start int
	print func()
}

// inOrder sorts parts by their order in the source.
func inOrder(parts []part) []part {
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.start, b.start) })
	return parts
}

func (p *printer) auth(d *syntax.AuthDecl) {
	var parts []part
	for _, s := range d.Sessions {
		parts = append(parts, part{s.Loc.Start.Offset, func() { p.session(s) }})
	}
	for _, s := range d.Settings {
		parts = append(parts, part{s.Loc.Start.Offset, func() { p.setting(s) }})
	}
	p.emit("auth")
	inOrder(parts)
	p.block(len(parts), true, "", "", func(i int) { parts[i].print() })
}

func (p *printer) session(d *syntax.SessionDecl) {
	p.emit("session")
	p.spaced(d.Kind.Name)
	if d.Cookie != nil {
		p.list("(", ")", 1, func(int) { p.literal(d.Cookie) })
	}
	var parts []part
	for _, s := range d.Settings {
		parts = append(parts, part{s.Loc.Start.Offset, func() { p.setting(s) }})
	}
	for _, m := range d.Manages {
		parts = append(parts, part{m.Loc.Start.Offset, func() { p.callerRule(m) }})
	}
	inOrder(parts)
	p.block(len(parts), false, ",", ",", func(i int) { parts[i].print() })
}

func (p *printer) callerRule(d *syntax.CallerRuleDecl) {
	p.emit("@" + d.Word)
	p.rule("when", d.When)
}

func (p *printer) setting(s *syntax.Setting) {
	p.emit(s.Name.Name)
	p.emit(":")
	p.space()
	p.value(s.Value)
}

func (p *printer) value(v syntax.SettingValue) {
	switch v := v.(type) {
	case *syntax.Literal:
		p.literal(v)
	case *syntax.ListSetting:
		p.list("[", "]", len(v.Elems), func(i int) { p.value(v.Elems[i]) })
	case *syntax.MapSetting:
		p.block(len(v.Entries), false, ",", "", func(i int) { p.setting(v.Entries[i]) })
	case *syntax.NameSetting:
		p.emit(v.Name.Name)
		if v.Call {
			p.list("(", ")", len(v.Args), func(i int) { p.value(v.Args[i]) })
		}
	}
}

func (p *printer) variable(d *syntax.VarDecl) {
	p.emit("var")
	p.spaced(d.Name.Name)
	p.emit(":")
	p.space()
	p.emit(d.Type.Name)
	switch {
	case d.Rate != nil:
		p.spaced("=")
		p.space()
		p.rate(d.Rate)
	case d.Default != nil:
		p.spaced("=")
		p.space()
		p.literal(d.Default)
	}
}

func (p *printer) literal(l *syntax.Literal) {
	raw := l.Raw
	if strings.HasPrefix(raw, "-") {
		p.emit("-")
		raw = raw[1:]
	}
	p.emit(raw)
}

func (p *printer) field(f *syntax.FieldDecl) {
	p.emit(f.Name.Name)
	if f.Omits {
		p.emit("?")
	}
	p.emit(":")
	p.space()
	p.typeRef(f.Type)
	if f.Default != nil {
		p.spaced("=")
		p.space()
		p.value(f.Default)
	}
	p.attrs(f.Attrs)
}

func (p *printer) attrs(list []*syntax.FieldAttr) {
	for _, a := range list {
		p.wrap(false)
		p.emit("@" + a.Name.Name)
		switch {
		case a.Arg != nil:
			p.list("(", ")", 1, func(int) { p.literal(a.Arg) })
		case a.Ref != nil:
			p.list("(", ")", 1, func(int) { p.emit(a.Ref.Name) })
		}
	}
}

func (p *printer) typeRef(t *syntax.TypeRef) {
	if t.Before {
		p.emit("[")
		p.emit("]")
	}
	p.emit(t.Name.Name)
	if a := t.Args; a != nil {
		p.emit("(")
		if a.First != nil {
			p.literal(a.First)
		}
		for i, media := range a.Media {
			if i > 0 || a.First != nil {
				p.comma()
				p.space()
			}
			p.literal(media)
		}
		switch {
		case a.Range:
			p.emit("..")
			p.literal(a.Second)
		case a.Second != nil:
			p.comma()
			p.literal(a.Second)
		}
		p.emit(")")
	}
	if t.List && !t.Before {
		p.emit("[")
		p.emit("]")
	}
	if t.Optional {
		p.emit("?")
	}
}

func (p *printer) entity(d *syntax.EntityDecl) {
	var parts []part
	for _, f := range d.Fields {
		parts = append(parts, part{f.Loc.Start.Offset, func() { p.field(f) }})
	}
	for _, a := range d.Attrs {
		parts = append(parts, part{a.Loc.Start.Offset, func() { p.entityAttr(a) }})
	}
	for _, a := range d.Policies {
		parts = append(parts, part{a.Loc.Start.Offset, func() { p.policy(a) }})
	}
	p.emit("entity")
	p.spaced(d.Name.Name)
	p.attrs(d.NameAttrs)
	inOrder(parts)
	p.block(len(parts), true, "", "", func(i int) { parts[i].print() })
}

func (p *printer) entityAttr(a *syntax.EntityAttr) {
	p.emit("@@" + a.Name.Name)
	p.list("(", ")", len(a.Columns), func(i int) {
		p.emit(a.Columns[i].Name.Name)
		if o := a.Columns[i].Order; o != nil {
			p.spaced(o.Name)
		}
	})
	if a.Global != nil {
		p.spaced("global")
	}
}

// names writes names separated by commas, without brackets.
func (p *printer) names(names []syntax.Ident) {
	for i, n := range names {
		if i > 0 {
			p.comma()
		}
		p.spaced(n.Name)
	}
}

func (p *printer) policy(d *syntax.PolicyDecl) {
	p.emit("@@" + d.Effect.Name)
	p.names(d.Actions)
	if len(d.To) > 0 {
		p.wrap(false)
		p.emit("to")
	}
	for i, k := range d.To {
		if i > 0 {
			p.comma()
		}
		p.spaced(k.Name.Name)
		if k.Scope != nil {
			p.list("(", ")", 1, func(int) { p.emit(k.Scope.Name) })
		}
	}
	if d.When != nil {
		p.rule("when", d.When)
	}
}

// rule writes a word (when, where) and an expression.
func (p *printer) rule(word string, x syntax.Expr) {
	p.wrap(false)
	p.emit(word)
	p.space()
	p.expr(x)
}

func (p *printer) apiKeys(d *syntax.APIKeysDecl) {
	var parts []part
	for _, s := range d.Settings {
		parts = append(parts, part{s.Loc.Start.Offset, func() { p.setting(s) }})
	}
	for _, b := range d.Blocks {
		parts = append(parts, part{b.Loc.Start.Offset, func() {
			p.emit("scopes")
			p.emit(":")
			p.block(len(b.Scopes), true, "", ",", func(i int) { p.scope(b.Scopes[i]) })
		}})
	}
	p.emit("apiKeys")
	inOrder(parts)
	p.block(len(parts), true, "", ",", func(i int) { parts[i].print() })
}

func (p *printer) scope(s *syntax.ScopeDecl) {
	var parts []part
	for _, g := range s.Grants {
		parts = append(parts, part{g.Loc.Start.Offset, func() { p.grant(g) }})
	}
	for _, d := range slices.Concat(s.Issues, s.Manages) {
		parts = append(parts, part{d.Loc.Start.Offset, func() { p.callerRule(d) }})
	}
	for _, at := range s.AllTenants {
		parts = append(parts, part{at.Start.Offset, func() { p.emit("@allTenants") }})
	}
	p.emit(s.Name.Name)
	p.emit(":")
	p.spaced("@system")
	p.list("(", ")", 1, func(int) { p.literal(s.System) })
	inOrder(parts)
	p.block(len(parts), false, "", "", func(i int) { parts[i].print() })
}

func (p *printer) grant(g *syntax.GrantDecl) {
	p.emit("@grant")
	p.names(g.Actions)
	p.spaced("on")
	p.names(g.Entities)
	if g.HasFields {
		p.wrap(false)
		p.emit("fields")
		p.space()
		p.list("(", ")", len(g.Fields), func(i int) { p.emit(g.Fields[i].Name) })
	}
	if g.Where != nil {
		p.rule("where", g.Where)
	}
}

func (p *printer) function(f *syntax.FunctionDecl) {
	if f.Expose {
		p.emit("@expose")
		p.space()
	}
	p.emit(f.Name.Name)
	p.list("(", ")", len(f.Params), func(i int) { p.field(f.Params[i]) })
	if f.Result != nil {
		p.spaced("->")
		p.space()
		p.typeRef(f.Result)
	}
	if f.Settings != nil {
		p.space()
		p.settings(f.Settings)
	}
}

// ---- routes ----

// prefixed writes `("/prefix", settings)`.
func (p *printer) prefixed(prefix *syntax.Literal, settings *syntax.RouteSettings) {
	p.list("(", ")", 1+len(settings.List), func(i int) {
		if i == 0 {
			p.literal(prefix)
			return
		}
		p.routeSetting(settings.List[i-1])
	})
}

func (p *printer) assets(d *syntax.AssetsDecl) {
	p.emit("assets")
	p.prefixed(d.Prefix, d.Settings)
}

func (p *printer) routes(d *syntax.RoutesDecl) {
	p.emit("routes")
	p.prefixed(d.Prefix, d.Settings)
	columns := p.columns(d.Items)
	p.block(len(d.Items), true, "", "", func(i int) {
		switch item := d.Items[i].(type) {
		case *syntax.RouteDecl:
			p.route(item, columns[i])
		case *syntax.RoutesDecl:
			p.routes(item)
		case *syntax.AssetsDecl:
			p.assets(item)
		}
	})
}

// widths are those of the method and the path column.
type widths struct{ method, path int }

// columns returns the column widths of each route. Neighbouring routes share them: those
// without a blank line, a comment line or a group between them.
func (p *printer) columns(items []syntax.RouteItem) []widths {
	columns := make([]widths, len(items))
	for from := 0; from < len(items); {
		to, w := from, widths{}
		for ; to < len(items); to++ {
			r, ok := items[to].(*syntax.RouteDecl)
			if !ok || to > from && p.separated(items[to-1].Span(), r.Loc) {
				break
			}
			w.method = max(w.method, len(r.Method.Name))
			w.path = max(w.path, utf8.RuneCountInString(r.Path.Raw))
		}
		for i := from; i < to; i++ {
			columns[i] = w
		}
		from = max(to, from+1)
	}
	return columns
}

// separated reports that two neighbours will not be on consecutive lines.
func (p *printer) separated(a, b diag.Span) bool {
	line := a.End.Line
	i, _ := slices.BinarySearchFunc(p.comments, a.End.Offset, func(c syntax.Comment, at int) int {
		return cmp.Compare(c.Loc.Start.Offset, at)
	})
	for _, c := range p.comments[i:] {
		if c.Loc.Start.Offset >= b.Start.Offset {
			break
		}
		if c.OwnLine {
			return true
		}
		line = c.Loc.End.Line
	}
	return b.Start.Line > line+1
}

func (p *printer) route(r *syntax.RouteDecl, w widths) {
	p.emit(r.Method.Name)
	p.pad(1 + w.method - len(r.Method.Name))
	p.emit(r.Path.Raw)
	p.pad(1 + w.path - utf8.RuneCountInString(r.Path.Raw))
	p.emit("->")
	if f := r.File; f != nil {
		p.spaced("file")
		for _, token := range [...]string{"(", f.Entity.Name, ".", f.Field.Name, ")"} {
			p.emit(token)
		}
	} else {
		p.spaced(r.Handler.Name)
	}
	if r.Result != nil {
		p.emit(":")
		p.space()
		p.typeRef(r.Result)
	}
	if r.Settings != nil {
		p.space()
		p.settings(r.Settings)
	}
}

func (p *printer) settings(s *syntax.RouteSettings) {
	p.list("(", ")", len(s.List), func(i int) { p.routeSetting(s.List[i]) })
}

func (p *printer) routeSetting(s *syntax.RouteSetting) {
	p.emit(s.Name.Name)
	p.emit(":")
	p.space()
	switch {
	case s.Auth != nil:
		p.authMode(s.Auth)
	case s.Rate != nil:
		p.rateValue(s.Rate)
	case s.Ref != nil:
		p.emit(s.Ref.Name)
	case s.Amount != nil:
		p.literal(s.Amount)
	case s.Verify != nil:
		p.verify(s.Verify)
	case s.Word != nil:
		p.emit(s.Word.Name)
	case s.Origins != nil:
		p.value(s.Origins)
	case s.Text != nil:
		p.literal(s.Text)
	case s.Headers != nil:
		fields := s.Headers.Fields
		p.block(len(fields), false, ",", ",", func(i int) {
			p.literal(fields[i].Name)
			p.emit(":")
			p.space()
			p.literal(fields[i].Value)
		})
	case s.Concurrency != nil:
		p.literal(s.Concurrency.Count)
		if s.Concurrency.By != nil {
			p.spaced("by")
			p.spaced(s.Concurrency.By.Name)
		}
	case s.Schedule != nil:
		p.literal(s.Schedule.Cron)
		if s.Schedule.Zone != nil {
			p.spaced("in")
			p.space()
			p.literal(s.Schedule.Zone)
		}
	}
}

func (p *printer) authMode(m *syntax.AuthMode) {
	p.emit(m.Kind.Name)
	switch {
	case len(m.Names) > 0:
		p.list("(", ")", len(m.Names), func(int) { p.emit(p.tokens[p.done].Text) })
	case len(m.Modes) > 0:
		p.list("(", ")", len(m.Modes), func(i int) { p.authMode(m.Modes[i]) })
	}
}

func (p *printer) rateValue(v *syntax.RateValue) {
	switch {
	case v.None:
		p.emit("none")
	case v.InList:
		p.list("[", "]", len(v.Rates), func(i int) { p.rate(v.Rates[i]) })
	default:
		p.rate(v.Rates[0])
	}
}

func (p *printer) rate(r *syntax.Rate) {
	if r.Var != nil {
		p.emit(r.Var.Name)
	} else {
		p.literal(r.Count)
		p.emit("/")
		p.emit(r.Unit.Name)
	}
	if r.By != nil {
		p.spaced("by")
		p.spaced(r.By.Name)
	}
}

func (p *printer) verify(v *syntax.VerifyValue) {
	p.emit("webhook")
	n := 2
	if v.Tolerance != nil {
		n = 3
	}
	p.list("(", ")", n, func(i int) {
		switch i {
		case 0:
			p.emit(v.Scheme.Name)
		case 1:
			p.emit(v.Secret.Name)
		case 2:
			p.emit("tolerance")
			p.emit(":")
			p.space()
			p.literal(v.Tolerance)
		}
	})
}

// ---- rules ----

func (p *printer) expr(x syntax.Expr) {
	switch x := x.(type) {
	case *syntax.Literal:
		p.literal(x)
	case *syntax.NullExpr:
		p.emit("null")
	case *syntax.NowExpr:
		p.emit("now")
	case *syntax.NameExpr:
		p.emit(x.Parts[0].Name)
		for _, part := range x.Parts[1:] {
			p.emit(".")
			p.emit(part.Name)
		}
	case *syntax.ListExpr:
		p.list("[", "]", len(x.Elems), func(i int) { p.expr(x.Elems[i]) })
	case *syntax.ParenExpr:
		p.emit("(")
		p.expr(x.X)
		p.emit(")")
	case *syntax.ExistsExpr:
		p.emit("exists")
		p.emit("(")
		p.emit(x.Entity.Name)
		p.rule("where", x.Where)
		p.emit(")")
	case *syntax.NotExpr:
		p.emit("not")
		p.space()
		p.expr(x.X)
	case *syntax.BinaryExpr:
		p.binary(x)
	}
}

func (p *printer) binary(x *syntax.BinaryExpr) {
	p.expr(x.X)
	switch x.Op {
	case syntax.OpAnd, syntax.OpOr:
		p.wrap(true)
		p.emit(string(x.Op))
	case syntax.OpNotIn:
		p.spaced("not")
		p.spaced("in")
	default:
		p.spaced(string(x.Op))
	}
	p.space()
	p.expr(x.Y)
}
