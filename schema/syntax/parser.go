package syntax

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"runner.example/internal/diag"
)

const (
	// MaxFileBytes bounds one schema file.
	MaxFileBytes = 1 << 20
	// maxDepth bounds how deep brackets and `not` may nest: whoever walks the
	// tree recurses, and a stack that overflows cannot be caught.
	maxDepth = 64
)

// Parse reads one file. It always returns a tree, with what could be
// understood, and a list (in no certain order) of everything that is wrong with
// letters and grammar. It never panics, whatever the bytes.
func Parse(src diag.Source) (*File, diag.List) {
	p := parse(src)
	return p.file, p.diags()
}

// parser is a recursive descent over one token of sight. Methods named after a
// production start at its first token. Those that return ok report a mistake
// themselves; on false the caller skips to where it can go on.
type parser struct {
	lex  lexer
	file *File
	tok  token // the token at hand
	prev token // the one before it
	// tokens are all tokens read, without commas.
	tokens []token
	depth  int
	// tooDeep: the depth at hand was said to be too much.
	tooDeep bool
	// inside is "routes" or "functions" within such a block: there the word is
	// no sign of a new declaration.
	inside string
	errs   diag.List
	// lastErr is the offset of the latest mistake: one place, one message.
	lastErr int
}

func parse(src diag.Source) *parser {
	p := &parser{lex: newLexer(src), file: &File{Name: src.Name, Size: len(src.Text)}, lastErr: -1}
	if !p.readable(src) {
		p.file.Broken = true
		return p
	}
	p.next()
	for p.tok.kind != tokEOF {
		p.topLevel()
	}
	p.file.Comments = p.lex.comments
	return p
}

func (p *parser) diags() diag.List {
	return append(append(diag.List(nil), p.lex.diags...), p.errs...)
}

// readable checks what must hold before the first letter is looked at.
func (p *parser) readable(src diag.Source) bool {
	if len(src.Text) > MaxFileBytes {
		p.errs.Errorf("E007", p.wholeFile(), "file is larger than 1 MiB")
		return false
	}
	for rest := src.Text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			p.errs.Errorf("E007", p.wholeFile(), "file is not UTF-8 at byte %d", len(src.Text)-len(rest))
			return false
		}
		rest = rest[size:]
	}
	return true
}

// wholeFile is the place of what concerns no line in particular.
func (p *parser) wholeFile() diag.Span {
	top := diag.Pos{Line: 1, Col: 1}
	return diag.Span{File: p.file.Name, Start: top, End: top}
}

// ---- tokens ----

func (p *parser) next() {
	p.prev = p.tok
	p.tok = p.lex.next()
	p.record()
}

func (p *parser) record() {
	if p.tok.kind != tokEOF && !p.is(",") {
		p.tokens = append(p.tokens, p.tok)
	}
}

// nextPath steps from a method word to the path behind it.
func (p *parser) nextPath() bool {
	path, ok := p.lex.path()
	if !ok {
		p.next()
		return false
	}
	p.prev, p.tok = p.tok, path
	p.record()
	return true
}

// peek returns the n tokens behind the one at hand, without reading them.
func (p *parser) peek(n int) []token {
	ahead := p.lex // what it appends lies behind the end of our own slices
	tokens := make([]token, n)
	for i := range tokens {
		tokens[i] = ahead.next()
	}
	return tokens
}

func (t token) is(mark string) bool { return t.kind == tokPunct && t.text == mark }

func (p *parser) is(mark string) bool { return p.tok.is(mark) }

func (p *parser) isWord(words ...string) bool {
	return p.tok.kind == tokIdent && slices.Contains(words, p.tok.text)
}

// take steps over the mark if it is at hand.
func (p *parser) take(mark string) bool {
	if !p.is(mark) {
		return false
	}
	p.next()
	return true
}

// takeWord steps over the word if it is at hand.
func (p *parser) takeWord(word string) bool {
	if !p.isWord(word) {
		return false
	}
	p.next()
	return true
}

// from is the span from start to the last token read.
func (p *parser) from(start diag.Span) diag.Span { return start.To(p.prev.span) }

// here is the empty place behind the last token read.
func (p *parser) here() diag.Span {
	end := p.prev.span.End
	return diag.Span{File: p.file.Name, Start: end, End: end}
}

// ---- mistakes ----

func (p *parser) fail(code string, at diag.Span, format string, args ...any) {
	if at.Start.Offset == p.lastErr {
		return
	}
	p.lastErr = at.Start.Offset
	p.errs.Errorf(code, at, format, args...)
}

// expected reports that the token at hand is not what must come. It is silent
// where the lexer has complained.
func (p *parser) expected(what string) {
	if p.tok.bad || p.prev.bad {
		return
	}
	at := p.tok.span
	if p.tok.kind == tokEOF {
		at = p.here()
	}
	p.fail("E100", at, "expected %s, found %s", what, p.found())
}

func (p *parser) found() string {
	switch p.tok.kind {
	case tokEOF:
		return "the end of the file"
	case tokString, tokNumber:
		return p.tok.lit.Raw
	case tokAt:
		return fmt.Sprintf("%q", "@"+p.tok.text)
	case tokAtAt:
		return fmt.Sprintf("%q", "@@"+p.tok.text)
	}
	return fmt.Sprintf("%q", p.tok.text)
}

func (p *parser) expect(mark string) bool {
	if p.take(mark) {
		return true
	}
	p.expected(fmt.Sprintf("%q", mark))
	return false
}

func (p *parser) expectWord(word string) bool {
	if p.takeWord(word) {
		return true
	}
	p.expected(fmt.Sprintf("%q", word))
	return false
}

// ident reads a name; what says which.
func (p *parser) ident(what string) (Ident, bool) {
	p.unquote(what)
	if p.tok.kind != tokIdent {
		p.expected(what)
		return Ident{Node: Node{p.here()}}, false
	}
	id := Ident{Node{p.tok.span}, p.tok.text}
	p.next()
	return id, true
}

// unquote takes a string that holds a name for the name itself. That is
// reported, and what refers to the name finds it.
func (p *parser) unquote(what string) {
	if p.tok.kind != tokString || p.tok.bad || p.prev.bad || !IsName(p.tok.lit.Text) {
		return
	}
	p.fail("E100", p.tok.span, "expected %s, found %s: write it without quotes", what, p.found())
	p.tok.kind, p.tok.text = tokIdent, p.tok.lit.Text
}

// beginsNextItem reports that the token at hand is a name at the start of a
// line with a colon behind it: whatever was to come before is missing.
func (p *parser) beginsNextItem() bool {
	return p.tok.kind == tokIdent && p.tok.first && p.peek(1)[0].is(":")
}

// attrName is the name of an @ or @@ token, placed behind the marks.
func attrName(t token) Ident {
	marks := 1
	if t.kind == tokAtAt {
		marks = 2
	}
	span := t.span
	span.Start.Col += marks
	span.Start.Offset += marks
	return Ident{Node{span}, t.text}
}

// ---- going on after a mistake ----

// skip steps over one token, or over a whole bracket with what is in it.
func (p *parser) skip() {
	depth := 0
	for {
		switch {
		case p.tok.kind == tokEOF:
			return
		case p.is("{"), p.is("("), p.is("["):
			depth++
		case p.is("}"), p.is(")"), p.is("]"):
			depth--
		case depth > 0 && p.atDecl():
			return
		case p.tok.kind == tokIdent && (p.lex.atPath() || slices.Contains(methods, p.tok.text)) && p.nextPath():
			// Stepped over: a path may look like the start of a comment.
		}
		if p.tok.kind != tokEOF {
			p.next()
		}
		if depth <= 0 {
			return
		}
	}
}

// skipItem goes on to the next item of a block after one that began at offset
// start could not be read: the first token of a line, what follows a comma when
// commas part the items, or the end of the block.
func (p *parser) skipItem(start int, commas bool) {
	p.file.Broken = true
	if p.tok.span.Start.Offset == start && p.tok.kind != tokEOF && !p.is("}") {
		p.skip()
	}
	for p.tok.kind != tokEOF && !p.is("}") && !p.tok.first {
		if commas && p.take(",") {
			return
		}
		p.skip()
	}
}

// skipElem goes on to the comma or the closing bracket of a list, or to where
// the list must have ended.
func (p *parser) skipElem(closer string, lines bool) {
	for !p.is(",") && !p.is(closer) && !p.endsList(lines) {
		p.skip()
	}
}

func (p *parser) endsList(lines bool) bool {
	switch p.tok.kind {
	case tokEOF, tokAtAt:
		return true
	case tokPunct:
		if slices.Contains([]string{"{", "}", ")", "]", "->"}, p.tok.text) {
			return true
		}
	}
	return p.tok.first && (!lines || p.atDecl())
}

// enter counts one level of nesting; on false it is one too many: that is
// reported and nothing is counted.
func (p *parser) enter() bool {
	if p.depth == maxDepth {
		if !p.tooDeep {
			p.fail("E006", p.tok.span, "nested more than %d levels deep", maxDepth)
		}
		p.tooDeep = true
		return false
	}
	p.depth++
	p.tooDeep = p.tooDeep && p.depth > maxDepth/2
	return true
}

func (p *parser) leave() { p.depth-- }

// block reads `{ items }` and returns the place of the closing bracket. item
// starts at the first token of an item and reports whether it could be read.
func (p *parser) block(commas bool, item func() bool) diag.Span {
	open := p.tok.span
	if !p.is("{") {
		open = p.here()
		p.expected(`"{"`)
		if !p.tok.first || p.tok.span.Start.Col == 1 || p.is("}") || p.atDecl() {
			p.file.Broken = true
			return open
		}
	}
	if !p.enter() {
		p.file.Broken = true
		p.skip()
		return p.prev.span
	}
	defer p.leave()
	p.take("{")
	for !p.is("}") {
		if p.tok.kind == tokEOF || p.atDecl() {
			p.expected(fmt.Sprintf(`"}" (to close "{" of line %d)`, open.Start.Line))
			return p.here()
		}
		if start := p.tok.span.Start.Offset; !item() {
			p.skipItem(start, commas)
		}
	}
	p.next()
	return p.prev.span
}

// list reads the elements between the bracket at hand and closer, parted by
// commas, and returns the place of closer. elem reads one; starts reports that
// one may begin at hand.
func (p *parser) list(closer string, starts, elem func() bool) diag.Span {
	if !p.enter() {
		p.skip()
		return p.prev.span
	}
	defer p.leave()
	p.next()
	lines := p.tok.first
	for !p.is(closer) {
		start := p.tok.span.Start.Offset
		if !elem() {
			p.skipElem(closer, lines)
		}
		if p.take(",") || p.is(closer) {
			continue
		}
		p.expected(fmt.Sprintf(`"," or %q`, closer))
		if starts() && p.tok.span.Start.Offset > start && (lines || !p.tok.first) {
			continue
		}
		p.skipElem(closer, lines)
		if !p.take(",") && !p.is(closer) {
			return p.here()
		}
	}
	p.next()
	return p.prev.span
}

func (p *parser) atIdent() bool { return p.tok.kind == tokIdent }

// names reads a list of names in parentheses, at least one.
func (p *parser) names(what string) []Ident {
	var names []Ident
	errs := len(p.errs)
	closer := p.list(")", p.atIdent, func() bool {
		name, ok := p.ident(what)
		if ok {
			names = append(names, name)
		}
		return ok
	})
	if len(names) == 0 {
		p.emptyList(errs, closer, what)
	}
	return names
}

// emptyList reports that the list which ended at closer holds nothing, unless
// something was reported since there were errs mistakes.
func (p *parser) emptyList(errs int, closer diag.Span, what string) {
	if len(p.errs) == errs && !p.prev.bad {
		p.fail("E100", closer, "expected %s, found %q", what, p.prev.text)
	}
}

// bareNames reads names parted by commas, at least one; none of them may be a
// word of stop.
func (p *parser) bareNames(what string, stop ...string) ([]Ident, bool) {
	var names []Ident
	for {
		if p.isWord(stop...) {
			p.expected(what)
			return names, false
		}
		name, ok := p.ident(what)
		if !ok {
			return names, false
		}
		names = append(names, name)
		if !p.take(",") {
			return names, true
		}
	}
}

// ---- declarations ----

var declWords = []string{"app", "auth", "secret", "outbound", "enum", "type", "entity", "apiKeys", "functions", "routes"}

// beginsDecl reports that word, with what follows it, begins a top-level
// declaration and nothing else.
func beginsDecl(word string, after []token) bool {
	switch word {
	case "app", "secret":
		return after[0].kind == tokIdent
	case "auth", "outbound", "apiKeys":
		return after[0].is("{")
	case "enum", "type", "entity":
		return after[0].kind == tokIdent && after[1].is("{")
	case "functions":
		return after[0].is("{") || after[0].is("(") && slices.Contains(settingWords, after[1].text)
	case "routes":
		return after[0].is("(") && after[1].kind == tokString
	}
	return false
}

// atDecl reports that a top-level declaration begins at hand, at the left
// margin: inside a block its closing bracket must have been forgotten.
func (p *parser) atDecl() bool {
	if p.tok.kind != tokIdent || p.tok.span.Start.Col != 1 || !slices.Contains(declWords, p.tok.text) {
		return false
	}
	return p.tok.text != p.inside && beginsDecl(p.tok.text, p.peek(2))
}

func (p *parser) topLevel() {
	if p.tok.kind != tokIdent {
		p.expected("a declaration")
		p.skipTopLevel()
		return
	}
	word := p.tok.text
	if !slices.Contains(declWords, word) {
		p.fail("E101", p.tok.span, "unknown declaration %q%s", word, diag.DidYouMean(word, declWords))
		word = diag.Suggest(word, declWords)
		if !beginsDecl(word, p.peek(2)) {
			p.skipTopLevel()
			return
		}
	}
	start, doc := p.tok, p.tok.doc
	p.next()
	if d := p.declaration(word, start.span, doc); d != nil {
		p.file.Decls = append(p.file.Decls, d)
		return
	}
	p.file.Broken = true
	if !p.tok.first || p.tok.kind != tokIdent {
		p.skipTopLevel()
	}
}

// declaration reads what follows the keyword; nil when that could not be.
func (p *parser) declaration(word string, keyword diag.Span, doc string) Decl {
	switch word {
	case "app":
		return p.appDecl(keyword, doc)
	case "auth":
		return p.authDecl(keyword, doc)
	case "secret":
		return p.secretDecl(keyword, doc)
	case "outbound":
		return p.outboundDecl(keyword, doc)
	case "enum":
		return p.enumDecl(keyword, doc)
	case "type":
		return p.typeDecl(keyword, doc)
	case "entity":
		return p.entityDecl(keyword, doc)
	case "apiKeys":
		return p.apiKeysDecl(keyword, doc)
	case "functions":
		return p.functionsDecl(keyword, doc)
	case "routes":
		return p.routesDecl(keyword, doc)
	}
	panic("BUG: no declaration " + word)
}

// skipTopLevel goes on to what looks like the next declaration.
func (p *parser) skipTopLevel() {
	p.file.Broken = true
	body := p.is("{")
	p.skip()
	for p.tok.kind != tokEOF {
		if p.tok.first && p.tok.kind == tokIdent && (body || p.tok.span.Start.Col == 1 || slices.Contains(declWords, p.tok.text)) {
			return
		}
		body = p.is("{")
		p.skip()
	}
}

// declName reads the name of a declaration without a body. What begins another
// declaration on a line of its own is not one.
func (p *parser) declName(what string) (Ident, bool) {
	if p.tok.first && p.tok.kind == tokIdent {
		if after := p.peek(1)[0]; p.atDecl() || after.is("{") || after.is("(") {
			p.expected(what)
			return Ident{}, false
		}
	}
	return p.ident(what)
}

func (p *parser) appDecl(keyword diag.Span, doc string) Decl {
	name, ok := p.declName("the app's name")
	if !ok {
		return nil
	}
	return &AppDecl{Node{p.from(keyword)}, doc, keyword, name}
}

func (p *parser) secretDecl(keyword diag.Span, doc string) Decl {
	name, ok := p.declName("the secret's name")
	if !ok {
		return nil
	}
	return &SecretDecl{Node{p.from(keyword)}, doc, keyword, name}
}
