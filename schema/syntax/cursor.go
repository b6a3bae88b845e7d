package syntax

import (
	"fmt"
	"slices"

	"runner.example/internal/diag"
)

// cursor reads tokens with one token of lookahead, reports errors and skips what cannot be
// read. Methods that return ok report an error themselves; on false the caller skips to
// where it can continue.
type cursor struct {
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

// ---- tokens ----

func (c *cursor) next() {
	c.prev = c.tok
	c.tok = c.lex.next()
	c.record()
}

func (c *cursor) record() {
	if c.tok.kind != tokEOF && !c.is(",") {
		c.tokens = append(c.tokens, c.tok)
	}
}

// nextPath steps from a method word to the path behind it.
func (c *cursor) nextPath() bool {
	path, ok := c.lex.path()
	if !ok {
		c.next()
		return false
	}
	c.prev, c.tok = c.tok, path
	c.record()
	return true
}

// peek returns the n tokens behind the one at hand, without reading them.
func (c *cursor) peek(n int) []token {
	ahead := c.lex // what it appends lies behind the end of our own slices
	tokens := make([]token, n)
	for i := range tokens {
		tokens[i] = ahead.next()
	}
	return tokens
}

func (t token) is(mark string) bool { return t.kind == tokPunct && t.text == mark }

func (c *cursor) is(mark string) bool { return c.tok.is(mark) }

func (c *cursor) isWord(words ...string) bool {
	return c.tok.kind == tokIdent && slices.Contains(words, c.tok.text)
}

// take steps over the mark if it is at hand.
func (c *cursor) take(mark string) bool {
	if !c.is(mark) {
		return false
	}
	c.next()
	return true
}

// takeWord steps over the word if it is at hand.
func (c *cursor) takeWord(word string) bool {
	if !c.isWord(word) {
		return false
	}
	c.next()
	return true
}

// from is the span from start to the last token read.
func (c *cursor) from(start diag.Span) diag.Span { return start.To(c.prev.span) }

// here is the empty place behind the last token read.
func (c *cursor) here() diag.Span {
	end := c.prev.span.End
	return diag.Span{File: c.file.Name, Start: end, End: end}
}

// ---- mistakes ----

func (c *cursor) fail(code string, at diag.Span, format string, args ...any) {
	if at.Start.Offset == c.lastErr {
		return
	}
	c.lastErr = at.Start.Offset
	c.errs.Errorf(code, at, format, args...)
}

// expected reports that the token at hand is not what must come. It is silent
// where the lexer has complained.
func (c *cursor) expected(what string) {
	if c.tok.bad || c.prev.bad {
		return
	}
	at := c.tok.span
	if c.tok.kind == tokEOF {
		at = c.here()
	}
	c.fail("E100", at, "expected %s, found %s", what, c.found())
}

func (c *cursor) found() string {
	switch c.tok.kind {
	case tokEOF:
		return "the end of the file"
	case tokString, tokNumber:
		return c.tok.lit.Raw
	case tokAt:
		return fmt.Sprintf("%q", "@"+c.tok.text)
	case tokAtAt:
		return fmt.Sprintf("%q", "@@"+c.tok.text)
	}
	return fmt.Sprintf("%q", c.tok.text)
}

func (c *cursor) expect(mark string) bool {
	if c.take(mark) {
		return true
	}
	c.expected(fmt.Sprintf("%q", mark))
	return false
}

func (c *cursor) expectWord(word string) bool {
	if c.takeWord(word) {
		return true
	}
	c.expected(fmt.Sprintf("%q", word))
	return false
}

// ident reads a name; what says which.
func (c *cursor) ident(what string) (Ident, bool) {
	c.unquote(what)
	if c.tok.kind != tokIdent {
		c.expected(what)
		return Ident{Node: Node{c.here()}}, false
	}
	id := Ident{Node{c.tok.span}, c.tok.text}
	c.next()
	return id, true
}

// unquote takes a string that holds a name for the name itself. That is
// reported, and what refers to the name finds it.
func (c *cursor) unquote(what string) {
	if c.tok.kind != tokString || c.tok.bad || c.prev.bad || !IsName(c.tok.lit.Text) {
		return
	}
	c.fail("E100", c.tok.span, "expected %s, found %s: write it without quotes", what, c.found())
	c.tok.kind, c.tok.text = tokIdent, c.tok.lit.Text
}

// beginsNextItem reports that the token at hand is a name at the start of a
// line with a colon behind it: whatever was to come before is missing.
func (c *cursor) beginsNextItem() bool {
	return c.tok.kind == tokIdent && c.tok.first && c.peek(1)[0].is(":")
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
func (c *cursor) skip() {
	depth := 0
	for {
		switch {
		case c.tok.kind == tokEOF:
			return
		case c.is("{"), c.is("("), c.is("["):
			depth++
		case c.is("}"), c.is(")"), c.is("]"):
			depth--
		case depth > 0 && c.atDecl():
			return
		case c.tok.kind == tokIdent && (c.lex.atPath() || slices.Contains(methods, c.tok.text)) && c.nextPath():
			// Stepped over: a path may look like the start of a comment.
		}
		if c.tok.kind != tokEOF {
			c.next()
		}
		if depth <= 0 {
			return
		}
	}
}

// skipItem goes on to the next item of a block after one that began at offset
// start could not be read: the first token of a line, what follows a comma when
// commas part the items, or the end of the block.
func (c *cursor) skipItem(start int, commas bool) {
	c.file.Broken = true
	if c.tok.span.Start.Offset == start && c.tok.kind != tokEOF && !c.is("}") {
		c.skip()
	}
	for c.tok.kind != tokEOF && !c.is("}") && !c.tok.first {
		if commas && c.take(",") {
			return
		}
		c.skip()
	}
}

// skipElem goes on to the comma or the closing bracket of a list, or to where
// the list must have ended.
func (c *cursor) skipElem(closer string, lines bool) {
	for !c.is(",") && !c.is(closer) && !c.endsList(lines) {
		c.skip()
	}
}

func (c *cursor) endsList(lines bool) bool {
	switch c.tok.kind {
	case tokEOF, tokAtAt:
		return true
	case tokPunct:
		if slices.Contains([]string{"{", "}", ")", "]", "->"}, c.tok.text) {
			return true
		}
	}
	return c.tok.first && (!lines || c.atDecl())
}

// enter counts one level of nesting; on false it is one too many: that is
// reported and nothing is counted.
func (c *cursor) enter() bool {
	if c.depth == maxDepth {
		if !c.tooDeep {
			c.fail("E006", c.tok.span, "nested more than %d levels deep", maxDepth)
		}
		c.tooDeep = true
		return false
	}
	c.depth++
	c.tooDeep = c.tooDeep && c.depth > maxDepth/2
	return true
}

func (c *cursor) leave() { c.depth-- }

// block reads `{ items }` and returns the place of the closing bracket. item
// starts at the first token of an item and reports whether it could be read.
func (c *cursor) block(commas bool, item func() bool) diag.Span {
	open := c.tok.span
	if !c.is("{") {
		open = c.here()
		c.expected(`"{"`)
		if !c.tok.first || c.tok.span.Start.Col == 1 || c.is("}") || c.atDecl() {
			c.file.Broken = true
			return open
		}
	}
	if !c.enter() {
		c.file.Broken = true
		c.skip()
		return c.prev.span
	}
	defer c.leave()
	c.take("{")
	for !c.is("}") {
		if c.tok.kind == tokEOF || c.atDecl() {
			c.expected(fmt.Sprintf(`"}" (to close "{" of line %d)`, open.Start.Line))
			return c.here()
		}
		if start := c.tok.span.Start.Offset; !item() {
			c.skipItem(start, commas)
		}
	}
	c.next()
	return c.prev.span
}

// list reads the elements between the bracket at hand and closer, parted by
// commas, and returns the place of closer. elem reads one; starts reports that
// one may begin at hand.
func (c *cursor) list(closer string, starts, elem func() bool) diag.Span {
	if !c.enter() {
		c.skip()
		return c.prev.span
	}
	defer c.leave()
	c.next()
	lines := c.tok.first
	for !c.is(closer) {
		start := c.tok.span.Start.Offset
		if !elem() {
			c.skipElem(closer, lines)
		}
		if c.take(",") || c.is(closer) {
			continue
		}
		c.expected(fmt.Sprintf(`"," or %q`, closer))
		if starts() && c.tok.span.Start.Offset > start && (lines || !c.tok.first) {
			continue
		}
		c.skipElem(closer, lines)
		if !c.take(",") && !c.is(closer) {
			return c.here()
		}
	}
	c.next()
	return c.prev.span
}

func (c *cursor) atIdent() bool { return c.tok.kind == tokIdent }

// names reads a list of names in parentheses, at least one.
func (c *cursor) names(what string) []Ident {
	var names []Ident
	errs := len(c.errs)
	closer := c.list(")", c.atIdent, func() bool {
		name, ok := c.ident(what)
		if ok {
			names = append(names, name)
		}
		return ok
	})
	if len(names) == 0 {
		c.emptyList(errs, closer, what)
	}
	return names
}

// emptyList reports that the list which ended at closer holds nothing, unless
// something was reported since there were errs mistakes.
func (c *cursor) emptyList(errs int, closer diag.Span, what string) {
	if len(c.errs) == errs && !c.prev.bad {
		c.fail("E100", closer, "expected %s, found %q", what, c.prev.text)
	}
}

// bareNames reads names parted by commas, at least one; none of them may be a
// word of stop.
func (c *cursor) bareNames(what string, stop ...string) ([]Ident, bool) {
	var names []Ident
	for {
		if c.isWord(stop...) {
			c.expected(what)
			return names, false
		}
		name, ok := c.ident(what)
		if !ok {
			return names, false
		}
		names = append(names, name)
		if !c.take(",") {
			return names, true
		}
	}
}

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
func (c *cursor) atDecl() bool {
	if c.tok.kind != tokIdent || c.tok.span.Start.Col != 1 || !slices.Contains(declWords, c.tok.text) {
		return false
	}
	return c.tok.text != c.inside && beginsDecl(c.tok.text, c.peek(2))
}

// inParens reads `( one )`; what says what is in it.
func (c *cursor) inParens(what string, one func() bool) {
	if !c.is("(") {
		c.expected(`"("`)
		return
	}
	seen, errs := false, len(c.errs)
	closer := c.list(")", func() bool { return false }, func() bool {
		if seen {
			c.expected(`")"`)
			return false
		}
		seen = true
		return one()
	})
	if !seen {
		c.emptyList(errs, closer, what)
	}
}

// wordOf reads one of words into *to.
func (c *cursor) wordOf(to **Ident, words []string) bool {
	if c.tok.kind != tokIdent || !slices.Contains(words, c.tok.text) {
		c.expectedOneOf(words)
		return false
	}
	*to = &Ident{Node{c.tok.span}, c.tok.text}
	c.next()
	return true
}

// expectedOneOf reports that none of words is at hand.
func (c *cursor) expectedOneOf(words []string) {
	hint := ""
	if c.tok.kind == tokIdent {
		hint = diag.DidYouMean(c.tok.text, words)
	}
	if c.tok.bad || c.prev.bad {
		return
	}
	c.fail("E100", c.tok.span, "expected %s, found %s%s", oneOf(words), c.found(), hint)
}

// oneOf is `"a"`, `"a" or "b"`, `"a", "b" or "c"`.
func oneOf(words []string) string {
	s := ""
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			s += " or "
		default:
			s += ", "
		}
		s += `"` + w + `"`
	}
	return s
}
