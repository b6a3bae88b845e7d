package rows_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const manySchema = `app many

entity List {
  id: id
  name: string(1..20)
}

entity Item {
  id: id
  list: List @onDelete(cascade)
  n: int
  done: bool = false
}

apiKeys {
  scopes: { all: @system("all") { @grant read, write, delete on List, Item } }
}

routes("/", auth: none, rateLimit: none) {
  POST   /close       -> close (as: all)
  POST   /part        -> part (as: all)
  DELETE /lists/:name -> removeList (as: all)
  GET    /count       -> countTwice (as: all)
  GET    /at-most     -> countAtMost (as: all)
  GET    /first       -> first (as: all)
  GET    /required    -> required (as: all)
  GET    /left        -> left (as: all)
}
`

const manyHandlers = `
import { ok, query, remove, update, type RouteRequest } from "@runner/sdk";

const open = () => update("Item", { done: true }).where("done", "=", false);
export const close = async () => ok(await open());
export const part = async () => ok(await open().limit(500));
export const removeList = async (req: RouteRequest) => ok(await remove("List").where("name", "=", req.params.name));
export const countTwice = async () => ok(await query("Item").count() + await query("Item").count());
export const countAtMost = async () => ok([await query("Item").count({ atMost: 10_000 }), await query("Item").count({ atMost: 26_000 })]);

const none = () => query("Item").where("n", "<", 0);
export const first = async () => ok(await none().first());
export const required = async () => ok(await none().firstOrFail());
export const left = () => ok(none().first());
`

// More rows than a limit are refused with the reason, and reached in parts.
func TestMoreRowsThanALimit(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, manySchema, "[sandbox]\nrows = 40000\ncpu = \"20s\"\n[runtime]\ntimeout = \"30s\"\n")
	a.Write("handlers/many.ts", manyHandlers)
	a.Must("build")
	s := a.Serve()
	fill := func(name string, n int) {
		t.Helper()
		a.Write("lists.jsonl", fmt.Sprintf(`{"name":%q}`+"\n", name))
		a.Must("data", "import", "List", "lists.jsonl")
		var lists []struct{ ID string }
		if err := json.Unmarshal([]byte(a.Must("data", "list", "List", "--json", "--where", "name = "+name)), &lists); err != nil || len(lists) != 1 {
			t.Fatalf("%v, %v", lists, err)
		}
		var items strings.Builder
		for i := range n {
			fmt.Fprintf(&items, `{"list":%q,"n":%d}`+"\n", lists[0].ID, i)
		}
		a.Write("items.jsonl", items.String())
		a.Must("data", "import", "Item", "items.jsonl")
	}
	const problem = `.*"status":422,"detail":"%s",.*"code":"limit".*`
	const counted = `[{"count":10000,"more":true},{"count":26000,"more":false}]`

	fill("one", 26_000) // each has two keys, and a transaction 50,000
	s.Matches(422, fmt.Sprintf(problem, `update: where: more than 1000 rows match: change them in batches, with a limit`), "POST", "/close", "", "")
	s.Matches(200, `{"count":500,"more":true}`, "POST", "/part", "", "")
	const tooMany = "too many rows refer to the deleted rows for one transaction: delete the referring rows first, in batches"
	s.Matches(422, fmt.Sprintf(problem, "delete: "+tooMany), "DELETE", "/lists/one", "", "")
	r := a.Run("data", "delete", "List", "--where", "name = one")
	if r.Status != 3 || !strings.Contains(r.Stderr, tooMany) || !strings.Contains(r.Stderr, "--cascade") {
		t.Errorf("a delete in one transaction: exits %d\n%s", r.Status, r.Stderr)
	}
	s.Matches(422, fmt.Sprintf(problem, `count: more than 40000 rows were read: .*`), "GET", "/count", "", "")
	if got := s.Want(200, nil, "GET", "/at-most", ""); got.Body != counted {
		t.Errorf("%s, want %s", got.Body, counted)
	}
	if got := a.Must("data", "delete", "Item", "--where", "n < 2000"); got != "deleted 2000 rows\n" {
		t.Errorf("%q", got)
	}
	s.Matches(200, `1`, "DELETE", "/lists/one", "", "") // with 24,000 items
	s.Matches(200, `0`, "GET", "/count", "", "")

	fill("two", 26_000)
	if got, want := a.Must("data", "delete", "List", "--all", "--cascade"), "deleted 1 row and 26000 that referred to them\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Matches(200, `0`, "GET", "/count", "", "")

	s.Matches(200, `null`, "GET", "/first", "", "")
	s.Matches(404, `.*"code":"not_found".*`, "GET", "/required", "", "")
	s.Matches(404, `.*"code":"not_found".*`, "GET", "/left", "", "")
}
