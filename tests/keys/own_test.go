package keys_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"runner.example/tests/harness"
)

// ownSchema is written as a first app with keys is: without @issue and @manage.
const ownSchema = `
auth { session cookie { } %s }
entity Order { id: id  total: int  @@allow all to session, anonymous }
apiKeys {
  scopes: {
    status_read: @system("status.read") { %s },
    orders_read: @system("orders.read") { @grant read on Order %s },
    nightly: @system("nightly") { @grant read on Order @allTenants }
  }
}
functions(auth: session, rateLimit: none) {
  @expose createKey(scope: string, name: string, expiresIn: int?) -> json
  @expose listKeys(scope: string?) -> json
  @expose pageOfKeys(limit: int, cursor: string?) -> json
  @expose getKey(id: string) -> json
  @expose rotateKey(id: string, options: json) -> json
  @expose revokeKey(id: string) -> json
  @expose makeKeys(n: int) -> json
  @expose enqueueCounts(options: json?) -> json
}
jobs(retries: 0) {
  countKeys()
  countKeysAs() (as: orders_read)
}
functions(auth: none, rateLimit: none) { @expose tryKeys() -> json }
routes("/v1", auth: apiKey(status_read, orders_read, nightly), rateLimit: none) {
  GET /status -> status
  GET /orders -> orders
  GET /keys -> keysOfKey
  DELETE /keys/:id -> revokeByKey
}
`

const ownHandlers = `
import { created, getContext, jobs, ok, query, type RouteRequest } from "@runner/sdk";
export function createKey(req: RouteRequest) {
  const { client } = getContext();
  const { scope, name, expiresIn } = req.body();
  return client.apiKeys.create({ scope, name, expiresIn });
}
export async function listKeys(req: RouteRequest) {
  const { scope } = req.body();
  const keys = await getContext().client.apiKeys.list(scope ? { scope } : undefined);
  return keys;
}
export async function pageOfKeys(req: RouteRequest) {
  const { limit, cursor } = req.body();
  return { page: await getContext().client.apiKeys.list({ limit, cursor: cursor ?? undefined }) };
}
export function getKey(req: RouteRequest) { return getContext().client.apiKeys.get(req.body().id); }
export function rotateKey(req: RouteRequest) {
  const { id, options } = req.body();
  return getContext().client.apiKeys.rotate(id, options);
}
export function revokeKey(req: RouteRequest) { return getContext().client.apiKeys.revoke(req.body().id); }
export async function makeKeys(req: RouteRequest) {
  for (let i = 0; i < req.body().n; i++) await getContext().client.apiKeys.create({ scope: "status_read", name: "made" });
  return {};
}
export async function enqueueCounts(req: RouteRequest) {
  await jobs.enqueue("countKeysAs");
  return jobs.enqueue("countKeys", {}, req.body().options ?? undefined);
}
export async function countKeys() { console.log("as its caller: " + (await getContext().client.apiKeys.list()).length); }
export async function countKeysAs() { console.log("as a scope: " + (await getContext().client.apiKeys.list()).length); }
export async function tryKeys() { return getContext().client.apiKeys.list(); }
export function status() { return created({ up: true }); }
export async function orders() { return ok(await query("Order").select("total")); }
export function keysOfKey() { return ok(getContext().client.apiKeys.list()); }
export function revokeByKey(req: RouteRequest) { return ok(getContext().client.apiKeys.revoke(req.params.id)); }
`

// newOwnApp returns a server of the app. roles are those of the auth block, status and orders the
// lines of the two scopes beside grants.
func newOwnApp(t *testing.T, roles, status, orders string) (*harness.App, *harness.Server) {
	t.Helper()
	module, err := ownModule()
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewApp(t, fmt.Sprintf(ownSchema, roles, status, orders), "")
	a.Write("build/own.wasm", string(module))
	return a, a.Serve()
}

// ownModule builds the handlers.
var ownModule = sync.OnceValues(func() ([]byte, error) {
	return harness.BuildModule("own", map[string]string{"app.schema": fmt.Sprintf(ownSchema, "", "", ""), "handlers/own.ts": ownHandlers})
})

// visitor is a signed-in user.
type visitor struct {
	*harness.Server
	cookie string
}

func signIn(a *harness.App, s *harness.Server, user string, args ...string) visitor {
	return visitor{s, "Cookie: " + a.Session(user, args...).Cookie}
}

func (v visitor) call(function, args string) harness.Answer {
	v.T.Helper()
	return v.Do("POST", "/_call/"+function, args, v.cookie)
}

// create returns a new key of the user.
func (v visitor) create(scope string) (key managedKey) {
	v.T.Helper()
	got := v.call("createKey", fmt.Sprintf(`{"scope":%q,"name":"n"}`, scope))
	if err := json.Unmarshal([]byte(got.Body), &key); got.Status != 200 || err != nil || key.Token == "" {
		v.T.Fatalf("create a key of %s: %d %s", scope, got.Status, got.Body)
	}
	return key
}

// list returns the ids that the user lists.
func (v visitor) list() []string {
	v.T.Helper()
	got := v.call("listKeys", `{}`)
	return idsOf(v.T, got)
}

func idsOf(t testing.TB, got harness.Answer) (ids []string) {
	t.Helper()
	var keys []managedKey
	if err := json.Unmarshal([]byte(got.Body), &keys); got.Status != 200 || err != nil {
		t.Fatalf("list: %d %s", got.Status, got.Body)
	}
	for _, key := range keys {
		if key.Token != "" {
			t.Errorf("a list has the token of %s", key.ID)
		}
		ids = append(ids, key.ID)
	}
	return ids
}

// bytesOf is the whole response without its date and the id of its request.
func bytesOf(a harness.Answer) string {
	id := a.Header.Get("X-Request-Id")
	a.Header.Del("Date")
	a.Header.Del("X-Request-Id")
	return fmt.Sprint(a.Status, a.Header, strings.ReplaceAll(a.Body, id, ""))
}

const unknownKey = "key_01arz3ndektsv4rrffq69g5fav"

// "Customers can manage their own integration keys": with handlers that only call the SDK, and
// nothing but the scopes in the schema.
func TestCustomersManageTheirOwnKeys(t *testing.T) {
	t.Parallel()
	a, s := newOwnApp(t, "", "", "")
	ada, bob := signIn(a, s, "ada"), signIn(a, s, "bob")
	byOperator := a.Key("create", "--scope", "status_read", "--name", "operator's")
	first, second := ada.create("status_read"), ada.create("status_read")
	if text(first.Owner) != "ada" || text(first.OwnerKind) != "user" {
		t.Errorf("owned by the %s %q", text(first.OwnerKind), text(first.Owner))
	}
	if got := ada.list(); !slices.Equal(got, []string{first.ID, second.ID}) {
		t.Errorf("ada lists %v", got)
	}
	if got := bob.list(); len(got) != 0 {
		t.Errorf("bob lists %v", got)
	}
	s.Want(201, nil, "GET", "/v1/status", "", "X-API-Key: "+first.Token)

	// For the keys of ada and of the operator, bob gets the same answer as for a key that does not exist.
	like := signIn(a, s, first.ID) // a user whose id is that of the key
	for _, other := range []visitor{bob, like} {
		for _, call := range []struct{ function, more string }{
			{"getKey", ""}, {"revokeKey", ""}, {"rotateKey", `,"options":{"gracePeriod":3600}`}, {"rotateKey", `,"options":{"gracePeriod":-1}`},
		} {
			args := func(id string) string { return fmt.Sprintf(`{"id":%q%s}`, id, call.more) }
			absent := bytesOf(other.call(call.function, args(unknownKey)))
			if !strings.HasPrefix(absent, "404 ") {
				t.Errorf("%s of an unknown key: %s", call.function, absent)
			}
			for _, id := range []string{first.ID, byOperator.ID} {
				if got := bytesOf(other.call(call.function, args(id))); got != absent {
					t.Errorf("%s of the key of another:\n%s\nof an unknown one:\n%s", call.function, got, absent)
				}
			}
		}
	}
	if got := s.Do("POST", "/_call/tryKeys", `{}`); got.Body != "[]" {
		t.Errorf("anonymous callers list %d %s", got.Status, got.Body)
	}
	s.Want(201, nil, "GET", "/v1/status", "", "X-API-Key: "+first.Token)

	// Ada rotates and revokes hers.
	var rotated managedKey
	if got := ada.call("rotateKey", fmt.Sprintf(`{"id":%q,"options":{"gracePeriod":3600}}`, first.ID)); got.Status != 200 || json.Unmarshal([]byte(got.Body), &rotated) != nil || rotated.Token == "" {
		t.Errorf("rotate: %d %s", got.Status, got.Body)
	}
	s.Want(201, nil, "GET", "/v1/status", "", "X-API-Key: "+rotated.Token)
	if got := ada.call("revokeKey", fmt.Sprintf(`{"id":%q}`, first.ID)); got.Status != 200 {
		t.Errorf("revoke: %d %s", got.Status, got.Body)
	}
	s.Want(401, nil, "GET", "/v1/status", "", "X-API-Key: "+rotated.Token)
	if got := ada.list(); !slices.Equal(got, []string{second.ID}) {
		t.Errorf("ada lists %v", got)
	}
}

// A scope with grants needs a line: the answer and the log name it. One @issue closes the scopes
// without it.
func TestKeysThatReachRowsNeedIssue(t *testing.T) {
	t.Parallel()
	a, s := newOwnApp(t, "roles: [admin]", "", "")
	ada := signIn(a, s, "ada", "--role", "admin")
	for range 3 {
		problem := ada.call("createKey", `{"scope":"orders_read","name":"n"}`).Problem(t)
		want := `this caller may not issue keys of scope "orders_read": only operators may, until the scope has a line such as @issue when auth.role == "…"`
		if problem.Status != 403 || !strings.Contains(problem.Detail, want) {
			t.Errorf("%+v, want 403 and %s", problem, want)
		}
	}
	if got := ada.call("createKey", `{"scope":"nightly","name":"n"}`); got.Status != 403 {
		t.Errorf("a key for all tenants: %d %s", got.Status, got.Body)
	}
	free := ada.create("status_read")
	// The key reaches no row, whatever policies allow to sessions and anonymous callers.
	s.Want(403, nil, "GET", "/v1/orders", "", "X-API-Key: "+free.Token)
	// A key issues nothing, and reaches only itself.
	if got := idsOf(t, s.Do("GET", "/v1/keys", "", "X-API-Key: "+free.Token)); !slices.Equal(got, []string{free.ID}) {
		t.Errorf("the key lists %v", got)
	}
	s.Want(404, nil, "DELETE", "/v1/keys/"+unknownKey, "", "X-API-Key: "+free.Token)
	s.Want(200, nil, "DELETE", "/v1/keys/"+free.ID, "", "X-API-Key: "+free.Token)
	s.Want(401, nil, "GET", "/v1/keys", "", "X-API-Key: "+free.Token)
	s.Stop()
	log := s.Stderr.String()
	if n := strings.Count(log, "key not issued: its scope has no @issue"); n != 1 || !strings.Contains(log, "orders_read") || !strings.Contains(log, `@issue when auth.role == `) {
		t.Errorf("%d lines of the log:\n%s", n, log)
	}

	a, s = newOwnApp(t, "roles: [admin]", "", `@issue when auth.role == "admin"`)
	ada, bob := signIn(a, s, "ada", "--role", "admin"), signIn(a, s, "bob")
	made := ada.create("orders_read")
	if got := ada.call("createKey", `{"scope":"status_read","name":"n"}`); got.Status != 403 {
		t.Errorf("a scope without @issue beside one with it: %d %s", got.Status, got.Body)
	}
	if got := bob.call("createKey", `{"scope":"orders_read","name":"n"}`); got.Status != 403 {
		t.Errorf("a user without the role: %d %s", got.Status, got.Body)
	}
	s.Want(200, nil, "GET", "/v1/orders", "", "X-API-Key: "+made.Token)
}

// @manage widens what callers reach to all keys of a scope in their tenant; a new token still needs
// @issue.
func TestManageReachesTheKeysOfTheTenant(t *testing.T) {
	t.Parallel()
	a, s := newOwnApp(t, "roles: [admin, support]", `@issue when auth.kind == "session" @manage when auth.role == "support"`,
		`@issue when auth.role == "admin" @manage when auth.role in ["admin", "support"]`)
	red := []string{"--tenant", "red"}
	ada := signIn(a, s, "ada", append(red, "--role", "admin")...)
	sue, eve := signIn(a, s, "sue", append(red, "--role", "support")...), signIn(a, s, "eve", "--tenant", "blue", "--role", "support")
	free, rows := ada.create("status_read"), ada.create("orders_read")
	byOperator := a.Key("create", "--scope", "orders_read", "--name", "n", "--tenant", "red")
	own := sue.create("status_read")
	want := []string{free.ID, rows.ID, byOperator.ID, own.ID}
	slices.Sort(want)
	if got := sue.list(); !slices.Equal(got, want) {
		t.Errorf("support lists %v, want %v", got, want)
	}
	if got := eve.list(); len(got) != 0 {
		t.Errorf("support of another tenant lists %v", got)
	}
	if got := ada.list(); slices.Contains(got, own.ID) || !slices.Contains(got, byOperator.ID) {
		t.Errorf("the admin lists %v", got)
	}
	for id, status := range map[string]int{free.ID: 200, rows.ID: 403, byOperator.ID: 403} {
		if got := sue.call("rotateKey", fmt.Sprintf(`{"id":%q,"options":{}}`, id)); got.Status != status {
			t.Errorf("support rotates %s: %d %s, want %d", id, got.Status, got.Body, status)
		}
		if got := eve.call("rotateKey", fmt.Sprintf(`{"id":%q,"options":{}}`, id)); got.Status != 404 {
			t.Errorf("support of another tenant rotates %s: %d %s", id, got.Status, got.Body)
		}
	}
	if got := ada.call("rotateKey", fmt.Sprintf(`{"id":%q,"options":{}}`, byOperator.ID)); got.Status != 200 {
		t.Errorf("the admin rotates the key of an operator: %d %s", got.Status, got.Body)
	}
	if got := sue.call("revokeKey", fmt.Sprintf(`{"id":%q}`, byOperator.ID)); got.Status != 200 {
		t.Errorf("support revokes the key of an operator: %d %s", got.Status, got.Body)
	}
	var listed []managedKey
	if err := json.Unmarshal([]byte(a.Must("api-keys", "list", "--owner", "ada", "--json")), &listed); err != nil || len(listed) != 2 {
		t.Errorf("--owner ada lists %d keys, %v", len(listed), err)
	}
	if out := a.Must("api-keys", "list"); !strings.Contains(out, "user ada") || !strings.Contains(out, "OWNER") {
		t.Errorf("list prints\n%s", out)
	}
}

// An option of a rotation that is not known would end the old token at once. A list without a limit
// is whole, and a page keeps its cursor in JSON.
func TestOptionsAreRefusedAndListsAreWhole(t *testing.T) {
	t.Parallel()
	a, s := newOwnApp(t, "", "", "")
	ada := signIn(a, s, "ada")
	key := ada.create("status_read")
	for _, options := range []string{`{"grace":5}`, `{"gracePeriodSeconds":5}`, `5`, `"5"`, `[5]`, `{"gracePeriod":"5"}`, `{"gracePeriod":null}`, `{"gracePeriod":5,"id":"x"}`, `{"gracePeriod":1e12}`} {
		got := ada.call("rotateKey", fmt.Sprintf(`{"id":%q,"options":%s}`, key.ID, options))
		if got.Status != 500 && got.Status != 400 {
			t.Errorf("rotate with %s: %d %s", options, got.Status, got.Body)
		}
		s.Want(201, nil, "GET", "/v1/status", "", "X-API-Key: "+key.Token)
	}
	if got := ada.call("createKey", `{"scope":"status_read","name":"n","expiresIn":1000000000000}`); got.Status != 400 && got.Status != 500 || !strings.Contains(got.Body, "292 years") {
		t.Errorf("a lifetime of 31,000 years: %d %s", got.Status, got.Body)
	}
	for range 2 {
		if got := ada.call("makeKeys", `{"n":75}`); got.Status != 200 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
	}
	all := ada.list()
	if len(all) != 151 {
		t.Errorf("%d keys listed, want 151", len(all))
	}
	var paged []string
	for args := `{"limit":60}`; ; {
		got := ada.call("pageOfKeys", args)
		var answer struct {
			Page struct {
				Keys       []managedKey
				NextCursor *string
			}
		}
		if err := json.Unmarshal([]byte(got.Body), &answer); got.Status != 200 || err != nil || len(answer.Page.Keys) == 0 {
			t.Fatalf("%d %s, %v", got.Status, got.Body, err)
		}
		for _, key := range answer.Page.Keys {
			paged = append(paged, key.ID)
		}
		if answer.Page.NextCursor == nil {
			break
		}
		args = fmt.Sprintf(`{"limit":60,"cursor":%q}`, *answer.Page.NextCursor)
	}
	if !slices.Equal(paged, all) {
		t.Errorf("%d keys page by page, %d in the list", len(paged), len(all))
	}
	for _, limit := range []string{"0", "1001", "-1"} {
		if got := ada.call("pageOfKeys", `{"limit":`+limit+`}`); got.Status == 200 {
			t.Errorf("limit %s: %s", limit, got.Body)
		}
	}
}

// A job reaches the keys of the caller that enqueued it. With `as:` it has no caller, and reaches no key.
func TestAJobReachesTheKeysOfItsCaller(t *testing.T) {
	t.Parallel()
	a, s := newOwnApp(t, "", "", "")
	ada, bob := signIn(a, s, "ada"), signIn(a, s, "bob")
	for range 3 {
		ada.create("status_read")
	}
	bob.create("status_read")
	if got := ada.call("enqueueCounts", `{"options":{"delai":3600}}`); got.Status != 500 {
		t.Errorf("an option of a job that is not known: %d %s", got.Status, got.Body)
	}
	if got := ada.call("enqueueCounts", `{}`); got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	s.WaitForOutput(`as its caller: 3`)
	s.WaitForOutput(`as a scope: 0`)
}

// An app without entities: sessions issue keys of every scope, as before, and manage their own.
func TestUsersManageTheirKeysInAnAppWithoutEntities(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, `
auth { session cookie { } }
apiKeys {
  scopes: {
    reader: @system("reader") { @grant read on Thing },
    nightly: @system("nightly") { @grant read on Thing @allTenants }
  }
}
routes("/", rateLimit: none) {
  POST /op -> op (auth: session)
  POST /key -> op (auth: apiKey(reader, nightly))
}
`, "", "echo")
	s := a.Serve()
	op := func(user, name, args string) (int, managedKey) {
		t.Helper()
		var key managedKey
		got := s.Do("POST", "/op", args, "Cookie: "+a.Session(user).Cookie, "X-Op: "+name)
		if err := json.Unmarshal([]byte(got.Body), &key); err != nil {
			t.Fatal(got.Status, got.Body)
		}
		return got.Status, key
	}
	status, key := op("ada", "apiKeys.create", `{"scope":"reader"}`)
	if status != 200 || key.Token == "" {
		t.Fatalf("create: %d %+v", status, key)
	}
	if status, _ := op("ada", "apiKeys.create", `{"scope":"nightly"}`); status != 299 {
		t.Errorf("a key for all tenants: %d", status)
	}
	id := fmt.Sprintf(`{"id":%q}`, key.ID)
	for user, want := range map[string]int{"ada": 200, "bob": 299} {
		for _, name := range []string{"apiKeys.get", "apiKeys.rotate"} {
			if status, _ := op(user, name, id); status != want {
				t.Errorf("%s by %s: %d", name, user, status)
			}
		}
	}
}
