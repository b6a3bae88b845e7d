package server

import (
	"context"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/node/cluster"
	"runner.example/state/store"
)

// member returns the node of a cluster that this is.
func (l *Local) member() (*cluster.Node, error) {
	if l.Cluster == nil {
		return nil, fault.New(fault.Invalid, "the server belongs to no cluster: stop it, and run runner cluster init")
	}
	return l.Cluster, nil
}

func (l *Local) inviteNode(ctx context.Context, _ keystore.Authority, args admin.InviteNode) (admin.Invitation, error) {
	n, err := l.member()
	if err != nil {
		return admin.Invitation{}, err
	}
	role := cluster.Voter
	if args.Edge {
		role = cluster.Edge
	}
	token, err := n.Invite(ctx, role)
	return admin.Invitation{Token: token.Reveal(), ExpiresIn: admin.SecondsOf(cluster.InvitationLife)}, err
}

func (l *Local) clusterStatus(ctx context.Context, _ keystore.Authority, _ struct{}) (cluster.Overview, error) {
	n, err := l.member()
	if err != nil {
		return cluster.Overview{}, err
	}
	return n.Status(ctx)
}

func (l *Local) leaveCluster(ctx context.Context, _ keystore.Authority, args admin.LeaveCluster) (admin.LeftCluster, error) {
	n, err := l.member()
	if err != nil {
		return admin.LeftCluster{}, err
	}
	self, err := n.Leave(ctx, args.Node)
	if err != nil {
		return admin.LeftCluster{}, err
	}
	if self {
		args.Node = n.Name()
		l.Leave()
	}
	return admin.LeftCluster{Node: args.Node, Self: self}, nil
}

// everywhere returns what was changed in a commit, when the connected nodes have applied it.
func everywhere[T any](ctx context.Context, l *Local, item T, seq store.Seq, err error) (admin.Changed[T], error) {
	c := admin.Changed[T]{Item: item}
	if err == nil && l.Cluster != nil {
		c.Nodes = new(l.Cluster.WaitApplied(ctx, seq))
	}
	return c, err
}
