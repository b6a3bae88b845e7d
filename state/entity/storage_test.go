package entity_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/entity/catalog"
	"runner.example/state/store"
)

// fixture is a store in memory with an active schema.
type fixture struct {
	t     testing.TB
	store *store.Store
	model *entity.Model
}

// newFixture activates the schema in an empty store. The store is verified when the test
// ends.
func newFixture(t testing.TB, text string) *fixture {
	t.Helper()
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &fixture{t: t, store: st}
	t.Cleanup(func() {
		h.verify()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := h.activate(text); err != nil {
		t.Fatal(err)
	}
	return h
}

// activate changes the schema. Indexes are not built.
func (h *fixture) activate(text string) error {
	h.t.Helper()
	return h.activateWith(text, entity.Options{})
}

// rollback is activate of a schema that is older than the active one.
func (h *fixture) rollback(text string) error {
	h.t.Helper()
	return h.activateWith(text, entity.Options{KeepRemoved: true})
}

func (h *fixture) activateWith(text string, opt entity.Options) error {
	h.t.Helper()
	sources := []diag.Source{{Name: "app.schema", Text: []byte(text)}}
	s, list := compiler.Compile(sources, compiler.Options{})
	if s == nil {
		h.t.Fatalf("the schema does not compile: %v", list)
	}
	opt.CursorKey = [32]byte{7}
	m, err := entity.Activate(context.Background(), h.store, s, sources, opt)
	if err == nil {
		h.model = m
		// Other nodes and a restart find the schema as the active one.
		if same, err := entity.Current(context.Background(), h.store, s, opt); err != nil || same == nil {
			h.t.Errorf("the activated schema is not the active one: %v", err)
		}
	}
	return err
}

func (h *fixture) verify() {
	h.t.Helper()
	if err := catalog.Verify(context.Background(), h.store); err != nil {
		h.t.Errorf("the store is inconsistent: %v", err)
	}
}

// in runs fn in its own transaction.
func (h *fixture) in(who *caller.Caller, fn func(*entity.Access) error) error {
	h.t.Helper()
	_, err := h.store.Update(context.Background(), func(tx *store.Tx) error {
		var a entity.Access
		a.Reset(h.model, tx, who, 100_000)
		return fn(&a)
	})
	return err
}

// do runs one operation in its own transaction.
func (h *fixture) do(who *caller.Caller, op, args string) (string, error) {
	h.t.Helper()
	var out entity.Result
	err := h.in(who, func(a *entity.Access) error { return a.Do(op, []byte(args), &out) })
	return string(out.JSON), err
}

func (h *fixture) must(who *caller.Caller, op, args string) string {
	h.t.Helper()
	out, err := h.do(who, op, args)
	if err != nil {
		h.t.Fatalf("%s %s: %v", op, args, err)
	}
	return out
}

// insert adds a row and returns its id.
func (h *fixture) insert(who *caller.Caller, name, values string) string {
	h.t.Helper()
	var out struct{ Rows []struct{ ID string } }
	if err := json.Unmarshal([]byte(h.must(who, "insert", fmt.Sprintf(`{"into":%q,"values":%s}`, name, values))), &out); err != nil {
		h.t.Fatal(err)
	}
	return out.Rows[0].ID
}

// rows returns the objects of a query's result.
func (h *fixture) rows(who *caller.Caller, args string) []map[string]any {
	h.t.Helper()
	var out struct{ Rows []map[string]any }
	if err := json.Unmarshal([]byte(h.must(who, "query", args)), &out); err != nil {
		h.t.Fatal(err)
	}
	return out.Rows
}

// fails runs an operation that must fail with the code and a text that contains all of the
// words.
func (h *fixture) fails(who *caller.Caller, code fault.Code, op, args string, words ...string) {
	h.t.Helper()
	out, err := h.do(who, op, args)
	if err == nil {
		h.t.Errorf("%s %s: answers %s, want %s", op, args, out, code)
		return
	}
	f := fault.Of(err)
	if f.Code != code {
		h.t.Errorf("%s %s: %s (%v), want %s", op, args, f.Code, err, code)
	}
	for _, word := range words {
		if !strings.Contains(f.Detail, word) {
			h.t.Errorf("%s %s: %q does not contain %q", op, args, f.Detail, word)
		}
	}
}

var operator = &caller.Caller{Kind: caller.System}

func memberOf(tenant string) *caller.Caller {
	return &caller.Caller{Kind: caller.Session, UserID: "u-" + tenant, Tenant: tenant}
}

const shop = `
auth { session cookie { idle: 30m } }
enum Status { open, paid, gone }
entity Partner {
  id: id
  code: string(1..16) @unique
  orders: Order[] @inverse(partner)
  @@allow all to session
}
entity Order {
  id: id
  number: string(1..32) @unique
  partner: Partner
  referrer: Partner? @onDelete(clear)
  status: Status = open
  total: decimal(12,2) = 0 @min(0)
  note: text?
  rank: int?
  lines: Line[] @inverse(order)
  createdAt: time @created
  updatedAt: time @updated
  @@index(partner, status, createdAt desc)
  @@index(rank)
  @@allow all to session
}
entity Line {
  id: id
  order: Order @onDelete(cascade)
  text: text
  @@allow all to session
}
`

var clerk = &caller.Caller{Kind: caller.Session, UserID: "clerk"}

func TestAnInsertedRowIsReadUnchanged(t *testing.T) {
	h := newFixture(t, shop)
	partner := h.insert(clerk, "Partner", `{"code":"acme"}`)
	id := h.insert(clerk, "Order", fmt.Sprintf(`{"number":"1","partner":%q,"total":12.5,"note":"\u0000a\"ü","rank":-3}`, partner))
	got := h.must(clerk, "get", fmt.Sprintf(`{"from":"Order","id":%q,"select":["number","partner","referrer","status","total","note","rank"]}`, id))
	want := fmt.Sprintf(`{"row":{"number":"1","partner":%q,"referrer":null,"status":"open","total":"12.50","note":"\u0000a\"ü","rank":-3}}`, partner)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !schema.IsULID(id) {
		t.Errorf("the id %q is not a ULID", id)
	}
}

func TestIDsGrowWithinATransaction(t *testing.T) {
	h := newFixture(t, shop)
	var out struct{ Rows []struct{ ID string } }
	values := strings.TrimSuffix(strings.Repeat(`{"code":"%d"},`, 200), ",")
	var codes []any
	for i := range 200 {
		codes = append(codes, i)
	}
	if err := json.Unmarshal([]byte(h.must(clerk, "insert", `{"into":"Partner","values":[`+fmt.Sprintf(values, codes...)+`]}`)), &out); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(out.Rows); i++ {
		if out.Rows[i].ID <= out.Rows[i-1].ID {
			t.Fatalf("id %d is %s, the one before %s", i, out.Rows[i].ID, out.Rows[i-1].ID)
		}
	}
}

func TestAFailedOperationChangesNothing(t *testing.T) {
	h := newFixture(t, shop)
	partner := h.insert(clerk, "Partner", `{"code":"acme"}`)
	h.insert(clerk, "Order", fmt.Sprintf(`{"number":"1","partner":%q}`, partner))
	order := func(number string) string { return fmt.Sprintf(`{"number":%q,"partner":%q}`, number, partner) }
	err := h.in(clerk, func(a *entity.Access) error {
		var out entity.Result
		for _, values := range []string{
			`[` + order("2") + `,` + order("1") + `]`, // the second one is taken
			`[` + order("3") + `,` + order("3") + `]`, // both ask for the same
			`[` + order("4") + `,{"number":"5","partner":"01h00000000000000000000000"}]`,
			`[` + order("6") + `,{"number":"7"}]`,
		} {
			if err := a.Do("insert", []byte(`{"into":"Order","values":`+values+`}`), &out); err == nil {
				t.Errorf("inserting %s did not fail", values)
			}
		}
		return a.Do("insert", []byte(`{"into":"Order","values":`+order("8")+`}`), &out)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := h.must(clerk, "count", `{"from":"Order"}`); got != `{"count":2}` {
		t.Errorf("there are %s rows, want 2", got)
	}
}

func TestAUniqueValueExistsOnce(t *testing.T) {
	h := newFixture(t, shop)
	acme := h.insert(clerk, "Partner", `{"code":"acme"}`)
	other := h.insert(clerk, "Partner", `{"code":"other"}`)
	h.fails(clerk, fault.Conflict, "insert", `{"into":"Partner","values":{"code":"acme"}}`, "code")
	h.fails(clerk, fault.Conflict, "update", fmt.Sprintf(`{"in":"Partner","set":{"code":"acme"},"where":[["id","=",%q]]}`, other), "code")
	h.fails(clerk, fault.Conflict, "update", `{"in":"Partner","set":{"code":"same"},"where":[]}`, "code")
	h.must(clerk, "update", fmt.Sprintf(`{"in":"Partner","set":{"code":"acme"},"where":[["id","=",%q]]}`, acme)) // its own
	h.must(clerk, "delete", fmt.Sprintf(`{"from":"Partner","where":[["id","=",%q]]}`, acme))
	h.must(clerk, "update", fmt.Sprintf(`{"in":"Partner","set":{"code":"acme"},"where":[["id","=",%q]]}`, other))
}

func TestNullsDoNotViolateAUniqueIndex(t *testing.T) {
	h := newFixture(t, `
auth { session cookie { idle: 30m } }
entity Card { id: id
  code: string(1..9)? @unique
  @@allow all to session }`)
	for range 3 {
		h.insert(clerk, "Card", `{}`)
	}
	h.insert(clerk, "Card", `{"code":"a"}`)
	h.fails(clerk, fault.Conflict, "insert", `{"into":"Card","values":{"code":"a"}}`, "code")
	if got := h.must(clerk, "count", `{"from":"Card","where":[["code","=",null]]}`); got != `{"count":3}` {
		t.Errorf("got %s", got)
	}
}

func TestTenantsDoNotShareUniqueValuesUnlessTheSchemaSaysSo(t *testing.T) {
	h := newFixture(t, `
auth { session cookie { idle: 30m } tenant: Org }
entity Org { id: id
  @@allow read to session }
entity Doc { id: id
  org: Org @tenant
  slug: string(1..9) @unique
  serial: string(1..9)
  @@unique(serial) global
  @@allow all to session }`)
	a, b := memberOf("a"), memberOf("b")
	h.insert(a, "Doc", `{"slug":"x","serial":"1"}`)
	h.insert(b, "Doc", `{"slug":"x","serial":"2"}`)
	h.fails(a, fault.Conflict, "insert", `{"into":"Doc","values":{"slug":"x","serial":"3"}}`, "slug")
	h.fails(a, fault.Conflict, "insert", `{"into":"Doc","values":{"slug":"y","serial":"2"}}`, "serial")
	if got := h.rows(a, `{"from":"Doc"}`); len(got) != 1 {
		t.Errorf("a sees %v", got)
	}
	if got := h.rows(operator, `{"from":"Doc","orderBy":[["slug","asc"]]}`); len(got) != 2 {
		t.Errorf("an operator sees %v", got)
	}
}

func TestADeleteFollowsOnDeleteOfTheSchema(t *testing.T) {
	h := newFixture(t, shop)
	keep := h.insert(clerk, "Partner", `{"code":"keep"}`)
	gone := h.insert(clerk, "Partner", `{"code":"gone"}`)
	order := h.insert(clerk, "Order", fmt.Sprintf(`{"number":"1","partner":%q,"referrer":%q}`, keep, gone))
	h.insert(clerk, "Line", fmt.Sprintf(`{"order":%q,"text":"one"}`, order))
	h.insert(clerk, "Line", fmt.Sprintf(`{"order":%q,"text":"two"}`, order))

	h.fails(clerk, fault.Conflict, "delete", fmt.Sprintf(`{"from":"Partner","where":[["id","=",%q]]}`, keep), "Order.partner")
	if got := h.must(clerk, "delete", fmt.Sprintf(`{"from":"Partner","where":[["id","=",%q]]}`, gone)); got != `{"count":1}` {
		t.Errorf("got %s", got)
	}
	if got := h.rows(clerk, `{"from":"Order"}`)[0]["referrer"]; got != nil {
		t.Errorf("the referrer is %v, want null", got)
	}
	h.must(clerk, "delete", fmt.Sprintf(`{"from":"Order","where":[["id","=",%q]]}`, order))
	if got := h.must(clerk, "count", `{"from":"Line"}`); got != `{"count":0}` {
		t.Errorf("lines: %s, want none", got)
	}
	h.must(clerk, "delete", `{"from":"Partner","where":[]}`)
}

func TestBothEndsOfARelationCanBeDeletedTogether(t *testing.T) {
	h := newFixture(t, `
auth { session cookie { idle: 30m } }
entity Node { id: id
  up: Node?
  @@allow all to session }`)
	top := h.insert(clerk, "Node", `{}`)
	h.insert(clerk, "Node", fmt.Sprintf(`{"up":%q}`, top))
	h.fails(clerk, fault.Conflict, "delete", fmt.Sprintf(`{"from":"Node","where":[["id","=",%q]]}`, top), "Node.up")
	if got := h.must(clerk, "delete", `{"from":"Node","where":[]}`); got != `{"count":2}` {
		t.Errorf("got %s", got)
	}
}

func TestARelationMustReferToARowThatTheCallerMayReadOrHasInserted(t *testing.T) {
	h := newFixture(t, `
auth { session cookie { idle: 30m } tenant: Org }
entity Org { id: id
  @@allow read to session }
entity Box { id: id
  org: Org @tenant
  open: bool = true
  @@allow read to session when open
  @@allow insert, delete to session }
entity Thing { id: id
  org: Org @tenant
  box: Box
  @@allow all to session }`)
	a, b := memberOf("a"), memberOf("b")
	mine, foreign := h.insert(a, "Box", `{}`), h.insert(b, "Box", `{}`)
	shut := h.insert(a, "Box", `{"open":false}`)
	h.insert(a, "Thing", fmt.Sprintf(`{"box":%q}`, mine))
	for _, id := range []string{foreign, shut, "01h00000000000000000000000"} {
		h.fails(a, fault.NotFound, "insert", fmt.Sprintf(`{"into":"Thing","values":{"box":%q}}`, id), "box")
		h.fails(a, fault.NotFound, "update", fmt.Sprintf(`{"in":"Thing","set":{"box":%q},"where":[]}`, id), "box")
	}
	err := h.in(a, func(access *entity.Access) error {
		var out entity.Result
		if err := access.Do("insert", []byte(`{"into":"Box","values":{"open":false}}`), &out); err != nil {
			return err
		}
		var made struct{ Rows []struct{ ID string } }
		if err := json.Unmarshal(out.JSON, &made); err != nil {
			return err
		}
		return access.Do("insert", []byte(fmt.Sprintf(`{"into":"Thing","values":{"box":%q}}`, made.Rows[0].ID)), &out)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAnOperationMayReadALimitedNumberOfRows(t *testing.T) {
	h := newFixture(t, shop)
	for i := range 20 {
		h.insert(clerk, "Partner", fmt.Sprintf(`{"code":"%d"}`, i))
	}
	err := h.in(clerk, func(a *entity.Access) error {
		a.MaxRows = 10
		var out entity.Result
		if err := a.Do("query", []byte(`{"from":"Partner","limit":5}`), &out); err != nil {
			t.Errorf("a page of five: %v", err)
		}
		if a.Touched() != 6 {
			t.Errorf("%d rows were touched, want 6: a page and the row behind it", a.Touched())
		}
		return a.Do("count", []byte(`{"from":"Partner"}`), &out)
	})
	if fault.CodeOf(err) != fault.Limit {
		t.Errorf("got %v, want limit", err)
	}
}

func TestAnUpdateOfTooManyRowsIsRefused(t *testing.T) {
	h := newFixture(t, shop)
	for i := range 3 {
		var values []string
		for k := range 400 {
			values = append(values, fmt.Sprintf(`{"code":"%d-%d"}`, i, k))
		}
		h.must(clerk, "insert", `{"into":"Partner","values":[`+strings.Join(values, ",")+`]}`)
	}
	h.fails(clerk, fault.Limit, "delete", `{"from":"Partner","where":[]}`, "1000", "with a limit")
	h.fails(clerk, fault.Limit, "update", `{"in":"Partner","set":{"code":"x"},"where":[]}`, "1000", "with a limit")
	for _, c := range []struct{ op, args, want string }{
		{"count", `{"from":"Partner","atMost":1199}`, `{"count":1199,"more":true}`},
		{"count", `{"from":"Partner","atMost":1200}`, `{"count":1200,"more":false}`},
		{"delete", `{"from":"Partner","where":[["code","startsWith","1-"]],"limit":300}`, `{"count":300,"more":true}`},
		{"delete", `{"from":"Partner","where":[["code","startsWith","1-"]],"limit":300}`, `{"count":100,"more":false}`},
		{"delete", `{"from":"Partner","where":[["code","startsWith","1-"]],"limit":300}`, `{"count":0,"more":false}`},
		{"count", `{"from":"Partner"}`, `{"count":800}`},
		{"delete", `{"from":"Partner","where":[],"limit":800}`, `{"count":800,"more":false}`},
	} {
		if got := h.must(clerk, c.op, c.args); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.op, c.args, got, c.want)
		}
	}
}

func TestResultSpansContainTheRows(t *testing.T) {
	h := newFixture(t, shop)
	h.insert(clerk, "Partner", `{"code":"a"}`)
	h.insert(clerk, "Partner", `{"code":"b"}`)
	err := h.in(clerk, func(a *entity.Access) error {
		var out entity.Result
		if err := a.Do("query", []byte(`{"from":"Partner","select":["code"],"orderBy":[["code","asc"]]}`), &out); err != nil {
			return err
		}
		if got := string(out.JSON[out.Rows[0]:out.Rows[1]]); got != `[{"code":"a"},{"code":"b"}]` {
			t.Errorf("rows: %s", got)
		}
		if got := string(out.JSON[out.Row[0]:out.Row[1]]); got != `{"code":"a"}` {
			t.Errorf("row: %s", got)
		}
		if err := a.Do("query", []byte(`{"from":"Partner","where":[["code","=","c"]]}`), &out); err != nil {
			return err
		}
		if out.Row != [2]int{} || string(out.JSON) != `{"rows":[],"nextCursor":null}` {
			t.Errorf("no row: %s %v", out.JSON, out.Row)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestUntypedRowsBelongToTheTenantOfTheirWriter(t *testing.T) {
	h := newFixture(t, `
auth { session cookie { idle: 30m } }
apiKeys { scopes: {
  sync: @system("sync") { @grant read, write on Note },
  read: @system("read") { @grant read on Note }
} }`)
	a, b := memberOf("a"), memberOf("b")
	id := h.insert(a, "Note", `{"text":"hello","deep":{"x":[1,2]}}`)
	if got := h.must(a, "get", fmt.Sprintf(`{"from":"Note","id":%q}`, id)); got != fmt.Sprintf(`{"row":{"id":%q,"text":"hello","deep":{"x":[1,2]}}}`, id) {
		t.Errorf("got %s", got)
	}
	h.fails(b, fault.NotFound, "get", fmt.Sprintf(`{"from":"Note","id":%q}`, id))
	if got := h.must(b, "update", fmt.Sprintf(`{"in":"Note","set":{"text":"mine"},"where":[["id","=",%q]]}`, id)); !strings.HasPrefix(got, `{"count":0`) {
		t.Errorf("got %s", got)
	}
	if got := h.must(operator, "count", `{"from":"Note"}`); got != `{"count":1}` {
		t.Errorf("an operator counts %s", got)
	}
	key := &caller.Caller{Kind: caller.APIKey, Scope: "read", KeyID: "key_1", Tenant: "a"}
	if got := h.rows(key, `{"from":"Note","where":[["text","=","hello"]],"orderBy":[["text","desc"]]}`); len(got) != 1 {
		t.Errorf("a key of the tenant sees %v", got)
	}
	h.fails(key, fault.Denied, "insert", `{"into":"Note","values":{}}`, "read", "insert")
	h.must(a, "update", fmt.Sprintf(`{"in":"Note","set":{"text":"bye","more":null},"where":[["id","=",%q]]}`, id))
	if got := h.must(a, "get", fmt.Sprintf(`{"from":"Note","id":%q}`, id)); got != fmt.Sprintf(`{"row":{"id":%q,"text":"bye","deep":{"x":[1,2]},"more":null}}`, id) {
		t.Errorf("got %s", got)
	}
	h.must(a, "delete", `{"from":"Note","where":[["text","=","bye"]]}`)
	h.fails(a, fault.NotFound, "get", fmt.Sprintf(`{"from":"Note","id":%q}`, id))
}

func TestAModelOfAnEarlierSchemaIsOutdated(t *testing.T) {
	h := newFixture(t, shop)
	old := h.model
	if err := h.activate(strings.Replace(shop, "note: text?", "note: text?\n  more: text?", 1)); err != nil {
		t.Fatal(err)
	}
	h.model, old = old, h.model
	if _, err := h.do(clerk, "count", `{"from":"Order"}`); !errors.Is(err, entity.ErrOutdated) {
		t.Errorf("got %v, want ErrOutdated", err)
	}
	h.model = old
	h.must(clerk, "count", `{"from":"Order"}`)
}

const branches = `
auth { session cookie { idle: 30m } user: User tenant: Org }
entity Org { id: id
  @@allow all to session }
entity User { id: id
  org: Org @tenant
  name: text
  @@allow all to session }
entity Task { id: id
  org: Org @tenant
  owner: User @onDelete(cascade)
  title: text
  @@index(title)
  @@allow all to session }
apiKeys { scopes: {
  sync: @system("sync") { @grant read, insert, delete on User, Task  @allTenants }
} }`

func TestTenantsMayHaveUsersWithTheSameID(t *testing.T) {
	h := newFixture(t, branches)
	a, b := memberOf("a"), memberOf("b")
	for _, who := range []*caller.Caller{a, b} {
		h.insert(who, "User", fmt.Sprintf(`{"id":"joe","name":%q}`, who.Tenant))
		h.insert(who, "Task", `{"owner":"joe","title":"x"}`)
		h.fails(who, fault.Conflict, "insert", `{"into":"User","values":{"id":"joe","name":"again"}}`, "id")
	}
	h.fails(a, fault.Conflict, "insert", `{"into":"User","values":[{"id":"ann","name":"a"},{"id":"ann","name":"b"}]}`, "id")
	for _, who := range []*caller.Caller{a, b} {
		if got := h.must(who, "get", `{"from":"User","id":"joe","select":["name"]}`); got != fmt.Sprintf(`{"row":{"name":%q}}`, who.Tenant) {
			t.Errorf("%s sees %s", who.Tenant, got)
		}
	}
	if got := h.must(operator, "query", `{"from":"User","where":[["id","=","joe"]],"select":["org"],"orderBy":[["org","desc"]]}`); got != `{"rows":[{"org":"b"},{"org":"a"}],"nextCursor":null}` {
		t.Errorf("an operator sees %s", got)
	}
	h.must(a, "delete", `{"from":"User","where":[["id","=","joe"]]}`)
	if got := h.must(operator, "query", `{"from":"Task","select":["org","owner"]}`); got != `{"rows":[{"org":"b","owner":"joe"}],"nextCursor":null}` {
		t.Errorf("tasks: %s, want b's alone", got)
	}
}

func TestAnInsertWithAnAllTenantsKeyMustNameTheTenant(t *testing.T) {
	h := newFixture(t, branches)
	key := &caller.Caller{Kind: caller.APIKey, Scope: "sync", KeyID: "key_1"}
	h.fails(key, fault.Invalid, "insert", `{"into":"User","values":{"name":"x"}}`, "values.org", "required")
	h.insert(key, "User", `{"id":"u1","name":"x","org":"a"}`)
	h.insert(key, "User", `{"id":"u2","name":"y","org":"b"}`)
	h.fails(key, fault.NotFound, "insert", `{"into":"Task","values":{"owner":"u2","title":"t","org":"a"}}`, "owner")
	h.insert(key, "Task", `{"owner":"u2","title":"t","org":"b"}`)
	if got := h.rows(key, `{"from":"Task","where":[["title","=","t"]]}`); len(got) != 1 || got[0]["org"] != "b" {
		t.Errorf("got %v", got)
	}
	if got := h.rows(key, `{"from":"User","limit":1}`); len(got) != 1 || got[0]["id"] != "u1" {
		t.Errorf("got %v", got)
	}
	if got := h.must(key, "get", `{"from":"User","id":"u2","select":["org"]}`); got != `{"row":{"org":"b"}}` {
		t.Errorf("got %s", got)
	}
	h.fails(memberOf("a"), fault.NotFound, "get", `{"from":"User","id":"u2"}`)
	h.fails(memberOf("a"), fault.Invalid, "insert", `{"into":"User","values":{"name":"x","org":"a"}}`, "org")
}

func TestAnImportKeepsIDsAndTimes(t *testing.T) {
	h := newFixture(t, shop)
	partner := "01h00000000000000000000001"
	bring := func(who *caller.Caller, name, values string) error {
		return h.in(who, func(a *entity.Access) error {
			a.Import = true
			return a.Do("insert", []byte(fmt.Sprintf(`{"into":%q,"values":%s}`, name, values)), &entity.Result{})
		})
	}
	if err := bring(operator, "Partner", fmt.Sprintf(`{"id":%q,"code":"a"}`, partner)); err != nil {
		t.Fatal(err)
	}
	order := fmt.Sprintf(`{"id":"01h00000000000000000000002","number":"1","partner":%q,"createdAt":"2020-01-02T03:04:05Z"}`, partner)
	if err := bring(operator, "Order", order); err != nil {
		t.Fatal(err)
	}
	if got := h.must(clerk, "query", `{"from":"Order","select":["id","createdAt"]}`); got != `{"rows":[{"id":"01h00000000000000000000002","createdAt":"2020-01-02T03:04:05.000Z"}],"nextCursor":null}` {
		t.Errorf("got %s", got)
	}
	if err := bring(operator, "Order", order); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("the same again: %v, want a conflict", err)
	}
	if err := bring(clerk, "Partner", `{"id":"01h00000000000000000000003","code":"b"}`); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a guest's import: %v, want invalid", err)
	}
	h.fails(operator, fault.Invalid, "insert", `{"into":"Partner","values":{"id":"01h00000000000000000000003","code":"b"}}`, "id")
}

func TestAnInsertLooksATargetUpOnce(t *testing.T) {
	h := newFixture(t, shop)
	partner := h.insert(clerk, "Partner", `{"code":"a"}`)
	order := func(number string) string { return fmt.Sprintf(`{"number":%q,"partner":%q}`, number, partner) }
	err := h.in(clerk, func(a *entity.Access) error {
		var values []string
		for i := range 50 {
			values = append(values, order(fmt.Sprint(i)))
		}
		if err := a.Do("insert", []byte(`{"into":"Order","values":[`+strings.Join(values, ",")+`]}`), nil); err != nil {
			return err
		}
		if a.Touched() != 1 {
			t.Errorf("%d rows were touched, want 1", a.Touched())
		}
		if err := a.Do("delete", []byte(`{"from":"Order","where":[]}`), &entity.Result{}); err != nil {
			return err
		}
		if err := a.Do("delete", []byte(`{"from":"Partner","where":[]}`), &entity.Result{}); err != nil {
			return err
		}
		return a.Do("insert", []byte(`{"into":"Order","values":`+order("x")+`}`), nil)
	})
	if fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an order of a deleted partner: %v, want not found", err)
	}
}
