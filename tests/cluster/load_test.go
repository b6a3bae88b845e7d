package cluster_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// versions are values of counters by name.
type versions map[string]int

// order is what a transaction is told to do: to read counters, and to add one to counters.
type order struct {
	Name  string   `json:"name"`
	Read  []string `json:"read"`
	Write []string `json:"write"`
}

// operation is what a transaction has done.
type operation struct{ read, written versions }

// UnmarshalJSON reads the row of an operation, or the answer of the handler.
func (o *operation) UnmarshalJSON(text []byte) error {
	var row struct{ Read, Written string }
	if err := json.Unmarshal(text, &row); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(row.Read), &o.read); err != nil {
		return err
	}
	return json.Unmarshal([]byte(row.Written), &o.written)
}

// attempt is a transaction as its client saw it.
type attempt struct {
	order
	client       int
	node         int
	began, ended time.Duration // since the start of the load
	acknowledged bool          // else it is not known whether it was stored, unless refused
	refused      bool
	status       int    // of the answer; 0: there was none
	code         string // of the problem in the answer
	operation
}

// load are clients of all nodes: writers, each of which runs one transaction after the other, and readers
// that expect each node to answer.
type load struct {
	t        *testing.T
	cluster  *harness.Cluster
	token    string
	counters []string
	started  time.Time
	clients  sync.WaitGroup
	stopped  chan struct{}
	nodes    []*loaded
	rounds   int

	mu       sync.Mutex
	attempts []attempt
}

// loaded is a node with its clients.
type loaded struct {
	server  atomic.Pointer[harness.Server]
	failing atomic.Bool   // it may not answer
	faults  atomic.Uint64 // how often failing was set
	reads   atomic.Int64
	slowest atomic.Int64 // read, in nanoseconds
}

const (
	writersPerNode = 2
	// The writers meet often: most transactions have a counter in common with one of the others.
	counters = 24
	// pace is between two requests of one client, so that the machine has time for the nodes.
	pace = 2 * time.Millisecond
)

// loadedCluster is a running cluster with the counters, and the load on it. Edge nodes come last.
func loadedCluster(t *testing.T, network *harness.Network, voters, edges int) *load {
	t.Helper()
	return loadedClusterOn(t, network, func(int, *harness.App) {}, voters, edges)
}

// loadedClusterOn is loadedCluster whose nodes are on the disks to which disk moves them.
func loadedClusterOn(t *testing.T, network *harness.Network, disk func(node int, a *harness.App), voters, edges int) *load {
	t.Helper()
	l := &load{t: t, stopped: make(chan struct{}), started: time.Now()}
	rows := &strings.Builder{}
	for i := range counters {
		l.counters = append(l.counters, fmt.Sprint("c", i))
		fmt.Fprintf(rows, "{\"name\":\"c%d\"}\n", i)
	}
	var admin harness.APIKey
	made := 0
	l.cluster = harness.NewCluster(t, network, func() *harness.App {
		a := newLedger(t)
		disk(made, a)
		if made++; made == 1 { // the rows of a server that was alone
			admin = a.Key("create", "--scope", "worker", "--name", "load")
			a.Write("counters.jsonl", rows.String())
			a.Must("data", "import", "Counter", "counters.jsonl")
		}
		return a
	})
	l.token = admin.Token
	l.cluster.Nodes[0].Serve()
	for i := 1; i < voters+edges; i++ {
		var flags []string
		if i >= voters {
			flags = append(flags, "--edge")
		}
		l.cluster.Add(flags...).Serve()
	}
	for _, n := range l.cluster.Nodes {
		n.WaitReady()
		node := &loaded{}
		node.server.Store(n.Server)
		l.nodes = append(l.nodes, node)
	}
	return l
}

// run starts the clients.
func (l *load) run() {
	l.t.Helper()
	seed := rand.Uint64()
	l.t.Logf("seed %d", seed)
	l.t.Cleanup(l.stop)
	for i, node := range l.nodes {
		for w := range writersPerNode {
			client := i*writersPerNode + w
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			l.clients.Go(func() {
				for n := 0; l.goesOn(); n++ {
					l.transact(node, i, client, l.choose(random, fmt.Sprintf("%d-%d", client, n)))
				}
			})
		}
		l.clients.Go(func() {
			for l.goesOn() {
				l.read(node, i)
			}
		})
	}
}

// goesOn waits between two requests, and reports whether there is another one.
func (l *load) goesOn() bool {
	select {
	case <-l.stopped:
		return false
	case <-l.t.Context().Done(): // the test has failed, and ends
		return false
	case <-time.After(pace):
		return true
	}
}

// choose returns a transaction: up to two counters to read, and one or two to change.
func (l *load) choose(random *rand.Rand, name string) order {
	order := order{Name: name}
	chosen := random.Perm(len(l.counters))
	reads, writes := random.IntN(3), 1+random.IntN(2)
	for i, c := range chosen[:reads+writes] {
		if i < reads {
			order.Read = append(order.Read, l.counters[c])
		} else {
			order.Write = append(order.Write, l.counters[c])
		}
	}
	return order
}

// transact runs one transaction on a node.
func (l *load) transact(node *loaded, at, client int, o order) (a attempt) {
	body, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	a = attempt{order: o, client: client, node: at, began: time.Since(l.started)}
	got, err := node.server.Load().Try("POST", "/transact", string(body), "X-API-Key: "+l.token)
	a.ended = time.Since(l.started)
	a.status = got.Status
	var problem struct{ Code string }
	if err == nil && got.Status >= 400 && json.Unmarshal([]byte(got.Body), &problem) == nil {
		a.code = problem.Code
	}
	switch {
	case err != nil:
	case got.Status == 201:
		a.acknowledged = true
		if err := json.Unmarshal([]byte(got.Body), &a.operation); err != nil {
			l.t.Errorf("transaction %s: read %q: %v", o.Name, got.Body, err)
		}
	case got.Status == 409:
		a.refused = true
	case got.Status < 500:
		l.t.Errorf("transaction %s on node %d: %d %s", o.Name, at+1, got.Status, got.Body)
	}
	l.mu.Lock()
	l.attempts = append(l.attempts, a)
	l.mu.Unlock()
	if err != nil {
		<-time.After(20 * time.Millisecond) // the node is down
	}
	return a
}

// read reads a counter, which a node that does not fail answers.
func (l *load) read(node *loaded, at int) {
	faults, failing := node.faults.Load(), node.failing.Load()
	began := time.Now()
	got, err := node.server.Load().Try("GET", "/counters/c0", "", "X-API-Key: "+l.token)
	took := time.Since(began)
	if failing || node.failing.Load() || node.faults.Load() != faults || l.t.Context().Err() != nil {
		if err != nil {
			<-time.After(20 * time.Millisecond)
		}
		return
	}
	if err != nil || got.Status != 200 {
		l.t.Errorf("a read on node %d, %s after the start: %d %s, %v", at+1, time.Since(l.started), got.Status, got.Body, err)
		<-time.After(100 * time.Millisecond) // not the same line without end
	}
	node.reads.Add(1)
	if took := int64(took); took > node.slowest.Load() {
		node.slowest.Store(took) // one goroutine does this
	}
}

// fails notes that nodes fail from now on.
func (l *load) fails(nodes ...int) {
	for _, i := range nodes {
		l.nodes[i].failing.Store(true)
		l.nodes[i].faults.Add(1)
	}
}

// works notes that nodes are ready again.
func (l *load) works(nodes ...int) {
	for _, i := range nodes {
		l.cluster.Nodes[i].WaitReady()
		l.nodes[i].failing.Store(false)
	}
}

// kill kills nodes at once.
func (l *load) kill(nodes ...int) {
	l.fails(nodes...)
	for _, i := range nodes {
		_ = l.cluster.Nodes[i].Server.Cmd.Process.Kill()
	}
	for _, i := range nodes {
		<-l.cluster.Nodes[i].Server.Ended
	}
}

// terminate stops a node as a service manager does.
func (l *load) terminate(node int) {
	l.fails(node)
	l.cluster.Nodes[node].Server.Stop()
}

// start starts nodes that do not run, at once.
func (l *load) start(nodes ...int) {
	var starting sync.WaitGroup
	for _, i := range nodes {
		starting.Go(func() { l.nodes[i].server.Store(l.cluster.Nodes[i].Serve()) })
	}
	starting.Wait()
	l.works(nodes...)
}

// now is the time of the load.
func (l *load) now() time.Duration { return time.Since(l.started) }

// writtenSince waits until a transaction that began after from is acknowledged on one of the nodes, and
// returns how long that took.
func (l *load) writtenSince(from time.Duration, nodes ...int) time.Duration {
	l.t.Helper()
	for end := time.Now().Add(harness.Timeout); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		l.mu.Lock()
		for _, a := range slices.Backward(l.attempts) {
			if a.acknowledged && a.began >= from && slices.Contains(nodes, a.node) {
				l.mu.Unlock()
				return l.firstWrite(from, nodes...)
			}
			if a.ended < from {
				break
			}
		}
		l.mu.Unlock()
	}
	l.t.Fatalf("no transaction was acknowledged by nodes %v within %s\n%s", nodes, harness.Timeout, l.logs())
	return 0
}

// logs returns the ends of the logs of all nodes.
func (l *load) logs() string {
	var all strings.Builder
	for _, n := range l.cluster.Nodes {
		lines := strings.SplitAfter(n.Server.Stderr.String(), "\n")
		fmt.Fprintf(&all, "%s:\n%s", n.Name, strings.Join(lines[max(0, len(lines)-15):], ""))
	}
	return all.String()
}

func (l *load) firstWrite(from time.Duration, nodes ...int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := time.Duration(-1)
	for _, a := range l.attempts {
		if a.acknowledged && a.began >= from && slices.Contains(nodes, a.node) && (first < 0 || a.ended < first) {
			first = a.ended
		}
	}
	return first - from
}

// longestGap returns the longest time since from in which no transaction was acknowledged.
func (l *load) longestGap(from time.Duration) (gap time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.attempts { // in the order of their ends
		if a.acknowledged && a.ended > from {
			gap, from = max(gap, a.ended-from), a.ended
		}
	}
	return gap
}

// others returns the nodes without some.
func (l *load) others(without ...int) (all []int) {
	for i := range l.nodes {
		if !slices.Contains(without, i) {
			all = append(all, i)
		}
	}
	return all
}

// leader returns the index of the leader, as a node sees it.
func (l *load) leader(seenBy int) int {
	l.t.Helper()
	return slices.Index(l.cluster.Nodes, l.cluster.Leader(l.cluster.Nodes[seenBy]))
}

// follower returns a voter that is not the leader.
func (l *load) follower(seenBy int) int {
	l.t.Helper()
	s := l.cluster.Nodes[seenBy].Status()
	for _, n := range s.Nodes {
		if n.Role == "voter" && n.Name != s.Leader {
			return slices.Index(l.cluster.Nodes, l.cluster.Find(n.Name))
		}
	}
	l.t.Fatal("no voter follows")
	return 0
}

// settle waits until all nodes have all that was acknowledged.
func (l *load) settle() {
	l.t.Helper()
	for i, node := range l.nodes {
		l.rounds++
		o := order{Name: fmt.Sprint("settle-", l.rounds), Write: l.counters[:1]}
		var last attempt
		l.cluster.Nodes[i].Server.WaitUntil("a write", func() bool {
			o.Name += "x"
			last = l.transact(node, i, len(l.nodes)*writersPerNode, o)
			return last.acknowledged
		})
		if i == len(l.nodes)-1 {
			for _, n := range l.cluster.Nodes {
				n.Server.WaitUntil(n.Name+" has the last write", func() bool {
					got, err := n.Server.Try("GET", "/counters/"+l.counters[0], "", "X-API-Key: "+l.token)
					return err == nil && got.Status == 200 && got.Body == fmt.Sprint(last.written[l.counters[0]])
				})
			}
		}
	}
}

// stop ends the clients.
func (l *load) stop() {
	select {
	case <-l.stopped:
	default:
		close(l.stopped)
	}
	l.clients.Wait()
}

// check ends the load, and compares the rows of all nodes with what the clients know.
func (l *load) check() {
	l.t.Helper()
	l.stop()
	l.settle()
	l.equal()
	counters := map[string]int{}
	for _, line := range l.rows(0, "Counter") {
		var row struct {
			Name string
			N    int
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			l.t.Fatal(err)
		}
		counters[row.Name] = row.N
	}
	stored := map[string]operation{}
	for _, line := range l.rows(0, "Operation") {
		var row struct{ Name string }
		var done operation
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			l.t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(line), &done); err != nil {
			l.t.Fatal(err)
		}
		if _, ok := stored[row.Name]; ok {
			l.t.Errorf("operation %s is stored twice", row.Name)
		}
		stored[row.Name] = done
	}
	h := &history{attempts: l.attempts, stored: stored, counters: counters}
	for _, problem := range h.check() {
		l.t.Error(problem)
	}
	acknowledged, unknown := 0, 0
	for _, a := range l.attempts {
		switch {
		case a.acknowledged:
			acknowledged++
		case !a.refused:
			unknown++
		}
	}
	if acknowledged < 10*len(l.nodes) {
		l.t.Errorf("only %d transactions were acknowledged", acknowledged)
	}
	var reads, slowest int64
	for _, node := range l.nodes {
		reads, slowest = reads+node.reads.Load(), max(slowest, node.slowest.Load())
	}
	l.t.Logf("%d transactions acknowledged, %d without a known outcome, %d stored; %d reads on nodes that did not fail, the slowest in %s",
		acknowledged, unknown, len(stored), reads, time.Duration(slowest).Round(time.Millisecond))
}

// equal checks that all nodes have the same rows, and the same hash of all commits.
func (l *load) equal() {
	l.t.Helper()
	var positions map[string]harness.NodeStatus
	l.cluster.Nodes[0].Server.WaitUntil("all nodes are at the same commit", func() bool {
		positions = map[string]harness.NodeStatus{}
		seqs := map[uint64]bool{}
		for _, n := range l.cluster.Nodes {
			self := n.Status().Self()
			positions[n.Name], seqs[self.Position.Seq] = self, true
		}
		return len(seqs) == 1
	})
	for _, n := range l.cluster.Nodes[1:] {
		if a, b := positions[l.cluster.Nodes[0].Name].Position, positions[n.Name].Position; string(a.Chain) != string(b.Chain) {
			l.t.Errorf("the chains of n1 and %s differ at commit %d", n.Name, a.Seq)
		}
	}
	for _, entity := range []string{"Counter", "Operation"} {
		first := l.rows(0, entity)
		for i := 1; i < len(l.nodes); i++ {
			if other := l.rows(i, entity); !slices.Equal(first, other) {
				l.t.Errorf("%s: n1 has %d rows and %s %d, or they differ", entity, len(first), l.cluster.Nodes[i].Name, len(other))
			}
		}
	}
}

// rows returns the rows of a node, sorted.
func (l *load) rows(node int, entity string) []string {
	l.t.Helper()
	return slices.Sorted(strings.Lines(l.cluster.Nodes[node].Must("data", "export", entity)))
}
