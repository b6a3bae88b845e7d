package syntax

import (
	"strings"

	"runner.example/internal/diag"
)

// exprParser reads rules and literals.
type exprParser struct {
	cursor
}

// rule reads an expression, or returns a *BadExpr. After an error it continues at the next
// line or at the end of the block.
func (p *exprParser) rule() Expr {
	start := p.tok.span
	if p.endsRule() {
		p.expected("a rule")
		return &BadExpr{Node{p.here()}}
	}
	x, ok := p.expr()
	if ok {
		return x
	}
	for !p.endsRule() {
		p.skip()
	}
	return &BadExpr{Node{p.from(start)}}
}

// endsRule reports that the current token cannot continue a rule.
func (p *exprParser) endsRule() bool {
	return p.tok.kind == tokEOF || p.tok.kind == tokAt || p.tok.kind == tokAtAt ||
		p.is("}") || p.beginsNextItem() || p.atDecl()
}

func (p *exprParser) expr() (Expr, bool) {
	return p.chain(OpOr, "||", func() (Expr, bool) { return p.chain(OpAnd, "&&", p.not) })
}

// chain reads one or more operands separated by op, which can also be written as mark.
func (p *exprParser) chain(op Op, mark string, operand func() (Expr, bool)) (Expr, bool) {
	x, ok := operand()
	for ok && (p.isWord(string(op)) || p.is(mark)) {
		b := &BinaryExpr{Op: op, OpSpan: p.tok.span, X: x}
		p.next()
		b.Y, ok = operand()
		b.Loc = p.from(x.Span())
		x = b
	}
	return x, ok
}

func (p *exprParser) not() (Expr, bool) {
	if !p.isWord("not") && !p.is("!") {
		return p.comparison()
	}
	if !p.enter() {
		return nil, false
	}
	defer p.leave()
	start := p.tok.span
	p.next()
	x, ok := p.not()
	return &NotExpr{Node{p.from(start)}, x}, ok
}

var comparisons = map[string]Op{
	"==": OpEqual, "!=": OpNotEqual, "<": OpLess, "<=": OpLessEq, ">": OpGreater, ">=": OpGreaterEq,
	"in": OpIn, "startsWith": OpStartsWith, "contains": OpContains,
}

func (p *exprParser) comparison() (Expr, bool) {
	x, ok := p.primary()
	if !ok {
		return x, false
	}
	b := &BinaryExpr{X: x, OpSpan: p.tok.span}
	switch op, isOp := comparisons[p.tok.text]; {
	case isOp && (p.tok.kind == tokPunct || p.tok.kind == tokIdent) && !p.beginsNextItem():
		b.Op = op
		p.next()
	case p.isWord("not"):
		b.Op = OpNotIn
		p.next()
		if !p.expectWord("in") {
			return nil, false
		}
		b.OpSpan = p.from(b.OpSpan)
	case p.is("="):
		b.Op = OpEqual
		p.expected(`"=="`)
		p.next()
	default:
		return x, true
	}
	b.Y, ok = p.primary()
	b.Loc = p.from(x.Span())
	return b, ok
}

func (p *exprParser) primary() (Expr, bool) {
	const what = "a name, a literal or a rule in parentheses"
	start := p.tok.span
	switch {
	case p.is("("):
		if !p.enter() {
			return nil, false
		}
		defer p.leave()
		p.next()
		x, ok := p.expr()
		ok = ok && p.expect(")")
		return &ParenExpr{Node{p.from(start)}, x}, ok
	case p.is("["):
		v, good := &ListExpr{}, true
		p.list("]", p.atValue, func() bool {
			x, ok := p.primary()
			if ok {
				v.Elems = append(v.Elems, x)
			}
			good = good && ok
			return ok
		})
		v.Loc = p.from(start)
		return v, good
	case p.tok.kind != tokIdent:
		lit, ok := p.literal(what)
		return lit, ok
	case p.isWord("and", "or", "not", "in") && !p.peek(1)[0].is("."):
		p.expected(what)
		return nil, false
	case p.isWord("true", "false"):
		lit, ok := p.literal(what)
		return lit, ok
	case p.acceptWord("null"):
		return &NullExpr{Node{start}}, true
	case p.isWord("now") && !p.peek(1)[0].is("."):
		p.next()
		return &NowExpr{Node{start}}, true
	case p.isWord("exists") && p.peek(1)[0].is("("):
		return p.exists()
	}
	return p.dotted()
}

func (p *exprParser) dotted() (Expr, bool) {
	start := p.tok.span
	name, _ := p.ident("a name")
	n := &NameExpr{Parts: []Ident{name}}
	for p.accept(".") {
		part, ok := p.ident("a name")
		if !ok {
			return n, false
		}
		n.Parts = append(n.Parts, part)
	}
	n.Loc = p.from(start)
	return n, true
}

func (p *exprParser) exists() (Expr, bool) {
	start := p.tok.span
	p.next()
	if !p.enter() {
		return nil, false
	}
	defer p.leave()
	x := &ExistsExpr{}
	p.next()
	var ok bool
	if x.Entity, ok = p.ident("an entity"); !ok || !p.expectWord("where") {
		return nil, false
	}
	if x.Where, ok = p.expr(); !ok {
		return nil, false
	}
	ok = p.expect(")")
	x.Loc = p.from(start)
	return x, ok
}

// literal reads a literal; what describes it in an error.
func (p *exprParser) literal(what string) (*Literal, bool) {
	t := p.tok
	switch {
	case t.kind == tokString || t.kind == tokNumber:
		if meant := p.withUnit(); meant != "" {
			return p.spacedUnit(meant), true
		}
		p.next()
		lit := *t.lit
		lit.Loc = t.span
		return &lit, true
	case p.isWord("true", "false"):
		p.next()
		return &Literal{Node: Node{t.span}, Kind: BoolLit, Raw: t.text, Bool: t.text == "true"}, true
	case p.is("-"):
		return p.negative()
	}
	p.expected(what)
	return nil, false
}

// withUnit is the literal that the current number and the word after it were meant to be, as in
// 7 days, or "".
func (p *exprParser) withUnit() string {
	if p.tok.kind != tokNumber || p.tok.lit.Kind != IntLit {
		return ""
	}
	after := p.peek(2)
	if word := after[0]; word.kind == tokIdent && !word.first && !after[1].is(":") {
		return inUnits(strings.ReplaceAll(p.tok.lit.Raw, "_", ""), word.text)
	}
	return ""
}

// spacedUnit reads a number and the word after it as the literal that was meant.
func (p *exprParser) spacedUnit(meant string) *Literal {
	start := p.tok.span
	p.next()
	p.next()
	l := newLexer(diag.Source{Text: []byte(meant)})
	t := l.number()
	t.lit.Loc = p.from(start)
	p.fail("E004", t.lit.Loc, "a number and its unit are one word: write %s", meant)
	return t.lit
}

func (p *exprParser) negative() (*Literal, bool) {
	start := p.tok.span
	p.next()
	if p.tok.kind != tokNumber || p.tok.lit.Kind != IntLit && p.tok.lit.Kind != DecimalLit {
		p.expected("a number")
		return nil, false
	}
	lit := *p.tok.lit
	p.next()
	lit.Loc = p.from(start)
	lit.Raw = "-" + lit.Raw
	lit.Int = -lit.Int
	if lit.Kind == DecimalLit {
		lit.Text = "-" + lit.Text
	}
	return &lit, true
}

// literalOf reads a literal of one kind, without a sign.
func (p *exprParser) literalOf(kind LiteralKind, what string) (*Literal, bool) {
	if p.withUnit() == "" && (p.tok.kind != tokString && p.tok.kind != tokNumber || p.tok.lit.Kind != kind) {
		if p.tok.kind == tokNumber && p.tok.bad { // the lexer reported its unit
			p.next()
			return nil, false
		}
		hint := ""
		if kind == DurationLit && p.tok.lit != nil {
			hint = p.tok.lit.DurationHint("s")
		}
		p.expectedWith(what, hint)
		return nil, false
	}
	return p.literal(what)
}

// signedInt reads a whole number, which may have a sign.
func (p *exprParser) signedInt(what string) (*Literal, bool) {
	if !p.is("-") {
		return p.literalOf(IntLit, what)
	}
	if after := p.peek(1)[0]; after.kind != tokNumber || after.lit.Kind != IntLit {
		p.expected(what)
		return nil, false
	}
	return p.negative()
}

func (p *exprParser) atValue() bool {
	switch p.tok.kind {
	case tokIdent, tokString, tokNumber:
		return !p.beginsNextItem()
	}
	return p.is("[") || p.is("-")
}
