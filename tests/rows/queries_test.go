package rows_test

import (
	"encoding/json"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const salesSchema = `
auth {
  session cookie { idle: 30m, absolute: 12h }
  roles: [seller]
  user: User
  tenant: Shop
}

enum Stage { open, won }

entity Shop { id: id }

entity User {
  id: id
  @@allow read, insert to session
}

entity Partner {
  id: id
  shop: Shop @tenant
  name: string(1..80) @index(ignoreCase)
  owner: string(1..20)
  sales: Sale[] @inverse(partner)
  @@allow read to session when owner == auth.userId
  @@allow insert to session
}

entity Sale {
  id: id
  shop: Shop @tenant
  stage: Stage = open
  total: decimal(12,2)
  cost: decimal(12,2) = 1.00 @hidden
  partner: Partner?
  @@allow read, insert to session
}

routes("/", auth: session, rateLimit: none) {
  POST /sales          -> sell
  GET  /sales          -> sales
  GET  /partners/:name -> partners
  GET  /totals/:field  -> totals
  GET  /forgotten      -> forgotten
}
`

const salesHandlers = `
import { aggregate, created, insert, ok, query, type RouteRequest } from "@runner/sdk";

export async function sell(req: RouteRequest) {
  const { name, owner, totals } = req.body();
  const { id } = await insert("Partner", { name, owner });
  return created(await insert("Sale", totals.map((total: string) => ({ total, partner: owner === "ada" ? id : null }))));
}

export const sales = () =>
  ok(query("Sale").select("total").orderBy("total").include("partner", (q) => q.select("name").include("sales", ["total"])).limit(10));

export const partners = (req: RouteRequest) =>
  ok(query("Partner").select("name").where("name", "startsWith", req.params.name, { ignoreCase: true }).include("sales", (q) => q.select("total").orderBy("total", "desc").limit(1)));

export const forgotten = () => ok(query("Partner").include("sales", ((q: any) => { q.limit(1); }) as any));

export const totals = (req: RouteRequest) => ok(aggregate("Sale").groupBy("stage").sum(req.params.field as "total").max("total").count());
`

// Queries with included rows, without regard to case, and with totals, from handlers that hand
// the answer on.
func TestHandlersIncludeFoldAndAggregateRows(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, salesSchema, "")
	a.Write("handlers/sales.ts", salesHandlers)
	a.Must("build")
	s := a.Serve()
	cookie := func(user, tenant string) string {
		return "Cookie: " + a.Session(user, "--tenant", tenant, "--role", "seller").Cookie
	}
	ada, bo, other := cookie("ada", "t1"), cookie("bo", "t1"), cookie("ada", "t2")
	s.Want(201, nil, "POST", "/sales", `{"name":"Straße","owner":"ada","totals":["12.50","0.10"]}`, ada)
	s.Want(201, nil, "POST", "/sales", `{"name":"Hidden","owner":"x","totals":["99999999.99"]}`, ada)
	s.Want(201, nil, "POST", "/sales", `{"name":"strasse of t2","owner":"ada","totals":["7"]}`, other)
	for _, c := range []struct{ caller, path, want string }{
		{ada, "/sales", `[{"total":"0.10","partner":{"name":"Straße","sales":[{"total":"12.50"},{"total":"0.10"}]}},` +
			`{"total":"12.50","partner":{"name":"Straße","sales":[{"total":"12.50"},{"total":"0.10"}]}},{"total":"99999999.99","partner":null}]`},
		{bo, "/sales", `[{"total":"0.10","partner":null},{"total":"12.50","partner":null},{"total":"99999999.99","partner":null}]`},
		{ada, "/partners/STRASS", `[{"name":"Straße","sales":[{"total":"12.50"}]}]`},
		{bo, "/partners/strass", `[]`},
		{other, "/partners/strass", `[{"name":"strasse of t2","sales":[{"total":"7.00"}]}]`},
		{bo, "/totals/total", `[{"group":{"stage":"open"},"count":3,"sum":{"total":"100000012.59"},"max":{"total":"99999999.99"}}]`},
		{other, "/totals/total", `[{"group":{"stage":"open"},"count":1,"sum":{"total":"7.00"},"max":{"total":"7.00"}}]`},
	} {
		if got := s.Want(200, nil, "GET", c.path, "", c.caller); got.Body != c.want {
			t.Errorf("%s\nanswers  %s\nexpected %s", c.path, got.Body, c.want)
		}
	}
	var refused struct{ Code, Detail string }
	got := s.Do("GET", "/totals/cost", "", ada)
	if err := json.Unmarshal([]byte(got.Body), &refused); err != nil || got.Status != 400 || strings.Contains(refused.Detail, "Sale") {
		t.Errorf("the sum of a hidden field: %d %s", got.Status, got.Body)
	}
	s.WaitForOutput(`Sale has no field .*cost.* that the caller may read`)
	s.Want(500, nil, "GET", "/forgotten", "", ada)
	s.WaitForOutput(`returns no query: write q => q.limit\(20\)`)
}
