package admin

import (
	"context"
	"encoding/json"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/cluster"
	"runner.example/state/store"
)

// InviteNode asks for an invitation to the cluster.
type InviteNode struct {
	// Edge: the invited node will be an edge node, and no voter.
	Edge bool `json:"edge,omitempty"`
}

// Invitation makes a machine a node of the cluster, once, until it expires.
type Invitation struct {
	Token string `json:"token"`
	// ExpiresIn is how long it can be used, in seconds.
	ExpiresIn int64 `json:"expiresIn"`
}

// LeaveCluster names the node that leaves; empty: the node that is asked.
type LeaveCluster struct {
	Node string `json:"node,omitempty"`
}

// LeftCluster is the answer to LeaveCluster. Self: it was the node that was asked, whose server ends.
type LeftCluster struct {
	Node string `json:"node"`
	Self bool   `json:"self"`
}

// InviteNode makes an invitation to the cluster.
func (c *Client) InviteNode(ctx context.Context, request InviteNode) (Invitation, error) {
	return ask[Invitation](ctx, c, "cluster.invite", request)
}

// ClusterStatus returns the state of the cluster as the node sees it.
func (c *Client) ClusterStatus(ctx context.Context) (cluster.Overview, error) {
	return ask[cluster.Overview](ctx, c, "cluster.status", struct{}{})
}

// LeaveCluster removes a node from the cluster.
func (c *Client) LeaveCluster(ctx context.Context, request LeaveCluster) (LeftCluster, error) {
	return ask[LeftCluster](ctx, c, "cluster.leave", request)
}

// member returns the node of a cluster that this is.
func (l *Local) member() (*cluster.Node, error) {
	if l.Cluster == nil {
		return nil, fault.New(fault.Invalid, "the server belongs to no cluster: stop it, and run runner cluster init")
	}
	return l.Cluster, nil
}

func (l *Local) inviteNode(ctx context.Context, _ keystore.Authority, args InviteNode) (Invitation, error) {
	n, err := l.member()
	if err != nil {
		return Invitation{}, err
	}
	role := cluster.Voter
	if args.Edge {
		role = cluster.Edge
	}
	token, err := n.Invite(ctx, role)
	return Invitation{Token: token.Reveal(), ExpiresIn: SecondsOf(cluster.InvitationLife)}, err
}

func (l *Local) clusterStatus(ctx context.Context, _ keystore.Authority, _ struct{}) (cluster.Overview, error) {
	n, err := l.member()
	if err != nil {
		return cluster.Overview{}, err
	}
	return n.Status(ctx)
}

func (l *Local) leaveCluster(ctx context.Context, _ keystore.Authority, args LeaveCluster) (LeftCluster, error) {
	n, err := l.member()
	if err != nil {
		return LeftCluster{}, err
	}
	self, err := n.Leave(ctx, args.Node)
	if err != nil {
		return LeftCluster{}, err
	}
	if self {
		args.Node = n.Name()
		l.Leave()
	}
	return LeftCluster{args.Node, self}, nil
}

// Changed is a key or session whose rights were taken away, and where that is known.
type Changed[T any] struct {
	Item T
	// Nodes is nil for a standalone server.
	Nodes *cluster.Replication
}

// nodesMember is the JSON member that Changed adds to its item.
type nodesMember struct {
	Nodes *cluster.Replication `json:"nodes"`
}

// MarshalJSON encodes the item, with the member nodes if it has one.
func (c Changed[T]) MarshalJSON() ([]byte, error) {
	item, err := json.Marshal(c.Item)
	if err != nil || c.Nodes == nil {
		return item, err
	}
	nodes, err := json.Marshal(nodesMember{c.Nodes})
	return append(append(item[:len(item)-1], ','), nodes[1:]...), err
}

// UnmarshalJSON decodes what MarshalJSON encoded.
func (c *Changed[T]) UnmarshalJSON(text []byte) error {
	var m nodesMember
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	c.Nodes = m.Nodes
	return json.Unmarshal(text, &c.Item)
}

// everywhere returns what was changed in a commit, when the connected nodes have applied it.
func everywhere[T any](ctx context.Context, l *Local, item T, seq store.Seq, err error) (Changed[T], error) {
	c := Changed[T]{Item: item}
	if err == nil && l.Cluster != nil {
		c.Nodes = new(l.Cluster.WaitApplied(ctx, seq))
	}
	return c, err
}
