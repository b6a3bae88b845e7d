package keystore_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/state/audit"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// runNodes runs test, in a synctest bubble, with the keystores of two nodes that share one log and
// one pepper. Each has its clock. The first one is the owner.
func runNodes(t *testing.T, test func(t *testing.T, log *storetest.Log, a, b *fixture)) {
	pepper := filepath.Join(t.TempDir(), "pepper")
	synctest.Test(t, func(t *testing.T) {
		log := storetest.NewLog()
		var nodes []*fixture
		for _, name := range []string{"a", "b"} {
			clock := newClock()
			opt := keystore.Options{Machine: clock.machine(), PepperFile: pepper, KeepDead: 10 * day}
			st := log.Open(t, store.Options{Name: name, Clock: clock.now})
			if name == "a" {
				storetest.Own(t, st)
			}
			storetest.CatchUp(t, st)
			keys, err := keystore.Open(t.Context(), st, opt)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := keys.Close(); err != nil {
					t.Error(err)
				}
			})
			nodes = append(nodes, &fixture{TB: t, clock: clock, store: st, keys: keys, opt: opt})
		}
		test(t, log, nodes[0], nodes[1])
	})
}

// caughtUp returns w when it has applied what the other node has acknowledged.
func (w *fixture) caughtUp() *fixture {
	w.Helper()
	storetest.CatchUp(w, w.store)
	return w
}

func TestAChangeOfACredentialAppliesOnAllNodes(t *testing.T) {
	s, sc := compile(t, typed), compile(t, cookies)
	runNodes(t, func(t *testing.T, _ *storetest.Log, a, b *fixture) {
		op := operator(s)
		for _, pair := range [][2]*fixture{{a, b}, {b, a}} {
			here, there := pair[0], pair[1]
			key := here.must(here.create(op, keystore.CreateRequest{Scope: "orders_read"}))
			there.caughtUp().accepts(key)
			epoch := there.keys.Epoch()
			next := here.must(here.rotate(op, key.ID, time.Minute))
			if there.caughtUp().keys.Epoch() == epoch {
				t.Error("the epoch is that of before the change")
			}
			there.accepts(next)
			there.accepts(key) // in grace
			a.clock.advance(2 * time.Minute)
			b.clock.advance(2 * time.Minute)
			there.rejects(key, keystore.GraceOver)
			here.must(here.disable(op, key.ID))
			there.caughtUp().rejects(next, keystore.KeyOff)
			here.must(here.enable(op, key.ID))
			there.caughtUp().accepts(next)
			here.must(here.revoke(op, key.ID))
			there.caughtUp().rejects(next, keystore.KeyRevoked)

			login := here.mustSession(here.createSession(operator(sc), keystore.CreateSessionRequest{UserID: "ada"}))
			there.caughtUp().seen(sc, login)
			here.mustSession(here.revokeSession(op, login.ID))
			there.caughtUp().dead(sc, login, keystore.KeyRevoked)

			platform := here.mustPlatform(here.createPlatform(op, keystore.CreatePlatformKey{Name: "ci", Role: keystore.RoleDeploy}))
			there.caughtUp().verifies(platform, "")
			here.mustPlatform(here.revokePlatform(op, platform.ID))
			there.caughtUp().verifies(platform, keystore.KeyRevoked)
		}
	})
}

func TestTheLimitOfKeysCountsThoseOfAllNodes(t *testing.T) {
	s := compile(t, strings.Replace(typed, "maxGrace: 7d,", "maxGrace: 7d, maxPerTenant: 3,", 1))
	runNodes(t, func(t *testing.T, _ *storetest.Log, a, b *fixture) {
		boss := session(s, "acme", "u1", "admin")
		for _, w := range []*fixture{a, b, a} {
			w.must(w.create(boss, keystore.CreateRequest{Scope: "orders_read"})) // b may conflict, and run again
		}
		for _, w := range []*fixture{a, b} {
			_, err := w.create(boss, keystore.CreateRequest{Scope: "orders_read"})
			w.refuses(fault.Conflict, err)
		}
	})
}

// Both nodes write the last use of one key. The one with the earlier time writes last.
func TestTheLaterOfTwoLastUsesIsKept(t *testing.T) {
	s := compile(t, typed)
	runNodes(t, func(t *testing.T, log *storetest.Log, a, b *fixture) {
		op := operator(s)
		key := a.must(a.create(op, keystore.CreateRequest{Scope: "orders_read"}))
		b.caughtUp()
		stored := func() time.Time {
			t.Helper()
			storetest.CatchUp(t, a.store, b.store)
			var ms uint64
			err := a.store.View(t.Context(), func(tx *store.Tx) error {
				value, err := tx.Get([]byte("keystore/use/" + key.ID))
				if err == nil {
					ms = binary.BigEndian.Uint64(value)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return time.UnixMilli(int64(ms)).UTC()
		}
		a.clock.advance(time.Hour)
		b.clock.advance(30 * time.Minute)
		release := log.Hold("b")
		b.accepts(key)
		a.accepts(key)
		if err := a.keys.Close(); err != nil { // which writes the last use
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // b writes its one, and has not heard of the other
		release()
		synctest.Wait()
		if got, want := stored(), noon.Add(time.Hour); !got.Equal(want) {
			t.Errorf("stored %v, want %v", got, want)
		}
		if got := b.must(b.get(op, key.ID)); !got.LastUsedAt.Equal(noon.Add(time.Hour)) {
			t.Errorf("on the other node it was last used %v", got.LastUsedAt)
		}
		b.clock.advance(2 * time.Hour)
		b.accepts(key)
		time.Sleep(2 * time.Minute)
		if got, want := stored(), noon.Add(150*time.Minute); !got.Equal(want) {
			t.Errorf("stored %v, want %v", got, want)
		}
	})
}

// The owner has not heard yet that the other node has used a session, which would have ended a day
// ago otherwise.
func TestASweepReadsTheLastUseOfASessionAgain(t *testing.T) {
	sc := compile(t, cookies) // 30 minutes idle
	runNodes(t, func(t *testing.T, log *storetest.Log, a, b *fixture) {
		op := operator(sc)
		used := a.mustSession(a.createSession(op, keystore.CreateSessionRequest{UserID: "ada"}))
		unused := a.mustSession(a.createSession(op, keystore.CreateSessionRequest{UserID: "bob"}))
		b.clock.advance(20 * time.Minute)
		b.caughtUp().seen(sc, used)
		release := log.Hold("a")
		time.Sleep(2 * time.Minute) // b writes the use
		a.clock.advance(day + 45*time.Minute)
		time.Sleep(time.Hour) // a sweeps, and its transaction waits
		release()
		synctest.Wait()
		storetest.CatchUp(t, a.store, b.store)
		for _, w := range []*fixture{a, b} {
			w.dead(sc, unused, keystore.Unknown)
		}
		a.dead(sc, used, keystore.KeyExpired)
		b.seen(sc, used)
	})
}

// A session is deleted before the last use on another node is written.
func TestNoLastUseOfADeletedSessionIsWritten(t *testing.T) {
	sc := compile(t, cookies)
	runNodes(t, func(t *testing.T, _ *storetest.Log, a, b *fixture) {
		op := operator(sc)
		s := a.mustSession(a.createSession(op, keystore.CreateSessionRequest{UserID: "ada"}))
		b.clock.advance(20 * time.Minute)
		b.caughtUp().seen(sc, s)
		if _, err := a.store.Update(t.Context(), func(tx *store.Tx) error { return tx.Delete([]byte("keystore/session/" + s.ID)) }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		err := b.caughtUp().store.View(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Get([]byte("keystore/use/" + s.ID))
			return err
		})
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the last use of a session that does not exist: %v", err)
		}
	})
}

func TestOnlyTheOwnerSweeps(t *testing.T) {
	s, sc := compile(t, strings.Replace(typed, "maxGrace: 7d,", "maxGrace: 7d, maxPerTenant: 3,", 1)), compile(t, cookies)
	runNodes(t, func(t *testing.T, _ *storetest.Log, a, b *fixture) {
		boss, op := session(s, "acme", "u1", "admin"), operator(sc)
		pass := func(w *fixture, d time.Duration) { // with the tickers of the background tasks
			w.clock.advance(d)
			time.Sleep(time.Hour + time.Minute)
			storetest.CatchUp(t, a.store, b.store)
		}
		// left returns how many keys, sessions and platform keys the store has.
		left := func() string {
			t.Helper()
			page, err := a.list(operator(s), keystore.Filter{All: true})
			if err != nil {
				t.Fatal(err)
			}
			sessions, err := a.listSessions(op, keystore.SessionFilter{All: true})
			if err != nil {
				t.Fatal(err)
			}
			platform, err := a.listPlatform(op, true)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(len(page.Keys), len(sessions.Sessions), len(platform))
		}
		for round, pair := range [][2]*fixture{{a, b}, {b, a}} {
			owner, other := pair[0], pair[1]
			storetest.Own(t, owner.store)
			other.caughtUp()
			var keys []keystore.Key
			for _, w := range []*fixture{a, b, a} { // as many as the tenant may have
				keys = append(keys, w.must(w.create(boss, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)})))
			}
			login := a.mustSession(a.createSession(op, keystore.CreateSessionRequest{UserID: "ada"}))
			platform := a.mustPlatform(a.createPlatform(op, keystore.CreatePlatformKey{Name: "ci", Role: keystore.RoleRead, ExpiresIn: lasting(time.Hour)}))
			storetest.CatchUp(t, a.store, b.store)
			pass(other, 12*day)
			if got := left(); got != "3 1 1" {
				t.Errorf("round %d: after the sweep of the other node %s are left", round, got)
			}
			other.rejects(keys[0], keystore.KeyExpired)
			pass(owner, 12*day)
			if got := left(); got != "0 0 0" {
				t.Errorf("round %d: after the sweep of the owner %s are left", round, got)
			}
			pass(other, 0) // it drops from memory what was deleted
			for _, w := range []*fixture{a, b} {
				w.rejects(keys[0], keystore.Unknown)
				w.dead(sc, login, keystore.Unknown)
				w.verifies(platform, keystore.Unknown)
			}
		}
		entries, err := audit.List(t.Context(), a.store, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		var sweeps []string
		for _, e := range entries {
			if strings.HasSuffix(e.Action, ".sweep") {
				sweeps = append(sweeps, fmt.Sprint(e.Node, " ", e.Action, " ", e.Count))
			}
		}
		want := []string{"a apiKeys.sweep 3", "a platformKeys.sweep 1", "b apiKeys.sweep 3", "b platformKeys.sweep 1"}
		if !slices.Equal(sweeps, want) {
			t.Errorf("the audit has %q, want %q", sweeps, want)
		}
	})
}

// Last uses that the log refuses are written when it takes entries again.
func TestLastUsesAreKeptUntilTheyAreWritten(t *testing.T) {
	s := compile(t, typed)
	runNodes(t, func(t *testing.T, log *storetest.Log, a, b *fixture) {
		op := operator(s)
		key := a.must(a.create(op, keystore.CreateRequest{Scope: "orders_read"}))
		a.clock.advance(time.Hour)
		a.accepts(key)
		log.Refuse(fault.New(fault.Unavailable, "the log is full"))
		time.Sleep(150 * time.Second) // two rounds of the background task, and no round begins now
		log.Refuse(nil)
		if got := b.must(b.caughtUp().get(op, key.ID)); !got.LastUsedAt.IsZero() {
			t.Errorf("the log is full, and has the use %v", got.LastUsedAt)
		}
		time.Sleep(2 * time.Minute)
		if got := b.must(b.caughtUp().get(op, key.ID)); !got.LastUsedAt.Equal(noon.Add(time.Hour)) {
			t.Errorf("last used %v", got.LastUsedAt)
		}
	})
}

// A node that was the owner does no background work from the moment it is disowned, although the store
// still has it as the owner.
func TestADisownedOwnerSweepsNothing(t *testing.T) {
	s, old, sc := compile(t, typed), compile(t, generous), compile(t, cookies)
	runNodes(t, func(t *testing.T, _ *storetest.Log, a, _ *fixture) {
		ada := session(old, "", "ada")
		a.age(a.must(a.create(ada, keystore.CreateRequest{Scope: "minted"})))
		op := operator(sc)
		key := a.must(a.create(session(s, "acme", "u1", "admin"), keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
		login := a.mustSession(a.createSession(op, keystore.CreateSessionRequest{UserID: "ada"}))
		platform := a.mustPlatform(a.createPlatform(op, keystore.CreatePlatformKey{Name: "ci", Role: keystore.RoleRead, ExpiresIn: lasting(time.Hour)}))
		a.accepts(key)
		a.seen(sc, login)
		a.verifies(platform, "")
		time.Sleep(2 * time.Minute) // until the uses are written
		content := func() (all []string) {
			err := a.store.View(t.Context(), func(tx *store.Tx) error {
				for item, err := range tx.Scan([]byte("keystore/"), nil, false) {
					if err != nil {
						return err
					}
					all = append(all, string(item.Key))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		pass := func() { // with the tickers of the background task
			time.Sleep(time.Hour + time.Minute)
			storetest.CatchUp(t, a.store)
		}
		a.store.Disown()
		before := content()
		a.clock.advance(12 * day)
		pass()
		if after := content(); !slices.Equal(after, before) {
			t.Errorf("it was disowned, and made of %q\n%q", before, after)
		}
		storetest.Own(t, a.store)
		pass()
		for _, id := range []string{key.ID, login.ID, platform.ID} { // their uses too
			has := func(key string) bool { return strings.HasSuffix(key, id) }
			if after := content(); slices.ContainsFunc(after, has) || !slices.ContainsFunc(before, has) {
				t.Errorf("the owner made of %q\n%q", before, after)
			}
		}
	})
}

// Keys expire while another node is the owner, which stops before it has moved them.
func TestANewOwnerMovesKeysThatExpiredBefore(t *testing.T) {
	s := compile(t, strings.Replace(typed, "maxGrace: 7d,", "maxGrace: 7d, maxPerTenant: 3,", 1))
	runNodes(t, func(t *testing.T, _ *storetest.Log, a, b *fixture) {
		boss := session(s, "acme", "u1", "admin")
		for range 3 {
			b.must(b.create(boss, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
		}
		b.clock.advance(2 * time.Hour) // that of a shows an earlier time
		time.Sleep(2 * time.Minute)
		count := func() (listed int) {
			err := b.caughtUp().store.View(t.Context(), func(tx *store.Tx) error {
				for _, err := range tx.Scan([]byte("keystore/tenant/"), nil, false) {
					if err != nil {
						return err
					}
					listed++
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return listed
		}
		if n := count(); n != 3 {
			t.Errorf("%d keys are in the list of live ones, and their owner has moved none", n)
		}
		storetest.Own(t, b.store)
		time.Sleep(2 * time.Minute)
		if n := count(); n != 0 {
			t.Errorf("the new owner has left %d expired keys in the list", n)
		}
	})
}

func TestOnePepperIsTheCheckOfAllNodes(t *testing.T) {
	log := storetest.NewLog()
	stores := log.Nodes(t, "a", "b")
	type opened struct {
		keys *keystore.Keystore
		err  error
	}
	results := make(chan opened, 2)
	for _, st := range stores {
		opt := keystore.Options{Dir: t.TempDir()} // without a pepper: each node creates its own
		go func() {
			keys, err := keystore.Open(t.Context(), st, opt)
			results <- opened{keys, err}
		}()
	}
	failed := 0
	for range stores {
		switch got := <-results; {
		case got.err == nil:
			if err := got.keys.Close(); err != nil {
				t.Error(err)
			}
		case fault.CodeOf(got.err) == fault.Invalid:
			failed++
		default:
			t.Error(got.err)
		}
	}
	if failed != 1 {
		t.Errorf("%d of two nodes with different peppers are refused", failed)
	}
}

// A key that an older node wrote is in the lists of both nodes at once. The owner of the store
// writes its entry, and each node then reads the list of the owner again.
func TestOnlyTheStoreOwnerAddsOldKeysToOwnerLists(t *testing.T) {
	s := compile(t, generous)
	runNodes(t, func(t *testing.T, _ *storetest.Log, a, b *fixture) {
		ada := session(s, "", "ada")
		key := b.must(b.create(ada, keystore.CreateRequest{Scope: "minted"}))
		b.age(key)
		nodes := []*fixture{a.caughtUp(), b.caughtUp()}
		whole := func(entries int) {
			t.Helper()
			for i, w := range nodes {
				if page, err := w.caughtUp().list(ada, keystore.Filter{}); err != nil || !slices.Equal(ids(page), []string{key.ID}) {
					t.Errorf("node %d lists %v, %v", i, ids(page), err)
				}
				if got := w.owned(); len(got) != entries {
					t.Errorf("node %d has the entries %q, want %d", i, got, entries)
				}
			}
		}
		whole(0)
		for _, step := range []struct {
			node    *fixture
			entries int
		}{{b, 0}, {a, 1}, {b, 1}, {a, 1}} {
			if err := step.node.keys.AddToOwnerLists(t.Context()); err != nil {
				t.Fatal(err)
			}
			whole(step.entries)
		}
		if n := a.keys.Unlisted() + b.keys.Unlisted(); n != 0 {
			t.Errorf("%d keys count as without a list", n)
		}
	})
}
