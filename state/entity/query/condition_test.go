package query_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"runner.example/schema"
	"runner.example/state/entity/query"
)

// thing returns a row of Thing with the named values; the others are null.
func thing(t testing.TB, s *schema.Schema, values map[string]string) []schema.Value {
	t.Helper()
	e := s.Entity("Thing")
	row := make([]schema.Value, len(e.Fields))
	for name, raw := range values {
		f := e.Field(name)
		v, err := f.Type.Parse([]byte(raw))
		if err != nil {
			t.Fatalf("%s %s: %v", name, raw, err)
		}
		row[f.Pos] = v
	}
	return row
}

func TestConditionsMatchTheRowsTheyDescribe(t *testing.T) {
	s := compiled(t, querySchema)
	row := thing(t, s, map[string]string{
		"title": `"Ärger"`, "size": `10`, "ratio": `0.5`, "price": `"12.50"`, "good": `true`, "at": `"2026-01-31T12:00:00Z"`,
		"day": `"2026-01-31"`, "lasts": `90`, "state": `"paid"`, "tags": `["a","b"]`, "blob": `"AAE="`, "data": `{"a":1}`,
		"code": `"00000000-0000-4000-8000-00000000000a"`,
	})
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprint(41 - i)
	}
	for _, c := range []struct {
		where string
		want  bool
	}{
		{``, true},
		{`["title","=","Ärger"]`, true}, {`["title","startsWith","Ä"]`, true}, {`["title","contains","rge"]`, true}, {`["title","contains",""]`, true},
		{`["title",">","Z"]`, true}, {`["title","startsWith","ä"]`, false},
		{`["size","=",10]`, true}, {`["size","!=",10]`, false}, {`["size","<",10]`, false}, {`["size","<=",10]`, true}, {`["size",">=",10]`, true}, {`["size",">",9]`, true},
		{`["size","in",[1,10]]`, true}, {`["size","in",[1,2]]`, false}, {`["size","in",[` + strings.Join(many, ",") + `]]`, true}, {`["size","in",[11,` + strings.Join(many[:30], ",") + `]]`, false},
		{`["ratio","=",5e-1]`, true}, {`["price","=",12.5]`, true}, {`["price","=","12.500"]`, true}, {`["price",">","12.499"]`, true}, {`["price","in",[12.50]]`, true}, {`["price","<","12.501"]`, true},
		{`["good","=",true]`, true}, {`["at","=","2026-01-31T14:00:00+02:00"]`, true}, {`["at","<","2026-01-31T12:00:00.001Z"]`, true},
		{`["day",">","2026-01-30"]`, true}, {`["lasts","<",91]`, true}, {`["state","=","paid"]`, true}, {`["state","startsWith","pa"]`, true},
		{`["tags","contains","b"]`, true}, {`["tags","contains","c"]`, false}, {`["tags","=",null]`, false}, {`["blob","=","AAE="]`, true},
		{`["data","=",null]`, false}, {`["data","!=",null]`, true}, {`["code","=","00000000-0000-4000-8000-00000000000A"]`, true},
		// Null is a value for = and !=, and has no order.
		{`["note","=",null]`, true}, {`["note","!=",null]`, false}, {`["note","=","x"]`, false}, {`["note","!=","x"]`, true},
		{`["note","<","x"]`, false}, {`["note",">=","x"]`, false}, {`["not",["note","<","x"]]`, true}, {`["note","startsWith",""]`, false},
		{`["note","in",["x"]]`, false}, {`["not",["note","in",["x"]]]`, true},
		// Lists are conjunctions.
		{`["size","=",10],["good","=",false]`, false}, {`["or",["size","=",1],["good","=",true]]`, true},
		{`["or",[["size","=",10],["good","=",false]],[["size","=",1]]]`, false}, {`["or",[]]`, true}, {`["not",[]]`, false},
		{`["not",[["size","=",10],["good","=",false]]]`, true}, {strings.Repeat(`["not",`, 16) + `["size","=",10]` + strings.Repeat("]", 16), true},
	} {
		asked, err := query.Ask(s, member, "query", `{"from":"Thing","where":[`+c.where+`]}`)
		if err != nil {
			t.Errorf("%s: %v", c.where, err)
		} else if got := asked.Match(row); got != c.want {
			t.Errorf("%s is %v", c.where, got)
		}
	}
}

func TestAFieldMayHaveTheNameOfAConnective(t *testing.T) {
	s := compiled(t, `auth { session cookie { idle: 30m } }
entity Word { id: id
  or: string(1..9)?
  in: int?
  @@allow read to session }
routes("/", auth: none, rateLimit: none) { GET / -> home }`)
	asked, err := query.Ask(s, member, "query", `{"from":"Word","where":[["or","=","x"],["not",["in",">",1]],["or",["or","=","y"],["in","=",null]]],"orderBy":[["or","asc"]]}`)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]schema.Value, 3)
	row[1] = schema.TextValue("x")
	if !asked.Match(row) {
		t.Error("it does not match")
	}
}

// where generates conditions over some fields of Thing, and a row for them.
func genWhere(t *rapid.T) string {
	values := map[string][]string{
		"title": {`"a"`, `"ab"`, `"abc"`, `"b"`, `""`},
		"size":  {`-1`, `0`, `1`, `2`, `9`},
		"price": {`"1.00"`, `"1.005"`, `2`, `"99999999999999999999999999999999999999.99"`, `-3`},
		"state": {`"open"`, `"paid"`, `"gone"`},
		"good":  {`true`, `false`},
	}
	names := []string{"title", "size", "price", "state", "good"}
	comparison := rapid.Custom(func(t *rapid.T) string {
		name := rapid.SampledFrom(names).Draw(t, "field")
		ops := []string{"=", "!=", "in"}
		switch name {
		case "title":
			ops = append(ops, "<", "<=", ">", ">=", "startsWith", "contains")
		case "size", "price":
			ops = append(ops, "<", "<=", ">", ">=")
		case "state":
			ops = append(ops, "startsWith", "contains")
		}
		op := rapid.SampledFrom(ops).Draw(t, "operator")
		value := rapid.SampledFrom(values[name])
		switch {
		case op == "in":
			return fmt.Sprintf(`["%s","in",[%s]]`, name, strings.Join(rapid.SliceOfN(value, 0, 4).Draw(t, "values"), ","))
		case (op == "=" || op == "!=") && rapid.Bool().Draw(t, "null"):
			return fmt.Sprintf(`["%s","%s",null]`, name, op)
		}
		return fmt.Sprintf(`["%s","%s",%s]`, name, op, value.Draw(t, "value"))
	})
	condition := rapid.OneOf(comparison, comparison, rapid.Custom(func(t *rapid.T) string {
		if rapid.Bool().Draw(t, "not") {
			return `["not",` + comparison.Draw(t, "inner") + `]`
		}
		return `["or",` + strings.Join(rapid.SliceOfN(comparison, 1, 3).Draw(t, "inner"), ",") + `]`
	}))
	return strings.Join(rapid.SliceOfN(condition, 0, 4).Draw(t, "where"), ",")
}

func genThing(s *schema.Schema) *rapid.Generator[[]schema.Value] {
	return rapid.Custom(func(t *rapid.T) []schema.Value {
		e := s.Entity("Thing")
		row := make([]schema.Value, len(e.Fields))
		put := func(name string, v schema.Value) {
			if rapid.IntRange(0, 4).Draw(t, name+" set") > 0 {
				row[e.Field(name).Pos] = v
			}
		}
		put("title", schema.TextValue(rapid.SampledFrom([]string{"", "a", "ab", "abc", "b"}).Draw(t, "title")))
		put("size", schema.IntValue(rapid.Int64Range(-1, 3).Draw(t, "size")))
		put("price", schema.DecimalValue(rapid.SampledFrom([]string{"-3.00", "1.00", "1.01", "2.00"}).Draw(t, "price")))
		put("state", schema.TextValue(rapid.SampledFrom([]string{"open", "paid", "gone"}).Draw(t, "state")))
		put("good", schema.BoolValue(rapid.Bool().Draw(t, "good")))
		row[e.ID.Pos] = schema.TextValue(fmt.Sprintf("id%03d", rapid.IntRange(0, 999).Draw(t, "id")))
		return row
	})
}

// TestThePlannerGetsOnlyConditionsThatEveryMatchingRowFulfils: an index range chosen from a
// where includes every matching row.
func TestThePlannerGetsOnlyConditionsThatEveryMatchingRowFulfils(t *testing.T) {
	s := compiled(t, querySchema)
	observed := 0
	rapid.Check(t, func(t *rapid.T) {
		asked, err := query.Ask(s, member, "query", `{"from":"Thing","where":[`+genWhere(t)+`]}`)
		if err != nil {
			t.Fatal(err)
		}
		row := genThing(s).Draw(t, "row")
		matches := asked.Match(row)
		for _, name := range []string{"title", "size", "price", "state", "good"} {
			pos := s.Entity("Thing").Field(name).Pos
			if asked.Tells(pos) {
				observed++
			}
			if matches && !asked.Promised(row, pos) {
				t.Fatalf("%s of a matching row is not where the planner looks: %s", name, asked.Canonical())
			}
		}
	})
	if observed == 0 {
		t.Error("the planner never got a condition")
	}
}

func TestMatchingAllocatesNothing(t *testing.T) {
	s := compiled(t, querySchema)
	asked, err := query.Ask(s, member, "query", `{"from":"Thing","where":[["title","startsWith","a"],["or",["size",">",1],["price","<","2.00"]],["state","in",["open","paid"]],["tags","contains","x"]]}`)
	if err != nil {
		t.Fatal(err)
	}
	row := thing(t, s, map[string]string{"title": `"abc"`, "size": `1`, "price": `"1.50"`, "state": `"paid"`, "tags": `["x"]`})
	if !asked.Match(row) {
		t.Fatal("it does not match")
	}
	if n := testing.AllocsPerRun(100, func() { asked.Match(row) }); n != 0 {
		t.Errorf("a match allocates %v times", n)
	}
}
