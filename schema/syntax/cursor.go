package syntax

import (
	"fmt"
	"slices"
	"strings"

	"runner.example/internal/diag"
)

// cursor reads tokens with one token of lookahead, reports errors and skips what cannot be
// read. Methods that return ok report an error themselves; on false the caller skips to
// where it can continue.
type cursor struct {
	lex   lexer
	file  *File
	tok   token // the current token
	prev  token // the one before it
	depth int
	// tooDeep reports that the excess of nesting was reported.
	tooDeep bool
	// inside is "routes", "functions" or "jobs" in such a block: there this word does not begin a
	// declaration.
	inside string
	errs   diag.List
	// lastErr is the offset of the last error: only the first error at an offset is kept.
	lastErr int
	// unread reports an error in the current item, outside the items in it. lexical is the
	// number of lexical errors in the tokens read.
	unread  bool
	lexical int
}

// ---- tokens ----

func (c *cursor) next() { c.advance(c.lex.next()) }

// advance moves to the token t, which the lexer has just read.
func (c *cursor) advance(t token) {
	c.prev, c.tok = c.tok, t
	for c.lexical < len(c.lex.diags) && c.lex.diags[c.lexical].Span.Start.Offset < c.prev.span.End.Offset {
		c.lexical++
		c.unread = true
	}
	if c.tok.kind != tokEOF && !c.is(",") {
		c.file.Tokens = append(c.file.Tokens, Token{Node{c.tok.span}, c.tok.source()})
	}
}

// nextPath moves from a method to the path after it.
func (c *cursor) nextPath() bool {
	path, ok := c.lex.path()
	if !ok {
		c.next()
		return false
	}
	c.advance(path)
	return true
}

// peek returns the n tokens after the current one, without reading them.
func (c *cursor) peek(n int) []token {
	ahead := c.lex // a copy: what it appends is beyond the length of c.lex's slices
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

// accept reads the mark if it is the current token.
func (c *cursor) accept(mark string) bool {
	if !c.is(mark) {
		return false
	}
	c.next()
	return true
}

// acceptWord reads the word if it is the current token.
func (c *cursor) acceptWord(word string) bool {
	if !c.isWord(word) {
		return false
	}
	c.next()
	return true
}

// from is the span from start to the last token read.
func (c *cursor) from(start diag.Span) diag.Span { return start.To(c.prev.span) }

// here is the empty span after the last token read.
func (c *cursor) here() diag.Span {
	end := c.prev.span.End
	return diag.Span{File: c.file.Name, Start: end, End: end}
}

// ---- errors ----

// fail reports that a part of the current item could not be read.
func (c *cursor) fail(code string, at diag.Span, format string, args ...any) {
	c.unread = true
	c.note(code, at, format, args...)
}

// note reports an error after which the item is read as it was meant.
func (c *cursor) note(code string, at diag.Span, format string, args ...any) {
	if at.Start.Offset == c.lastErr {
		return
	}
	c.lastErr = at.Start.Offset
	c.errs.Errorf(code, at, format, args...)
}

// expected reports that the current token is not what the grammar requires, unless the
// lexer reported an error there.
func (c *cursor) expected(what string) { c.expectedWith(what, "") }

// expectedWith is expected with a hint after what was found.
func (c *cursor) expectedWith(what, hint string) {
	c.unread = true
	if c.tok.bad || c.prev.bad {
		return
	}
	at := c.tok.span
	if c.tok.kind == tokEOF {
		at = c.here()
	}
	c.fail("E100", at, "expected %s, found %s%s", what, c.found(), hint)
}

func (c *cursor) found() string {
	switch c.tok.kind {
	case tokEOF:
		return "the end of the file"
	case tokString, tokNumber:
		return c.tok.source()
	}
	return fmt.Sprintf("%q", c.tok.source())
}

func (c *cursor) expect(mark string) bool {
	if c.accept(mark) {
		return true
	}
	c.expected(fmt.Sprintf("%q", mark))
	return false
}

func (c *cursor) expectWord(word string) bool {
	if c.acceptWord(word) {
		return true
	}
	c.expected(fmt.Sprintf("%q", word))
	return false
}

// ident reads a name; what describes it in an error.
func (c *cursor) ident(what string) (Ident, bool) {
	c.unquote(what)
	if c.tok.kind != tokIdent {
		// A name before a colon or a body is missing: it cannot be found in what is unread.
		after := c.peek(1)[0]
		c.file.Lost = c.file.Lost || c.tok.bad || c.is(":") || after.is(":") || c.depth == 0 && (c.is("{") || after.is("{"))
		c.expected(what)
		return Ident{Node: Node{c.here()}}, false
	}
	id := c.join(c.word(), "-")
	if !IsName(id.Name) {
		c.note("E100", id.Loc, "%s is not a name: a name has letters, digits and _, such as %s",
			id.Name, strings.ReplaceAll(id.Name, "-", "_"))
	}
	return id, true
}

// word reads the current token, which is a name.
func (c *cursor) word() Ident {
	id := Ident{Node{c.tok.span}, c.tok.text}
	c.next()
	return id
}

// join reads what follows a name without a space: words that one of marks separates.
func (c *cursor) join(name Ident, marks ...string) Ident {
	for slices.ContainsFunc(marks, c.is) {
		after := c.peek(1)[0]
		if c.tok.span.Start.Offset != name.Loc.End.Offset || after.kind != tokIdent && (after.kind != tokNumber || after.bad) ||
			after.span.Start.Offset != c.tok.span.End.Offset {
			break
		}
		name.Name += c.tok.text + after.source()
		c.next()
		c.next()
		name.Loc = c.from(name.Loc)
	}
	return name
}

// unquote converts a string that contains a name to that name. It reports this, and
// references to the name are resolved.
func (c *cursor) unquote(what string) {
	if c.tok.kind != tokString || c.tok.bad || c.prev.bad || !IsName(c.tok.lit.Text) {
		return
	}
	c.note("E100", c.tok.span, "expected %s, found %s: write it without quotes", what, c.found())
	c.tok.kind, c.tok.text = tokIdent, c.tok.lit.Text
}

// beginsNextItem reports that the current token is a name at the start of a line, followed
// by a colon: the value that should come before it is missing.
func (c *cursor) beginsNextItem() bool {
	return c.tok.kind == tokIdent && c.tok.first && c.peek(1)[0].is(":")
}

// attrName is the name of an @ or @@ token, with its span after the marks.
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

// ---- error recovery ----

// item reads an item of a block or a list, or a declaration, and skips what of it cannot be
// read. After an error in the item, not in an item in it, the whole item is unread: what was
// read of it may not be what the author meant. The item before it, which began at before, is
// unread too if it ended in the middle of the line: perhaps it should have continued.
func (c *cursor) item(before diag.Span, read func()) {
	start, around, continues := c.tok.span, c.unread, !c.tok.first && !c.prev.is(",")
	c.unread = false
	read()
	if c.unread {
		if continues {
			start = before
		}
		c.file.Unread = append(c.file.Unread, c.since(start))
	}
	c.unread = around
}

// since is the span from start to the last token read, at least start.
func (c *cursor) since(start diag.Span) diag.Span {
	if c.prev.span.End.Offset < start.End.Offset {
		return start
	}
	return c.from(start)
}

// skip skips one token, or a bracket with its contents.
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
			// Skipped as a path: its slashes may look like a comment.
		}
		if c.tok.kind != tokEOF {
			c.next()
		}
		if depth <= 0 {
			return
		}
	}
}

// skipItem moves to the next item of a block after the item at offset start could not be
// read. The next item begins with the first token of a line or, with commas, after a comma.
// It stops at the end of the block.
func (c *cursor) skipItem(start int, commas bool) {
	if c.tok.span.Start.Offset == start && c.tok.kind != tokEOF && !c.is("}") {
		c.skip()
	}
	for c.tok.kind != tokEOF && !c.is("}") && !c.tok.first {
		if commas && c.accept(",") {
			return
		}
		c.skip()
	}
}

// skipElem moves to the comma or the closing bracket of a list, or to where the list must
// have ended.
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

// enter begins a level of nesting. If that is too deep, it reports this and returns false.
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

// block reads `{ items }` and returns the span of the closing bracket. item starts at the
// first token of an item and reports whether it could be read.
func (c *cursor) block(commas bool, item func() bool) diag.Span {
	open := c.tok.span
	if !c.is("{") {
		open = c.here()
		c.expected(`"{"`)
		if !c.tok.first || c.tok.span.Start.Col == 1 || c.is("}") || c.atDecl() {
			c.file.Lost = true
			return open
		}
	}
	if !c.enter() {
		c.skip()
		return c.prev.span
	}
	defer c.leave()
	c.accept("{")
	before := c.tok.span
	for !c.is("}") {
		if c.tok.kind == tokEOF || c.atDecl() {
			around := c.unread
			c.expected(fmt.Sprintf(`"}" (to close "{" of line %d)`, open.Start.Line))
			c.unread = around || c.depth > 1 // in a declaration itself, all items were read
			return c.here()
		}
		start := c.tok.span
		c.item(before, func() {
			if !item() {
				c.skipItem(start.Start.Offset, commas)
			}
		})
		before = start
	}
	c.next()
	return c.prev.span
}

// list reads the elements between the current bracket and closer, separated by commas, and
// returns the span of closer. elem reads an element; starts reports whether the current
// token can begin one.
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
		c.item(c.tok.span, func() {
			if !elem() {
				c.skipElem(closer, lines)
			}
		})
		if c.accept(",") || c.is(closer) {
			continue
		}
		c.expected(fmt.Sprintf(`"," or %q`, closer))
		if starts() && c.tok.span.Start.Offset > start && (lines || !c.tok.first) {
			continue
		}
		c.skipElem(closer, lines)
		if !c.accept(",") && !c.is(closer) {
			return c.here()
		}
	}
	c.next()
	return c.prev.span
}

// lacksBody reports that a line that is not more indented than start begins where "{" should be: the
// block of the item that begins at start is being typed above that line.
func (c *cursor) lacksBody(start diag.Span) bool {
	if c.is("{") || c.is("}") || !c.tok.first || c.tok.kind == tokEOF || c.tok.span.Start.Col > start.Start.Col {
		return false
	}
	c.expected(`"{"`)
	return true
}

// opensAlone reports that the current "(" is the last token of its line, and the next line begins a function. It
// reads the bracket: what is in it is being typed above that function.
func (c *cursor) opensAlone() bool {
	after := c.peek(2)
	if !after[0].first || after[0].kind != tokIdent || !after[1].is("(") {
		return false
	}
	c.next()
	c.expected(`")"`)
	return true
}

func (c *cursor) atIdent() bool { return c.tok.kind == tokIdent }

// names reads a list of names in parentheses, at least one.
func (c *cursor) names(what string) []Ident {
	return c.nameList(what, c.atIdent, c.ident)
}

// roleNames is names for roles, which may also be strings.
func (c *cursor) roleNames() []Ident {
	starts := func() bool { return c.atIdent() || c.tok.kind == tokString }
	return c.nameList("a role", starts, func(what string) (Ident, bool) {
		if c.tok.kind == tokIdent {
			return c.joined(c.word()), true
		}
		if c.tok.kind != tokString || c.tok.bad || c.tok.lit.Text == "" {
			return c.ident(what)
		}
		name := Ident{Node{c.tok.span}, c.tok.lit.Text}
		c.next()
		return name, true
	})
}

// joined reads what follows a name without a space, as in org:admin. It reports that this is
// not a name, and returns what was meant.
func (c *cursor) joined(name Ident) Ident {
	name = c.join(name, ":", ".", "-")
	if !IsName(name.Name) && name.Name != "" {
		c.note("E100", name.Loc, "%s is not a name: write it in quotes, %q", name.Name, name.Name)
	}
	return name
}

func (c *cursor) nameList(what string, starts func() bool, read func(string) (Ident, bool)) []Ident {
	var names []Ident
	errs := len(c.errs)
	closer := c.list(")", starts, func() bool {
		name, ok := read(what)
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

// emptyList reports that the list that ended at closer is empty, unless another error was
// reported since there were errs errors.
func (c *cursor) emptyList(errs int, closer diag.Span, what string) {
	if len(c.errs) == errs && !c.prev.bad {
		c.fail("E100", closer, "expected %s, found %q", what, c.prev.text)
	}
}

// bareNames reads one or more names separated by commas. None of them may be a word of stop.
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
		if !c.accept(",") {
			return names, true
		}
	}
}

var declWords = []string{
	"app", "auth", "secret", "var", "outbound", "module", "python", "enum", "type", "entity", "apiKeys",
	"functions", "jobs", "routes", "assets",
}

// beginsDecl reports that word, followed by the tokens after, can only begin a top-level
// declaration.
func beginsDecl(word string, after []token) bool {
	switch word {
	case "app", "secret":
		return after[0].kind == tokIdent
	case "var":
		return after[0].kind == tokIdent && after[1].is(":")
	case "auth", "outbound", "python", "apiKeys":
		return after[0].is("{")
	case "module":
		return (after[0].kind == tokIdent || after[0].kind == tokString) && after[1].is("{")
	case "enum", "type", "entity":
		return after[0].kind == tokIdent && after[1].is("{")
	case "functions":
		return after[0].is("{") || after[0].is("(") && slices.Contains(settingWords, after[1].text)
	case "jobs":
		return after[0].is("{") || after[0].is("(") && slices.Contains(jobSettings, after[1].text)
	case "routes", "assets":
		return after[0].is("(") && after[1].kind == tokString
	}
	return false
}

// atDecl reports that the current token, in the first column, begins a top-level
// declaration. Inside a block this means that the closing bracket is missing.
func (c *cursor) atDecl() bool {
	if c.tok.kind != tokIdent || c.tok.span.Start.Col != 1 || !slices.Contains(declWords, c.tok.text) {
		return false
	}
	if c.tok.text == c.inside || c.inside == "routes" && c.tok.text == "assets" {
		return false
	}
	return beginsDecl(c.tok.text, c.peek(2))
}

// inParens reads `( one )`; what describes the content in an error.
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

// expectedOneOf reports that the current token is not one of words.
func (c *cursor) expectedOneOf(words []string) {
	hint := ""
	if c.tok.kind == tokIdent {
		hint = diag.DidYouMean(c.tok.text, words)
	}
	c.expectedWith(oneOf(words), hint)
}

// oneOf is `"a"`, `"a" or "b"`, `"a", "b" or "c"`.
func oneOf(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return diag.OneOf(quoted)
}
