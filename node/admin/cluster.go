package admin

import (
	"context"
	"encoding/json"

	"runner.example/node/cluster"
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
	return ask(ctx, c, OpInviteNode, request)
}

// ClusterStatus returns the state of the cluster as the node sees it.
func (c *Client) ClusterStatus(ctx context.Context) (cluster.Overview, error) {
	return ask(ctx, c, OpClusterStatus, none{})
}

// LeaveCluster removes a node from the cluster.
func (c *Client) LeaveCluster(ctx context.Context, request LeaveCluster) (LeftCluster, error) {
	return ask(ctx, c, OpLeaveCluster, request)
}

// Changed is a key or session whose rights were taken away, and where that is known.
type Changed[T any] struct {
	Item T
	// Nodes is nil for a standalone server.
	Nodes *cluster.Replication
}

// nodesMember is the JSON member that Changed adds to its item.
type nodesMember struct {
	Nodes *cluster.Replication `json:"nodes,omitempty"`
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

// JSONForm returns the item and the zero value of the member that MarshalJSON adds: documents describe the
// JSON by them.
func (c Changed[T]) JSONForm() []any { return []any{c.Item, nodesMember{}} }

// UnmarshalJSON decodes what MarshalJSON encoded.
func (c *Changed[T]) UnmarshalJSON(text []byte) error {
	var m nodesMember
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	c.Nodes = m.Nodes
	return json.Unmarshal(text, &c.Item)
}
