package compiler

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"runner.example/internal/tree"
	"runner.example/schema"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// The limits of assets.
const (
	maxAssets        = 32
	maxAssetDirBytes = 180 // a release adds a few bytes for the name of the listing
	maxHeaders       = 32
	maxHeaderBytes   = 4 << 10 // of all names and values
)

// ownHeaders are the headers that only the server sets, in lower case. ownHeaderPrefixes are prefixes of further ones.
var (
	ownHeaders = []string{
		"accept-ranges", "age", "allow", "alt-svc", "cache-control", "connection", "content-encoding", "content-length",
		"content-location", "content-range", "content-type", "date", "etag", "expires", "keep-alive", "last-modified", "location",
		"server", "set-cookie", "trailer", "transfer-encoding", "upgrade", "vary", "www-authenticate", "x-request-id",
	}
	ownHeaderPrefixes = []string{"access-control-", "ratelimit", "proxy-"}
)

// checkAssets checks a directory of assets, at the top level or in a group. Assets.CheckFiles checks its files later.
func (c *routeChecker) checkAssets(d *syntax.AssetsDecl, in group) {
	c.settings.checkSettings(d.Settings, onAssets)
	set := in.settings.with(d.Settings)
	a := schema.Assets{
		Limits: limitsOf(set), CORS: set.origins(), CSRFOff: isWord(set.csrf, "off"), Auth: schema.Auth{None: true}, Doc: d.Doc, Span: d.Loc,
	}
	c.assetPath(&a, d, in)
	switch {
	case set.dir == nil && d.Prefix != nil:
		c.Errorf("E570", d.Keyword, `assets without a directory: add dir, such as dir: "public"`)
	case set.dir != nil && set.dir.Text != nil:
		c.assetDir(&a, set.dir.Text)
	}
	if set.spa != nil && set.spa.Text != nil {
		c.assetSPA(&a, set.spa.Text)
	}
	if set.headers != nil && set.headers.Headers != nil {
		c.assetHeaders(&a, set.headers)
	}
	if set.verify != nil {
		c.Errorf("E574", d.Keyword,
			"assets are not allowed in a group with verify:, which checks the bodies of requests: move them out of the group, or protect them with auth:")
	}
	if set.auth != nil {
		if auth, ok := c.effectiveAuth(set, d.Keyword, "E400", "assets"); ok {
			a.Auth = auth
			c.checkAccess(set, auth, d.Keyword, "assets")
		}
	}
	if len(c.schema.Assets) == maxAssets {
		c.Errorf("E571", d.Keyword, "more than %d assets", maxAssets)
	}
	for i := range c.schema.Assets {
		c.warnUnguardedDir(&c.schema.Assets[i], &a)
		c.warnUnguardedDir(&a, &c.schema.Assets[i])
	}
	c.schema.Assets = append(c.schema.Assets, a)
}

// warnUnguardedDir warns if the files of a directory with auth can also be loaded without a credential, at another path.
func (c *routeChecker) warnUnguardedDir(guarded, open *schema.Assets) {
	if guarded.Auth.None || !open.Auth.None || guarded.Dir == "" || guarded.Path == "" || open.Path == "" {
		return
	}
	rest, inside := strings.CutPrefix(guarded.Dir+"/", open.Dir+"/")
	path := strings.TrimSuffix(open.Path, "/") + "/" + rest
	if open.Dir == "" || !inside || path == guarded.Path+"/" { // of two directories, the one with the longer path answers
		return
	}
	c.Warnf("W577", guarded.DirSpan, "the files of %s need a credential at %s, but not at %s: move them out of the directory %s",
		guarded.Dir, guarded.Path, path, open.Dir)
}

// assetPath checks the path of a directory.
func (c *routeChecker) assetPath(a *schema.Assets, d *syntax.AssetsDecl, in group) {
	if d.Prefix == nil {
		return
	}
	at := d.Prefix.Loc
	segments, ok := c.paths.checkPrefix(d.Prefix, in.prefix)
	if !ok || in.broken {
		return
	}
	all := append(slices.Clip(in.prefix), segments...)
	a.Path = pathText(all)
	for _, s := range all {
		if s.kind != static {
			c.Errorf("E571", at, "the path %s has the parameter :%s, and files have fixed paths: move the assets out of the group, or remove the parameter",
				a.Path, s.text)
			return
		}
	}
	if len(a.Path) > maxPathBytes {
		c.Errorf("E425", at, "the path %s is longer than 1,024 bytes", shorten(a.Path))
	}
	for _, reserved := range []string{"/_call", schema.FilesPath, "/_health"} {
		if a.Path == reserved || strings.HasPrefix(a.Path, reserved+"/") {
			c.Errorf("E426", at, "the path is under the reserved prefix %q", reserved)
		}
	}
	for i := range c.schema.Assets {
		if first := &c.schema.Assets[i]; first.Path == a.Path {
			c.Errorf("E571", at, "the path %s already has the assets at %s: a path has one directory", a.Path, report.At(at, first.Span))
			return
		}
	}
}

func (c *routeChecker) assetDir(a *schema.Assets, lit *syntax.Literal) {
	problem := tree.CheckPath(lit.Text)
	switch {
	case problem != "":
		c.Errorf("E570", lit.Loc, "the directory of assets %s: write a path relative to the app directory, such as %q",
			problem, cmp.Or(plainPath(lit.Text), "public"))
	case len(lit.Text) > maxAssetDirBytes:
		c.Errorf("E570", lit.Loc, "the path of the directory has %d bytes, and the limit is %d", len(lit.Text), maxAssetDirBytes)
	case !utf8.ValidString(lit.Text) || strings.ContainsFunc(lit.Text, func(r rune) bool { return !unicode.IsPrint(r) }):
		c.Errorf("E570", lit.Loc, "the path of the directory has control characters or is not UTF-8: name another directory")
	case lit.Text == "build":
		c.Errorf("E570", lit.Loc, "the directory build is for the modules of the app: name another one, such as \"public\"")
	default:
		a.Dir, a.DirSpan = lit.Text, lit.Loc
	}
}

func (c *routeChecker) assetSPA(a *schema.Assets, lit *syntax.Literal) {
	if problem := tree.CheckPath(lit.Text); problem != "" {
		c.Errorf("E572", lit.Loc, "the file of spa %s: write a path in the directory, such as %q",
			problem, cmp.Or(plainPath(lit.Text), "index.html"))
		return
	}
	a.SPA, a.SPASpan = lit.Text, lit.Loc
}

func (c *routeChecker) assetHeaders(a *schema.Assets, s *syntax.RouteSetting) {
	taken, bytes := seenNames{}, 0
	for _, f := range s.Headers.Fields {
		name, value := f.Name.Text, f.Value.Text
		lower := strings.ToLower(name)
		first, twice := taken.add(syntax.Ident{Node: f.Name.Node, Name: lower})
		switch {
		case name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isToken(r) }):
			c.Errorf("E573", f.Name.Loc, "%q is not a valid header name: use letters, digits and -, as in \"Content-Security-Policy\"", name)
		case twice:
			c.Errorf("E573", f.Name.Loc, "header %s is already set at %s", name, report.At(f.Name.Loc, first))
		case slices.Contains(ownHeaders, lower) ||
			slices.ContainsFunc(ownHeaderPrefixes, func(prefix string) bool { return strings.HasPrefix(lower, prefix) }):
			c.Errorf("E573", f.Name.Loc, "header %s is set by the server%s", name, headerRemedy(lower))
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
			c.Errorf("E573", f.Value.Loc, "the value of %s has a line break or another character that a header cannot have: write printable ASCII", name)
		default:
			a.Headers = append(a.Headers, schema.Header{Name: name, Value: strings.TrimSpace(value)})
			bytes += len(name) + len(value)
		}
	}
	if n := len(s.Headers.Fields); n > maxHeaders {
		c.Errorf("E573", s.Name.Loc, "headers has %d entries, and the limit is %d", n, maxHeaders)
	}
	if bytes > maxHeaderBytes {
		c.Errorf("E573", s.Name.Loc, "headers has %d bytes, and the limit is %d", bytes, maxHeaderBytes)
	}
}

// headerRemedy returns the end of a message about a header that only the server sets: what to write instead.
func headerRemedy(lower string) string {
	switch {
	case strings.HasPrefix(lower, "access-control-"):
		return ": write cors:"
	case strings.HasPrefix(lower, "ratelimit"):
		return ": write rateLimit:"
	case lower == "cache-control" || lower == "expires":
		return ": it follows from the names of the files and from auth:"
	}
	return ": remove it"
}

// isToken reports whether a header's name may have the character (RFC 9110, section 5.6.2).
func isToken(r rune) bool {
	return r < utf8.RuneSelf && (syntax.IsLetter(r) || syntax.IsDigit(r) || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}
