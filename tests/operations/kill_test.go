package operations_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const killSchema = `app killed
entity Note {
  id: id
  text: string(1..200)
}
apiKeys {
  scopes: {
    admin: @system("admin") { @grant read, write on Note },
    partner: @system("partner") {
      @grant read on Note
      @issue when auth.scope == "admin"
    }
  }
}
routes("/", auth: apiKey(admin), rateLimit: none) { POST /op -> op }
routes("/partner", auth: apiKey(partner), rateLimit: none) { GET /hello -> hello }
`

// outcome is what a client knows about a change.
type outcome int

const (
	unknown outcome = iota // no answer came: all of it is stored, or nothing
	done
	refused
)

// known is what clients know about a server that is killed again and again.
type known struct {
	mu    sync.Mutex
	rows  map[string]outcome // by text
	live  map[string]bool    // tokens that were created and not changed since
	dead  []string           // tokens that were revoked or rotated away
	fresh int                // dead[fresh:] are those since the last start
}

// change sends an operation of a handler, and decodes the result of one that succeeded.
func change(s *harness.Server, admin, name, args string, result any) outcome {
	got, err := s.Try("POST", "/op", args, "X-API-Key: "+admin, "X-Op: "+name)
	switch {
	case err != nil:
		return unknown
	case got.Status != 200:
		return refused
	}
	if result != nil {
		if err := json.Unmarshal([]byte(got.Body), result); err != nil {
			s.T.Errorf("%s: %s: %v", name, got.Body, err)
		}
	}
	return done
}

// write inserts rows until the server is killed.
func (k *known) write(s *harness.Server, admin, prefix string) (written int) {
	for n := 0; ; n++ {
		text := fmt.Sprint(prefix, n)
		got := change(s, admin, "insert", fmt.Sprintf(`{"into":"Note","values":{"text":%q}}`, text), nil)
		k.mu.Lock()
		k.rows[text] = got
		k.mu.Unlock()
		if got == unknown {
			return n
		}
	}
}

// manage creates keys, rotates and revokes them until the server is killed.
func (k *known) manage(s *harness.Server, admin string) (changed int) {
	for ; ; changed++ {
		var key struct{ ID, Token string }
		if change(s, admin, "apiKeys.create", `{"scope":"partner"}`, &key) == unknown {
			return changed
		}
		token := key.Token
		k.set(token, true)
		if changed%3 == 0 {
			continue // it stays
		}
		k.forget(token)
		if change(s, admin, "apiKeys.rotate", `{"id":"`+key.ID+`"}`, &key) != done {
			return changed
		}
		k.set(token, false)
		k.set(key.Token, true)
		if changed%3 == 1 {
			continue
		}
		k.forget(key.Token)
		if change(s, admin, "apiKeys.revoke", `{"id":"`+key.ID+`"}`, nil) != done {
			return changed
		}
		k.set(key.Token, false)
	}
}

func (k *known) set(token string, live bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if live {
		k.live[token] = true
	} else {
		k.dead = append(k.dead, token)
	}
}

// forget makes a token unknown: its key is being changed.
func (k *known) forget(token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.live, token)
}

// check compares a server that was started after a kill with what clients know.
func (k *known) check(s *harness.Server, random *rand.Rand) {
	t := s.T
	stored := map[string]int{}
	for line := range strings.Lines(s.App.Must("data", "export", "Note")) {
		var row struct{ Text string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		stored[row.Text]++
	}
	for text, how := range k.rows {
		n := stored[text]
		if n > 1 || n == 0 && how == done || n == 1 && how == refused {
			t.Errorf("row %q is stored %d times; its outcome is %d (0 unknown, 1 done, 2 refused)", text, n, how)
		}
		if n == 1 {
			k.rows[text] = done // and must stay
		} else {
			k.rows[text] = refused
		}
		delete(stored, text)
	}
	if len(stored) > 0 {
		t.Errorf("rows that nobody wrote: %v", stored)
	}
	for token := range k.live {
		if got := s.Do("GET", "/partner/hello", "", "X-API-Key: "+token); got.Status != 200 {
			t.Errorf("a key that was created and not revoked: %d %s", got.Status, got.Body)
		}
	}
	dead := slices.Clone(k.dead[k.fresh:])
	for range min(50, k.fresh) {
		dead = append(dead, k.dead[random.IntN(k.fresh)])
	}
	for _, token := range dead {
		if got := s.Do("GET", "/partner/hello", "", "X-API-Key: "+token); got.Status != 401 && got.Status != 429 {
			t.Errorf("a token that was revoked or rotated away: %d %s", got.Status, got.Body)
		}
	}
	k.fresh = len(k.dead)
	s.App.Must("audit", "verify")
}

// The server is killed again and again while clients write rows and create, rotate and revoke
// keys. After each start, what was acknowledged is there once, and no revoked token is valid.
func TestManyKillsLoseNothingAndReviveNothing(t *testing.T) {
	rounds := 3
	if harness.Soak {
		rounds = 100
	}
	loseNothing(t, harness.NewApp(t, killSchema, "", "echo"), rounds, func(s *harness.Server, _ *rand.Rand) { s.Kill() })
}

// The power is cut again and again: what was not synced is gone, or some pages of it.
func TestManyPowerCutsLoseNothingAndReviveNothing(t *testing.T) {
	if !harness.Soak {
		t.Skip("takes a minute")
	}
	disk := harness.NewForgetfulDisk(t)
	a := harness.NewApp(t, killSchema, "", "echo")
	a.Move(disk.Dir)
	disk.Sync()
	loseNothing(t, a, 30, func(s *harness.Server, random *rand.Rand) {
		s.Kill()
		disk.Cut()
		disk.Mount(random.Uint64() * random.Uint64N(2))
	})
}

// loseNothing stops the server rounds times under load, and checks what it has after each start.
func loseNothing(t *testing.T, a *harness.App, rounds int, stop func(*harness.Server, *rand.Rand)) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	admin := a.Token("admin")
	k := &known{rows: map[string]outcome{}, live: map[string]bool{}}
	var starts []time.Duration
	var written, changed int
	for round := range rounds + 1 {
		began := time.Now()
		s := a.Serve()
		s.Want(200, nil, "GET", "/_health/ready", "")
		starts = append(starts, time.Since(began))
		k.check(s, random)
		if t.Failed() || round == rounds {
			break
		}
		var clients sync.WaitGroup
		var mu sync.Mutex
		for i := range 6 {
			clients.Go(func() {
				n, m := 0, 0
				if i < 4 {
					n = k.write(s, admin, fmt.Sprintf("round %d client %d row ", round, i))
				} else {
					m = k.manage(s, admin)
				}
				mu.Lock()
				defer mu.Unlock()
				written, changed = written+n, changed+m
			})
		}
		<-time.After(time.Duration(20+random.IntN(480)) * time.Millisecond)
		stop(s, random)
		clients.Wait()
	}
	slices.Sort(starts)
	t.Logf("%d stops under load: %d rows and %d keys were acknowledged; a start took %s (median), %s (longest)", rounds, written, changed, starts[len(starts)/2], starts[len(starts)-1])
	if written == 0 || changed == 0 {
		t.Error("nothing was written between two stops")
	}
}
