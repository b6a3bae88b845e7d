package keystore_test

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/keystore/credtime"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/store"
)

// TestMain is also the program that TestCrashPoints kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		crash(dir)
		return
	}
	os.Exit(m.Run())
}

// typed is the schema of most tests: every kind of @issue and @manage there is.
const typed = `
app shop
auth {
  session jwt { issuer: "https://id.example.com", audience: "shop", jwks: "https://id.example.com/jwks", algorithms: [EdDSA] }
  roles: [admin, staff]
}
entity Order {
  id: id
  total: int
  @@allow read to session when auth.role == "admin"
}
apiKeys {
  prefix: "ord",
  maxLifetime: 365d, maxGrace: 7d,
  scopes: {
    orders_read: @system("orders.read") {
      @grant read on Order
      @issue when auth.role in ["admin", "staff"]
    },
    orders_write: @system("orders.write") {
      @grant read, write on Order
      @issue when auth.role == "admin"
      @manage when auth.role in ["admin", "staff"] or auth.scope == "minter"
    },
    minted: @system("minted") {
      @grant read on Order
      @issue when auth.scope == "minter"
    },
    minter: @system("minter") {
      @grant read on Order
      @manage when auth.role == "admin"
    },
    everywhere: @system("everywhere") {
      @grant read on Order
      @allTenants
    }
  }
}
routes("/v1", auth: apiKey(orders_read, orders_write, minted, minter, everywhere)) { GET /orders -> listOrders }
`

// untyped is a schema in the seed form, without any setting.
const untyped = `
apiKeys {
  scopes: {
    orders_read: @system("orders.read") { @grant read on Order },
    everywhere: @system("everywhere") { @grant read on Order @allTenants }
  }
}
routes("/v1", auth: apiKey(orders_read, everywhere)) { GET /orders -> listOrders }
`

func compile(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, list := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
	if list.HasErrors() {
		t.Fatal(list)
	}
	return s
}

// clock is the time of a machine, set by hand.
type clock struct {
	ms    atomic.Int64 // what the wall clock shows
	up    atomic.Int64 // ms since the machine was started
	boots int
	// real is the time that really passed, independent of the clocks.
	real time.Duration
	// synchronized: the wall clock follows a time server.
	synchronized bool
}

func newClock() *clock {
	c := &clock{}
	c.set(noon)
	return c
}

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func (c *clock) now() time.Time { return time.UnixMilli(c.ms.Load()) }

// set sets the wall clock, as an operator or a time server does.
func (c *clock) set(t time.Time) { c.ms.Store(t.UnixMilli()) }

// step sets the wall clock by d.
func (c *clock) step(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// advance lets time pass.
func (c *clock) advance(d time.Duration) {
	c.ms.Add(d.Milliseconds())
	c.up.Add(d.Milliseconds())
	c.real += d
}

// reboot restarts the machine after it was off for d.
func (c *clock) reboot(d time.Duration) {
	c.ms.Add(d.Milliseconds())
	c.up.Store(0)
	c.real += d
	c.boots++
}

func (c *clock) machine() credtime.Machine {
	return credtime.Machine{
		Wall:         c.now,
		Uptime:       func() time.Duration { return time.Duration(c.up.Load()) * time.Millisecond },
		Boot:         fmt.Sprint("boot ", c.boots),
		Synchronized: func() bool { return c.synchronized },
	}
}

// fixture is a store with its keys.
type fixture struct {
	testing.TB
	clock *clock
	store *store.Store
	keys  *keystore.Keystore
	opt   keystore.Options
}

// inMemory opens a fixture that leaves nothing behind.
func inMemory(t testing.TB) *fixture {
	w := &fixture{TB: t, clock: newClock()}
	w.open()
	return w
}

// onDisk opens a fixture in a new directory.
func onDisk(t testing.TB) *fixture {
	w := &fixture{TB: t, clock: newClock(), opt: keystore.Options{Dir: t.TempDir()}}
	w.open()
	return w
}

func (w *fixture) open() {
	w.Helper()
	if err := w.tryOpen(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(w.close)
}

func (w *fixture) tryOpen() (err error) {
	w.opt.Machine = w.clock.machine()
	if w.store, err = store.Open(store.Options{Dir: w.opt.Dir, Clock: w.clock.now}); err != nil {
		return err
	}
	if w.keys, err = keystore.Open(w.Context(), w.store, w.opt); err != nil {
		return errors.Join(err, w.store.Close())
	}
	return nil
}

func (w *fixture) close() {
	if w.keys == nil {
		return
	}
	if err := errors.Join(w.keys.Close(), w.store.Close()); err != nil {
		w.Error(err)
	}
	w.keys = nil
}

// reopen is a restart of the server.
func (w *fixture) reopen() {
	w.Helper()
	w.close()
	w.open()
}

func operator(s *schema.Schema) keystore.Authority {
	return keystore.Authority{
		Schema: s, Caller: caller.Caller{Kind: caller.System, UserID: "uid:1000"}, RequestID: "01jtest", Address: "192.0.2.7",
	}
}

func session(s *schema.Schema, tenant, user string, roles ...string) keystore.Authority {
	return keystore.Authority{Schema: s, Caller: caller.Caller{Kind: caller.Session, UserID: user, Tenant: tenant, Roles: roles}}
}

// change runs one operation in its own transaction.
func (w *fixture) change(fn func(*store.Tx) (keystore.Key, error)) (key keystore.Key, err error) {
	_, err = w.store.Update(w.Context(), func(tx *store.Tx) (err error) {
		key, err = fn(tx)
		return err
	})
	return key, err
}

// dry runs fn in a transaction that is not committed, and returns its error.
func (w *fixture) dry(fn func(*store.Tx) error) error {
	w.Helper()
	var done error
	undo := errors.New("undo")
	if _, err := w.store.Update(w.Context(), func(tx *store.Tx) error {
		done = fn(tx)
		return undo
	}); err != undo {
		w.Fatal(err)
	}
	return done
}

func (w *fixture) create(a keystore.Authority, req keystore.CreateRequest) (keystore.Key, error) {
	return w.change(func(tx *store.Tx) (keystore.Key, error) { return w.keys.Create(tx, a, req) })
}

func (w *fixture) rotate(a keystore.Authority, id string, grace time.Duration) (keystore.Key, error) {
	return w.change(func(tx *store.Tx) (keystore.Key, error) { return w.keys.Rotate(tx, a, id, grace) })
}

func (w *fixture) revoke(a keystore.Authority, id string) (keystore.Key, error) {
	return w.change(func(tx *store.Tx) (keystore.Key, error) { return w.keys.Revoke(tx, a, id) })
}

func (w *fixture) disable(a keystore.Authority, id string) (keystore.Key, error) {
	return w.change(func(tx *store.Tx) (keystore.Key, error) { return w.keys.Disable(tx, a, id) })
}

func (w *fixture) enable(a keystore.Authority, id string) (keystore.Key, error) {
	return w.change(func(tx *store.Tx) (keystore.Key, error) { return w.keys.Enable(tx, a, id) })
}

func (w *fixture) get(a keystore.Authority, id string) (key keystore.Key, err error) {
	err = w.store.View(w.Context(), func(tx *store.Tx) (err error) {
		key, err = w.keys.Get(tx, a, id)
		return err
	})
	return key, err
}

func (w *fixture) list(a keystore.Authority, f keystore.Filter) (page keystore.Page, err error) {
	err = w.store.View(w.Context(), func(tx *store.Tx) (err error) {
		page, err = w.keys.List(tx, a, f)
		return err
	})
	return page, err
}

// must returns the key of a call that must succeed.
func (w *fixture) must(key keystore.Key, err error) keystore.Key {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	return key
}

// refuses checks that a call failed with the code and text.
func (w *fixture) refuses(code fault.Code, err error) {
	w.Helper()
	if got := fault.CodeOf(err); got != code {
		w.Errorf("refused with %q (%v), want %q", got, err, code)
	}
	if err != nil && fault.Of(err).Detail == "" {
		w.Errorf("refused without a word: %v", err)
	}
}

// good checks that the token is accepted as the key's.
func (w *fixture) accepts(key keystore.Key) {
	w.Helper()
	got, err := w.keys.Verify([]byte(key.Token.Reveal()))
	if err != nil {
		w.Fatalf("a good token is refused: %v", got.Refused)
	}
	if got.ID != key.ID || got.Scope != key.Scope || got.Capability != key.Capability || got.Tenant != key.Tenant ||
		string(got.Metadata) != string(key.Metadata) || got.Refused != "" {
		w.Errorf("the token of %+v is that of %+v", key, got)
	}
}

// bad checks that the token is refused for the reason.
func (w *fixture) rejects(key keystore.Key, reason keystore.Reason) {
	w.Helper()
	got, err := w.keys.Verify([]byte(key.Token.Reveal()))
	if err != keystore.ErrInvalidToken || got.Refused != reason {
		w.Errorf("the token gives %v for %q, want it refused for %q", err, got.Refused, reason)
	}
	if got.Scope != "" || got.Tenant != "" || got.Metadata != nil {
		w.Errorf("a refused token has the identity %+v", got)
	}
}

func lasting(d time.Duration) *time.Duration { return &d }

const day = 24 * time.Hour
