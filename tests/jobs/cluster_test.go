package jobs_test

import (
	"fmt"
	"testing"

	"runner.example/tests/harness"
)

func TestOtherNodesRunTheJobsOfAKilledNode(t *testing.T) {
	token := ""
	c := harness.NewCluster(t, nil, func() *harness.App {
		a, made := newApp(t, appSettings)
		if token == "" { // the rows and keys of the first node are those of all
			token = made
		}
		return a
	})
	c.Nodes[0].Serve()
	for range 2 {
		c.Add().Serve()
	}
	for _, n := range c.Nodes {
		n.WaitReady()
	}
	first, second := desk{c.Nodes[0].Server, token}, desk{c.Nodes[1].Server, token}
	const n = 6
	for i := range n {
		first.enqueue(fmt.Sprintf(`{"name":"slow","params":{"text":"slow %d"}}`, i))
	}
	first.WaitForOutput("slow begins")
	first.Kill()
	second.WaitUntil("all jobs to be done", func() bool { return len(second.texts()) == n })
	seen := map[string]bool{}
	for _, text := range second.texts() {
		if seen[text] {
			t.Errorf("%s was written twice", text)
		}
		seen[text] = true
	}
	// Any node may run a job that another one has enqueued.
	for i := range 20 {
		second.enqueue(fmt.Sprintf(`{"name":"write","params":{"text":"write %d"}}`, i))
	}
	second.WaitUntil("all jobs to be done", func() bool { return len(second.texts()) == n+20 })
}
