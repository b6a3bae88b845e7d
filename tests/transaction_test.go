package tests

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const transactionSchema = `
apiKeys {
  scopes: {
    admin: @system("admin") { @grant read on Thing },
    partner: @system("partner") {
      @grant read on Thing
      @issue when auth.scope == "admin"
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

func (a *app) listedNames(t *testing.T) string {
	t.Helper()
	var keys []apiKey
	if err := json.Unmarshal([]byte(a.must("api-keys", "list", "--all", "--scope", "partner", "--json")), &keys); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return strings.Join(names, " ")
}

func TestWritesOfARequestHoldOnlyWhenItSucceeds(t *testing.T) {
	a := newApp(t, transactionSchema, "", "echo")
	s := a.serve()
	token := a.token("admin")
	for _, row := range []struct {
		path   string
		status int
	}{{"/op", 200}, {"/fail", 400}, {"/keep", 400}, {"/trap", 500}} {
		got := s.do("POST", row.path, `{"scope":"partner","name":"`+row.path[1:]+`"}`, "X-API-Key: "+token, "X-Op: apiKeys.create")
		if got.status != row.status {
			t.Errorf("%s: %d %s", row.path, got.status, got.body)
		}
	}
	if names := a.listedNames(t); names != "op keep" && names != "keep op" {
		t.Errorf("keys of %q are there, want those of op and keep", names)
	}
}

// Rotations of one key conflict with each other: each either happens once or
// answers 409, and the number of tokens that were given out is the number of
// rotations recorded.
func TestConflictingRequestsRunAgainAndHappenOnce(t *testing.T) {
	a := newApp(t, transactionSchema, "", "echo")
	s := a.serve()
	token := a.token("admin")
	partner := a.key("create", "--scope", "partner", "--name", "rotated")
	var done, refused atomic.Int64
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 10 {
				got, err := s.try("POST", "/op", `{"id":"`+partner.ID+`"}`, "X-API-Key: "+token, "X-Op: apiKeys.rotate")
				switch {
				case err != nil:
					t.Error(err)
				case got.status == 200:
					done.Add(1)
				case got.status == 409:
					refused.Add(1)
				default:
					t.Errorf("%d %s", got.status, got.body)
				}
			}
		})
	}
	callers.Wait()
	if done.Load()+refused.Load() != 80 || done.Load() == 0 {
		t.Errorf("%d done, %d refused", done.Load(), refused.Load())
	}
	records := 0
	for _, r := range a.audit(t) {
		if r["action"] == "apiKeys.rotate" && r["target"] == partner.ID {
			records++
		}
	}
	if records != int(done.Load()) {
		t.Errorf("%d rotations were answered, %d are in the audit", done.Load(), records)
	}
}

func (a *app) audit(t *testing.T) (records []map[string]any) {
	t.Helper()
	out := a.must("audit", "list", "--json")
	if err := json.Unmarshal([]byte(out), &records); err != nil {
		t.Fatalf("read %q: %v", out, err)
	}
	return records
}

func TestEveryChangeOfAKeyIsInTheAudit(t *testing.T) {
	a := newApp(t, transactionSchema, "", "echo")
	s := a.serve()
	admin := a.key("create", "--scope", "admin", "--name", "admin")
	for _, command := range []string{"disable", "enable", "rotate", "revoke"} {
		key := admin
		if command != "disable" && command != "enable" {
			key = a.key("create", "--scope", "partner", "--name", command)
		}
		a.must("api-keys", command, key.ID)
	}
	admin = a.key("create", "--scope", "admin", "--name", "another")
	got := s.do("POST", "/op", `{"scope":"partner"}`, "X-API-Key: "+admin.Token, "X-Op: apiKeys.create")
	want := map[string]int{"apiKeys.create": 5, "apiKeys.disable": 1, "apiKeys.enable": 1, "apiKeys.rotate": 1, "apiKeys.revoke": 1}
	byHandler := 0
	for _, r := range a.audit(t) {
		want[fmt.Sprint(r["action"])]--
		if r["requestId"] == got.header.Get("X-Request-Id") {
			byHandler++
			if !strings.Contains(fmt.Sprint(r["actor"]), admin.ID) || r["address"] != "127.0.0.1" {
				t.Errorf("the handler's record: %v", r)
			}
		}
		if tokenForm.MatchString(fmt.Sprint(r)) {
			t.Errorf("a record holds a token: %v", r)
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
	a.must("audit", "verify")
	s.stop()
	a.must("audit", "verify")
}

func TestAReloadSwapsUnderTrafficOrChangesNothing(t *testing.T) {
	a := newApp(t, transactionSchema, "", "echo")
	s := a.serve()
	token := a.token("admin")
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
				if got, err := s.try("GET", "/hello", "", "X-API-Key: "+token); err != nil || got.status != 200 {
					t.Errorf("during a reload: %d %s %v", got.status, got.body, err)
					return
				}
			}
		})
	}
	reload := func(schema, says string) {
		t.Helper()
		a.write("app.schema", schema)
		before := strings.Count(s.stderr.String(), says)
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patient); strings.Count(s.stderr.String(), says) == before; {
			if time.Now().After(end) {
				t.Fatalf("no %q in the log:\n%s", says, s.stderr.String())
			}
			s.get("/hello", token)
		}
	}
	for i := range 5 {
		path := fmt.Sprintf("/added%d", i)
		reload(transactionSchema+"routes(\"/\", auth: none, rateLimit: none) { GET "+path+" -> hello }\n", `"msg":"reloaded"`)
		if got := s.get(path, ""); got.status != 200 {
			t.Errorf("%s after its reload: %d", path, got.status)
		}
		reload("routes(", "stays")
		if got := s.get(path, ""); got.status != 200 {
			t.Errorf("%s after a reload that was refused: %d", path, got.status)
		}
	}
	close(stop)
	callers.Wait()
}
