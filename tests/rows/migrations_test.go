package rows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"runner.example/internal/secret"
	"runner.example/node/admin"
	"runner.example/tests/harness"
)

// people is a schema of persons with these fields, whose states are an enum.
func people(fields, states, more string) string {
	return `app people
enum State { ` + states + ` }
entity Person {
  id: id
  ` + fields + `
  state: State = fresh
  @@allow all to session
}
entity Done {
  id: id
  person: string(1..40) @index
}
` + more + `
functions(timeout: 60s) {
  splitName(person: Person)
  strict(person: string(1..40), limit: int = 3)
  nothing()
  two(a: string, b: string)
  slow(person: Person) (timeout: 400ms)
  slower(person: Person) (timeout: 1s)
  endless(person: Person) (timeout: 200ms)
  copy(person: Person)
  removeNext(person: Person)
  fillAll(person: Person)
  keep(person: Person)
}
auth { session cookie { } }
`
}

const peopleHandlers = `
import { badRequest, get, getContext, insert, noContent, query, remove, update, type RouteRequest } from "@runner/sdk";
export async function splitName(req: RouteRequest) {
  const { person } = req.body<{ person: string }>();
  const row = await get("Person", person);
  const [firstName, ...rest] = row.name.split(" ");
  await update("Person", { firstName, lastName: rest.join(" ") }).where("id", "=", person);
  return noContent();
}
export async function strict(req: RouteRequest) {
  const { person } = req.body<{ person: string }>();
  await insert("Done", { person });
  const row = await get("Person", person);
  if (row.name.startsWith("bad")) return badRequest("this name is bad");
  return noContent();
}
export function nothing() { return noContent(); }
export function slow() {
  for (const end = Date.now() + 20; Date.now() < end; );
  return noContent();
}
export function two() { return noContent(); }
export function slower() {
  for (const end = Date.now() + 300; Date.now() < end; );
  return noContent();
}
export function endless() { for (;;); }
export async function copy(req: RouteRequest) {
  const { person } = req.body<{ person: string }>();
  const { name } = await get("Person", person);
  await insert("Person", { name });
  return noContent();
}
export async function removeNext(req: RouteRequest) {
  const { person } = req.body<{ person: string }>();
  await get("Person", person);
  await insert("Done", { person });
  const [next] = await query("Person").where("id", ">", person).orderBy("id").limit(1);
  if (next) await remove("Person").where("id", "=", next.id);
  return noContent();
}
export async function keep(req: RouteRequest) {
  const { person } = req.body<{ person: string }>();
  await insert("Done", { person });
  const { name } = await get("Person", person);
  if (!name.startsWith("bad")) return noContent();
  getContext().keepWrites();
  return badRequest("this name is bad");
}
export async function fillAll(req: RouteRequest) {
  const { person } = req.body<{ person: string }>();
  await insert("Done", { person });
  await update("Person", { note: "filled" }).where("name", "!=", "");
  return noContent();
}
`

const (
	oldPerson   = "name: string(1..80)\n  note: text?"
	splitPerson = oldPerson + "\n  firstName: string(0..80)?\n  lastName: string(0..80)?"
)

var peopleModule = sync.OnceValues(func() (string, error) {
	build := exec.Command(harness.Binary, "build")
	build.Dir = filepath.Join(harness.Scratch, "people")
	for name, text := range map[string]string{"app.schema": people(splitPerson, "fresh, known", ""), "handlers/people.ts": peopleHandlers} {
		path := filepath.Join(build.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("runner build: %w\n%s", err, out)
	}
	return filepath.Join(build.Dir, "build", "people.wasm"), nil
})

// newPeople returns an app with so many persons.
func newPeople(t *testing.T, n int) *harness.App {
	t.Helper()
	module, err := peopleModule()
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewApp(t, people(oldPerson, "fresh, known", ""), "")
	a.Write("build/people.wasm", harness.MustRead(t, module))
	var rows strings.Builder
	for i := range n {
		fmt.Fprintf(&rows, `{"name":"First%d Last%d","note":"secret %d"}`+"\n", i, i, i)
	}
	a.Write("people.jsonl", rows.String())
	a.Must("data", "import", "Person", "people.jsonl")
	return a
}

// wantRun runs a command that must end with the status and print all of the words.
func wantRun(t *testing.T, a *harness.App, status int, words []string, args ...string) string {
	t.Helper()
	r := a.Run(args...)
	if r.Status != status {
		t.Errorf("%v: status %d, want %d\n%s%s", args, r.Status, status, r.Stdout, r.Stderr)
	}
	for _, word := range words {
		if !strings.Contains(r.Stdout+r.Stderr, word) {
			t.Errorf("%v does not print %q:\n%s%s", args, word, r.Stdout, r.Stderr)
		}
	}
	return r.Stdout
}

// listed returns rows as data list prints them.
func listed(t *testing.T, a *harness.App, args ...string) (rows []map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Must(append([]string{"data", "list", "--json"}, args...)...)), &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// audited returns the number of records of an action, and the sum of their counts.
func audited(t *testing.T, a *harness.App, action string) (records, rows int) {
	t.Helper()
	for _, r := range a.Audit(t) {
		if r["action"] == action {
			records++
			if n, ok := r["count"].(float64); ok {
				rows += int(n)
			}
		}
	}
	return records, rows
}

func TestAColumnIsSplitBesideRequestsAndThenDropped(t *testing.T) {
	t.Parallel()
	a := newPeople(t, 250)
	s := a.Serve()
	split := people(splitPerson, "fresh, known", "")
	a.Write("app.schema", split)
	wantRun(t, a, 0, []string{"add", "Person.firstName", "250", "rows have null"}, "check", "--against", "data")
	a.Must("reload")

	for _, c := range []struct {
		status int
		words  []string
		args   []string
	}{
		{2, []string{"--where", "--all"}, []string{"Person", "--call", "splitName"}},
		{2, []string{"--call"}, []string{"Person", "--all"}},
		{4, []string{`did you mean "splitName"?`}, []string{"Person", "--call", "splitNam", "--all"}},
		{3, []string{"nothing(row: Person)"}, []string{"Person", "--call", "nothing", "--all"}},
		{3, []string{"two(row: Person)"}, []string{"Person", "--call", "two", "--all"}},
		{3, []string{"Done"}, []string{"Done", "--call", "splitName", "--all"}},
		{3, []string{"nope"}, []string{"Person", "--call", "splitName", "--where", "nope = 1"}},
		{3, []string{"Persn"}, []string{"Persn", "--call", "splitName", "--all"}},
	} {
		wantRun(t, a, c.status, c.words, append([]string{"data", "each"}, c.args...)...)
	}
	if records, _ := audited(t, a, "data.each"); records != 0 {
		t.Errorf("refused commands left %d records", records)
	}
	wantRun(t, a, 0, []string{"called splitName for 250 rows"}, "data", "each", "Person", "--call", "splitName", "--where", "firstName = null")
	if records, rows := audited(t, a, "data.each"); rows != 250 || records < 3 {
		t.Errorf("the audit has %d records of %d rows", records, rows)
	}
	rows := listed(t, a, "Person", "--limit", "300")
	for _, row := range rows {
		if row["name"] != fmt.Sprint(row["firstName"], " ", row["lastName"]) {
			t.Fatalf("got %v", row)
		}
	}
	wantRun(t, a, 0, []string{"called splitName for 0 rows"}, "data", "each", "Person", "--call", "splitName", "--where", "firstName = null")

	// The first name becomes required and gets another name, the note is removed, a value is renamed.
	next := people("name: string(1..80)\n  note: text? @removed\n  givenName: string(1..80) @was(\"firstName\") @index\n  lastName: string(0..80)?", `new @was("fresh"), known`, "")
	next = strings.Replace(next, "State = fresh", "State = new @index", 1)
	a.Write("app.schema", next)
	plan := wantRun(t, a, 0, []string{"runner data drop Person.note"}, "check", "--against", "data")
	for _, want := range []string{"rename Person.givenName 250 was firstName", "check Person.givenName 250 every row must have a value", "remove Person.note 250", "rename Person.state new 250 was fresh", "build Person(givenName) 250"} {
		if !strings.Contains(strings.Join(strings.Fields(plan), " "), want) {
			t.Errorf("the plan does not have %q:\n%s", want, plan)
		}
	}
	var document struct {
		Findings []any
		Plan     []struct{ Change, What, How string }
	}
	if err := json.Unmarshal([]byte(a.Must("check", "--against", "data", "--json")), &document); err != nil || len(document.Plan) < 5 || document.Findings == nil {
		t.Errorf("%+v, %v", document, err)
	}
	wantRun(t, a, 3, []string{"@removed"}, "data", "drop", "Person.note") // not removed yet
	a.Must("reload")
	row := listed(t, a, "Person", "--limit", "1", "--where", "givenName = First7")[0]
	if row["state"] != "new" || row["givenName"] != "First7" || row["note"] != nil {
		t.Errorf("got %v", row)
	}

	// A rollback sees the old names, and what was removed.
	a.Must("rollback")
	row = listed(t, a, "Person", "--limit", "1", "--where", "firstName = First7")[0]
	if row["state"] != "fresh" || row["note"] != "secret 7" {
		t.Errorf("after the rollback: %v", row)
	}
	a.Must("rollback") // forward again

	wantRun(t, a, 2, []string{"--yes", "250 rows of Person"}, "data", "drop", "Person.note")
	wantRun(t, a, 4, []string{`did you mean "Person.note"?`}, "data", "drop", "Person.nte", "--yes")
	wantRun(t, a, 3, []string{"declares Person.name", "@removed"}, "data", "drop", "Person.name", "--yes")
	wantRun(t, a, 0, []string{"dropped Person.note from 250 rows"}, "data", "drop", "Person.note", "--yes")
	if _, rows := audited(t, a, "data.drop"); rows != 250 {
		t.Errorf("the audit counts %d dropped values", rows)
	}
	s.Stop()
	wantRun(t, a, 4, nil, "data", "drop", "Person.note", "--yes")
	s = a.Serve()
	a.Must("rollback")
	if row = listed(t, a, "Person", "--limit", "1", "--where", "firstName = First7")[0]; row["note"] != nil {
		t.Errorf("a dropped value has returned: %v", row)
	}
	s.Stop()
}

// A function refuses a row, and the server is killed between batches: no row is done twice, and none is
// missing.
func TestCallsOverRowsContinueAfterErrorsAndKills(t *testing.T) {
	t.Parallel()
	a := newPeople(t, 450)
	rows := listed(t, a, "Person", "--limit", "450", "--order", "id")
	bad := fmt.Sprint(rows[150]["id"])
	a.Must("data", "update", "Person", "--where", "id = "+bad, "--set", "name=bad name")
	s := a.Serve()
	each := []string{"data", "each", "Person", "--call", "strict", "--all"}
	wantRun(t, a, 1, []string{"strict answered 400", bad, "this name is bad", "100 rows done before that"}, each...)
	wantRun(t, a, 1, []string{"continuing after 100 rows", bad}, each...)
	if done := listed(t, a, "Done", "--limit", "500"); len(done) != 100 {
		t.Errorf("%d rows were done, want the first batch only", len(done))
	}
	a.Must("data", "update", "Person", "--where", "id = "+bad, "--set", "name=good name")

	// The server is killed as soon as another batch is committed.
	ended := make(chan harness.Result, 1)
	go func() { ended <- a.Run(each...) }()
	s.WaitUntil("another batch", func() bool { return batches(a, "data.each") >= 2 })
	s.Kill()
	<-ended // it may have ended before
	s = a.Serve()
	r := a.Run(append(each, "--json")...)
	var last struct{ Count, Before int }
	if err := json.Unmarshal([]byte(r.Stdout), &last); err != nil || r.Status != 0 {
		t.Fatalf("status %d, %v: %s", r.Status, err, r.Stderr)
	}
	seen := map[string]int{}
	for _, row := range listed(t, a, "Done", "--limit", "2000") {
		seen[fmt.Sprint(row["person"])]++
	}
	// If the command had ended before the kill, the last one began again.
	times := 1
	if last.Before == 0 {
		times = 2
		t.Log("the command ended before the server was killed")
	}
	for i, row := range rows {
		if n := seen[fmt.Sprint(row["id"])]; n != times {
			t.Errorf("row %d was done %d times, want %d", i, n, times)
		}
	}
	s.Stop()
	// Without a server, and from the first row.
	wantRun(t, a, 0, []string{"called strict for 450 rows"}, append(each, "--restart")...)
}

// Calls for the rows of one tenant, and for those of all, have positions of their own.
func TestCallsOverRowsOfATenantContinueByThemselves(t *testing.T) {
	t.Parallel()
	a := newPeople(t, 150)
	bad := fmt.Sprint(listed(t, a, "Person", "--limit", "150", "--order", "id")[120]["id"])
	a.Must("data", "update", "Person", "--where", "id = "+bad, "--set", "name=bad name")
	s := a.Serve()
	each := []string{"data", "each", "Person", "--call", "strict", "--all"}
	of := func(tenant string) []string { return append(slices.Clone(each), "--tenant", tenant) } // the rows belong to all
	for _, args := range [][]string{each, of("acme"), of("blue")} {
		if r := a.Run(args...); r.Status != 1 || !strings.Contains(r.Stderr, "100 rows done before that") || strings.Contains(r.Stderr, "continuing") {
			t.Errorf("%v: status %d, %s%s", args, r.Status, r.Stdout, r.Stderr)
		}
	}
	if done := listed(t, a, "Done", "--limit", "500"); len(done) != 300 {
		t.Errorf("%d calls are recorded, want 3 × 100", len(done))
	}
	a.Must("data", "update", "Person", "--where", "id = "+bad, "--set", "name=good name")
	for _, args := range [][]string{of("acme"), each} {
		wantRun(t, a, 0, []string{"continuing after 100 rows"}, args...)
	}
	if done := listed(t, a, "Done", "--limit", "500"); len(done) != 400 {
		t.Errorf("%d calls are recorded, want 150 of all rows, 150 of one tenant and 100 of another", len(done))
	}
	s.Stop()
}

// A function takes 600 ms for all rows, and its timeout is 400 ms: so they are done in several
// transactions.
func TestABatchEndsBeforeTheFunctionsTimeout(t *testing.T) {
	t.Parallel()
	a := newPeople(t, 30)
	s := a.Serve()
	wantRun(t, a, 0, []string{"called slow for 30 rows"}, "data", "each", "Person", "--call", "slow", "--all")
	if records, rows := audited(t, a, "data.each"); records < 2 || rows != 30 {
		t.Errorf("%d transactions of %d rows", records, rows)
	}
	s.Stop()
}

// The commands in the refusals of a change can be typed as they are: with the names that rows have now.
func TestTheCommandsInRefusalsChangeTheRows(t *testing.T) {
	t.Parallel()
	const old = `
enum Color { red, green, blue }
entity Thing {
  id: id
  name: string(1..20)
  note: text?
  color: Color
  colors: Color[]
}
`
	const next = `
enum Color { red, green }
entity Article @was("Thing") {
  id: id
  title: string(1..3) @was("name") @unique
  remark: text @was("note")
  shade: Color @was("color")
  shades: Color[] @was("colors")
}
`
	a := harness.NewApp(t, old, "")
	a.Write("things.jsonl", `{"name":"a","color":"blue","colors":["red","blue"]}`+"\n"+`{"name":"long","note":"n","color":"red","colors":[]}`+"\n"+`{"name":"a","note":"n","color":"red","colors":[]}`+"\n")
	a.Must("data", "import", "Thing", "things.jsonl")
	command := regexp.MustCompile(`runner data update \w+ --where "([^"]+)" --set (\S+)=<value>`)
	values := map[string]string{"name": "b", "note": "filled", "color": "red", "colors": `["green"]`, "<field>": "c"}
	for round := 0; ; round++ {
		a.Write("app.schema", next)
		r := a.Run("check", "--against", "data")
		if r.Status == 0 && round > 1 {
			break
		}
		found := command.FindAllStringSubmatch(r.Stderr+r.Stdout, -1)
		if len(found) == 0 || round > 3 {
			t.Fatalf("round %d: no command in\n%s%s", round, r.Stdout, r.Stderr)
		}
		a.Write("app.schema", old)
		for _, m := range found {
			set := m[2] + "=" + values[m[2]]
			if m[2] == "<field>" {
				set = "name=c"
			}
			wantRun(t, a, 0, []string{"updated 1 row"}, "data", "update", "Thing", "--where", m[1], "--set", set)
		}
	}
}

// A function takes 300 ms for a row, and its timeout is a second: no batch may wait for several rows
// before it ends.
func TestABatchMayEndAfterAnyRow(t *testing.T) {
	t.Parallel()
	a := newPeople(t, 7)
	s := a.Serve()
	wantRun(t, a, 0, []string{"called slower for 7 rows"}, "data", "each", "Person", "--call", "slower", "--all")
	wantRun(t, a, 1, []string{"endless answered 504"}, "data", "each", "Person", "--call", "endless", "--all")
	s.Stop()
}

// Functions insert rows, delete rows that are still to come, or change them so that they do not match any
// more.
func TestFunctionsChangeTheRowsThatTheyAreCalledFor(t *testing.T) {
	t.Parallel()
	a := newPeople(t, 250)
	s := a.Serve()
	wantRun(t, a, 0, []string{"called copy for 250 rows"}, "data", "each", "Person", "--call", "copy", "--all")
	if n := len(listed(t, a, "Person", "--limit", "1000")); n != 500 {
		t.Errorf("%d rows, want each row and its copy", n)
	}
	wantRun(t, a, 0, []string{"called removeNext for 250 rows"}, "data", "each", "Person", "--call", "removeNext", "--all")
	if n := len(listed(t, a, "Person", "--limit", "1000")); n != 250 {
		t.Errorf("%d rows, want each other row", n)
	}
	wantRun(t, a, 0, []string{"called fillAll for 1 row"}, "data", "each", "Person", "--call", "fillAll", "--where", "note = null")
	wantRun(t, a, 0, []string{"called fillAll for 0 rows"}, "data", "each", "Person", "--call", "fillAll", "--where", "note = null")
	s.Stop()
}

// A refusal counts, also if the handler wants its writes to be kept.
func TestARefusalUndoesItsBatch(t *testing.T) {
	t.Parallel()
	a := newPeople(t, 20)
	s := a.Serve()
	rows := listed(t, a, "Person", "--order", "id")
	for _, bad := range []int{19, 7} {
		id := fmt.Sprint(rows[bad]["id"])
		a.Must("data", "update", "Person", "--where", "id = "+id, "--set", "name=bad")
		wantRun(t, a, 1, []string{"keep answered 400", id, "this name is bad"}, "data", "each", "Person", "--call", "keep", "--all")
		if done := listed(t, a, "Done"); len(done) > 0 {
			t.Errorf("row %d was refused, and %d rows were done", bad, len(done))
		}
	}
	s.Stop()
}

// Two commands share a run: one of a user of this machine, and one of a platform key. Another one over the
// same rows with other conditions has a position of its own.
func TestARunIsContinuedByAnotherOperator(t *testing.T) {
	t.Parallel()
	a := newPeople(t, 250)
	a.Write("runner.toml", "[admin]\nlisten = \"127.0.0.1:0\"\n")
	s := a.Serve()
	var status struct{ Admin, AdminFingerprint string }
	if err := json.Unmarshal([]byte(a.Must("status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	var key struct{ Token string }
	if err := json.Unmarshal([]byte(a.Must("keys", "create", "--name", "x", "--role", "admin", "--json")), &key); err != nil {
		t.Fatal(err)
	}
	each := admin.CallEach{Entity: "Person", Function: "strict"}
	call := func(c *admin.Client, request admin.CallEach, count, before int, more bool) {
		t.Helper()
		got, err := c.CallEach(t.Context(), request)
		if err != nil || got.Failed != nil || got.Count != count || got.Before != before || got.More != more {
			t.Fatalf("got %+v, %v; want %d rows after %d, more %v", got, err, count, before, more)
		}
	}
	here, err := admin.Dial(t.Context(), a.Path("data"))
	if err != nil {
		t.Fatal(err)
	}
	there, err := admin.DialURL(t.Context(), status.Admin, []string{status.AdminFingerprint}, secret.NewToken(key.Token))
	if err != nil {
		t.Fatal(err)
	}
	call(here, each, 100, 0, true)
	other := each
	other.Where = []admin.Condition{{Field: "note", Operator: "startsWith", Value: "secret"}}
	call(here, other, 100, 0, true)
	call(there, each, 100, 100, true)
	each.Continue = true
	call(here, each, 50, 200, false)
	call(there, each, 0, 0, false) // the run has ended meanwhile
	call(there, other, 100, 100, true)
	each.Continue = false
	call(there, each, 100, 0, true) // a new run
	s.Stop()
}

// The server is killed while values are dropped. The same command continues.
func TestADropContinuesAfterAKill(t *testing.T) {
	t.Parallel()
	const n = 4000
	a := newPeople(t, n)
	s := a.Serve()
	a.Write("app.schema", strings.Replace(people(oldPerson, "fresh, known", ""), "note: text?", "note: text? @removed", 1))
	a.Must("reload")
	client, err := admin.Dial(t.Context(), a.Path("data"))
	if err != nil {
		t.Fatal(err)
	}
	request := admin.DropKept{Name: "Person.note"}
	for range 2 {
		done, err := client.DropKept(t.Context(), request)
		if err != nil || done.Count == 0 || done.NextCursor == "" {
			t.Fatalf("got %+v, %v", done, err)
		}
		request.Cursor = done.NextCursor
	}
	third := make(chan error, 1)
	go func() {
		_, err := client.DropKept(context.WithoutCancel(t.Context()), request)
		third <- err
	}()
	s.Kill()
	t.Logf("the batch that the kill met: %v", <-third)
	s = a.Serve()
	a.Must("data", "update", "Person", "--where", "name = First1 Last1", "--set", "state=known")
	wantRun(t, a, 0, []string{"dropped Person.note from"}, "data", "drop", "Person.note", "--yes")
	if _, rows := audited(t, a, "data.drop"); rows != n {
		t.Errorf("%d values were dropped, want %d", rows, n)
	}
	wantRun(t, a, 4, nil, "data", "drop", "Person.note", "--yes")
	a.Must("rollback")
	rows := listed(t, a, "Person", "--limit", fmt.Sprint(2*n))
	for _, row := range rows {
		if row["note"] != nil || row["name"] == "" {
			t.Fatalf("got %v", row)
		}
	}
	if len(rows) != n {
		t.Errorf("%d rows, want %d", len(rows), n)
	}
	s.Stop()
}

// batches returns the number of audit records of an action.
func batches(a *harness.App, action string) int {
	return strings.Count(a.Run("audit", "list", "--json").Stdout, fmt.Sprintf("%q", action))
}
