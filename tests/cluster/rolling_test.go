package cluster_test

import (
	"testing"
	"time"

	"runner.example/tests/harness"
)

// Each node is stopped and started again, one after the other.
func TestARollingRestartLosesNothing(t *testing.T) {
	t.Parallel()
	l := loadedCluster(t, nil, 3, 0)
	l.run()
	rounds := 1
	if harness.Soak {
		rounds = 5
	}
	for range rounds {
		l.roll(func(int) {})
	}
	l.check()
}

// Each node continues with another build of the runner, one after the other, and then with the first
// one again. Meanwhile nodes with both builds are in the cluster.
func TestARollingUpgradeLosesNothing(t *testing.T) {
	if !harness.Soak {
		t.Skip("builds another runner")
	}
	other := harness.OtherBuild(t)
	l := loadedCluster(t, nil, 3, 1)
	l.run()
	for _, binary := range []string{other, harness.Binary} {
		l.roll(func(node int) {
			l.cluster.Nodes[node].Binary = binary
		})
	}
	l.check()
}

// roll stops each node, calls change, starts it, and waits until it is ready, before the next one.
func (l *load) roll(change func(node int)) {
	l.t.Helper()
	for i, n := range l.cluster.Nodes {
		at := l.now()
		l.terminate(i)
		stopped := l.now()
		change(i)
		l.start(i)
		ready := l.now()
		l.writtenSince(ready, l.others()...)
		l.t.Logf("%s stopped in %s, and was ready %s later; nobody wrote for %s",
			n.Name, (stopped - at).Round(time.Millisecond), (ready - stopped).Round(time.Millisecond), l.longestGap(at).Round(time.Millisecond))
		l.writtenSince(ready, i)
	}
}
