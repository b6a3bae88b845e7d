package languageserver

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"go.lsp.dev/protocol"

	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/schema/syntax"
	"runner.example/schema/vars"
)

// maxCompletions limits an answer; the editor asks again when more is typed.
const maxCompletions = 300

// Completion implements protocol.Server.
func (s *Server) Completion(_ context.Context, params *protocol.CompletionParams) (protocol.CompletionResult, error) {
	list := &protocol.CompletionList{Items: []protocol.CompletionItem{}}
	snap, f := s.located(params.TextDocument)
	if f == nil {
		return list, nil
	}
	c := &completer{server: s, snapshot: snap, cursor: newCursor(f, f.offset(params.Position)), list: list, seen: map[string]bool{}}
	if !c.inComment() {
		c.complete()
	}
	return list, nil
}

// completer collects what may stand at a cursor.
type completer struct {
	server *Server
	*snapshot
	*cursor
	list *protocol.CompletionList
	seen map[string]bool
}

// add offers a text, if it begins with what is typed.
func (c *completer) add(label string, k protocol.CompletionItemKind, about string) {
	c.addText(label, label, k, about)
}

// addText offers an entry that inserts text.
func (c *completer) addText(label, insert string, k protocol.CompletionItemKind, about string) {
	if c.seen[label] || !strings.HasPrefix(strings.ToLower(insert), strings.ToLower(c.prefix)) {
		return
	}
	c.seen[label] = true
	if len(c.list.Items) == maxCompletions {
		c.list.IsIncomplete = true
		return
	}
	order := strconv.Itoa(10000 + len(c.list.Items))
	item := protocol.CompletionItem{
		Label: label, Kind: k, SortText: protocol.NewOptional(order), FilterText: protocol.NewOptional(insert),
		TextEdit: &protocol.TextEdit{Range: c.between(c.start, c.offset), NewText: insert},
	}
	if about != "" {
		item.Detail = protocol.NewOptional(about)
	}
	c.list.Items = append(c.list.Items, item)
}

func (c *completer) words(words []string, about map[string]string) {
	for _, w := range words {
		c.add(w, protocol.CompletionItemKindKeyword, about[w])
	}
}

// declared offers the names of a kind.
func (c *completer) declared(k kind, owner string) {
	for _, d := range c.index.order {
		if d.kind == k && d.owner == owner {
			c.add(d.name, completionKind(k), c.about(d))
		}
	}
}

// about describes a declaration in a few words.
func (c *completer) about(d *declaration) string {
	if f, ok := d.node.(*syntax.FieldDecl); ok && f.Type != nil {
		return d.file.slice(f.Type.Loc)
	}
	if first, _, _ := strings.Cut(d.doc, "\n"); first != "" {
		return first
	}
	return string(d.kind)
}

func completionKind(k kind) protocol.CompletionItemKind {
	switch k {
	case kindEntity:
		return protocol.CompletionItemKindClass
	case kindEnum:
		return protocol.CompletionItemKindEnum
	case kindType:
		return protocol.CompletionItemKindStruct
	case kindField, kindParam:
		return protocol.CompletionItemKindField
	case kindValue, kindRole:
		return protocol.CompletionItemKindEnumMember
	case kindHandler:
		return protocol.CompletionItemKindFunction
	}
	return protocol.CompletionItemKindConstant
}

// marked puts the marks of attributes before words.
func marked(mark string, words []string, about map[string]string) ([]string, map[string]string) {
	var all []string
	explained := map[string]string{}
	for _, w := range words {
		all = append(all, mark+w)
		explained[mark+w] = about[w]
	}
	return all, explained
}

func (c *completer) attrs(mark string, words []string, about map[string]string) {
	c.words(marked(mark, words, about))
}

// complete offers what may stand in the innermost brackets.
func (c *completer) complete() {
	grammar, top := &c.grammar, c.top()
	item := c.item(top)
	switch top.block {
	case inFile:
		c.inFile(item)
	case inAuth:
		c.inAuth(item)
	case inCookie:
		c.inSession(item, grammar.Cookie)
	case inJWT:
		c.inSession(item, grammar.JWT)
	case inAPIKeys:
		c.settings(item, append(slices.Clone(grammar.APIKeys), "scopes"))
	case inOutbound:
		c.settings(item, grammar.Outbound)
	case inModule:
		c.settings(item, grammar.Module)
	case inPython:
		c.settings(item, grammar.Python)
	case inScopes:
		if len(item) == 2 && !c.fresh {
			c.addText("@system", `@system("`+item[0]+`") { }`, protocol.CompletionItemKindKeyword, "the stable id of the capability")
		}
	case inScope:
		c.inScope(item)
	case inEnum:
		if !c.fresh {
			c.attrs("@", []string{"was", "removed"}, fieldAttrs)
		}
	case inType, inParams:
		c.inField(item)
	case inEntity:
		c.inEntity(item)
	case inFunctions, inJobs:
		c.inFunctions(item)
	case inRoutes:
		c.inRoutes(item)
	case inSettings:
		c.routeSetting(item, grammar.RouteSettings, routeSettings)
	case inJobSettings:
		c.routeSetting(item, grammar.JobSettings, jobSettings)
	case inAssetSettings:
		c.routeSetting(item, grammar.AssetSettings, assetSettings)
	case inScopeNames:
		c.declared(kindScope, "")
	case inRoleNames:
		c.declared(kindRole, "")
	case inModes:
		c.modes()
	case inWebhook:
		c.webhook(item)
	case inColumns:
		c.columns()
	case inInverse:
		c.inverse()
	case inOnDelete:
		c.words(grammar.OnDelete, nil)
	case inIndex:
		c.words([]string{"ignoreCase"}, nil)
	case inFields:
		row, _ := c.row()
		c.declared(kindField, row)
	case inExists:
		if words := c.item(top); len(words) == 0 {
			c.declared(kindEntity, "")
		} else if len(words) == 1 {
			c.words([]string{"where"}, nil)
		} else {
			c.rule()
		}
	case inRule:
		c.rule()
	}
}

func last(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

func (c *completer) inFile(item []string) {
	if c.fresh {
		c.words(c.grammar.Declarations, declarations)
	} else if len(item) == 3 && item[0] == "var" {
		c.words(vars.Types, nil)
	}
}

func (c *completer) inAuth(item []string) {
	switch {
	case !c.fresh && len(item) >= 2 && (item[0] == "user" || item[0] == "tenant") && item[1] == ":":
		c.declared(kindEntity, "")
	case !c.fresh && last(item) == "session":
		c.words([]string{"cookie", "jwt"}, nil)
	case c.fresh:
		c.addText("session cookie", "session cookie { idle: 30m, absolute: 12h }", protocol.CompletionItemKindKeyword, "sessions of this server")
		c.addText("session jwt", "session jwt { issuer: \"\", audience: \"\", jwks: \"\" }", protocol.CompletionItemKindKeyword, "tokens of an identity provider")
		c.names(c.grammar.Auth)
	}
}

// names offers settings.
func (c *completer) names(words []string) {
	for _, w := range words {
		c.addText(w, w+": ", protocol.CompletionItemKindProperty, "setting")
	}
}

func (c *completer) settings(item, words []string) {
	switch {
	case c.fresh || c.comma || len(item) == 0:
		c.names(words)
	case last(item) == ":" && slices.Contains([]string{"fresh", "public"}, item[0]):
		c.words([]string{"true", "false"}, nil)
	}
}

func (c *completer) inSession(item, words []string) {
	switch {
	case slices.Contains(item, "when"):
		c.rule()
	case last(item) == "@manage":
		c.words([]string{"when"}, nil)
	case len(item) > 1 && item[0] == "sameSite" && last(item) == ":":
		c.words([]string{"lax", "strict"}, nil)
	default:
		c.settings(item, words)
		if c.fresh || strings.HasPrefix(c.prefix, "@") {
			c.attrs("@", []string{"manage"}, scopeAttrs)
		}
	}
}

func (c *completer) inScope(item []string) {
	if c.fresh || strings.HasPrefix(c.prefix, "@") {
		c.attrs("@", c.grammar.ScopeAttrs, scopeAttrs)
	}
	switch {
	case len(item) == 0:
	case item[0] != "@grant" && slices.Contains(item, "when"), slices.Contains(item, "where"):
		c.rule()
	case item[0] == "@issue" || item[0] == "@manage":
		c.words([]string{"when"}, nil)
	case item[0] != "@grant":
	case slices.Contains(item, "fields"):
		c.words([]string{"where"}, nil)
	case last(item) == "on" || c.comma && slices.Contains(item, "on"):
		c.declared(kindEntity, "")
	case slices.Contains(item, "on"):
		c.words([]string{"fields", "where"}, nil)
	default:
		c.words(compiler.AllWords().Actions, nil)
		if len(item) > 1 && !c.comma {
			c.words([]string{"on"}, nil)
		}
	}
}

// types offers all that can be the type of a field.
func (c *completer) types() {
	for _, t := range schema.BuiltinTypes {
		c.add(t, protocol.CompletionItemKindTypeParameter, "built-in type")
	}
	c.declared(kindEnum, "")
	c.declared(kindEntity, "")
	c.declared(kindType, "")
}

// inField completes a field or a parameter.
func (c *completer) inField(item []string) {
	switch {
	case len(item) < 2 || item[1] != ":" && item[1] != "?":
	case last(item) == ":":
		c.types()
	case last(item) == "=":
		c.defaults(item)
	case !c.fresh && c.top().block != inParams || c.top().block == inParams && !c.comma:
		c.attrs("@", c.grammar.FieldAttrs, fieldAttrs)
	}
}

// defaults offers the values of the type of a field.
func (c *completer) defaults(item []string) {
	i := slices.Index(item, ":")
	switch typ := item[i+1]; typ {
	case "bool":
		c.words([]string{"true", "false"}, nil)
	case "time", "date":
		c.words([]string{"now"}, nil)
	default:
		c.declared(kindValue, typ)
	}
}

func (c *completer) inEntity(item []string) {
	grammar := &c.grammar
	if c.fresh || strings.HasPrefix(c.prefix, "@@") {
		c.attrs("@@", grammar.EntityAttrs, entityAttrs)
	}
	if len(item) == 0 || item[0] != "@@allow" && item[0] != "@@deny" {
		c.inField(item)
		return
	}
	to := slices.Index(item, "to")
	switch {
	case slices.Contains(item, "when"):
		c.rule()
	case to >= 0 && (to == len(item)-1 || c.comma):
		c.words(grammar.Callers, nil)
	case to >= 0:
		c.words([]string{"when"}, nil)
	default:
		c.words(compiler.AllWords().PolicyActions, nil)
		if len(item) > 1 && !c.comma {
			c.words([]string{"to", "when"}, nil)
		}
	}
}

func (c *completer) inFunctions(item []string) {
	switch {
	case last(item) == "->":
		c.types()
	case c.fresh && c.top().block == inFunctions:
		c.addText("@expose", "@expose ", protocol.CompletionItemKindKeyword, "clients can call the function")
		c.handlers()
	case c.fresh:
		c.handlers()
	case last(item) == "@expose":
		c.handlers()
	}
}

// handlers offers the names of handlers, those without a route first.
func (c *completer) handlers() {
	used := map[string]bool{}
	for _, e := range c.index.endpoints {
		used[e.handler.Name] = true
	}
	names := handlerNames(c.server.sourcesOf(c.dir))
	for _, name := range names {
		if !used[name] {
			c.add(name, protocol.CompletionItemKindFunction, "handler without a route")
		}
	}
	for _, name := range names {
		c.add(name, protocol.CompletionItemKindFunction, "handler")
	}
	for _, e := range c.index.endpoints {
		c.add(e.handler.Name, protocol.CompletionItemKindFunction, "handler of "+e.title)
	}
}

func (c *completer) inRoutes(item []string) {
	switch {
	case last(item) == "->":
		c.handlers()
	case last(item) == ":":
		c.types()
	case c.fresh:
		c.words(c.grammar.Methods, nil)
		c.addText("routes", `routes("/`, protocol.CompletionItemKindKeyword, "a group of routes")
		c.addText("assets", `assets("/", dir: "`, protocol.CompletionItemKindKeyword, declarations["assets"])
	}
}

func (c *completer) modes() {
	c.add("none", protocol.CompletionItemKindKeyword, "any client")
	c.add("session", protocol.CompletionItemKindKeyword, "a signed-in user; session(role) one with the role")
	for _, scope := range c.index.names(kindScope, "") {
		c.add("apiKey("+scope+")", protocol.CompletionItemKindKeyword, "a key of the scope")
	}
	for _, role := range c.index.names(kindRole, "") {
		c.add("session("+role+")", protocol.CompletionItemKindKeyword, "a user with the role")
	}
	c.addText("apiKey", "apiKey(", protocol.CompletionItemKindKeyword, "a key of one of the scopes")
	c.addText("anyOf", "anyOf(", protocol.CompletionItemKindKeyword, "one of several modes")
}

// routeSetting completes a setting of a route, a group, a function or a job.
func (c *completer) routeSetting(item, known []string, about map[string]explained) {
	if len(item) == 0 || c.comma || item[0] == `"` || strings.HasPrefix(last(item), `"`) && !slices.Contains(item, ":") {
		for _, name := range known {
			c.addText(name, name+": ", protocol.CompletionItemKindProperty, about[name].about+". Default: "+about[name].standard)
		}
		return
	}
	if len(item) < 2 || item[1] != ":" {
		return
	}
	switch name, end := item[0], last(item); {
	case end == "by":
		c.words(compiler.AllWords().Partitions, nil)
	case end == "/":
		for _, u := range schema.RateUnits {
			c.add(u.Name, protocol.CompletionItemKindUnit, "")
		}
	case end == ":":
		c.settingValue(name)
	case name == "rateLimit" && end != "none" || name == "concurrency":
		c.words([]string{"by"}, nil)
	case name == "schedule":
		c.words([]string{"in"}, nil)
	}
}

// settingValue completes what follows the colon of a setting.
func (c *completer) settingValue(name string) {
	value := func(values ...string) {
		for _, v := range values {
			c.add(v, protocol.CompletionItemKindValue, "")
		}
	}
	switch name {
	case "auth":
		c.modes()
	case "rateLimit":
		value("none", "60/minute", "10/second by ip", "1000/hour by user")
		c.declared(kindVar, "")
	case "as":
		c.declared(kindScope, "")
	case "input", "query":
		c.declared(kindType, "")
	case "verify":
		c.addText("webhook", "webhook(", protocol.CompletionItemKindFunction, "the signature of a webhook")
	case "upload", "csrf":
		value("on", "off")
	case "mints":
		value("session")
	case "cors":
		value("none", `["https://app.example.com"]`)
	case "dir":
		value(`"public"`, `"dist"`)
	case "spa":
		value(`"index.html"`)
	case "headers":
		c.addText("headers", `{ "Content-Security-Policy": "default-src 'self'" }`, protocol.CompletionItemKindValue, "headers of each answer")
	case "body":
		value("64kb", "1mb", "10mb")
	case "timeout", "stream", "backoff":
		value("2s", "10s", "30s")
	case "live":
		value("30m", "5m", "1h")
	case "retries":
		value("8", "0")
	case "concurrency":
		value("1", "4 by tenant")
	case "schedule":
		value(`"0 3 * * *"`, `"@daily"`)
	}
}

func (c *completer) webhook(item []string) {
	switch {
	case len(item) == 0:
		c.words(compiler.AllWords().Schemes, nil)
	case len(item) == 1:
		c.declared(kindSecret, "")
	case len(item) == 2 && c.comma:
		c.addText("tolerance", "tolerance: 5m", protocol.CompletionItemKindProperty, "the maximum age of a signature")
	}
}

func (c *completer) columns() {
	c.declared(kindField, c.name(inEntity))
	if end := c.text(len(c.tokens) - 1); !c.comma && end != "(" {
		c.words([]string{"asc", "desc"}, nil)
	}
}

// inverse offers the fields of the type of a field that lead back to its entity.
func (c *completer) inverse() {
	own := c.name(inEntity)
	for i := len(c.brackets) - 1; i >= 0; i-- {
		if c.brackets[i].block != inEntity {
			continue
		}
		item := c.item(c.brackets[i])
		if len(item) < 3 {
			return
		}
		for _, name := range c.index.names(kindField, item[2]) {
			if c.index.target(item[2], name) == own {
				c.add(name, protocol.CompletionItemKindField, "relation to "+own)
			}
		}
	}
}
