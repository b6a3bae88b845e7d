package keystore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/schema"
	"runner.example/state/store"
)

// cookies is a schema with sessions of 30 minutes and 12 hours.
const cookies = `
auth {
  session cookie { }
  roles: [admin, staff]
}
entity Order {
  id: id
  @@allow read to session
}
routes("/v1", auth: session) { GET /orders -> listOrders }
`

// changeSession runs one operation in its own transaction.
func (w *fixture) changeSession(fn func(*store.Tx) (keystore.Session, error)) (s keystore.Session, err error) {
	_, err = w.store.Update(context.Background(), func(tx *store.Tx) (err error) {
		s, err = fn(tx)
		return err
	})
	return s, err
}

func (w *fixture) createSession(a keystore.Authority, req keystore.CreateSessionRequest) (keystore.Session, error) {
	return w.changeSession(func(tx *store.Tx) (keystore.Session, error) { return w.keys.CreateSession(tx, a, req) })
}

func (w *fixture) revokeSession(a keystore.Authority, id string) (keystore.Session, error) {
	return w.changeSession(func(tx *store.Tx) (keystore.Session, error) { return w.keys.RevokeSession(tx, a, id) })
}

func (w *fixture) listSessions(a keystore.Authority, f keystore.SessionFilter) (page keystore.SessionPage, err error) {
	err = w.store.View(context.Background(), func(tx *store.Tx) (err error) {
		page, err = w.keys.ListSessions(tx, a, f)
		return err
	})
	return page, err
}

// mustSession returns the session of a call that must succeed.
func (w *fixture) mustSession(s keystore.Session, err error) keystore.Session {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// valueOf gives what a browser would send behind the name.
func valueOf(s keystore.Session) []byte {
	_, value, _ := strings.Cut(s.Cookie.Reveal(), "=")
	return []byte(value)
}

// seen checks that the cookie is good, which is a use of it.
func (w *fixture) seen(sc *schema.Schema, s keystore.Session) {
	w.Helper()
	got, err := w.keys.VerifySession(sc, valueOf(s))
	want := keystore.SessionIdentity{ID: s.ID, UserID: s.UserID, Tenant: s.Tenant, Roles: s.Roles}
	if err != nil || !cmp.Equal(got, want, cmpopts.IgnoreUnexported(want)) {
		w.Errorf("the cookie of %+v is that of %+v, %v", want, got, err)
		return
	}
	w.keys.SawSession(got)
}

// dead checks that the cookie is refused for the reason.
func (w *fixture) dead(sc *schema.Schema, s keystore.Session, reason keystore.Reason) {
	w.Helper()
	got, err := w.keys.VerifySession(sc, valueOf(s))
	if err != keystore.ErrInvalidToken || got.Refused != reason {
		w.Errorf("the cookie gives %v for %q, want it refused for %q", err, got.Refused, reason)
	}
	if got.UserID != "" || got.Tenant != "" || got.Roles != nil {
		w.Errorf("a refused cookie has the identity %+v", got)
	}
}

// TestSessionLifecycle follows sessions to each of their ends.
func TestSessionLifecycle(t *testing.T) {
	w := onDisk(t)
	sc := compile(t, cookies)
	op := operator(sc)
	create := func(ttl *time.Duration) keystore.Session {
		t.Helper()
		return w.mustSession(w.createSession(op, keystore.CreateSessionRequest{UserID: "ada", Tenant: "acme", Roles: []string{"admin"}, TTL: ttl}))
	}
	first, second := create(nil), create(nil)
	if first.ID == second.ID || first.Cookie.Reveal() == second.Cookie.Reveal() || !strings.HasPrefix(first.ID, "ses_") {
		t.Fatalf("two sessions of one user are %v and %v", first.ID, second.ID)
	}
	if first.Status != keystore.Active || !first.CreatedAt.Equal(noon) || !first.LastSeenAt.Equal(noon) ||
		!first.ExpiresAt.Equal(noon.Add(12*time.Hour)) || first.Idle != 30*time.Minute {
		t.Errorf("a new session is %+v", first)
	}

	// Used often enough it lives to its absolute end, and not a millisecond more.
	for range 24 {
		w.clock.advance(29 * time.Minute)
		w.seen(sc, first)
	}
	w.dead(sc, second, keystore.Idle)
	w.clock.set(noon.Add(12*time.Hour - time.Millisecond))
	w.seen(sc, first)
	w.clock.advance(time.Millisecond)
	w.dead(sc, first, keystore.KeyExpired)

	// Unused it dies after its idle time, and trying does not bring it back.
	idle := create(nil)
	w.clock.advance(30*time.Minute - time.Millisecond)
	w.seen(sc, idle)
	w.clock.advance(30 * time.Minute)
	for range 3 {
		w.dead(sc, idle, keystore.Idle)
	}

	// A shorter lifetime is kept; a revocation applies at once and is final.
	short := create(lasting(time.Minute))
	w.clock.advance(time.Minute - time.Millisecond)
	w.seen(sc, short)
	w.clock.advance(time.Millisecond)
	w.dead(sc, short, keystore.KeyExpired)
	revoked := create(nil)
	w.seen(sc, revoked)
	got := w.mustSession(w.revokeSession(op, revoked.ID))
	if got.Status != keystore.Revoked || !got.RevokedAt.Equal(w.clock.now()) || got.Cookie.Reveal() != "" {
		t.Errorf("revoked to %+v", got)
	}
	w.dead(sc, revoked, keystore.KeyRevoked)
	w.clock.advance(time.Second)
	if again := w.mustSession(w.revokeSession(op, revoked.ID)); !again.RevokedAt.Equal(got.RevokedAt) {
		t.Errorf("revoked again to %+v", again)
	}

	// All of that holds after a restart, and when the clock is set back.
	alive := create(nil)
	w.clock.advance(20 * time.Minute)
	w.seen(sc, alive)
	w.reopen()
	w.clock.advance(20 * time.Minute)
	w.seen(sc, alive) // it was seen 20 minutes ago, made 40
	w.dead(sc, revoked, keystore.KeyRevoked)
	w.dead(sc, short, keystore.KeyExpired)
	w.dead(sc, idle, keystore.Idle)
	w.clock.set(noon)
	w.dead(sc, first, keystore.KeyExpired)
	w.dead(sc, idle, keystore.Idle)
	w.dead(sc, second, keystore.KeyExpired)
}

func TestACookieIsNotValidAsATokenNorATokenAsACookie(t *testing.T) {
	w := inMemory(t)
	sc, keys := compile(t, cookies), compile(t, typed)
	s := w.mustSession(w.createSession(operator(sc), keystore.CreateSessionRequest{UserID: "ada"}))
	key := w.must(w.create(operator(keys), keystore.CreateRequest{Scope: "orders_read"}))
	if got, err := w.keys.Verify(valueOf(s)); err != keystore.ErrInvalidToken || got.Refused != keystore.Unknown {
		t.Errorf("a cookie as a token: %+v, %v", got, err)
	}
	for value, reason := range map[string]keystore.Reason{
		key.Token.Reveal():                keystore.Unknown,
		keystore.NewToken("rns").Reveal(): keystore.Unknown,
		s.Cookie.Reveal():                 keystore.Malformed,
		s.ID:                              keystore.Malformed,
		string(valueOf(s)) + "x":          keystore.Malformed,
		`"` + string(valueOf(s)) + `"`:    keystore.Malformed,
		"":                                keystore.Malformed,
	} {
		if got, err := w.keys.VerifySession(sc, []byte(value)); err != keystore.ErrInvalidToken || got.Refused != reason || got.ID != "" {
			t.Errorf("%.8s…: %+v, %v, want it refused for %q", value, got, err, reason)
		}
	}
}

func TestInvalidSessionRequestsAreRefused(t *testing.T) {
	sc, plain := compile(t, cookies), compile(t, "auth { session cookie { } }\n"+untyped)
	other := keystore.Authority{Schema: sc, Caller: caller.Caller{Kind: caller.Session, UserID: "ada", Roles: []string{"admin"}}}
	good := keystore.CreateSessionRequest{UserID: "ada"}
	with := func(change func(*keystore.CreateSessionRequest)) keystore.CreateSessionRequest {
		req := good
		change(&req)
		return req
	}
	role := func(names ...string) keystore.CreateSessionRequest {
		return with(func(r *keystore.CreateSessionRequest) { r.Roles = names })
	}
	ttl := func(d time.Duration) keystore.CreateSessionRequest {
		return with(func(r *keystore.CreateSessionRequest) { r.TTL = &d })
	}
	for _, row := range []struct {
		name string
		by   keystore.Authority
		req  keystore.CreateSessionRequest
		want fault.Code
		says string
	}{
		{"all good", operator(sc), with(func(r *keystore.CreateSessionRequest) { r.Tenant, r.Roles = "acme", []string{"staff", "admin"} }), "", ""},
		{"the longest", operator(sc), ttl(12 * time.Hour), "", ""},
		{"any role where none is declared", operator(plain), role("boss"), "", ""},
		{"by a user", other, good, fault.Denied, "mints: session"},
		{"without a caller", keystore.Authority{Schema: sc}, good, fault.Denied, "mints: session"},
		{"without a schema", operator(nil), good, fault.Invalid, "no schema"},
		{"without a declared session", operator(compile(t, untyped)), good, fault.Invalid, "session cookie"},
		{"without a user", operator(sc), keystore.CreateSessionRequest{}, fault.Invalid, "userId "},
		{"a long user", operator(sc), keystore.CreateSessionRequest{UserID: strings.Repeat("a", 121)}, fault.Invalid, "userId "},
		{"a user that steers the terminal", operator(sc), keystore.CreateSessionRequest{UserID: "a\x1b[1m"}, fault.Invalid, "userId "},
		{"a token for a user", operator(sc), keystore.CreateSessionRequest{UserID: keystore.NewToken("rnk").Reveal()}, fault.Invalid, "userId "},
		{"a tenant of two lines", operator(sc), with(func(r *keystore.CreateSessionRequest) { r.Tenant = "a\nb" }), fault.Invalid, "tenant "},
		{"an unknown role", operator(sc), role("admn"), fault.Invalid, `did you mean "admin"?`},
		{"an empty role", operator(plain), role(""), fault.Invalid, "roles "},
		{"a role twice", operator(sc), role("admin", "admin"), fault.Invalid, "roles "},
		{"too many roles", operator(plain), role(make([]string, 65)...), fault.Invalid, "roles "},
		{"no time", operator(sc), ttl(0), fault.Invalid, "ttl must be positive"},
		{"negative time", operator(sc), ttl(-time.Hour), fault.Invalid, "ttl must be positive"},
		{"too long", operator(sc), ttl(12*time.Hour + time.Millisecond), fault.Invalid, "ttl is longer than the limit (absolute), 12h"},
	} {
		w := inMemory(t)
		_, err := w.createSession(row.by, row.req)
		if got := fault.CodeOf(err); got != row.want || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v (%s), want %s %q", row.name, err, got, row.want, row.says)
		}
		if checked := row.by.CheckSession(row.req); fault.CodeOf(checked) != row.want {
			t.Errorf("%s: checked %v", row.name, checked)
		}
		if n := len(w.audit()); (n == 1) != (row.want == "") {
			t.Errorf("%s: %d audit records", row.name, n)
		}
	}
}

func TestRolesRemovedFromTheSchemaAreDropped(t *testing.T) {
	w := inMemory(t)
	s := w.mustSession(w.createSession(operator(compile(t, cookies)), keystore.CreateSessionRequest{UserID: "ada", Roles: []string{"admin", "staff"}}))
	for roles, want := range map[string][]string{"[admin, staff]": {"admin", "staff"}, "[staff, boss]": {"staff"}, "[boss]": {}} {
		sc := compile(t, strings.Replace(cookies, "[admin, staff]", roles, 1))
		if got, err := w.keys.VerifySession(sc, valueOf(s)); err != nil || fmt.Sprint(got.Roles) != fmt.Sprint(want) {
			t.Errorf("under %s: %v, %v", roles, got.Roles, err)
		}
	}
	none := compile(t, strings.Replace(cookies, "roles: [admin, staff]", "", 1))
	if got, err := w.keys.VerifySession(none, valueOf(s)); err != nil || len(got.Roles) != 0 {
		t.Errorf("a typed schema without roles: %v, %v", got.Roles, err)
	}
}

func TestARevocationNeedsTheIDOfASession(t *testing.T) {
	w := inMemory(t)
	sc := compile(t, cookies)
	s := w.mustSession(w.createSession(operator(sc), keystore.CreateSessionRequest{UserID: "ada", Tenant: "acme"}))
	for _, id := range []string{"", "ses_", "ses_01HZZZZZZZZZZZZZZZZZZZZZZZ", "ses_01hzzzzzzzzzzzzzzzzzzzzzzz", strings.Replace(s.ID, "ses_", "key_", 1), "../pepper"} {
		_, err := w.revokeSession(operator(nil), id)
		w.refuses(fault.NotFound, err)
	}
	w.seen(sc, s)
	if _, err := w.revokeSession(operator(nil), s.ID); err != nil {
		t.Errorf("revoke without a schema: %v", err)
	}
	w.dead(sc, s, keystore.KeyRevoked)
}

func TestSessionsAreListedInPagesWithoutTheirCookies(t *testing.T) {
	w := inMemory(t)
	sc := compile(t, cookies)
	op := operator(sc)
	var all []keystore.Session
	for i := range 7 {
		w.clock.advance(time.Second)
		user, tenant := "ada", "acme"
		if i%2 == 1 {
			user = "bob"
		}
		if i >= 4 {
			tenant = ""
		}
		all = append(all, w.mustSession(w.createSession(op, keystore.CreateSessionRequest{UserID: user, Tenant: tenant})))
	}
	w.mustSession(w.revokeSession(op, all[0].ID))
	ids := func(f keystore.SessionFilter) (got []int) {
		t.Helper()
		for {
			page, err := w.listSessions(op, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range page.Sessions {
				if s.Cookie.Reveal() != "" {
					t.Errorf("the list has a cookie")
				}
				for i := range all {
					if all[i].ID == s.ID {
						got = append(got, i)
					}
				}
			}
			if f.Cursor = page.NextCursor; f.Cursor == "" {
				return got
			}
		}
	}
	for _, row := range []struct {
		f    keystore.SessionFilter
		want []int
	}{
		{keystore.SessionFilter{}, []int{1, 2, 3, 4, 5, 6}},
		{keystore.SessionFilter{All: true, Limit: 2}, []int{0, 1, 2, 3, 4, 5, 6}},
		{keystore.SessionFilter{UserID: "ada", Limit: 1}, []int{2, 4, 6}},
		{keystore.SessionFilter{Tenant: new("acme"), All: true, Limit: 4}, []int{0, 1, 2, 3}},
		{keystore.SessionFilter{Tenant: new(""), All: true}, []int{4, 5, 6}},
		{keystore.SessionFilter{UserID: "ada", All: true, Limit: 2}, []int{0, 2, 4, 6}},
		{keystore.SessionFilter{UserID: "ada", Tenant: new("acme"), Limit: 1}, []int{2}},
		{keystore.SessionFilter{UserID: "ada", Tenant: new("acme"), All: true, Limit: 1}, []int{0, 2}},
		{keystore.SessionFilter{UserID: "ada", Tenant: new("")}, []int{4, 6}},
		{keystore.SessionFilter{UserID: "ad"}, nil},
		{keystore.SessionFilter{UserID: "eve"}, nil},
	} {
		if got := ids(row.f); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%+v lists %v, want %v", row.f, got, row.want)
		}
	}
	w.clock.advance(31 * time.Minute)
	if got := ids(keystore.SessionFilter{}); got != nil {
		t.Errorf("idle sessions are listed as live: %v", got)
	}
	for _, f := range []keystore.SessionFilter{{Limit: -1}, {Limit: 1001}, {Cursor: "x"}, {UserID: strings.Repeat("a", 121)}, {UserID: "ada", Tenant: new("acme"), AllTenants: true}} {
		_, err := w.listSessions(op, f)
		w.refuses(fault.Invalid, err)
	}
	if text, err := json.Marshal(keystore.SessionPage{}); err != nil || string(text) != `{"sessions":[],"nextCursor":null}` {
		t.Errorf("an empty page is %s, %v", text, err)
	}
}

func TestASessionIsOneJSONDocument(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, cookies))
	made := w.mustSession(w.createSession(op, keystore.CreateSessionRequest{UserID: "ada", Tenant: "acme", Roles: []string{"admin"}}))
	text, err := json.Marshal(made)
	want := `{"id":"` + made.ID + `","userId":"ada","tenant":"acme","roles":["admin"],"status":"active","createdAt":"2026-05-01T12:00:00.000Z",` +
		`"lastSeenAt":"2026-05-01T12:00:00.000Z","expiresAt":"2026-05-02T00:00:00.000Z","idle":1800,"revokedAt":null,"cookie":"` + made.Cookie.Reveal() + `"}`
	if err != nil || string(text) != want {
		t.Errorf("%v\n got %s\nwant %s", err, text, want)
	}
	var back keystore.Session
	if err := json.Unmarshal(text, &back); err != nil || back.Cookie.Reveal() != made.Cookie.Reveal() {
		t.Fatalf("%v, %+v", err, back)
	}
	back.Cookie, made.Cookie = keystore.Session{}.Cookie, keystore.Session{}.Cookie
	if !reflect.DeepEqual(back, made) {
		t.Errorf("read back\n%+v\nof\n%+v", back, made)
	}
	bare := w.mustSession(w.createSession(op, keystore.CreateSessionRequest{UserID: "bob"}))
	text, err = json.Marshal(w.mustSession(w.revokeSession(op, bare.ID)))
	if err != nil || !bytes.Contains(text, []byte(`"tenant":null,"roles":[],"status":"revoked"`)) || bytes.Contains(text, []byte("cookie")) {
		t.Errorf("%v, %s", err, text)
	}
	if printed := fmt.Sprintf("%v %+v %#v", bare, bare, bare); strings.Contains(printed, string(valueOf(bare))) {
		t.Errorf("a session prints its cookie: %s", printed)
	}
}

func TestChangesOfSessionsAreRecordedWithThem(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, cookies))
	s := w.mustSession(w.createSession(op, keystore.CreateSessionRequest{UserID: "ada"}))
	w.mustSession(w.revokeSession(op, s.ID))
	w.mustSession(w.revokeSession(op, s.ID)) // which changes nothing
	w.dead(op.Schema, s, keystore.KeyRevoked)
	if got := w.actions(); !reflect.DeepEqual(got, []string{"sessions.create", "sessions.revoke"}) {
		t.Errorf("recorded %v", got)
	}
	for _, e := range w.audit() {
		if e.Target != s.ID || e.Actor.ID != "uid:1000" || e.RequestID != "01jtest" || e.Result != "ok" {
			t.Errorf("recorded %+v", e)
		}
	}
	failed := errors.New("no")
	var lost keystore.Session
	_, err := w.store.Update(t.Context(), func(tx *store.Tx) (err error) {
		if lost, err = w.keys.CreateSession(tx, op, keystore.CreateSessionRequest{UserID: "ada"}); err != nil {
			return err
		}
		return failed
	})
	if err != failed || len(w.audit()) != 2 {
		t.Errorf("%v, %d records", err, len(w.audit()))
	}
	w.dead(op.Schema, lost, keystore.Unknown)
}

func TestNoFileHoldsACookie(t *testing.T) {
	w := onDisk(t)
	sc := compile(t, cookies)
	s := w.mustSession(w.createSession(operator(sc), keystore.CreateSessionRequest{UserID: "ada"}))
	w.seen(sc, s)
	w.close()
	files := 0
	err := filepath.WalkDir(w.opt.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if bytes.Contains(text, valueOf(s)[4:24]) {
			t.Errorf("%s holds the cookie", path)
		}
		return err
	})
	if err != nil || files < 4 {
		t.Errorf("searched %d files, %v", files, err)
	}
}

func TestRevokedSessionIsRefusedAtOnce(t *testing.T) {
	w := inMemory(t)
	sc := compile(t, cookies)
	op := operator(sc)
	for range 20 {
		s := w.mustSession(w.createSession(op, keystore.CreateSessionRequest{UserID: "ada"}))
		value := valueOf(s)
		var revoked atomic.Bool
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					after := revoked.Load()
					_, err := w.keys.VerifySession(sc, value)
					if after && err == nil {
						t.Error("a revoked session is good")
					}
					if after {
						return
					}
				}
			})
		}
		epoch := w.keys.Epoch()
		w.mustSession(w.revokeSession(op, s.ID))
		if w.keys.Epoch() == epoch {
			t.Error("the epoch did not move")
		}
		revoked.Store(true)
		wg.Wait()
	}
}

func TestVerifySessionAllocatesNothing(t *testing.T) {
	w := inMemory(t)
	sc := compile(t, cookies)
	value := valueOf(w.mustSession(w.createSession(operator(sc), keystore.CreateSessionRequest{UserID: "ada", Roles: []string{"staff"}})))
	if allocs := testing.AllocsPerRun(1000, func() {
		session, err := w.keys.VerifySession(sc, value)
		if err != nil {
			t.Fatal(err)
		}
		w.keys.SawSession(session)
	}); allocs != 0 && !raceEnabled {
		t.Errorf("%v allocations", allocs)
	}
}

func TestDeadSessionsAreSweptAndLastSeenIsWrittenOnceAMinute(t *testing.T) {
	sc := compile(t, cookies)
	synctest.Test(t, func(t *testing.T) {
		// The tickers are the bubble's, the wall clock is set by hand: sleeping for
		// days would run every ticker of the store.
		clock := newClock()
		st, err := store.Open(store.Options{Clock: clock.now})
		if err != nil {
			t.Fatal(err)
		}
		keys, err := keystore.Open(t.Context(), st, keystore.Options{Machine: clock.machine()})
		if err != nil {
			t.Fatal(err)
		}
		w := &fixture{TB: t, clock: clock, store: st, keys: keys}
		pass := func(d time.Duration) {
			clock.advance(d)
			time.Sleep(d)
		}
		op := operator(sc)
		var writes, deleted atomic.Int64
		defer st.OnApply([]byte("keystore/use/"), func(_ store.Seq, c store.Change) {
			if c.Deleted {
				deleted.Add(1)
			} else {
				writes.Add(1)
			}
		})()
		busy := w.mustSession(w.createSession(op, keystore.CreateSessionRequest{UserID: "ada"}))
		idle := w.mustSession(w.createSession(op, keystore.CreateSessionRequest{UserID: "bob"}))
		revoked := w.mustSession(w.createSession(op, keystore.CreateSessionRequest{UserID: "eve"}))
		w.seen(sc, idle)
		w.mustSession(w.revokeSession(op, revoked.ID))
		for range 200 { // over 10 minutes
			w.seen(sc, busy)
			pass(3 * time.Second)
		}
		if got := writes.Load(); got < 9 || got > 11 {
			t.Errorf("%d writes in ten minutes", got)
		}
		all := func() (n int) {
			page, err := w.listSessions(op, keystore.SessionFilter{All: true})
			if err != nil {
				t.Fatal(err)
			}
			return len(page.Sessions)
		}
		clock.advance(22 * time.Hour)
		pass(time.Hour)
		if got := all(); got != 3 {
			t.Errorf("%d sessions are left before a day is over", got)
		}
		w.dead(sc, idle, keystore.KeyExpired)
		young := w.mustSession(w.createSession(op, keystore.CreateSessionRequest{UserID: "ada"}))
		clock.advance(time.Hour)
		pass(time.Hour)
		if got := all(); got != 1 || deleted.Load() != 3 {
			t.Errorf("%d sessions are left, %d last uses deleted", got, deleted.Load())
		}
		if got := w.indexed(); got != 1 {
			t.Errorf("the index has %d entries for one session", got)
		}
		for _, s := range []keystore.Session{busy, idle, revoked} {
			w.dead(sc, s, keystore.Unknown)
			_, err := w.revokeSession(op, s.ID)
			w.refuses(fault.NotFound, err)
		}
		w.dead(sc, young, keystore.Idle)
		if n := len(w.audit()); n != 5 {
			t.Errorf("%d audit records: sweeping sessions must not be recorded", n)
		}
		if err := errors.Join(keys.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestDerivedKeysDifferByPurposeAndPepper(t *testing.T) {
	w := onDisk(t)
	a, b := w.keys.Derive("a"), w.keys.Derive("b")
	if a == b || a == ([32]byte{}) || a != w.keys.Derive("a") {
		t.Errorf("keys %x and %x", a, b)
	}
	w.reopen()
	if w.keys.Derive("a") != a {
		t.Error("after a restart the key is another")
	}
	if other := onDisk(t); other.keys.Derive("a") == a {
		t.Error("another pepper gives the same key")
	}
	if check, derived := w.check(), w.keys.Derive("pepper check"); bytes.Equal(check, derived[:]) {
		t.Error("a derived key lies in the store")
	}
}

// check gives the pepper's check value in the store.
func (w *fixture) check() (check []byte) {
	w.Helper()
	err := w.store.View(context.Background(), func(tx *store.Tx) (err error) {
		check, err = tx.Get([]byte("keystore/pepper"))
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return check
}
