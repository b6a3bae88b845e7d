package syntax

import (
	"slices"
	"strconv"
	"strings"

	"runner.example/internal/diag"
)

func (p *parser) enumDecl(keyword diag.Span, doc string) Decl {
	name, ok := p.blockName("the enum's name")
	if !ok {
		return nil
	}
	d := &EnumDecl{Doc: doc, Keyword: keyword, Name: name}
	errs := len(p.errs)
	closer := p.block(true, func() bool {
		value, ok := p.ident("a value of the enum")
		if ok {
			d.Values, d.Attrs = append(d.Values, value), append(d.Attrs, p.attrs())
			p.accept(",")
		} else {
			p.file.Lost = true
		}
		return ok
	})
	d.Loc = p.from(keyword)
	if len(d.Values) == 0 {
		p.emptyList(errs, closer, "a value of the enum")
	}
	return d
}

func (p *parser) typeDecl(keyword diag.Span, doc string) Decl {
	name, ok := p.blockName("the type's name")
	if !ok {
		return nil
	}
	d := &TypeDecl{Doc: doc, Keyword: keyword, Name: name}
	p.block(true, func() bool { return p.fieldItem(&d.Fields, true) })
	d.Loc = p.from(keyword)
	return d
}

func (p *parser) entityDecl(keyword diag.Span, doc string) Decl {
	name, ok := p.blockName("the entity's name")
	if !ok {
		return nil
	}
	d := &EntityDecl{Doc: doc, Keyword: keyword, Name: name, NameAttrs: p.attrs()}
	p.block(true, func() bool {
		switch p.tok.kind {
		case tokAtAt:
			return p.entityItem(d)
		case tokAt: // without a field before it: perhaps meant as a rule of the entity
			if slices.Contains(effects, p.tok.text) {
				p.fieldAttr()
				return true
			}
		}
		return p.fieldItem(&d.Fields, false)
	})
	d.Loc = p.from(keyword)
	return d
}

// fieldItem reads a field of a block and an optional comma.
func (p *parser) fieldItem(fields *[]*FieldDecl, omits bool) bool {
	f, ok := p.field(omits)
	if f != nil {
		*fields = append(*fields, f)
	}
	if ok {
		p.accept(",")
	}
	return ok
}

// field reads a field. If ok is false it may still return a field that has its name but
// lacks a part. omits permits `name?`.
func (p *parser) field(omits bool) (f *FieldDecl, ok bool) {
	start, doc := p.tok.span, p.tok.doc
	name, ok := p.ident("a field")
	omits = ok && omits && p.accept("?")
	if !ok || !p.expect(":") {
		return nil, false
	}
	f = &FieldDecl{Node{p.from(start)}, doc, name, omits, nil, nil, nil}
	if f.Type, ok = p.typeRef(true); !ok {
		return f, false
	}
	if p.accept("=") {
		f.Default, ok = p.defaultValue()
	}
	if ok {
		f.Attrs = p.attrs()
	}
	f.Loc = p.from(start)
	return f, ok
}

func (p *parser) defaultValue() (SettingValue, bool) {
	if p.tok.kind == tokIdent && p.beginsNextItem() {
		p.expected("a default")
		return nil, false
	}
	if p.is("[") {
		return p.value()
	}
	if p.tok.kind == tokIdent && !p.isWord("true", "false") {
		name, _ := p.ident("a default")
		return &NameSetting{Node: name.Node, Name: name}, true
	}
	lit, ok := p.literal("a default")
	if !ok {
		return nil, false
	}
	return lit, true
}

// typeRef reads a type. After the result type of a function, parentheses may also contain
// settings: then args is false, and only numbers are read as arguments of the type.
func (p *parser) typeRef(args bool) (*TypeRef, bool) {
	if p.beginsNextItem() || !args && p.beginsFunction() {
		p.expected("a type")
		return nil, false
	}
	start := p.tok.span
	if p.tok.kind == tokString && !p.tok.bad {
		p.union(start, nil)
		return nil, false
	}
	before := p.accept("[")
	if before && !p.expect("]") {
		return nil, false
	}
	name, ok := p.ident("a type")
	if !ok {
		return nil, false
	}
	if p.is("|") {
		p.union(start, []string{name.Name})
		return nil, false
	}
	if before && args {
		p.note("E100", p.from(start), "a list is written %s[]", name.Name)
		before = false
		t := &TypeRef{Name: name, List: true}
		t.Optional = p.accept("?")
		t.Loc = p.from(start)
		return t, true
	}
	t := &TypeRef{Name: name, List: before, Before: before}
	switch {
	case !p.is("("):
	case args && name.Name == "file":
		t.Args = p.fileArgs()
	case args || p.beginsTypeArgs():
		t.Args = p.typeArgs()
	}
	if ok = true; !before && p.accept("[") {
		t.List = true
		ok = p.expect("]")
	}
	t.Optional = p.accept("?")
	t.Loc = p.from(start)
	return t, ok
}

// union reads the rest of a type such as "a" | "b", after the words before, and reports it.
func (p *parser) union(start diag.Span, words []string) {
	for {
		p.accept("|")
		switch {
		case p.tok.kind == tokString:
			words = append(words, p.tok.lit.Text)
		case p.tok.kind == tokIdent && !p.beginsNextItem():
			words = append(words, p.tok.text)
		default:
			p.expected("a type")
			return
		}
		p.next()
		if !p.is("|") {
			break
		}
	}
	p.fail("E100", p.from(start), "a type is a name: declare enum Name { %s }, and write Name here", strings.Join(words, ", "))
}

// beginsTypeArgs reports that the current token is followed by a number.
func (p *parser) beginsTypeArgs() bool {
	after := p.peek(1)[0]
	return after.kind == tokNumber || after.is("-")
}

// beginsFunction reports that the current token is a name at the start of a line, followed
// by parameters.
func (p *parser) beginsFunction() bool {
	if p.tok.kind != tokIdent || !p.tok.first {
		return false
	}
	after := p.peek(2)
	return after[0].is("(") && (after[1].kind == tokIdent || after[1].is(")"))
}

func (p *parser) typeArgs() *TypeArgs {
	a := &TypeArgs{}
	start, errs := p.tok.span, len(p.errs)
	closer := p.list(")", func() bool { return false }, func() (ok bool) {
		switch {
		case a.First == nil:
			if a.First, ok = p.signedInt("a whole number"); ok && p.accept("..") {
				a.Range = true
				a.Second, ok = p.signedInt("a whole number")
			}
		case a.Second == nil:
			a.Second, ok = p.signedInt("a whole number")
		default:
			p.expected(`")"`)
		}
		return ok
	})
	a.Loc = p.from(start)
	if a.First == nil {
		p.emptyList(errs, closer, "a whole number")
		return nil
	}
	return a
}

// fileArgs reads the arguments of a file: a size, media types, or both.
func (p *parser) fileArgs() *TypeArgs {
	const what = `a size such as 10mb, or a media type such as "image/png"`
	a := &TypeArgs{}
	start, errs := p.tok.span, len(p.errs)
	closer := p.list(")", func() bool { return false }, func() bool {
		if p.tok.kind == tokNumber && a.First == nil && a.Media == nil {
			lit, ok := p.literalOf(SizeLit, "a size such as 10mb")
			a.First = lit
			return ok
		}
		expected := what
		if a.First != nil || a.Media != nil {
			expected = `a media type such as "image/png"`
		}
		lit, ok := p.literalOf(StringLit, expected)
		if ok {
			a.Media = append(a.Media, lit)
		}
		return ok
	})
	a.Loc = p.from(start)
	if a.First == nil && a.Media == nil {
		p.emptyList(errs, closer, what)
	}
	return a
}

var (
	plainAttrs = []string{"unique", "index", "tenant", "hidden", "readonly", "created", "updated", "removed"}
	argAttrs   = []string{"min", "max", "pattern", "was", "inverse", "onDelete"}
	indexAttrs = []string{"unique", "index"}
	effects    = []string{"allow", "deny"}
	onDeletes  = []string{"restrict", "cascade", "clear"}
	// indexOptions are the optional arguments of @index.
	indexOptions = []string{"ignoreCase"}
	kindWords    = []string{"session", "apiKey", "anonymous"}
)

// attrs reads the attributes of a field, of an enum's value or of an entity's name.
func (p *parser) attrs() (list []*FieldAttr) {
	for p.tok.kind == tokAt {
		if a := p.fieldAttr(); a != nil {
			list = append(list, a)
		}
	}
	return list
}

// fieldAttr reads an attribute of a field. It returns nil if the attribute is unknown.
func (p *parser) fieldAttr() *FieldAttr {
	at := p.tok
	a := &FieldAttr{Name: attrName(at)}
	if meant := diag.Suggest(at.text, fieldAttrs.Known); meant != "" && !slices.Contains(fieldAttrs.Known, at.text) {
		p.note("E110", at.span, "unknown field attribute @%s%s", at.text, fieldAttrs.Hint(at.text))
		a.Name.Name = meant
	}
	p.next()
	switch name := a.Name.Name; {
	case name == "index" && p.is("(") && !p.tok.first:
		p.inParens(oneOf(indexOptions), func() bool { return p.wordOf(&a.Ref, indexOptions) })
	case slices.Contains(plainAttrs, name):
		if p.is("(") && !p.tok.first {
			also := ""
			if name == "unique" {
				also = ": only @index can ignore case"
			}
			p.note("E100", p.tok.span, "@%s takes no argument%s", name, also)
			p.skip()
		}
	case name == "min" || name == "max":
		p.inParens("a literal", func() (ok bool) { a.Arg, ok = p.literal("a literal"); return ok })
	case name == "pattern" || name == "was":
		p.inParens("a string", func() (ok bool) { a.Arg, ok = p.literalOf(StringLit, "a string"); return ok })
	case name == "inverse":
		p.inParens("a field", func() bool {
			ref, ok := p.ident("a field")
			if ok {
				a.Ref = &ref
			}
			return ok
		})
	case name == "onDelete":
		p.inParens(oneOf(onDeletes), func() bool { return p.wordOf(&a.Ref, onDeletes) })
	default:
		p.unknownFieldAttr(at)
		return nil
	}
	a.Loc = p.from(at.span)
	return a
}

// unknownFieldAttr skips an attribute that is unknown. The rest of the field is read.
func (p *parser) unknownFieldAttr(at token) {
	switch {
	case at.text == "": // reported by the lexer
		p.unread = true
	case slices.Contains(effects, at.text):
		p.note("E110", at.span, "unknown field attribute @%s (entity rules are written @@%s)", at.text, at.text)
		for p.tok.kind != tokEOF && p.tok.kind != tokAtAt && !p.is("}") && !p.tok.first {
			p.skip()
		}
	default:
		p.note("E110", at.span, "unknown field attribute @%s%s", at.text, fieldAttrs.Hint(at.text))
		if p.is("(") && !p.tok.first {
			p.skip()
		}
	}
	p.file.Unread = append(p.file.Unread, p.from(at.span))
}

// entityItem reads an attribute or a policy of an entity.
func (p *parser) entityItem(d *EntityDecl) bool {
	at := p.tok
	word := at.text
	if !slices.Contains(indexAttrs, word) && !slices.Contains(effects, word) {
		if word == "" { // reported by the lexer
			return false
		}
		p.note("E109", at.span, "unknown entity attribute @@%s%s", word, entityAttrs.Hint(word))
		if word = diag.Suggest(word, effects, indexAttrs); word == "" {
			p.unread = true
			return false
		}
	}
	name := attrName(at)
	name.Name = word
	p.next()
	if slices.Contains(indexAttrs, word) {
		a, ok := p.entityAttr(at.span, name)
		if ok {
			d.Attrs = append(d.Attrs, a)
		}
		return ok
	}
	policy, ok := p.policy(at.span, name)
	if ok {
		d.Policies = append(d.Policies, policy)
	}
	return ok
}

func (p *parser) entityAttr(start diag.Span, name Ident) (*EntityAttr, bool) {
	if !p.is("(") {
		p.expected(`"("`)
		return nil, false
	}
	a := &EntityAttr{Name: name}
	errs := len(p.errs)
	closer := p.list(")", p.atIdent, func() bool {
		field, ok := p.ident("a field")
		if !ok {
			return false
		}
		c := Column{field.Node, field, nil}
		if p.isWord("asc", "desc") {
			c.Order = &Ident{Node{p.tok.span}, p.tok.text}
			p.next()
			c.Loc = p.from(c.Loc)
		}
		a.Columns = append(a.Columns, c)
		return true
	})
	if len(a.Columns) == 0 {
		p.emptyList(errs, closer, "a field")
	}
	if p.tok.kind == tokIdent && !p.peek(1)[0].is(":") && (p.isWord("global") || !p.tok.first) {
		if !p.wordOf(&a.Global, []string{"global"}) {
			p.next()
		}
	}
	a.Loc = p.from(start)
	return a, true
}

func (p *parser) policy(start diag.Span, effect Ident) (*PolicyDecl, bool) {
	d := &PolicyDecl{Effect: effect}
	var ok bool
	if d.Actions, ok = p.bareNames("an action", "to", "when"); !ok {
		return nil, false
	}
	if p.acceptWord("to") {
		for {
			k, ok := p.kind(effect, d.Actions)
			if !ok {
				return nil, false
			}
			d.To = append(d.To, k)
			if !p.accept(",") {
				break
			}
		}
	}
	if p.acceptWord("when") {
		d.When = p.rule()
	}
	d.Loc = p.from(start)
	return d, true
}

// kind reads a kind of caller in the policy with this effect on these actions.
func (p *parser) kind(effect Ident, actions []Ident) (Kind, bool) {
	if p.tok.kind != tokIdent {
		p.expectedOneOf(kindWords)
		return Kind{}, false
	}
	k := Kind{Node: Node{p.tok.span}, Name: Ident{Node{p.tok.span}, p.tok.text}}
	if !slices.Contains(kindWords, k.Name.Name) {
		p.expectedOneOf(kindWords)
		k.Name.Name = diag.Suggest(k.Name.Name, kindWords)
	}
	p.next()
	if p.is("(") && k.Name.Name == "" {
		p.skip()
	}
	if p.is("(") && k.Name.Name == "apiKey" {
		p.inParens("a scope", func() bool {
			scope, ok := p.ident("a scope")
			if ok {
				k.Scope = &scope
			}
			return ok
		})
	}
	if p.is("(") && k.Name.Name != "" && !p.tok.first {
		p.kindArgs(k.Name.Name, effect, actions)
	}
	k.Loc = p.from(k.Loc)
	return k, true
}

// kindArgs reports arguments of a kind that has none. Those of session are meant as roles.
func (p *parser) kindArgs(kind string, effect Ident, actions []Ident) {
	open, errs := p.tok.span, len(p.errs)
	if kind != "session" {
		p.note("E100", open, "%s takes no argument", kind)
		p.skip()
		return
	}
	var roles, words []string
	for _, role := range p.roleNames() {
		roles = append(roles, strconv.Quote(role.Name))
	}
	for _, action := range actions {
		words = append(words, action.Name)
	}
	rule := "auth.role in [" + strings.Join(roles, ", ") + "]"
	switch {
	case len(p.errs) > errs: // the list itself is wrong
		return
	case len(roles) == 1:
		rule = "auth.role == " + roles[0]
	}
	p.note("E100", p.from(open), "a role is a condition: write @@%s %s to session when %s",
		effect.Name, strings.Join(words, ", "), rule)
}
