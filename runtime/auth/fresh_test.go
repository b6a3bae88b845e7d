package auth_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/runtime/auth"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// await waits until done is true.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.After(time.Minute); !done(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// run runs the background tasks of the authenticator until the test ends.
func (w *world) run() {
	running, stop := context.WithCancel(w.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.auth.Run(running)
	}()
	w.Cleanup(func() {
		stop()
		<-ended
	})
}

// presented returns credentials of all kinds that need the keystore, by the path that they open.
func (w *world) presented() map[string]auth.Presented {
	w.Helper()
	key := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n"}).Token.Reveal()
	_, session := w.session("admin")
	return map[string]auth.Presented{"read": bearer("Bearer " + key), "any": header(key), "me": session}
}

func (w *world) platformKey() auth.Presented {
	w.Helper()
	var key keystore.PlatformKey
	_, err := w.store.Update(w.Context(), func(tx *store.Tx) (err error) {
		who := keystore.Authority{Caller: caller.Caller{Kind: caller.System, UserID: "uid:0"}}
		key, err = w.keys.Platform.Create(tx, who, keystore.CreatePlatformKey{Role: keystore.RoleRead, Name: "n"})
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return bearer("Bearer " + key.Token.Reveal())
}

func TestAStaleStoreJudgesNoKeyAndNoSession(t *testing.T) {
	log := storetest.NewLog()
	w := newPortal(t)
	all, platform := w.presented(), w.platformKey()
	const limit = time.Minute
	w.auth = auth.New(log.Open(t, store.Options{Name: "a"}), w.keys, auth.Options{MaxStaleness: limit})
	w.run()
	codes := func(now time.Time) map[string]fault.Code {
		found := map[string]fault.Code{}
		for path, p := range all {
			_, err := w.auth.Check(t.Context(), w.schema, nil, w.route(path), p, now)
			found[path] = fault.CodeOf(err)
			if refusal, ok := errors.AsType[*auth.Refusal](err); err != nil && (!ok || refusal.RetryAfter == 0) {
				t.Errorf("%s: %v without a time to retry after", path, err)
			}
		}
		_, err := w.auth.CheckPlatformKey(platform, now)
		found["platform"] = fault.CodeOf(err)
		_, err = w.auth.Check(t.Context(), w.schema, nil, w.route("open"), all["read"], now)
		found["open"] = fault.CodeOf(err)
		_, err = w.auth.Check(t.Context(), w.schema, nil, w.route("read"), auth.Presented{}, now)
		found["nothing"] = fault.CodeOf(err)
		return found
	}
	fresh := map[string]fault.Code{"read": "", "any": "", "me": "", "platform": "", "open": "", "nothing": fault.MissingCredentials}
	stale := map[string]fault.Code{
		"read": fault.KeyStoreStale, "any": fault.KeyStoreStale, "me": fault.KeyStoreStale, "platform": fault.KeyStoreStale,
		"open": "", "nothing": fault.MissingCredentials,
	}
	await(t, "a store with a connection becomes fresh", func() bool { return maps.Equal(codes(time.Now()), fresh) })
	// Nothing was read meanwhile: so it is for a process that was suspended.
	if diff := cmp.Diff(stale, codes(time.Now().Add(limit+time.Second))); diff != "" {
		t.Errorf("after the limit without a connection (-want +got):\n%s", diff)
	}
	if w.log.Len() != 0 {
		t.Errorf("a refusal for staleness is logged as one of the credential: %s", w.log.String())
	}
}

func TestAStoreThatNeverHadAConnectionIsStale(t *testing.T) {
	log := storetest.NewLog()
	log.Cut(true)
	w := newPortal(t)
	key := w.presented()["read"]
	st := log.Open(t, store.Options{Name: "a"})
	w.auth = auth.New(st, w.keys, auth.Options{MaxStaleness: time.Hour})
	if _, err := w.auth.Check(t.Context(), w.schema, nil, w.route("read"), key, time.Now()); fault.CodeOf(err) != fault.KeyStoreStale {
		t.Errorf("with a limit: %v, want key_store_stale", err)
	}
	w.auth = auth.New(st, w.keys, auth.Options{})
	if _, err := w.auth.Check(t.Context(), w.schema, nil, w.route("read"), key, time.Now()); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

// A server is ready when its store is fresh: then no credential may be refused any more.
func TestCredentialsAreAcceptedAsSoonAsTheStoreIsFresh(t *testing.T) {
	log := storetest.NewLog()
	log.Cut(true)
	w := newPortal(t)
	key := w.presented()["read"]
	st := log.Open(t, store.Options{Name: "a"})
	const limit = time.Hour
	w.auth = auth.New(st, w.keys, auth.Options{MaxStaleness: limit}) // which does not run: it reads nothing by itself
	log.Cut(false)
	await(t, "fresh", func() bool { return st.Health().Staleness < limit })
	if _, err := w.auth.Check(t.Context(), w.schema, nil, w.route("read"), key, time.Now()); err != nil {
		t.Error(err)
	}
}

func TestACutOffStoreBecomesStaleAndFreshAgain(t *testing.T) {
	log := storetest.NewLog()
	w := newPortal(t)
	key := w.presented()["read"]
	w.auth = auth.New(log.Open(t, store.Options{Name: "a"}), w.keys, auth.Options{MaxStaleness: 2 * time.Second})
	w.run()
	code := func(want fault.Code) func() bool {
		return func() bool {
			_, err := w.auth.Check(t.Context(), w.schema, nil, w.route("read"), key, time.Now())
			return fault.CodeOf(err) == want
		}
	}
	await(t, "fresh", code(""))
	log.Cut(true)
	await(t, "stale", code(fault.KeyStoreStale))
	log.Cut(false)
	await(t, "fresh again", code(""))
}
