package cluster_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/cluster"
	"runner.example/state/store"
)

// lines is a log whose lines a test waits for.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}

func (l lines) wait(t *testing.T, parts ...string) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case line := <-l:
			t.Log(line)
			if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
				return
			}
		case <-late:
			t.Fatalf("no line with %q came in a minute", parts)
		}
	}
}

// startLogged starts a node without its store.
func startLogged(t *testing.T, data string) lines {
	t.Helper()
	logged := make(lines, 1000)
	n, err := cluster.Start(cluster.StartOptions{
		Options: cluster.Options{Election: time.Second}, Data: data, Pepper: keystore.Options{Dir: data}.PepperPath(),
		Logger: slog.New(slog.NewTextHandler(logged, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return logged
}

// node returns the row of a node, the zero value if there is none.
func (m *member) node(name string) cluster.NodeStatus {
	m.t.Helper()
	for _, n := range m.status().Nodes {
		if n.Name == name {
			return n
		}
	}
	return cluster.NodeStatus{}
}

func TestANodeThatWasRemovedEnds(t *testing.T) {
	first := found(t)
	data := first.joined(cluster.Edge, "edge")
	edge := start(t, data)
	if _, err := first.Leave(t.Context(), "edge"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-edge.removed:
		if !errors.Is(err, cluster.ErrRemoved) || fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "join again") {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the removed node goes on")
	}
	edge.stop()
	if _, err := cluster.Start(cluster.StartOptions{Data: data, Logger: slog.New(slog.DiscardHandler)}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("it starts again: %v", err)
	}
}

// Its name may be that of another machine by then.
func TestANodeThatWasRemovedWhileItWasStoppedDoesNotServeAgain(t *testing.T) {
	first := found(t)
	data := first.joined(cluster.Edge, "edge")
	if _, err := first.Leave(t.Context(), "edge"); err != nil {
		t.Fatal(err)
	}
	if _, err := join(t, first.invite(cluster.Edge), "edge"); err != nil {
		t.Fatal(err)
	}
	if _, err := tryStart(t.Context(), t, data); !errors.Is(err, cluster.ErrRemoved) {
		t.Errorf("it serves: %v", err)
	}
}

// Without the table, a voter that was removed before its first start would add its server to etcd.
func TestAVoterThatWasRemovedBeforeItsFirstStartDoesNotJoinEtcd(t *testing.T) {
	first := found(t)
	data := first.joined(cluster.Voter, "zb")
	if _, err := first.Leave(t.Context(), "zb"); err != nil {
		t.Fatal(err)
	}
	startLogged(t, data).wait(t, "etcd server start failed; retrying", "the cluster has no node with the name")
	members, err := first.dial().Members(t.Context())
	if err != nil || len(members) != 1 {
		t.Errorf("etcd has %+v, %v", members, err)
	}
}

// A voter without a log tries to add its server until it ends. While it leaves, the server that the others have removed
// would be added again, and a node that joins with its address could not use that.
func TestAVoterThatLeavesDoesNotJoinEtcdAgain(t *testing.T) {
	first := found(t)
	data := first.joined(cluster.Voter, "n2")
	first.markLeaving("n2")
	startLogged(t, data).wait(t, "etcd server start failed; retrying", "is leaving the cluster")
	members, err := first.dial().Members(t.Context())
	if err != nil || len(members) != 1 {
		t.Errorf("etcd has %+v, %v", members, err)
	}
}

// etcd makes files before it begins its log: a voter that was killed in between must not begin a log of its own.
func TestAVoterThatWasKilledWhileItsServerBeganJoinsTheOthers(t *testing.T) {
	first := found(t)
	first.set("a", "1")
	data := first.joined(cluster.Voter, "n2")
	if _, _, err := first.dial().AddLearner(t.Context(), "https://"+nextPort(t, addressOf(t, first, "n2"), 2)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"snap", "wal.tmp"} {
		if err := os.MkdirAll(filepath.Join(data, "cluster", "etcd", "member", dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	n2 := start(t, data)
	for late := time.After(time.Minute); first.status().Voting != 2; {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-late:
			t.Fatalf("n2 does not vote within a minute: %+v", first.status())
		}
	}
	if got := n2.get("a"); got != "1" {
		t.Errorf("a is %q", got)
	}
}

// addressOf returns the address of a node.
func addressOf(t *testing.T, m *member, name string) string {
	t.Helper()
	if n := m.node(name); n.Address != "" {
		return n.Address
	}
	t.Fatalf("there is no node %q", name)
	return ""
}

func TestAMemberOfEtcdThatIsNotANodeIsListedAndRemoved(t *testing.T) {
	first := found(t)
	client := first.dial()
	if _, _, err := client.AddLearner(t.Context(), "https://127.0.0.1:9"); err != nil {
		t.Fatal(err)
	}
	s := first.status()
	if len(s.Nodes) != 2 || !s.Nodes[0].Unlisted || !strings.HasPrefix(s.Nodes[0].Name, "member-") || s.Nodes[0].Address != "127.0.0.1:9" {
		t.Fatalf("status: %+v", s.Nodes)
	}
	if self, err := first.Leave(t.Context(), s.Nodes[0].Name); self || err != nil {
		t.Fatal(err)
	}
	if members, err := client.Members(t.Context()); err != nil || len(members) != 1 {
		t.Errorf("etcd has %+v, %v", members, err)
	}
}

// markLeaving writes that a node is leaving, as Leave does before it removes the server.
func (m *member) markLeaving(name string) {
	m.t.Helper()
	_, err := m.store.Update(m.t.Context(), func(tx *store.Tx) error {
		key := []byte("cluster/nodes/" + name)
		text, err := tx.Get(key)
		if err != nil {
			return err
		}
		var record map[string]any
		if err := json.Unmarshal(text, &record); err != nil {
			return err
		}
		record["leaving"] = true
		if text, err = json.Marshal(record); err != nil {
			return err
		}
		return tx.Set(key, text)
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// A crash between the removal of the server and that of the record leaves a node that is shown as leaving.
func TestAnInterruptedLeaveIsShownAndRepeated(t *testing.T) {
	first := found(t)
	if _, err := join(t, first.invite(cluster.Voter), "n2"); err != nil {
		t.Fatal(err)
	}
	if n := first.node("n2"); !n.Joining || n.Leaving || n.Staleness != -1 {
		t.Errorf("before: %+v", n)
	}
	first.markLeaving("n2")
	if n := first.node("n2"); n.Joining || !n.Leaving {
		t.Errorf("in between: %+v", n)
	}
	// The other one is the last voter by now.
	if self, err := first.Leave(t.Context(), ""); self || fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "last voter") {
		t.Errorf("the last voter leaves: %v, %v", self, err)
	}
	if _, err := first.Leave(t.Context(), "n2"); err != nil {
		t.Fatal(err)
	}
	if n := first.node("n2"); n.Name != "" {
		t.Errorf("afterwards: %+v", n)
	}
}
