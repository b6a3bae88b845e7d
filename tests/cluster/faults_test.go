package cluster_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// Nodes are killed: no acknowledged write is lost or done twice, the transactions have a serial order, reads
// on the other nodes are answered, and in the end all nodes have the same rows.
func TestKilledNodesLoseNothing(t *testing.T) {
	t.Parallel()
	l := loadedCluster(t, nil, 3, 1)
	l.run()
	rounds := 1
	if harness.Soak {
		rounds = 10
	}
	for range rounds {
		for _, fault := range []struct {
			name  string
			nodes []int
		}{
			{"a follower", []int{l.follower(3)}}, {"the leader", []int{l.leader(3)}}, {"a majority", []int{0, 1}}, {"all", []int{0, 1, 2, 3}},
		} {
			l.kill(fault.nodes...)
			if len(fault.nodes) == 1 {
				at := l.now()
				gap := l.writtenSince(at, l.others(fault.nodes...)...)
				t.Logf("%s killed: the others write again after %s", fault.name, gap.Round(time.Millisecond))
			}
			l.start(fault.nodes...)
			at := l.now()
			l.writtenSince(at, l.others()...)
		}
	}
	l.check()
}

// Voters are paused for ten seconds, as a machine that swaps.
func TestPausedNodesLoseNothing(t *testing.T) {
	if !harness.Soak {
		t.Skip("takes a minute")
	}
	l := loadedCluster(t, nil, 3, 1)
	l.run()
	for _, paused := range []int{l.follower(3), l.leader(3)} {
		l.fails(paused)
		process := l.cluster.Nodes[paused].Server.Cmd.Process
		harness.Pause(t, process)
		at := l.now()
		gap := l.writtenSince(at, l.others(paused)...)
		if gap > limit() {
			t.Errorf("a paused voter stopped writes for %s, more than %s\n%s", gap, limit(), l.logs())
		}
		<-time.After(10 * time.Second)
		if err := harness.Resume(process); err != nil {
			t.Fatal(err)
		}
		l.works(paused)
		t.Logf("a voter paused: the others write again after %s", gap.Round(time.Millisecond))
	}
	l.check()
}

// Machines are cut off from the network, in both directions or in one.
func TestCutOffNodesLoseNothing(t *testing.T) {
	if !harness.Soak {
		t.Skip("needs network namespaces")
	}
	network := harness.NewNetwork(t, 4)
	l := loadedCluster(t, network, 3, 1)
	l.run()
	for _, cut := range []struct {
		name string
		node int
		cut  func(int)
	}{
		{"a follower", l.follower(3), network.Cut}, {"the leader", l.leader(3), network.Cut}, {"what a voter sends", 1, network.CutSending},
	} {
		l.fails(cut.node)
		cut.cut(cut.node)
		at := l.now()
		gap := l.writtenSince(at, l.others(cut.node)...)
		<-time.After(10 * time.Second)
		network.Connect(cut.node)
		l.works(cut.node)
		t.Logf("%s cut off: the others write again after %s", cut.name, gap.Round(time.Millisecond))
	}
	l.check()
}

// Of five voters two may be killed at once. Without a third one nothing can be stored, and reads go on.
func TestFiveVotersGoOnWithThree(t *testing.T) {
	if !harness.Soak {
		t.Skip("takes half a minute")
	}
	l := loadedClusterOn(t, nil, func(_ int, a *harness.App) {
		a.Write("runner.toml", "[cluster]\nmax_staleness = \"10m\"\n") // reads go on for so long
	}, 5, 0)
	l.run()
	leader := l.leader(0)
	dead := []int{leader, (leader + 1) % 5}
	third, rest := (leader+2)%5, []int{(leader + 3) % 5, (leader + 4) % 5}
	l.kill(dead...)
	gap := l.writtenSince(l.now(), l.others(dead...)...)
	t.Logf("the leader and another voter killed: the others write again after %s", gap.Round(time.Millisecond))
	for range 50 {
		l.writtenSince(l.now(), l.others(dead...)...)
	}
	l.kill(third)
	killed := l.now()
	for n, i := range rest {
		o := order{Name: fmt.Sprint("refused-", n), Write: l.counters[:1]}
		if a := l.transact(l.nodes[i], i, len(l.nodes)*writersPerNode+1, o); a.status != http.StatusServiceUnavailable || a.code != "unavailable" {
			t.Errorf("a write on n%d with two of five voters: %d %s", i+1, a.status, a.code)
		}
	}
	l.mu.Lock()
	for _, a := range l.attempts {
		if a.began > killed && a.acknowledged {
			t.Errorf("transaction %s was acknowledged with two of five voters", a.Name)
		}
	}
	l.mu.Unlock()
	stopping := l.now()
	l.terminate(rest[0]) // with requests that wait for a majority
	t.Logf("a node without a majority stopped in %s", (l.now() - stopping).Round(time.Millisecond))
	l.start(append(dead, third, rest[0])...)
	l.writtenSince(l.now(), l.others()...)
	l.check()
}
