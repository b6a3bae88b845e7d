package rows_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"runner.example/tests/harness"
)

// A request whose schema changes while its handler runs is run again on the next release,
// within the deadline of the first run. The handler takes 4 s, so the change comes in time,
// and two runs take longer than the 6 s of the deadline.
func TestARequestHasOneDeadlineOverAllReleases(t *testing.T) {
	t.Parallel()
	schema := func(more string) string {
		return strings.Replace(strings.Replace(evolving, "POST /op -> op", "POST /slow -> insertSlowly", 1), "size: int?", "size: int?"+more, 1)
	}
	a := harness.NewApp(t, schema(""), "[runtime]\ntimeout = \"6s\"\n", "slow")
	s := a.Serve()
	worker := "X-API-Key: " + a.Token("worker")
	runs := func() int { return strings.Count(s.Stderr.String(), `"msg":"begun"`) }
	answered := make(chan harness.Answer, 1)
	go func() {
		got, err := s.Try("POST", "/slow", "", worker)
		if err != nil {
			t.Error(err)
		}
		answered <- got
	}()
	s.WaitUntil("the handler runs", func() bool { return runs() == 1 })
	a.Write("app.schema", schema("\n  added: int = 1"))
	if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; got.Status != 504 || runs() != 2 || !strings.Contains(s.Stderr.String(), `"attempt":2`) {
		t.Errorf("two runs of 4 s within 6 s: %d after %d runs\n%s", got.Status, runs(), s.Stderr.String())
	}
}

// A newer release adds a field, a unique index and an entity. Rows are written under it, and changed
// after a rollback: the newer release then finds its values.
func TestARollbackKeepsWhatOnlyTheNewerReleaseDeclares(t *testing.T) {
	t.Parallel()
	newer := strings.NewReplacer(
		"name: string(1..40)", "name: string(1..40) @unique",
		"size: int?\n}", "size: int?\n  note: string(1..20)? @unique\n}\nentity Mark {\n  id: id\n  thing: Thing @onDelete(cascade)\n  text: string(1..20)\n}",
		"delete on Thing", "delete on Thing\n  @grant read, write, delete on Mark",
	).Replace(evolving)
	a := harness.NewApp(t, evolving, "", "echo")
	s := a.Serve()
	worker := "X-API-Key: " + a.Token("worker")
	op := func(name, args string) string {
		t.Helper()
		return s.Want(200, nil, "POST", "/op", args, worker, "X-Op: "+name).Body
	}
	insert := func(name, values string) string {
		t.Helper()
		var out struct{ Rows []struct{ ID string } }
		if err := json.Unmarshal([]byte(op("insert", fmt.Sprintf(`{"into":%q,"values":%s}`, name, values))), &out); err != nil {
			t.Fatal(err)
		}
		return out.Rows[0].ID
	}
	want := func(args, rows string) {
		t.Helper()
		if got := op("query", args); got != `{"rows":[`+rows+`],"nextCursor":null}` {
			t.Errorf("%s: got %s, want %s", args, got, rows)
		}
	}
	insert("Thing", `{"name":"first"}`)
	a.Write("app.schema", newer)
	a.Must("reload")
	one := insert("Thing", `{"name":"one","note":"n1"}`)
	two := insert("Thing", `{"name":"two","note":"n2"}`)
	insert("Mark", fmt.Sprintf(`{"thing":%q,"text":"m1"}`, one))
	lost := insert("Mark", fmt.Sprintf(`{"thing":%q,"text":"m2"}`, two))

	// The older schema as the app directory is refused; a rollback to its release is not.
	a.Write("app.schema", evolving)
	if r := a.Run("reload"); r.Status != 3 || strings.Count(r.Stderr, "error[E601]") != 2 {
		t.Errorf("a reload with the older schema: %d %s", r.Status, r.Stderr)
	}
	a.Must("rollback")
	if log := s.Stderr.String(); !strings.Contains(log, `"fields":["Mark","Thing.note"]`) {
		t.Errorf("the log does not name what is kept:\n%s", log)
	}
	s.Want(299, nil, "POST", "/op", `{"from":"Mark"}`, worker, "X-Op: query")
	want(`{"from":"Thing","where":[["name","=","one"]]}`, fmt.Sprintf(`{"id":%q,"name":"one","colour":"red","size":null}`, one))
	op("update", `{"in":"Thing","set":{"size":5},"where":[["name","in",["one","two"]]]}`)
	insert("Thing", `{"name":"meanwhile"}`)
	s.Stop()
	s = a.Serve()
	want(`{"from":"Thing","select":["name","size"],"orderBy":[["name","asc"]]}`,
		`{"name":"first","size":null},{"name":"meanwhile","size":null},{"name":"one","size":5},{"name":"two","size":5}`)

	// Forward again, first with rows that its unique index forbids.
	same := insert("Thing", `{"name":"one"}`)
	if r := a.Run("rollback"); r.Status != 3 || !strings.Contains(r.Stderr, "error[E603]") || !strings.Contains(r.Stderr, one) || !strings.Contains(r.Stderr, same) {
		t.Errorf("the newer release with two rows of the same name: %d %s", r.Status, r.Stderr)
	}
	op("delete", fmt.Sprintf(`{"from":"Thing","where":[["id","=",%q]]}`, same))
	a.Must("rollback")
	want(`{"from":"Thing","select":["name","size","note"],"orderBy":[["name","asc"]]}`,
		`{"name":"first","size":null,"note":null},{"name":"meanwhile","size":null,"note":null},{"name":"one","size":5,"note":"n1"},{"name":"two","size":5,"note":"n2"}`)
	want(`{"from":"Mark","select":["text"],"orderBy":[["text","asc"]]}`, `{"text":"m1"},{"text":"m2"}`)
	s.Want(299, nil, "POST", "/op", `{"into":"Thing","values":{"name":"x","note":"n1"}}`, worker, "X-Op: insert")

	// A row that a kept entity refers to is deleted: the newer release is refused, with the rows.
	a.Must("rollback")
	op("delete", fmt.Sprintf(`{"from":"Thing","where":[["id","=",%q]]}`, two))
	r := a.Run("rollback")
	if r.Status != 3 || !strings.Contains(r.Stderr, "error[E607]") || !strings.Contains(r.Stderr, lost) || !strings.Contains(r.Stderr, two) {
		t.Errorf("the newer release with a lost row: %d %s", r.Status, r.Stderr)
	}
	want(`{"from":"Thing","select":["name"],"where":[["size","=",5]]}`, `{"name":"one"}`)
}
