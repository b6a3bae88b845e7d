package syntax

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"runner.example/internal/diag"
)

const (
	// MaxFileBytes is the maximum size of a schema file.
	MaxFileBytes = 1 << 20
	// maxDepth is the maximum nesting of brackets and `not`. Code that walks the tree is
	// recursive, and a stack overflow cannot be recovered from.
	maxDepth = 64
	// bytesPerToken is what a token takes with the blanks after it, at least in most files: the tokens are copied
	// if there are more.
	bytesPerToken = 6
)

// Parse reads one file. It always returns a tree of what it could read, and all lexical and
// syntax errors, unsorted. It accepts any bytes and never panics.
func Parse(src diag.Source) (*File, diag.List) {
	p := &parser{}
	p.cursor = cursor{lex: newLexer(src), file: &File{Name: src.Name, Size: len(src.Text)}, lastErr: -1}
	if !p.readable(src) {
		p.file.Lost = true
		return p.file, p.errs
	}
	p.file.Tokens = make([]Token, 0, len(src.Text)/bytesPerToken)
	p.next()
	before := p.tok.span
	for p.tok.kind != tokEOF {
		start := p.tok.span
		p.item(before, p.topLevel)
		before = start
	}
	p.file.Comments = p.lex.comments
	p.file.Lost = p.file.Lost || p.lex.lost
	p.file.Unread = merged(p.file.Unread)
	return p.file, append(append(diag.List(nil), p.lex.diags...), p.errs...)
}

// merged sorts spans and joins those that overlap.
func merged(spans []diag.Span) []diag.Span {
	slices.SortFunc(spans, func(a, b diag.Span) int { return cmp.Compare(a.Start.Offset, b.Start.Offset) })
	all := spans[:0]
	for _, s := range spans {
		switch last := len(all) - 1; {
		case last < 0 || s.Start.Offset >= all[last].End.Offset:
			all = append(all, s)
		case s.End.Offset > all[last].End.Offset:
			all[last] = all[last].To(s)
		}
	}
	return all
}

// parser is a recursive descent parser. A method named after a production starts at the
// first token of that production.
type parser struct {
	varParser
}

// readable checks the size and the encoding of the whole file.
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

// wholeFile is the span of errors that concern no particular line.
func (p *parser) wholeFile() diag.Span {
	top := diag.Pos{Line: 1, Col: 1}
	return diag.Span{File: p.file.Name, Start: top, End: top}
}

func (p *parser) topLevel() {
	if p.tok.kind != tokIdent {
		p.expected("a declaration")
		p.skipTopLevel()
		return
	}
	word := p.tok.text
	if !slices.Contains(declWords, word) {
		p.note("E101", p.tok.span, "unknown declaration %q%s", word, declarations.Hint(word))
		meant := declarations.Meant(word)
		if len(meant) == 0 || !beginsDecl(meant[0], p.peek(2)) {
			p.unread = true
			p.skipTopLevel()
			return
		}
		word = meant[0]
	}
	start, doc := p.tok, p.tok.doc
	p.next()
	if d := p.declaration(word, start.span, doc); d != nil {
		p.file.Decls = append(p.file.Decls, d)
		return
	}
	if !p.tok.first || p.tok.kind != tokIdent {
		p.skipTopLevel()
	}
}

// declaration reads what follows the keyword. It returns nil if that is not possible.
func (p *parser) declaration(word string, keyword diag.Span, doc string) Decl {
	switch word {
	case "app":
		return p.appDecl(keyword, doc)
	case "auth":
		return p.authDecl(keyword, doc)
	case "secret":
		return p.secretDecl(keyword, doc)
	case "var":
		return p.varDecl(keyword, doc)
	case "outbound":
		return p.outboundDecl(keyword, doc)
	case "module":
		return p.moduleDecl(keyword, doc)
	case "python":
		return p.pythonDecl(keyword, doc)
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
	case "jobs":
		return p.jobsDecl(keyword, doc)
	case "routes":
		return p.routesDecl(keyword, doc)
	case "assets":
		return p.assetsDecl(keyword, doc)
	}
	panic("BUG: unknown declaration " + word)
}

// skipTopLevel moves to what looks like the next declaration.
func (p *parser) skipTopLevel() {
	body := p.is("{")
	p.skip()
	for p.tok.kind != tokEOF {
		if p.tok.first && p.tok.kind == tokIdent &&
			(body || p.tok.span.Start.Col == 1 || slices.Contains(declWords, p.tok.text)) {
			return
		}
		body = p.is("{")
		p.skip()
	}
}

// declName reads the name of a declaration without a body. A token that begins another
// declaration on the next line is not a name.
func (p *parser) declName(what string) (Ident, bool) {
	if p.tok.first && p.tok.kind == tokIdent {
		if after := p.peek(1)[0]; p.atDecl() || after.is("{") || after.is("(") {
			p.expected(what)
			return Ident{}, false
		}
	}
	return p.ident(what)
}

// blockName reads the name of a declaration with a body. The next declaration is not a name: this
// one is being typed above it.
func (p *parser) blockName(what string) (Ident, bool) {
	if p.atDecl() {
		p.expected(what)
		return Ident{}, false
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
		p.file.Lost = true
		return nil
	}
	return &SecretDecl{Node{p.from(keyword)}, doc, keyword, name}
}
