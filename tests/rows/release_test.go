package rows_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// A request whose schema changes under it is served by the next release, but has
// no more time for that than any other.
func TestARequestHasOneDeadlineOverAllReleases(t *testing.T) {
	schema := func(more string) string {
		return strings.Replace(strings.Replace(evolving, "POST /op -> op", "POST /slow -> insertSlowly", 1), "size: int?", "size: int?"+more, 1)
	}
	a := harness.NewApp(t, schema(""), "[runtime]\ntimeout = \"2500ms\"\n", "slow")
	s := a.Serve()
	worker := "X-API-Key: " + a.Token("worker")
	runs := func() int { return strings.Count(s.Stderr.String(), `"msg":"begun"`) }
	for try, end := 0, time.Now().Add(harness.Timeout); time.Now().Before(end); try++ { // a busy machine may be too slow for the change to come meanwhile
		before := runs()
		answered := make(chan harness.Answer, 1)
		go func() {
			got, err := s.Try("POST", "/slow", "", worker)
			if err != nil {
				t.Error(err)
			}
			answered <- got
		}()
		for end := time.Now().Add(harness.Timeout); runs() == before; s.Get("/none", "") {
			if time.Now().After(end) {
				t.Fatalf("the handler does not begin:\n%s", s.Stderr.String())
			}
		}
		a.Write("app.schema", schema(fmt.Sprintf("\n  added: int = %d", try)))
		if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		got := <-answered
		if runs() == before+1 {
			continue
		}
		if got.Status != 504 || runs() != before+2 || !strings.Contains(s.Stderr.String(), `"attempt":2`) {
			t.Errorf("two runs of 1.5 s within 2.5 s: %d after %d runs\n%s", got.Status, runs()-before, s.Stderr.String())
		}
		return
	}
	t.Error("no change came while the handler ran")
}
