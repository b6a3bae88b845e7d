package live_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// phaseTime is how long rows are written in one phase of a test.
func phaseTime() time.Duration {
	if harness.Soak {
		return 10 * time.Second
	}
	return time.Second
}

func TestWatchersGetOnlyTrueValuesAndMissNothing(t *testing.T) {
	eachWorld(t, 1, 40, func(t *testing.T, seed uint64) {
		st := newScenario(t, seed, 1)
		a := st.newApp()
		st.servers[0].Store(a.Serve())
		st.createCallers(a)
		st.write()
		st.watch(24)
		<-time.After(phaseTime())
		took := st.settle()
		st.end()
		st.check(st.replay(a))
		t.Logf("all watchers had the newest values after %s", took)
	})
}

func TestWatchersMissNothingWhenTheServerIsKilled(t *testing.T) {
	eachWorld(t, 1, 40, func(t *testing.T, seed uint64) {
		st := newScenario(t, seed, 1)
		a := st.newApp()
		st.servers[0].Store(a.Serve())
		st.createCallers(a)
		st.write()
		st.watch(24)
		for range 2 {
			<-time.After(phaseTime() / 2)
			st.server(0).Kill()
			st.servers[0].Store(a.Serve())
		}
		<-time.After(phaseTime() / 2)
		took := st.settle()
		st.end()
		st.check(st.replay(a))
		t.Logf("all watchers had the newest values after %s", took)
	})
}

func TestWatchersOfAClusterMissNothing(t *testing.T) {
	eachWorld(t, 1, 20, func(t *testing.T, seed uint64) {
		st := newScenario(t, seed, 3)
		c := harness.NewCluster(t, nil, st.newApp)
		c.Nodes[0].Serve()
		c.Nodes[0].WaitReady()
		st.createCallers(c.Nodes[0].App)
		for range 2 {
			c.Add().Serve()
		}
		for i, n := range c.Nodes {
			n.WaitReady()
			st.servers[i].Store(n.Server)
		}
		st.write()
		st.watch(36)
		random := rand.New(rand.NewPCG(seed, 3))
		rounds := 1
		if harness.Soak {
			rounds = 4
		}
		for range rounds {
			<-time.After(phaseTime())
			i := random.IntN(len(c.Nodes))
			if random.IntN(2) == 0 {
				i = slices.Index(c.Nodes, c.Leader(c.Nodes[i]))
			}
			c.Nodes[i].Server.Kill()
			<-time.After(phaseTime() / 2)
			st.servers[i].Store(c.Nodes[i].Serve())
			c.Nodes[i].WaitReady()
		}
		<-time.After(phaseTime() / 2)
		took := st.settle()
		st.end()
		st.check(st.replay(c.Nodes[0].App))
		t.Logf("all watchers had the newest values after %s", took)
	})
}
