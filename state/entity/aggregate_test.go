package entity_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
)

const sales = `
auth { session cookie { idle: 30m } user: User }
entity User { id: id @@allow read to session }
enum Stage { open, won, lost }
entity Sale {
  id: id
  stage: Stage
  owner: User?
  total: decimal(38,2)
  small: decimal(4,1)?
  qty: int?
  weight: float?
  lasts: duration?
  day: date?
  note: text?
  cost: decimal(8,2)? @hidden
  tags: string[]
  @@allow read to session when owner == auth.userId or owner == null
  @@allow insert to session
}
apiKeys { scopes: { few: @system("test.few") { @grant read on Sale fields (id, stage, qty) where stage != "won" } } }
`

func TestAnAggregateComputesOverGroups(t *testing.T) {
	h := newFixture(t, sales)
	h.insert(operator, "User", `[{"id":"u1"},{"id":"u2"}]`)
	h.insert(operator, "Sale", `[
		{"stage":"open","total":"999999999999999999999999999999999999.99","qty":1,"weight":1e300,"lasts":60,"day":"2026-01-02","note":"b","tags":[]},
		{"stage":"open","total":"0.01","small":"0.1","qty":2,"weight":1,"lasts":30,"day":"2026-01-01","note":"B","tags":[]},
		{"stage":"open","total":"999999999999999999999999999999999999.99","small":"0.2","weight":-1e300,"tags":[]},
		{"stage":"won","total":"-3.50","small":"0.1","qty":5,"owner":"u1","tags":[]},
		{"stage":"lost","total":"100","qty":7,"cost":"1","owner":"u2","tags":[]}]`)
	u1 := &caller.Caller{Kind: caller.Session, UserID: "u1"}
	few := &caller.Caller{Kind: caller.APIKey, KeyID: "k", Scope: "few", Capability: "test.few"}
	for _, c := range []struct {
		who        *caller.Caller
		args, want string
	}{
		{u1, `"groupBy":["stage"],"count":true,"sum":["total"]`, // the row of u2 is not there
			`{"group":{"stage":"open"},"count":3,"sum":{"total":"1999999999999999999999999999999999999.99"}},{"group":{"stage":"won"},"count":1,"sum":{"total":"-3.50"}}`},
		{u1, `"sum":["qty","weight","lasts","small"],"avg":["qty","lasts","small","total"],"min":["day","note","qty"],"max":["day","note","total"]`,
			`{"sum":{"qty":8,"weight":1,"lasts":90,"small":"0.4"},"avg":{"qty":2.6666666666666665,"lasts":45,"small":"0.1333333","total":"499999999999999999999999999999999999.12250000"},` +
				`"min":{"day":"2026-01-01","note":"B","qty":1},"max":{"day":"2026-01-02","note":"b","total":"999999999999999999999999999999999999.99"}}`},
		{u1, `"where":[["stage","=","lost"]],"count":true,"sum":["total","qty"],"avg":["total"],"min":["day"]`,
			`{"count":0,"sum":{"total":null,"qty":null},"avg":{"total":null},"min":{"day":null}}`},
		{u1, `"where":[["stage","=","lost"]],"groupBy":["stage"],"count":true`, ``},
		{u1, `"groupBy":["owner","stage"]`, `{"group":{"owner":null,"stage":"open"}},{"group":{"owner":"u1","stage":"won"}}`},
		{few, `"groupBy":["stage"],"count":true,"sum":["qty"]`, `{"group":{"stage":"lost"},"count":1,"sum":{"qty":7}},{"group":{"stage":"open"},"count":3,"sum":{"qty":3}}`},
		{operator, `"sum":["cost"],"where":[["cost","!=",null]]`, `{"sum":{"cost":"1.00"}}`},
	} {
		want := `{"rows":[` + c.want + `]}`
		if got := h.must(c.who, "aggregate", `{"from":"Sale",`+c.args+`}`); got != want {
			t.Errorf("%s\nanswers  %s\nexpected %s", c.args, got, want)
		}
	}
}

func TestEveryRefusedAggregateNamesItsCause(t *testing.T) {
	h := newFixture(t, sales)
	few := &caller.Caller{Kind: caller.APIKey, KeyID: "k", Scope: "few", Capability: "test.few"}
	for _, c := range []struct {
		who        *caller.Caller
		args, want string
	}{
		{clerk, ``, `aggregate: nothing is computed: name groupBy, count, sum, avg, min or max`},
		{clerk, `,"count":1`, `count: must be true or false`},
		{clerk, `,"sum":"total"`, `sum: must be a list of fields`},
		{clerk, `,"sum":[1]`, `sum[0]: must be the name of a field`},
		{clerk, `,"sum":["totals"]`, `sum[0]: Sale has no field "totals" that the caller may read (did you mean "total"?)`},
		{clerk, `,"sum":["qty","qty"]`, `sum[1]: "qty" is given twice`},
		{clerk, `,"sum":["note"]`, `sum[0]: sum does not apply to a field of type text?`},
		{clerk, `,"avg":["day"]`, `avg[0]: avg does not apply to a field of type date?`},
		{clerk, `,"min":["stage"]`, `min[0]: min does not apply to a field of type Stage`},
		{clerk, `,"max":["tags"]`, `max[0]: max does not apply to a field of type string[]`},
		{clerk, `,"groupBy":["tags"]`, `groupBy[0]: groupBy does not apply to a field of type string[]`},
		{clerk, `,"groupBy":["stage","qty","day"]`, `groupBy: at most 2 fields are allowed`},
		{clerk, `,"sum":["cost"]`, `sum[0]: Sale has no field "cost" that the caller may read`},
		{clerk, `,"groupBy":["cost"]`, `groupBy[0]: Sale has no field "cost" that the caller may read`},
		{few, `,"max":["total"]`, `max[0]: Sale has no field "total" that the caller may read`},
		{few, `,"groupBy":["owner"]`, `groupBy[0]: Sale has no field "owner" that the caller may read`},
		{clerk, `,"orderBy":[]`, `unknown member "orderBy"; known: from, where, groupBy, count, sum, avg, min, max`},
	} {
		h.fails(c.who, fault.Invalid, "aggregate", `{"from":"Sale"`+c.args+`}`, c.want)
	}
	h.fails(&caller.Caller{}, fault.Denied, "aggregate", `{"from":"Sale","count":true}`)
}

func TestAnAggregateHasLimits(t *testing.T) {
	h := newFixture(t, sales)
	var rows []string
	for i := range 1000 {
		rows = append(rows, fmt.Sprintf(`{"stage":"open","total":1,"qty":%d,"tags":[]}`, i))
	}
	h.must(operator, "insert", `{"into":"Sale","values":[`+strings.Join(rows, ",")+`]}`)
	if got := h.must(clerk, "aggregate", `{"from":"Sale","groupBy":["qty"]}`); strings.Count(got, "group") != 1000 {
		t.Errorf("%d groups", strings.Count(got, "group"))
	}
	h.insert(operator, "Sale", `{"stage":"open","total":1,"tags":[]}`)
	h.fails(clerk, fault.Limit, "aggregate", `{"from":"Sale","groupBy":["qty"]}`, "more than 1000 groups")
	h.insert(operator, "Sale", `{"stage":"open","total":1,"qty":9007199254740991,"weight":1.7e308,"tags":[]}`)
	h.fails(clerk, fault.Limit, "aggregate", `{"from":"Sale","sum":["qty"]}`, "sum: the sum of qty is beyond")
	h.insert(operator, "Sale", `{"stage":"open","total":1,"weight":1.7e308,"tags":[]}`)
	h.fails(clerk, fault.Limit, "aggregate", `{"from":"Sale","sum":["weight"]}`, "sum: the sum of weight is too large for a float")
	if got, want := h.must(clerk, "aggregate", `{"from":"Sale","avg":["weight"]}`), `{"rows":[{"avg":{"weight":1.7e+308}}]}`; got != want {
		t.Errorf("%s, expected %s", got, want)
	}
}

const visits = `
auth { session cookie { idle: 30m } }
entity Visit {
  id: id
  at: time?
  day: date?
  page: string(1..9)
  times: time[]
  @@allow read to session
}`

// The clocks of Berlin go forward on 2026-03-29 and back on 2026-10-25: these days have 23 and 25 hours. A week
// begins on Monday, also that of 2027-01-01, a Friday.
func TestAnAggregateGroupsByPeriods(t *testing.T) {
	h := newFixture(t, visits)
	for _, at := range []string{
		"2026-03-28T22:59:59.999Z", "2026-03-28T23:00:00Z", "2026-03-29T21:59:59.999Z", "2026-03-29T22:00:00Z",
		"2026-10-24T21:59:59.999Z", "2026-10-24T22:00:00Z", "2026-10-25T22:59:59.999Z", "2026-10-25T23:00:00Z",
		"2026-12-31T22:59:59.999Z", "2026-12-31T23:00:00Z", "2027-01-03T22:59:59.999Z", "2027-01-03T23:00:00Z",
		"1969-12-31T23:59:59.999Z",
	} {
		h.insert(operator, "Visit", fmt.Sprintf(`{"at":%q,"day":%q,"page":"a","times":[]}`, at, at[:10]))
	}
	h.insert(operator, "Visit", `{"page":"b","times":[]}`)
	for _, at := range []string{"0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"} {
		h.insert(operator, "Visit", fmt.Sprintf(`{"at":%q,"day":%q,"page":"far","times":[]}`, at, at[:10]))
	}
	for _, c := range []struct{ args, want string }{
		{`"groupBy":[["at","day","Asia/Tokyo"]],"where":[["page","=","far"]]`, `0000-01-01 1, 9999-12-31 1`},
		{`"groupBy":[["at","month","Asia/Tokyo"]],"where":[["page","=","far"]]`, `0000-01-01 1, 9999-12-01 1`},
		{`"groupBy":[["at","day","America/New_York"]],"where":[["page","=","far"]]`, `0000-01-01 1, 9999-12-31 1`},
		{`"groupBy":[["day","week"]],"where":[["page","=","far"]]`, `0000-01-01 1, 9999-12-27 1`},
		{`"groupBy":[["at","day","Europe/Berlin"]],"where":[["at",">=","2026-03-01T00:00:00Z"],["at","<","2026-11-01T00:00:00Z"]]`,
			`2026-03-28 1, 2026-03-29 2, 2026-03-30 1, 2026-10-24 1, 2026-10-25 2, 2026-10-26 1`},
		{`"groupBy":[["at","week","Europe/Berlin"]],"where":[["page","!=","far"]]`,
			`null 1, 1969-12-29 1, 2026-03-23 3, 2026-03-30 1, 2026-10-19 3, 2026-10-26 1, 2026-12-28 3, 2027-01-04 1`},
		{`"groupBy":[["at","month","europe/berlin"]],"where":[["page","!=","far"]]`, `null 1, 1970-01-01 1, 2026-03-01 4, 2026-10-01 4, 2026-12-01 1, 2027-01-01 3`},
		{`"groupBy":[["at","month"]],"where":[["page","!=","far"]]`, `null 1, 1969-12-01 1, 2026-03-01 4, 2026-10-01 4, 2026-12-01 2, 2027-01-01 2`},
		{`"groupBy":[["at","month",null]],"where":[["page","!=","far"]]`, `null 1, 1969-12-01 1, 2026-03-01 4, 2026-10-01 4, 2026-12-01 2, 2027-01-01 2`},
		{`"groupBy":[["day","week"]],"where":[["page","!=","far"]]`, `null 1, 1969-12-29 1, 2026-03-23 4, 2026-10-19 4, 2026-12-28 4`},
	} {
		got := h.must(clerk, "aggregate", `{"from":"Visit","count":true,`+c.args+`}`)
		var answer struct {
			Rows []struct {
				Group map[string]*string
				Count int
			}
		}
		if err := json.Unmarshal([]byte(got), &answer); err != nil {
			t.Fatal(err)
		}
		var groups []string
		for _, row := range answer.Rows {
			for _, from := range row.Group {
				day := "null"
				if from != nil {
					day = *from
				}
				groups = append(groups, fmt.Sprint(day, " ", row.Count))
			}
		}
		if got := strings.Join(groups, ", "); got != c.want {
			t.Errorf("%s\nanswers  %s\nexpected %s", c.args, got, c.want)
		}
	}
	const march = `{"group":{"page":"a","at":"2026-03-01"}},`
	if got := h.must(clerk, "aggregate", `{"from":"Visit","groupBy":["page",["at","month"]]}`); !strings.Contains(got, march) {
		t.Errorf("%s, want %s", got, march)
	}
	for args, want := range map[string]string{
		`[["at","year"]]`:                    `groupBy[0]: the period must be "day", "week" or "month"`,
		`[["at"]]`:                           `groupBy[0]: must be [field, period] or [field, period, time zone]`,
		`[["at","day","Europe/Berlin","x"]]`: `groupBy[0]: must be [field, period] or [field, period, time zone]`,
		`[["at","day","Europe/Atlantis"]]`:   `groupBy[0]: "Europe/Atlantis" is not a time zone`,
		`[["at","day","Local"]]`:             `groupBy[0]: "Local" is not a time zone`,
		`[["at","day",2]]`:                   `groupBy[0]: the time zone must be a name, such as "Europe/Berlin"`,
		`[["day","month","Europe/Berlin"]]`:  `groupBy[0]: day is a date and has no time zone: remove the time zone`,
		`["page",["page","day"]]`:            `groupBy[1]: groupBy does not apply to a field of type string`,
		`[["times","day"]]`:                  `groupBy[0]: groupBy does not apply to a field of type time[]`,
		`[["at","day"],["at","month"]]`:      `groupBy[1]: "at" is given twice`,
		`["at",["day","day"],"page"]`:        `groupBy: at most 2 fields are allowed`,
		`[["seen","day"]]`:                   `groupBy[0]: Visit has no field "seen" that the caller may read`,
	} {
		h.fails(clerk, fault.Invalid, "aggregate", `{"from":"Visit","groupBy":`+args+`}`, want)
	}
}
