package entity_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/state/entity"
)

func TestAQueryIncludesRowsOfItsRelations(t *testing.T) {
	h := newFixture(t, shop)
	acme, zeta := h.insert(clerk, "Partner", `{"code":"acme"}`), h.insert(clerk, "Partner", `{"code":"zeta"}`)
	one := h.insert(clerk, "Order", fmt.Sprintf(`{"number":"1","partner":%q,"referrer":%q}`, acme, zeta))
	two := h.insert(clerk, "Order", fmt.Sprintf(`{"number":"2","partner":%q}`, acme))
	for _, text := range []string{"c", "a", "b"} {
		h.insert(clerk, "Line", fmt.Sprintf(`{"order":%q,"text":%q}`, one, text))
	}
	h.insert(clerk, "Line", fmt.Sprintf(`{"order":%q,"text":"x"}`, two))
	for _, c := range []struct{ op, args, want string }{
		{"query", `{"from":"Order","select":["number"],"orderBy":[["number","asc"]],"include":{"partner":{"select":["code"]},"referrer":{"select":["code"]}}}`,
			`{"rows":[{"number":"1","partner":{"code":"acme"},"referrer":{"code":"zeta"}},{"number":"2","partner":{"code":"acme"},"referrer":null}],"nextCursor":null}`},
		{"query", `{"from":"Order","select":["partner","number"],"orderBy":[["total","asc"],["number","asc"]],"include":{"partner":{"select":["code"]}}}`,
			`{"rows":[{"number":"1","partner":{"code":"acme"}},{"number":"2","partner":{"code":"acme"}}],"nextCursor":null}`},
		{"query", `{"from":"Order","select":[],"where":[["number","=","1"]],"include":{"lines":{"select":["text"],"orderBy":[["text","desc"]],"limit":2}}}`,
			`{"rows":[{"lines":[{"text":"c"},{"text":"b"}]}],"nextCursor":null}`},
		{"query", `{"from":"Order","select":["number"],"orderBy":[["number","asc"]],"include":{"lines":{"select":["text"],"where":[["text",">","b"]]}}}`,
			`{"rows":[{"number":"1","lines":[{"text":"c"}]},{"number":"2","lines":[{"text":"x"}]}],"nextCursor":null}`},
		{"get", fmt.Sprintf(`{"from":"Partner","id":%q,"select":["code"],"include":{"orders":{"select":["number"],"orderBy":[["number","asc"]],"include":{"lines":{"select":["text"],"orderBy":[["text","desc"]],"limit":1}}}}}`, acme),
			`{"row":{"code":"acme","orders":[{"number":"1","lines":[{"text":"c"}]},{"number":"2","lines":[{"text":"x"}]}]}}`},
		{"query", `{"from":"Line","select":["text"],"orderBy":[["text","asc"]],"where":[["text","in",["a","x"]]],"include":{"order":{"select":["number"],"include":{"partner":{"select":["code"]}}}}}`,
			`{"rows":[{"text":"a","order":{"number":"1","partner":{"code":"acme"}}},{"text":"x","order":{"number":"2","partner":{"code":"acme"}}}],"nextCursor":null}`},
	} {
		if got := h.must(clerk, c.op, c.args); got != c.want {
			t.Errorf("%s %s\nanswers  %s\nexpected %s", c.op, c.args, got, c.want)
		}
	}
}

func TestEveryRefusedIncludeNamesItsCause(t *testing.T) {
	h := newFixture(t, shop)
	for _, c := range []struct{ include, want string }{
		{`["partner"]`, `include: must be an object of relations and what to include of each`},
		{`{"partner":["code"]}`, `include.partner: must be an object`},
		{`{"partnr":{}}`, `include: Order has no field "partnr" that the caller may read (did you mean "partner"?)`},
		{`{"total":{}}`, `include.total: Order.total is not a relation: name it in select`},
		{`{"partner":{"select":["cod"]}}`, `include.partner: select[0]: Partner has no field "cod" that the caller may read (did you mean "code"?)`},
		{`{"partner":{"where":[]}}`, `include.partner: unknown member "where"; known: select, include`},
		{`{"lines":{"cursor":"x"}}`, `include.lines: unknown member "cursor"; known: select, where, orderBy, limit, include`},
		{`{"lines":{"limit":1001}}`, `include.lines: limit: must be a whole number from 1 to 1000`},
		{`{"lines":{"where":[["text","=",1]]}}`, `include.lines: where[0]: text =: must be a string`},
		{`{"lines":{"include":{"order":{"include":{"partner":{}}}}}}`, `include.lines: include.order: include: at most 2 levels are allowed`},
	} {
		h.fails(clerk, fault.Invalid, "query", `{"from":"Order","include":`+c.include+`}`, c.want)
	}
	h.fails(clerk, fault.Invalid, "count", `{"from":"Order","include":{}}`, `unknown member "include"`)
}

const readers = `
auth { session cookie { idle: 30m } roles: [chief] user: User }
entity User { id: id name: string(1..20) @@allow read to session when id == auth.userId }
entity Case {
  id: id
  title: string(1..20)
  owner: User
  secret: User? @hidden
  notes: Note[] @inverse(case)
  marks: Mark[] @inverse(case)
  @@allow read to session
}
entity Note { id: id case: Case text: text author: User @@allow read to session when author == auth.userId }
entity Mark { id: id case: Case @hidden text: text @@allow read to session }
apiKeys { scopes: { few: @system("test.few") { @grant read on Case fields (id, title, notes) } } }
`

func TestIncludedRowsAreReadWithTheCallersAuthority(t *testing.T) {
	h := newFixture(t, readers)
	for _, id := range []string{"u1", "u2"} {
		h.insert(operator, "User", fmt.Sprintf(`{"id":%q,"name":"name of %s"}`, id, id))
	}
	a := h.insert(operator, "Case", `{"title":"a","owner":"u1","secret":"u1"}`)
	h.insert(operator, "Case", `{"title":"b","owner":"u2"}`)
	h.insert(operator, "Note", fmt.Sprintf(`{"case":%q,"text":"mine","author":"u1"}`, a))
	h.insert(operator, "Note", fmt.Sprintf(`{"case":%q,"text":"other","author":"u2"}`, a))
	u1 := &caller.Caller{Kind: caller.Session, UserID: "u1"}
	got := h.must(u1, "query", `{"from":"Case","select":["title"],"orderBy":[["title","asc"]],"include":{"owner":{"select":["name"]},"notes":{"select":["text"]}}}`)
	want := `{"rows":[{"title":"a","owner":{"name":"name of u1"},"notes":[{"text":"mine"}]},{"title":"b","owner":null,"notes":[]}],"nextCursor":null}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	h.fails(u1, fault.Invalid, "query", `{"from":"Case","include":{"secret":{}}}`, `Case has no field "secret" that the caller may read`)
	h.fails(u1, fault.Invalid, "query", `{"from":"Case","include":{"marks":{}}}`, `include.marks: where: Mark has no field "case" that the caller may read`)
	key := &caller.Caller{Kind: caller.APIKey, KeyID: "k", Scope: "few", Capability: "test.few"}
	h.fails(key, fault.Invalid, "query", `{"from":"Case","include":{"owner":{}}}`, `Case has no field "owner" that the caller may read`)
	h.fails(key, fault.Denied, "query", `{"from":"Case","include":{"notes":{}}}`, `the scope "few" grants no read on Note`)
}

// Rows that several rows of a page refer to are read once.
func TestAnIncludedRowIsReadOnce(t *testing.T) {
	h := newFixture(t, shop)
	var partners []string
	for i := range 2 {
		partners = append(partners, h.insert(clerk, "Partner", fmt.Sprintf(`{"code":"p%d"}`, i)))
	}
	var orders []string
	for i := range 600 {
		orders = append(orders, fmt.Sprintf(`{"number":"%d","partner":%q,"referrer":%q}`, i, partners[i%2], partners[0]))
	}
	h.must(clerk, "insert", `{"into":"Order","values":[`+strings.Join(orders, ",")+`]}`)
	touched := func(args string) (n int) {
		var out entity.Result
		if err := h.in(clerk, func(a *entity.Access) error {
			err := a.Do("query", []byte(args), &out)
			n = a.Touched()
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	page := `{"from":"Order","limit":600`
	alone, included := touched(page+`}`), touched(page+`,"include":{"partner":{},"referrer":{}}}`)
	if included != alone+len(partners) {
		t.Errorf("%d rows are read with two included rows, %d without", included, alone)
	}
}

// A query includes rows as the transaction has written them so far.
func TestIncludedRowsAreThoseOfTheTransaction(t *testing.T) {
	h := newFixture(t, shop)
	partner := h.insert(clerk, "Partner", `{"code":"old"}`)
	h.insert(clerk, "Order", fmt.Sprintf(`{"number":"1","partner":%q}`, partner))
	const page = `{"from":"Order","select":["number"],"include":{"partner":{"select":["code"]},"lines":{"select":["text"]}}}`
	var answers []string
	err := h.in(clerk, func(a *entity.Access) error {
		for _, o := range []struct{ op, args string }{
			{"query", page},
			{"update", fmt.Sprintf(`{"in":"Partner","set":{"code":"new"},"where":[["id","=",%q]]}`, partner)},
			{"query", page},
			{"delete", `{"from":"Order","where":[]}`},
			{"delete", `{"from":"Partner","where":[]}`},
			{"query", page},
		} {
			var out entity.Result
			if err := a.Do(o.op, []byte(o.args), &out); err != nil {
				return err
			}
			if o.op == "query" {
				answers = append(answers, string(out.JSON[out.Rows[0]:out.Rows[1]]))
			}
		}
		return nil
	})
	want := []string{`[{"number":"1","partner":{"code":"old"},"lines":[]}]`, `[{"number":"1","partner":{"code":"new"},"lines":[]}]`, `[]`}
	if err != nil || !slices.Equal(answers, want) {
		t.Errorf("%v, expected %v, %v", answers, want, err)
	}
}

// What is included counts for the limits of rows and of the answer.
func TestIncludedRowsCountForTheLimits(t *testing.T) {
	h := newFixture(t, shop)
	partner := h.insert(clerk, "Partner", `{"code":"a"}`)
	var orders []string
	for i := range 40 {
		orders = append(orders, fmt.Sprintf(`{"number":"%d","partner":%q,"note":%q}`, i, partner, strings.Repeat("x", 20_000)))
	}
	h.must(clerk, "insert", `{"into":"Order","values":[`+strings.Join(orders, ",")+`]}`)
	query := func(args string, rows int) error {
		return h.in(clerk, func(a *entity.Access) error {
			a.MaxRows = rows
			return a.Do("query", []byte(args), &entity.Result{})
		})
	}
	const page = `{"from":"Order","select":["number"],"include":{"partner":{}}}`
	if err := query(page, 41); err != nil {
		t.Errorf("40 rows and one included: %v", err)
	}
	if err := query(page, 40); fault.CodeOf(err) != fault.TooManyRows {
		t.Errorf("40 rows and one included of at most 40: %v", err)
	}
	// Each order includes the notes of all orders of its partner: 40 times 800 KB.
	if err := query(`{"from":"Order","select":[],"include":{"partner":{"select":[],"include":{"orders":{"select":["note"]}}}}}`, 100_000); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("an answer of 32 MB: %v", err)
	}
}
