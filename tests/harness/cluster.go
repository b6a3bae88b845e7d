package harness

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// Node is a node of a cluster: a server with an app directory of its own.
type Node struct {
	*App
	Name    string
	Address string  // at which the other nodes reach it
	Server  *Server // the one that was started last
}

// Cluster is the nodes of one cluster on this machine. The first one founds it.
type Cluster struct {
	T       testing.TB
	Nodes   []*Node
	Network *Network // nil: all nodes are on loopback

	newApp func() *App
	host   string
}

// loopbackNetwork is the beginning of addresses of loopback. They are as good as random ports, and no other
// test uses them, nor does an outbound connection use one of their ports.
func loopbackNetwork() string { return fmt.Sprintf("127.%d.%d", 1+rand.IntN(254), rand.IntN(255)) }

// LoopbackHost returns a host on which all ports are free, also for a server that starts again.
func LoopbackHost() string { return loopbackNetwork() + ".1" }

// NewCluster founds a cluster whose nodes serve copies of the app, without starting a node. If there is
// a network, each node is on a machine of its own.
func NewCluster(t testing.TB, network *Network, newApp func() *App) *Cluster {
	t.Helper()
	c := &Cluster{T: t, Network: network, newApp: newApp, host: loopbackNetwork()}
	n := c.add()
	n.Must("cluster", "init", "--name", n.Name, "--listen", n.Address)
	return c
}

// add makes the app directory of one more node.
func (c *Cluster) add() *Node {
	c.T.Helper()
	i := len(c.Nodes)
	n := &Node{App: c.newApp(), Name: fmt.Sprint("n", i+1), Address: fmt.Sprintf("%s.%d:9400", c.host, i+1)}
	if c.Network != nil {
		n.Namespace, n.Address = c.Network.Namespace(i), c.Network.Address(i)+":9400"
	}
	c.Nodes = append(c.Nodes, n)
	return n
}

// Add joins one more node, without starting it. The first node must run. Flags are those of invite.
func (c *Cluster) Add(flags ...string) *Node {
	c.T.Helper()
	n := c.add()
	c.Join(n, flags...)
	return n
}

// Join joins a node with an empty data directory: a new one, or one that was removed.
func (c *Cluster) Join(n *Node, flags ...string) {
	c.T.Helper()
	if err := os.RemoveAll(n.Path("data")); err != nil {
		c.T.Fatal(err)
	}
	inviting := c.Nodes[0]
	if n == inviting {
		inviting = c.Nodes[1]
	}
	var invitation struct{ Token string }
	out := inviting.Must(append([]string{"cluster", "invite", "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &invitation); err != nil {
		c.T.Fatalf("read %q: %v", out, err)
	}
	n.Must("cluster", "join", invitation.Token, "--name", n.Name, "--listen", n.Address)
	n.ShareCode()
}

// Serve starts the server of a node, and returns when it listens for requests.
func (n *Node) Serve(args ...string) *Server {
	n.T.Helper()
	n.Server = n.App.Serve(args...)
	return n.Server
}

// WaitReady waits until the node is ready.
func (n *Node) WaitReady() {
	n.T.Helper()
	n.Server.WaitUntil(n.Name+" is ready", func() bool {
		got, err := n.Server.Try("GET", "/_health/ready", "")
		return err == nil && got.Status == 200
	})
	n.Server.WaitUntil(n.Name+" votes, if it is a voter", func() bool { return !n.Status().Self().Joining })
}

// NodeStatus is what a node knows of another one, or of itself.
type NodeStatus struct {
	Name, Role, Address, Release, NotReady, Error string
	NotVoting                                     string
	Connected, Joining                            bool
	SeenMs                                        int64
	Applied, Lag                                  uint64
	StalenessMs                                   int64
	MissingFiles                                  int64 // which rows name
	Position                                      struct {
		Seq, Revision uint64
		Chain         []byte
	}
}

// ClusterStatus is what `runner cluster status --json` prints.
type ClusterStatus struct {
	Node, Owner, Leader string
	Quorum              bool
	Voters, Voting      int
	MayFail             int
	Nodes               []NodeStatus
}

// Status returns the state of the cluster as the node sees it.
func (n *Node) Status() (s ClusterStatus) {
	n.T.Helper()
	out := n.Must("cluster", "status", "--json")
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		n.T.Fatalf("read %q: %v", out, err)
	}
	return s
}

// Self returns what the node knows of itself.
func (s ClusterStatus) Self() NodeStatus {
	for _, n := range s.Nodes {
		if n.Name == s.Node {
			return n
		}
	}
	return NodeStatus{}
}

// Find returns the node with the name.
func (c *Cluster) Find(name string) *Node {
	c.T.Helper()
	for _, n := range c.Nodes {
		if n.Name == name {
			return n
		}
	}
	c.T.Fatalf("no node has the name %q", name)
	return nil
}

// Leader waits until the cluster has a leader, and returns it as one of the running nodes sees it.
func (c *Cluster) Leader(seenBy *Node) *Node {
	c.T.Helper()
	leader := ""
	for end := time.Now().Add(Timeout); leader == ""; <-time.After(100 * time.Millisecond) {
		if leader = seenBy.Status().Leader; time.Now().After(end) {
			c.T.Fatalf("%s sees no leader within %s", seenBy.Name, Timeout)
		}
	}
	return c.Find(leader)
}
