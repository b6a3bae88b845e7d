package keystore_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/secret"
	"runner.example/keystore"
	"runner.example/schema/compiler"
	"runner.example/state/audit"
	"runner.example/state/store"
)

// The environment of the child that crashes: where its data is, at which step,
// and at which point of it.
const (
	crashDir   = "KEYSTORE_CRASH_DIR"
	crashStep  = "KEYSTORE_CRASH_STEP"
	crashPoint = "KEYSTORE_CRASH_POINT"
)

// The points at which a change can be cut off.
var crashPoints = []string{
	"begun",     // the key's record is in the transaction
	"proposed",  // the audit record is too
	"applying",  // the store reports the commit, at the first key that it wrote
	"applied",   // and of the last one
	"committed", // the commit has returned, the response is not sent
}

// crashSteps are changes of one key, and then of one session, which the first step of
// each creates.
var crashSteps = []string{
	"create", "rotate with grace", "rotate with grace", "rotate", "disable", "enable", "rotate with grace", "revoke",
	"sign in", "sign out",
}

const crashSchema = "auth { session cookie { } }\n" + untyped

func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// crash is the main function of the child. It runs the steps and kills itself at the point
// that it was given. It prints the id and the token of every step before that can take effect.
func crash(dir string) {
	s, list := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(crashSchema)}}, compiler.Options{})
	if list.HasErrors() {
		panic(list)
	}
	st, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	keys, err := keystore.Open(context.Background(), st, keystore.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	a := keystore.Authority{Schema: s, Caller: caller.Caller{Kind: caller.System}}
	var id string
	for i, step := range crashSteps {
		point := ""
		if os.Getenv(crashStep) == fmt.Sprint(i) {
			point = os.Getenv(crashPoint)
		}
		var key keystore.Key
		written := 3 // key, tenant's list, audit record
		if strings.HasPrefix(step, "sign") {
			written = 2 // session, audit record
		}
		stop := dieApplying(st, point, written)
		_, err := st.Update(context.Background(), func(tx *store.Tx) (err error) {
			if key, err = crashChange(tx, keys, a, step, id, point); err != nil {
				return err
			}
			fmt.Printf("%d %s %s\n", i, key.ID, key.Token.Reveal())
			if point == "proposed" {
				die()
			}
			return nil
		})
		stop()
		if err != nil {
			panic(err)
		}
		if point == "committed" {
			die()
		}
		id = key.ID
	}
}

func crashChange(tx *store.Tx, keys *keystore.Keystore, a keystore.Authority, step, id, point string) (keystore.Key, error) {
	if point == "begun" {
		// The first half of any change: what follows never comes.
		if err := tx.Set([]byte("keystore/key/"+id), []byte("{}")); err != nil {
			return keystore.Key{}, err
		}
		die()
	}
	switch step {
	case "create":
		return keys.Create(tx, a, keystore.CreateRequest{Scope: "orders_read"})
	case "rotate with grace":
		return keys.Rotate(tx, a, id, time.Hour)
	case "rotate":
		return keys.Rotate(tx, a, id, 0)
	case "disable":
		return keys.Disable(tx, a, id)
	case "enable":
		return keys.Enable(tx, a, id)
	case "sign in":
		s, err := keys.CreateSession(tx, a, keystore.CreateSessionRequest{UserID: "ada"})
		return keystore.Key{ID: s.ID, Token: secret.NewToken(string(valueOf(s)))}, err
	case "sign out":
		s, err := keys.RevokeSession(tx, a, id)
		return keystore.Key{ID: s.ID}, err
	}
	return keys.Revoke(tx, a, id)
}

// dieApplying kills the process while the store reports a commit.
func dieApplying(st *store.Store, point string, written int) (stop func()) {
	applied := 0
	return st.OnApply(nil, func(_ store.Seq, c store.Change) {
		applied++
		if point == "applying" || point == "applied" && applied == written {
			die()
		}
	})
}

// afterSteps is what must hold after so many steps: which of the tokens printed
// by then are valid, and how many records the audit has.
func afterSteps(t *testing.T, tokens []string, steps int) (good map[string]bool) {
	t.Helper()
	good = map[string]bool{}
	off := map[string]bool{}
	for i, step := range crashSteps[:steps] {
		switch step {
		case "rotate":
			clear(good)
		case "disable":
			off, good = good, map[string]bool{}
		case "enable":
			good = off
		case "revoke", "sign out":
			clear(good)
		}
		if tokens[i] != "" {
			good[tokens[i]] = true
		}
	}
	return good
}

func TestCrashPoints(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range crashSteps {
		for _, point := range crashPoints {
			t.Run(fmt.Sprintf("%d %s/%s", i, step, point), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				child := exec.Command(self)
				child.Env = append(os.Environ(), crashDir+"="+dir, crashStep+"="+fmt.Sprint(i), crashPoint+"="+point)
				var stderr bytes.Buffer
				child.Stderr = &stderr
				out, err := child.Output()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || stderr.Len() > 0 { // one that was killed says nothing
					t.Fatalf("the child ended with %v: %s", err, stderr.String())
				}
				ids, tokens := printed(t, out)
				steps := i + 1 // done, as the commit is durable
				if point == "begun" || point == "proposed" {
					steps = i
				}
				checkCrashed(t, dir, ids, tokens, steps)
			})
		}
	}
}

// printed reads the child's output: the id that each step changed, and the
// token or cookie that it created, or an empty string.
func printed(t *testing.T, out []byte) (ids, tokens []string) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		fields := strings.Split(lines.Text(), " ")
		if len(fields) != 3 {
			t.Fatalf("the child printed %q", lines.Text())
		}
		ids, tokens = append(ids, fields[1]), append(tokens, fields[2])
	}
	return ids, tokens
}

// checkCrashed opens the data of a killed server and checks that exactly that many
// steps were committed.
func checkCrashed(t *testing.T, dir string, ids, tokens []string, steps int) {
	t.Helper()
	w := &fixture{TB: t, clock: newClock(), opt: keystore.Options{Dir: dir}}
	w.clock.set(time.Now())
	w.open()
	s := compile(t, crashSchema)
	good := afterSteps(t, tokens, steps)
	for i, token := range tokens {
		if token == "" {
			continue
		}
		key, err := w.keys.Verify([]byte(token))
		if id, sessionErr := w.keys.VerifySession(s, []byte(token)); sessionErr == nil {
			key.ID, err = id.ID, nil
		}
		if (err == nil) != good[token] || err == nil && key.ID != ids[i] {
			t.Errorf("the token of step %d: %v %v, want good: %v", i, err, key.Refused, good[token])
		}
	}
	entries, err := audit.List(t.Context(), w.store, 0, 100)
	if err != nil || len(entries) != steps {
		t.Errorf("%d audit records, %v; want %d", len(entries), err, steps)
	}
	page, err := w.list(operator(nil), keystore.Filter{All: true})
	if err != nil || len(page.Keys) != min(steps, 1) {
		t.Errorf("%d keys, %v", len(page.Keys), err)
	}
	sessions, err := w.listSessions(operator(nil), keystore.SessionFilter{All: true})
	if want := max(0, min(steps-8, 1)); err != nil || len(sessions.Sessions) != want {
		t.Errorf("%d sessions, %v, want %d", len(sessions.Sessions), err, want)
	}
	// Changes are possible again.
	w.accepts(w.must(w.create(operator(s), keystore.CreateRequest{Scope: "orders_read"})))
}
