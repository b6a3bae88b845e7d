package runtime_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"runner.example/hostabi/outbound"
	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/keystore"
	"runner.example/keystore/credtime"
	"runner.example/runtime"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/store"
	"runner.example/tests/guest"
)

// shop is the schema of the tests; %s is more of Item, of the group of routes, and of the
// routes.
const shop = `app shop
entity Item { id: id  name: string %s }
type NewItem { name: string(1..10) }
type Renamed { title: string }
apiKeys {
  scopes: {
    clerk: @system("clerk") { @grant read, write on Item },
    guest: @system("guest") { @grant read on Item }
  }
}
routes("/", %s, rateLimit: 3/minute) {
  %s
}
outbound { allow: ["http://127.0.0.1:1"] }
functions(auth: apiKey(clerk), rateLimit: none) {
  add()
  pay()
  count()
  fail()
}
`

const (
	forClerks = "auth: apiKey(clerk)"
	addRoute  = "POST /items -> add (body: 64b, input: NewItem)"
	newField  = "note: string?"
)

// shopHandlers are the handlers of shop. add logs "in transaction" between its read and
// its write.
var shopHandlers = guest.Module{
	"add": {
		guest.Operation("count", `{"from":"Item"}`), guest.LogLine("in transaction"),
		guest.Operation("insert", `{"into":"Item","values":{"name":"a"}}`), guest.Respond(200, `{"ok":true}`),
	},
	"pay": {
		guest.Operation("count", `{"from":"Item"}`),
		guest.Operation("fetch", `{"url":"http://127.0.0.1:1/charges?key=hidden","method":"POST"}`), // no server is there
		guest.LogLine("in transaction"), guest.Operation("insert", `{"into":"Item","values":{"name":"a"}}`), guest.Respond(200, `{"ok":true}`),
	},
	"count": {guest.Operation("count", `{"from":"Item"}`), guest.RespondWithResult()},
	"fail":  {guest.Operation("insert", `{"into":"Item","values":{"name":"a"}}`), guest.Respond(422, `{}`)},
}

// server is a runtime that serves shop in memory.
type server struct {
	*testing.T
	*runtime.Runtime
	client *http.Client
	store  *store.Store
	keys   *keystore.Keystore
	schema *schema.Schema
	runs   atomic.Int64 // of add
	// inTransaction is called in the nth run of add, between its read and its write.
	inTransaction func(n int64)
}

// guestLog is the log of a server. It calls back when add is in its transaction.
type guestLog struct {
	slog.Handler
	server *server
}

func (g guestLog) Enabled(context.Context, slog.Level) bool { return true }

func (g guestLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "in transaction" {
		n := g.server.runs.Add(1)
		if g.server.inTransaction != nil {
			g.server.inTransaction(n)
		}
	}
	return nil
}

func newServer(t *testing.T) *server {
	t.Helper()
	st, keys := openStore(t, t.TempDir())
	s := newEmptyServer(t, runtime.Options{Store: st, Keystore: keys})
	s.activate("", forClerks, addRoute)
	return s
}

// newEmptyServer returns a server without a release. Its log and its outbound requests are not those of opt.
func newEmptyServer(t *testing.T, opt runtime.Options) *server {
	t.Helper()
	s := &server{T: t, store: opt.Store, keys: opt.Keystore}
	opt.Logger, opt.Outbound = slog.New(guestLog{slog.DiscardHandler, s}), outbound.Options{AllowPrivate: true}
	var err error
	if s.Runtime, err = runtime.New(opt); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closes(t, s.Runtime) })
	ln := fasthttputil.NewInmemoryListener()
	serve(t, s.Runtime, ln)
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return ln.Dial() }}
	s.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	return s
}

// newServerAt returns a server without a release, in memory, whose credential time is that of a machine.
func newServerAt(t *testing.T, machine credtime.Machine) *server {
	t.Helper()
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return newEmptyServer(t, runtime.Options{Store: st, Keystore: openKeys(t, st, keystore.Options{Machine: machine})})
}

// openStore opens a store, which is in memory without a directory, and its keys.
func openStore(t testing.TB, dir string) (*store.Store, *keystore.Keystore) {
	t.Helper()
	st, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st, openKeys(t, st, keystore.Options{})
}

func openKeys(t testing.TB, st *store.Store, opt keystore.Options) *keystore.Keystore {
	t.Helper()
	keys, err := keystore.Open(t.Context(), st, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keys.Close() })
	return keys
}

// serve serves connections of ln until the test ends.
func serve(t testing.TB, rt *runtime.Runtime, ln net.Listener) {
	served := make(chan error, 1)
	go func() { served <- rt.Serve(ln) }()
	t.Cleanup(func() {
		if err := rt.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

func (s *server) activate(fields, group, routes string) {
	s.Helper()
	if err := s.Activate(context.Background(), s.bundle(fields, group, routes), runtime.Activation{}); err != nil {
		s.Fatal(err)
	}
}

// bundle returns a bundle of shop.
func (s *server) bundle(fields, group, routes string) *runtime.Bundle {
	s.Helper()
	sources := []diag.Source{{Name: "shop.schema", Text: fmt.Appendf(nil, shop, fields, group, routes)}}
	compiled, diags := compiler.Compile(sources, compiler.Options{AllowPrivate: true})
	if compiled == nil {
		s.Fatal(diags)
	}
	s.schema = compiled
	return &runtime.Bundle{Schema: compiled, Sources: sources, Modules: []runtime.ModuleFile{{Name: "build/shop.wasm", Wasm: shopHandlers.Wasm()}}}
}

// key creates an API key and returns its token.
func (s *server) key(scope string) string {
	s.Helper()
	return createKey(s, s.store, s.keys, s.schema, scope)
}

func createKey(t testing.TB, st *store.Store, keys *keystore.Keystore, s *schema.Schema, scope string) (token string) {
	t.Helper()
	_, err := st.Update(t.Context(), func(tx *store.Tx) error {
		operator := keystore.Authority{Schema: s, Caller: caller.Caller{Kind: caller.System, UserID: "uid:0"}}
		key, err := keys.Create(tx, operator, keystore.CreateRequest{Scope: scope})
		token = key.Token.Reveal()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// send sends a request and returns its answer with the body, as "200 body" or "404 code".
func (s *server) send(method, path, token, body string) (*http.Response, string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, "http://shop.example"+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	result := string(answer)
	if _, problem, ok := strings.Cut(result, `"code":"`); ok {
		result, _, _ = strings.Cut(problem, `"`)
	}
	return resp, fmt.Sprint(resp.StatusCode, " ", result)
}

const validBody = `{"name":"a"}`

// add sends a valid request to the route of add.
func (s *server) add(token, want string) *http.Response {
	s.Helper()
	resp, got := s.send("POST", "/items", token, validBody)
	if got != want {
		s.Errorf("the answer is %q, want %q", got, want)
	}
	return resp
}

// call calls a function as an operator.
func (s *server) call(name string) *runtime.Answer {
	s.Helper()
	answer, err := s.Call(context.Background(), runtime.FunctionCall{
		Name: name, Caller: caller.Caller{Kind: caller.System, UserID: "uid:0"}, RequestID: "01arz3ndektsv4rrffq69g5fav",
	})
	if err != nil {
		s.Fatal(err)
	}
	return answer
}

func (s *server) wantItems(n int) {
	s.Helper()
	if got, want := string(s.call("count").Body), fmt.Sprintf(`{"count":%d}`, n); got != want {
		s.Errorf("the store has %s, want %s", got, want)
	}
}

func (s *server) wantRuns(n int64) {
	s.Helper()
	if got := s.runs.Load(); got != n {
		s.Errorf("the handler ran %d times, want %d", got, n)
	}
}

// wantRemaining checks how many requests the rate limit has left.
func wantRemaining(t *testing.T, resp *http.Response, n int) {
	t.Helper()
	if got := resp.Header.Values("RateLimit"); len(got) != 1 || !strings.Contains(got[0], fmt.Sprintf("r=%d;", n)) {
		t.Errorf("the RateLimit headers are %q, want one with r=%d", got, n)
	}
}

func TestRequestsAreCheckedInOrder(t *testing.T) {
	s := newServer(t)
	clerk, spent, guest := s.key("clerk"), s.key("clerk"), s.key("guest")
	for range 3 {
		s.add(spent, `200 {"ok":true}`)
	}
	tooLarge := strings.Repeat("x", 65) // and not JSON
	for _, c := range []struct{ method, path, token, body, want string }{
		{"POST", "/items/../x", "", tooLarge, "400 bad_path"},
		{"POST", "/other", "", tooLarge, "404 route_not_found"},
		{"PUT", "/items", "", tooLarge, "405 method_not_allowed"},
		{"POST", "/items", "", tooLarge, "401 missing_credentials"},
		{"POST", "/items", "wrong", tooLarge, "401 invalid_token"},
		{"POST", "/items", guest, tooLarge, "403 insufficient_scope"},
		{"POST", "/items", spent, tooLarge, "429 rate_limited"},
		{"POST", "/items", clerk, tooLarge, "413 body_too_large"},
		{"POST", "/items", clerk, "x", "400 invalid_json"},
		{"POST", "/items", clerk, "{}", "400 invalid_input"},
		{"POST", "/items", clerk, validBody, "429 rate_limited"}, // the three before were counted
	} {
		if _, got := s.send(c.method, c.path, c.token, c.body); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.method, c.path, got, c.want)
		}
	}
	s.wantRuns(3)
	s.wantItems(3)
}

func TestOptionsIsAnsweredWithoutACredential(t *testing.T) {
	s := newServer(t)
	resp, got := s.send("OPTIONS", "/items", "", "")
	if allow := resp.Header.Get("Allow"); got != "204 " || allow != "POST, OPTIONS" {
		t.Errorf("the answer is %q with Allow: %q", got, allow)
	}
	s.wantRuns(0)
}

func TestAConflictRunsTheHandlerAgainAndCountsTheRequestOnce(t *testing.T) {
	s := newServer(t)
	clerk := s.key("clerk")
	s.inTransaction = func(n int64) {
		if n == 1 {
			s.call("add") // the second run
		}
	}
	wantRemaining(t, s.add(clerk, `200 {"ok":true}`), 2)
	s.wantRuns(3)
	s.wantItems(2)
}

func TestARequestWhoseRunsAllConflictIsRefused(t *testing.T) {
	s := newServer(t)
	clerk := s.key("clerk")
	inner := false
	var items int
	s.inTransaction = func(int64) {
		if !inner {
			inner = true
			s.call("add")
			inner = false
			items++
		}
	}
	if got := s.add(clerk, "409 write_conflict").Header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After is %q", got)
	}
	s.wantItems(items)
	if items < 2 {
		t.Errorf("the handler ran %d times", items)
	}
}

// changeSchema activates another schema of the rows in the first run of add.
func (s *server) changeSchema(group, routes string) {
	s.inTransaction = func(n int64) {
		if n == 1 {
			s.activate(newField, group, routes)
		}
	}
}

func TestARequestRunsAgainOnTheNextReleaseAndIsCountedOnce(t *testing.T) {
	s := newServer(t)
	clerk := s.key("clerk")
	s.changeSchema(forClerks, addRoute)
	wantRemaining(t, s.add(clerk, `200 {"ok":true}`), 2)
	s.wantItems(1)
	wantRemaining(t, s.add(clerk, `200 {"ok":true}`), 1)
}

func TestTheNextReleaseDecidesWhatTheRequestMayDo(t *testing.T) {
	clerks := [2]string{forClerks, addRoute}
	const openRoute = "POST /items -> add (as: clerk, body: 64b, input: NewItem)"
	for name, c := range map[string]struct {
		before        [2]string // the group and the routes of the first release
		group, routes string
		want          string
		items         int
	}{
		"another scope":     {clerks, "auth: apiKey(guest)", addRoute, "403 insufficient_scope", 0},
		"a key is required": {[2]string{"auth: none", openRoute}, forClerks, addRoute, "401 missing_credentials", 0},
		"no authority":      {clerks, "auth: none", addRoute, `200 {"ok":true}`, 0}, // the insert is denied
		"no such route":     {clerks, forClerks, "POST /other -> add", "404 route_not_found", 0},
		"another method":    {clerks, forClerks, "PUT /items -> add", "405 method_not_allowed", 0},
		"another handler":   {clerks, forClerks, "POST /items -> fail", "422 {}", 0},
		"another input":     {clerks, forClerks, "POST /items -> add (input: Renamed)", "400 invalid_input", 0},
		"a smaller body":    {clerks, forClerks, "POST /items -> add (body: 8b)", "413 body_too_large", 0},
		"another limit":     {clerks, forClerks, "POST /items -> add (rateLimit: 1/hour)", `200 {"ok":true}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			token := ""
			if c.before == clerks {
				token = s.key("clerk")
			} else {
				s.activate("", c.before[0], c.before[1])
			}
			s.changeSchema(c.group, c.routes)
			if _, got := s.send("POST", "/items", token, validBody); got != c.want {
				t.Errorf("the answer is %q, want %q", got, c.want)
			}
			s.wantItems(c.items)
		})
	}
}

func TestTheNextReleaseMayAnswerOptionsItself(t *testing.T) {
	s := newServer(t)
	s.activate("", forClerks, "OPTIONS /items -> add")
	s.changeSchema(forClerks, "PUT /items -> add")
	resp, got := s.send("OPTIONS", "/items", s.key("clerk"), "")
	if allow := resp.Header.Get("Allow"); got != "204 " || allow != "PUT, OPTIONS" {
		t.Errorf("the answer is %q with Allow: %q", got, allow)
	}
	s.wantItems(0)
}

// A key is revoked after its token was found, and before the request was counted.
func TestAKeyRevokedWhileARequestIsAdmittedIsRefused(t *testing.T) {
	var revoke atomic.Pointer[func()]
	machine := credtime.Machine{
		Boot: "1", Uptime: func() time.Duration { return 0 }, Synchronized: func() bool { return true },
		Wall: func() time.Time {
			// Verify reads it when it has found the token. Background tasks read it too.
			if revoke.Load() != nil && strings.Contains(string(debug.Stack()), "(*Keystore).Verify(") {
				(*revoke.Swap(nil))()
			}
			return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		},
	}
	s := newServerAt(t, machine)
	s.activate("", forClerks, addRoute)
	for _, change := range []func(*store.Tx, keystore.Authority, string) (keystore.Key, error){s.keys.Revoke, s.keys.Disable} {
		clerk := s.key("clerk")
		do := func() {
			_, err := s.store.Update(context.Background(), func(tx *store.Tx) error {
				operator := keystore.Authority{Schema: s.schema, Caller: caller.Caller{Kind: caller.System, UserID: "uid:0"}}
				keys, err := s.keys.List(tx, operator, keystore.Filter{})
				if err != nil {
					return err
				}
				for _, key := range keys.Keys {
					if key.Status == keystore.Active {
						_, err = change(tx, operator, key.ID)
					}
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		revoke.Store(&do)
		s.add(clerk, "401 invalid_token")
		if revoke.Load() != nil {
			t.Error("the key was not changed meanwhile")
		}
	}
	s.wantRuns(0)
}

func TestAKeyRevokedWhileTheSchemaChangesIsRefused(t *testing.T) {
	s := newServer(t)
	clerk := s.key("clerk")
	s.inTransaction = func(n int64) {
		if n > 1 {
			return
		}
		s.activate(newField, forClerks, addRoute)
		_, err := s.store.Update(context.Background(), func(tx *store.Tx) error {
			operator := keystore.Authority{Schema: s.schema, Caller: caller.Caller{Kind: caller.System, UserID: "uid:0"}}
			keys, err := s.keys.List(tx, operator, keystore.Filter{})
			if err != nil {
				return err
			}
			_, err = s.keys.Revoke(tx, operator, keys.Keys[0].ID)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	s.add(clerk, "401 invalid_token")
	s.wantItems(0)
}

func TestAnOperatorsCallRunsAgainOnTheNextRelease(t *testing.T) {
	s := newServer(t)
	s.changeSchema(forClerks, addRoute)
	if answer := s.call("add"); answer.Status != 200 {
		t.Errorf("the answer is %+v", answer)
	}
	s.wantItems(1)
}

func TestAnOperatorsCallThatConflictsAfterAFetchSaysWhatItSent(t *testing.T) {
	s := newServer(t)
	s.inTransaction = func(n int64) {
		if n == 1 {
			s.call("add") // the second run
		}
	}
	answer := s.call("pay")
	if answer.Status != 409 || answer.Code != "write_conflict" || !strings.Contains(answer.Detail, "nothing was recorded") || !strings.Contains(answer.Detail, "it has sent POST http://127.0.0.1:1/charges: ") {
		t.Errorf("the answer is %+v", answer)
	}
	s.wantItems(1)
	s.wantRuns(2)
}

func TestAnOperatorsCallThatAnswersAnErrorStoresNothing(t *testing.T) {
	s := newServer(t)
	if answer := s.call("fail"); answer.Status != 422 {
		t.Errorf("the answer is %+v", answer)
	}
	s.wantItems(0)
}

func TestAnOperatorsCallOfAnUnknownFunctionIsAnError(t *testing.T) {
	s := newServer(t)
	_, err := s.Call(t.Context(), runtime.FunctionCall{Name: "ad", Caller: caller.Caller{Kind: caller.System}})
	if err == nil || !strings.Contains(err.Error(), `no function "ad"`) {
		t.Errorf("the error is %v", err)
	}
}
