package rows_test

import (
	"strings"
	"syscall"
	"testing"

	"runner.example/tests/harness"
)

// A request whose schema changes while its handler runs is run again on the next release,
// within the deadline of the first run. The handler takes 4 s, so the change comes in time,
// and two runs take longer than the 6 s of the deadline.
func TestARequestHasOneDeadlineOverAllReleases(t *testing.T) {
	t.Parallel()
	schema := func(more string) string {
		return strings.Replace(strings.Replace(evolving, "POST /op -> op", "POST /slow -> insertSlowly", 1), "size: int?", "size: int?"+more, 1)
	}
	a := harness.NewApp(t, schema(""), "[runtime]\ntimeout = \"6s\"\n", "slow")
	s := a.Serve()
	worker := "X-API-Key: " + a.Token("worker")
	runs := func() int { return strings.Count(s.Stderr.String(), `"msg":"begun"`) }
	answered := make(chan harness.Answer, 1)
	go func() {
		got, err := s.Try("POST", "/slow", "", worker)
		if err != nil {
			t.Error(err)
		}
		answered <- got
	}()
	s.WaitUntil("the handler runs", func() bool { return runs() == 1 })
	a.Write("app.schema", schema("\n  added: int = 1"))
	if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; got.Status != 504 || runs() != 2 || !strings.Contains(s.Stderr.String(), `"attempt":2`) {
		t.Errorf("two runs of 4 s within 6 s: %d after %d runs\n%s", got.Status, runs(), s.Stderr.String())
	}
}
