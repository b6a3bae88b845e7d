package syntax

import (
	"slices"

	"runner.example/internal/diag"
)

var (
	authSettings     = []string{"roles", "user", "tenant", "origins"}
	cookieSettings   = []string{"idle", "absolute", "sameSite"}
	jwtSettings      = []string{"issuer", "audience", "jwks", "algorithms", "tenant", "roles"}
	keySettings      = []string{"prefix", "defaultLifetime", "maxLifetime", "maxGrace", "maxPerTenant"}
	outboundSettings = []string{"allow", "public"}
	moduleSettings   = []string{"fresh", "args", "env", "files", "startTimeout", "stub"}
	pythonSettings   = []string{"wasm", "env", "startTimeout"}
	sessionKinds     = []string{"cookie", "jwt"}
	scopeAttrs       = []string{"grant", "issue", "manage", "allTenants"}
	cookieAttrs      = []string{"manage"}
)

func (p *parser) outboundDecl(keyword diag.Span, doc string) Decl {
	d := &OutboundDecl{Doc: doc, Keyword: keyword}
	p.block(true, func() bool {
		if p.isWord("allow") && p.peek(1)[0].is(":") {
			s, ok := p.stringsSetting()
			d.Settings = append(d.Settings, s)
			return ok
		}
		return p.settingItem(&d.Settings, outboundSettings)
	})
	d.Loc = p.from(keyword)
	return d
}

// moduleDecl reads a module block. A module name that is not an identifier is written in quotes.
func (p *parser) moduleDecl(keyword diag.Span, doc string) Decl {
	d := &ModuleDecl{Doc: doc, Keyword: keyword}
	if p.tok.kind == tokString {
		lit, ok := p.literalOf(StringLit, "the module's name")
		if !ok {
			return nil
		}
		d.Name, d.Quoted = Ident{lit.Node, lit.Text}, lit
	} else {
		var ok bool
		if p.tok.kind == tokIdent {
			d.Name, ok = p.joined(p.word()), true
		} else if d.Name, ok = p.ident("the module's name"); !ok {
			return nil
		}
	}
	p.moduleBlock(&d.Settings, moduleSettings)
	d.Loc = p.from(keyword)
	return d
}

func (p *parser) pythonDecl(keyword diag.Span, doc string) Decl {
	d := &PythonDecl{Doc: doc, Keyword: keyword}
	p.moduleBlock(&d.Settings, pythonSettings)
	d.Loc = p.from(keyword)
	return d
}

// moduleBlock reads the block of a module, whose env is a map.
func (p *parser) moduleBlock(settings *[]*Setting, known []string) {
	p.block(true, func() bool {
		if p.isWord("env") && p.peek(2)[0].is(":") && p.peek(2)[1].is("{") {
			return p.mapItem(settings)
		}
		return p.settingItem(settings, known)
	})
}

// mapItem reads `name: { NAME: value, … }` and an optional comma.
func (p *parser) mapItem(settings *[]*Setting) bool {
	name, _ := p.ident("a setting")
	p.accept(":")
	m, start := &MapSetting{}, p.tok.span
	p.block(true, func() bool {
		entry := &Setting{}
		var ok bool
		if entry.Name, ok = p.ident("a name"); !ok || !p.expect(":") {
			return false
		}
		v, ok := p.value()
		if ok {
			entry.Value = v
		}
		entry.Loc = p.from(entry.Name.Loc)
		m.Entries = append(m.Entries, entry)
		p.accept(",")
		return ok
	})
	m.Loc = p.from(start)
	s := &Setting{Name: name, Value: m}
	s.Loc = p.from(name.Loc)
	*settings = append(*settings, s)
	p.accept(",")
	return true
}

// stringsSetting reads `name: ["…", …]`.
func (p *parser) stringsSetting() (*Setting, bool) {
	name, _ := p.ident("a setting")
	s := &Setting{Name: name}
	p.accept(":")
	list, ok := p.stringList()
	if ok {
		s.Value = list
	}
	s.Loc = p.from(name.Loc)
	p.accept(",")
	return s, ok
}

func (p *parser) stringList() (*ListSetting, bool) {
	if !p.is("[") {
		p.expected("a list of strings")
		return nil, false
	}
	v := &ListSetting{}
	start, errs := p.tok.span, len(p.errs)
	closer := p.list("]", func() bool { return p.tok.kind == tokString || p.atVar() }, func() bool {
		lit, ok := p.stringOrVar("a string")
		if ok {
			v.Elems = append(v.Elems, lit)
		}
		return ok
	})
	v.Loc = p.from(start)
	if len(v.Elems) == 0 {
		p.emptyList(errs, closer, "a string")
	}
	return v, true
}

func (p *parser) authDecl(keyword diag.Span, doc string) Decl {
	d := &AuthDecl{Doc: doc, Keyword: keyword}
	p.block(true, func() bool {
		if p.isWord("session") && !p.peek(1)[0].is(":") {
			s := p.sessionDecl()
			d.Sessions = append(d.Sessions, s)
			return true
		}
		return p.settingItem(&d.Settings, authSettings)
	})
	d.Loc = p.from(keyword)
	return d
}

func (p *parser) sessionDecl() *SessionDecl {
	start := p.tok
	p.next()
	d := &SessionDecl{Doc: start.doc, Kind: Ident{Node: Node{p.here()}}}
	if p.tok.kind != tokIdent {
		p.expectedWith(oneOf(sessionKinds), ": write session cookie { idle: 30m, absolute: 12h }")
	} else {
		d.Kind = Ident{Node{p.tok.span}, p.tok.text}
		if !slices.Contains(sessionKinds, d.Kind.Name) {
			p.expectedOneOf(sessionKinds)
			d.Kind.Name = diag.Suggest(d.Kind.Name, sessionKinds)
		}
		p.next()
	}
	known := slices.Concat(cookieSettings, jwtSettings)
	switch d.Kind.Name {
	case "cookie":
		known = cookieSettings
		if p.is("(") {
			p.inParens("the cookie's name", func() (ok bool) {
				d.Cookie, ok = p.literalOf(StringLit, "the cookie's name")
				return ok
			})
		}
	case "jwt":
		known = jwtSettings
	default:
		if p.is("(") {
			p.skip()
		}
	}
	p.block(true, func() bool {
		if p.tok.kind == tokAt || p.tok.kind == tokAtAt {
			return p.sessionAttr(d)
		}
		return p.settingItem(&d.Settings, known)
	})
	d.Loc = p.from(start.span)
	p.accept(",")
	return d
}

// sessionAttr reads `@manage when rule` and an optional comma.
func (p *parser) sessionAttr(s *SessionDecl) bool {
	at := p.tok
	if at.text == "" { // reported by the lexer
		return false
	}
	word := at.text
	if at.kind == tokAtAt || !slices.Contains(cookieAttrs, word) {
		word = p.unknownAttr("a session block", "session attribute", cookieAttrs)
	}
	if word == "" {
		return false
	}
	if s.Kind.Name == "jwt" {
		p.note("E324", at.span,
			"@manage belongs to `session cookie`: sessions of a provider are not stored here, so they cannot be listed or revoked")
	}
	d, ok := p.callerRule(word)
	s.Manages = append(s.Manages, d)
	p.accept(",")
	return ok
}

// callerRule reads @issue or @manage with its rule.
func (p *parser) callerRule(word string) (*CallerRuleDecl, bool) {
	start := p.tok.span
	p.next()
	d := &CallerRuleDecl{Word: word}
	if !p.expectWord("when") {
		d.When = &BadExpr{Node{p.here()}}
		d.Loc = p.from(start)
		return d, false
	}
	d.When = p.rule()
	d.Loc = p.from(start)
	return d, true
}

// settingItem reads `name: value` in a block and an optional comma.
func (p *parser) settingItem(settings *[]*Setting, known []string) bool {
	start := p.tok.span
	name, ok := p.ident("a setting")
	if !ok {
		return false
	}
	keep := slices.Contains(known, name.Name)
	if !keep {
		name, keep = p.unknownSetting(name, known)
	}
	if !p.expect(":") {
		return false
	}
	v, ok := p.value()
	if !keep {
		p.accept(",")
		return ok
	}
	s := &Setting{Name: name}
	if ok {
		s.Value = p.withVars(name.Name, v)
	}
	s.Loc = p.from(start)
	*settings = append(*settings, s)
	if ok {
		p.accept(",")
	}
	return ok
}

// unknownSetting reports a setting that is not among known. It returns the setting under
// the name that was probably meant, if there is one.
func (p *parser) unknownSetting(name Ident, known []string) (Ident, bool) {
	p.note("E103", name.Loc, "unknown setting %q%s", name.Name, diag.Vocabulary{Known: known}.Hint(name.Name))
	if s := diag.Suggest(name.Name, known); s != "" {
		name.Name = s
		return name, true
	}
	p.unread = true
	return name, false
}

func (p *parser) value() (SettingValue, bool) {
	switch {
	case p.beginsNextItem():
		p.expected("a value")
		return nil, false
	case p.is("["):
		v := &ListSetting{}
		start := p.tok.span
		p.list("]", p.atValue, func() bool { return p.valueInto(&v.Elems) })
		v.Loc = p.from(start)
		return v, true
	case p.tok.kind == tokIdent && !p.isWord("true", "false"):
		name := p.word() // the caller joins it: it may be a role
		v := &NameSetting{Node: name.Node, Name: name}
		if p.is("(") {
			v.Call = true
			p.list(")", p.atValue, func() bool { return p.valueInto(&v.Args) })
			v.Loc = p.from(name.Loc)
		}
		return v, true
	}
	lit, ok := p.literal("a value")
	if !ok {
		return nil, false
	}
	return lit, true
}

func (p *parser) valueInto(values *[]SettingValue) bool {
	v, ok := p.value()
	if name, is := v.(*NameSetting); is && !name.Call {
		name.Name = p.joined(name.Name)
		name.Loc = name.Name.Loc
	}
	if ok {
		*values = append(*values, v)
	} else {
		p.file.Lost = true // perhaps a role
	}
	return ok
}

func (p *parser) apiKeysDecl(keyword diag.Span, doc string) Decl {
	d := &APIKeysDecl{Doc: doc, Keyword: keyword}
	known := append(slices.Clip(keySettings), "scopes")
	p.block(true, func() bool {
		if p.isWord("scopes") {
			d.Blocks = append(d.Blocks, p.scopesBlock())
			return true
		}
		// A misspelled "scopes" is followed by a block.
		if p.tok.kind == tokIdent && diag.Suggest(p.tok.text, known) == "scopes" {
			p.note("E103", p.tok.span, "unknown setting %q%s", p.tok.text, diag.DidYouMean(p.tok.text, known))
			d.Blocks = append(d.Blocks, p.scopesBlock())
			return true
		}
		return p.settingItem(&d.Settings, keySettings)
	})
	d.Loc = p.from(keyword)
	return d
}

func (p *parser) scopesBlock() *ScopesBlock {
	start := p.tok.span
	b := &ScopesBlock{Name: Ident{Node{start}, "scopes"}}
	p.next()
	p.expect(":")
	if p.lacksBody(start) {
		return b
	}
	p.block(false, func() bool {
		if len(b.Scopes) > 0 && !p.prev.is(",") {
			p.expected(`"," or "}"`)
			if p.tok.kind != tokIdent {
				return false
			}
		}
		s, ok := p.scope()
		if s != nil {
			b.Scopes = append(b.Scopes, s)
		}
		return ok
	})
	b.Loc = p.from(start)
	p.accept(",")
	return b
}

func (p *parser) scope() (*ScopeDecl, bool) {
	start, doc := p.tok.span, p.tok.doc
	name, ok := p.ident("a scope")
	if !ok || !p.expect(":") {
		return nil, false
	}
	s := &ScopeDecl{Doc: doc, Name: name}
	if p.tok.kind == tokAt && p.tok.text != "system" {
		p.unknownAttr("a scope", "scope attribute", []string{"system"})
	}
	if p.tok.kind == tokAt {
		p.next()
		p.inParens("a string", func() (ok bool) { s.System, ok = p.literalOf(StringLit, "a string"); return ok })
	} else {
		p.expected(`@system("…")`)
		for p.tok.kind != tokEOF && !p.tok.first && !p.is("{") && !p.is("}") && !p.is(",") {
			p.skip()
		}
	}
	if !p.lacksBody(start) {
		p.block(false, func() bool { return p.scopeItem(s) })
	}
	s.Loc = p.from(start)
	p.accept(",")
	return s, true
}

// unknownAttr reports the current attribute in a block, and returns the one that was probably
// meant.
func (p *parser) unknownAttr(block, what string, known []string) string {
	marks := "@"
	if p.tok.kind == tokAtAt {
		marks = "@@"
	}
	hint := diag.DidYouMean(p.tok.text, known)
	if slices.Contains(known, p.tok.text) {
		hint = " (in " + block + " it is written @" + p.tok.text + ")"
	}
	p.note("E102", p.tok.span, "unknown %s %s%s%s", what, marks, p.tok.text, hint)
	if slices.Contains(known, p.tok.text) {
		return p.tok.text
	}
	meant := diag.Suggest(p.tok.text, known)
	p.unread = p.unread || meant == ""
	return meant
}

func (p *parser) scopeItem(s *ScopeDecl) bool {
	at := p.tok
	if at.kind != tokAt && at.kind != tokAtAt {
		p.expected("@grant, @issue, @manage or @allTenants")
		return false
	}
	if at.text == "" { // reported by the lexer
		return false
	}
	word := at.text
	if at.kind == tokAtAt || !slices.Contains(scopeAttrs, word) {
		word = p.unknownAttr("a scope", "scope attribute", scopeAttrs)
	}
	switch word {
	case "grant":
		p.next()
		g, ok := p.grant(at.span)
		if ok {
			s.Grants = append(s.Grants, g)
		}
		return ok
	case "issue", "manage":
		d, ok := p.callerRule(word)
		switch {
		case !ok:
		case word == "issue":
			s.Issues = append(s.Issues, d)
		default:
			s.Manages = append(s.Manages, d)
		}
		return ok
	case "allTenants":
		p.next()
		s.AllTenants = append(s.AllTenants, at.span)
		return true
	}
	return false
}

func (p *parser) grant(start diag.Span) (*GrantDecl, bool) {
	g := &GrantDecl{}
	var ok bool
	if g.Actions, ok = p.bareNames("an action", "on"); !ok {
		return nil, false
	}
	if !p.expectWord("on") {
		return nil, false
	}
	if g.Entities, ok = p.bareNames("an entity"); !ok {
		return nil, false
	}
	if p.acceptWord("fields") {
		g.HasFields = true
		if !p.is("(") {
			p.expected(`"("`)
			return nil, false
		}
		g.Fields = p.names("a field")
	}
	if p.acceptWord("where") {
		g.Where = p.rule()
	}
	g.Loc = p.from(start)
	return g, true
}
