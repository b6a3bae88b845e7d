package cluster

import (
	"context"
	"slices"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/wait"
)

// ErrNoMajority is the cause of a context of WithMajority that has ended.
var ErrNoMajority error = fault.New(fault.Unavailable,
	"a majority of the voters of the cluster cannot be reached: nothing is stored until it can, and this change may be stored then, so check before you repeat it")

const (
	// majorityWait is how long a commit may wait while no majority of the voters can be reached.
	majorityWait = 6 * time.Second
	// majorityPause is the pause between two questions whether one can.
	majorityPause = time.Second
)

// WithMajority returns a context that ends when no majority of the voters could be reached for 6 seconds:
// a commit would wait for one without a limit. It does not limit an operation otherwise. Call cancel.
func (n *Node) WithMajority(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for reached := clock.Mark(); wait.For(ctx, majorityPause) == nil; {
			asked, stop := context.WithDeadline(ctx, reached.Add(majorityWait))
			_, err := n.client.Owner(asked) // a linearizable read
			stop()
			switch {
			case err == nil:
				reached = clock.Mark()
			case time.Since(reached) >= majorityWait:
				end(ErrNoMajority)
				return
			}
		}
	}()
	return ctx, func() {
		end(nil)
		<-done
	}
}

// majority logs when a majority of the voters does not answer any more, and when it does again. One goroutine
// uses it.
type majority struct {
	lost    bool
	since   time.Time
	awaited []string
}

// note looks whether a majority answers. Without one it logs who is awaited, again when others are.
func (m *majority) note(n *Node) {
	silent := n.store.Health().Silent()
	switch {
	case !silent && m.lost:
		n.logger.Info("majority of the voters reached again", "after", clock.Mark().Sub(m.since).Round(time.Second))
		*m = majority{}
	case silent:
		awaited, asked := n.awaited()
		if cause, _ := n.notVoting(); cause != nil {
			awaited = append(awaited, n.id.Name)
		}
		if !asked || m.lost && slices.Equal(awaited, m.awaited) {
			return
		}
		if !m.lost {
			m.lost, m.since = true, clock.Mark()
		}
		m.awaited = awaited
		n.logger.Warn("majority of the voters not reached; nothing can be stored", "awaited", awaited)
	}
}

// awaited returns the names of the other voters that do not answer. asked reports whether each was asked.
func (n *Node) awaited() (names []string, asked bool) {
	now := clock.Mark()
	n.mu.Lock()
	defer n.mu.Unlock()
	names, asked = []string{}, true
	for _, p := range n.id.Peers {
		if p.Role != Voter {
			continue
		}
		h, ok := n.states[p.Name]
		asked = asked && ok
		if !h.answers(now) {
			names = append(names, p.Name)
		}
	}
	return names, asked
}
