package query_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/casefold"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/entity/query"
)

// querySchema has a field of every kind and a hidden one.
//
//go:embed testdata/thing.schema
var querySchema string

//go:embed testdata/untyped.schema
var untypedSchema string

func compiled(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
	if s == nil {
		t.Fatalf("the schema of the test does not compile: %v", found)
	}
	return s
}

var (
	member = &caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "f1", Roles: []string{"member"}}
	nobody = &caller.Caller{}
)

func keyOf(scope string) *caller.Caller {
	return &caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Tenant: "f1", Scope: scope, Capability: scope}
}

// failure is a fault's code and text, "" for none.
func failure(err error) string {
	if err == nil {
		return ""
	}
	f := fault.Of(err)
	return string(f.Code) + ": " + f.Detail
}

func TestEveryRefusalNamesItsCause(t *testing.T) {
	s := compiled(t, querySchema)
	deep := func(n int) string {
		return strings.Repeat(`["not",`, n) + `["size","=",1]` + strings.Repeat("]", n)
	}
	many := func(n int, elem string) string { return strings.Repeat(elem+",", n-1) + elem }
	for _, c := range []struct{ op, args, want string }{
		{"query", ``, `invalid: arguments are not JSON`},
		{"query", `{"from":"Thing"`, `invalid: arguments are not JSON`},
		{"query", `{"from":"Thing"} {}`, `invalid: arguments are not JSON`},
		{"query", `[]`, `invalid: arguments must be a JSON object`},
		{"query", `null`, `invalid: arguments must be a JSON object`},
		{"query", "{\"from\":\"Thing\xff\"}", `invalid: arguments are not UTF-8`},
		{"query", `{"from":"\ud800"}`, `invalid: from must not have half of a surrogate pair, such as \ud800`},
		{"query", `{"from":"Thing","where":[["name","=","\udc00"]]}`, `invalid: where[0][2] must not have half of a surrogate pair, such as \ud800`},
		{"query", `{"from":"Thing","from":"Thing"}`, `invalid: member "from" is repeated`},
		{"query", `{"from":"Thing","\u0066rom":"Thing"}`, `invalid: member "from" is repeated`},
		{"insert", `{"into":"Thing","values":{"data":{"a":1,"a":2}}}`, `invalid: member "a" is repeated`},
		{"query", `{"from":"Thing","where":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, `invalid: arguments nest deeper than 64`},
		{"query", `{}`, `invalid: member "from" is missing`},
		{"query", `{"from":null}`, `invalid: member "from" is missing`},
		{"query", `{"from":7}`, `invalid: from: must be the name of an entity`},
		{"query", `{"from":"Thign"}`, `invalid: from: unknown entity "Thign" (did you mean "Thing"?)`},
		{"query", `{"from":"Thing","were":[]}`, `invalid: unknown member "were" (did you mean "where"?); known: from, select, where, orderBy, limit, cursor, include`},
		{"count", `{"from":"Thing","limit":1}`, `invalid: unknown member "limit"; known: from, where, atMost`},
		{"count", `{"from":"Thing","atMost":0}`, `invalid: atMost: must be a whole number from 1 to 1000000`},
		{"count", `{"from":"Thing","atMost":null}`, `invalid: atMost: must not be null: leave it out`},
		{"delete", `{"from":"Thing","where":[],"limit":1001}`, `invalid: limit: must be a whole number from 1 to 1000`},
		{"update", `{"in":"Thing","set":{},"where":[],"limit":1.5}`, `invalid: limit: must be a whole number from 1 to 1000`},
		{"get", `{"from":"Thing"}`, `invalid: member "id" is missing`},
		{"get", `{"from":"Thing","id":7}`, `invalid: id: must be a string`},
		{"update", `{"in":"Thing","set":{}}`, `invalid: where is missing: add a condition with where(), or call every() to mean all rows (as JSON: "where": [])`},
		{"delete", `{"from":"Thing"}`, `invalid: where is missing: add a condition with where(), or call every() to mean all rows (as JSON: "where": [])`},

		{"query", `{"from":"Thing","where":{}}`, `invalid: where: must be a list of conditions`},
		{"query", `{"from":"Thing","where":["size","=",1]}`, `invalid: where[0]: a condition is [field, operator, value], with "ignoreCase" after it or not, ["or", …] or ["not", …]`},
		{"query", `{"from":"Thing","where":[["size","=",1],[]]}`, `invalid: where[1]: a condition is [field, operator, value], with "ignoreCase" after it or not, ["or", …] or ["not", …]`},
		{"query", `{"from":"Thing","where":[[["size","=",1]]]}`, `invalid: where[0]: a condition is [field, operator, value], with "ignoreCase" after it or not, ["or", …] or ["not", …]`},
		{"query", `{"from":"Thing","where":[["size","="]]}`, `invalid: where[0]: a condition is [field, operator, value], with "ignoreCase" after it or not, ["or", …] or ["not", …]`},
		{"query", `{"from":"Thing","where":[["size","=",1,2]]}`, `invalid: where[0]: a condition is [field, operator, value], with "ignoreCase" after it or not, ["or", …] or ["not", …]`},
		{"query", `{"from":"Thing","where":[["or"]]}`, `invalid: where[0]: "or" needs a condition`},
		{"query", `{"from":"Thing","where":[["not",["size","=",1],["size","=",2]]]}`, `invalid: where[0]: "not" takes one condition`},
		{"query", `{"from":"Thing","where":[["or",["size","=",1],[["size","<",2],["sizes",">",1]]]]}`, `invalid: where[0][2][1]: Thing has no field "sizes" that the caller may read (did you mean "size"?)`},
		{"query", `{"from":"Thing","where":[` + deep(17) + `]}`, `invalid: where[0]` + strings.Repeat("[1]", 16) + `: at most 16 levels of nested conditions are allowed`},
		{"query", `{"from":"Thing","where":[` + many(257, `["size","=",1]`) + `]}`, `invalid: where[256]: at most 256 comparisons are allowed`},
		{"query", `{"from":"Thing","where":[["size","==",1]]}`, `invalid: where[0]: unknown operator "=="; known: = != < <= > >= in startsWith contains`},
		{"query", `{"from":"Thing","where":[["size",7,1]]}`, `invalid: where[0]: unknown operator 7; known: = != < <= > >= in startsWith contains`},
		{"query", `{"from":"Thing","where":[["size","<",null]]}`, `invalid: where[0]: size <: null is allowed only with = and !=`},
		{"query", `{"from":"Thing","where":[["size","in",[1,null]]]}`, `invalid: where[0]: size in: [1]: null is allowed only with = and !=`},
		{"query", `{"from":"Thing","where":[["size","in",1]]}`, `invalid: where[0]: size in: the value must be a list`},
		{"query", `{"from":"Thing","where":[["size","in",[` + many(1001, "1") + `]]]}`, `invalid: where[0]: size in: the list is longer than 1000`},
		{"query", `{"from":"Thing","where":[["size","startsWith","1"]]}`, `invalid: where[0]: size startsWith: this operator does not apply to a field of type int?`},
		{"query", `{"from":"Thing","where":[["title","contains",1]]}`, `invalid: where[0]: title contains: the value must be a string`},
		{"query", `{"from":"Thing","where":[["tags","=",["a"]]]}`, `invalid: where[0]: tags =: this operator does not apply to a field of type string[]?, except for null`},
		{"query", `{"from":"Thing","where":[["data","=",1]]}`, `invalid: where[0]: data =: this operator does not apply to a field of type json?, except for null`},
		{"query", `{"from":"Thing","where":[["good","<",true]]}`, `invalid: where[0]: good <: this operator does not apply to a field of type bool?`},
		{"query", `{"from":"Thing","where":[["state",">","open"]]}`, `invalid: where[0]: state >: this operator does not apply to a field of type State?`},
		{"query", `{"from":"Thing","where":[["size","=",1,"ignoreCase"]]}`, `invalid: where[0]: size =: this operator with ignoreCase does not apply to a field of type int?`},
		{"query", `{"from":"Thing","where":[["title","!=","a","ignoreCase"]]}`, `invalid: where[0]: title !=: ignoreCase is allowed only with =, startsWith and contains`},
		{"query", `{"from":"Thing","where":[["title","=",null,"ignoreCase"]]}`, `invalid: where[0]: title =: the value must be a string`},
		{"query", `{"from":"Thing","where":[["tags","startsWith","a","ignoreCase"]]}`, `invalid: where[0]: tags startsWith: this operator with ignoreCase does not apply to a field of type string[]?`},
		{"query", `{"from":"Person","where":[["things","=",null]]}`, `invalid: where[0]: Person.things is a to-many relation: ask Thing where owner is the row's id`},

		{"query", `{"from":"Thing","orderBy":"size"}`, `invalid: orderBy: must be a list of [field, direction]`},
		{"query", `{"from":"Thing","orderBy":["size"]}`, `invalid: orderBy[0]: must be [field, "asc"] or [field, "desc"]`},
		{"query", `{"from":"Thing","orderBy":[["size","down"]]}`, `invalid: orderBy[0]: must be [field, "asc"] or [field, "desc"]`},
		{"query", `{"from":"Thing","orderBy":[["size","asc"],["size","desc"]]}`, `invalid: orderBy[1]: "size" is given twice`},
		{"query", `{"from":"Thing","orderBy":[["data","asc"]]}`, `invalid: orderBy[0]: data cannot be ordered`},
		{"query", `{"from":"Thing","orderBy":[["tags","asc"]]}`, `invalid: orderBy[0]: tags cannot be ordered`},
		{"query", `{"from":"Thing","orderBy":[["sise","asc"]]}`, `invalid: orderBy[0]: Thing has no field "sise" that the caller may read (did you mean "size"?)`},
		{"query", `{"from":"Thing","limit":null}`, `invalid: limit: must not be null: leave it out`},
		{"query", `{"from":"Thing","where":null}`, `invalid: where: must not be null: leave it out`},
		{"count", `{"from":"Thing","where":null}`, `invalid: where: must not be null: leave it out`},
		{"query", `{"from":"Person","include":{"things":{"limit":null}}}`, `invalid: include.things: limit: must not be null: leave it out`},
		{"query", `{"from":"Thing","limit":0}`, `invalid: limit: must be a whole number from 1 to 1000`},
		{"query", `{"from":"Thing","limit":1001}`, `invalid: limit: must be a whole number from 1 to 1000`},
		{"query", `{"from":"Thing","limit":1.5}`, `invalid: limit: must be a whole number from 1 to 1000`},
		{"query", `{"from":"Thing","limit":"5"}`, `invalid: limit: must be a whole number from 1 to 1000`},
		{"query", `{"from":"Thing","select":"size"}`, `invalid: select: must be a list of fields`},
		{"query", `{"from":"Thing","select":[1]}`, `invalid: select[0]: must be the name of a field`},
		{"query", `{"from":"Thing","select":["size","size"]}`, `invalid: select[1]: "size" is given twice`},
		{"get", `{"from":"Thing","id":"x","select":["sizd"]}`, `invalid: select[0]: Thing has no field "sizd" that the caller may read (did you mean "size"?)`},
		{"query", `{"from":"Person","select":["things"]}`, `invalid: select[0]: Person.things is a to-many relation and cannot be selected: name it in include`},
		{"query", `{"from":"Thing","cursor":7}`, `invalid: cursor: not valid for this query and this caller: use the nextCursor of its previous page`},
		{"query", `{"from":"Thing","cursor":"AAAA"}`, `invalid: cursor: not valid for this query and this caller: use the nextCursor of its previous page`},

		{"insert", `{"into":"Thing","values":7}`, `invalid: values: must be an object or a list of objects`},
		{"insert", `{"into":"Thing","values":[{},7]}`, `invalid: values[1]: must be an object`},
		{"insert", `{"into":"Thing","values":[` + many(1001, "{}") + `]}`, `limit: values: at most 1000 rows are allowed: insert fewer at a time`},
		{"insert", `{"into":"Thing","values":[{},{"titel":"x"}]}`, `invalid: values[1]: Thing has no field "titel" that the caller may write (did you mean "title"?)`},
		{"update", `{"in":"Thing","set":[],"where":[]}`, `invalid: set: must be an object`},
		{"insert", `{"into":"Person","values":{"things":[]}}`, `invalid: values.things: a to-many relation is set by Thing.owner`},
	} {
		_, err := query.Ask(s, member, c.op, c.args)
		if got := failure(err); got != c.want {
			t.Errorf("%s %.200s\nsays     %s\nexpected %s", c.op, c.args, got, c.want)
		}
	}
}

func TestComparedValuesHaveTheFieldsTypeButNotItsBounds(t *testing.T) {
	s := compiled(t, querySchema)
	ask := func(condition string) string {
		_, err := query.Ask(s, member, "query", `{"from":"Thing","where":[`+condition+`]}`)
		return failure(err)
	}
	for _, ok := range []string{
		`["id","=","not an id"]`, `["owner","=","x"]`, `["title","=",""]`, `["title",">","a text that is longer than the field"]`,
		`["mail","startsWith","a@"]`, `["link","contains","//"]`, `["code","=","00000000-0000-4000-8000-00000000000A"]`,
		`["size",">",9007199254740991]`, `["ratio","<=",1e300]`, `["price","<",-5]`, `["price","<","123456789012.345"]`,
		`["good","!=",true]`, `["at",">=","2026-01-31T12:00:00+02:00"]`, `["day","<","2026-01-31"]`, `["lasts","=",90]`,
		`["blob","=","AAE="]`, `["state","in",["open","gone"]]`, `["state","startsWith","o"]`, `["tags","contains","x"]`,
		`["tags","=",null]`, `["data","!=",null]`, `["title","=",null]`, `["size","in",[]]`,
	} {
		if got := ask(ok); got != "" {
			t.Errorf("%s is refused: %s", ok, got)
		}
	}
	for _, bad := range []string{
		`["size","=","1"]`, `["size","=",1.5]`, `["size","=",9007199254740992]`, `["size","=",[]]`, `["size","=",{}]`,
		`["ratio","=","1"]`, `["ratio","=",1e999]`, `["price","=","abc"]`, `["good","=",1]`, `["good","=","true"]`,
		`["at","=","yesterday"]`, `["at","=","2026-01-31"]`, `["day","=","2026-02-30"]`, `["lasts","=","90s"]`,
		`["blob","=","?"]`, `["state","=","opne"]`, `["code","=","x"]`, `["tags","contains",1]`, `["title","=",7]`, `["id","=",7]`,
	} {
		if got := ask(bad); !strings.HasPrefix(got, "invalid: where[0]: ") {
			t.Errorf("%s: %q", bad, got)
		}
	}
}

// TestHiddenFieldOracle probes for a hidden field, letter by letter, wherever a name is
// allowed: each answer is the one for a field that does not exist.
func TestHiddenFieldOracle(t *testing.T) {
	s := compiled(t, querySchema)
	for _, who := range []*caller.Caller{member, keyOf("some"), keyOf("every"), {Kind: caller.Session, UserID: "u1", Tenant: "f1", Roles: []string{"admin"}}} {
		for _, ask := range []struct{ op, args string }{
			{"query", `{"from":"Thing","where":[["NAME","startsWith","a"]]}`},
			{"query", `{"from":"Thing","where":[["NAME","=",null]]}`},
			{"query", `{"from":"Thing","where":[["NAME","=",7]]}`},
			{"query", `{"from":"Thing","where":[["NAME","like",7]]}`},
			{"query", `{"from":"Thing","where":[["or",["NAME","startsWith","b"],["size","=",1]]]}`},
			{"query", `{"from":"Thing","where":[["not",[["NAME","in",["c"]]]]]}`},
			{"query", `{"from":"Thing","orderBy":[["NAME","asc"]]}`},
			{"query", `{"from":"Thing","select":["NAME"]}`},
			{"get", `{"from":"Thing","id":"x","select":["NAME"]}`},
			{"count", `{"from":"Thing","where":[["NAME",">","d"]]}`},
			{"update", `{"in":"Thing","set":{},"where":[["NAME","startsWith","e"]]}`},
			{"delete", `{"from":"Thing","where":[["NAME","startsWith","f"]]}`},
			{"insert", `{"into":"Thing","values":{"NAME":"g"}}`},
			{"update", `{"in":"Thing","set":{"NAME":"h"},"where":[]}`},
		} {
			const unknown = "nameless" // as similar to existing fields as the hidden one is
			_, err1 := query.Ask(s, who, ask.op, strings.ReplaceAll(ask.args, "NAME", "secret"))
			_, err2 := query.Ask(s, who, ask.op, strings.ReplaceAll(ask.args, "NAME", unknown))
			got, want := failure(err1), strings.ReplaceAll(failure(err2), unknown, "secret")
			writes := who.Scope == "some" && strings.Contains(ask.args, `{"NAME"`) // granted by name
			if got != want && !writes || err1 == nil && !writes {
				t.Errorf("%s %s as %s %s\nsays %s\nbut  %s for a field that does not exist", ask.op, ask.args, who.Kind, who.Scope, got, want)
			}
			if !writes && strings.Count(got, "secret") > 1 {
				t.Errorf("%s hints at the field", got)
			}
		}
	}
	// A misspelt name does not suggest it either.
	_, err := query.Ask(s, member, "query", `{"from":"Thing","where":[["secre","=","x"]]}`)
	if got := failure(err); strings.Contains(got, "secret") {
		t.Errorf("the hidden field is suggested: %s", got)
	}
	// A caller whose grant names it may use it.
	if _, err := query.Ask(s, keyOf("teller"), "query", `{"from":"Thing","where":[["secret","startsWith","a"]],"orderBy":[["secret","desc"]]}`); err != nil {
		t.Error(err)
	}
}

func TestAKeyReadsAndWritesOnlyTheFieldsOfItsGrants(t *testing.T) {
	s := compiled(t, querySchema)
	all := []string{"id", "firm", "title", "note", "mail", "link", "code", "size", "ratio", "price", "good", "at", "day", "lasts", "data", "blob", "state", "owner", "tags", "fixed", "madeAt"}
	for _, c := range []struct {
		who    *caller.Caller
		fields []string
	}{
		{member, all},
		{keyOf("some"), []string{"id", "title", "size"}},
		{keyOf("teller"), []string{"id", "secret"}},
		{keyOf("every"), all},
		{&caller.Caller{Kind: caller.Anonymous, As: "some", Tenant: "f1"}, []string{"id", "title", "size"}},
		{&caller.Caller{Kind: caller.System}, slices.Insert(slices.Clone(all), len(all)-2, "secret")},
	} {
		asked, err := query.Ask(s, c.who, "query", `{"from":"Thing"}`)
		if err != nil {
			t.Errorf("%s %s: %v", c.who.Kind, c.who.Scope, err)
		} else if got := asked.Selected(); !slices.Equal(got, c.fields) {
			t.Errorf("%s %s reads %v, expected %v", c.who.Kind, c.who.Scope, got, c.fields)
		}
	}
	for _, c := range []struct {
		who  *caller.Caller
		args string
		want string
	}{
		{member, `{"title":"x","size":1,"data":{"a":[1]}}`, ""},
		{member, `{"title":""}`, "invalid: values.title: "},
		{member, `{"price":-1}`, "invalid: values.price: "},
		{member, `{"id":"01hzzzzzzzzzzzzzzzzzzzzzzz"}`, "invalid: values.id: ids are set by the host"},
		{member, `{"firm":"f2"}`, "invalid: values.firm: the tenant is the caller's and cannot be set"},
		{member, `{"firm":"f1"}`, "invalid: values.firm: the tenant is the caller's and cannot be set"},
		{member, `{"madeAt":"2026-01-31T12:00:00Z"}`, "invalid: values.madeAt: the host sets this time"},
		{member, `{"fixed":1}`, "invalid: values.fixed: the field is @readonly"},
		{keyOf("some"), `{"title":"x","secret":"y"}`, ""},
		{keyOf("some"), `{"size":1}`, `invalid: values: Thing has no field "size" that the caller may write`},
		{keyOf("some"), `{"id":"x"}`, "invalid: values.id: ids are set by the host"},
		{keyOf("some"), `{"madeAt":null}`, `invalid: values: Thing has no field "madeAt" that the caller may write`},
		{keyOf("blind"), `{"id":"x"}`, `invalid: values: Thing has no field "id" that the caller may write`},
		{keyOf("every"), `{"title":"x","firm":"f7"}`, ""},
		{&caller.Caller{Kind: caller.System}, `{"title":"x","firm":"f7","secret":"s","fixed":3}`, ""},
		{&caller.Caller{Kind: caller.System}, `{"id":"01hzzzzzzzzzzzzzzzzzzzzzzz"}`, "invalid: values.id: ids are set by the host"},
	} {
		_, err := query.Ask(s, c.who, "insert", `{"into":"Thing","values":`+c.args+`}`)
		if got := failure(err); got != c.want && !(strings.HasSuffix(c.want, ": ") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s as %s %s: %q, expected %q", c.args, c.who.Kind, c.who.Scope, got, c.want)
		}
	}
	// Ids of users come from elsewhere.
	if _, err := query.Ask(s, member, "insert", `{"into":"Person","values":{"id":"auth0|7","name":"x"}}`); err != nil {
		t.Error(err)
	}
	if _, err := query.Ask(s, member, "update", `{"in":"Person","set":{"id":"auth0|8"},"where":[]}`); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("an id is changed: %v", err)
	}
	if _, err := query.Ask(s, keyOf("every"), "insert", `{"into":"Thing","values":{"firm":"not/an/id"}}`); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a tenant with an impossible id: %v", err)
	}
}

func TestWithoutAnyRightAnOperationIsDenied(t *testing.T) {
	s := compiled(t, querySchema)
	for _, c := range []struct {
		who      *caller.Caller
		op, args string
		want     string
	}{
		{nobody, "query", `{"from":"Person"}`, "denied: no @@allow of Person lets callers of kind anonymous read: add one, or give the route the grants of a scope with as:"},
		{nobody, "query", `{"from":"Thing"}`, "denied: no @@allow of Thing lets callers of kind anonymous read: add one, or give the route the grants of a scope with as:"},
		{member, "insert", `{"into":"Firm","values":{}}`, "denied: no @@allow of Firm lets callers of kind session insert"},
		{keyOf("some"), "delete", `{"from":"Thing","where":[]}`, `denied: the scope "some" grants no delete on Thing`},
		{keyOf("some"), "query", `{"from":"Person"}`, `denied: the scope "some" grants no read on Person`},
		{keyOf("gone"), "query", `{"from":"Thing"}`, `denied: the scope "gone" grants no read on Thing`},
		{keyOf("blind"), "count", `{"from":"Thing"}`, `denied: the scope "blind" grants no read on Thing`},
		{&caller.Caller{As: "blind", Tenant: "f1"}, "get", `{"from":"Thing","id":"x"}`, `denied: the scope "blind" grants no read on Thing`},
		{&caller.Caller{Kind: caller.Session, UserID: "u1"}, "query", `{"from":"Thing"}`, "denied: rows of Thing belong to tenants, and the caller has none"},
		{&caller.Caller{Kind: caller.Session, UserID: "u1"}, "query", `{"from":"Person"}`, ""},
		{&caller.Caller{Kind: caller.APIKey, Scope: "every"}, "query", `{"from":"Thing"}`, ""},
		// A scope that was renamed is found by its capability.
		{&caller.Caller{Kind: caller.APIKey, Scope: "formerly", Capability: "some", Tenant: "f1"}, "query", `{"from":"Thing"}`, ""},
		{&caller.Caller{Kind: caller.System}, "delete", `{"from":"Firm","where":[]}`, ""},
	} {
		_, err := query.Ask(s, c.who, c.op, c.args)
		if got := failure(err); got != c.want {
			t.Errorf("%s %s as %s %s%s: %q, expected %q", c.op, c.args, c.who.Kind, c.who.Scope, c.who.As, got, c.want)
		}
	}
}

func TestWithoutReadAccessOnlyTheIDCanBeSelected(t *testing.T) {
	s := compiled(t, querySchema)
	for _, op := range []string{`"in":"Thing","set":{"title":"x"}`, `"from":"Thing"`} {
		kind := "update"
		if strings.HasPrefix(op, `"from"`) {
			kind = "delete"
		}
		if _, err := query.Ask(s, keyOf("blind"), kind, `{`+op+`,"where":[["id","in",["a","b"]],["not",["id","=","c"]]]}`); err != nil {
			t.Errorf("%s by id: %v", kind, err)
		}
		for _, name := range []string{"title", "secret", "nothing"} {
			_, err := query.Ask(s, keyOf("blind"), kind, `{`+op+`,"where":[["id","=","a"],["`+name+`","=","x"]]}`)
			want := `invalid: where[1]: "` + name + `" cannot be used: without the right to read, only id can`
			if got := failure(err); got != want {
				t.Errorf("%s by %s: %q, expected %q", kind, name, got, want)
			}
		}
	}
	// A caller that may read some fields can name the id too.
	if _, err := query.Ask(s, keyOf("some"), "update", `{"in":"Thing","set":{"title":"x"},"where":[["id","=","a"],["size","=",1]]}`); err != nil {
		t.Error(err)
	}
}

func TestANullMemberIsTheSameAsAMissingOne(t *testing.T) {
	s := compiled(t, querySchema)
	asked, err := query.Ask(s, member, "query", `{"from":"Thing","select":null,"orderBy":null,"cursor":null,"include":null}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := asked.Canonical(), `{"from":"Thing","where":[],"orderBy":[]}`; got != want || asked.Limit() != 100 {
		t.Errorf("%s with limit %d, expected %s with limit 100", got, asked.Limit(), want)
	}
}

// FuzzQueryAST: an accepted query has a canonical form that means the same when it is
// parsed again, and uses only readable fields.
func FuzzQueryAST(f *testing.F) {
	typed, free := compiled(f, querySchema), compiled(f, untypedSchema)
	for _, args := range []string{
		`{"from":"Thing"}`,
		`{"from":"Thing","where":[["size","=",1],["or",["title","in",["a","b"]],[["at",">","2026-01-31T12:00:00Z"],["price","<","1.50"]]],["not",["tags","contains","x"]]]}`,
		`{"from":"Thing","where":[["not",["not",[]]],["or",["owner","!=",null]]],"orderBy":[["state","desc"],["id","asc"]],"limit":7,"select":["id"]}`,
		`{"from":"Thing","where":[["ratio","<=",1.50e1],["day","=","2026-01-31"],["lasts",">",5],["blob","=","AAE="]]}`,
		`{"from":"Thing","where":[["code","=","00000000-0000-4000-8000-00000000000A"],["good","=",true],["note","startsWith","\u00e9\n"]]}`,
		`{"from":"Thing","where":[["title","startsWith","Stra\u1e9e","ignoreCase"],["note","=","abc","ignoreCase"],["tags","contains","x","ignoreCase"]]}`,
		`{"from":"Person","include":{"things":{"select":["size"],"where":[["size",">",1]],"orderBy":[["size","desc"]],"limit":3,"include":{"owner":{"select":[]}}}}}`,
		` { "where" : [ [ "x" , "=" , null ] ] , "from" : "Thing" } `,
	} {
		f.Add(args)
	}
	f.Fuzz(func(t *testing.T, args string) {
		for _, s := range []*schema.Schema{typed, free} {
			asked, err := query.Ask(s, member, "query", args)
			if err != nil {
				if f := fault.Of(err); f.Code != fault.Invalid || f.Detail == "" {
					t.Fatalf("%s\nfails with %s", args, failure(err))
				}
				continue
			}
			canonical := asked.Canonical()
			again, err := query.Ask(s, member, "query", canonical)
			if err != nil || again.Canonical() != canonical {
				t.Fatalf("%s\nis written  %s\nthat is read %s %v", args, canonical, again.Canonical(), err)
			}
			given, written := decoded(t, args), decoded(t, canonical)
			for _, member := range []string{"where", "orderBy"} {
				if given[member] == nil {
					given[member] = []any{}
				}
				if !sameAST(given[member], written[member]) {
					t.Fatalf("%s\nis written %s", args, canonical)
				}
			}
			more := strings.Replace(args, "{", `{"offset":0,`, 1)
			if _, err := query.Ask(s, member, "query", more); !strings.HasPrefix(failure(err), `invalid: unknown member "offset"`) {
				t.Fatalf("%s\nis accepted: %v", more, err)
			}
			if row := make([]schema.Value, 64); s.Typed && asked.Match(row) && !asked.Promised(row, 7) {
				t.Fatalf("%s: the planner gets a condition on size that the row of nulls does not fulfil", args)
			}
		}
	})
}

// FuzzAggregateArguments: an accepted aggregate uses only readable fields that it may use.
func FuzzAggregateArguments(f *testing.F) {
	typed, free := compiled(f, querySchema), compiled(f, untypedSchema)
	for _, args := range []string{
		`{"from":"Thing","count":true}`,
		`{"from":"Thing","where":[["size",">",1]],"groupBy":["state","good"],"sum":["size","price"],"avg":["ratio"],"min":["at"],"max":["title"],"count":false}`,
		`{"from":"Thing","groupBy":null,"sum":["lasts"]}`,
	} {
		f.Add(args)
	}
	f.Fuzz(func(t *testing.T, args string) {
		for _, s := range []*schema.Schema{typed, free} {
			asked, err := query.Ask(s, member, "aggregate", args)
			if err != nil {
				if f := fault.Of(err); f.Code != fault.Invalid || f.Detail == "" {
					t.Fatalf("%s\nfails with %s", args, failure(err))
				}
				continue
			}
			used := asked.Used()
			if !s.Typed || len(used) > 18 {
				t.Fatalf("%s is accepted", args)
			}
			for _, field := range used {
				if field.Hidden || field.Type.List || field.Type.Kind == schema.JSON || field.Type.Kind == schema.Bytes || field.Type.Kind == schema.ToMany {
					t.Fatalf("%s: %s is used", args, field.Name)
				}
			}
		}
	})
}

// FuzzInsertArguments: accepted values are accepted again in their stored form, and contain
// only fields that the caller may write.
func FuzzInsertArguments(f *testing.F) {
	typed, free := compiled(f, querySchema), compiled(f, untypedSchema)
	for _, args := range []string{
		`{"into":"Thing","values":{}}`,
		`{"into":"Thing","values":[{"title":"x","size":1,"ratio":1e3,"price":12.5,"good":false,"note":null},{"tags":["a"],"data":{"a":[1,{"b":null}]}}]}`,
		`{"into":"Thing","values":{"at":"2026-01-31T12:00:00.5+02:00","day":"2026-01-31","lasts":90,"blob":"AAE=","state":"open","owner":"auth0|1"}}`,
		`{"into":"Thing","values":{"code":"00000000-0000-4000-8000-00000000000A","mail":"a@example.com","link":"https://example.com"}}`,
		`{"into":"Thing","values":{"id":"x"}}`,
	} {
		f.Add(args)
	}
	f.Fuzz(func(t *testing.T, args string) {
		for _, s := range []*schema.Schema{typed, free} {
			asked, err := query.Ask(s, member, "insert", args)
			if err != nil {
				if f := fault.Of(err); f.Code != fault.Invalid || f.Detail == "" {
					t.Fatalf("%s\nfails with %s", args, failure(err))
				}
				continue
			}
			written := asked.Written()
			again, err := query.Ask(s, member, "insert", written)
			if err != nil || again.Written() != written {
				t.Fatalf("%s\nis kept as %s\nthat is read %s %v", args, written, again.Written(), err)
			}
			for _, row := range decoded(t, written)["values"].([]any) {
				for _, name := range []string{"id", "firm", "secret", "fixed", "madeAt"} {
					if _, there := row.(map[string]any)[name]; there && (s.Typed || name == "id") {
						t.Fatalf("%s\nsets %s", args, name)
					}
				}
			}
		}
	})
}

func decoded(t *testing.T, text string) map[string]any {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// sameAST compares the input with the canonical form. Values with several forms are
// compared only by parsing again.
func sameAST(given, written any) bool {
	x, ok1 := given.([]any)
	y, ok2 := written.([]any)
	if !ok1 || !ok2 {
		return sameValue(given, written)
	}
	if len(x) != len(y) || len(x) == 0 {
		return len(x) == len(y)
	}
	if text, ok := x[len(x)-1].(string); ok && len(x) == 4 && text == "ignoreCase" {
		value, _ := x[2].(string)
		return x[0] == y[0] && x[1] == y[1] && y[2] == casefold.Fold(value) && y[3] == text
	}
	if len(x) == 3 {
		name, ok := x[0].(string)
		_, comparison := x[1].(string)
		if ok && comparison && slices.Contains([]string{"at", "day", "price", "code", "blob"}, name) {
			return x[0] == y[0] && x[1] == y[1]
		}
	}
	for i := range x {
		if !sameAST(x[i], y[i]) {
			return false
		}
	}
	return true
}

func sameValue(a, b any) bool {
	x, ok1 := a.(json.Number)
	y, ok2 := b.(json.Number)
	if !ok1 || !ok2 {
		return reflect.DeepEqual(a, b)
	}
	p, err1 := x.Float64()
	q, err2 := y.Float64()
	return err1 == nil && err2 == nil && p == q
}

func TestUntypedRowsHaveNeitherRelationsNorTotals(t *testing.T) {
	s := compiled(t, untypedSchema)
	for _, c := range []struct{ op, args, want string }{
		{"query", `{"from":"Thing","include":{"owner":{}}}`, `invalid: include: rows of Thing have no relations, because no entity is declared`},
		{"aggregate", `{"from":"Thing","count":true}`, `invalid: aggregate: rows of Thing have no declared fields: declare it as an entity`},
	} {
		if _, err := query.Ask(s, member, c.op, c.args); failure(err) != c.want {
			t.Errorf("%s %s: %s, expected %s", c.op, c.args, failure(err), c.want)
		}
	}
	asked, err := query.Ask(s, member, "count", `{"from":"Thing","where":[["title","contains","SS","ignoreCase"],["list","contains","X","ignoreCase"],["size","=","a","ignoreCase"]]}`)
	if err != nil || asked.Match(asked.FreeValues("1", `{"title":"Stra\u00dfe","list":["x"],"size":1}`)) || !asked.Match(asked.FreeValues("1", `{"title":"Stra\u00dfe","list":[1,"x"],"size":"A"}`)) {
		t.Errorf("a row of texts in other case does not match, or a number does: %v", err)
	}
}

func TestUntypedRowsAreComparedByKindAndValue(t *testing.T) {
	s := compiled(t, untypedSchema)
	const row = `{"title":"abc","size":10,"half":0.5,"big":1e3,"yes":true,"no":null,"list":[1,"x",[2]],"object":{"a":1}}`
	for _, c := range []struct {
		condition string
		want      bool
	}{
		{`["id","=","r1"]`, true}, {`["id","=","r2"]`, false}, {`["id","startsWith","r"]`, true},
		{`["title","=","abc"]`, true}, {`["title","startsWith","ab"]`, true}, {`["title","contains","bc"]`, true},
		{`["size","=",10]`, true}, {`["size","=",10.0]`, true}, {`["size","=",1e1]`, true}, {`["size","=","10"]`, false},
		{`["size","!=","10"]`, true}, {`["size","<","11"]`, false}, {`["size","<",11]`, true}, {`["half","<",1]`, true},
		{`["big","=",1000]`, true}, {`["yes","=",true]`, true}, {`["yes","=",1]`, false}, {`["yes","=","true"]`, false},
		{`["no","=",null]`, true}, {`["absent","=",null]`, true}, {`["size","=",null]`, false}, {`["absent","<",1]`, false},
		{`["absent","!=",1]`, true}, {`["list","contains",1]`, true}, {`["list","contains","x"]`, true}, {`["list","contains",2]`, false},
		{`["list","=",null]`, false}, {`["object","=",null]`, false}, {`["object","!=","x"]`, true},
		{`["size","in",["10",10]]`, true}, {`["size","in",[]]`, false}, {`["size","startsWith","1"]`, false},
		{`["or",["size","=",1],["title",">","abb"]]`, true}, {`["not",["size","=",10]]`, false},
	} {
		asked, err := query.Ask(s, member, "query", `{"from":"Thing","where":[`+c.condition+`]}`)
		if err != nil {
			t.Errorf("%s: %v", c.condition, err)
		} else if got := asked.Match(asked.FreeValues("r1", row)); got != c.want {
			t.Errorf("%s is %v of %s", c.condition, got, row)
		}
	}
	for _, bad := range []string{`["x","=",[1]]`, `["x","=",{}]`, `["x","=",1e999]`, `["x","startsWith",1]`, `["x","in",[[1]]]`} {
		if _, err := query.Ask(s, member, "query", `{"from":"Thing","where":[`+bad+`]}`); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestGrantsLimitUntypedRowsToo(t *testing.T) {
	s := compiled(t, untypedSchema)
	some := keyOf("some")
	asked, err := query.Ask(s, some, "query", `{"from":"Thing","where":[["size",">",1]]}`)
	if err != nil {
		t.Fatal(err)
	}
	if !asked.MayReadFree("r1", `{"size":4}`) || asked.MayReadFree("r1", `{"size":3}`) || !asked.MayReadFree("r1", `{"size":"3"}`) || !asked.MayReadFree("r1", `{}`) {
		t.Error("the grant's where does not limit what is read")
	}
	for _, c := range []struct{ op, args, want string }{
		{"query", `{"from":"Thing","where":[["price","=",1]]}`, `invalid: where[0]: Thing has no field "price" that the caller may read`},
		{"query", `{"from":"Thing","orderBy":[["titel","asc"]]}`, `invalid: orderBy[0]: Thing has no field "titel" that the caller may read (did you mean "title"?)`},
		{"query", `{"from":"Thing","select":["price"]}`, `invalid: select[0]: Thing has no field "price" that the caller may read`},
		{"insert", `{"into":"Thing","values":{"price":1}}`, `invalid: values: Thing has no field "price" that the caller may write`},
		{"insert", `{"into":"Thing","values":{"id":"x"}}`, `invalid: values.id: ids are set by the host`},
		{"update", `{"in":"Thing","set":{},"where":[]}`, `denied: the scope "some" grants no update on Thing`},
	} {
		_, err := query.Ask(s, some, c.op, c.args)
		if got := failure(err); got != c.want {
			t.Errorf("%s %s: %q, expected %q", c.op, c.args, got, c.want)
		}
	}
	asked, err = query.Ask(s, some, "insert", `{"into":"Thing","values":[{"size" : 1.50, "title":"\u0061"},{}]}`)
	if got := asked.Objects(); err != nil || !slices.Equal(got, []string{`{"size":1.50,"title":"a"}`, `{}`}) {
		t.Errorf("%q %v", got, err)
	}
	if !asked.MayInsertFree("", `{"size":1}`) || asked.MayInsertFree("", `{"size":3}`) {
		t.Error("the grant's where does not limit what is written")
	}
}

// TestLargeNumbersOfUntypedRowsStayDistinct: integers of up to 64 bits are compared
// exactly.
func TestLargeNumbersOfUntypedRowsStayDistinct(t *testing.T) {
	s := compiled(t, untypedSchema)
	n := new(big.Int).SetUint64(1<<62 + 1)
	asked, err := query.Ask(s, member, "query", fmt.Sprintf(`{"from":"Thing","where":[["n","=",%d]]}`, n))
	if err != nil {
		t.Fatal(err)
	}
	if !asked.Match(asked.FreeValues("r", fmt.Sprintf(`{"n":%d}`, n))) || asked.Match(asked.FreeValues("r", fmt.Sprintf(`{"n":%d}`, n.Sub(n, big.NewInt(1))))) {
		t.Error("two different numbers are equal")
	}
	if !bytes.Contains([]byte(asked.Canonical()), []byte("4611686018427387905")) {
		t.Errorf("it is written %s", asked.Canonical())
	}
}
