package cluster_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"runner.example/node/admin"
	"runner.example/tests/harness"
)

// persons is a schema of persons with these fields, under a name.
func persons(entity, fields string) string {
	return `app persons
entity ` + entity + ` {
  id: id
  ` + fields + `
}
entity Done {
  id: id
  person: string(1..40) @unique
}
apiKeys { scopes: { desk: @system("desk") { @grant read, write on ` + strings.Fields(entity)[0] + `, Done } } }
functions {
  mark(person: string(1..40))
  rename(person: string(1..40))
}
routes("/", auth: apiKey(desk), rateLimit: none) { POST /persons -> add }
`
}

const personHandlers = `
import { call, insert, noContent, type RouteRequest } from "@runner/sdk";
export async function mark(req: RouteRequest) {
  await insert("Done", { person: req.body<{ person: string }>().person });
  return noContent();
}
export async function rename(req: RouteRequest) {
  await call("update", { in: "Human", set: { nick: "filled" }, where: [["id", "=", req.body<{ person: string }>().person]] });
  return noContent();
}
export async function add(req: RouteRequest) {
  const { into, values } = req.body<{ into: string, values: object }>();
  await call("insert", { into, values });
  return noContent();
}
`

// An entity is renamed, its rows are walked over and a field is dropped, each on another node, beside
// requests to all nodes. All nodes have the same rows after each step.
func TestNodesChangeTheSchemaOfTheirRows(t *testing.T) {
	t.Parallel()
	before := persons("Person", "name: string(1..80)\n  note: text?\n  nick: text?")
	token := ""
	c := harness.NewCluster(t, nil, func() *harness.App {
		a := harness.NewApp(t, before, "")
		if token == "" { // the rows and keys of the first node are those of all
			a.Write("handlers/persons.ts", personHandlers)
			a.Must("build")
			var rows strings.Builder
			for i := range 1200 {
				fmt.Fprintf(&rows, `{"name":"p%d","note":"secret %d"}`+"\n", i, i)
			}
			a.Write("persons.jsonl", rows.String())
			a.Must("data", "import", "Person", "persons.jsonl")
			token = a.Token("desk")
		}
		return a
	})
	c.Nodes[0].Serve()
	for range 2 {
		c.Add().Serve()
	}
	for _, n := range c.Nodes {
		n.WaitReady()
	}
	n1, n2, n3 := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	list := func(n *harness.Node, entity string) (rows []map[string]any) {
		t.Helper()
		if err := json.Unmarshal([]byte(n.Must("data", "list", entity, "--limit", "5000", "--json")), &rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	// alike waits until all nodes have as many rows as n1, and compares them.
	alike := func(entity string) (rows []map[string]any) {
		t.Helper()
		rows = list(n1, entity)
		for _, n := range c.Nodes[1:] {
			var got []map[string]any
			n.Server.WaitUntil("the rows of n1 on "+n.Name, func() bool {
				r := n.Run("data", "list", entity, "--limit", "5000", "--json")
				return r.Status == 0 && json.Unmarshal([]byte(r.Stdout), &got) == nil && reflect.DeepEqual(got, rows)
			})
		}
		return rows
	}
	written := 1200
	// write sends requests to all nodes while change runs.
	write := func(entity, field string, change func()) {
		t.Helper()
		stop := make(chan struct{})
		var all sync.WaitGroup
		counts := make([]int, len(c.Nodes))
		for i, n := range c.Nodes {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					got, err := n.Server.Try("POST", "/persons", fmt.Sprintf(`{"into":%q,"values":{%q:"new"}}`, entity, field), "X-API-Key: "+token)
					switch {
					case err == nil && got.Status == 204:
						counts[i]++
					case err == nil && (got.Status == 409 || got.Status == 503): // it met the others
					default:
						t.Errorf("%s: %d %s, %v", n.Name, got.Status, got.Body, err)
						return
					}
				}
			})
		}
		func() {
			defer all.Wait()
			defer close(stop)
			change()
		}()
		for _, n := range counts {
			written += n
		}
	}

	// A new release on n2: everything has another name, and the note is removed.
	after := persons(`Human @was("Person")`, "title: string(1..80) @was(\"name\")\n  note: text? @removed\n  nick: text?")
	n1.Write("app.schema", after)
	n1.Must("check", "--against", "data")
	n1.Must("deploy", "--yes")
	rows := alike("Human")
	if len(rows) != written || rows[7]["title"] != "p7" || rows[7]["note"] != nil {
		t.Fatalf("%d rows, %v", len(rows), rows[7])
	}
	n2.Must("rollback")
	if rows := alike("Person"); rows[7]["name"] != "p7" || rows[7]["note"] != "secret 7" {
		t.Errorf("after the rollback: %v", rows[7])
	}
	n3.Must("rollback") // forward again
	alike("Human")

	// Each row is done once, in batches on all nodes.
	for i, more := 0, true; more; i++ {
		node := c.Nodes[i%3]
		client, err := admin.Dial(t.Context(), node.Path("data"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.CallEach(t.Context(), admin.CallEach{Entity: "Human", Function: "mark", Continue: i > 0})
		if err != nil || got.Failed != nil || got.Count+got.Before > written {
			t.Fatalf("batch %d on %s: %+v, %v", i, node.Name, got, err)
		}
		more = got.More
	}
	if done := alike("Done"); len(done) != written {
		t.Errorf("%d rows were done, want %d", len(done), written)
	}
	write("Human", "title", func() { n2.Must("data", "each", "Human", "--call", "rename", "--where", "nick = null") })
	rows = alike("Human")
	for i, row := range rows[:1200] {
		if row["nick"] != "filled" {
			t.Fatalf("row %d was not done: %v", i, row)
		}
	}

	// The dropped values are gone on all nodes, also for the release that had the field.
	write("Human", "title", func() { n3.Must("data", "drop", "Human.note", "--yes") })
	if got := n1.Run("data", "drop", "Human.note", "--yes"); got.Status != 4 {
		t.Errorf("drop again: %+v", got)
	}
	n1.Must("rollback")
	rows = alike("Person")
	for _, row := range rows {
		if row["note"] != nil {
			t.Fatalf("a dropped value has returned: %v", row)
		}
	}
	if len(rows) != written {
		t.Errorf("%d rows, want %d", len(rows), written)
	}
}
