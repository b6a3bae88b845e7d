package entity_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/entity/catalog"
	"runner.example/state/store"
)

// database is a store in memory with an active schema.
type database struct {
	store *store.Store
	model *entity.Model
}

func openDatabase(t *testing.T, text string) *database {
	t.Helper()
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sources := []diag.Source{{Name: "app.schema", Text: []byte(text)}}
	s, found := compiler.Compile(sources, compiler.Options{})
	if s == nil {
		t.Fatal(found)
	}
	model, err := entity.Activate(context.Background(), st, s, sources, entity.Options{CursorKey: [32]byte{7}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := catalog.Verify(context.Background(), st); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return &database{st, model}
}

// do runs one operation in its own transaction and returns its answer, or its fault as
// text.
func (d *database) do(t *testing.T, who *caller.Caller, op, args string) string {
	t.Helper()
	var out entity.Result
	var failed error
	_, err := d.store.Update(context.Background(), func(tx *store.Tx) error {
		var a entity.Access
		a.Reset(d.model, tx, who, 100_000)
		failed = a.Do(op, []byte(args), &out)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if failed != nil {
		return failure(failed)
	}
	return string(out.JSON)
}

// insert inserts rows as an operator and returns the id of the first.
func (d *database) insert(t *testing.T, name, values string) string {
	t.Helper()
	answer := d.do(t, &caller.Caller{Kind: caller.System}, "insert", fmt.Sprintf(`{"into":%q,"values":%s}`, name, values))
	var got struct{ Rows []struct{ ID string } }
	if err := json.Unmarshal([]byte(answer), &got); err != nil || len(got.Rows) == 0 {
		t.Fatalf("insert of %s: %s", values, answer)
	}
	return got.Rows[0].ID
}

// schemaOf reads a schema of the tests of package query.
func schemaOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("query/testdata/" + name + ".schema")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	member    = &caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "f1", Roles: []string{"member"}}
	anonymous = &caller.Caller{}
)

func keyOf(scope string) *caller.Caller {
	return &caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Tenant: "f1", Scope: scope, Capability: scope}
}

// failure returns the code and text of a fault.
func failure(err error) string {
	f := fault.Of(err)
	return string(f.Code) + ": " + f.Detail
}

// TestProbesOfAHiddenFieldGetEqualAnswers guesses the value of a field that the caller may
// not read: a right guess and a wrong one get the same answer.
func TestProbesOfAHiddenFieldGetEqualAnswers(t *testing.T) {
	d := openDatabase(t, schemaOf(t, "thing"))
	id := d.insert(t, "Thing", `{"firm":"f1","title":"x","secret":"kitten"}`)
	d.insert(t, "Thing", `{"firm":"f1","title":"y","secret":"zebra"}`)
	for _, who := range []*caller.Caller{member, keyOf("every"), keyOf("some")} {
		for _, op := range []string{"query", "count", "update", "delete"} {
			args := `{"from":"Thing","where":[["secret","%s","%s"]]}`
			if op == "update" {
				args = `{"in":"Thing","set":{},"where":[["secret","%s","%s"]]}`
			}
			for _, operator := range []string{"=", "startsWith", "contains", "<"} {
				right, wrong := d.do(t, who, op, fmt.Sprintf(args, operator, "kit")), d.do(t, who, op, fmt.Sprintf(args, operator, "dog"))
				if right != wrong || !strings.HasPrefix(right, "invalid: ") && !strings.HasPrefix(right, "denied: ") {
					t.Errorf("%s where secret %s: %s, else %s", op, operator, right, wrong)
				}
			}
		}
		for _, args := range []string{`{"from":"Thing","orderBy":[["secret","asc"]]}`, `{"from":"Thing","select":["secret"]}`} {
			if got := d.do(t, who, "query", args); !strings.HasPrefix(got, "invalid: ") {
				t.Errorf("%s: %s", args, got)
			}
		}
		if got := d.do(t, who, "get", fmt.Sprintf(`{"from":"Thing","id":%q}`, id)); strings.Contains(got, "kitten") || strings.Contains(got, "secret") || !strings.Contains(got, `"title":"x"`) {
			t.Errorf("a get answers %s", got)
		}
	}
}

// TestAnUpdateDoesNotRevealHiddenFields: a caller that may change but not read rows cannot
// find them by guessing values.
func TestAnUpdateDoesNotRevealHiddenFields(t *testing.T) {
	d := openDatabase(t, `
auth { session cookie { idle: 30m } roles: [staff] user: Person }
entity Person { id: id }
entity Note { id: id
  owner: Person
  text: string(1..40)
  seen: int = 0
  @@allow read to session when owner == auth.userId
  @@allow update, delete to session
}
routes("/", auth: none, rateLimit: none) { GET / -> home }`)
	for _, id := range []string{"u1", "u2"} {
		d.insert(t, "Person", fmt.Sprintf(`{"id":%q}`, id))
	}
	theirs := d.insert(t, "Note", `{"owner":"u2","text":"kitten"}`)
	d.insert(t, "Note", `{"owner":"u1","text":"kit"}`)
	me := &caller.Caller{Kind: caller.Session, UserID: "u1"}
	for where, want := range map[string]int{
		`["text","startsWith","kit"]`: 1, `["text","startsWith","kitt"]`: 0, `["not",["text","=","kit"]]`: 0,
		`["id","=","` + theirs + `"]`: 0, ``: 1,
	} {
		got := d.do(t, me, "update", `{"in":"Note","set":{"seen":1},"where":[`+where+`]}`)
		if !strings.Contains(got, fmt.Sprintf(`"count":%d`, want)) {
			t.Errorf("where %s: %s, expected %d", where, got, want)
		}
	}
	if got := d.do(t, me, "delete", `{"from":"Note","where":[["id","=","`+theirs+`"]]}`); got != `{"count":0}` {
		t.Errorf("an invisible note is deleted: %s", got)
	}
}

func TestACursorContinuesOnlyForItsCaller(t *testing.T) {
	d := openDatabase(t, schemaOf(t, "thing"))
	d.insert(t, "Thing", `[{"firm":"f1","title":"a","secret":"s"},{"firm":"f1","title":"b","secret":"s"},{"firm":"f1","title":"c","secret":"s"}]`)
	const ask = `{"from":"Thing","select":["title"],"orderBy":[["title","desc"]],"limit":2`
	var page struct {
		Rows       []struct{ Title string }
		NextCursor *string
	}
	first := d.do(t, member, "query", ask+`}`)
	if err := json.Unmarshal([]byte(first), &page); err != nil || page.NextCursor == nil || len(page.Rows) != 2 {
		t.Fatalf("the first page is %s", first)
	}
	next := fmt.Sprintf(`%s,"cursor":%q}`, ask, *page.NextCursor)
	if got, want := d.do(t, member, "query", next), `{"rows":[{"title":"a"}],"nextCursor":null}`; got != want {
		t.Errorf("the next page is %s", got)
	}
	if again := d.do(t, member, "query", ask+`}`); again != first {
		t.Errorf("the same page has different cursors:\n%s\n%s", first, again)
	}
	other := *member
	other.UserID = "u2"
	if got := d.do(t, &other, "query", next); !strings.HasPrefix(got, "invalid: cursor: ") {
		t.Errorf("another caller continues with it: %s", got)
	}
}

func TestUntypedRowsAreQueriedLikeDeclaredOnes(t *testing.T) {
	d := openDatabase(t, schemaOf(t, "untyped"))
	d.do(t, member, "insert", `{"into":"Thing","values":[{"title":"a","size":1,"price":7},{"title":"b","size":3},{"title":"c","size":"3","price":9}]}`)
	foreign := &caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "f2"}
	d.do(t, foreign, "insert", `{"into":"Thing","values":{"title":"d","size":4}}`)
	for _, c := range []struct {
		who      *caller.Caller
		op, args string
		want     string
	}{
		{member, "count", `{"from":"Thing"}`, `{"count":3}`},
		{foreign, "count", `{"from":"Thing","where":[["size",">",1]]}`, `{"count":1}`},
		{member, "query", `{"from":"Thing","select":["title"],"where":[["price","!=",null]],"orderBy":[["size","desc"]]}`, `{"rows":[{"title":"c"},{"title":"a"}],"nextCursor":null}`},
		{keyOf("some"), "query", `{"from":"Thing","select":["title","size"],"orderBy":[["title","desc"]]}`, `{"rows":[{"title":"c","size":"3"},{"title":"a","size":1}],"nextCursor":null}`},
		{keyOf("some"), "count", `{"from":"Thing","where":[["price",">",1]]}`, `invalid: where[0]: Thing has no field "price" that the caller may read`},
		{keyOf("some"), "insert", `{"into":"Thing","values":{"title":"e","size":3}}`, `denied: the caller may not insert this Thing`},
		{keyOf("all"), "update", `{"in":"Thing","set":{"price":1},"where":[["title","=","a"],["price","=",7.0]]}`, ``},
		{keyOf("all"), "count", `{"from":"Thing","where":[["price","=",1]]}`, `{"count":1}`},
		{anonymous, "count", `{"from":"Thing"}`, `{"count":0}`},
	} {
		if got := d.do(t, c.who, c.op, c.args); got != c.want && (c.want != "" || !strings.Contains(got, `"count":1`)) {
			t.Errorf("%s %s as %s %s: %s, expected %s", c.op, c.args, c.who.Kind, c.who.Scope, got, c.want)
		}
	}
}
