package syntax_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

func parse(text string) (*syntax.File, diag.List) {
	return syntax.Parse(diag.Source{Name: "a.schema", Text: []byte(text)})
}

// parseClean parses a text without errors.
func parseClean(t *testing.T, text string) *syntax.File {
	t.Helper()
	f, diags := parse(text)
	if len(diags) > 0 {
		t.Fatalf("errors in %s\n%v", text, diags)
	}
	return f
}

// errorsOf are the diagnostics of text as "line:col code message".
func errorsOf(text string) []string {
	_, diags := parse(text)
	var got []string
	for _, d := range diags.Sorted() {
		got = append(got, fmt.Sprintf("%d:%d %s %s", d.Span.Start.Line, d.Span.Start.Col, d.Code, d.Message))
	}
	return got
}

func TestEachErrorIsReportedOnceAndHidesNoOther(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"rotes(\"/\", auth: none) {\n  get /a -> a\n  GET /b = b\n  fly /a/*b -> c\n  GET -> d\n}", []string{
			`1:1 E101 unknown declaration "rotes" (did you mean "routes"?)`,
			`2:3 E106 expected an HTTP method (GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, ANY), routes(...) or assets(...), found "get" (did you mean "GET"?)`,
			`3:10 E100 expected "->", found "="`,
			`4:3 E106 expected an HTTP method (GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, ANY), routes(...) or assets(...), found "fly"`,
			`5:7 E100 expected a path, found "->"`,
		}},
		{"app\nsecret X\nthing Y { a: b }\nenum E { }\n)", []string{
			`2:1 E100 expected the app's name, found "secret"`,
			`3:1 E101 unknown declaration "thing": use app, auth, secret, var, outbound, module, python, enum, type, entity, apiKeys, functions, jobs, routes or assets`,
			`4:10 E100 expected a value of the enum, found "}"`,
			`5:1 E100 expected a declaration, found ")"`,
		}},
		{"entity A {\n  id: id\n  name: string\n\nentity B {\n  id id\n}", []string{
			`5:1 E100 expected "}" (to close "{" of line 1), found "entity"`,
			`6:6 E100 expected ":", found "id"`,
		}},
		{"entity A {\n  id:\n  n: int @allow read when x = 1\n  s: string(1.. @uniq\n  t: text @nope(1) @min() @onDelete(casca)\n  d: int =\n  e: int\n}", []string{
			`3:3 E100 expected a type, found "n"`,
			`3:10 E110 unknown field attribute @allow (entity rules are written @@allow)`,
			`4:17 E100 expected a whole number, found "@uniq"`,
			`5:3 E100 expected "," or ")", found "t"`,
			`5:11 E110 unknown field attribute @nope: use @unique, @index, @tenant, @hidden, @readonly, @created, @updated, @removed, @min, @max, @pattern, @was, @inverse or @onDelete`,
			`5:25 E100 expected a literal, found ")"`,
			`5:37 E100 expected "restrict", "cascade" or "clear", found "casca" (did you mean "cascade"?)`,
			`7:3 E100 expected a default, found "e"`,
		}},
		{"entity A {\n  a: text @index(ignorecase)\n  b: text @index()\n  c: text @index(ignoreCase\n  d: text @unique(ignoreCase)\n}", []string{
			`2:18 E100 expected "ignoreCase", found "ignorecase" (did you mean "ignoreCase"?)`,
			`3:18 E100 expected "ignoreCase", found ")"`,
			`5:3 E100 expected "," or ")", found "d"`,
			`5:18 E100 @unique takes no argument: only @index can ignore case`,
		}},
		{"entity A {\n  @unique\n  @allow read\n  @@allows read to sesion\n  @@index(a b) globl\n  @@deny to session\n  @@what ever\n  @@deny read when a = b or not\n  @@allow read when\n}", []string{
			`2:3 E100 expected a field, found "@unique"`,
			`3:3 E110 unknown field attribute @allow (entity rules are written @@allow)`,
			`4:3 E109 unknown entity attribute @@allows (did you mean "@@allow"?)`,
			`4:20 E100 expected "session", "apiKey" or "anonymous", found "sesion" (did you mean "session"?)`,
			`5:13 E100 expected "," or ")", found "b"`,
			`5:16 E100 expected "global", found "globl" (did you mean "global"?)`,
			`6:10 E100 expected an action, found "to"`,
			`7:3 E109 unknown entity attribute @@what: use @@allow, @@deny, @@unique or @@index`,
			`8:22 E100 expected "==", found "="`,
			`9:3 E100 expected a name, a literal or a rule in parentheses, found "@@allow"`,
			`10:1 E100 expected a rule, found "}"`,
		}},
		{"apiKeys {\n  prefx: \"a\", none: 1\n  scopes: {\n    a: @sytem(\"a\") {\n      @grants read on A\n      @@grant read on A\n      @issue auth.role\n      @hm\n      @grant read A\n      read\n    }\n    b: { @allTenants }\n  }\n}", []string{
			`2:3 E103 unknown setting "prefx" (did you mean "prefix"?)`,
			`2:15 E103 unknown setting "none": use prefix, defaultLifetime, maxLifetime, maxGrace or maxPerTenant`,
			`4:8 E102 unknown scope attribute @sytem (did you mean "system"?)`,
			`5:7 E102 unknown scope attribute @grants (did you mean "grant"?)`,
			`6:7 E102 unknown scope attribute @@grant (in a scope it is written @grant)`,
			`7:14 E100 expected "when", found "auth"`,
			`8:7 E102 unknown scope attribute @hm`,
			`9:19 E100 expected "on", found "A"`,
			`10:7 E100 expected @grant, @issue, @manage or @allTenants, found "read"`,
			`12:5 E100 expected "," or "}", found "b"`,
			`12:8 E100 expected @system("…"), found "{"`,
		}},
		{"routes(\"/\", auth: none) {\n  GET /a -> a (atuh: apikey(x), body: 5x, csrf: of, timeout: 5kb)\n  GET /b -> b (auth: apiKey, rateLimit: fast, verify: webhook(stripe), cors: [a])\n  GET /c -> c (auth: apiKey(), mints: x\n  GET /d -> d (auth: anyOf(none session), nope: 1)\n  GET /e -> e ()\n}", []string{
			`2:16 E103 unknown setting "atuh" (did you mean "auth"?)`,
			`2:22 E105 unknown auth mode "apikey": use none, session, apiKey(<scope>) or anyOf(…)`,
			`2:39 E004 unknown unit "x": durations end in ms, s, m, h, d or w; sizes in b, kb, mb or gb`,
			`2:49 E100 expected "on" or "off", found "of" (did you mean "off"?)`,
			`2:62 E100 expected a duration such as 2s, found 5kb`,
			`3:22 E104 apiKey needs a scope: apiKey(<scope>)`,
			`3:69 E100 expected "," and the name of a secret, found ")"`,
			`4:22 E104 apiKey needs a scope: apiKey(<scope>)`,
			`4:39 E100 expected "session", found "x"`,
			`5:3 E100 expected "," or ")", found "GET"`,
			`5:33 E100 expected "," or ")", found "session"`,
			`5:43 E103 unknown setting "nope": use auth, rateLimit, as, body, upload, timeout, stream, live, input, query, verify, csrf, mints or cors`,
			`6:16 E100 expected a setting, found ")"`,
		}},
		{"assets(\"/\", dir: public, spa: 1, headers: {\n  X: \"a\"\n  \"Y\" \"b\"\n  \"Z\": 1, \"W\": \"d\"\n}, dri: \"a\")\nassets \"/\"\nroutes(\"/\", auth: none) {\nassets(\"/a\", dir: \"a\")\n  asets(\"/b\")\n}", []string{
			`1:18 E100 expected a directory such as "public", found "public"`,
			`1:31 E100 expected a file such as "index.html", found 1`,
			`2:3 E100 expected the name of a header in quotes, found "X"`,
			`3:7 E100 expected ":", found "b"`,
			`4:8 E100 expected the value of the header in quotes, found 1`,
			`5:4 E103 unknown setting "dri" (did you mean "dir"?)`,
			`6:8 E100 expected "(" and the prefix of the assets, found "/"`,
			`9:3 E106 expected an HTTP method (GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, ANY), routes(...) or assets(...), found "asets" (did you mean "assets"?)`,
		}},
		{"functions(auth: session(admin) {\n  @exposed f(a: int b: string) -> json\n  @@expose g(a int) ->\n  h() -> json\n  @ i()\n}", []string{
			`1:32 E100 expected "," or ")", found "{"`,
			`2:3 E107 unknown function attribute @exposed: only @expose is allowed here`,
			`2:21 E100 expected "," or ")", found "b"`,
			`3:3 E107 unknown function attribute @@expose: only @expose is allowed here`,
			`3:16 E100 expected ":", found "int"`,
			`4:3 E100 expected a type, found "h"`,
			`5:3 E001 a name must follow "@"`,
		}},
		{"auth {\n  session cooki { idle: 5m }\n  session { }\n  roles [a]\n  user: \n}\noutbound { allow: \"x\", alow: [\"a\"] }", []string{
			`2:11 E100 expected "cookie" or "jwt", found "cooki" (did you mean "cookie"?)`,
			`3:11 E100 expected "cookie" or "jwt", found "{": write session cookie { idle: 30m, absolute: 12h }`,
			`4:9 E100 expected ":", found "["`,
			`6:1 E100 expected a value, found "}"`,
			`7:19 E100 expected a list of strings, found "x"`,
			`7:24 E103 unknown setting "alow" (did you mean "allow"?)`,
		}},
		{"routes(\"/v1, auth: none) {\n  GET /a -> a\n}\nsecret \"x\\q\n$$ % secret Y\nentity A { n: int @max(99999999999999999999) @min(1.5h) }\n/* on", []string{
			`1:8 E002 string is not closed on this line`,
			`4:8 E002 string is not closed on this line`,
			`4:10 E005 unknown escape \q`,
			`5:1 E001 unexpected character '$'`,
			`5:4 E001 unexpected character '%'`,
			`6:24 E004 the number 99999999999999999999 is too large`,
			`6:51 E004 1.5h: a duration or a size is a whole number`,
			`7:1 E003 comment is not closed`,
		}},
		{"type T { a: int(-x..5) b: int(-5..) c: int(5..-1.5) }", []string{
			`1:17 E100 expected a whole number, found "-"`,
			`1:35 E100 expected a whole number, found ")"`,
			`1:47 E100 expected a whole number, found "-"`,
		}},
		{"routes(\"/\", auth: none, timeout: 60) {\n  GET /a -> a (timeout: \"5m\")\n  GET /b -> b (timeout: \"soon\", verify: webhook(s, S, tolerance: 1.5))\n}", []string{
			`1:34 E100 expected a duration such as 2s, found 60 (did you mean 60s?)`,
			`2:25 E100 expected a duration such as 2s, found "5m" (did you mean 5m?)`,
			`3:25 E100 expected a duration such as 2s, found "soon"`,
			`3:66 E100 expected a duration such as 5m, found 1.5`,
		}},
		{"enum E { a", []string{`1:11 E100 expected "}" (to close "{" of line 1), found the end of the file`}},
		{"app a\xff", []string{"1:1 E007 file is not UTF-8 at byte 5"}},
		{strings.Repeat(" ", 1<<20+1), []string{"1:1 E007 file is larger than 1 MiB"}},
	} {
		if d := cmp.Diff(c.want, errorsOf(c.text)); d != "" {
			t.Errorf("%.80q (- want, + got):\n%s", c.text, d)
		}
	}
}

func TestNestingIsLimitedTo64Levels(t *testing.T) {
	rule := func(open, closing string, n int) string {
		return "entity A {\n@@allow read when " + strings.Repeat(open, n) + "a" + strings.Repeat(closing, n) + "\nid: id\n}"
	}
	for _, c := range []struct{ open, closing string }{{"(", ")"}, {"not ", ""}, {"exists(B where ", ")"}} {
		parseClean(t, rule(c.open, c.closing, 63))
		got := errorsOf(rule(c.open, c.closing, 64))
		if len(got) != 1 || !strings.HasSuffix(got[0], "E006 nested more than 64 levels deep") {
			t.Errorf("64 of %q in a block: %v", c.open, got)
		}
	}
}

// A text of the maximum size must not take long or overflow the stack.
func TestHostileTextsAreParsedInBoundedTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	fill := func(head, piece, tail string) string {
		return head + strings.Repeat(piece, (1<<20-len(head)-len(tail))/len(piece)) + tail
	}
	for _, text := range []string{
		fill("entity A { @@allow read when ", "(", ""),
		fill("entity A { @@allow read when ", "not ", ""),
		fill("entity A { @@allow read when a", " and a", "}"),
		fill("", "routes(\"/a\") {", ""),
		fill("enum E { a\n", "entity\n", "}"),
		fill("", "@", ""),
	} {
		start := time.Now()
		parse(text)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%.60q took %v", text, took)
		}
	}
}

func TestDocCommentsBelongToTheNextDeclaration(t *testing.T) {
	f := parseClean(t, `
/// An order.
///
///  Two lines.
// not this
//// nor this
entity Order { /// nor this
  id: id /// nor this
  /// What it costs.
  total: int, /// nor this
  other: int
}
/// Group.
routes("/") {
  /// All.
  GET /a -> a
}
functions {
  /// Does it.
  @expose f(
    /// When.
    at: time) -> json
}
apiKeys { scopes: {
  /// Reads.
  r: @system("r") {} } }
`)
	entity := f.Decls[0].(*syntax.EntityDecl)
	routes := f.Decls[1].(*syntax.RoutesDecl)
	function := f.Decls[2].(*syntax.FunctionsDecl).Functions[0]
	got := []string{
		entity.Doc, entity.Fields[0].Doc, entity.Fields[1].Doc, entity.Fields[2].Doc,
		routes.Doc, routes.Items[0].(*syntax.RouteDecl).Doc, function.Doc, function.Params[0].Doc,
		f.Decls[3].(*syntax.APIKeysDecl).Blocks[0].Scopes[0].Doc,
	}
	want := []string{"An order.\n\n Two lines.", "", "What it costs.", "", "Group.", "All.", "Does it.", "When.", "Reads."}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(- want, + got):\n%s", d)
	}
}

func TestKeywordsCanBeNames(t *testing.T) {
	parseClean(t, `
enum routes { app, auth, secret, GET, POST // not a path
  entity type enum }
entity exists {
  when: now = null
  to: to? @min(1)
  global: in
  entity: or
  @@unique(entity, global) global
  @@allow read when when == to and exists.now == exists or auth.in == now and in.x
  where: not[]
}
secret on
functions { routes(functions: int, expose: json) -> apiKeys  fields() }
apiKeys { scopes: { scopes: @system("x") { @grant read on on, where fields (fields, where) where where == on } } }
`+"functions {\nfunctions(auth: string)\n}\nroutes(\"/\") {\nroutes(\"/x\") {\nGET /a -> GET\n}\n}\n")
}

func TestPathsAreReadOnlyAfterAMethod(t *testing.T) {
	f := parseClean(t, "routes(\"/\") { GET //a->b\n POST\n /x/:id/*rest -> c PUT / -> d\nDELETE orders -> e }")
	var got []string
	for _, item := range f.Decls[0].(*syntax.RoutesDecl).Items {
		r := item.(*syntax.RouteDecl)
		place := fmt.Sprintf("%d-%d", r.Path.Loc.Start.Col, r.Path.Loc.End.Col)
		got = append(got, strings.Join([]string{r.Method.Name, r.Path.Raw, place, r.Handler.Name}, " "))
	}
	want := []string{
		`GET //a 19-22 b`,
		`POST /x/:id/*rest 2-14 c`,
		`PUT / 24-25 d`,
		`DELETE orders 8-14 e`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(- want, + got):\n%s", d)
	}
}

func TestColumnsCountCodePointsAndOffsetsBytes(t *testing.T) {
	f := parseClean(t, "/* ä€😀 */ app x")
	got := f.Decls[0].(*syntax.AppDecl).Name.Loc
	want := diag.Span{
		File:  "a.schema",
		Start: diag.Pos{Offset: 20, Line: 1, Col: 15},
		End:   diag.Pos{Offset: 21, Line: 1, Col: 16},
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestLiteralsHaveTheirValues(t *testing.T) {
	f := parseClean(t, `auth { user: [1_000, -7, 1_0.50, -0.5, "a\"\\\n\tä", 500ms, 2w, 512b, 64kb, 1mb, true, false] }`)
	var got []string
	for _, v := range f.Decls[0].(*syntax.AuthDecl).Settings[0].Value.(*syntax.ListSetting).Elems {
		l := v.(*syntax.Literal)
		got = append(got, fmt.Sprintf("%d %s %q %d %v %v", l.Kind, l.Raw, l.Text, l.Int, l.Duration, l.Bool))
	}
	want := []string{
		`1 1_000 "" 1000 0s false`,
		`1 -7 "" -7 0s false`,
		`2 1_0.50 "10.50" 0 0s false`,
		`2 -0.5 "-0.5" 0 0s false`,
		`0 "a\"\\\n\tä" "a\"\\\n\tä" 0 0s false`,
		`3 500ms "" 0 500ms false`,
		`3 2w "" 0 336h0m0s false`,
		`4 512b "" 512 0s false`,
		`4 64kb "" 65536 0s false`,
		`4 1mb "" 1048576 0s false`,
		`5 true "" 0 0s true`,
		`5 false "" 0 0s false`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(- want, + got):\n%s", d)
	}
}

// brackets shows how an expression was understood.
func brackets(x syntax.Expr) string {
	switch x := x.(type) {
	case *syntax.BinaryExpr:
		return fmt.Sprintf("[%s %s %s]", brackets(x.X), x.Op, brackets(x.Y))
	case *syntax.NotExpr:
		return fmt.Sprintf("[not %s]", brackets(x.X))
	case *syntax.ParenExpr:
		return "(" + brackets(x.X) + ")"
	case *syntax.ExistsExpr:
		return fmt.Sprintf("exists %s %s", x.Entity.Name, brackets(x.Where))
	case *syntax.ListExpr:
		var elems []string
		for _, e := range x.Elems {
			elems = append(elems, brackets(e))
		}
		return "{" + strings.Join(elems, " ") + "}"
	case *syntax.NameExpr:
		var parts []string
		for _, p := range x.Parts {
			parts = append(parts, p.Name)
		}
		return strings.Join(parts, ".")
	case *syntax.Literal:
		return x.Raw
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", x), "*syntax."), "Expr"))
}

func TestOperatorsHaveTheirPrecedence(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a or b and c", "[a or [b and c]]"},
		{"a || b || c && d", "[[a or b] or [c and d]]"},
		{"not a == b and !c", "[[not [a == b]] and [not c]]"},
		{"not not a", "[not [not a]]"},
		{"(a or b) and c", "[([a or b]) and c]"},
		{"a not in [1, b.c] or a in x", "[[a not in {1 b.c}] or [a in x]]"},
		{"a startsWith \"x\" and b contains -1", "[[a startsWith \"x\"] and [b contains -1]]"},
		{"a < now and b >= null", "[[a < now] and [b >= null]]"},
		{"exists(B where c == outer.id or d) and e", "[exists B [[c == outer.id] or d] and e]"},
		{"(a == b) != (c <= 5m)", "[([a == b]) != ([c <= 5m])]"},
	} {
		f := parseClean(t, "entity A { @@allow read when "+c.text+" }")
		if got := brackets(f.Decls[0].(*syntax.EntityDecl).Policies[0].When); got != c.want {
			t.Errorf("%s is parsed as %s, want %s", c.text, got, c.want)
		}
	}
}

func TestItemsWithSyntaxErrorsAreUnread(t *testing.T) {
	for text, want := range map[string][]string{
		"enum E { a }":                                         nil,
		"entity A { n: int @nope(3) @min(1) }":                 {"@nope(3)"},
		"entity A { n: int @uniq }":                            nil, // read as it was meant
		"thing T { }":                                          {"thing T { }"},
		"table T { id: id n int\n}":                            {"id: id n int"}, // perhaps one item
		"entity A { n int\n m: int }":                          {"n int"},
		"routes(\"/\") { fly /a -> b }":                        {"fly /a -> b"},
		"routes(\"/\", auth: wings) { GET /a -> b }":           {"auth: wings"},
		"apiKeys { scopes: { a b } }":                          {"a b"},
		"entity A {\n id: id\nenum E { a }":                    nil, // all items were read
		"entity A { @@allow read when a = 1 @@deny read }":     {"@@allow read when a = 1"},
		"entity A { a: int @max(1x) b: int }":                  {"1x"},
		"enum E { a $ b }":                                     {"a $ b"},
		"enum E { a }\n)\nsecret X":                            {")"},
		"functions { f(a: int b: int) -> json g(c d) -> int }": {"f(a: int b: int) -> json", "c d"},
	} {
		f, _ := parse(text)
		var got []string
		for _, part := range f.Unread {
			got = append(got, text[part.Start.Offset:part.End.Offset])
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (- want, + got):\n%s", text, d)
		}
	}
}

func TestNamesMayBeMissingWithoutABodyOrBehindAComment(t *testing.T) {
	for text, want := range map[string]bool{
		"enum E { a b }": false, "enum E { a": false, "enum { a }": true, "entity A { : int }": true,
		"entity A {\n n int }": false, "routes(\"/\") {\n GET /a\n}": false, "entity A\nsecret X": true, "enum E { a }\n/* secret X": true, "app a\xff": true,
	} {
		if f, _ := parse(text); f.Lost != want {
			t.Errorf("%q: lost is %v", text, f.Lost)
		}
	}
}
