package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/keystore/credtime"
	"runner.example/runtime/auth"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/audit"
	"runner.example/state/store"
)

const app = `
apiKeys {
  prefix: "ord",
  scopes: {
    orders_read: @system("orders.read") { @grant read on Order },
    partner_sync: @system("orders.sync") { @grant read, write on Order },
    other: @system("other") { @grant read on Order }
  }
}
routes("/v1", auth: apiKey(orders_read)) {
  GET /read -> a
  GET /both -> b (auth: apiKey(orders_read, partner_sync))
  GET /user -> c (auth: session)
  GET /any -> d (auth: anyOf(session, apiKey(partner_sync)))
  GET /open -> e (auth: none, rateLimit: none)
  GET /other -> f (auth: apiKey(other))
}
`

// goodToken has the form and the checksum of a token; no key has it.
const goodToken = "ord_0000000000000000000000000000002C8GjS"

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// world is an authenticator over real keys in memory, with a clock set by hand.
type world struct {
	testing.TB
	schema *schema.Schema
	store  *store.Store
	keys   *keystore.Keystore
	auth   *auth.Authenticator
	tokens *auth.Tokens // nil: none
	now    time.Time
	log    lines
}

// lines is a log that may be written to by many.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func compile(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, list := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
	if list.HasErrors() {
		t.Fatal(list)
	}
	return s
}

func newWorld(t testing.TB) *world { return newWorldAt(t, noon) }

func newWorldAt(t testing.TB, now time.Time) *world {
	w := &world{TB: t, schema: compile(t, app), now: now}
	clock := func() time.Time { return w.now }
	var err error
	if w.store, err = store.Open(store.Options{Clock: clock}); err != nil {
		t.Fatal(err)
	}
	if w.keys, err = keystore.Open(context.Background(), w.store, keystore.Options{Machine: credtime.Machine{
		Wall: clock, Uptime: func() time.Duration { return w.now.Sub(now) },
	}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(w.keys.Close(), w.store.Close()); err != nil {
			t.Error(err)
		}
	})
	w.auth = auth.New(w.store, w.keys, auth.Options{Logger: slog.New(slog.NewJSONHandler(&w.log, nil))})
	return w
}

// change runs one operation on keys as an operator.
func (w *world) change(fn func(*store.Tx, keystore.Authority) (keystore.Key, error)) keystore.Key {
	w.Helper()
	operator := keystore.Authority{Schema: w.schema, Caller: caller.Caller{Kind: caller.System, UserID: "uid:0"}}
	var key keystore.Key
	_, err := w.store.Update(context.Background(), func(tx *store.Tx) (err error) {
		key, err = fn(tx, operator)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return key
}

func (w *world) create(req keystore.CreateRequest) keystore.Key {
	w.Helper()
	return w.change(func(tx *store.Tx, a keystore.Authority) (keystore.Key, error) { return w.keys.Create(tx, a, req) })
}

func (w *world) revoke(id string) {
	w.Helper()
	w.change(func(tx *store.Tx, a keystore.Authority) (keystore.Key, error) { return w.keys.Revoke(tx, a, id) })
}

// route gives the first route of that path.
func (w *world) route(path string) *schema.Route {
	w.Helper()
	for i := range w.schema.Routes {
		if w.schema.Routes[i].Path == "/v1/"+path {
			return &w.schema.Routes[i]
		}
	}
	w.Fatalf("no route %s", path)
	return nil
}

var somewhere = netip.MustParseAddr("192.0.2.1")

// bearer presents a value of the Authorization header.
func bearer(value string) auth.Presented {
	return auth.Presented{Authorization: []byte(value), AuthorizationLines: 1, Address: somewhere, Request: &abi.Request{ID: "01jtest"}}
}

// header presents a value of the X-API-Key header.
func header(value string) auth.Presented {
	return auth.Presented{APIKey: []byte(value), APIKeyLines: 1, Address: somewhere, Request: &abi.Request{ID: "01jtest"}}
}

func (w *world) check(path string, p auth.Presented) (caller.Caller, error) {
	w.Helper()
	return w.auth.Check(context.Background(), w.schema, w.tokens, w.route(path), p, w.now)
}

func TestARequestWithoutCredentialsGetsAChallenge(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string][2]bool{"read": {false, true}, "user": {true, false}, "any": {true, true}} {
		_, err := w.check(path, auth.Presented{Address: somewhere})
		text := fmt.Sprint(err)
		if got := [2]bool{strings.Contains(text, "a signed-in user"), strings.Contains(text, "API key")}; got != want {
			t.Errorf("%s: %s", path, text)
		}
	}
}

func TestAKeyIsAcceptedInEitherOfTwoHeaders(t *testing.T) {
	w := newWorld(t)
	token := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n"}).Token.Reveal()
	both := bearer("Bearer " + token)
	both.APIKey, both.APIKeyLines = []byte(token), 1
	twice, twiceKey := bearer("Bearer "+token), header(token)
	twice.AuthorizationLines, twiceKey.APIKeyLines = 2, 2
	rows := []struct {
		name string
		path string
		p    auth.Presented
		want fault.Code
	}{
		{"nothing", "read", auth.Presented{}, fault.MissingCredentials},
		{"nothing for a session", "user", auth.Presented{}, fault.MissingCredentials},
		{"nothing for either", "any", auth.Presented{}, fault.MissingCredentials},
		{"nothing where nothing is asked", "open", auth.Presented{}, ""},
		{"bearer", "read", bearer("Bearer " + token), ""},
		{"any case", "read", bearer("bEaReR " + token), ""},
		{"more blanks", "read", bearer("Bearer   " + token), ""},
		{"own header", "read", header(token), ""},
		{"both headers", "read", both, fault.InvalidRequest},
		{"both headers for a session", "user", both, fault.InvalidRequest},
		{"bearer twice", "read", twice, fault.InvalidRequest},
		{"own header twice", "read", twiceKey, fault.InvalidRequest},
		{"both headers where nothing is asked", "open", both, ""},
		{"junk where nothing is asked", "open", bearer("Bearer junk"), ""},
		{"empty", "read", bearer(""), fault.InvalidToken},
		{"empty own header", "read", header(""), fault.InvalidToken},
		{"scheme alone", "read", bearer("Bearer"), fault.InvalidToken},
		{"no scheme", "read", bearer(token), fault.InvalidToken},
		{"another scheme", "read", bearer("Basic " + token), fault.InvalidToken},
		{"scheme in own header", "read", header("Bearer " + token), fault.InvalidToken},
		{"two tokens", "read", bearer("Bearer " + token + " " + token), fault.InvalidToken},
		{"a list", "read", bearer("Bearer " + token + "," + token), fault.InvalidToken},
		{"a parameter", "read", bearer("Bearer " + token + " realm=x"), fault.InvalidToken},
		{"padded", "read", bearer("Bearer " + token + "="), fault.InvalidToken},
		{"tab for a blank", "read", bearer("Bearer\t" + token), fault.InvalidToken},
		{"JWT", "read", bearer("Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0."), fault.InvalidToken},
		{"key with two dots behind", "read", bearer("Bearer " + token + ".."), fault.InvalidToken},
		{"key for a session", "user", bearer("Bearer " + token), fault.InvalidToken},
		{"JWT for a session", "user", bearer("Bearer a.b.c"), fault.InvalidToken},
		{"unknown key", "read", bearer("Bearer " + goodToken), fault.InvalidToken},
		{"key of one of two scopes", "both", header(token), ""},
		{"key of no scope of the route", "any", header(token), fault.InsufficientScope},
	}
	for _, row := range rows {
		w.now = w.now.Add(4 * time.Second) // fewer failures than are too many
		if _, err := w.check(row.path, row.p); fault.CodeOf(err) != row.want {
			t.Errorf("%s: %v (%s), want %q", row.name, err, fault.CodeOf(err), row.want)
		}
	}
}

func TestARefusalOfAnotherSchemeNamesBearer(t *testing.T) {
	w := newWorld(t)
	token := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n"}).Token.Reveal()
	for value, named := range map[string]bool{"Basic " + token: true, "Token " + token: true, token: true, "Bearer " + goodToken: false} {
		_, err := w.check("read", bearer(value))
		if fault.CodeOf(err) != fault.InvalidToken || strings.Contains(err.Error(), "Authorization: Bearer") != named || strings.Contains(err.Error(), token) {
			t.Errorf("%.6s…: %v, names the scheme: want %v", value, err, named)
		}
		_, err = w.auth.CheckPlatformKey(bearer(value), w.now)
		if fault.CodeOf(err) != fault.InvalidToken || strings.Contains(err.Error(), "Authorization: Bearer") != named {
			t.Errorf("of a node, %.6s…: %v, names the scheme: want %v", value, err, named)
		}
	}
	if _, err := w.check("user", bearer("Basic "+token)); err != keystore.ErrInvalidToken { // a route of cookies
		t.Errorf("a route that takes no header says %v", err)
	}
}

func TestAValidKeyIsACallerOfTheActiveScope(t *testing.T) {
	w := newWorld(t)
	key := w.create(keystore.CreateRequest{Scope: "partner_sync", Name: "n", Tenant: "t1", Metadata: json.RawMessage(`{"a":1}`)})
	want := caller.Caller{
		Kind: caller.APIKey, Tenant: "t1", KeyID: key.ID,
		Scope: "partner_sync", Capability: "orders.sync", Metadata: json.RawMessage(`{"a":1}`),
	}
	got, err := w.check("any", header(key.Token.Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAKeyOpensOnlyRoutesThatNameItsScope(t *testing.T) {
	w := newWorld(t)
	token := w.create(keystore.CreateRequest{Scope: "other", Name: "n"}).Token.Reveal()
	_, err := w.check("both", header(token))
	refusal, ok := errors.AsType[*auth.Refusal](err)
	if !ok || refusal.Fault.Code != fault.InsufficientScope || refusal.Scopes != "orders_read partner_sync" {
		t.Errorf("%+v, want the scopes that are needed", err)
	}
}

// TestScopeRenamedRemoved: what a key may open follows from the active schema.
func TestScopeRenamedRemoved(t *testing.T) {
	w := newWorld(t)
	token := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n"}).Token.Reveal()

	w.schema = compile(t, strings.ReplaceAll(app, "orders_read", "orders_view"))
	who, err := w.check("read", header(token))
	if err != nil || who.Scope != "orders_view" {
		t.Errorf("after the scope was renamed: %+v, %v; want a caller of scope orders_view", who, err)
	}
	w.schema = compile(t, strings.NewReplacer("orders_read", "orders_view", `"orders.read"`, `"orders.view"`).Replace(app))
	if _, err := w.check("read", header(token)); fault.CodeOf(err) != fault.InsufficientScope {
		t.Errorf("after the scope was removed: %v, want insufficient scope", err)
	}
}

func TestInvalidTokensIndistinguishable(t *testing.T) {
	w := newWorld(t)
	life := 10 * time.Minute
	expired := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n", ExpiresIn: &life})
	revoked := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n"})
	w.revoke(revoked.ID)
	off := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n"})
	w.change(func(tx *store.Tx, a keystore.Authority) (keystore.Key, error) { return w.keys.Disable(tx, a, off.ID) })
	good := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n"})
	rotated := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n"})
	w.change(func(tx *store.Tx, a keystore.Authority) (keystore.Key, error) {
		return w.keys.Rotate(tx, a, rotated.ID, 0)
	})
	w.now = w.now.Add(time.Hour)

	var first error
	for _, row := range []struct{ name, path, token string }{
		{"malformed", "read", "junk"},
		{"wrong checksum", "read", goodToken[:39] + "x"},
		{"unknown", "read", goodToken},
		{"expired", "read", expired.Token.Reveal()},
		{"revoked", "read", revoked.Token.Reveal()},
		{"disabled", "read", off.Token.Reveal()},
		{"rotated", "read", rotated.Token.Reveal()},
		{"of the wrong kind", "user", good.Token.Reveal()},
		{"JWT", "read", "a.b.c"},
	} {
		_, err := w.check(row.path, bearer("Bearer "+row.token))
		if first == nil {
			first = err
		}
		if fault.CodeOf(err) != fault.InvalidToken || err != first {
			t.Errorf("%s: %#v, want the very same error as for the first", row.name, err)
		}
	}
}

func TestBruteForceThrottled(t *testing.T) {
	w := newWorld(t)
	token := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n"}).Token.Reveal()
	before := w.store.Health()
	for i := range 10_000 {
		_, err := w.check("read", bearer("Bearer "+goodToken))
		want := fault.InvalidToken
		if i >= 20 {
			want = fault.RateLimited
		}
		if fault.CodeOf(err) != want {
			t.Fatalf("failure %d: %v, want %s", i+1, err, want)
		}
		if refusal, ok := errors.AsType[*auth.Refusal](err); i >= 20 && (!ok || refusal.RetryAfter != 60) {
			t.Fatalf("failure %d: %+v, want a retry after 60 s", i+1, err)
		}
	}
	if after := w.store.Health(); after.Applied != before.Applied || after.Snapshots != before.Snapshots {
		t.Errorf("failures reached the store: %+v, before %+v", after, before)
	}
	if _, err := w.check("read", bearer("Bearer "+token)); err != nil {
		t.Errorf("a good key from the same address: %v", err)
	}
	if _, err := w.check("read", auth.Presented{Address: somewhere}); fault.CodeOf(err) != fault.MissingCredentials {
		t.Errorf("no credential from the same address: %v", err)
	}
	elsewhere := bearer("Bearer " + goodToken)
	elsewhere.Address = netip.MustParseAddr("192.0.2.2")
	if _, err := w.check("read", elsewhere); fault.CodeOf(err) != fault.InvalidToken {
		t.Errorf("a bad key from another address: %v", err)
	}
	w.now = w.now.Add(59*time.Second + 500*time.Millisecond)
	_, err := w.check("read", bearer("Bearer "+goodToken))
	if refusal, ok := errors.AsType[*auth.Refusal](err); !ok || refusal.RetryAfter != 1 {
		t.Errorf("half a second before the minute is over: %+v, want a retry after 1 s", err)
	}
	w.now = w.now.Add(500 * time.Millisecond)
	if _, err := w.check("read", bearer("Bearer "+goodToken)); fault.CodeOf(err) != fault.InvalidToken {
		t.Errorf("after a minute: %v, want an invalid token again", err)
	}
}

func TestRacingFailuresAreCountedExactly(t *testing.T) {
	w := newWorld(t)
	var invalid atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if _, err := w.check("read", bearer("Bearer "+goodToken)); fault.CodeOf(err) == fault.InvalidToken {
					invalid.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if got := invalid.Load(); got != 20 {
		t.Errorf("%d of 800 failures were answered as such, want 20", got)
	}
}

func TestFailuresOfOneNetworkCountTogether(t *testing.T) {
	rows := []struct {
		name   string
		next   func(i int) string
		shared bool
	}{
		{"one IPv6 customer", func(i int) string { return fmt.Sprintf("2001:db8:0:1::%x", i+1) }, true},
		{"IPv6 customers", func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i+1) }, false},
		{"IPv4 hosts", func(i int) string { return fmt.Sprintf("192.0.2.%d", i+1) }, false},
		{"IPv4 in two writings", func(i int) string { return []string{"192.0.2.1", "::ffff:192.0.2.1"}[i%2] }, true},
	}
	for _, row := range rows {
		w := newWorld(t)
		throttled := false
		for i := range 21 {
			p := bearer("Bearer " + goodToken)
			p.Address = netip.MustParseAddr(row.next(i))
			_, err := w.check("read", p)
			throttled = fault.CodeOf(err) == fault.RateLimited
		}
		if throttled != row.shared {
			t.Errorf("%s: the 21st failure was throttled: %v, want %v", row.name, throttled, row.shared)
		}
	}
}

func TestAFullTableCountsUnknownNetworksTogether(t *testing.T) {
	w := newWorld(t)
	fail := func(i int) fault.Code {
		p := bearer("Bearer " + goodToken)
		p.Address = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		_, err := w.check("read", p)
		return fault.CodeOf(err)
	}
	const room = 8192
	for i := range room {
		if got := fail(i); got != fault.InvalidToken {
			t.Fatalf("network %d: %s", i, got)
		}
	}
	for i := range 30 {
		want := fault.InvalidToken
		if i >= 20 {
			want = fault.RateLimited
		}
		if got := fail(room + i); got != want {
			t.Fatalf("caller %d: %s, want %s", i+1, got, want)
		}
	}
	w.now = w.now.Add(time.Minute)
	for i := range 30 {
		if got := fail(2*room + i); got != fault.InvalidToken {
			t.Fatalf("caller %d a minute later: %s", i+1, got)
		}
	}
}

func TestRefusalsAreLoggedOneByOneWithoutTheToken(t *testing.T) {
	w := newWorld(t)
	key := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n"})
	w.revoke(key.ID)
	token := key.Token.Reveal()
	for _, p := range []auth.Presented{bearer("Bearer " + token), header("Junk_" + token), bearer("Basic dXNlcjpwYXNz"), bearer("Bearer a.b.c"), header(goodToken)} {
		if _, err := w.check("read", p); err == nil {
			t.Fatal("a bad credential passed")
		}
	}
	var got []map[string]any
	for line := range strings.Lines(w.log.String()) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		delete(one, "time")
		got = append(got, one)
	}
	line := func(reason string, more ...string) map[string]any {
		m := map[string]any{"level": "INFO", "msg": "credential refused", "requestId": "01jtest", "address": "192.0.2.1", "reason": reason}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	want := []map[string]any{
		line("revoked", "prefix", "ord", "keyId", key.ID),
		line("malformed"),
		line("wrong_kind"),
		line("wrong_kind"),
		line("unknown", "prefix", "ord"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, part := range []string{token[4:], token[len(token)-16:], "dXNlcjpwYXNz"} { // fewer letters could be in the key's id
		if strings.Contains(w.log.String(), part) {
			t.Errorf("the log shows %q", part)
		}
	}
}

func TestRefusalsAreAuditedAsCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldAt(t, time.Now())
		first := w.now.Truncate(time.Minute)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.auth.Run(ctx); close(done) }()
		for range 30 {
			_, _ = w.check("read", bearer("Bearer "+goodToken))
		}
		_, _ = w.check("read", bearer("Bearer junk"))
		v6 := header(goodToken)
		v6.Address = netip.MustParseAddr("2001:db8::1:2:3:4")
		_, _ = w.check("read", v6)

		time.Sleep(61 * time.Second) // the bubble's clock, not ours
		synctest.Wait()
		want := []audit.Record{
			refused(first, "malformed", "192.0.2.1", 1),
			refused(first, "unknown", "192.0.2.1", 30),
			refused(first, "unknown", "2001:db8::/64", 1),
		}
		if diff := cmp.Diff(want, w.audit()); diff != "" {
			t.Fatalf("after a minute (-want +got):\n%s", diff)
		}
		w.now = time.Now()
		_, _ = w.check("user", bearer("Bearer junk"))
		stop()
		<-done
		want = append(want, refused(w.now.Truncate(time.Minute), "wrong_kind", "192.0.2.1", 1))
		if diff := cmp.Diff(want, w.audit()); diff != "" {
			t.Errorf("after the end (-want +got):\n%s", diff)
		}
	})
}

func refused(at time.Time, reason, address string, n int) audit.Record {
	return audit.Record{
		Time: audit.Timestamp{Time: at.UTC()}, Actor: audit.Actor{Kind: "anonymous"}, Action: "credentials.refuse",
		Result: "invalid_token", Reason: reason, Address: address, Count: n,
	}
}

// audit gives all records.
func (w *world) audit() (records []audit.Record) {
	w.Helper()
	entries, err := audit.List(context.Background(), w.store, 0, 10_000)
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range entries {
		e.Record.Time.Time = e.Record.Time.UTC()
		records = append(records, e.Record)
	}
	return records
}

func TestACountThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	w := newWorld(t)
	_, _ = w.check("read", bearer("Bearer "+goodToken))
	gone, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	broken := auth.New(gone, w.keys, auth.Options{Logger: slog.New(slog.NewJSONHandler(&w.log, nil))})
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	_, _ = broken.Check(context.Background(), w.schema, w.tokens, w.route("read"), bearer("Bearer "+goodToken), w.now)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	broken.Run(ctx)
	if !strings.Contains(w.log.String(), "counts of refused credentials not written") {
		t.Errorf("the log says nothing: %s", w.log.String())
	}
	w.auth.Run(ctx)
	if got := len(w.audit()); got != 1 {
		t.Errorf("%d records, want 1", got)
	}
}

func TestAValidKeyAllocatesNothing(t *testing.T) {
	w := newWorld(t)
	p := bearer("Bearer " + w.create(keystore.CreateRequest{Scope: "partner_sync", Name: "n"}).Token.Reveal())
	route := w.route("both")
	if n := testing.AllocsPerRun(5000, func() {
		if _, err := w.auth.Check(context.Background(), w.schema, w.tokens, route, p, w.now); err != nil {
			t.Fatal(err)
		}
	}); n != 0 && !raced {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestARevokedKeyIsRefusedAtOnce(t *testing.T) {
	w := newWorld(t)
	key := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n"})
	epoch := w.keys.Epoch()
	if _, err := w.check("read", header(key.Token.Reveal())); err != nil {
		t.Fatal(err)
	}
	w.revoke(key.ID)
	if w.keys.Epoch() == epoch {
		t.Error("the epoch did not move")
	}
	if _, err := w.check("read", header(key.Token.Reveal())); fault.CodeOf(err) != fault.InvalidToken {
		t.Errorf("%v, want an invalid token", err)
	}
}

func BenchmarkCheck(b *testing.B) {
	w := newWorld(b)
	p := bearer("Bearer " + w.create(keystore.CreateRequest{Scope: "partner_sync", Name: "n"}).Token.Reveal())
	route := w.route("both")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.auth.Check(context.Background(), w.schema, w.tokens, route, p, w.now); err != nil {
			b.Fatal(err)
		}
	}
}
