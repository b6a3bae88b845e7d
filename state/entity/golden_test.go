package entity_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"runner.example/internal/diag"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// goldenSchema has each type of field, an optional one and a list, a tenant, a relation, and indexes of each kind.
const goldenSchema = `
auth { session cookie { idle: 30m } tenant: Org }
enum Kind { small, large }
entity Org { id: id  name: string(1..20)
  @@allow all to session }
entity Item {
  id: id
  org: Org @tenant
  name: string(1..40) @unique
  text: text?
  mail: email?
  link: url?
  code: uuid?
  size: int
  ratio: float
  price: decimal(12,2)
  open: bool
  kind: Kind = small
  at: time
  day: date
  lasts: duration?
  data: json?
  blob: bytes?
  tags: string(1..20)[]
  parent: Item?
  made: time @created
  @@index(size, name)
  @@index(kind, at)
  @@allow all to session
}
routes("/", auth: none, rateLimit: none) { GET / -> home }`

func TestRowsAndTheirIndexesHaveTheFormOfTheLevel(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	st, err := store.Open(store.Options{Clock: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	activate := func(text string) *database {
		t.Helper()
		sources := []diag.Source{{Name: "app.schema", Text: []byte(text)}}
		s, found := compiler.Compile(sources, compiler.Options{})
		if s == nil {
			t.Fatal(found)
		}
		model, err := entity.Activate(t.Context(), st, s, sources, entity.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return &database{st, model}
	}
	d := activate(goldenSchema)
	org := d.insert(t, "Org", `{"name":"Acme"}`)
	first := d.insert(t, "Item", fmt.Sprintf(`{"org":%q,"name":"a\u0000b","text":"é","mail":"a@example.com","link":"https://example.com/","code":"0191d5c0-7c1b-7def-8a3b-0123456789ab","size":-7,"ratio":1.5,"price":"12.50","open":true,
		"kind":"large","at":"2026-05-01T10:00:00.123Z","day":"2026-05-01","lasts":5400,"blob":"AQID","data":{"b":1,"a":[null,"x"]},"tags":["x","y"]}`, org))
	d.insert(t, "Item", fmt.Sprintf(`{"org":%q,"name":"second","size":9000000000,"ratio":-0.25,"price":"-1.00","open":false,
		"at":"1969-12-31T23:59:59Z","day":"1969-12-31","data":null,"tags":[],"parent":%q}`, org, first))
	activate(strings.Replace(goldenSchema, "@@index(size, name)", "@@index(open)", 1)) // one is not built yet, one is to be dropped
	storetest.Golden(t, st, "rows", "entity/")
}
