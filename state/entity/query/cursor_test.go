package query_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"runner.example/internal/caller"
	"runner.example/schema"
	"runner.example/state/entity/query"
)

// resumed parses a query again with a cursor.
func resumed(s *schema.Schema, who *caller.Caller, members, cursor string, key byte) (query.Asked, error) {
	return query.AskWithKey(s, who, "query", fmt.Sprintf(`{"from":"Thing",%s,"cursor":%q}`, members, cursor), [32]byte{key})
}

func TestACursorIsValidOnlyForItsQueryAndItsCaller(t *testing.T) {
	s := compiled(t, querySchema)
	const members = `"where":[["size",">",1]],"orderBy":[["title","asc"]]`
	asked, err := query.Ask(s, member, "query", `{"from":"Thing",`+members+`}`)
	if err != nil {
		t.Fatal(err)
	}
	row := thing(t, s, map[string]string{"title": `"the secret of it"`, "id": `"01hzzzzzzzzzzzzzzzzzzzzzzz"`})
	cursor := asked.Cursor(row)
	if again := asked.Cursor(row); again != cursor {
		t.Error("equal pages have different cursors")
	}
	plain, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || strings.Contains(string(plain), "secret") || strings.Contains(string(plain), "01hzzz") {
		t.Errorf("the cursor %q %v reveals its content", plain, err)
	}
	for _, same := range []string{members, members + `,"limit":5`, members + `,"select":["id"]`, `"orderBy" : [["title", "asc"]], "where":[["size",">",1.0e0]]`} {
		again, err := resumed(s, member, same, cursor, 1)
		if err != nil || again.IsAfter(row) {
			t.Errorf("%s is not continued: %v", same, err)
		}
	}
	const want = "invalid: cursor: not valid for this query and this caller: use the nextCursor of its previous page"
	refused := func(what string, err error) {
		t.Helper()
		if got := failure(err); got != want {
			t.Errorf("%s: %q", what, got)
		}
	}
	for what, who := range map[string]*caller.Caller{
		"another user":   {Kind: caller.Session, UserID: "u2", Tenant: "f1"},
		"another tenant": {Kind: caller.Session, UserID: "u1", Tenant: "f2"},
		"a key":          {Kind: caller.APIKey, UserID: "u1", Tenant: "f1", KeyID: "k", Scope: "every"},
		"an operator":    {Kind: caller.System, UserID: "u1", Tenant: "f1"},
		"a scope":        {Kind: caller.Anonymous, UserID: "u1", Tenant: "f1", As: "every"},
		"split names":    {Kind: caller.Session, UserID: "u1f", Tenant: "1"},
	} {
		_, err := resumed(s, who, members, cursor, 1)
		refused(what, err)
	}
	for _, other := range []string{
		`"where":[["size",">",2]],"orderBy":[["title","asc"]]`,
		`"where":[["size",">=",1]],"orderBy":[["title","asc"]]`,
		`"where":[],"orderBy":[["title","asc"]]`,
		`"where":[["size",">",1]],"orderBy":[["title","desc"]]`,
		`"where":[["size",">",1]],"orderBy":[["note","asc"]]`,
		`"where":[["size",">",1]],"orderBy":[["title","asc"],["id","asc"]]`,
		`"where":[["size",">",1]]`,
	} {
		_, err := resumed(s, member, other, cursor, 1)
		refused(other, err)
	}
	_, err = resumed(s, member, members, cursor, 2)
	refused("another key", err)
	for i := range cursor {
		forged := []byte(cursor)
		if forged[i]++; forged[i] == cursor[i] {
			continue
		}
		_, err := resumed(s, member, members, string(forged), 1)
		refused("an altered cursor", err)
		_, err = resumed(s, member, members, cursor[:i], 1)
		refused("a part of a cursor", err)
	}
	_, err = resumed(s, member, members, cursor+"A", 1)
	refused("a longer cursor", err)
	_, err = resumed(s, member, members, strings.Repeat("A", 1<<17), 1)
	refused("a huge cursor", err)
}

// Callers that differ in one part do not share cursors, whichever part it is.
func TestACursorIsBoundToEveryPartOfItsCaller(t *testing.T) {
	s := compiled(t, querySchema)
	session := caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "f1", Roles: []string{"member"}}
	scoped := caller.Caller{Kind: caller.Anonymous, As: "every", Tenant: "f1"}
	key := *keyOf("every")
	for name, row := range map[string]struct {
		one   caller.Caller
		other func(*caller.Caller)
	}{
		"kind":            {session, func(c *caller.Caller) { c.Kind = caller.System }},
		"user":            {session, func(c *caller.Caller) { c.UserID = "u2" }},
		"tenant":          {session, func(c *caller.Caller) { c.Tenant = "f2" }},
		"key":             {key, func(c *caller.Caller) { c.KeyID = "key_2" }},
		"scope of a key":  {key, func(c *caller.Caller) { c.Scope, c.Capability = "some", "some" }},
		"tenant of a key": {key, func(c *caller.Caller) { c.Tenant = "f2" }},
		"scope of a job":  {scoped, func(c *caller.Caller) { c.As, c.Capability = "some", "some" }},
	} {
		other := row.one
		row.other(&other)
		for _, pair := range [][2]caller.Caller{{row.one, other}, {other, row.one}} {
			asked, err := query.Ask(s, &pair[0], "query", `{"from":"Thing","where":[]}`)
			if err != nil {
				t.Fatal(name, err)
			}
			cursor := asked.Cursor(thing(t, s, map[string]string{"id": `"01hzzzzzzzzzzzzzzzzzzzzzzz"`}))
			if _, err := resumed(s, &pair[0], `"where":[]`, cursor, 1); err != nil {
				t.Errorf("%s: the caller cannot continue: %v", name, err)
			}
			if _, err := resumed(s, &pair[1], `"where":[]`, cursor, 1); err == nil {
				t.Errorf("%s: a caller that differs in it continues", name)
			}
		}
	}
}

// TestPagesHoldEveryRowOnceInOrder reads random rows in random orders with a cursor after
// each page.
func TestPagesHoldEveryRowOnceInOrder(t *testing.T) {
	s := compiled(t, querySchema)
	e := s.Entity("Thing")
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfNDistinct(genThing(s), 0, 12, func(row []schema.Value) string { return row[e.ID.Pos].Text() }).Draw(t, "rows")
		var terms []string
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"title", "size", "price", "state", "good", "id"}), 0, 3, rapid.ID).Draw(t, "order") {
			terms = append(terms, fmt.Sprintf(`["%s","%s"]`, name, rapid.SampledFrom([]string{"asc", "desc"}).Draw(t, "direction")))
		}
		members := `"orderBy":[` + strings.Join(terms, ",") + `]`
		asked, err := query.Ask(s, member, "query", `{"from":"Thing",`+members+`}`)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(rows, asked.Compare)
		for i := range rows {
			for j := range rows {
				if got, want := asked.Compare(rows[i], rows[j]), i-j; got < 0 != (want < 0) || got > 0 != (want > 0) {
					t.Fatalf("rows %d and %d compare as %d", i, j, got)
				}
			}
		}
		size := rapid.IntRange(1, 4).Draw(t, "page")
		var seen int
		for page := asked; ; {
			n := 0
			for _, row := range rows {
				if !page.IsAfter(row) {
					continue
				}
				if n == size {
					break
				}
				if asked.Compare(row, rows[seen]) != 0 {
					t.Fatalf("page %d does not continue where the last one ended", seen/size)
				}
				seen, n = seen+1, n+1
			}
			if n == 0 {
				break
			}
			if page, err = resumed(s, member, members, asked.Cursor(rows[seen-1]), 1); err != nil {
				t.Fatal(err)
			}
		}
		if seen != len(rows) {
			t.Fatalf("%d of %d rows were returned", seen, len(rows))
		}
	})
}

func TestEqualRowsAreInTheOrderOfTheirIDsInTheLastDirection(t *testing.T) {
	s := compiled(t, querySchema)
	a := thing(t, s, map[string]string{"id": `"01haaaaaaaaaaaaaaaaaaaaaaa"`, "size": `1`})
	b := thing(t, s, map[string]string{"id": `"01hbbbbbbbbbbbbbbbbbbbbbbb"`, "size": `1`})
	for order, want := range map[string]int{
		``: -1, `["size","asc"]`: -1, `["size","desc"]`: 1, `["size","desc"],["title","asc"]`: -1, `["size","desc"],["id","asc"]`: -1, `["id","desc"],["size","asc"]`: 1,
	} {
		asked, err := query.Ask(s, member, "query", `{"from":"Thing","orderBy":[`+order+`]}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := asked.Compare(a, b); got != want {
			t.Errorf("ordered by %s they compare as %d, expected %d", order, got, want)
		}
	}
}

func TestUntypedRowsAreOrderedByKindThenValue(t *testing.T) {
	s := compiled(t, untypedSchema)
	asked, err := query.Ask(s, member, "query", `{"from":"Thing","orderBy":[["x","asc"]]}`)
	if err != nil {
		t.Fatal(err)
	}
	rising := []string{`{}`, `{"x":false}`, `{"x":true}`, `{"x":-1}`, `{"x":0.5}`, `{"x":1}`, `{"x":"0"}`, `{"x":"a"}`, `{"x":{"big":1}}`, `{"x":[1]}`}
	for i, object := range rising {
		row := asked.FreeValues(fmt.Sprint("r", i), object)
		if i > 0 && asked.Compare(asked.FreeValues(fmt.Sprint("r", i-1), rising[i-1]), row) >= 0 {
			t.Errorf("%s does not come before %s", rising[i-1], object)
		}
		again, err := query.Ask(s, member, "query", fmt.Sprintf(`{"from":"Thing","orderBy":[["x","asc"]],"cursor":%q}`, asked.Cursor(row)))
		if err != nil {
			t.Fatal(err)
		}
		for j, other := range rising {
			if got := again.IsAfter(asked.FreeValues(fmt.Sprint("r", j), other)); got != (j > i) {
				t.Errorf("after %s: %s is %v", object, other, got)
			}
		}
	}
}

func FuzzCursor(f *testing.F) {
	s := compiled(f, querySchema)
	asked, err := query.Ask(s, member, "query", `{"from":"Thing"}`)
	if err != nil {
		f.Fatal(err)
	}
	cursor := asked.Cursor(thing(f, s, map[string]string{"id": `"01hzzzzzzzzzzzzzzzzzzzzzzz"`}))
	f.Add(cursor)
	f.Add(cursor[:20])
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := resumed(s, member, `"where":[]`, text, 1); err == nil && text != cursor {
			t.Errorf("%q is accepted as a cursor", text)
		}
	})
}
