package cluster_test

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"runner.example/state/store/etcdlog"
	"runner.example/tests/harness"
)

// missed is how many entries are added while a node is away: so many that the server of a voter does not
// get them one by one from the other servers.
const missed = 1500

// A voter and an edge node do not run for so long that the log no longer has what they lack. When they run
// again, they take backups of other nodes, without a new start, and serve the same rows.
func TestPausedNodesThatLackDeletedEntriesTakeABackup(t *testing.T) {
	if !harness.Soak {
		t.Skip("takes a minute")
	}
	l := loadedCluster(t, nil, 3, 1)
	// A server that starts over keeps its address if this is not port 0.
	for _, i := range []int{2, 3} {
		l.terminate(i)
		l.nodes[i].server.Store(l.cluster.Nodes[i].Serve("--listen", harness.LoopbackHost()+":8080"))
		l.works(i)
	}
	l.run()
	for _, away := range []int{2, 3} {
		n := l.cluster.Nodes[away]
		l.fails(away)
		process := n.Server.Cmd.Process
		harness.Pause(t, process)
		l.writeEntries(missed)
		l.truncate(l.others(away)...)
		if err := harness.Resume(process); err != nil {
			t.Fatal(err)
		}
		n.Server.WaitUntil(n.Name+" has started over", func() bool {
			log := n.Server.Stderr.String()
			return strings.Contains(log, "receiving a backup") && strings.Contains(log, "more on stdout: listening on "+n.Server.URL)
		})
		l.works(away)
		l.writtenSince(l.now(), away)
	}
	l.check()
}

// writeEntries waits until the log has more entries.
func (l *load) writeEntries(n uint64) {
	l.t.Helper()
	revision := func() uint64 { return l.cluster.Nodes[0].Status().Self().Position.Revision }
	began := l.now()
	for end, limit := revision()+n, time.Now().Add(harness.BuildTimeout); revision() < end; <-time.After(time.Second) {
		if time.Now().After(limit) {
			l.t.Fatalf("the log has not got %d entries within %s\n%s", n, harness.BuildTimeout, l.logs())
		}
	}
	l.t.Logf("%d entries in %s", n, (l.now() - began).Round(time.Second))
}

// truncate deletes all entries of the log that the first node has applied, when other nodes have applied them.
func (l *load) truncate(nodes ...int) {
	l.t.Helper()
	first := l.cluster.Nodes[0]
	revision := first.Status().Self().Position.Revision
	for _, i := range nodes {
		n := l.cluster.Nodes[i]
		n.Server.WaitUntil(n.Name+" has what is deleted", func() bool { return n.Status().Self().Position.Revision >= revision })
	}
	host, port, err := net.SplitHostPort(first.Address)
	if err != nil {
		l.t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		l.t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(first.Path("data"), "cluster", name) }
	client, err := etcdlog.Dial([]string{fmt.Sprintf("https://%s:%d", host, number+1)},
		&etcdlog.TLS{CertFile: file("cert.pem"), KeyFile: file("key.pem"), CAFile: file("ca.pem")})
	if err != nil {
		l.t.Fatal(err)
	}
	defer client.Close()
	log := etcdlog.Open(etcdlog.Options{Client: client, After: revision, Deliver: func(uint64, []byte) error { return nil }})
	defer log.Close()
	for range 2 { // the second one frees the bytes of the first
		if err := log.Truncate(l.t.Context(), revision); err != nil {
			l.t.Fatal(err)
		}
	}
}
