package etcdlog_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/state/store/etcdlog"
)

func dial(t *testing.T, tls *etcdlog.TLS, addresses ...string) *etcdlog.Client {
	t.Helper()
	c, err := etcdlog.Dial(addresses, tls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func start(t *testing.T, o etcdlog.ServerOptions) *etcdlog.Server {
	t.Helper()
	s, err := etcdlog.StartServer(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// join adds a server to the cluster of a client, and makes it a voter.
func join(t *testing.T, c *etcdlog.Client, name string, a *authority) *etcdlog.Server {
	t.Helper()
	scheme := "http"
	if a != nil {
		scheme = "https"
	}
	addresses := freeAddresses(t, scheme, 2)
	var tls *etcdlog.TLS
	if a != nil {
		tls = a.issueAt(name, addresses[1])
	}
	_, _, err := c.AddLearner(t.Context(), addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	id, members, err := c.AddLearner(t.Context(), addresses[0]) // again, as after a lost answer
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, etcdlog.ServerOptions{
		Dir: filepath.Join(t.TempDir(), name), Self: etcdlog.Member{Name: name, PeerURL: addresses[0]}, Members: members,
		ClientURL: addresses[1], TLS: tls, Joins: true, Election: time.Second, ReadyWait: time.Minute,
	})
	for {
		err := c.Promote(t.Context(), id)
		if err == nil {
			return s
		}
		if !errors.Is(err, etcdlog.ErrNotInSync) {
			t.Fatal(err)
		}
	}
}

func TestAClientFollowsTheServersWithMutualTLS(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	t.Parallel()
	a := newAuthority(t)
	addresses := freeAddresses(t, "https", 2)
	one := etcdlog.Member{Name: "n1", PeerURL: addresses[0]}
	first := start(t, etcdlog.ServerOptions{
		Dir: filepath.Join(t.TempDir(), "n1"), Self: one, Members: []etcdlog.Member{one}, ClientURL: addresses[1],
		TLS: a.issueAt("n1", addresses[1]), Election: time.Second, ReadyWait: time.Minute,
	})
	c := dial(t, a.issue("client", "192.0.2.1"), addresses[1]) // a client behind NAT
	for i := range 2 {
		name := fmt.Sprintf("n%d", i+2)
		join(t, c, name, a)
	}
	members, err := c.Members(t.Context())
	if err != nil || len(members) != 3 {
		t.Fatalf("the members are %+v, %v", members, err)
	}
	leader, err := c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var gone etcdlog.MemberInfo
	known := false
	for _, m := range members {
		known = known || m.ID == leader
		if m.Learner || len(m.PeerURLs) != 1 || len(m.ClientURLs) != 1 {
			t.Errorf("a member is %+v", m)
		}
		if m.Name == "n1" {
			gone = m
		}
	}
	if !known {
		t.Errorf("the leader is %x, the members are %+v", leader, members)
	}
	if err := c.Sync(t.Context()); err != nil || len(c.Addresses()) != 3 {
		t.Fatalf("the addresses are %q, %v", c.Addresses(), err)
	}
	if err := c.Remove(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	<-first.Stopped()
	if err := first.Err(); !errors.Is(err, etcdlog.ErrRemoved) {
		t.Errorf("the removed server ended with %v", err)
	}
	// What is asked while the others elect a leader may fail.
	for end := time.Now().Add(time.Minute); ; {
		err := c.Claim(t.Context(), "a")
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("a client whose first server is gone gets %v", err)
		}
	}
	if err := c.Remove(t.Context(), gone.ID); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a member was removed twice: %v", err)
	}
}

// A change of the members that would leave no majority is refused.
func TestTheLastMajorityIsNotRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	t.Parallel()
	all := options(t, t.TempDir(), 3)
	var servers []*etcdlog.Server
	for _, o := range all {
		servers = append(servers, run(t, o))
	}
	for _, s := range servers {
		<-s.Ready()
	}
	c := dial(t, nil, all[0].ClientURL)
	c.FollowMembers(50 * time.Millisecond)
	for len(c.Addresses()) != 3 {
		if _, err := c.Members(t.Context()); err != nil { // the time that it takes is the pace
			t.Fatal(err)
		}
	}
	members, err := c.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := func(name string) uint64 {
		i := slices.IndexFunc(members, func(m etcdlog.MemberInfo) bool { return m.Name == name })
		return members[i].ID
	}
	servers[2].Close()
	err = c.Remove(t.Context(), id("n2"))
	if code := fault.CodeOf(err); code != fault.Unavailable && code != fault.Conflict || strings.Contains(err.Error(), "etcdserver") {
		t.Errorf("two of three run, and one of them is removed: %v", err)
	}
	if err := c.Remove(t.Context(), id("n3")); err != nil {
		t.Errorf("the one that does not run cannot be removed: %v", err)
	}
	if _, _, err := c.AddLearner(t.Context(), all[2].Self.PeerURL); err != nil {
		t.Error(err)
	}
	if _, _, err := c.AddLearner(t.Context(), freeAddresses(t, "http", 1)[0]); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "joining ("+all[2].Self.PeerURL) {
		t.Errorf("a second learner: %v", err)
	}
	if _, _, err := c.AddLearner(t.Context(), all[1].Self.PeerURL); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a member is added again: %v", err)
	}
	if err := c.Promote(t.Context(), id("n2")); err != nil {
		t.Errorf("a voter is promoted: %v", err)
	}
	if err := c.Promote(t.Context(), 42); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an unknown member is promoted: %v", err)
	}
}

// A server that does not answer does not hide the leader.
func TestTheLeaderIsKnownAlthoughAServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	o := options(t, t.TempDir(), 1)[0]
	<-run(t, o).Ready()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := dial(t, nil, "http://"+silent.Addr().String(), o.ClientURL)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	if id, err := c.Leader(ctx); id == 0 || err != nil {
		t.Errorf("the leader is %x, %v", id, err)
	}
}
