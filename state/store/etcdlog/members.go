package etcdlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"runner.example/internal/fault"
)

const (
	// connectedWait is how long a change of the members is tried again when etcd refuses it because the
	// servers have not been connected to each other for 5 seconds, and connectedPause the pause.
	connectedWait  = 7 * time.Second
	connectedPause = 250 * time.Millisecond
)

// ErrNotInSync means that a learner does not have what a voter must have. It may be promoted later.
var ErrNotInSync error = fault.New(fault.Unavailable, "the server is not yet in sync with the others")

// MemberInfo is a server of the cluster as the others know it.
type MemberInfo struct {
	ID uint64
	// Name is empty until the server has run.
	Name                 string
	PeerURLs, ClientURLs []string
	// Learner: it gets all changes and does not vote.
	Learner bool
}

// Members returns the servers of the cluster.
func (c *Client) Members(ctx context.Context) ([]MemberInfo, error) {
	got, err := c.etcd.MemberList(ctx)
	if err != nil {
		return nil, memberError("list the etcd servers", err)
	}
	return infos(got.Members), nil
}

func infos(members []*etcdserverpb.Member) (all []MemberInfo) {
	for _, m := range members {
		all = append(all, MemberInfo{
			ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, Learner: m.IsLearner,
		})
	}
	return all
}

// AddLearner adds a server that is about to be started, with Joins. It returns the other members for
// ServerOptions.Members. It may be called again until that server has run.
func (c *Client) AddLearner(ctx context.Context, peers string) (id uint64, members []Member, err error) {
	var all []MemberInfo
	err = whenConnected(ctx, func() error {
		got, err := c.etcd.MemberAddAsLearner(ctx, []string{peers})
		if err == nil {
			id, all = got.Member.ID, infos(got.Members)
		}
		return err
	})
	if errors.Is(err, rpctypes.ErrPeerURLExist) || errors.Is(err, rpctypes.ErrMemberExist) ||
		errors.Is(err, rpctypes.ErrTooManyLearners) {
		var listed error
		if all, listed = c.Members(ctx); listed != nil {
			return 0, nil, listed
		}
		for _, m := range all {
			if m.Name == "" && m.Learner && len(m.PeerURLs) == 1 && m.PeerURLs[0] == peers {
				id = m.ID
			}
		}
	}
	switch {
	case id == 0 && errors.Is(err, rpctypes.ErrTooManyLearners):
		return 0, nil, fault.New(fault.Conflict,
			"add a server to the log: another server is joining (%s); wait until it votes, or remove it", learners(all))
	case id == 0:
		return 0, nil, memberError("add a server to the log", err)
	}
	for _, m := range all {
		if m.ID == id {
			continue
		}
		name := m.Name
		if name == "" {
			name = fmt.Sprintf("member-%x", m.ID)
		}
		for _, p := range m.PeerURLs {
			members = append(members, Member{name, p})
		}
	}
	return id, members, nil
}

// learners names the learners among members.
func learners(members []MemberInfo) string {
	var names []string
	for _, m := range members {
		if m.Learner {
			names = append(names, strings.TrimSpace(m.Name+" "+strings.Join(m.PeerURLs, " ")))
		}
	}
	return strings.Join(names, ", ")
}

// Promote makes a learner a voter. The error matches ErrNotInSync if it is too early. It does nothing
// for a voter.
func (c *Client) Promote(ctx context.Context, id uint64) error {
	err := whenConnected(ctx, func() error {
		_, err := c.etcd.MemberPromote(ctx, id)
		return err
	})
	if err != nil && !errors.Is(err, rpctypes.ErrMemberNotLearner) {
		return memberError("promote an etcd server to voter", err)
	}
	return nil
}

// Remove removes a server from the cluster: it stops, and cannot run again with its data directory.
// The error has the code fault.NotFound if there is no such member. It is refused if too few of the
// other voters run.
func (c *Client) Remove(ctx context.Context, id uint64) error {
	err := whenConnected(ctx, func() error {
		_, err := c.etcd.MemberRemove(ctx, id)
		return err
	})
	if errors.Is(err, rpctypes.ErrStopped) { // the one that was asked, perhaps because it was removed
		members, listErr := c.Members(ctx)
		if listErr == nil && !slices.ContainsFunc(members, func(m MemberInfo) bool { return m.ID == id }) {
			return nil
		}
	}
	if err != nil {
		return memberError("remove an etcd server", err)
	}
	return nil
}

// Leader returns the id of the member that leads, as the first server to answer knows it. It asks all at
// once: one that is down would take the whole time.
func (c *Client) Leader(ctx context.Context) (id uint64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		leader uint64
		err    error
	}
	addresses := c.Addresses()
	answers := make(chan answer, len(addresses))
	for _, address := range addresses {
		c.tasks.Go(func() {
			status, err := c.etcd.Status(ctx, address)
			if err != nil {
				answers <- answer{err: err}
				return
			}
			answers <- answer{leader: status.Leader}
		})
	}
	err = errors.New("no server leads")
	for range addresses {
		a := <-answers
		if a.leader != 0 {
			return a.leader, nil
		}
		err = cmp.Or(a.err, err)
	}
	return 0, memberError("ask which etcd server leads", err)
}

// whenConnected calls change again while the servers have not been connected for long enough.
func whenConnected(ctx context.Context, change func() error) error {
	late := time.NewTimer(connectedWait)
	defer late.Stop()
	for {
		err := change()
		if !errors.Is(err, rpctypes.ErrUnhealthy) {
			return err
		}
		select {
		case <-late.C:
			return err
		case <-ctx.Done():
			return err
		case <-time.After(connectedPause):
		}
	}
}

// memberError says what an error of etcd about its members means.
func memberError(act string, err error) error {
	text := ""
	code := fault.Conflict
	switch {
	case errors.Is(err, rpctypes.ErrMemberLearnerNotReady):
		return ErrNotInSync
	case errors.Is(err, rpctypes.ErrMemberNotEnoughStarted):
		text = "too few of the other servers run, so no majority would be left"
	case errors.Is(err, rpctypes.ErrUnhealthy):
		code, text = fault.Unavailable,
			"too few servers have been connected to each other in the last 5 s; try again when they are"
	case errors.Is(err, rpctypes.ErrPeerURLExist), errors.Is(err, rpctypes.ErrMemberExist):
		text = "a server with this address is a member; remove it before it joins again"
	case errors.Is(err, rpctypes.ErrMemberNotFound):
		code, text = fault.NotFound, "there is no such member"
	default:
		return fmt.Errorf("%s: %w", act, err)
	}
	return fault.New(code, "%s: %s", act, text)
}
