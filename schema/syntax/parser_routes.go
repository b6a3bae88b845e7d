package syntax

import (
	"slices"

	"runner.example/internal/diag"
)

var (
	methods      = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "ANY"}
	settingWords = []string{
		"auth", "rateLimit", "as", "body", "upload", "timeout", "stream", "live", "input", "query", "verify", "csrf", "mints", "cors",
	}
	jobSettings   = []string{"as", "retries", "backoff", "timeout", "concurrency", "schedule"}
	assetSettings = []string{"dir", "spa", "headers", "auth", "rateLimit", "cors"}
	authModes     = []string{"none", "session", "apiKey", "anyOf"}
)

func (p *parser) functionsDecl(keyword diag.Span, doc string) Decl {
	d := &FunctionsDecl{Doc: doc, Keyword: keyword}
	if p.is("(") {
		d.Settings = p.settings(settingWords)
	}
	p.functions("functions", &d.Functions)
	d.Loc = p.from(keyword)
	return d
}

func (p *parser) jobsDecl(keyword diag.Span, doc string) Decl {
	d := &JobsDecl{Doc: doc, Keyword: keyword}
	if p.is("(") {
		d.Settings = p.settings(jobSettings)
	}
	p.functions("jobs", &d.Jobs)
	d.Loc = p.from(keyword)
	return d
}

// functions reads the functions or jobs of a block with that keyword.
func (p *parser) functions(keyword string, all *[]*FunctionDecl) {
	outer := p.inside
	p.inside = keyword
	p.block(false, func() bool {
		f, ok := p.function(keyword == "jobs")
		if f != nil {
			*all = append(*all, f)
		}
		return ok
	})
	p.inside = outer
}

// function reads a function, or a job: that has no attribute and no result.
func (p *parser) function(job bool) (*FunctionDecl, bool) {
	start, what, known := p.tok.span, "a function", settingWords
	f := &FunctionDecl{Doc: p.tok.doc}
	if job {
		what, known = "a job", jobSettings
	}
	if p.tok.kind == tokAt || p.tok.kind == tokAtAt {
		if job {
			p.note("E107", p.tok.span, "@%s is not allowed on a job: only the app enqueues it", p.tok.text)
		} else if p.tok.text != "expose" || p.tok.kind == tokAtAt {
			p.unknownFunctionAttr()
		}
		f.Expose = !job
		p.next()
	}
	var ok bool
	if f.Name, ok = p.ident(what); !ok {
		return nil, false
	}
	if !p.is("(") {
		p.expected(`"("`)
		return nil, false
	}
	if p.opensAlone() {
		f.Loc = p.from(start)
		return f, true
	}
	p.list(")", func() bool { return p.tok.kind == tokIdent && p.peek(1)[0].is(":") }, func() bool {
		param, ok := p.field(true)
		if param != nil {
			f.Params = append(f.Params, param)
		}
		return ok
	})
	ok = true
	if job && p.is("->") {
		p.note("E107", p.tok.span, "a job has no result: nobody waits for it")
		p.next()
		_, ok = p.typeRef(false)
	} else if p.accept("->") {
		f.Result, ok = p.typeRef(false)
	}
	if ok && p.is("(") {
		f.Settings = p.settings(known)
	}
	f.Loc = p.from(start)
	return f, ok
}

func (p *parser) unknownFunctionAttr() {
	if p.tok.text == "" { // reported by the lexer
		return
	}
	marks := "@"
	if p.tok.kind == tokAtAt {
		marks = "@@"
	}
	p.note("E107", p.tok.span, "unknown function attribute %s%s: only @expose is allowed here", marks, p.tok.text)
}

func (p *parser) routesDecl(keyword diag.Span, doc string) *RoutesDecl {
	d := &RoutesDecl{Doc: doc, Keyword: keyword}
	d.Prefix, d.Settings = p.prefixed("the prefix of the group", settingWords)
	if p.lacksBody(keyword) {
		d.Loc = p.from(keyword)
		return d
	}
	outer := p.inside
	p.inside = "routes"
	p.block(false, func() bool { return p.routeItem(d) })
	p.inside = outer
	d.Loc = p.from(keyword)
	return d
}

// prefixed reads `("/prefix", settings)`. The prefix is nil if it could not be read; what describes it in an error.
func (p *parser) prefixed(what string, known []string) (prefix *Literal, settings *RouteSettings) {
	settings = &RouteSettings{Node: Node{p.here()}}
	if !p.is("(") {
		p.expected(`"(" and ` + what)
		return nil, settings
	}
	start, first, errs := p.tok.span, true, len(p.errs)
	closer := p.list(")", p.atSetting, func() bool {
		if !first {
			return p.setting(settings, known)
		}
		first = false
		if p.atSetting() { // the prefix is missing
			p.expected(what)
			return p.setting(settings, known)
		}
		lit, ok := p.literalOf(StringLit, what)
		if ok {
			prefix = lit
		}
		return ok
	})
	settings.Loc = p.from(start)
	if first {
		p.emptyList(errs, closer, what)
	}
	return prefix, settings
}

func (p *parser) assetsDecl(keyword diag.Span, doc string) *AssetsDecl {
	d := &AssetsDecl{Doc: doc, Keyword: keyword}
	d.Prefix, d.Settings = p.prefixed("the prefix of the assets", assetSettings)
	d.Loc = p.from(keyword)
	return d
}

// headers reads `{ "Name": "value", … }`.
func (p *parser) headers() (*HeadersValue, bool) {
	if !p.is("{") {
		p.expected(`headers in braces, such as { "Content-Security-Policy": "default-src 'self'" }`)
		return nil, false
	}
	v, start := &HeadersValue{}, p.tok.span
	p.block(true, func() bool {
		name, ok := p.literalOf(StringLit, "the name of a header in quotes")
		if !ok || !p.expect(":") {
			return false
		}
		value, ok := p.literalOf(StringLit, "the value of the header in quotes")
		if !ok {
			return false
		}
		v.Fields = append(v.Fields, &HeaderField{Node{p.from(name.Loc)}, name, value})
		p.accept(",")
		return true
	})
	v.Loc = p.from(start)
	return v, true
}

func (p *parser) routeItem(d *RoutesDecl) bool {
	switch {
	case p.isWord("routes"):
		keyword, doc := p.tok.span, p.tok.doc
		p.next()
		d.Items = append(d.Items, p.routesDecl(keyword, doc))
		return true
	case p.isWord("assets"):
		keyword, doc := p.tok.span, p.tok.doc
		p.next()
		d.Items = append(d.Items, p.assetsDecl(keyword, doc))
		return true
	case p.isWord(methods...):
		r, ok := p.route(p.tok.text)
		if r != nil {
			d.Items = append(d.Items, r)
		}
		return ok
	case p.tok.kind != tokIdent:
		p.expected("a route or a nested group")
		return false
	}
	word := p.tok.text
	const want = "expected an HTTP method (GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, ANY), routes(...) or assets(...), found %q%s"
	p.note("E106", p.tok.span, want, word, diag.DidYouMean(word, methods, []string{"routes", "assets"}))
	meant := diag.Suggest(word, methods, []string{"routes", "assets"})
	p.unread = p.unread || meant == ""
	after := p.peek(1)[0]
	switch {
	case meant == "routes" && after.is("("):
		keyword, doc := p.tok.span, p.tok.doc
		p.next()
		d.Items = append(d.Items, p.routesDecl(keyword, doc))
		return true
	case meant == "assets" && after.is("("):
		keyword, doc := p.tok.span, p.tok.doc
		p.next()
		d.Items = append(d.Items, p.assetsDecl(keyword, doc))
		return true
	case meant == "routes", meant == "assets":
		p.unread = true
		return false
	}
	// The rest of the line may be a route. Read it as one, so that its path is not read as
	// a comment.
	r, ok := p.route(meant)
	if meant == "" {
		return ok || p.tok.first
	}
	if r != nil {
		d.Items = append(d.Items, r)
	}
	return ok
}

func (p *parser) route(method string) (*RouteDecl, bool) {
	start := p.tok.span
	r := &RouteDecl{Doc: p.tok.doc, Method: Ident{Node{start}, method}}
	if !p.nextPath() {
		p.expected("a path")
		return nil, false
	}
	r.Path = Path{Node{p.tok.span}, p.tok.text}
	p.next()
	if !p.is("->") {
		p.expected(`"->"`)
		if !p.is("=") && !p.is(":") || p.tok.first {
			return nil, false
		}
		p.next() // another token instead of the arrow, perhaps "=>"
		p.accept(">")
	} else {
		p.next()
	}
	var ok bool
	if p.tok.kind == tokIdent && p.tok.first && slices.Contains(methods, p.tok.text) {
		p.expected("a handler")
		return nil, false
	}
	if p.atFileTarget() {
		if r.File, ok = p.fileTarget(); !ok {
			return nil, false
		}
		r.Handler.Loc = r.File.Loc
	} else if r.Handler, ok = p.ident("a handler"); !ok {
		return nil, false
	}
	if p.accept(":") {
		r.Result, ok = p.typeRef(false)
	}
	if ok && p.is("(") {
		r.Settings = p.settings(settingWords)
	}
	r.Loc = p.from(start)
	return r, ok
}

// atFileTarget reports whether `file(Entity.` follows, which is no handler with settings.
func (p *parser) atFileTarget() bool {
	if !p.isWord("file") {
		return false
	}
	next := p.peek(3)
	return next[0].is("(") && next[1].kind == tokIdent && next[2].is(".")
}

func (p *parser) fileTarget() (*FileTarget, bool) {
	start := p.tok.span
	p.next()
	p.next()
	f := &FileTarget{}
	var ok bool
	if f.Entity, ok = p.ident("an entity"); !ok {
		return nil, false
	}
	if !p.expect(".") {
		return nil, false
	}
	if p.tok.first { // the next route follows a target that is being typed
		p.expected("a field")
		return nil, false
	}
	if f.Field, ok = p.ident("a field"); !ok || !p.expect(")") {
		return nil, false
	}
	f.Loc = p.from(start)
	return f, true
}

// ---- settings of routes, groups and functions ----

func (p *parser) atSetting() bool { return p.tok.kind == tokIdent && p.peek(1)[0].is(":") }

// settings reads `(settings)` with these names.
func (p *parser) settings(known []string) *RouteSettings {
	s := &RouteSettings{}
	start, errs := p.tok.span, len(p.errs)
	if p.opensAlone() {
		s.Loc = p.from(start)
		return s
	}
	closer := p.list(")", p.atSetting, func() bool { return p.setting(s, known) })
	s.Loc = p.from(start)
	if len(s.List) == 0 {
		p.emptyList(errs, closer, "a setting")
	}
	return s
}

func (p *parser) setting(list *RouteSettings, known []string) bool {
	start := p.tok.span
	name, ok := p.ident("a setting")
	if !ok {
		return false
	}
	if !slices.Contains(known, name.Name) {
		if name, ok = p.unknownSetting(name, known); !ok {
			return false
		}
	}
	s := &RouteSetting{Name: name}
	list.List = append(list.List, s)
	ok = p.expect(":") && p.settingValue(s)
	s.Loc = p.from(start)
	return ok
}

// settingValue reads the value that belongs to the setting's name.
func (p *parser) settingValue(s *RouteSetting) (ok bool) {
	if p.beginsNextItem() {
		p.expected("a value")
		return false
	}
	switch s.Name.Name {
	case "auth":
		s.Auth, ok = p.authMode()
	case "rateLimit":
		s.Rate, ok = p.rateValue()
	case "as", "input", "query":
		what := "a type"
		if s.Name.Name == "as" {
			what = "a scope"
		}
		var name Ident
		if name, ok = p.ident(what); ok {
			s.Ref = &name
		}
	case "body":
		s.Amount, ok = p.literalOf(SizeLit, "a size such as 64kb")
	case "timeout", "stream", "live", "backoff":
		s.Amount, ok = p.literalOf(DurationLit, "a duration such as 2s")
	case "retries":
		s.Amount, ok = p.literalOf(IntLit, "a number such as 8")
	case "concurrency":
		s.Concurrency, ok = p.concurrency()
	case "schedule":
		s.Schedule, ok = p.schedule()
	case "dir", "spa":
		s.Text, ok = p.literalOf(StringLit, map[string]string{
			"dir": `a directory such as "public"`, "spa": `a file such as "index.html"`,
		}[s.Name.Name])
	case "headers":
		s.Headers, ok = p.headers()
	case "verify":
		s.Verify, ok = p.verify()
	case "upload", "csrf":
		ok = p.wordOf(&s.Word, []string{"on", "off"})
	case "mints":
		ok = p.wordOf(&s.Word, []string{"session"})
	case "cors":
		if p.isWord("none") {
			ok = p.wordOf(&s.Word, []string{"none"})
		} else {
			s.Origins, ok = p.stringList()
		}
	}
	return ok
}

func (p *parser) authMode() (*AuthMode, bool) {
	p.unquote("none, session, apiKey(<scope>) or anyOf(…)")
	if p.tok.kind != tokIdent {
		p.expected("none, session, apiKey(<scope>) or anyOf(…)")
		return nil, false
	}
	m := &AuthMode{Kind: Ident{Node{p.tok.span}, p.tok.text}}
	if !slices.Contains(authModes, m.Kind.Name) {
		p.note("E105", p.tok.span, "unknown auth mode %q: use none, session, apiKey(<scope>) or anyOf(…)", m.Kind.Name)
		if m.Kind.Name = diag.Suggest(m.Kind.Name, authModes); m.Kind.Name == "" {
			p.unread = true
			return nil, false
		}
	}
	p.next()
	m.Loc = m.Kind.Loc
	switch m.Kind.Name {
	case "session":
		if p.is("(") {
			m.Names = p.roleNames()
			m.Broken = len(m.Names) == 0
		}
	case "apiKey":
		if !p.is("(") || p.peek(1)[0].is(")") {
			p.fail("E104", m.Kind.Loc, "apiKey needs a scope: apiKey(<scope>)")
			m.Broken = true
			if p.is("(") {
				p.skip()
			}
			break
		}
		m.Names = p.names("a scope")
		m.Broken = len(m.Names) == 0
	case "anyOf":
		if !p.is("(") {
			p.expected(`"("`)
			m.Broken = true
			return m, false
		}
		errs := len(p.errs)
		closer := p.list(")", p.atIdent, func() bool {
			mode, ok := p.authMode()
			if mode != nil {
				m.Modes = append(m.Modes, mode)
			}
			m.Broken = m.Broken || mode == nil || mode.Broken
			return ok
		})
		if len(m.Modes) == 0 {
			m.Broken = true
			p.emptyList(errs, closer, "an auth mode")
		}
	}
	m.Loc = p.from(m.Kind.Loc)
	return m, true
}

func (p *parser) rateValue() (*RateValue, bool) {
	v := &RateValue{}
	start, errs := p.tok.span, len(p.errs)
	switch {
	case p.acceptWord("none"):
		v.None = true
	case p.is("["):
		v.InList = true
		closer := p.list("]", func() bool { return p.tok.kind == tokNumber || p.atVar() }, func() bool { return p.rate(v) })
		if len(v.Rates) == 0 {
			p.emptyList(errs, closer, "a rate such as 600/minute")
			return nil, true
		}
	default:
		if !p.rate(v) {
			return nil, false
		}
	}
	v.Loc = p.from(start)
	return v, true
}

func (p *parser) rate(v *RateValue) bool {
	start := p.tok.span
	r := &Rate{}
	if p.atVar() {
		name, _ := p.ident("a rate such as 600/minute")
		r.Var = &name
		p.file.VarUses = append(p.file.VarUses, VarUse{Name: name, Rate: r})
	} else if !p.rateCount(r) {
		return false
	}
	if p.acceptWord("by") {
		by, ok := p.ident("key, user, tenant, ip or global")
		if !ok {
			return false
		}
		r.By = &by
	}
	r.Loc = p.from(start)
	v.Rates = append(v.Rates, r)
	return true
}

// concurrency reads `4 by tenant`.
func (p *parser) concurrency() (*ConcurrencyValue, bool) {
	v := &ConcurrencyValue{}
	start := p.tok.span
	var ok bool
	if v.Count, ok = p.literalOf(IntLit, "a number such as 4"); !ok {
		return nil, false
	}
	if p.acceptWord("by") {
		by, ok := p.ident("tenant, user or a parameter of the job")
		if !ok {
			return nil, false
		}
		v.By = &by
	}
	v.Loc = p.from(start)
	return v, true
}

// schedule reads `"0 3 * * *" in "Europe/Berlin"`.
func (p *parser) schedule() (*ScheduleValue, bool) {
	v := &ScheduleValue{}
	start := p.tok.span
	var ok bool
	if v.Cron, ok = p.stringOrVar(`a cron expression such as "0 3 * * *"`); !ok {
		return nil, false
	}
	if p.acceptWord("in") {
		if v.Zone, ok = p.stringOrVar(`a time zone such as "Europe/Berlin"`); !ok {
			return nil, false
		}
	}
	v.Loc = p.from(start)
	return v, true
}

// verify reads `webhook(scheme, SECRET, tolerance: 5m)`.
func (p *parser) verify() (*VerifyValue, bool) {
	start, errs := p.tok.span, len(p.errs)
	if !p.expectWord("webhook") {
		return nil, false
	}
	if !p.is("(") {
		p.expected(`"("`)
		return nil, false
	}
	v, n, good := &VerifyValue{}, 0, true
	closer := p.list(")", p.atIdent, func() (ok bool) {
		switch n++; n {
		case 1:
			v.Scheme, ok = p.ident("a signature scheme")
		case 2:
			v.Secret, ok = p.ident("the name of a secret")
		case 3:
			if ok = p.expectWord("tolerance") && p.expect(":"); ok {
				v.Tolerance, ok = p.literalOf(DurationLit, "a duration such as 5m")
			}
		default:
			p.expected(`")"`)
		}
		good = good && ok
		return ok
	})
	v.Loc = p.from(start)
	switch {
	case n == 0:
		p.emptyList(errs, closer, "a signature scheme")
	case n == 1 && good:
		p.emptyList(errs, closer, `"," and the name of a secret`)
	}
	if n < 2 || !good {
		return nil, true
	}
	return v, true
}
