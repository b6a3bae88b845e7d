package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/wait"
	"runner.example/state/store"
	"runner.example/state/store/etcdlog"
)

// etcdServer is the etcd server of a voter, which is started in the background.
type etcdServer struct {
	node *Node
	opt  etcdlog.ServerOptions
	stop context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex
	running *etcdlog.Server // nil: not yet
	cause   error           // why it did not start; nil: it was not tried yet
	votes   bool
}

// startServer starts the etcd server of a voter. One that has just joined asks the others to take it in
// first. It becomes a learner, and a voter as soon as it has the log.
func (n *Node) startServer(election time.Duration) *etcdServer {
	s := &etcdServer{node: n, opt: etcdlog.ServerOptions{
		Dir: files(n.data, etcdDir), Self: etcdlog.Member{Name: n.id.Name, PeerURL: etcdPeerURL(n.id.Address)},
		ClientURL: etcdClientURL(n.id.Address), TLS: tlsFiles(n.data), Election: election, Logger: n.logger,
	}}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	founded := n.id.Bootstrap
	s.work.Go(func() { s.run(ctx, founded) })
	return s
}

// notVoting returns why the etcd server of this voter does not count for the majority, and what to do; nil if
// it does, and on a node that runs none. With final, only an operator can change it. Anyone may read the detail.
func (n *Node) notVoting() (cause *fault.Fault, final bool) {
	s := n.etcd
	if s == nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		if errors.Is(s.cause, errNoLog) {
			return fault.Of(s.cause), true
		}
		return fault.New(fault.NotReady, "the etcd server of this voter does not run yet: the log says why"), false
	}
	select {
	case <-s.running.Stopped():
		if err := s.running.Err(); err != nil {
			return fault.Wrap(err, fault.NotReady, "the etcd server of this voter does not run (%v): %s", err, n.remedy(err)), true
		}
	default:
	}
	if s.votes {
		if _, err := os.Stat(filepath.Join(s.opt.Dir, memberDir)); errors.Is(err, fs.ErrNotExist) {
			return n.noLog("the directory with the log was removed while the etcd server of this voter runs"), true
		}
		return nil, false
	}
	select {
	case <-s.running.Ready():
		return fault.New(fault.NotReady, "this voter has no vote yet: its etcd server gets the log from the others"), false
	default:
		text := "the etcd server of this voter awaits a majority of the voters"
		if names, _ := n.awaited(); len(names) > 0 {
			text += "; no answer from " + strings.Join(names, ", ")
		}
		return fault.New(fault.NotReady, "%s", text), false
	}
}

// noteServer tells the server around the node whether its etcd server votes.
func (n *Node) noteServer() {
	cause, final := n.notVoting()
	text := ""
	if cause != nil {
		text = cause.Detail
	}
	n.mu.Lock()
	changed := n.notVotes != text
	n.notVotes = text
	n.mu.Unlock()
	if !changed {
		return
	}
	if final {
		n.logger.Error("etcd server of this voter ended", "cause", text)
	}
	n.hooks.OnServer(cause)
}

// memberDir is the directory that etcd makes in its data directory.
const memberDir = "member"

// errNoLog means that the directory with the log is missing, although the server has run.
var errNoLog = errors.New("no log")

// noLog returns an error that matches errNoLog, with what to do.
func (n *Node) noLog(what string) *fault.Fault {
	return fault.Wrap(fmt.Errorf("%w in %q", errNoLog, n.etcd.opt.Dir), fault.NotReady, "%s: %s", what, n.remedy(errNoLog))
}

// isOnlyVoter reports whether this voter knows no other one.
func (n *Node) isOnlyVoter() bool {
	return !slices.ContainsFunc(n.peers(), func(p Peer) bool { return p.Role == Voter })
}

// remedy says what to do about a voter whose etcd server cannot run for that reason.
func (n *Node) remedy(cause error) string {
	switch {
	case store.IsFull(cause):
		return "make room on the disk, and restart this node"
	case n.isOnlyVoter():
		return "stop the server, run runner cluster dissolve, and found a cluster again with runner cluster init"
	}
	return fmt.Sprintf("run runner cluster leave %s on another node, and join again with a new data directory", n.id.Name)
}

// endJoining ends what needs the client of the log.
func (s *etcdServer) endJoining() {
	s.stop()
	s.work.Wait()
}

// close stops the server.
func (s *etcdServer) close() {
	s.endJoining()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		s.running.Close()
	}
}

// joinPause is the pause between two attempts to be taken in, or to become a voter.
const joinPause = time.Second

func (s *etcdServer) run(ctx context.Context, founded bool) {
	for cause := ""; ; {
		err := s.start(ctx, founded)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		s.cause = err
		s.mu.Unlock()
		if err.Error() != cause { // not the same line each second
			cause = err.Error()
			s.node.logger.Warn("etcd server start failed; retrying", "cause", err)
		}
		if wait.For(ctx, joinPause) != nil {
			return
		}
	}
	s.promote(ctx)
}

// start starts the server. One without a log is added to the cluster first, unless it founds it. A node
// that was removed before must not add its server, which the other nodes would not know.
func (s *etcdServer) start(ctx context.Context, founded bool) (err error) {
	if s.opt.ListenClients, err = resolve(ctx, etcdClientURL(s.node.id.Address)); err != nil {
		return err
	}
	if s.opt.ListenPeers, err = resolve(ctx, etcdPeerURL(s.node.id.Address)); err != nil {
		return err
	}
	switch {
	case etcdlog.HasLog(s.opt.Dir):
	case founded:
		s.opt.Members = []etcdlog.Member{s.opt.Self}
	case s.node.isOnlyVoter():
		return s.node.noLog("the directory with the log is missing, and no other voter has it")
	default:
		if err := s.join(ctx); err != nil {
			return err
		}
	}
	running, err := etcdlog.RunServer(s.opt)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = running
	return nil
}

// join adds the server to the cluster. It may have been added before: until it has begun its log, a node that was killed
// begins anew.
func (s *etcdServer) join(ctx context.Context) error {
	if err := s.node.askMembership(ctx); err != nil {
		return err
	}
	asked, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	members, err := s.node.client.Members(asked)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(members, func(m etcdlog.MemberInfo) bool {
		return m.Name != "" && slices.Contains(m.PeerURLs, s.opt.Self.PeerURL)
	}) {
		return s.node.noLog("the directory with the log is missing, although the etcd server of this voter is a member of etcd")
	}
	id, others, err := s.node.client.AddLearner(asked, s.opt.Self.PeerURL)
	if err != nil {
		return err
	}
	// A removal that has begun after the first question may not have seen the server.
	if err := s.node.askMembership(ctx); err != nil {
		if fault.CodeOf(err) == fault.Denied {
			again, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			err = errors.Join(err, s.node.client.Remove(again, id))
		}
		return err
	}
	if err := os.RemoveAll(filepath.Join(s.opt.Dir, memberDir)); err != nil {
		return err
	}
	s.opt.Members, s.opt.Joins = append(others, s.opt.Self), true
	return nil
}

// resolve returns the IP address and the port of a URL: etcd listens on no names.
func resolve(ctx context.Context, url string) (string, error) {
	host, port, err := net.SplitHostPort(url[len("https://"):])
	if err != nil {
		return "", err
	}
	if net.ParseIP(host) != nil {
		return net.JoinHostPort(host, port), nil
	}
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return "", fmt.Errorf("find the address of this node: %w", err)
	}
	return net.JoinHostPort(found[0], port), nil
}

// promote makes the server a voter, if it is a learner.
func (s *etcdServer) promote(ctx context.Context) {
	select {
	case <-s.running.Ready():
	case <-s.running.Stopped():
		return
	case <-ctx.Done():
		return
	}
	for {
		voter, err := s.tryPromote(ctx)
		switch {
		case voter:
			s.mu.Lock()
			s.votes = true
			s.mu.Unlock()
			return
		case err != nil && ctx.Err() == nil && !errors.Is(err, etcdlog.ErrNotInSync):
			s.node.logger.Log(ctx, slog.LevelDebug, "not a voter yet", "cause", err)
		}
		if wait.For(ctx, joinPause) != nil {
			return
		}
	}
}

// tryPromote reports whether the server is a voter.
func (s *etcdServer) tryPromote(ctx context.Context) (voter bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	members, err := s.node.client.Members(ctx)
	if err != nil {
		return false, err
	}
	for _, m := range members {
		if len(m.PeerURLs) != 1 || m.PeerURLs[0] != s.opt.Self.PeerURL {
			continue
		}
		if !m.Learner {
			return true, nil
		}
		if err := s.node.client.Promote(ctx, m.ID); err != nil {
			return false, err
		}
		s.node.logger.Info("etcd learner promoted to voter", "node", s.node.id.Name)
		return true, nil
	}
	return false, errors.New("the server is not a member of the log's cluster")
}
