package languageserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shop is a schema in which each name has a place to look for.
const shop = `/// The shop.
app shop

auth {
  session cookie { idle: 30m, absolute: 12h }
  roles: [admin, "shop:clerk"]
  user: User
}

secret STRIPE

var PAGE: int = 20

enum Status { open, paid @was("payed") }

/// A person.
entity User {
  id: id
  email: email @unique
  orders: Order[] @inverse(owner)
  @@allow read when id == auth.userId
}

/// An order of a user.
entity Order {
  id: id
  /// Who has ordered.
  owner: User
  status: Status = open
  total: decimal(12,2)
  note: text?
  @@index(status, total desc)
  @@allow read, write to session when owner == auth.userId or auth.role == "admin"
  @@deny delete when status == "paid" and owner.email != "x@example.com"
}

type OrderInput {
  status: Status?
  total: decimal(12,2)
}

apiKeys {
  scopes: {
    orders_read: @system("orders.read") { @grant read on Order fields (id, total) where status == "open" },
    erp: @system("erp") { @grant read, write on Order, User }
  }
}

routes("/v1", auth: apiKey(orders_read), rateLimit: 600/minute) {
  /// All orders.
  GET  /orders     -> listOrders
  POST /orders     -> createOrder: Order (input: OrderInput, auth: anyOf(session(admin), apiKey(erp)))
  routes("/hooks", auth: none) {
    POST /stripe -> stripeHook (as: erp, verify: webhook(stripe, STRIPE))
  }
}

functions(auth: session) {
  @expose countOrders(status: Status = open) -> int
}

jobs {
  sendMail(order: Order, kind: string) (concurrency: 2 by kind)
}
`

const handlers = `import type { Order, OrderInput } from "@runner/schema";
import { ok, query, insert, type Row, type RouteRequest } from "@runner/sdk";

// Order is not renamed here.
export async function listOrders() {
  const rows: Order[] = await query("Order").where("status", "=", "open");
  return ok(rows);
}

export const createOrder = async (req: RouteRequest) => ok(await insert<Order>("Order", req.body<OrderInput>()), pg.query("Order"));

const stripe = (row: Row<"Order">) => row.Order;
export { stripe as stripeHook };
`

const pythonHandlers = `from runner import get, handler, query
from runner.schema import Order

@handler("countOrders")
def count(req) -> "Order":
    # Order
    return len(query("Order").rows())

@handler
def send_mail(req):
    order: Order = get("Order", req.json()["order"])
`

func startShop(t *testing.T) *client {
	t.Helper()
	c := start(t, "", map[string]string{
		"shop.schema": shop, "handlers/orders.ts": handlers, "handlers/more.py": pythonHandlers,
	})
	c.open("shop.schema", shop)
	return c
}

// marked puts the mark ¦ before or into the only occurrence of what, which has the mark.
func marked(t *testing.T, text, what string) string {
	t.Helper()
	if n := strings.Count(text, unmarked(what)); n != 1 {
		t.Fatalf("%q occurs %d times", unmarked(what), n)
	}
	return strings.Replace(text, unmarked(what), what, 1)
}

type location struct {
	URI   string `json:"uri"`
	Range span   `json:"range"`
}

// places are locations as "file:line:character", counted from 1.
func (c *client) places(locations []location) []string {
	places := []string{}
	for _, l := range locations {
		places = append(places, fmt.Sprintf("%s:%d:%d", c.name(l.URI), l.Range.Start.Line+1, l.Range.Start.Character+1))
	}
	return places
}

// lineOf is the number of the line of the only occurrence of what, and the column, as in places.
func lineOf(t *testing.T, file, text, what string) string {
	t.Helper()
	p := markAt(t, marked(t, text, what))
	return fmt.Sprintf("%s:%d:%d", file, p.Line+1, p.Character+1)
}

func TestDefinitionLeadsToTheDeclaration(t *testing.T) {
	c := startShop(t)
	for from, to := range map[string]string{
		"owner: Us¦er\n":                "entity ¦User",
		"(ow¦ner)":                      "¦owner: User",
		"Status = op¦en\n  total":       "{ ¦open",
		"@@index(stat¦us":               "¦status: Status = open\n  total",
		"owner.em¦ail":                  "¦email: email",
		`"pa¦id"`:                       "¦paid @was",
		`auth.role == "adm¦in"`:         "roles: [¦admin",
		"apiKey(orders_r¦ead), rate":    "¦orders_read: @system",
		"(as: er¦p":                     "¦erp: @system",
		"webhook(stripe, STR¦IPE)":      "secret ¦STRIPE",
		"input: Order¦Input":            "type ¦OrderInput",
		"session(adm¦in)":               "roles: [¦admin",
		"user: U¦ser":                   "entity ¦User",
		"2 by ki¦nd":                    "¦kind: string",
		"fields (id, tot¦al)":           "¦total: decimal(12,2)\n  note",
		"where stat¦us ==":              "¦status: Status = open\n  total",
		"on Order, Us¦er":               "entity ¦User",
		"when owner == auth.userId¦ or": "",
	} {
		got := c.places(decoded[[]location](t, c.request("textDocument/definition", c.at("shop.schema", marked(t, shop, from)))))
		want := []string{}
		if to != "" {
			want = append(want, lineOf(t, "shop.schema", shop, to))
		}
		if !slices.Equal(got, want) {
			t.Errorf("from %q: got %v, want %v", from, got, want)
		}
	}
}

func TestDefinitionLeadsFromARouteToItsHandlerAndBack(t *testing.T) {
	c := startShop(t)
	for from, to := range map[string]string{
		"-> list¦Orders":       lineOf(t, "handlers/orders.ts", handlers, "function ¦listOrders"),
		"-> create¦Order":      lineOf(t, "handlers/orders.ts", handlers, "const ¦createOrder"),
		"-> stripe¦Hook":       lineOf(t, "handlers/orders.ts", handlers, "as ¦stripeHook"),
		"@expose count¦Orders": lineOf(t, "handlers/more.py", pythonHandlers, `("¦countOrders")`),
		"\n  send¦Mail(":       lineOf(t, "handlers/more.py", pythonHandlers, "def ¦send_mail"),
	} {
		got := c.places(decoded[[]location](t, c.request("textDocument/definition", c.at("shop.schema", marked(t, shop, from)))))
		if !slices.Equal(got, []string{to}) {
			t.Errorf("from %q: got %v, want %v", from, got, to)
		}
	}
	c.open("handlers/orders.ts", handlers)
	got := c.places(decoded[[]location](t, c.request("textDocument/definition",
		c.at("handlers/orders.ts", marked(t, handlers, "export async ¦function listOrders")))))
	if want := lineOf(t, "shop.schema", shop, "-> ¦listOrders"); !slices.Equal(got, []string{want}) {
		t.Errorf("from TypeScript: %v, want %v", got, want)
	}
	c.open("handlers/more.py", pythonHandlers)
	got = c.places(decoded[[]location](t, c.request("textDocument/definition",
		c.at("handlers/more.py", marked(t, pythonHandlers, "def c¦ount(")))))
	if want := lineOf(t, "shop.schema", shop, "@expose ¦countOrders"); !slices.Equal(got, []string{want}) {
		t.Errorf("from Python: %v, want %v", got, want)
	}
}

func TestHandlersAreFoundInEachLanguage(t *testing.T) {
	const routes = `routes("/", auth: none, rateLimit: none) {
  GET /a -> inGo
  GET /b -> inRust
  GET /c -> inC
  GET /d -> inAssembly
  GET /e -> plainRust
  GET /f -> handled
}
`
	c := start(t, "", map[string]string{
		"app.schema":              routes,
		"handlers/g/main.go":      "package main\n\n//go:wasmexport inGo\nfunc exportInGo() { runner.Handle(inGo) }\n\nfunc init() { runner.Handle(\"handled\", f) }\n",
		"handlers/r/src/lib.rs":   "use runner_sdk::*;\nhandler!(inRust, in_rust);\n#[no_mangle]\npub extern \"C\" fn plainRust() {}\n",
		"handlers/c/main.c":       "#include \"runner.h\"\n\nRUNNER_HANDLER(inC) {\n}\n",
		"handlers/s/package.json": `{"devDependencies": {"assemblyscript": "*"}}`,
		"handlers/s/index.ts":     "export function inAssembly(): void {}\n",
		"handlers/lib/tools.ts":   "export function inGo() {}\n", // imported, not a handler
		"handlers/r/target/x.rs":  "handler!(inRust, x);\n",
	})
	c.open("app.schema", routes)
	for name, want := range map[string]string{
		"inGo": "handlers/g/main.go:3:17", "inRust": "handlers/r/src/lib.rs:2:10", "inC": "handlers/c/main.c:3:16",
		"inAssembly": "handlers/s/index.ts:1:17", "plainRust": "handlers/r/src/lib.rs:4:19", "handled": "handlers/g/main.go:6:30",
	} {
		got := c.places(decoded[[]location](t, c.request("textDocument/definition", c.at("app.schema", marked(t, routes, "-> ¦"+name)))))
		if !slices.Equal(got, []string{want}) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestReferencesAreInAllSchemaFiles(t *testing.T) {
	const first, second = "enum State { on, off }\n", "entity Lamp { id: id\n  state: State = on\n  @@allow read when state == \"on\" }\n"
	c := start(t, "", map[string]string{"a.schema": first, "b.schema": second})
	c.open("a.schema", first)
	params := c.at("a.schema", marked(t, first, "¦on,"))
	params["context"] = map[string]any{"includeDeclaration": true}
	got := c.places(decoded[[]location](t, c.request("textDocument/references", params)))
	if want := []string{"a.schema:1:14", "b.schema:2:18", "b.schema:3:31"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	params["context"] = map[string]any{"includeDeclaration": false}
	got = c.places(decoded[[]location](t, c.request("textDocument/references", params)))
	if want := []string{"b.schema:2:18", "b.schema:3:31"}; !slices.Equal(got, want) {
		t.Errorf("without the declaration: got %v, want %v", got, want)
	}
}

type symbol struct {
	Name     string   `json:"name"`
	Children []symbol `json:"children"`
}

func outline(symbols []symbol) (names []string) {
	for _, s := range symbols {
		names = append(names, s.Name)
		for _, child := range outline(s.Children) {
			names = append(names, "  "+child)
		}
	}
	return names
}

func TestOutlineHasAllDeclarations(t *testing.T) {
	c := startShop(t)
	got := outline(decoded[[]symbol](t, c.request("textDocument/documentSymbol", map[string]any{"textDocument": map[string]any{"uri": c.uri("shop.schema")}})))
	want := strings.Split(`app shop
auth
STRIPE
PAGE
Status
  open
  paid
User
  id
  email
  orders
Order
  id
  owner
  status
  total
  note
OrderInput
  status
  total
apiKeys
  orders_read
  erp
routes "/v1"
  GET /orders
  POST /orders
  routes "/hooks"
    POST /stripe
functions
  countOrders
jobs
  sendMail`, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outline (-want +got):\n%s", diff)
	}
}

func TestWorkspaceSymbolsMatchByLetters(t *testing.T) {
	c := startShop(t)
	found := decoded[[]symbol](t, c.request("workspace/symbol", map[string]any{"query": "ORDin"}))
	if got := outline(found); !slices.Equal(got, []string{"OrderInput"}) {
		t.Errorf("got %v", got)
	}
	found = decoded[[]symbol](t, c.request("workspace/symbol", map[string]any{"query": "/v1/hooks"}))
	if got := outline(found); !slices.Equal(got, []string{"POST /v1/hooks/stripe"}) {
		t.Errorf("got %v", got)
	}
}

func (c *client) hover(name, text string) string {
	c.t.Helper()
	raw := c.request("textDocument/hover", c.at(name, text))
	if string(raw) == "null" {
		return ""
	}
	return decoded[struct{ Contents struct{ Value string } }](c.t, raw).Contents.Value
}

func TestHoverExplains(t *testing.T) {
	c := startShop(t)
	for at, wants := range map[string][]string{
		"entity Or¦der": {"An order of a user.", "owner: User", "`session` may read, write when `owner == auth.userId or auth.role == \"admin\"`",
			"any caller may not delete when `status == \"paid\"", "`apiKey(orders_read)` may read when `status == \"open\"`", "`apiKey(erp)` may read, write"},
		"@@index(status, tot¦al": {"Order.total: decimal(12,2)"},
		"¦owner: User":           {"Order.owner: User", "Who has ordered."},
		"-> list¦Orders":         {"GET /v1/orders -> listOrders", "All orders.", "auth: `apiKey(orders_read)` (of the group)", "rateLimit: `600/minute` (of the group)", "timeout: [runtime] timeout", "body: [front] body", "handlers/orders.ts:5"},
		"POST /str¦ipe":          {"POST /v1/hooks/stripe", "auth: `none` (of the group)", "verify: `webhook(stripe, STRIPE)`", "as: `erp`"},
		"apiKey(er¦p)":           {"erp: @system", "`POST /v1/orders`", "`POST /v1/hooks/stripe`"},
		"@expose count¦Orders":   {"function countOrders", "auth: `session`"},
		"\n  send¦Mail(":         {"job sendMail", "retries: 8", "backoff: 10s", "concurrency: `2 by kind`"},
		"in¦put: OrderInput":     {"the type that the body must match", "Default: any body"},
		"@@de¦ny delete":         {"@@deny"},
		"@uni¦que":               {"no two rows"},
		"var PA¦GE":              {"var PAGE: int = 20"},
		"sec¦ret STRIPE":         {"a secret that handlers may read"},
		"enum Sta¦tus":           {"enum Status { open, paid"},
	} {
		got := c.hover("shop.schema", marked(t, shop, at))
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("at %q: no %q in\n%s", at, want, got)
			}
		}
	}
}
