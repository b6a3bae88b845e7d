package keystore_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/schema"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// managed is cookies with a line for those who manage sessions of others.
var managed = strings.Replace(cookies, "session cookie { }", `session cookie { @manage when auth.role == "admin" or auth.scope == "desk" }`, 1) +
	`apiKeys { scopes: { desk: @system("desk") { @grant read on Order }, other: @system("other") { @grant read on Order } } }
routes("/v2", auth: apiKey(desk, other)) { GET /orders -> listOrders }
`

func (w *fixture) revokeSessions(a keystore.Authority, f keystore.SessionFilter, except string) (ended []string, more bool, err error) {
	_, err = w.store.Update(w.Context(), func(tx *store.Tx) (err error) {
		ended, more, err = w.keys.RevokeSessions(tx, a, f, except)
		return err
	})
	return ended, more, err
}

// live returns the ids of the sessions that the filter selects, in the order of the list.
func (w *fixture) live(a keystore.Authority, f keystore.SessionFilter) (ids []string) {
	w.Helper()
	for {
		page, err := w.listSessions(a, f)
		if err != nil {
			w.Fatal(err)
		}
		for _, s := range page.Sessions {
			ids = append(ids, s.ID)
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return ids
		}
	}
}

// TestWhoListsAndRevokesWhoseSessions compares each kind of caller, on each kind of route, with
// each user's sessions, to what the documentation says.
func TestWhoListsAndRevokesWhoseSessions(t *testing.T) {
	type user struct{ id, tenant string }
	users := []user{{"ada", "acme"}, {"bob", "acme"}, {"ada", "beta"}, {"ada", ""}, {"bob", ""}}
	callers := map[string]caller.Caller{
		"anonymous":              {},
		"anonymous with a user":  {UserID: "ada", Tenant: "acme", Roles: []string{"admin"}},
		"user":                   {Kind: caller.Session, UserID: "ada", Tenant: "acme", Roles: []string{"staff"}},
		"user without a tenant":  {Kind: caller.Session, UserID: "ada"},
		"admin":                  {Kind: caller.Session, UserID: "eve", Tenant: "acme", Roles: []string{"staff", "admin"}},
		"admin of another":       {Kind: caller.Session, UserID: "eve", Tenant: "beta", Roles: []string{"admin"}},
		"admin without a tenant": {Kind: caller.Session, UserID: "ada", Roles: []string{"admin"}},
		"key":                    {Kind: caller.APIKey, KeyID: "key_1", UserID: "ada", Tenant: "acme", Scope: "other"},
		"key of the scope":       {Kind: caller.APIKey, KeyID: "key_1", Tenant: "acme", Scope: "desk"},
		"operator":               {Kind: caller.System, UserID: "uid:1"},
		"operator of a tenant":   {Kind: caller.System, UserID: "uid:1", Tenant: "acme"},
	}
	plain, withRule := compile(t, cookies), compile(t, managed)
	for _, sc := range []*schema.Schema{plain, withRule} {
		w := inMemory(t)
		for name, c := range callers {
			for _, mints := range []bool{false, true} {
				a := keystore.Authority{Schema: sc, Caller: c, CreatesSession: mints}
				manages := sc == withRule && c.Kind != caller.Anonymous && (slices.Contains(c.Roles, "admin") || c.Scope == "desk")
				for _, u := range users {
					says := fmt.Sprintf("rule %v, %s, mints %v: %v", sc == withRule, name, mints, u)
					own := c.Kind == caller.Session && c.UserID == u.id && c.Tenant == u.tenant
					operates := c.Kind == caller.System && (c.Tenant == "" || c.Tenant == u.tenant)
					byID := operates || own || manages && c.Tenant == u.tenant
					byName := byID || mints && c.Kind != caller.System
					one := w.mustSession(w.createSession(operator(sc), keystore.CreateSessionRequest{UserID: u.id, Tenant: u.tenant}))
					two := w.mustSession(w.createSession(operator(sc), keystore.CreateSessionRequest{UserID: u.id, Tenant: u.tenant}))
					named := keystore.SessionFilter{UserID: u.id, Tenant: &u.tenant}

					page, err := w.listSessions(a, named)
					if got := fault.CodeOf(err); (got == "") != byName || got != "" && got != fault.Denied || byName && len(page.Sessions) != 2 {
						t.Errorf("%s lists %d (%v)", says, len(page.Sessions), err)
					}
					if _, err := w.revokeSession(a, one.ID); (err == nil) != byID || err != nil && fault.CodeOf(err) != fault.NotFound {
						t.Errorf("%s revokes one: %v", says, err)
					}
					ended, _, err := w.revokeSessions(a, named, "")
					if got := fault.CodeOf(err); (got == "") != byName || got != "" && got != fault.Denied || byName && !slices.Contains(ended, two.ID) {
						t.Errorf("%s revokes %v of them (%v)", says, ended, err)
					}
					_, err = w.keys.VerifySession(sc, valueOf(two))
					if (err != nil) != byName {
						t.Errorf("%s: after that the cookie gives %v", says, err)
					}
					all := keystore.SessionFilter{UserID: u.id, AllTenants: true}
					if _, err := w.listSessions(a, all); (err == nil) != (c.Kind == caller.System && c.Tenant == "" || mints && c.Kind != caller.System) {
						t.Errorf("%s lists all tenants: %v", says, err)
					}
					if _, _, err := w.revokeSessions(operator(sc), all, ""); err != nil {
						t.Fatal(err)
					}
				}
				// Without a name it is the caller.
				_, _, err := w.revokeSessions(a, keystore.SessionFilter{}, "")
				want := fault.Code("")
				if c.Kind != caller.Session {
					if want = fault.Denied; mints || manages || c.Kind == caller.System {
						want = fault.Invalid
					}
				}
				if got := fault.CodeOf(err); got != want {
					t.Errorf("rule %v, %s, mints %v, without a user: %v, want %q", sc == withRule, name, mints, err, want)
				}
			}
		}
	}
}

func TestAllSessionsOfAUserEndButOne(t *testing.T) {
	w := inMemory(t)
	sc := compile(t, managed)
	op, ada := operator(sc), session(sc, "acme", "ada")
	create := func(user, tenant string) keystore.Session {
		w.clock.advance(time.Second) // so that their ids are in this order
		return w.mustSession(w.createSession(op, keystore.CreateSessionRequest{UserID: user, Tenant: tenant}))
	}
	mine := []keystore.Session{create("ada", "acme"), create("ada", "acme"), create("ada", "acme")}
	others := []keystore.Session{create("ada", "beta"), create("bob", "acme"), create("ada", ""), create("adaa", "acme")}
	ended, more, err := w.revokeSessions(ada, keystore.SessionFilter{}, mine[1].ID)
	if want := []string{mine[0].ID, mine[2].ID}; err != nil || more || !slices.Equal(ended, want) {
		t.Errorf("ended %v, %v, %v, want %v", ended, more, err, want)
	}
	w.dead(sc, mine[0], keystore.KeyRevoked)
	w.dead(sc, mine[2], keystore.KeyRevoked)
	for _, s := range append(others, mine[1]) {
		w.seen(sc, s)
	}
	records := w.audit()
	for i, s := range []keystore.Session{mine[0], mine[2]} {
		if e := records[len(records)-2+i]; e.Action != "sessions.revoke" || e.Target != s.ID || e.Reason != `user "ada", tenant "acme"` || e.Actor.ID != "ada" {
			t.Errorf("recorded %+v", e)
		}
	}
	if again, _, err := w.revokeSessions(ada, keystore.SessionFilter{}, mine[1].ID); err != nil || len(again) != 0 || len(w.audit()) != len(records) {
		t.Errorf("again it ends %v, %v", again, err)
	}
	for _, except := range []string{"x", "current", mine[0].ID + "x"} {
		_, _, err := w.revokeSessions(ada, keystore.SessionFilter{}, except)
		w.refuses(fault.Invalid, err)
	}
	// With the id of another user's session as the exception, all sessions of the user end.
	if ended, _, err := w.revokeSessions(ada, keystore.SessionFilter{}, others[1].ID); err != nil || !slices.Equal(ended, []string{mine[1].ID}) {
		t.Errorf("ended %v, %v", ended, err)
	}
	if ended, _, err := w.revokeSessions(keystore.Authority{Schema: sc, CreatesSession: true}, keystore.SessionFilter{UserID: "ada", AllTenants: true}, others[0].ID); err != nil || !slices.Equal(ended, []string{others[2].ID}) {
		t.Errorf("in all tenants ended %v, %v", ended, err)
	}
	failed := errors.New("no")
	_, err = w.store.Update(t.Context(), func(tx *store.Tx) error {
		if _, _, err := w.keys.RevokeSessions(tx, session(sc, "acme", "bob"), keystore.SessionFilter{}, ""); err != nil {
			return err
		}
		return failed
	})
	if err != failed {
		t.Error(err)
	}
	w.seen(sc, others[1])
}

// A session that is created while the revocation runs is not missed: the transaction runs again.
func TestASessionCreatedDuringARevocationEndsToo(t *testing.T) {
	w := inMemory(t)
	sc := compile(t, cookies)
	w.mustSession(w.createSession(operator(sc), keystore.CreateSessionRequest{UserID: "ada"}))
	var late keystore.Session
	var ended []string
	_, err := w.store.Update(t.Context(), func(tx *store.Tx) (err error) {
		ended, _, err = w.keys.RevokeSessions(tx, operator(sc), keystore.SessionFilter{UserID: "ada"}, "")
		if tx.Attempt() == 1 {
			late = w.mustSession(w.createSession(operator(sc), keystore.CreateSessionRequest{UserID: "ada"}))
		}
		return err
	})
	if err != nil || len(ended) != 2 || !slices.Contains(ended, late.ID) {
		t.Errorf("ended %v, %v, without %s", ended, err, late.ID)
	}
	w.dead(sc, late, keystore.KeyRevoked)
}

// signInMany creates n sessions of a user in one transaction.
func (w *fixture) signInMany(sc *schema.Schema, n int, user func(i int) string) {
	w.Helper()
	for from := 0; from < n; from += 2000 {
		_, err := w.store.Update(w.Context(), func(tx *store.Tx) error {
			for i := from; i < min(n, from+2000); i++ {
				if _, err := w.keys.CreateSession(tx, operator(sc), keystore.CreateSessionRequest{UserID: user(i), Tenant: "acme"}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			w.Fatal(err)
		}
	}
}

func TestMoreSessionsThanATransactionHoldsAreRefusedOrEndedInParts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	w := inMemory(t)
	sc := compile(t, cookies)
	w.signInMany(sc, 4001, func(int) string { return "ada" })
	ada, records := session(sc, "acme", "ada"), len(w.audit())
	ended, _, err := w.revokeSessions(ada, keystore.SessionFilter{}, "")
	if fault.CodeOf(err) != fault.Limit || !strings.Contains(err.Error(), "more than 4000 sessions") || ended != nil || len(w.audit()) != records {
		t.Errorf("ended %d, %v", len(ended), err)
	}
	all := w.live(ada, keystore.SessionFilter{Limit: 1000})
	if len(all) != 4001 || !slices.IsSorted(all) {
		t.Fatalf("lists %d", len(all))
	}
	start := time.Now()
	if ended, _, err := w.revokeSessions(ada, keystore.SessionFilter{}, all[7]); err != nil || len(ended) != 4000 {
		t.Errorf("all but one: ended %d, %v", len(ended), err)
	}
	t.Logf("4,000 sessions ended in %v", time.Since(start))
	// Names as long as they may be take more of a transaction.
	long := strings.Repeat("<", 120)
	w.signInMany(sc, 3200, func(int) string { return long })
	if _, _, err := w.revokeSessions(operator(sc), keystore.SessionFilter{UserID: long}, ""); fault.CodeOf(err) != fault.Limit {
		t.Errorf("3,200 with long names: %v", err)
	}
	for more := true; more; {
		if _, more, err = w.revokeSessions(operator(sc), keystore.SessionFilter{UserID: long, Limit: 4000}, ""); err != nil {
			t.Fatal(err)
		}
	}
	if left := w.live(operator(sc), keystore.SessionFilter{UserID: long}); left != nil {
		t.Errorf("%d are left", len(left))
	}
	w.signInMany(sc, 1500, func(int) string { return "bob" })
	for _, want := range []int{1000, 500, 0} {
		ended, more, err := w.revokeSessions(operator(sc), keystore.SessionFilter{UserID: "bob", Limit: 1000}, "")
		if err != nil || len(ended) != want || more != (want == 1000) {
			t.Errorf("a part: ended %d, %v, %v", len(ended), more, err)
		}
	}
}

// spends returns an authority whose operation fails when it has used that many units.
func spends(a keystore.Authority, units int) keystore.Authority {
	a.Work = &cost.Meter{}
	a.Work.Reset(func() error { return errors.New("too much work") })
	if err := a.Work.Spend(cost.Every - units); err != nil {
		panic(err)
	}
	return a
}

func TestListingThreeSessionsCostsTheSameBesideManyOthers(t *testing.T) {
	others := 3000
	if os.Getenv("RUNNER_SOAK") != "" {
		others = 200_000
	}
	sc := compile(t, cookies)
	ada := session(sc, "acme", "ada")
	alone, w := inMemory(t), inMemory(t)
	for _, one := range []*fixture{alone, w} {
		one.signInMany(sc, 3, func(int) string { return "ada" })
	}
	w.signInMany(sc, others, func(i int) string { return fmt.Sprint("a", i) })
	fastest := map[*fixture]time.Duration{alone: time.Hour, w: time.Hour}
	for range 20 { // alternately
		for _, one := range []*fixture{alone, w} {
			start := time.Now()
			for range 20 {
				if got := one.live(ada, keystore.SessionFilter{}); len(got) != 3 {
					t.Fatalf("lists %d", len(got))
				}
			}
			fastest[one] = min(fastest[one], time.Since(start)/20)
		}
	}
	t.Logf("a list of three takes %v alone and %v beside %d others", fastest[alone], fastest[w], others)
	const enough = 3 * 2 * 2000 // an entry and a record for each
	for _, by := range []keystore.Authority{ada, operator(sc)} {
		if page, err := w.listSessions(spends(by, enough+1), keystore.SessionFilter{UserID: "ada"}); err != nil || len(page.Sessions) != 3 {
			t.Errorf("lists %d, %v", len(page.Sessions), err)
		}
		if page, err := w.listSessions(spends(by, enough-1), keystore.SessionFilter{UserID: "ada"}); fault.CodeOf(err) != fault.Deadline {
			t.Errorf("with too little work it lists %d, %v", len(page.Sessions), err)
		}
	}
	if ended, _, err := w.revokeSessions(spends(ada, enough+3*20_000+1), keystore.SessionFilter{}, ""); err != nil || len(ended) != 3 {
		t.Errorf("ended %d, %v", len(ended), err)
	}
}

// indexed returns how many entries the index by user has.
func (w *fixture) indexed() (n int) {
	w.Helper()
	err := w.store.View(w.Context(), func(tx *store.Tx) error {
		for _, err := range tx.Scan([]byte("keystore/user/"), nil, false) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// forgetIndex makes the session what a version of the runner without the index has written.
func (w *fixture) forgetIndex(s keystore.Session) {
	w.Helper()
	_, err := w.store.Update(w.Context(), func(tx *store.Tx) error {
		value, err := tx.Get([]byte("keystore/session/" + s.ID))
		if err != nil {
			return err
		}
		var record map[string]json.RawMessage
		if err := json.Unmarshal(value, &record); err != nil {
			return err
		}
		if record["indexed"] == nil {
			return errors.New("it is not indexed")
		}
		delete(record, "indexed")
		if value, err = json.Marshal(record); err != nil {
			return err
		}
		for item, err := range tx.Scan([]byte("keystore/user/"), nil, false) {
			if err != nil {
				return err
			}
			if bytes.HasSuffix(item.Key, []byte(s.ID)) {
				if err := tx.Delete(bytes.Clone(item.Key)); err != nil {
					return err
				}
				break
			}
		}
		return tx.Set([]byte("keystore/session/"+s.ID), value)
	})
	if err != nil {
		w.Fatal(err)
	}
}

// TestSessionsMatchAModel runs random changes, listings and restarts, and compares with a plain
// list. Some sessions are those of a version that had no index.
func TestSessionsMatchAModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	w := onDisk(t)
	sc := compile(t, cookies)
	op := operator(sc)
	type entry struct {
		keystore.Session
		revoked bool
	}
	var model []*entry
	users, tenants := []string{"ada", "bob", "bo"}, []string{"", "acme", "acm"}
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	isLive := func(e *entry) bool { return !e.revoked && w.clock.now().Before(e.ExpiresAt) }
	selected := func(f keystore.SessionFilter) (ids []string) {
		for _, e := range model {
			if (f.UserID == "" || e.UserID == f.UserID) && (f.Tenant == nil || e.Tenant == *f.Tenant) && (f.All || isLive(e)) {
				ids = append(ids, e.ID)
			}
		}
		return ids
	}
	steps := 150
	if os.Getenv("RUNNER_SOAK") != "" {
		steps = 5000
	}
	for range steps {
		w.clock.advance(time.Duration(r.IntN(90)) * time.Second)
		f := keystore.SessionFilter{UserID: pick(users)}
		if r.IntN(3) > 0 {
			f.Tenant = new(pick(tenants))
		}
		switch r.IntN(8) {
		case 0, 1, 2:
			ttl := time.Duration(1+r.IntN(30)) * time.Minute
			s := w.mustSession(w.createSession(op, keystore.CreateSessionRequest{UserID: f.UserID, Tenant: pick(tenants), TTL: &ttl}))
			if r.IntN(3) == 0 {
				w.forgetIndex(s)
			}
			model = append(model, &entry{Session: s})
			slices.SortFunc(model, func(a, b *entry) int { return strings.Compare(a.ID, b.ID) })
		case 3:
			if len(model) > 0 {
				e := model[r.IntN(len(model))]
				w.mustSession(w.revokeSession(op, e.ID))
				e.revoked = true
			}
		case 4:
			want, except := selected(f), ""
			if len(want) > 0 && r.IntN(2) == 0 {
				except = want[0]
				want = want[1:]
			}
			ended, more, err := w.revokeSessions(op, f, except)
			if err != nil || more || !slices.Equal(ended, want) {
				t.Fatalf("%+v but %q: ended %v, %v, want %v", f, except, ended, err, want)
			}
			for _, e := range model {
				e.revoked = e.revoked || slices.Contains(ended, e.ID)
			}
		case 5:
			if r.IntN(6) == 0 {
				w.reopen()
			}
		default:
			f.All, f.Limit = r.IntN(2) == 0, 1+r.IntN(5)
			if r.IntN(4) == 0 {
				f.UserID = ""
			}
			if got, want := w.live(op, f), selected(f); !slices.Equal(got, want) {
				t.Fatalf("%+v lists %v, want %v", f, got, want)
			}
		}
	}
}

// Sessions of a version without the index are found by their user, and end and are swept like
// others.
func TestSessionsWithoutAnIndexEntryAreFound(t *testing.T) {
	w := onDisk(t)
	sc := compile(t, cookies)
	create := func(user, tenant string) keystore.Session {
		w.clock.advance(time.Second) // so that their ids are in this order
		return w.mustSession(w.createSession(operator(sc), keystore.CreateSessionRequest{UserID: user, Tenant: tenant}))
	}
	old := []keystore.Session{create("ada", "acme"), create("ada", "beta"), create("bob", "acme")}
	for _, s := range old {
		w.forgetIndex(s)
	}
	fresh := create("ada", "acme")
	ada := session(sc, "acme", "ada")
	for range 2 {
		if got := w.live(ada, keystore.SessionFilter{Limit: 1}); !slices.Equal(got, []string{old[0].ID, fresh.ID}) {
			t.Errorf("lists %v", got)
		}
		w.reopen()
	}
	if ended, _, err := w.revokeSessions(ada, keystore.SessionFilter{}, ""); err != nil || !slices.Equal(ended, []string{old[0].ID, fresh.ID}) {
		t.Errorf("ended %v, %v", ended, err)
	}
	w.dead(sc, old[0], keystore.KeyRevoked)
	w.seen(sc, old[1])
	w.seen(sc, old[2])
	if got := w.indexed(); got != 2 {
		t.Errorf("%d entries: a revoked session has one", got)
	}
}

// A revocation on one node holds on the others, and finds the sessions that they have created.
func TestAllSessionsOfAUserEndOnAllNodes(t *testing.T) {
	sc := compile(t, cookies)
	runNodes(t, func(t *testing.T, _ *storetest.Log, a, b *fixture) {
		made := map[*fixture]keystore.Session{}
		for _, w := range []*fixture{a, b} {
			made[w] = w.mustSession(w.createSession(operator(sc), keystore.CreateSessionRequest{UserID: "ada", Tenant: "acme"}))
		}
		ended, _, err := b.caughtUp().revokeSessions(session(sc, "acme", "ada"), keystore.SessionFilter{}, "")
		if err != nil || len(ended) != 2 {
			t.Errorf("ended %v, %v", ended, err)
		}
		for _, s := range slices.Collect(maps.Values(made)) {
			b.dead(sc, s, keystore.KeyRevoked)
			a.caughtUp().dead(sc, s, keystore.KeyRevoked)
		}
		if got := a.live(operator(sc), keystore.SessionFilter{UserID: "ada"}); got != nil {
			t.Errorf("the other node lists %v", got)
		}
	})
}
