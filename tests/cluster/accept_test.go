package cluster_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// A server with rows becomes a cluster of three voters and an edge node, loses its leader, and becomes one
// server again.
func TestAServerBecomesAClusterAndOneServerAgain(t *testing.T) {
	t.Parallel()
	l := loadedCluster(t, nil, 3, 1)
	c := l.cluster
	n1, n2, n3, n4 := c.Nodes[0], c.Nodes[1], c.Nodes[2], c.Nodes[3]
	for i, role := range []string{"voter", "voter", "voter", "edge"} {
		if got := n3.Status().Nodes[i]; got.Role != role || got.Address != c.Nodes[i].Address {
			t.Errorf("node %d: %+v", i+1, got)
		}
	}

	key := n2.Key("create", "--scope", "worker", "--name", "of n2")
	created := time.Now()
	read := func(n *harness.Node, token string) int {
		return n.Server.Do("GET", "/counters/c1", "", "X-API-Key: "+token).Status
	}
	for _, n := range c.Nodes {
		n.Server.WaitUntil("a key that n2 has created is valid on "+n.Name, func() bool { return read(n, key.Token) == 200 })
	}
	t.Logf("a key was valid on all nodes %s after its creation", time.Since(created).Round(time.Millisecond))
	if got := n1.Run("api-keys", "revoke", key.ID); got.Status != 0 || !strings.Contains(got.Stdout, "revoked on 4 of 4 nodes") {
		t.Errorf("revoke: %+v", got)
	}
	for _, n := range c.Nodes {
		if got := read(n, key.Token); got != http.StatusUnauthorized {
			t.Errorf("a revoked key on %s: %d", n.Name, got)
		}
	}
	l.visibility()

	l.run()
	dead := l.leader(1)
	l.kill(dead)
	at := l.now()
	gap := l.writtenSince(at, l.others(dead)...)
	t.Logf("the death of the leader stopped writes for %s", gap.Round(time.Millisecond))
	if limit := limit(); gap > limit {
		t.Errorf("the death of the leader stopped writes for %s, more than %s", gap, limit)
	}
	l.start(dead)
	l.check()

	if got := n4.Must("cluster", "leave"); got != "removed n4\n" {
		t.Errorf("leave of n4: %q", got)
	}
	<-n4.Server.Ended
	if n4.Server.Err != nil {
		t.Errorf("the server of a node that has left: %v", n4.Server.Err)
	}
	if got := n2.Run("cluster", "leave", ""); got.Status != 2 {
		t.Errorf("leave with an empty name: %+v", got)
	}
	if got := n2.Run("cluster", "leave", "n9"); got.Status != 4 || !strings.Contains(got.Stderr, "hint: runner cluster status") {
		t.Errorf("leave with a name that no node has: %+v", got)
	}
	if got := n2.Must("cluster", "leave", "n3"); got != "removed n3\n" {
		t.Errorf("leave of n3: %q", got)
	}
	<-n3.Server.Ended
	if text := n3.Server.Stderr.String(); n3.Server.Err == nil || !strings.Contains(text, `the node "n3" was removed from its cluster`) {
		t.Errorf("the server of a node that was removed ends with %v: %s", n3.Server.Err, text)
	}
	if got := n2.Status().Nodes; len(got) != 2 {
		t.Errorf("nodes after two have left: %+v", got)
	}
	n2.Token("worker") // two voters are a majority of two
	head := strings.TrimSpace(n2.Must("audit", "verify"))
	n1.Server.Stop()
	for _, command := range [][]string{{"cluster", "invite"}, {"cluster", "leave", "n1"}, {"api-keys", "create", "--scope", "worker", "--name", "x"}} {
		if got := n2.Run(command...); got.Status != 6 || !strings.Contains(got.Stderr, "a majority of the voters of the cluster cannot be reached") {
			t.Errorf("%s without a majority: %+v", strings.Join(command, " "), got)
		}
	}
	n2.Server.Stop()
	for _, n := range c.Nodes {
		for line := range strings.Lines(n.Server.Stderr.String()) {
			for _, usual := range []string{"rejecting member", "TCP streaming", "schema version", "storage version", "single port", "removed member", "data-dir", "grpc server", "server error"} {
				if strings.Contains(line, `"etcd warning"`) && strings.Contains(line, usual) {
					t.Errorf("%s logs what an operator need not know: %s", n.Name, line)
				}
			}
		}
	}
	rows := 0
	for _, command := range [][]string{
		{"api-keys", "create", "--scope", "worker", "--name", "x"}, {"api-keys", "list"}, {"data", "export", "Counter"}, {"sessions", "list"},
		{"audit", "list"}, {"backup", "b.runner-backup"}, {"cluster", "status"}, {"cluster", "invite"}, {"cluster", "leave"},
	} {
		if got := n2.Run(command...); got.Status != 6 {
			t.Errorf("%s on the data directory of a stopped node: %+v", strings.Join(command, " "), got)
		}
	}
	n2.Must("cluster", "dissolve")
	n2.Must("audit", "verify", "--head", head)
	for range strings.Lines(n2.Must("data", "export", "Operation")) {
		rows++
	}
	if rows == 0 {
		t.Error("the dissolved node has no rows")
	}
	alone := n2.Serve()
	if got := l.transact(l.nodes[1], 1, 0, order{}); got.acknowledged {
		t.Error("the old server answers")
	}
	alone.Want(201, nil, "POST", "/transact", `{"name":"alone","write":["c0"]}`, "X-API-Key: "+l.token)
}

// limit is how long the loss of a leader may stop writes. Short tests share the machine with others.
func limit() time.Duration {
	if harness.Soak {
		return 5 * time.Second
	}
	return 20 * time.Second
}

// visibility reports how long it takes until other nodes show a write after its acknowledgement.
func (l *load) visibility() {
	l.t.Helper()
	delays := map[int][]time.Duration{}
	for i := range 40 {
		done := l.transact(l.nodes[0], 0, 0, order{Name: fmt.Sprint("seen-", i), Write: []string{"c2"}})
		if !done.acknowledged {
			l.t.Fatalf("a write: %+v", done)
		}
		acknowledged := time.Now()
		want := fmt.Sprint(done.written["c2"])
		var waiting sync.WaitGroup
		var mu sync.Mutex
		for n := 1; n < len(l.nodes); n++ {
			waiting.Go(func() {
				for time.Since(acknowledged) < harness.Timeout {
					got, err := l.nodes[n].server.Load().Try("GET", "/counters/c2", "", "X-API-Key: "+l.token)
					if err == nil && got.Body == want {
						break
					}
				}
				mu.Lock()
				defer mu.Unlock()
				delays[n] = append(delays[n], time.Since(acknowledged))
			})
		}
		waiting.Wait()
	}
	for n := 1; n < len(l.nodes); n++ {
		slices.Sort(delays[n])
		l.t.Logf("%s shows a write %s (median), %s (longest) after its acknowledgement by n1, with the time of the request",
			l.cluster.Nodes[n].Name, delays[n][len(delays[n])/2].Round(100*time.Microsecond), delays[n][len(delays[n])-1].Round(100*time.Microsecond))
	}
}
