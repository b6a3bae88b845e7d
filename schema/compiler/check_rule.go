package compiler

import (
	"cmp"
	"slices"
	"strings"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/model"
	"runner.example/schema/syntax"
)

// ruleChecker checks the expressions of policies, grants, @issue and @manage: names, types and
// operators.
type ruleChecker struct{ *app }

// ruleScope defines the names that a rule can use.
type ruleScope struct {
	// entity is the entity of bare names. It is nil in untyped mode, where any name may be a
	// field, and in rules that can use only auth.*.
	entity *entityInfo
	// outer is, inside exists, the entity of the rule around it.
	outer    *entityInfo
	inExists bool
	// old permits old.* and new.*.
	old bool
	// caller is set in @issue and @manage, which can use only auth.*.
	caller *syntax.CallerRuleDecl
}

// exprKind is a group of types that can be compared with one another.
type exprKind int

const (
	anyKind  exprKind = iota // known only when evaluated, or an error (reported)
	nullKind                 // null
	boolKind
	numberKind // int, float, decimal, sizes
	textKind   // string, text, email, url, uuid
	timeKind
	dateKind
	durationKind
	bytesKind
	fileKind
	idKind   // an id of the entity
	enumKind // a value of the enum
	wordKind // one of a fixed list of words
	roleKind // auth.role: all roles of the caller at once
)

// exprType is the type of an expression.
type exprType struct {
	kind exprKind
	list bool
	// name is the name of the type in messages.
	name string
	// entity is the entity of an idKind, empty if it may be any.
	entity string
	// words are the values of an enumKind, wordKind or roleKind; of describes them.
	words []string
	of    string
	// text is set for a string literal.
	text *syntax.Literal
	// unknown is a bare name that is not a field. The comparison that contains it reports
	// it, because the message depends on the other side.
	unknown *syntax.NameExpr
	// elems are the types of a list in brackets.
	elems []exprType
}

func (t exprType) String() string {
	if t.list {
		if t.name == "" {
			return "a list"
		}
		return "a list of " + t.name
	}
	return t.name
}

// checkRule checks a rule, which must be true or false.
func (c *ruleChecker) checkRule(e syntax.Expr, in ruleScope) {
	c.wantBool(e, c.typeOf(e, in), in)
}

func (c *ruleChecker) wantBool(e syntax.Expr, t exprType, in ruleScope) {
	switch {
	case t.unknown != nil:
		c.unknownName(t.unknown, in)
	case t.kind == anyKind && !t.list, t.kind == boolKind && !t.list:
	default:
		c.Errorf("E240", e.Span(), "the rule must be true or false, but this is %s", withArticle(t))
	}
}

func withArticle(t exprType) string {
	switch {
	case t.list, t.kind == nullKind:
		return t.String()
	case t.name == "": // a claim, or a field of an unreadable or undeclared type
		return "any value"
	}
	return article(t.name)
}

// checkCallerRules checks the @issue rules, or the @manage rules, of one block. A block may have
// one of each.
func (c *ruleChecker) checkCallerRules(given []*syntax.CallerRuleDecl) {
	for i, d := range given {
		if i > 0 {
			c.Errorf("E402", d.Loc, "@%s is given twice: join the rules with `or`", d.Word)
		}
		c.checkRule(d.When, ruleScope{caller: d})
	}
}

// typeOf returns the type of an expression and reports errors inside it.
func (c *ruleChecker) typeOf(e syntax.Expr, in ruleScope) exprType {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return c.typeOf(e.X, in)
	case *syntax.Literal:
		return literalType(e)
	case *syntax.NullExpr:
		return exprType{kind: nullKind, name: "null"}
	case *syntax.NowExpr:
		if in.caller != nil {
			c.Errorf("E309", in.caller.Loc, "@%s may use only auth.*, not now", in.caller.Word)
		}
		return exprType{kind: timeKind, name: "time"}
	case *syntax.NameExpr:
		return c.typeOfName(e, in)
	case *syntax.ListExpr:
		t := exprType{list: true}
		for _, elem := range e.Elems {
			t.elems = append(t.elems, c.typeOf(elem, in))
		}
		return t
	case *syntax.ExistsExpr:
		c.checkExists(e, in)
		return exprType{kind: boolKind, name: "bool"}
	case *syntax.NotExpr:
		c.checkRule(e.X, in)
		return exprType{kind: boolKind, name: "bool"}
	case *syntax.BinaryExpr:
		if e.Op == syntax.OpAnd || e.Op == syntax.OpOr {
			c.checkRule(e.X, in)
			c.checkRule(e.Y, in)
		} else {
			c.checkComparison(e, in)
		}
		return exprType{kind: boolKind, name: "bool"}
	}
	return exprType{}
}

func literalType(lit *syntax.Literal) exprType {
	switch lit.Kind {
	case syntax.StringLit:
		return exprType{kind: textKind, name: "string", text: lit}
	case syntax.IntLit:
		return exprType{kind: numberKind, name: "int"}
	case syntax.DecimalLit:
		return exprType{kind: numberKind, name: "float"}
	case syntax.DurationLit:
		return exprType{kind: durationKind, name: "duration"}
	case syntax.SizeLit:
		return exprType{kind: numberKind, name: "size"}
	case syntax.BoolLit:
		return exprType{kind: boolKind, name: "bool"}
	}
	return exprType{}
}

func (c *ruleChecker) checkExists(e *syntax.ExistsExpr, in ruleScope) {
	switch {
	case in.caller != nil:
		c.Errorf("E309", in.caller.Loc, "@%s may use only auth.*, not exists", in.caller.Word)
		return
	case in.inExists:
		c.Errorf("E241", e.Loc, "exists may not be nested in exists")
		return
	}
	inner := ruleScope{outer: in.entity, inExists: true, old: in.old}
	if c.schema.Typed && e.Entity.Name != "" {
		if inner.entity = c.entity(e.Entity.Name); inner.entity == nil {
			c.Missing(e.Entity.Name, "E236", e.Entity.Loc, "exists: unknown entity %q%s",
				e.Entity.Name, c.DidYouMean(e.Entity.Name, c.entityNames()))
			return
		}
	}
	if e.Where != nil {
		before := len(c.Found)
		c.checkRule(e.Where, inner)
		if inner.entity != nil && len(c.Found) == before && !c.usesIndex(inner.entity, e.Where) {
			c.Warnf("W243", e.Loc,
				"no index serves this exists: each check may scan every row of %s, and fails beyond 100,000 rows (compare an id, a relation or an indexed field with ==)",
				e.Entity.Name)
		}
	}
}

// usesIndex reports whether the rule requires that a field which leads an index of the entity
// equals a value.
func (c *ruleChecker) usesIndex(e *entityInfo, rule syntax.Expr) bool {
	switch rule := rule.(type) {
	case *syntax.ParenExpr:
		return c.usesIndex(e, rule.X)
	case *syntax.BinaryExpr:
		switch rule.Op {
		case syntax.OpAnd:
			return c.usesIndex(e, rule.X) || c.usesIndex(e, rule.Y)
		case syntax.OpEqual:
			return c.leadsIndex(e, rule.X) || c.leadsIndex(e, rule.Y)
		}
	}
	return false
}

// leadsIndex reports whether x is a field of the entity that leads an index.
func (c *ruleChecker) leadsIndex(e *entityInfo, x syntax.Expr) bool {
	name, ok := x.(*syntax.NameExpr)
	if !ok || len(name.Parts) != 1 {
		return false
	}
	f := e.fields[name.Parts[0].Name]
	switch {
	case f == nil || f.Type == nil || f == e.tenant:
		return false
	case f.Type.Name.Name == "id", c.target(f) != nil && !f.Type.List, f.Attr("unique") != nil, f.Attr("index") != nil:
		return true
	}
	for _, attr := range e.decl.Attrs {
		for _, column := range attr.Columns {
			if e.tenant != nil && column.Name.Name == e.tenant.Name.Name {
				continue // every index begins with the tenant
			}
			if column.Name.Name == f.Name.Name {
				return true
			}
			break
		}
	}
	return false
}

func (c *ruleChecker) typeOfName(e *syntax.NameExpr, in ruleScope) exprType {
	parts := e.Parts
	switch head := parts[0].Name; {
	case head == "auth":
		return c.typeOfAuth(e)
	case in.caller != nil:
		c.unknownName(e, in)
		return exprType{}
	case head == "old" || head == "new":
		if !in.old {
			c.Errorf("E232", e.Loc, "%s.* can be used only in rules for update or write", head)
			return exprType{}
		}
		row := in.entity
		if in.inExists {
			row = in.outer
		}
		return c.typeOfPath(e, parts[1:], row)
	case head == "outer":
		if !in.inExists {
			c.Errorf("E230", e.Loc, "unknown name %q: outer.* can be used only inside exists", e.String())
			return exprType{}
		}
		return c.typeOfPath(e, parts[1:], in.outer)
	}
	if len(parts) == 1 && in.entity != nil && in.entity.fields[parts[0].Name] == nil {
		return exprType{unknown: e}
	}
	return c.typeOfPath(e, parts, in.entity)
}

// typeOfPath returns the type of the field that path names in a row of the entity.
func (c *ruleChecker) typeOfPath(e *syntax.NameExpr, path []syntax.Ident, row *entityInfo) exprType {
	if len(path) == 0 {
		c.Errorf("E230", e.Loc, "unknown name %q: a field must follow, %s.<field>", e.String(), e.String())
		return exprType{}
	}
	if row == nil {
		return exprType{}
	}
	f := row.fields[path[0].Name]
	switch {
	case f == nil:
		c.Missing(path[0].Name, "E230", e.Loc, "unknown name %q: %s has no such field%s",
			e.String(), row.name(), c.DidYouMean(path[0].Name, row.fieldNames()))
		return exprType{}
	case f.Type == nil:
		return exprType{}
	}
	target := c.target(f)
	switch {
	case target != nil && f.Type.List:
		c.Errorf("E234", e.Loc, "%s.%s is a to-many relation: use exists(%s where ...)",
			row.name(), path[0].Name, target.name())
		return exprType{}
	case len(path) == 1:
		t := c.typeOfField(f)
		if f.Type.Name.Name == "id" {
			t.entity = row.name()
		}
		return t
	case target == nil && f.Type.Name.Name == "file":
		return c.typeOfFileMember(e, path)
	case target == nil:
		if c.typeExists(f) {
			c.Errorf("E233", e.Loc, "%s.%s is %s and has no fields", row.name(), path[0].Name, withArticle(c.typeOfField(f)))
		}
		return exprType{}
	}
	if len(path) == 2 {
		return c.typeOfPath(e, path[1:], target)
	}
	if next := target.fields[path[1].Name]; next != nil && c.target(next) != nil {
		c.Errorf("E235", e.Loc, "%q follows more than one relation: only one is allowed", e.String())
		return exprType{}
	}
	return c.typeOfPath(e, path[1:], target)
}

// typeOfFileMember returns the type of the member of a file. path begins with the field.
func (c *ruleChecker) typeOfFileMember(e *syntax.NameExpr, path []syntax.Ident) exprType {
	switch name := path[1].Name; {
	case len(path) > 2 || !slices.Contains(schema.FileMembers, name):
		c.Errorf("E233", e.Loc, "unknown name %q: a rule can use %s.%s of a file%s", e.String(), path[0].Name,
			strings.Join(schema.FileMembers, ", "+path[0].Name+"."), c.DidYouMean(name, schema.FileMembers))
		return exprType{}
	case name == "size":
		return exprType{kind: numberKind, name: "size"}
	}
	return exprType{kind: textKind, name: "string"}
}

func (c *ruleChecker) typeOfField(f *syntax.FieldDecl) exprType {
	name := f.Type.Name.Name
	t := exprType{list: f.Type.List, name: name}
	switch d := c.named[name].(type) {
	case *syntax.EntityDecl:
		t.kind, t.entity = idKind, name
		return t
	case *syntax.EnumDecl:
		t.kind, t.words, t.of = enumKind, model.Names(d.Values), "enum "+name
		return t
	}
	switch name {
	case "id":
		t.kind = idKind
	case "string", "text", "email", "url", "uuid":
		t.kind = textKind
	case "int", "float", "decimal":
		t.kind = numberKind
	case "bool":
		t.kind = boolKind
	case "time":
		t.kind = timeKind
	case "date":
		t.kind = dateKind
	case "duration":
		t.kind = durationKind
	case "bytes":
		t.kind = bytesKind
	case "file":
		t.kind = fileKind
	}
	return t
}

// authValues are the names after `auth.`.
var authValues = []string{"kind", "userId", "tenant", "role", "roles", "keyId", "scope", "capability", "claims"}

// authWords are authValues, with the words for them that people know from elsewhere.
var authWords = diag.Vocabulary{
	Known: authValues,
	Mark:  "auth.",
	Others: map[string][]string{
		"team": {"tenant"}, "teamid": {"tenant"}, "tenantid": {"tenant"}, "org": {"tenant"}, "orgid": {"tenant"},
		"organization": {"tenant"}, "organisation": {"tenant"}, "workspace": {"tenant"}, "company": {"tenant"},
		"account": {"tenant", "userId"}, "user": {"userId"}, "id": {"userId"}, "uid": {"userId"}, "sub": {"userId"},
		"subject": {"userId"}, "owner": {"userId"}, "key": {"keyId"}, "apikey": {"keyId"},
		"group": {"role"}, "groups": {"roles"}, "scopes": {"scope"}, "type": {"kind"},
		"permission": {"role", "scope"}, "permissions": {"roles"},
	},
	Remedies: map[string]string{
		"email": claimRemedy, "name": claimRemedy, "username": claimRemedy, "claim": claimRemedy, "plan": claimRemedy,
	},
}

const claimRemedy = "a claim of a token is auth.claims.<name>"

func (c *ruleChecker) typeOfAuth(e *syntax.NameExpr) exprType {
	if len(e.Parts) == 1 {
		c.Errorf("E231", e.Loc, "unknown auth value %q: use auth.%s", "auth", strings.Join(authValues, ", auth."))
		return exprType{}
	}
	name := e.Parts[1].Name
	switch {
	case name == "claims" && len(e.Parts) == 3:
		return exprType{}
	case name == "claims":
		c.Errorf("E231", e.Loc, "unknown auth value %q: a claim is auth.claims.<name>", e.String())
		return exprType{}
	case !slices.Contains(authValues, name):
		c.Errorf("E231", e.Loc, "unknown auth value %q%s", e.String(), c.Hint(authWords, name, nil))
		return exprType{}
	case len(e.Parts) > 2:
		c.Errorf("E231", e.Loc, "unknown auth value %q: auth.%s has no fields", e.String(), name)
		return exprType{}
	}
	switch name {
	case "userId":
		return exprType{kind: idKind, name: cmp.Or(c.user, "id"), entity: c.user}
	case "tenant":
		return exprType{kind: idKind, name: cmp.Or(c.tenant, "id"), entity: c.tenant}
	case "role":
		return c.roleType()
	case "roles":
		t := c.roleType()
		t.kind, t.list = wordKind, true
		return t
	case "kind":
		return exprType{
			kind: wordKind, name: "string", words: []string{"session", "apiKey", "anonymous", "system"}, of: "auth.kind",
		}
	case "scope":
		return exprType{kind: wordKind, name: "string", words: c.scopeNames, of: "the scopes in the apiKeys block"}
	}
	return exprType{kind: textKind, name: "string"}
}

func (c *ruleChecker) roleType() exprType {
	return exprType{kind: roleKind, name: "role", words: c.roleNames, of: "auth.roles"}
}

// unknownName reports a bare name that is not a field.
func (c *ruleChecker) unknownName(e *syntax.NameExpr, in ruleScope) {
	if in.caller != nil {
		c.Errorf("E230", e.Loc, "unknown name %q: only auth.* can be used here", e.String())
		return
	}
	c.Missing(e.String(), "E230", e.Loc, "unknown name %q: %s has no such field%s",
		e.String(), in.entity.name(), c.DidYouMean(e.String(), in.entity.fieldNames()))
}

func (c *ruleChecker) checkComparison(e *syntax.BinaryExpr, in ruleScope) {
	x, y := c.operandType(e.X, in), c.operandType(e.Y, in)
	if !c.checkNames(&x, y, in) || !c.checkNames(&y, x, in) {
		return
	}
	switch e.Op {
	case syntax.OpEqual, syntax.OpNotEqual:
		c.checkEqual(e, x, y)
	case syntax.OpIn, syntax.OpNotIn:
		c.checkMember(e, x, y, "on its right")
	case syntax.OpContains:
		switch {
		case x.list || x.kind == anyKind:
			c.checkMember(e, y, x, "on its left")
		case !isText(x):
			c.Errorf("E238", e.OpSpan, "\"contains\" needs text or a list on its left, not %s", withArticle(x))
		case !isText(y) && y.kind != anyKind:
			c.cannotCompare(e, x, y)
		}
	case syntax.OpStartsWith:
		if !isText(x) && x.kind != anyKind || !isText(y) && y.kind != anyKind {
			c.Errorf("E238", e.OpSpan, "\"startsWith\" needs text on both sides, not %s and %s", withArticle(x), withArticle(y))
		}
	default:
		c.checkOrdered(e, x, y)
	}
}

// operandType returns the type of one side of a comparison. Inside @issue and @manage, a name that is not
// auth.* is reported by checkNames too: it may be a role without quotes.
func (c *ruleChecker) operandType(e syntax.Expr, in ruleScope) exprType {
	if name, ok := e.(*syntax.NameExpr); ok && in.caller != nil && len(name.Parts) == 1 && name.Parts[0].Name != "auth" {
		return exprType{unknown: name}
	}
	if list, ok := e.(*syntax.ListExpr); ok {
		t := exprType{list: true}
		for _, elem := range list.Elems {
			t.elems = append(t.elems, c.operandType(elem, in))
		}
		return t
	}
	return c.typeOf(e, in)
}

// checkNames reports unknown names in t, which is compared with other. It returns false if
// there is one.
func (c *ruleChecker) checkNames(t *exprType, other exprType, in ruleScope) bool {
	ok := true
	for i := range t.elems {
		ok = c.checkNames(&t.elems[i], other, in) && ok
	}
	if t.unknown == nil {
		return ok
	}
	if name := t.unknown.String(); slices.Contains(other.words, name) {
		what := "enum values"
		if other.of == "auth.roles" {
			what = "roles"
		}
		c.Errorf("E239", t.unknown.Loc, "%s are written in quotes in rules: %q", what, name)
	} else {
		c.unknownName(t.unknown, in)
	}
	return false
}

func isText(t exprType) bool {
	return !t.list && (t.kind == textKind || t.kind == idKind || t.kind == wordKind || t.kind == enumKind)
}

func (c *ruleChecker) cannotCompare(e *syntax.BinaryExpr, x, y exprType) {
	c.Errorf("E238", e.OpSpan, "cannot compare %s with %s", x, y)
}

func (c *ruleChecker) checkEqual(e *syntax.BinaryExpr, x, y exprType) {
	if x.list || y.list {
		if x.kind != nullKind && y.kind != nullKind && !isAny(x) && !isAny(y) {
			c.cannotCompare(e, x, y)
		}
		return
	}
	c.checkComparable(e, x, y)
}

func isAny(t exprType) bool { return !t.list && t.kind == anyKind }

// checkComparable reports types whose values can never be equal.
func (c *ruleChecker) checkComparable(e *syntax.BinaryExpr, x, y exprType) {
	if !c.comparable(x, y) {
		c.cannotCompare(e, x, y)
		return
	}
	c.checkWord(x, y)
	c.checkWord(y, x)
}

// checkWord checks a string that is compared with a fixed list of words.
func (c *ruleChecker) checkWord(closed, t exprType) {
	if closed.words == nil && closed.kind != roleKind && closed.kind != wordKind || t.text == nil {
		return
	}
	word := t.text.Text
	if slices.Contains(closed.words, word) {
		return
	}
	what := "a value of"
	switch {
	case closed.of == "auth.roles":
		what = "a role in"
	case closed.kind == wordKind && closed.of != "auth.kind":
		what = "one of"
	}
	c.Missing(word, "E237", t.text.Loc, "%q is not %s %s%s", word, what, closed.of, c.DidYouMean(word, closed.words))
}

func (c *ruleChecker) comparable(x, y exprType) bool {
	if x.kind > y.kind {
		x, y = y, x
	}
	switch {
	case x.list || y.list:
		return false
	case x.kind == anyKind, x.kind == nullKind:
		return true
	case x.kind == idKind && y.kind == idKind:
		return x.entity == y.entity || x.entity == "" || y.entity == ""
	case x.kind == enumKind && y.kind == enumKind:
		return x.of == y.of
	case x.kind == roleKind:
		return false // both sides are the roles of one caller
	case x.kind == enumKind && y.kind == roleKind:
		return true
	case x.kind == y.kind:
		return true
	}
	return x.kind == textKind && x.mayBe(y)
}

// mayBe reports whether a string may be a value of t.
func (x exprType) mayBe(t exprType) bool {
	switch t.kind {
	case idKind, enumKind, wordKind, roleKind, bytesKind:
		return true
	case timeKind:
		return x.text != nil && hasForm("time", x.text.Text)
	case dateKind:
		return x.text != nil && hasForm("date", x.text.Text)
	}
	return false
}

func (c *ruleChecker) checkMember(e *syntax.BinaryExpr, elem, list exprType, side string) {
	switch {
	case isAny(list):
	case !list.list:
		c.Errorf("E238", e.OpSpan, "%q needs a list %s, not %s", string(e.Op), side, withArticle(list))
	case list.name == "":
		for _, t := range list.elems {
			if t.list {
				c.cannotCompare(e, elem, t)
				return
			}
			c.checkEqual(e, elem, t)
		}
	default:
		list.list = false
		c.checkEqual(e, elem, list)
	}
}

func (c *ruleChecker) checkOrdered(e *syntax.BinaryExpr, x, y exprType) {
	hasOrder := func(t exprType) bool {
		switch t.kind {
		case anyKind, nullKind, numberKind, textKind, timeKind, dateKind, durationKind, idKind:
			return !t.list
		}
		return false
	}
	switch {
	case !c.comparable(x, y):
		c.cannotCompare(e, x, y)
	case !hasOrder(x) || !hasOrder(y):
		c.Errorf("E238", e.OpSpan, "%q needs numbers, texts or times, not %s and %s",
			string(e.Op), withArticle(x), withArticle(y))
	}
}
