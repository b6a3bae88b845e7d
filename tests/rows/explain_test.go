package rows_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// runner data explain says which index serves a query, how many rows were read for the page, and which rules decided.
func TestAQueryIsExplained(t *testing.T) {
	a := harness.NewApp(t, `app shop
auth {
  session cookie {}
  user: User
  tenant: Org
}
enum Status { open, paid }
entity Org { id: id }
entity User { id: id, org: Org @tenant }
entity Order {
  id: id
  org: Org @tenant
  status: Status
  total: int
  note: text = ""
  @@index(status, total desc)
  @@allow read to session when total < 90
  @@deny read when note == "secret"
}
apiKeys { scopes: {
  reader: @system("rdr") { @grant read on Order where status == "open" }
} }
`, "")
	a.Write("Org.jsonl", `{"id":"acme"}`+"\n"+`{"id":"other"}`+"\n")
	var orders strings.Builder
	for i := range 200 {
		fmt.Fprintf(&orders, `{"org":%q,"status":%q,"total":%d,"note":%q}`+"\n", []string{"acme", "other"}[i%2], []string{"open", "paid"}[i/2%2], i/2, []string{"", "secret"}[i/2%10/9])
	}
	a.Write("Order.jsonl", orders.String())
	a.Serve()
	a.Must("data", "import", "Org", "Org.jsonl")
	a.Must("data", "import", "Order", "Order.jsonl")
	type explained struct {
		Scan                                string
		Narrowed, Rules                     []string
		Sorted, More                        bool
		Scanned, Hidden, Rejected, Returned int
		Missing                             string
	}
	acme := []string{"--caller-tenant", "acme", "--as"}
	for _, row := range []struct {
		args []string
		want explained
	}{
		{[]string{"--where", "status = open", "--order", "total desc", "--limit", "10"}, explained{
			Scan: "all rows", Narrowed: []string{}, Rules: []string{"an operator reads all rows"},
			Scanned: 200, Rejected: 100, Returned: 10, More: true,
		}},
		{append(acme, "session", "--user", "u", "--where", "status = open", "--order", "total desc", "--limit", "10"), explained{
			Scan: "index Order(org, status, total desc)", Narrowed: []string{"org = …", "status = …"},
			Rules: []string{"@@allow read at app.schema:", "@@deny read at app.schema:", "rows of tenant acme"}, Sorted: true,
			Scanned: 16, Hidden: 5, Returned: 10, More: true,
		}},
		{append(acme, "reader", "--where", "status = open", "--where", "total < 20"), explained{
			Scan: "index Order(org, status, total desc)", Narrowed: []string{"org = …", "status = …", "total range"},
			Rules:   []string{"@grant read on Order of scope reader, if its condition holds", "@@deny read at app.schema:", "rows of tenant acme"},
			Scanned: 10, Returned: 10,
		}},
		{append(acme, "reader", "--where", "note = x"), explained{
			Scan: "all rows", Narrowed: []string{"tenant acme"},
			Rules:  []string{"@grant read on Order of scope reader, if its condition holds", "@@deny read at app.schema:", "rows of tenant acme"},
			Sorted: true, Scanned: 100, Hidden: 50, Rejected: 50, Missing: "@@index(note)",
		}},
	} {
		var got explained
		if err := json.Unmarshal([]byte(a.Must(append([]string{"data", "explain", "Order", "--json"}, row.args...)...)), &got); err != nil {
			t.Fatal(err)
		}
		for i := range got.Rules {
			if at := strings.Index(got.Rules[i], "app.schema:"); at >= 0 {
				got.Rules[i] = got.Rules[i][:at+len("app.schema:")]
			}
		}
		if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", row.want); g != w {
			t.Errorf("%q:\n%s, want\n%s", row.args, g, w)
		}
	}
	if out := a.Must("data", "explain", "Order", "--where", "note = x"); !strings.Contains(out, "index to add") || !strings.Contains(out, "@@index(note)") {
		t.Errorf("as text:\n%s", out)
	}
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"--as", "nobody"}, `the schema has no scope "nobody": use the name of a scope, session or anonymous`},
		{[]string{"--user", "u"}, "user, roles and callerTenant need as (--as)"},
		{[]string{"--as", "anonymous"}, "lets callers of kind anonymous read"},
		{[]string{"--as", "reader"}, "--caller-tenant acme"},
		{[]string{"--limit", "0"}, "--limit must be between 1 and 1000"},
	} {
		if r := a.Run(append([]string{"data", "explain", "Order"}, row.args...)...); r.Status == 0 || !strings.Contains(r.Stderr, row.want) {
			t.Errorf("%q: %d %s, want %q", row.args, r.Status, r.Stderr, row.want)
		}
	}
}
