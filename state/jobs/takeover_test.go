package jobs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/state/jobs"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// A lease is as long as the job may run, and 5 s. Another node waits 2 s longer, because its clock may be
// ahead of the clock of the node that claimed the job. The claiming node compares with its own clock.
func TestALeaseEndsLaterForOtherNodesWhoseClocksMayBeAhead(t *testing.T) {
	const declared, byDefault = 30 * time.Second, 10 * time.Second // timeouts
	const margin, skew = 5 * time.Second, 2 * time.Second
	timeouts := compiled(t, `
auth { session jwt { issuer: "https://id.example.com", audience: "a", jwks: "https://id.example.com/jwks" } }
entity Order { id: id  name: string }
jobs(retries: 2, backoff: 10s) { mail(to: string, n: int = 1) }
routes("/", auth: session) { GET / -> x }
`)
	for name, row := range map[string]struct {
		nodes     []string
		taker     int
		restarted bool          // the taker starts between the claim and the end of the lease
		timeout   time.Duration // of the job
		want      time.Duration // from the claim to the last moment of the lease
	}{
		"another node":                              {nodes: []string{"a", "b"}, taker: 1, timeout: declared, want: declared + margin + skew},
		"another node that has started since":       {nodes: []string{"a", "b"}, taker: 1, restarted: true, timeout: declared, want: declared + margin + skew},
		"the node itself":                           {nodes: []string{"a", "b"}, taker: 0, timeout: declared, want: declared + margin},
		"a server alone":                            {taker: 0, timeout: declared, want: declared + margin},
		"another node, of a job without a timeout":  {nodes: []string{"a", "b"}, taker: 1, timeout: byDefault, want: byDefault + margin + skew},
		"the node itself, of a job without timeout": {nodes: []string{"a", "b"}, taker: 0, timeout: byDefault, want: byDefault + margin},
	} {
		w := newWorld(t, row.nodes...)
		if row.timeout == byDefault {
			w.schema = timeouts
			for _, q := range w.queues {
				q.SetSchema(timeouts)
			}
		}
		e := w.enqueue(0, ada, mail("a"))
		if all := w.claim(0); len(all) != 1 {
			t.Fatalf("%s: claimed %+v", name, all)
		}
		if row.restarted {
			w.queues[row.taker].Close()
			w.queues[row.taker] = w.open(w.stores[row.taker])
		}
		w.clock.pass(row.want)
		w.claim(row.taker)
		if j := w.get(e.ID); j.State != jobs.Running {
			t.Errorf("%s: taken over %s after the claim, and the lease is not over: %+v", name, row.want, j)
		}
		w.clock.pass(time.Millisecond)
		w.claim(row.taker)
		if j := w.get(e.ID); j.State != jobs.Waiting || j.Error == "" {
			t.Errorf("%s: not taken over %s after the claim: %+v", name, row.want+time.Millisecond, j)
		}
	}
}

// A node that has nothing to do wakes when a lease of another node is over, and not before.
func TestALeaseOfAnotherNodeEndsWhileNothingElseHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := storetest.NewLog()
		w := &world{t: t, schema: compiled(t, app), clock: newClock(), stores: log.Nodes(t, "a", "b")}
		opt := w.clock.options()
		opt.Now = time.Now
		for _, st := range w.stores {
			q, err := jobs.Open(t.Context(), st, opt)
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			q.SetSchema(w.schema)
			w.queues = append(w.queues, q)
		}
		var e jobs.Enqueued
		w.update(0, func(tx *store.Tx) (err error) {
			e, err = jobs.Enqueue(tx, w.schema, &ada, mail("a"), time.Now(), nil)
			return err
		})
		claimed := time.Now()
		if all := w.claim(0); len(all) != 1 {
			t.Fatalf("claimed %+v", all)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.queues[1].Run(ctx, func(c *jobs.Claimed) { t.Errorf("claimed %+v", c) })
		}()
		defer func() { <-ended }()
		defer stop()
		const want = 37 * time.Second
		time.Sleep(time.Until(claimed.Add(want)))
		synctest.Wait()
		if j := w.get(e.ID); j.State != jobs.Running {
			t.Errorf("%s after the claim: %+v, want it running", want, j)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if j := w.get(e.ID); j.State != jobs.Waiting {
			t.Errorf("%s after the claim: %+v, want it waiting", want+time.Millisecond, j)
		}
	})
}
