package entity_test

import (
	"fmt"
	"strings"
	"testing"

	"runner.example/internal/fault"
	"runner.example/state/entity"
)

const people = `
auth { session cookie { idle: 30m } }
entity Person {
  id: id
  name: string(1..40) @index(ignoreCase)
  tags: string[]
  @@allow all to session
}
`

// names returns the names of the rows that match, and the number of rows that were read.
func (h *fixture) names(where string) (names string, touched int) {
	h.t.Helper()
	var out entity.Result
	args := `{"from":"Person","select":["name"],"orderBy":[["name","asc"]],"where":[` + where + `]}`
	if err := h.in(clerk, func(a *entity.Access) error {
		err := a.Do("query", []byte(args), &out)
		touched = a.Touched()
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
	return string(out.JSON[out.Rows[0]:out.Rows[1]]), touched
}

func buildAll(h *fixture) {
	h.t.Helper()
	if err := h.build(h.t.Context(), nil)(); err != nil {
		h.t.Fatal(err)
	}
}

func TestAConditionIgnoresCase(t *testing.T) {
	h := newFixture(t, people)
	var rows []string
	for _, name := range []string{"Straße 1", "STRASSE 1", "strasse 2", "Σίσυφος", "other"} {
		rows = append(rows, fmt.Sprintf(`{"name":%q,"tags":[%q,"B"]}`, name, name))
	}
	for i := range 100 {
		rows = append(rows, fmt.Sprintf(`{"name":"row %d","tags":[]}`, i))
	}
	h.must(clerk, "insert", `{"into":"Person","values":[`+strings.Join(rows, ",")+`]}`)
	buildAll(h)
	for _, c := range []struct {
		where, want string
		most        int // rows that are read
	}{
		{`["name","=","sTRASSE 1","ignoreCase"]`, `[{"name":"STRASSE 1"},{"name":"Straße 1"}]`, 2},
		{`["name","=","Straße 1"]`, `[{"name":"Straße 1"}]`, 2},
		{`["name","startsWith","STRAẞ","ignoreCase"]`, `[{"name":"STRASSE 1"},{"name":"Straße 1"},{"name":"strasse 2"}]`, 3},
		{`["name","startsWith","Stra"]`, `[{"name":"Straße 1"}]`, 3},
		{`["name","contains","ΊΣΥΦΟΣ","ignoreCase"]`, `[{"name":"Σίσυφος"}]`, 105},
		{`["tags","contains","OTHER","ignoreCase"]`, `[{"name":"other"}]`, 105},
		{`["not",["name","startsWith","ROW","ignoreCase"]],["name",">","a"]`, `[{"name":"other"},{"name":"strasse 2"},{"name":"Σίσυφος"}]`, 105},
		{`["name","=","nothing","ignoreCase"]`, `[]`, 1},
	} {
		got, touched := h.names(c.where)
		if got != c.want || touched > c.most {
			t.Errorf("%s finds %s and reads %d rows, expected %s and at most %d", c.where, got, touched, c.want, c.most)
		}
	}
	h.fails(clerk, fault.Invalid, "query", `{"from":"Person","where":[["id","=","x","ignoreCase"]]}`, "does not apply to a field of type id")
}

// An index is built anew when it begins to ignore case, and when it ends to.
func TestAnIndexThatChangesItsOptionIsBuiltAnew(t *testing.T) {
	exact := strings.Replace(people, "@index(ignoreCase)", "@index", 1)
	h := newFixture(t, exact)
	var rows []string
	for i := range 50 {
		rows = append(rows, fmt.Sprintf(`{"name":"Name %d","tags":[]}`, i))
	}
	h.must(clerk, "insert", `{"into":"Person","values":[`+strings.Join(rows, ",")+`]}`)
	buildAll(h)
	const folded, plain = `["name","=","NAME 7","ignoreCase"]`, `["name",">","Name 48"]`
	check := func(where, want string, most, least int) {
		t.Helper()
		if got, touched := h.names(where); got != want || touched > most || touched < least {
			t.Errorf("%s finds %s and reads %d rows, expected %s and %d to %d", where, got, touched, want, least, most)
		}
	}
	check(folded, `[{"name":"Name 7"}]`, 50, 50)
	check(plain, `[{"name":"Name 49"},{"name":"Name 5"},{"name":"Name 6"},{"name":"Name 7"},{"name":"Name 8"},{"name":"Name 9"}]`, 7, 6)
	if err := h.activate(people); err != nil {
		t.Fatal(err)
	}
	check(folded, `[{"name":"Name 7"}]`, 50, 50) // not yet built
	buildAll(h)
	h.verify()
	check(folded, `[{"name":"Name 7"}]`, 1, 1)
	check(plain, `[{"name":"Name 49"},{"name":"Name 5"},{"name":"Name 6"},{"name":"Name 7"},{"name":"Name 8"},{"name":"Name 9"}]`, 50, 50)
	id := h.rows(clerk, `{"from":"Person","where":[`+folded+`]}`)[0]["id"]
	h.must(clerk, "update", fmt.Sprintf(`{"in":"Person","set":{"name":"ANOTHER"},"where":[["id","=",%q]]}`, id))
	check(`["name","startsWith","anot","ignoreCase"]`, `[{"name":"ANOTHER"}]`, 1, 1)
	if err := h.activate(exact); err != nil {
		t.Fatal(err)
	}
	buildAll(h)
	check(plain, `[{"name":"Name 49"},{"name":"Name 5"},{"name":"Name 6"},{"name":"Name 8"},{"name":"Name 9"}]`, 6, 5)
}
