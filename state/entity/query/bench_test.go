package query

import (
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/compiler"
)

// BenchmarkReadArguments measures the reading of a handler's arguments, before rows are
// scanned.
func BenchmarkReadArguments(b *testing.B) {
	s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(`
auth { session cookie { idle: 30m } }
enum State { open, paid }
entity Bill { id: id
  state: State
  total: int
  note: string(0..20)?
  madeAt: time @created
  @@allow read to session }
routes("/", auth: none, rateLimit: none) { GET / -> home }`)}}, compiler.Options{})
	if s == nil {
		b.Fatal(found)
	}
	rights, cursors := NewRights(s, "Bill"), NewCursorSealer([32]byte{})
	who := &caller.Caller{Kind: caller.Session, UserID: "u1"}
	for _, c := range []struct {
		op   Operation
		args string
	}{
		{OpGet, `{"from":"Bill","id":"01hzzzzzzzzzzzzzzzzzzzzzzz"}`},
		{opQuery, `{"from":"Bill","select":["id","total"],"where":[["state","=","open"],["total",">",10]],"orderBy":[["madeAt","desc"]],"limit":20}`},
	} {
		b.Run(c.op.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a, err := ReadArguments(c.op, []byte(c.args))
				if err != nil {
					b.Fatal(err)
				}
				auth := rights.For(schema.RuleInput{Caller: who})
				if _, err := a.Request(&auth, cursors); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
