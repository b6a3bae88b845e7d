package cluster_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const quorumFunctions = `
functions(auth: apiKey(worker), rateLimit: none) { transact(name: string, write: json) }
`

// measuredCluster is a cluster of voters without load, whose metrics are served. A handler may take so long that
// only a limit of the command ends a call.
func measuredCluster(t *testing.T, voters int) *load {
	t.Helper()
	return loadedClusterOn(t, nil, func(_ int, a *harness.App) {
		a.Write("app.schema", ledgerSchema+quorumFunctions)
		a.Write("runner.toml", "[metrics]\nlisten = \"127.0.0.1:0\"\n[runtime]\ntimeout = \"60s\"\n")
	}, voters, 0)
}

// told is how soon an operator must know of a lost majority, and of a node that hangs. Short tests share the
// machine with others.
func told() time.Duration {
	if harness.Soak {
		return 3 * time.Second
	}
	return harness.Timeout
}

// metric returns the value of a metric of a node, "" if there is none.
func metric(n *harness.Node, name string) string {
	n.T.Helper()
	var state struct{ Metrics string }
	if err := json.Unmarshal([]byte(n.Must("status", "--json")), &state); err != nil {
		n.T.Fatal(err)
	}
	answer, err := http.Get(state.Metrics)
	if err != nil {
		n.T.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		n.T.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (.*)$`).FindStringSubmatch(string(text))
	if found == nil {
		return ""
	}
	return found[1]
}

// health returns the status and the body of a health check.
func health(n *harness.Node, which string) (int, string) {
	got, err := n.Server.Try("GET", "/_health/"+which, "")
	if err != nil {
		return 0, err.Error()
	}
	return got.Status, got.Body
}

// pause stops the process of a node, as a machine that hangs, until resume is called or the test ends.
func pause(n *harness.Node) (resume func()) {
	n.T.Helper()
	process := n.Server.Cmd.Process
	harness.Pause(n.T, process)
	resume = func() { _ = harness.Resume(process) }
	n.T.Cleanup(resume)
	return resume
}

// Two of three voters are killed: the health check for writes, the metrics and both status commands tell within
// three seconds, reads go on, and commands that need a majority end.
func TestALostMajorityIsTold(t *testing.T) {
	t.Parallel()
	l := measuredCluster(t, 3)
	var owner string
	l.cluster.Nodes[0].Server.WaitUntil("a node is the owner", func() bool {
		owner = l.cluster.Nodes[0].Status().Owner
		return owner != ""
	})
	n := l.cluster.Find(owner) // which activates releases
	for name, want := range map[string]string{
		"runner_cluster_quorum": "1", "runner_store_writable": "1", "runner_cluster_may_fail": "1", `runner_cluster_owner{node="` + owner + `"}`: "1",
		`runner_cluster_members{role="voter"}`: "3", `runner_cluster_members{role="joining"}`: "0", `runner_cluster_connected{node="n2"}`: "1",
	} {
		n.Server.WaitUntil(name+" is "+want, func() bool { return metric(n, name) == want })
	}
	if s := n.Status(); metric(n, `runner_cluster_leader{node="`+s.Leader+`"}`) != "1" || metric(n, `runner_cluster_lag_commits{node="n3"}`) == "" ||
		metric(n, `runner_cluster_staleness_seconds{node="n3"}`) == "" || metric(n, `runner_cluster_seen_seconds{node="n3"}`) == "" {
		t.Errorf("metrics of the nodes are missing, with the leader %s", s.Leader)
	}
	if status, body := health(n, "write"); status != 200 || body != `{"status":"writable"}` {
		t.Errorf("/_health/write: %d %s", status, body)
	}
	if got := n.Must("cluster", "status"); !strings.Contains(got, "3 of 3 voters take part, 2 must: 1 may fail now\n") || !strings.Contains(got, "s ago") {
		t.Errorf("cluster status:\n%s", got)
	}
	// A change of the app needs a commit of the owner.
	n.Write("app.schema", strings.Replace(ledgerSchema, "n: int = 0", "n: int = 0\n  more: int?", 1)+quorumFunctions)

	var dead []int
	for i, other := range l.cluster.Nodes {
		if other != n {
			dead = append(dead, i)
		}
	}
	l.kill(dead...)
	killed := time.Now()
	status, body := 0, ""
	n.Server.WaitUntil("writes are refused", func() bool {
		status, body = health(n, "write")
		return status != 200
	})
	seen := time.Since(killed)
	if status != 503 || !strings.Contains(body, "no majority of the voters has answered for") {
		t.Errorf("/_health/write: %d %s", status, body)
	}
	if got := metric(n, "runner_cluster_quorum"); got != "0" {
		t.Errorf("runner_cluster_quorum is %s", got)
	}
	if got := metric(n, "runner_store_writable"); got != "0" {
		t.Errorf("runner_store_writable is %s", got)
	}
	if got := n.Must("status"); !strings.Contains(got, "no: no majority of the voters has answered for") {
		t.Errorf("status:\n%s", got)
	}
	got := n.Run("cluster", "status")
	if got.Status != 0 || !strings.Contains(got.Stdout, "0 may fail now") || !strings.Contains(got.Stderr, "nothing can be stored") {
		t.Errorf("cluster status: %+v", got)
	}
	all := time.Since(killed)
	if status, body := health(n, "ready"); status != 200 && all < 20*time.Second { // reads go on for [cluster] max_staleness
		t.Errorf("/_health/ready: %d %s", status, body)
	}
	if got := n.Server.Do("GET", "/counters/c0", "", "X-API-Key: "+l.token); got.Status != 200 && time.Since(killed) < 20*time.Second {
		t.Errorf("a read: %d %s", got.Status, got.Body)
	}
	t.Logf("a lost majority was told after %s, by all after %s", seen.Round(time.Millisecond), all.Round(time.Millisecond))
	if seen > told() {
		t.Errorf("a lost majority was told after %s, later than %s", seen, told())
	}
	n.Server.WaitUntil("the log says who is awaited", func() bool {
		return strings.Contains(n.Server.Stderr.String(), "majority of the voters not reached; nothing can be stored")
	})
	for _, command := range [][]string{{"reload"}, {"call", "transact", `{"name":"called","write":["c0"]}`}} {
		began := time.Now()
		if got := n.Run(command...); got.Status != 6 || !strings.Contains(got.Stderr, "a majority of the voters of the cluster cannot be reached") {
			t.Errorf("%s without a majority: %+v", command[0], got)
		}
		t.Logf("%s ended after %s", command[0], time.Since(began).Round(time.Millisecond))
	}
	if got := n.Run("cluster", "wait", "--timeout", "1s"); got.Status != 5 || !strings.Contains(got.Stderr, "it is not safe after 1s") {
		t.Errorf("wait without a majority: %+v", got)
	}

	l.start(dead...)
	n.Server.WaitUntil("writes are accepted again", func() bool {
		status, _ := health(n, "write")
		return status == 200
	})
	n.Server.WaitUntil("the log says that there is a majority again", func() bool {
		return strings.Contains(n.Server.Stderr.String(), "majority of the voters reached again")
	})
	n.Must("cluster", "wait")
	n.Must("reload")
}

// A node hangs: it is not connected any more, and all others still are. A deployment and a change of rights do
// not wait for it.
func TestAHungNodeMakesNoOtherLookLost(t *testing.T) {
	t.Parallel()
	l := measuredCluster(t, 3)
	n1, other, hung := l.cluster.Nodes[0], l.cluster.Nodes[1], l.cluster.Nodes[2]
	find := func(s harness.ClusterStatus, n *harness.Node) (found harness.NodeStatus) {
		for _, known := range s.Nodes {
			if known.Name == n.Name {
				found = known
			}
		}
		return found
	}
	owner := ""
	n1.Server.WaitUntil("a node is the owner", func() bool {
		owner = n1.Status().Owner
		return owner != ""
	})
	if owner == hung.Name { // the owner activates what is deployed
		other, hung = hung, other
	}
	other.Server.WaitUntil("the node has seen the others", func() bool {
		s := other.Status()
		return find(s, n1).Connected && find(s, hung).Connected && s.MayFail == 1
	})
	key := n1.Key("create", "--scope", "worker", "--name", "of a hung node")
	n1.Write("app.schema", strings.Replace(ledgerSchema, "n: int = 0", "n: int = 0\n  more: int?", 1)+quorumFunctions)
	resume := pause(hung)
	stopped := time.Now()
	n1.Must("deploy", "--yes")
	t.Logf("deployed %s after a node was stopped", time.Since(stopped).Round(time.Millisecond))
	looks, oldest := 0, int64(0)
	look := func() (s harness.ClusterStatus) {
		s = other.Status()
		n := find(s, n1)
		looks++
		oldest = max(oldest, n.SeenMs)
		if !n.Connected {
			t.Errorf("n1 is not connected, %s after %s was stopped: %+v", time.Since(stopped), hung.Name, n)
		}
		return s
	}
	other.Server.WaitUntil("the hung node is not connected", func() bool {
		s := look()
		return !find(s, hung).Connected && s.MayFail == 0
	})
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		if s := look(); find(s, hung).Connected || find(s, hung).SeenMs < 3000 || s.MayFail != 0 {
			t.Errorf("a node hangs: %+v, %d may fail", find(s, hung), s.MayFail)
		}
	}
	t.Logf("n1 was connected all of %d times; it was last seen %d ms ago at most", looks, oldest)
	n1.Server.WaitUntil("n1 knows that a node hangs", func() bool { return !find(n1.Status(), hung).Connected && n1.Status().Quorum })
	got := n1.Run("api-keys", "revoke", key.ID)
	if got.Status != 0 || !strings.Contains(got.Stdout, "revoked on 2 of 3 nodes") || !strings.Contains(got.Stderr, "not yet on "+hung.Name) {
		t.Errorf("revoke: %+v", got)
	}
	if got := other.Server.Do("GET", "/counters/c0", "", "X-API-Key: "+key.Token); got.Status != 401 {
		t.Errorf("a revoked key: %d %s", got.Status, got.Body)
	}
	if got := n1.Run("cluster", "wait", other.Name, "--timeout", "4s"); got.Status != 5 || !strings.Contains(got.Stderr, "without "+hung.Name) {
		t.Errorf("wait while another node hangs: %+v", got)
	}
	resume()
	n1.Must("cluster", "wait", hung.Name)
}

// A node is replaced. It is ready when its vote counts, so after `cluster wait` another node may fail.
func TestANodeThatIsReplacedIsReadyWhenItVotes(t *testing.T) {
	t.Parallel()
	l := measuredCluster(t, 3)
	n1, n2, n3 := l.cluster.Nodes[0], l.cluster.Nodes[1], l.cluster.Nodes[2]
	if got := n1.Run("cluster", "wait", "n9"); got.Status != 4 || !strings.Contains(got.Stderr, `no node with the name "n9"`) {
		t.Errorf("wait for a node that is not there: %+v", got)
	}
	if got := n1.Run("cluster", "wait", ""); got.Status != 2 {
		t.Errorf("wait for an empty name: %+v", got)
	}
	l.kill(2)
	if err := os.RemoveAll(n3.Path("data")); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Node, WaitsFor          string
		Safe                    bool
		Voters, Voting, MayFail int
	}
	got := n1.Run("cluster", "wait", "n3", "--timeout", "3s", "--json")
	if err := json.Unmarshal([]byte(got.Stdout), &doc); err != nil || got.Status != 5 || doc.Safe || doc.Node != "n3" || doc.WaitsFor == "" {
		t.Errorf("wait for a dead node: %+v, %v", got, err)
	}
	n1.Must("cluster", "leave", "n3")
	l.cluster.Join(n3)
	if got := n3.Run("cluster", "wait", "--timeout", "1s"); got.Status != 6 {
		t.Errorf("wait for a server that does not run: %+v", got)
	}
	waited := make(chan harness.Result, 1)
	go func() { waited <- n1.Run("cluster", "wait", "n3", "--json") }()
	resume := pause(n2) // so that etcd takes no server in
	n3.Serve()
	if status, body := health(n3, "ready"); status != 503 || !strings.Contains(body, "the etcd server of this voter does not run yet") {
		t.Errorf("n3 has no vote, and /_health/ready answers %d %s", status, body)
	}
	n1.Server.WaitUntil("n1 knows that n3 has no vote", func() bool {
		n := n1.Status().Nodes[2]
		return n.Connected && n.NotReady != "" && n.NotVoting != ""
	})
	select {
	case got := <-waited:
		t.Fatalf("the wait for n3 has ended before it votes: %+v", got)
	default:
	}
	resume()
	n3.Server.WaitUntil("n3 is ready", func() bool {
		status, _ := health(n3, "ready")
		if status != 200 {
			return false
		}
		if s := n1.Status(); s.Voters != 3 { // the members of etcd that vote
			t.Errorf("n3 is ready, and %d voters count", s.Voters)
		}
		return true
	})
	got = <-waited
	if err := json.Unmarshal([]byte(got.Stdout), &doc); err != nil || got.Status != 0 || !doc.Safe || doc.Voters != 3 || doc.Voting != 3 || doc.MayFail != 1 {
		t.Errorf("wait for n3: %+v, %v", got, err)
	}
	l.kill(1) // the next step: two of three go on
	n1.Server.WaitUntil("a write", func() bool {
		return l.transact(l.nodes[0], 0, 0, order{Name: fmt.Sprint("replaced-", time.Now().UnixNano()), Write: l.counters[:1]}).acknowledged
	})
	if got := n1.Run("cluster", "wait", "n3", "--timeout", "4s"); got.Status != 5 || !strings.Contains(got.Stderr, "without n2") {
		t.Errorf("wait with two of three voters: %+v", got)
	}
	n2.Serve()
	n1.Must("cluster", "wait", "n2")
}

// Of three voters only one is started: it listens, and says that it waits, and for whom. With another one it is
// ready. A voter that has lost its log is not, and says what to do.
func TestAColdStartWithoutAMajorityListens(t *testing.T) {
	t.Parallel()
	l := measuredCluster(t, 3)
	n1, n2, n3 := l.cluster.Nodes[0], l.cluster.Nodes[1], l.cluster.Nodes[2]
	l.kill(0, 1, 2)
	began := time.Now()
	n1.Serve()
	t.Logf("without a majority the listener was there after %s", time.Since(began).Round(time.Millisecond))
	for _, which := range []string{"ready", "write"} {
		if status, body := health(n1, which); status != 503 || !strings.Contains(body, "awaits a majority of the voters; no answer from n2, n3") {
			t.Errorf("/_health/%s: %d %s", which, status, body)
		}
	}
	if status, _ := health(n1, "live"); status != 200 {
		t.Errorf("/_health/live: %d", status)
	}
	if got := n1.Server.Do("GET", "/counters/c0", "", "X-API-Key: "+l.token); got.Status != 503 || !strings.Contains(got.Body, "key_store_stale") {
		t.Errorf("a read: %d %s", got.Status, got.Body)
	}
	n1.Server.WaitUntil("the log says who is awaited", func() bool {
		return regexp.MustCompile(`"majority of the voters not reached; nothing can be stored".*n2.*n3`).MatchString(n1.Server.Stderr.String())
	})
	if got := n1.Must("status"); !strings.Contains(got, "no: no majority of the voters has answered yet") {
		t.Errorf("status:\n%s", got)
	}

	if err := os.RemoveAll(n3.Path("data/cluster/etcd")); err != nil {
		t.Fatal(err)
	}
	n2.Serve()
	n1.WaitReady()
	n2.WaitReady()
	n3.Serve()
	const remedy = "run runner cluster leave n3 on another node, and join again with a new data directory"
	n3.Server.WaitUntil("n3 says that its log is lost", func() bool {
		status, body := health(n3, "ready")
		if status == 200 {
			t.Fatalf("a voter without its log is ready: %s", body)
		}
		return strings.Contains(body, remedy)
	})
	n1.Server.WaitUntil("n1 knows it", func() bool {
		s := n1.Status()
		return s.MayFail == 0 && strings.Contains(s.Nodes[2].NotReady, remedy) && strings.Contains(s.Nodes[2].NotVoting, remedy)
	})
	if got := n3.Server.Do("GET", "/counters/c0", "", "X-API-Key: "+l.token); got.Status != 200 { // it follows the others
		t.Errorf("a read on a node without its log: %d %s", got.Status, got.Body)
	}
	n1.Must("cluster", "leave", "n3")
	<-n3.Server.Ended
	l.cluster.Join(n3)
	n3.Serve()
	n1.Must("cluster", "wait", "n3")
}
