package keystore_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/keystore/credtime"
	"runner.example/state/store"
)

func TestClockGoesBack(t *testing.T) {
	w := onDisk(t)
	var log bytes.Buffer
	w.opt.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.reopen()
	op := operator(compile(t, typed))
	short := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
	long := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(30 * day)}))
	w.clock.advance(2 * time.Hour)
	w.rejects(short, keystore.KeyExpired)

	// A little back is what time servers do.
	w.clock.step(-5 * time.Minute)
	w.rejects(short, keystore.KeyExpired)
	w.accepts(long)
	if log.Len() > 0 {
		t.Errorf("warned of five minutes: %s", log.String())
	}

	// Far back, expired keys stay expired.
	w.clock.set(noon)
	for range 3 {
		w.rejects(short, keystore.KeyExpired)
		w.accepts(long)
	}
	if key := w.must(w.get(op, short.ID)); key.Status != keystore.Expired {
		t.Errorf("the expired key is %s", key.Status)
	}
	_, err := w.rotate(op, short.ID, 0)
	w.refuses(fault.Conflict, err)
	if got := strings.Count(log.String(), "clock set back"); got != 1 {
		t.Errorf("warned %d times:\n%s", got, log.String())
	}
	if err := w.keys.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	fresh := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
	w.accepts(fresh)
	w.clock.advance(time.Hour)
	w.rejects(fresh, keystore.KeyExpired)

	// Nor after a restart.
	w.reopen()
	w.rejects(short, keystore.KeyExpired)
	w.accepts(long)

	// A correct clock is trusted again, and the next jump back is logged.
	w.clock.set(noon.Add(3 * time.Hour))
	w.accepts(long)
	log.Reset()
	w.clock.set(noon)
	w.rejects(short, keystore.KeyExpired)
	w.accepts(long)
	if !strings.Contains(log.String(), "clock set back") {
		t.Error("the second backward jump of the clock is not logged")
	}
}

// credentials are a key, the old token of a rotated key and a session, each of an hour.
type credentials struct {
	made         time.Duration // when, by the time that really passed
	key, rotated keystore.Key
	old          keystore.Key // rotated, with its first token
	session      keystore.Session
}

func (w *fixture) credentials(a keystore.Authority, made time.Duration) (c credentials, err error) {
	c.made = made
	hour := lasting(time.Hour)
	var errs [4]error
	c.key, errs[0] = w.create(a, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: hour})
	c.old, errs[1] = w.create(a, keystore.CreateRequest{Scope: "orders_read"})
	c.rotated, errs[2] = w.rotate(a, c.old.ID, time.Hour)
	c.session, errs[3] = w.createSession(a, keystore.CreateSessionRequest{UserID: "ada", TTL: hour})
	return c, errors.Join(errs[:]...)
}

// accepted returns which of them are valid, as a word.
func (w *fixture) accepted(a keystore.Authority, c credentials) string {
	var good []string
	for name, key := range map[string]keystore.Key{"key": c.key, "old token": c.old} {
		if _, err := w.keys.Verify([]byte(key.Token.Reveal())); err == nil {
			good = append(good, name)
		}
	}
	if _, err := w.keys.VerifySession(a.Schema, valueOf(c.session)); err == nil {
		good = append(good, "session")
	}
	switch len(good) {
	case 0:
		return "none"
	case 3:
		return "all"
	}
	return strings.Join(good, ", ")
}

// both is a schema with keys, and sessions that are not idle within an hour.
const both = `
auth { session cookie { idle: 2h } }
entity Order { id: id @@allow read to session }
apiKeys { scopes: { orders_read: @system("orders.read") { @grant read on Order } } }
routes("/v1", auth: session) { GET /orders -> listOrders }
`

func TestCredentialsEndOnTimeAfterTheClockWasAheadOnce(t *testing.T) {
	w := onDisk(t)
	op := operator(compile(t, both))
	before, err := w.credentials(op, 0)
	if err != nil {
		t.Fatal(err)
	}
	revoked := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	w.must(w.revoke(op, revoked.ID))
	lasts := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	w.clock.step(400 * day)
	w.accepts(lasts) // the one request
	during, err := w.credentials(op, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.clock.step(-400 * day)
	w.accepts(lasts)
	after, err := w.credentials(op, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := after.key.ExpiresAt; !got.Equal(noon.Add(time.Hour)) {
		t.Errorf("a key of an hour made at noon ends at %v", got)
	}
	for _, now := range []struct {
		passes time.Duration
		want   string
	}{{0, "all"}, {time.Hour - time.Second, "all"}, {time.Second, "none"}, {day, "none"}, {300 * day, "none"}} {
		for range 30 { // in steps, as a server sees time
			w.clock.advance((now.passes / 30).Truncate(time.Second))
			w.accepts(lasts)
		}
		w.clock.advance(now.passes - 30*(now.passes/30).Truncate(time.Second))
		for name, c := range map[string]credentials{"before": before, "during": during, "after": after} {
			if got := w.accepted(op, c); got != now.want {
				t.Errorf("%v on, of what was made %s the jump %s is valid, want %s", now.passes, name, got, now.want)
			}
		}
		w.rejects(revoked, keystore.KeyRevoked)
	}
}

// Every order of what can happen to a clock, against what really passed.
func TestNoSequenceOfClockJumpsExtendsALifetime(t *testing.T) {
	type event struct {
		name string
		do   func(*fixture)
		// shortens: a trusted jump and time while the machine is off end credentials early.
		shortens bool
	}
	events := []event{
		{"a second passes", func(w *fixture) { w.clock.advance(time.Second) }, false},
		{"40 min pass", func(w *fixture) { w.clock.advance(40 * time.Minute) }, false},
		{"2 h pass", func(w *fixture) { w.clock.advance(2 * time.Hour) }, false},
		{"4 min back", func(w *fixture) { w.clock.step(-4 * time.Minute) }, false},
		{"20 h ahead", func(w *fixture) { w.clock.step(20 * time.Hour) }, true},
		{"20 h back", func(w *fixture) { w.clock.step(-20 * time.Hour) }, false},
		{"400 d ahead", func(w *fixture) { w.clock.step(400 * day) }, false},
		{"400 d back", func(w *fixture) { w.clock.step(-400 * day) }, false},
		{"restart", func(w *fixture) { w.restart() }, false},
		{"killed and restarted", func(w *fixture) { w.kill() }, false},
		{"off for 10 min", func(w *fixture) { w.closeKeys(); w.clock.reboot(10 * time.Minute); w.openKeys() }, true},
		{"off for 60 d", func(w *fixture) { w.closeKeys(); w.clock.reboot(60 * day); w.openKeys() }, true},
	}
	length, orders := 2, 1
	switch {
	case os.Getenv("RUNNER_SOAK") == "1":
		length = 3
	case testing.Short():
		length = 1
	}
	for range length {
		orders *= len(events)
	}
	op := operator(compile(t, both))
	for order := range orders {
		w := inMemoryFor(t, t.TempDir())
		var applied []string
		var made []credentials
		shortened, quarantined := false, false
		var plausible time.Duration // when the clock last was, in real time
		check := func() {
			shortened = shortened || quarantined && w.clock.real-plausible >= time.Hour // the clock is trusted again
			if quarantined = w.keys.Ready() != nil; !quarantined {
				plausible = w.clock.real
			}
			for _, c := range made {
				age, good := w.clock.real-c.made, w.accepted(op, c)
				if age >= time.Hour && good != "none" || age < time.Hour && !shortened && good != "all" {
					t.Errorf("%s: at the age of %v %s is valid", strings.Join(applied, ", "), age, good)
				}
			}
		}
		for i, rest := 0, order; i <= length; i++ {
			check()
			if c, err := w.credentials(op, w.clock.real); err == nil {
				if good := w.accepted(op, c); good != "all" {
					t.Errorf("%s: of the new credentials %s is valid", strings.Join(applied, ", "), good)
				}
				made = append(made, c)
			} else if fault.CodeOf(err) != fault.Unavailable || w.keys.Ready() == nil {
				t.Fatalf("%v: %v", applied, err)
			}
			if i < length {
				e := events[rest%len(events)]
				rest /= len(events)
				applied, shortened = append(applied, e.name), shortened || e.shortens
				e.do(w)
			}
		}
		for range 6 { // only time passes
			w.clock.advance(10 * time.Minute)
			check()
		}
		w.close()
		if t.Failed() {
			return
		}
	}
}

// inMemoryFor opens a fixture with a store in memory that outlives its keystore; dir has
// the files beside the store.
func inMemoryFor(t testing.TB, dir string) *fixture {
	t.Helper()
	w := &fixture{TB: t, clock: newClock(), opt: keystore.Options{Dir: dir}}
	var err error
	if w.store, err = store.Open(store.Options{}); err != nil {
		t.Fatal(err)
	}
	w.openKeys()
	return w
}

// openKeys and closeKeys start and end a server whose store, in memory, outlives it.
func (w *fixture) openKeys() {
	w.Helper()
	w.opt.Machine = w.clock.machine()
	var err error
	if w.keys, err = keystore.Open(w.Context(), w.store, w.opt); err != nil {
		w.Fatal(err)
	}
}

func (w *fixture) closeKeys() {
	w.Helper()
	if err := w.keys.Close(); err != nil {
		w.Fatal(err)
	}
	w.keys = nil
}

func (w *fixture) restart() {
	w.Helper()
	w.closeKeys()
	w.openKeys()
}

// kill restarts a server that wrote nothing at its end.
func (w *fixture) kill() {
	w.Helper()
	path := filepath.Join(w.opt.Dir, "clock")
	text, err := os.ReadFile(path)
	w.closeKeys()
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	} else {
		err = os.Remove(path)
	}
	if err != nil {
		w.Fatal(err)
	}
	w.openKeys()
}

func TestAQuarantinedClockIsTrustedAfterAnHourOrWhenAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		do      func(*fixture)
		trusted bool
	}{
		"not before an hour": {func(w *fixture) { w.clock.advance(time.Hour - time.Second) }, false},
		"after an hour":      {func(w *fixture) { w.clock.advance(time.Hour) }, true},
		"not while it jumps": {func(w *fixture) {
			for range 4 {
				w.clock.advance(40 * time.Minute)
				w.clock.step(2 * time.Minute)
				_ = w.keys.Ready()
			}
		}, false},
		"not for a time server alone": {func(w *fixture) { w.clock.synchronized = true }, false},
		"by an operator": {func(w *fixture) {
			if _, err := w.keys.AcceptClock(w.Context(), operator(nil)); err != nil {
				w.Fatal(err)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := onDisk(t)
			var log bytes.Buffer
			w.opt.Logger = slog.New(slog.NewTextHandler(&log, nil))
			w.reopen()
			op := operator(compile(t, typed))
			key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(30 * day)}))
			w.clock.step(40 * day)
			for range 3 {
				w.accepts(key)
			}
			reason := w.keys.Ready()
			if reason == nil || !strings.Contains(reason.Error(), "40.0d ahead") {
				t.Errorf("ready says %v", reason)
			}
			c.do(w)
			if !c.trusted {
				w.accepts(key)
				if w.keys.Ready() == nil {
					t.Error("the clock is trusted")
				}
				w.clock.step(-40*day - 8*time.Minute)
				w.accepts(key)
				if err := w.keys.Ready(); err != nil {
					t.Errorf("the clock is right again, and ready says %v", err)
				}
			} else {
				w.rejects(key, keystore.KeyExpired)
				if err := w.keys.Ready(); err != nil {
					t.Errorf("ready says %v", err)
				}
				w.reopen() // and this is kept
				w.rejects(key, keystore.KeyExpired)
			}
			if !strings.Contains(log.String(), `msg="clock quarantined"`) {
				t.Errorf("the log says\n%s", log.String())
			}
		})
	}
}

func TestJumpsOfTheClockWithinAnHourAreAddedUp(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(2 * day)}))
	for range 100 {
		w.clock.step(10 * time.Hour)
		w.accepts(key)
	}
	if w.keys.Ready() == nil {
		t.Error("a clock that went ahead by 41 days in steps is trusted")
	}
}

func TestTheServerStartsAfterTheMachineWasOffForLong(t *testing.T) {
	made := func(t *testing.T) (w *fixture, a keystore.Authority, short, long keystore.Key) {
		w = onDisk(t)
		a = operator(compile(t, typed))
		short = w.must(w.create(a, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(30 * day)}))
		long = w.must(w.create(a, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(90 * day)}))
		w.close()
		return w, a, short, long
	}
	fresh := func(w *fixture, a keystore.Authority) {
		w.Helper()
		key := w.must(w.create(a, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
		w.accepts(key)
		w.clock.advance(time.Hour)
		w.rejects(key, keystore.KeyExpired)
	}
	t.Run("with a time server", func(t *testing.T) {
		w, a, short, long := made(t)
		w.clock.reboot(60 * day)
		w.clock.synchronized = true
		w.open()
		if err := w.keys.Ready(); err != nil {
			t.Error(err)
		}
		w.rejects(short, keystore.KeyExpired)
		w.accepts(long)
		fresh(w, a)
	})
	t.Run("with one that comes later", func(t *testing.T) {
		w, a, short, long := made(t)
		w.clock.reboot(60 * day)
		w.open()
		reason := w.keys.Ready()
		if reason == nil || !strings.Contains(reason.Error(), "not synchronized with a time server") {
			t.Errorf("ready says %v", reason)
		}
		w.rejects(short, keystore.KeyExpired) // it may have been off
		w.accepts(long)
		_, err := w.create(a, keystore.CreateRequest{Scope: "orders_read"})
		w.refuses(fault.Unavailable, err)
		_, err = w.rotate(a, long.ID, time.Hour)
		w.refuses(fault.Unavailable, err)
		w.reopen() // the clock stays quarantined
		_, err = w.create(a, keystore.CreateRequest{Scope: "orders_read"})
		w.refuses(fault.Unavailable, err)
		w.must(w.revoke(a, short.ID))
		w.clock.synchronized = true
		w.clock.advance(time.Minute)
		w.keys.Ready()
		w.clock.advance(2 * time.Hour)
		w.rejects(short, keystore.KeyRevoked)
		w.accepts(long)
		fresh(w, a)
	})
	t.Run("and its clock was only wrong", func(t *testing.T) {
		w, a, short, long := made(t)
		w.clock.reboot(time.Minute)
		w.clock.step(60 * day)
		w.open()
		w.rejects(short, keystore.KeyExpired)
		w.clock.step(-60 * day)
		w.accepts(short)
		w.accepts(long)
		if err := w.keys.Ready(); err != nil {
			t.Error(err)
		}
		fresh(w, a)
	})
	t.Run("and its clock was set back after", func(t *testing.T) {
		w, _, short, _ := made(t)
		w.clock.reboot(60 * day)
		w.open()
		w.clock.step(-400 * day)
		w.rejects(short, keystore.KeyExpired)
	})
}

func TestTimeWhileTheMachineIsSuspendedCounts(t *testing.T) {
	sc := compile(t, typed)
	synctest.Test(t, func(t *testing.T) {
		st, err := store.Open(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		var suspended atomic.Int64
		keys, err := keystore.Open(t.Context(), st, keystore.Options{Machine: credtime.Machine{
			Uptime: func() time.Duration { return time.Since(begin) + time.Duration(suspended.Load()) },
		}})
		if err != nil {
			t.Fatal(err)
		}
		w := &fixture{TB: t, store: st, keys: keys}
		key := w.must(w.create(operator(sc), keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
		suspended.Store(int64(50 * time.Minute))
		time.Sleep(2 * time.Minute)
		w.accepts(key)
		time.Sleep(9 * time.Minute)
		w.rejects(key, keystore.KeyExpired)
		if err := errors.Join(keys.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestTheClockFileHoldsTheLatestTime(t *testing.T) {
	w := onDisk(t)
	key := w.must(w.create(operator(compile(t, typed)), keystore.CreateRequest{Scope: "orders_read"}))
	path := filepath.Join(w.opt.Dir, "clock")
	for _, c := range []struct{ now, want time.Duration }{{time.Hour, time.Hour}, {3 * time.Hour, 3 * time.Hour}, {0, 3 * time.Hour}} {
		w.clock.set(noon.Add(c.now))
		w.accepts(key)
		w.reopen()
		text, err := os.ReadFile(path)
		if want := `{"time":"` + noon.Add(c.want).Format(time.RFC3339) + `",`; err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("at %v the file holds %q, want %q", c.now, text, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("%v, %v", info, err)
	}
}

func TestTheClockFileOfEarlierVersionsIsRead(t *testing.T) {
	w := onDisk(t)
	key := w.must(w.create(operator(compile(t, typed)), keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
	w.close()
	text := noon.Add(2*time.Hour).Format("2006-01-02T15:04:05.000Z") + "\n"
	if err := os.WriteFile(filepath.Join(w.opt.Dir, "clock"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.open()
	w.rejects(key, keystore.KeyExpired)
}

func TestADamagedClockFileIsRefusedByName(t *testing.T) {
	w := onDisk(t)
	w.close()
	path := filepath.Join(w.opt.Dir, "clock")
	for _, text := range []string{"yesterday", "", "{}", `{"time":"2026-05-01T12:00:00Z"`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := w.tryOpen()
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), strconv.Quote(path)) {
			t.Errorf("with %q opened with %v", text, err)
		}
	}
}

func TestAClockFileWithAChangedByteIsRefused(t *testing.T) {
	w := inMemoryFor(t, t.TempDir())
	w.closeKeys()
	path := filepath.Join(w.opt.Dir, "clock")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for at := range len(whole) - 1 { // without the last newline
		changed := bytes.Clone(whole)
		changed[at] ^= 1
		write(changed)
		if _, err := keystore.Open(w.Context(), w.store, w.opt); fault.CodeOf(err) != fault.Invalid {
			t.Fatalf("with %q opened with %v", changed, err)
		}
	}
	write(whole)
	w.openKeys()
	w.close()
}

// When an operator sets the time back, credentials created after the new time are revoked.
func TestAcceptingAnEarlierTimeRevokesCredentialsCreatedLater(t *testing.T) {
	w := onDisk(t)
	op := operator(compile(t, both))
	before := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(30 * day)}))
	w.clock.step(400 * day)
	_ = w.keys.Ready()
	w.clock.advance(time.Hour) // the clock is trusted again
	w.rejects(before, keystore.KeyExpired)
	w.reopen() // which takes it out of memory
	w.rejects(before, keystore.KeyExpired)
	during, err := w.credentials(op, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.accepted(op, during); got != "all" {
		t.Errorf("%s is valid", got)
	}
	w.clock.step(-400 * day)
	if got := w.accepted(op, during); got != "all" {
		t.Errorf("%s is valid", got)
	}
	change, err := w.keys.AcceptClock(t.Context(), op)
	if err != nil || change.From.Sub(change.To) != 400*day || change.Revoked != 3 {
		t.Errorf("%+v, %v", change, err)
	}
	w.reopen()
	w.accepts(before)
	if got := w.accepted(op, during); got != "none" {
		t.Errorf("%s is valid", got)
	}
	after := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
	if want := noon.Add(2 * time.Hour); !after.ExpiresAt.Equal(want) {
		t.Errorf("a key of an hour ends at %v, want %v", after.ExpiresAt, want)
	}
}
