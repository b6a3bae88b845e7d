package languageserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// labels are the labels of the completions at the mark in text.
func (c *client) labels(name, text string) (all []string) {
	c.t.Helper()
	c.change(name, unmarked(text))
	list := decoded[struct{ Items []struct{ Label string } }](c.t, c.request("textDocument/completion", c.at(name, text)))
	for _, item := range list.Items {
		all = append(all, item.Label)
	}
	return all
}

func TestCompletionKnowsWhatMayStandAtAPlace(t *testing.T) {
	c := startShop(t)
	// Each row replaces a part of the schema by text that is being typed.
	for _, row := range []struct {
		old, typed   string
		want, unwant []string
	}{
		{"app shop", "app shop\n\nen¦", []string{"enum", "entity"}, []string{"routes"}},
		{"owner: User\n  status", "owner: ¦\n  status", []string{"string", "User", "Status", "OrderInput"}, []string{"orders_read"}},
		{"note: text?", "note: text? @¦", []string{"@hidden", "@onDelete", "@pattern"}, []string{"@@allow"}},
		{"@@index(status, total desc)", "@@¦", []string{"@@allow", "@@deny", "@@index", "@@unique"}, []string{"@hidden"}},
		{"@@index(status, total desc)", "@@index(st¦)", []string{"status"}, []string{"owner"}},
		{"@@index(status, total desc)", "@@index(status ¦)", []string{"desc", "asc"}, nil},
		{"status: Status = open\n  total", "status: Status = ¦\n  total", []string{"open", "paid"}, []string{"true"}},
		{"@inverse(owner)", "@inverse(¦)", []string{"owner"}, []string{"status", "id"}},
		{"@@deny delete when", "@@deny ¦ when", []string{"read", "delete", "all"}, nil},
		{"@@deny delete when", "@@deny delete ¦", []string{"to", "when"}, nil},
		{"read, write to session when", "read, write to ¦ when", []string{"session", "anonymous", "apiKey"}, nil},
		{`owner == auth.userId or`, `¦ or`, []string{"owner", "status", "auth.userId", "exists", "now"}, []string{"email"}},
		{`owner.email != "x@example.com"`, `owner.¦`, []string{"email", "id", "orders"}, []string{"status"}},
		{`auth.userId or auth.role == "admin"`, `auth.¦`, []string{"userId", "tenant", "role", "claims"}, []string{"status"}},
		{`auth.role == "admin"`, `auth.role == ¦`, []string{`"admin"`, `"shop:clerk"`}, nil},
		{`auth.role == "admin"`, `auth.role == "¦"`, []string{"admin", "shop:clerk"}, []string{`"admin"`}},
		{`status == "paid" and`, `status == "¦" and`, []string{"open", "paid"}, nil},
		{`status == "paid" and`, `status in [¦] and`, []string{`"open"`, `"paid"`}, nil},
		{`status == "paid" and`, `exists(User where ¦) and`, []string{"email", "outer", "auth.userId"}, []string{"status"}},
		{`status == "paid" and`, `exists(User where id == outer.¦) and`, []string{"owner", "status"}, []string{"email"}},
		{"@grant read, write on Order, User", "@¦", []string{"@grant", "@issue", "@manage", "@allTenants"}, nil},
		{"@grant read, write on Order, User", "@grant read ¦", []string{"on"}, nil},
		{"@grant read, write on Order, User", "@grant read on ¦", []string{"Order", "User"}, []string{"OrderInput"}},
		{"@grant read, write on Order, User", "@grant read on Order ¦", []string{"fields", "where"}, nil},
		{"fields (id, total)", "fields (id, ¦)", []string{"total", "status"}, []string{"email"}},
		{`where status == "open"`, `where sta¦`, []string{"status"}, []string{"email"}},
		{"GET  /orders     -> listOrders", "GET  /orders -> ¦", []string{"listOrders", "stripeHook", "createOrder"}, nil},
		{"GET  /orders     -> listOrders", "¦", []string{"GET", "DELETE", "routes"}, []string{"auth"}},
		{"GET  /orders     -> listOrders", "GET /orders -> listOrders (¦)", []string{"auth", "rateLimit", "query"}, []string{"retries"}},
		{"GET  /orders     -> listOrders", "GET /orders -> listOrders (live: ¦)", []string{"30m"}, []string{"2s"}},
		{"GET  /orders     -> listOrders", "GET /orders -> listOrders (auth: none, ¦)", []string{"rateLimit", "timeout"}, []string{"session"}},
		{"GET  /orders     -> listOrders", "GET /orders -> listOrders: ¦", []string{"Order", "OrderInput", "int"}, nil},
		{"auth: apiKey(orders_read), rate", "auth: ¦, rate", []string{"none", "session", "apiKey(erp)", "session(admin)", "anyOf"}, []string{"Order"}},
		{"auth: apiKey(orders_read), rate", "auth: apiKey(¦), rate", []string{"orders_read", "erp"}, []string{"admin"}},
		{"session(admin)", "session(¦)", []string{"admin", "shop:clerk"}, []string{"erp"}},
		{"input: OrderInput", "input: ¦", []string{"OrderInput"}, []string{"Order"}},
		{"as: erp", "as: ¦", []string{"erp", "orders_read"}, nil},
		{"webhook(stripe, STRIPE)", "webhook(¦)", []string{"stripe", "github"}, nil},
		{"webhook(stripe, STRIPE)", "webhook(stripe, ¦)", []string{"STRIPE"}, nil},
		{"rateLimit: 600/minute", "rateLimit: 600/¦", []string{"second", "minute", "day"}, nil},
		{"rateLimit: 600/minute", "rateLimit: 600/minute by ¦", []string{"user", "ip", "global"}, nil},
		{"concurrency: 2 by kind", "¦", []string{"retries", "schedule", "backoff"}, []string{"auth"}},
		{"user: User\n", "user: ¦\n", []string{"User", "Order"}, []string{"Status"}},
		{"roles: [admin", "¦\n  roles: [admin", []string{"session cookie", "tenant", "origins"}, nil},
		{"var PAGE: int", "var PAGE: ¦", []string{"int", "duration", "rate"}, []string{"text"}},
		{"-> int", "-> ¦", []string{"Order", "int"}, nil},
		{"(status: Status = open)", "(status: ¦)", []string{"Status", "int"}, nil},
		{"// unlikely", "", nil, nil},
		{"/// A person.", "// ent¦", nil, []string{"entity"}},
	} {
		if row.typed == "" {
			continue
		}
		text := strings.Replace(shop, row.old, row.typed, 1)
		if text == shop {
			t.Fatalf("%q is not in the schema", row.old)
		}
		got := c.labels("shop.schema", text)
		for _, label := range row.want {
			if !slices.Contains(got, label) {
				t.Errorf("%q: no %q in %q", row.typed, label, got)
			}
		}
		for _, label := range row.unwant {
			if slices.Contains(got, label) {
				t.Errorf("%q: %q is in %q", row.typed, label, got)
			}
		}
	}
}

type workspaceEdit struct {
	Changes         map[string][]edit `json:"changes"`
	DocumentChanges []struct {
		Kind  string `json:"kind"`
		URI   string `json:"uri"`
		Edits []edit `json:"edits"`
	} `json:"documentChanges"`
}

func (c *client) rename(name, text, to string) workspaceEdit {
	c.t.Helper()
	params := c.at(name, text)
	params["newName"] = to
	return decoded[workspaceEdit](c.t, c.request("textDocument/rename", params))
}

func TestRenameChangesSchemaAndHandlers(t *testing.T) {
	c := startShop(t)
	change := c.rename("shop.schema", marked(t, shop, "entity Or¦der"), "Purchase")
	if len(c.asked) > 0 {
		t.Errorf("without rows the user is asked %q", c.asked)
	}
	got := applied(t, shop, change.Changes[c.uri("shop.schema")])
	for _, old := range []string{"entity Order {", "orders: Order[]", "on Order fields", "on Order, User", "createOrder: Order (", "order: Order,"} {
		if renamed := strings.ReplaceAll(old, "Order", "Purchase"); strings.Contains(got, old) && !strings.Contains(old, "create") {
			t.Errorf("%q is still there instead of %q:\n%s", old, renamed, got)
		}
	}
	if strings.Count(got, "Purchase") != 6 || !strings.Contains(got, "createOrder: Purchase (input: OrderInput") {
		t.Errorf("the schema is\n%s", got)
	}
	script := applied(t, handlers, change.Changes[c.uri("handlers/orders.ts")])
	want := strings.NewReplacer(
		"type { Order,", "type { Purchase,", "rows: Order[]", "rows: Purchase[]", `await query("Order")`, `await query("Purchase")`,
		`insert<Order>("Order"`, `insert<Purchase>("Purchase"`, `Row<"Order">`, `Row<"Purchase">`).Replace(handlers)
	if diff := cmp.Diff(want, script); diff != "" {
		t.Errorf("TypeScript (-want +got):\n%s", diff)
	}
	python := applied(t, pythonHandlers, change.Changes[c.uri("handlers/more.py")])
	want = strings.NewReplacer("import Order", "import Purchase", `query("Order")`, `query("Purchase")`, "order: Order", "order: Purchase",
		`get("Order"`, `get("Purchase"`).Replace(pythonHandlers)
	if diff := cmp.Diff(want, python); diff != "" {
		t.Errorf("Python (-want +got):\n%s", diff)
	}
}

func TestRenameAsksAboutRows(t *testing.T) {
	for _, row := range []struct{ at, to, chosen, want string }{
		{"note: te¦xt?", "", "", ""}, // text is not a name
		{"no¦te: text?", "remark", "Add @was", `remark: text? @was("note")`},
		{"no¦te: text?", "remark", "Rename without @was", "remark: text?\n"},
		{"ema¦il: email @unique", "mail", "Add @was", `mail: email @unique @was("email")`},
		{"entity Us¦er", "Person", "Add @was", `entity Person @was("User") {`},
		{"{ op¦en,", "fresh", "Add @was", `fresh @was("open"), paid`},
		{"open, pa¦id", "settled", "", `settled @was("payed")`}, // rows have the older name
		{"orders_re¦ad: @", "reader", "", `reader: @system("orders.read")`},
		{"orders_re¦ad: @", "reader", "", `auth: apiKey(reader), rate`},
		{"roles: [ad¦min", "boss", "", `auth.role == "boss"`},
	} {
		c := startShop(t)
		if err := os.Mkdir(filepath.Join(c.dir, "data"), 0o755); err != nil {
			t.Fatal(err)
		}
		c.chosen = row.chosen
		params := c.at("shop.schema", marked(t, shop, row.at))
		params["newName"] = row.to
		a := c.answer("textDocument/rename", params)
		switch {
		case row.want == "" && a.Error == nil:
			t.Errorf("%s: renamed: %s", row.at, a.Result)
		case row.want == "":
		case a.Error != nil:
			t.Errorf("%s: %s", row.at, a.Error.Message)
		default:
			got := applied(t, shop, decoded[workspaceEdit](t, a.Result).Changes[c.uri("shop.schema")])
			if !strings.Contains(got, row.want) {
				t.Errorf("%s: no %q in\n%s", row.at, row.want, got)
			}
			if asked := len(c.asked) > 0; asked != (row.chosen != "") {
				t.Errorf("%s: asked %q", row.at, c.asked)
			}
		}
	}
}

func TestRenameRefusesBadNames(t *testing.T) {
	c := startShop(t)
	if err := os.Mkdir(filepath.Join(c.dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ at, to, want string }{
		{"entity Us¦er", "Order", `entity "Order" is already declared`},
		{"entity Us¦er", "person", "begins with a capital letter"},
		{"entity Us¦er", "no-name", "is not a name"},
		{"no¦te: text?", "total", `field "total" is already declared`},
		{"Order {\n  i¦d: id", "key", "cannot be renamed"},
		{"en¦tity User", "x", "cannot rename this"},
		{"no¦te: text?", "remark", "no answer was chosen"},
	} {
		params := c.at("shop.schema", marked(t, shop, row.at))
		params["newName"] = row.to
		a := c.answer("textDocument/rename", params)
		if a.Error == nil || !strings.Contains(a.Error.Message, row.want) {
			t.Errorf("%s to %s: got %+v, want %q", row.at, row.to, a.Error, row.want)
		}
	}
}

// fixes are the titles of the code actions for the diagnostics of a schema, with the text after each.
func fixes(t *testing.T, text string) map[string]string {
	t.Helper()
	c := start(t, "", map[string]string{"app.schema": text})
	c.open("app.schema", text)
	list := c.diagnostics(func(all map[string][]diagnostic) bool { _, ok := all["app.schema"]; return ok })["app.schema"]
	found := map[string]string{}
	for _, d := range list {
		actions := decoded[[]struct {
			Title string        `json:"title"`
			Edit  workspaceEdit `json:"edit"`
		}](t, c.request("textDocument/codeAction", map[string]any{
			"textDocument": map[string]any{"uri": c.uri("app.schema")}, "range": d.Range,
			"context": map[string]any{"diagnostics": []diagnostic{d}},
		}))
		for _, a := range actions {
			if edits := a.Edit.Changes[c.uri("app.schema")]; edits != nil {
				found[a.Title] = applied(t, text, edits)
			}
		}
	}
	return found
}

func TestCodeActionsFixDiagnostics(t *testing.T) {
	const route = "\nroutes(\"/v1\", auth: none, rateLimit: none) { GET /x -> h }\n"
	for _, row := range []struct{ text, title, want string }{
		{"rotes(\"/\", auth: none, rateLimit: none) { GET /x -> h }\n", "Change to routes", "routes(\"/\""},
		{"entity A { id: id\n  n: strng\n  @@allow read to session }" + route, "Change to string", "n: string\n"},
		{"entity A { id: id\n  n: int @unqiue\n  @@allow read to session }" + route, "Change to @unique", "int @unique\n"},
		{"entity A { id: id\n  name: int\n  @@index(nam)\n  @@allow read to session }" + route, "Change to name", "@@index(name)"},
		{"entity A { id: id\n  name: int\n  @@allow read when naem == 1 }" + route, "Change to name", "when name == 1"},
		{"entity A { id: id\n  n: []int\n  @@allow read to session }" + route, "Write int[]", "n: int[]\n"},
		{"entity A {\n  n: int\n  @@allow read to session\n}" + route, "Add id: id", "entity A {\n  id: id\n  n: int"},
		{"entity A {\n  id: id\n}" + route, "Add @@allow read, write to session", "id: id\n  @@allow read, write to session\n}"},
		{"entity A { id: id\n  @allow read to session }" + route, "Write @@allow", "@@allow read to session"},
		{"entity A { id: id\n  @@allow read }" + route, "Add to session", "@@allow read to session }"},
		{"auth { roles: [admin] }\nentity A { id: id\n  @@allow read when auth.role == \"amdin\" }" + route, "Change to admin", `== "admin" }`},
		{"auth { roles: [admin] }\nentity A { id: id\n  @@allow read when auth.role == \"boss\" }" + route, "Add the role boss", "roles: [admin, boss]"},
		{"auth { roles: [admin] }\nentity A { id: id\n  @@allow read when auth.role == admin }" + route, `Write "admin"`, `auth.role == "admin"`},
		{"entity A { id: id\n  @@allow read to session(\"x\") }" + route, `Write @@allow read to session when auth.role == "x"`, `@@allow read to session when auth.role == "x" }`},
		{"entity a { id: id\n  @@allow read to session }\nentity B { id: id\n  a: a\n  @@allow read to session }" + route, "Rename to A", "  a: A\n"},
		{"entity A { id: id\n  t: string @pattern(\"x\")\n  @@allow read to session }" + route, "Write string(1000)", "t: string(1000) @pattern"},
		{"entity A { id: id\n  b: B\n  @@allow read to session }" + route, "Declare entity B", "entity B {\n  id: id\n}\n\nentity A"},
		{"entity A { id: id\n  bs: B[]\n  @@allow read to session }\nentity B { id: id\n  a: A\n  @@allow read to session }" + route, "Add @inverse(a)", "bs: B[] @inverse(a)\n"},
		{"routes(\"/v1\") {\n  GET /x -> h\n}\n", "Add auth: none", "GET /x -> h (auth: none)"},
		{"routes(\"/v1\") {\n  GET /x -> h (timeout: 2s)\n}\n", "Add auth: none", "h (timeout: 2s, auth: none)"},
		{"routes(\"/v1\") {\n  GET /x -> h\n}\n", "Add auth: none to the group \"/v1\"", "routes(\"/v1\", auth: none) {"},
		{"functions {\n  @expose f() -> int\n}\n", "Add auth: none", "f() -> int (auth: none)"},
		{"routes(\"/\", auth: none) { GET /x -> h }\n", "Add rateLimit: 60/minute by ip", "-> h (rateLimit: 60/minute by ip)"},
		{"routes(\"v1\", auth: none, rateLimit: none) { GET /x -> h }\n", `Write "/v1"`, `routes("/v1"`},
		{"routes(\"/v1/\", auth: none, rateLimit: none) { GET /x -> h }\n", `Write "/v1"`, `routes("/v1"`},
		{"routes(\"/\", auth: apiKey(erp)) { GET /x -> h }\n", "Add the scope erp", "apiKeys {\n  scopes: {\n    erp: @system(\"erp\") { }\n  }\n}\n\nroutes"},
		{"apiKeys { scopes: {\n  crm: @system(\"crm\") { @grant read on A }\n} }\nroutes(\"/\", auth: apiKey(erp)) { GET /x -> h }\n", "Add the scope erp", "on A },\n  erp: @system(\"erp\") { }\n} }"},
		{"apiKeys { scopes: {\n  erp: @system(\"crm\") { @grant read on A }\n} }\nroutes(\"/\", auth: apiKey(epr)) { GET /x -> h }\n", "Change to erp", "apiKey(erp)"},
		{"routes(\"/\", auth: none) { POST /x -> h (verify: webhook(stripe, KEY)) }\n", "Add secret KEY", "secret KEY\n\nroutes"},
		{"type Input { a: int }\nroutes(\"/\", auth: none, rateLimit: none) { POST /x -> h (input: Inptu) }\n", "Change to Input", "(input: Input)"},
		{"routes(\"/\", auth: apikey) { GET /x -> h }\n", "Write apiKey", "auth: apiKey)"},
		{"entity Org { id: id\n  @@allow read to session }\nauth { tenant: Org\n session cookie { } }\nentity A { id: id\n  org: Org? @tenant\n  @@allow read to session }" + route, "Make org required", "org: Org @tenant"},
		{"entity A { id: id\n  b: B @onDelete(clear)\n  @@allow read to session }\nentity B { id: id\n  @@allow read to session }" + route, "Make b optional", "b: B? @onDelete(clear)"},
		{"entity M {\n  id: id\n  team: string(9)\n  @@allow read to session\n}\nentity A {\n  id: id\n  team: string(9)\n  @@allow read when exists(M where team == outer.team)\n}" + route,
			"Add @@index(team) to M", "entity M {\n  id: id\n  team: string(9)\n  @@allow read to session\n  @@index(team)\n}"},
	} {
		found := fixes(t, row.text)
		if got, ok := found[row.title]; !ok {
			t.Errorf("%s\nno fix %q among %q", row.text, row.title, titles(found))
		} else if !strings.Contains(got, row.want) {
			t.Errorf("%s: no %q in\n%s", row.title, row.want, got)
		}
	}
}

func titles(found map[string]string) (all []string) {
	for title := range found {
		all = append(all, title)
	}
	slices.Sort(all)
	return all
}

func TestAMissingHandlerIsCreated(t *testing.T) {
	const text = "routes(\"/\", auth: none, rateLimit: none) {\n  GET /a -> old\n  GET /b -> fresh\n}\n"
	for name, row := range map[string]struct {
		files       map[string]string
		title, want string
	}{
		"in a new file": {nil, "Create the handler fresh in handlers/app.ts",
			"import { ok, type RouteRequest } from \"@runner/sdk\";\n\n/** GET /b */\nexport async function fresh(req: RouteRequest) {\n  return ok({ path: req.path });\n}\n"},
		"beside its neighbour": {map[string]string{"handlers/a.ts": "import { ok } from \"@runner/sdk\";\n\nexport function old() {\n  return ok();\n}\n"},
			"Create the handler fresh in handlers/a.ts",
			"import { type RouteRequest } from \"@runner/sdk\";\nimport { ok } from \"@runner/sdk\";\n\nexport function old() {\n  return ok();\n}\n\n/** GET /b */\nexport async function fresh("},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"app.schema": text}
			for file, src := range row.files {
				files[file] = src
			}
			c := start(t, "", files)
			c.open("app.schema", text)
			at := markAt(t, marked(t, text, "-> ¦fresh"))
			actions := decoded[[]struct {
				Title string
				Edit  workspaceEdit
			}](t, c.request("textDocument/codeAction", map[string]any{
				"textDocument": map[string]any{"uri": c.uri("app.schema")}, "range": span{at, at}, "context": map[string]any{"diagnostics": []any{}},
			}))
			if len(actions) != 1 || actions[0].Title != row.title {
				t.Fatalf("actions: %+v", actions)
			}
			got := ""
			for _, change := range actions[0].Edit.DocumentChanges {
				got = applied(t, got, change.Edits)
			}
			for uri, edits := range actions[0].Edit.Changes {
				got = applied(t, row.files[c.name(uri)], edits)
			}
			if !strings.HasPrefix(got, row.want) {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}

func TestFormattingChangesOnlyWhatDiffers(t *testing.T) {
	const text = "app shop\r\nroutes(\"/\",auth:none, rateLimit: none){\r\n GET /x->h\r\n}\r\n"
	c := start(t, "", map[string]string{"app.schema": text})
	c.open("app.schema", text)
	edits := decoded[[]edit](t, c.request("textDocument/formatting", map[string]any{
		"textDocument": map[string]any{"uri": c.uri("app.schema")}, "options": map[string]any{"tabSize": 2, "insertSpaces": true},
	}))
	got := applied(t, strings.ReplaceAll(text, "\r\n", "\n"), edits)
	if want := "app shop\nroutes(\"/\", auth: none, rateLimit: none) {\n  GET /x -> h\n}\n"; strings.ReplaceAll(got, "\r\n", "\n") != want || strings.Count(edits[0].NewText, "\n") != strings.Count(edits[0].NewText, "\r\n") {
		t.Errorf("got %q", got)
	}
	if len(edits) != 1 || edits[0].Range.Start.Line != 1 {
		t.Errorf("edits %+v", edits)
	}
}

func TestInlayHintsShowWhatIsInherited(t *testing.T) {
	c := startShop(t)
	hints := decoded[[]struct {
		Position position
		Label    string
	}](t, c.request("textDocument/inlayHint", map[string]any{
		"textDocument": map[string]any{"uri": c.uri("shop.schema")}, "range": span{position{0, 0}, position{1000, 0}},
	}))
	var got []string
	for _, h := range hints {
		line := strings.Split(shop, "\n")[h.Position.Line]
		got = append(got, strings.Fields(line)[1]+" "+h.Label)
		if h.Position.Character != utf16Len(line) {
			t.Errorf("the hint %q is not at the end of %q", h.Label, line)
		}
	}
	want := []string{"/orders auth apiKey(orders_read) · 600/minute", "/orders 600/minute", "/stripe auth none · 600/minute", "countOrders(status: auth session · no limit"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hints (-want +got):\n%s", diff)
	}
}

func TestSemanticTokensAndFoldsCoverTheText(t *testing.T) {
	const text = "/* one\n   two */\nentity Ä_ {\n"
	c := startShop(t)
	params := map[string]any{"textDocument": map[string]any{"uri": c.uri("shop.schema")}}
	data := decoded[struct{ Data []int }](t, c.request("textDocument/semanticTokens/full", params)).Data
	lines, line, character := strings.Split(shop, "\n"), 0, 0
	var got []string
	types := []string{"keyword", "string", "number", "operator", "comment", "decorator", "class", "enum", "struct", "property", "enumMember", "parameter", "variable", "function", "type", "namespace"}
	for i := 0; i+4 < len(data); i += 5 {
		if data[i] > 0 {
			character = 0
		}
		line, character = line+data[i], character+data[i+1]
		got = append(got, fmt.Sprintf("%s %s %d", lines[line][character:character+data[i+2]], types[data[i+3]], data[i+4]))
	}
	for _, want := range []string{
		"/// The shop. comment 0", "entity keyword 0", "User class 1", "User class 0", "email property 1", "email type 2", "@unique decorator 0",
		"open enumMember 1", `"paid" enumMember 0`, "orders_read variable 1", "listOrders function 0", "600 number 0", "/orders string 0", "kind parameter 0",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no token %q in %q", want, got)
		}
	}
	folds := decoded[[]struct{ StartLine, EndLine int }](t, c.request("textDocument/foldingRange", params))
	var shown []string
	for _, f := range folds {
		shown = append(shown, lines[f.StartLine]+" … "+lines[f.EndLine+1])
	}
	if !slices.Contains(shown, "entity User { … }") || !slices.Contains(shown, "  scopes: { …   }") {
		t.Errorf("folds %q", shown)
	}
	c.change("shop.schema", text)
	if a := c.answer("textDocument/semanticTokens/full", params); a.Error != nil {
		t.Error(a.Error.Message)
	}
}
