package runtime_test

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/runtime"
	"runner.example/runtime/limit"
	"runner.example/state/entity"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// newNodes returns servers whose stores share a log. The first has activated shop, and the others
// follow it.
func newNodes(t *testing.T, n int) (all []*server) {
	t.Helper()
	log, pepper := storetest.NewLog(), filepath.Join(t.TempDir(), "pepper")
	for i := range n {
		st := log.Open(t, store.Options{Name: fmt.Sprint("node", i)})
		storetest.CatchUp(t, st)
		s := newEmptyServer(t, runtime.Options{Store: st, Keystore: openKeys(t, st, keystore.Options{PepperFile: pepper})})
		if all = append(all, s); i == 0 {
			storetest.Own(t, st)
			s.activate("", forClerks, addRoute)
		} else {
			s.follow("", forClerks, addRoute)
		}
	}
	return all
}

// follow has the server follow a release that another one has activated.
func (s *server) follow(fields, group, routes string) {
	s.Helper()
	storetest.CatchUp(s, s.store)
	if err := s.Follow(s.Context(), s.bundle(fields, group, routes)); err != nil {
		s.Error(err)
	}
}

func TestAnOldReleaseDoesNotTouchRowsThatAnotherNodeHasChanged(t *testing.T) {
	nodes := newNodes(t, 2)
	a, b := nodes[0], nodes[1]
	clerk := a.key("clerk")
	storetest.CatchUp(b, b.store)
	b.add(clerk, `200 {"ok":true}`)
	a.activate(newField, forClerks, addRoute)
	storetest.CatchUp(b, b.store)
	b.add(clerk, "503 unavailable")
	a.wantItems(1)
	b.follow(newField, forClerks, addRoute)
	b.add(clerk, `200 {"ok":true}`)
	storetest.CatchUp(a, a.store)
	a.wantItems(2)
}

func TestARequestRunsAgainOnAReleaseOfAnotherNode(t *testing.T) {
	nodes := newNodes(t, 2)
	a, b := nodes[0], nodes[1]
	clerk := a.key("clerk")
	storetest.CatchUp(b, b.store)
	b.inTransaction = func(n int64) {
		if n == 1 {
			a.activate(newField, forClerks, addRoute)
			b.follow(newField, forClerks, addRoute)
		}
	}
	wantRemaining(t, b.add(clerk, `200 {"ok":true}`), 2)
	b.wantItems(1)
}

func TestAReleaseIsFollowedOnlyWhileItsSchemaIsActive(t *testing.T) {
	nodes := newNodes(t, 2)
	a, b := nodes[0], nodes[1]
	a.activate(newField, forClerks, addRoute)
	storetest.CatchUp(b, b.store)
	before := b.Schema()
	if err := b.Follow(t.Context(), b.bundle("other: string?", forClerks, addRoute)); !errors.Is(err, entity.ErrOutdated) {
		t.Errorf("another schema is followed: %v", err)
	}
	if b.Schema() != before {
		t.Error("the release was replaced")
	}
}

func TestWhatIsPreparedIsSharedWithTheActivation(t *testing.T) {
	s := newServer(t)
	next := s.bundle(newField, forClerks, addRoute)
	next.Modules[0].Name = "build/next.wasm" // another module than that of the active release
	before := s.MemoryUse().Handlers
	release, err := s.Prepare(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	prepared := s.MemoryUse().Handlers
	if prepared <= before {
		t.Fatalf("%d bytes of handlers, %d before: nothing was prepared", prepared, before)
	}
	again, err := s.Prepare(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.MemoryUse().Handlers; got != prepared {
		t.Errorf("%d bytes of handlers, want %d: the modules were loaded twice", got, prepared)
	}
	if err := errors.Join(release(), again()); err != nil {
		t.Fatal(err)
	}
	if got := s.MemoryUse().Handlers; got != before {
		t.Errorf("%d bytes of handlers after the release, want %d", got, before)
	}
}

func TestPrepareReportsWhatAnActivationWouldRefuse(t *testing.T) {
	s := newServer(t)
	if _, err := s.Prepare(t.Context(), s.bundle("", forClerks, "POST /items -> missing")); err == nil {
		t.Error("a route without a handler is accepted")
	} else if _, ok := errors.AsType[*runtime.UnboundError](err); !ok {
		t.Error(err)
	}
	s.add(s.key("clerk"), `200 {"ok":true}`)
}

func TestReasonsForNotBeingReadyAreIndependent(t *testing.T) {
	s := newServer(t)
	want := func(texts ...string) {
		t.Helper()
		got := ""
		if err := s.NotReady(); err != nil {
			got = err.Error()
		}
		for _, text := range texts {
			if got == text {
				return
			}
		}
		t.Errorf("not ready because of %q, want one of %q", got, texts)
	}
	cause := func(text string) *fault.Fault { return fault.New(fault.NotReady, "%s", text) }
	want("")
	s.SetNotReady(runtime.NotLoaded, cause("not loaded"))
	s.SetNotReady(runtime.Clock, cause("clock"))
	want("not loaded", "clock")
	s.activate(newField, forClerks, addRoute) // ends the first reason alone
	want("clock")
	s.SetNotReady(runtime.NotLoaded, cause("not loaded"))
	s.SetNotReady(runtime.Clock, nil)
	want("not loaded")
	if resp, got := s.send("GET", "/_health/ready", "", ""); got != "503 not_ready" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("/_health/ready answers %s", got)
	}
	s.add(s.key("clerk"), `200 {"ok":true}`) // requests are served
	s.SetNotReady(runtime.NotLoaded, nil)
	want("")
}

func TestAStaleNodeIsNotReady(t *testing.T) {
	log := storetest.NewLog()
	st := log.Open(t, store.Options{Name: "a"})
	storetest.Own(t, st)
	s := newEmptyServer(t, runtime.Options{Store: st, Keystore: openKeys(t, st, keystore.Options{}), MaxStaleness: 2 * time.Second})
	s.activate("", forClerks, addRoute)
	await := func(text string) {
		t.Helper()
		for {
			err := s.NotReady()
			if err == nil && text == "" || err != nil && text != "" && strings.Contains(err.Error(), text) {
				return
			}
			select {
			case <-time.After(time.Millisecond):
			case <-t.Context().Done():
				t.Fatalf("%v, want %q", err, text)
			}
		}
	}
	await("")
	log.Cut(true)
	await("no connection to the cluster for 2s; the limit is 2s")
	log.Cut(false)
	await("")
}

func TestADividedLimitAdmitsThePartOfTheNode(t *testing.T) {
	st, keys := openStore(t, "")
	s := newEmptyServer(t, runtime.Options{Store: st, Keystore: keys, RateLimits: limit.Options{AcrossNodes: "divided"}})
	s.activate("", forClerks, addRoute)
	clerk := s.key("clerk")
	wantPolicy := func(resp *http.Response, want string) {
		t.Helper()
		if got := resp.Header.Get("RateLimit-Policy"); got != want {
			t.Errorf("RateLimit-Policy: %s, want %s", got, want)
		}
	}
	wantPolicy(s.add(clerk, `200 {"ok":true}`), `"3/minute";q=3;w=60`)
	s.SetNode(0, 2)
	wantPolicy(s.add(clerk, `200 {"ok":true}`), `"3/minute";q=2;w=60`)
	refused := s.add(clerk, "429 rate_limited")
	wantPolicy(refused, `"3/minute";q=2;w=60`)
	wantRemaining(t, refused, 0)
	s.SetNode(0, 1)
	wantPolicy(s.add(clerk, `200 {"ok":true}`), `"3/minute";q=3;w=60`)

	each := newServer(t)
	each.SetNode(1, 2)
	wantPolicy(each.add(each.key("clerk"), `200 {"ok":true}`), `"3/minute";q=3;w=60`)
}
