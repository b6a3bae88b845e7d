package tests

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A request whose schema changes under it is served by the next release, but has
// no more time for that than any other.
func TestARequestHasOneDeadlineOverAllReleases(t *testing.T) {
	schema := func(more string) string {
		return strings.Replace(strings.Replace(evolving, "POST /op -> op", "POST /slow -> insertSlowly", 1), "size: int?", "size: int?"+more, 1)
	}
	a := newApp(t, schema(""), "[runtime]\ntimeout = \"2500ms\"\n", "slow")
	s := a.serve()
	worker := "X-API-Key: " + a.token("worker")
	runs := func() int { return strings.Count(s.stderr.String(), `"msg":"begun"`) }
	for try, end := 0, time.Now().Add(patient); time.Now().Before(end); try++ { // a busy machine may be too slow for the change to come meanwhile
		before := runs()
		answered := make(chan answer, 1)
		go func() {
			got, err := s.try("POST", "/slow", "", worker)
			if err != nil {
				t.Error(err)
			}
			answered <- got
		}()
		for end := time.Now().Add(patient); runs() == before; s.get("/none", "") {
			if time.Now().After(end) {
				t.Fatalf("the handler does not begin:\n%s", s.stderr.String())
			}
		}
		a.write("app.schema", schema(fmt.Sprintf("\n  added: int = %d", try)))
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		got := <-answered
		if runs() == before+1 {
			continue
		}
		if got.status != 504 || runs() != before+2 || !strings.Contains(s.stderr.String(), `"attempt":2`) {
			t.Errorf("two runs of 1.5 s within 2.5 s: %d after %d runs\n%s", got.status, runs()-before, s.stderr.String())
		}
		return
	}
	t.Error("no change came while the handler ran")
}
