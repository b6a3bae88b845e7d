package cluster_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// The data directories of a voter and of an edge node are lost. Another node removes the node, and it joins
// again with the same name and a new data directory.
func TestANodeWithAWipedDiskJoinsAgain(t *testing.T) {
	if !harness.Soak {
		t.Skip("takes half a minute")
	}
	l := loadedCluster(t, nil, 3, 1)
	l.run()
	for _, wiped := range []struct {
		node  int
		flags []string
	}{{l.leader(3), nil}, {3, []string{"--edge"}}, {0, nil}} {
		n := l.cluster.Nodes[wiped.node]
		l.kill(wiped.node)
		if err := os.RemoveAll(n.Path("data")); err != nil {
			t.Fatal(err)
		}
		l.writtenSince(l.now(), l.others(wiped.node)...)
		helper := l.cluster.Nodes[l.others(wiped.node)[0]]
		if got, want := helper.Must("cluster", "leave", n.Name), fmt.Sprintf("removed %s\n", n.Name); got != want {
			t.Errorf("leave of %s: %q, want %q", n.Name, got, want)
		}
		l.cluster.Join(n, wiped.flags...)
		l.start(wiped.node)
		l.writtenSince(l.now(), wiped.node)
	}
	l.check()
}

// The disks of voters are full, one after the other: reads on the node go on, and so do the writes of the
// others. When there is room again, and the node was started again, it has all rows.
func TestANodeWithAFullDiskStopsNoOther(t *testing.T) {
	if !harness.Soak {
		t.Skip("takes a minute")
	}
	l := loadedClusterOn(t, nil, func(_ int, a *harness.App) {
		dir := t.TempDir()
		harness.SmallDisk(t, "tmpfs", dir, 512<<20)
		a.Move(dir)
	}, 3, 0)
	l.run()
	for _, node := range []int{l.follower(0), l.leader(0)} {
		n := l.cluster.Nodes[node]
		filler := n.Path("filler")
		n.Server.WaitUntil(n.Name+" is not ready", func() bool {
			harness.FillDisk(t, filler) // also what was freed meanwhile
			got, err := n.Server.Try("GET", "/_health/ready", "")
			return err == nil && got.Status == http.StatusServiceUnavailable && strings.Contains(got.Body, "disk is full")
		})
		o := order{Name: "refused-by-" + n.Name, Write: l.counters[:1]}
		n.Server.WaitUntil(n.Name+" refuses writes", func() bool {
			harness.FillDisk(t, filler)
			o.Name += "x"
			a := l.transact(l.nodes[node], node, len(l.nodes)*writersPerNode+1, o)
			return a.status == http.StatusServiceUnavailable && a.code == "unavailable"
		})
		at := l.now()
		for range 100 {
			l.writtenSince(l.now(), l.others(node)...)
		}
		t.Logf("with a full disk of %s nobody wrote for %s", n.Name, l.longestGap(at).Round(time.Millisecond))
		l.kill(node)
		started := n.Launch("serve") // on a full disk
		if started.URL == "" {
			<-started.Ended
			log := started.Stderr.String()
			if !strings.Contains(log, "disk is full") && !strings.Contains(log, "no space left") {
				t.Errorf("started on a full disk, %s ends with %v:\n%s", n.Name, started.Err, log)
			}
			t.Logf("%s does not start on a full disk: %s", n.Name, log[strings.LastIndex(strings.TrimSpace(log), "\n")+1:])
		} else {
			started.Kill()
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		l.start(node)
		l.writtenSince(l.now(), node)
	}
	l.check()
}
