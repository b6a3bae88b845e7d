package keys_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const transactionSchema = `
apiKeys {
  scopes: {
    admin: @system("admin") { @grant read on Thing },
    partner: @system("partner") {
      @grant read on Thing
      @issue when auth.scope == "admin"
      @manage when auth.scope == "admin"
    }
  }
}
routes("/", auth: apiKey(admin), rateLimit: none) {
  POST /op -> op
  POST /fail -> opFail
  POST /keep -> opKeep
  POST /trap -> opTrap
  GET /hello -> hello
}
`

func listedNames(a *harness.App, t *testing.T) string {
	t.Helper()
	var keys []harness.APIKey
	if err := json.Unmarshal([]byte(a.Must("api-keys", "list", "--all", "--scope", "partner", "--json")), &keys); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return strings.Join(names, " ")
}

func TestWritesAreCommittedOnlyWhenTheRequestSucceeds(t *testing.T) {
	a := harness.NewApp(t, transactionSchema, "", "echo")
	s := a.Serve()
	token := a.Token("admin")
	for _, row := range []struct {
		path   string
		status int
	}{{"/op", 200}, {"/fail", 400}, {"/keep", 400}, {"/trap", 500}} {
		got := s.Do("POST", row.path, `{"scope":"partner","name":"`+row.path[1:]+`"}`, "X-API-Key: "+token, "X-Op: apiKeys.create")
		if got.Status != row.status {
			t.Errorf("%s: %d %s", row.path, got.Status, got.Body)
		}
	}
	if names := listedNames(a, t); names != "op keep" && names != "keep op" {
		t.Errorf("keys of %q are there, want those of op and keep", names)
	}
}

// Rotations of one key conflict with each other. Each one is either committed once or
// answers 409, and the audit has one record for each token that was returned.
func TestConflictingRequestsAreRetriedAndCommittedOnce(t *testing.T) {
	a := harness.NewApp(t, transactionSchema, "", "echo")
	s := a.Serve()
	token := a.Token("admin")
	partner := a.Key("create", "--scope", "partner", "--name", "rotated")
	var done, refused atomic.Int64
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 10 {
				got, err := s.Try("POST", "/op", `{"id":"`+partner.ID+`"}`, "X-API-Key: "+token, "X-Op: apiKeys.rotate")
				switch {
				case err != nil:
					t.Error(err)
				case got.Status == 200:
					done.Add(1)
				case got.Status == 409:
					refused.Add(1)
				default:
					t.Errorf("%d %s", got.Status, got.Body)
				}
			}
		})
	}
	callers.Wait()
	if done.Load()+refused.Load() != 80 || done.Load() == 0 {
		t.Errorf("%d done, %d refused", done.Load(), refused.Load())
	}
	records := 0
	for _, r := range a.Audit(t) {
		if r["action"] == "apiKeys.rotate" && r["target"] == partner.ID {
			records++
		}
	}
	if records != int(done.Load()) {
		t.Errorf("%d rotations were answered, %d are in the audit", done.Load(), records)
	}
}

func TestEveryChangeOfAKeyIsInTheAudit(t *testing.T) {
	a := harness.NewApp(t, transactionSchema, "", "echo")
	s := a.Serve()
	admin := a.Key("create", "--scope", "admin", "--name", "admin")
	for _, command := range []string{"disable", "enable", "rotate", "revoke"} {
		key := admin
		if command != "disable" && command != "enable" {
			key = a.Key("create", "--scope", "partner", "--name", command)
		}
		a.Must("api-keys", command, key.ID)
	}
	admin = a.Key("create", "--scope", "admin", "--name", "another")
	got := s.Do("POST", "/op", `{"scope":"partner"}`, "X-API-Key: "+admin.Token, "X-Op: apiKeys.create")
	want := map[string]int{
		"releases.add": 1, "releases.activate": 1, // of the app directory
		"apiKeys.create": 5, "apiKeys.disable": 1, "apiKeys.enable": 1, "apiKeys.rotate": 1, "apiKeys.revoke": 1,
	}
	byHandler := 0
	for _, r := range a.Audit(t) {
		want[fmt.Sprint(r["action"])]--
		if r["requestId"] == got.Header.Get("X-Request-Id") {
			byHandler++
			if !strings.Contains(fmt.Sprint(r["actor"]), admin.ID) || r["address"] != "127.0.0.1" {
				t.Errorf("the handler's record: %v", r)
			}
		}
		if harness.TokenForm.MatchString(fmt.Sprint(r)) {
			t.Errorf("a record contains a token: %v", r)
		}
	}
	for action, left := range want {
		if left != 0 {
			t.Errorf("%s: %d records missing", action, left)
		}
	}
	if byHandler != 1 {
		t.Errorf("%d records of the handler's request", byHandler)
	}
	a.Must("audit", "verify")
	s.Stop()
	a.Must("audit", "verify")
}

func TestAReloadUnderTrafficActivatesTheAppOrChangesNothing(t *testing.T) {
	a := harness.NewApp(t, transactionSchema, "", "echo")
	s := a.Serve()
	token := a.Token("admin")
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got, err := s.Try("GET", "/hello", "", "X-API-Key: "+token); err != nil || got.Status != 200 {
					t.Errorf("during a reload: %d %s %v", got.Status, got.Body, err)
					return
				}
			}
		})
	}
	reload := func(schema, says string) {
		t.Helper()
		a.Write("app.schema", schema)
		before := strings.Count(s.Stderr.String(), says)
		if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(harness.Timeout); strings.Count(s.Stderr.String(), says) == before; {
			if time.Now().After(end) {
				t.Fatalf("no %q in the log:\n%s", says, s.Stderr.String())
			}
			s.Get("/hello", token)
		}
	}
	for i := range 5 {
		path := fmt.Sprintf("/added%d", i)
		reload(transactionSchema+"routes(\"/\", auth: none, rateLimit: none) { GET "+path+" -> hello }\n", `"msg":"reloaded"`)
		if got := s.Get(path, ""); got.Status != 200 {
			t.Errorf("%s after its reload: %d", path, got.Status)
		}
		reload("routes(", "previous release kept")
		if got := s.Get(path, ""); got.Status != 200 {
			t.Errorf("%s after a reload that was refused: %d", path, got.Status)
		}
	}
	close(stop)
	callers.Wait()
}
