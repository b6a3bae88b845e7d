package operations_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// numbers are those of a reason: the free space changes from one question to the next.
var numbers = regexp.MustCompile(`[0-9.]+ MiB`)

// Every command that stores something says the reason that status shows, with the exit status of the
// documentation. The server ends with status 0, because nothing is lost.
func TestCommandsSayThatTheDiskIsFull(t *testing.T) {
	for _, kind := range []string{"tmpfs", "ext4"} {
		t.Run(kind, func(t *testing.T) {
			a := harness.NewApp(t, notesSchema, adminListen, "echo")
			harness.SmallDisk(t, kind, a.Path("data"), 96<<20)
			key := a.Key("create", "--scope", "reader", "--name", "x")
			s := a.Serve()
			insert := func(text string) int {
				return s.Do("POST", "/op", fmt.Sprintf(`{"into":"Note","values":{"text":%q}}`, text), "X-API-Key: "+key.Token, "X-Op: insert").Status
			}
			if got := insert("kept"); got != 200 {
				t.Fatal(got)
			}
			_, admin := writeKey(t, a, "admin")
			node := statusOf(t, a)
			export := a.Must("data", "export", "Note")
			a.Write("rows.jsonl", "{\"text\":\"imported\"}\n")
			a.Write("second.schema", secondRoute)
			harness.FillDisk(t, a.Path("data/filler"))
			if got := insert("refused"); got != 503 {
				t.Errorf("a request: %d", got)
			}
			reason := func() string {
				t.Helper()
				var state struct{ NotReady string }
				if err := json.Unmarshal([]byte(a.Must("status", "--json")), &state); err != nil {
					t.Fatal(err)
				}
				_, cause, ok := strings.Cut(state.NotReady, "the disk is full")
				if !ok {
					t.Fatalf("status says %q", state.NotReady)
				}
				return numbers.ReplaceAllString("the disk is full"+cause, "n MiB")
			}
			refused := func(args ...string) {
				t.Helper()
				r := a.Run(args...)
				if want := reason(); r.Status != 1 || !strings.Contains(numbers.ReplaceAllString(r.Stderr, "n MiB"), want) {
					t.Errorf("%s: status %d, want 1\n%s\nwant %s", strings.Join(args, " "), r.Status, r.Stderr, want)
				}
			}
			refused("api-keys", "revoke", key.ID)
			refused("api-keys", "create", "--scope", "reader", "--name", "y")
			refused("api-keys", "rotate", key.ID)
			refused("keys", "create", "--name", "ci", "--role", "read")
			refused("data", "import", "Note", "rows.jsonl")
			refused("reload")
			refused("deploy", "--yes", "--to", node.Admin, "--fingerprint", node.AdminFingerprint, "--key-file", admin)
			a.Must("api-keys", "list")

			if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			select {
			case <-s.Ended:
			case <-time.After(harness.Timeout):
				t.Fatalf("it does not end\n%s", s.Stderr.String())
			}
			if code := s.Cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("it ended with status %d\n%s", code, s.Stderr.String())
			}
			if r := a.Run("api-keys", "revoke", key.ID); r.Status != 1 || !strings.Contains(r.Stderr, "the disk is full") {
				t.Errorf("without a server: %d %s", r.Status, r.Stderr)
			}
			if err := os.Remove(a.Path("data/filler")); err != nil {
				t.Fatal(err)
			}
			s = a.Serve()
			if got := a.Must("data", "export", "Note"); got != export {
				t.Errorf("the rows: %s, want %s", got, export)
			}
			a.Must("api-keys", "revoke", key.ID)
			s.Stop()
		})
	}
}
