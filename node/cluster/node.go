package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/level"
	"runner.example/internal/settings"
	"runner.example/internal/telemetry"
	"runner.example/internal/version"
	"runner.example/internal/wait"
	"runner.example/keystore"
	"runner.example/node/release"
	"runner.example/state/store"
	"runner.example/state/store/datadir"
	"runner.example/state/store/etcdlog"
)

// StartOptions configure Start.
type StartOptions struct {
	Options
	// Data is the data directory of the node.
	Data string
	// Pepper is the path of the pepper file.
	Pepper string
	// Logger is required.
	Logger *slog.Logger
	// Metrics gets the metrics of the cluster; nil: nothing is measured.
	Metrics *telemetry.Metrics
	// Now is the clock of this machine, which other nodes compare with theirs; nil: the machine's calendar.
	Now clock.Calendar
}

// Hooks connect a node with the server around it. All are required. Any goroutine may call them; only
// Prepare and Activate may block.
type Hooks struct {
	// App returns the declared name of the app, or "".
	App func() string
	// Release returns the id of the release that is served, or "".
	Release func() string
	// NotReady returns why the server is not ready, or "", and whether it only waits for the first release.
	NotReady func() (why string, noRelease bool)
	// Secrets returns MACs of the values of the app's secrets, by name.
	Secrets func() map[string]string
	// Vars returns MACs of the values of its variables, by name.
	Vars func() map[string]string
	// Prepare compiles a stored release.
	Prepare func(ctx context.Context, release string) error
	// Activate activates a stored release, if this node is the owner.
	Activate func(ctx context.Context, change release.Activation) error
	// OnSkew is called after each question to a node, with how far the clock of each node that answers is ahead
	// of this one; negative: behind. It reports whether this one agrees with them: otherwise the node is not the
	// owner.
	OnSkew func(map[string]time.Duration) (agrees bool)
	// OnMembership is called with the index of this node, from 0, in the order of names, and the number of
	// nodes.
	OnMembership func(index, nodes int)
	// OnBehind is called when the log no longer has entries that the store needs: the server must stop and
	// start again.
	OnBehind func()
	// OnServer is called with why the etcd server of this voter does not count for the majority, when that
	// changes; nil: it does. Meanwhile the node serves, and commits through the other voters.
	OnServer func(cause *fault.Fault)
	// OnUnusable is called when the server must end, with this error: another node has removed this one, or the
	// log cannot be used. Of OnBehind and OnUnusable one is called, once.
	OnUnusable func(error)
}

// Node is this machine in its cluster, from Start to Close.
type Node struct {
	data, pepper string
	logger       *slog.Logger
	now          clock.Calendar
	tls          *nodeTLS
	peerClient   *peerClient
	client       *etcdlog.Client
	etcd         *etcdServer // nil: this process runs none

	log *etcdlog.Log // of the store that was opened last

	serving

	metrics *telemetry.Metrics
	known   lastServers

	mu       sync.Mutex
	id       *identity
	states   map[string]peerState // of the other nodes
	leaving  bool                 // Leave removes this node
	notVotes string               // what OnServer was called with; empty: nil
}

// serving is what Serve sets.
type serving struct {
	missing   missingFiles
	opened    atomic.Bool // store is set: the store itself may ask for blobs before
	store     *store.Store
	keys      *keystore.Keystore
	hooks     Hooks
	listener  *listener
	life      context.Context // until StopServing
	stop      context.CancelFunc
	loops     sync.WaitGroup
	agreement clockAgreement
	majority  majority
	clocks    sync.Mutex // held while clocks are compared
	chains    sync.Mutex // held while chains are compared
	ends      sync.Once  // for OnBehind and OnUnusable
	unchecked bool       // CheckLog has not reached the log
}

// Start opens the node of opt.Data: it dials the log, and on a voter starts the etcd server in the
// background. It does not wait for other nodes. Close the node after the store. Start returns nil, nil if
// the directory does not belong to a node.
func Start(opt StartOptions) (*Node, error) {
	settings.FillZero(&opt)
	if is, err := IsNode(opt.Data); err != nil || !is {
		return nil, cmp.Or(err, checkNoNode(opt.Data))
	}
	id, err := readIdentity(opt.Data)
	if err != nil {
		return nil, err
	}
	if id.Left {
		return nil, fault.New(fault.Invalid,
			"the node %q has left its cluster: run runner cluster dissolve to use its data without a cluster, or join again with a new data directory",
			id.Name)
	}
	if err := completeResync(opt.Data); err != nil {
		return nil, err
	}
	if path, err := filepath.Abs(opt.Data); err == nil {
		_ = os.RemoveAll(joinDir(path)) // the next join removes it otherwise
	}
	if err := checkPorts(id.Peer, len(id.Endpoints) > 0); err != nil { // before the etcd server is started
		return nil, cmp.Or(checkLock(opt.Data), err)
	}
	n := &Node{
		data: opt.Data, pepper: opt.Pepper, logger: opt.Logger, now: opt.Now, id: id, states: map[string]peerState{},
		metrics: opt.Metrics,
	}
	if n.now == nil {
		n.now = clock.System
	}
	if n.tls, err = readNodeTLS(opt.Data); err != nil {
		return nil, err
	}
	n.peerClient = newPeerClient(n.tls.client())
	addresses, trusted := id.Endpoints, tlsFiles(opt.Data)
	if len(addresses) > 0 {
		trusted = opt.etcdTLS()
	} else {
		addresses = n.servers()
	}
	if n.client, err = etcdlog.Dial(addresses, trusted); err != nil {
		return nil, err
	}
	if len(id.Endpoints) > 0 {
		return n, nil
	}
	n.client.FollowMembers(membersEvery)
	if id.Role == Voter {
		n.etcd = n.startServer(opt.Election)
	}
	return n, nil
}

// checkNoNode returns an error if a data directory without nodeFile was that of a node.
func checkNoNode(data string) error {
	is, err := datadir.IsNode(data)
	if is {
		err = fault.New(fault.Invalid,
			"the file %q is missing, but the data directory is that of a node: restore the file from a copy, or remove the node with runner cluster leave on another one and join again with a new data directory",
			files(data, nodeFile))
	}
	return err
}

// checkLock returns an error if another process uses a data directory.
func checkLock(data string) error {
	lock, err := datadir.AcquireUnchanged(data)
	if err != nil {
		return err
	}
	return lock.Release()
}

const (
	// membersEvery is how often a node asks which etcd servers there are.
	membersEvery = 10 * time.Second
	// logWait is how long a start waits for the log. Without it the node serves what it has.
	logWait = 3 * time.Second
)

// ErrBehind means that the log no longer has what the store lacks; see Resync.
var ErrBehind = errors.New("the node lags too far behind")

// CheckLog compares the log with what the store has applied. The error matches ErrBehind if the store
// cannot follow the log. If the log cannot be reached, CheckLog returns nil after a while, and Serve goes on.
func (n *Node) CheckLog(ctx context.Context, applied uint64) error {
	ctx, cancel := context.WithTimeout(ctx, logWait)
	defer cancel()
	for {
		final, err := n.checkLog(ctx, applied)
		if final {
			return err
		}
		if wait.For(ctx, pollInterval/4) != nil {
			n.unchecked = true
			awaited, _ := n.awaited()
			n.logger.Warn("log of the cluster not reached; serving what this node has", "awaited", awaited, "cause", err)
			return nil
		}
	}
}

// checkLog tries once to compare the log with what the store has applied. It is final if it did, or if the
// store cannot follow the log.
func (n *Node) checkLog(ctx context.Context, applied uint64) (final bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err = n.client.Check(ctx, applied); err == nil {
		err = n.client.Claim(ctx, n.id.Cluster)
	}
	switch {
	case err == nil:
		return true, n.bootstrapped()
	case errors.Is(err, etcdlog.ErrTruncated):
		return true, fmt.Errorf("%w: %w", ErrBehind, err)
	case errors.Is(err, etcdlog.ErrRewound), errors.Is(err, etcdlog.ErrOtherCluster):
		return true, fmt.Errorf(
			"the node %q cannot use the log of its cluster: %w: keep its data directory, and ask for help", n.id.Name, err)
	}
	return false, err
}

// checkLater does what CheckLog did not, when the log can be reached, unless ctx ends before.
func (n *Node) checkLater(ctx context.Context) {
	for wait.For(ctx, pollInterval) == nil {
		_, applied, _ := n.store.Position()
		final, err := n.checkLog(ctx, applied)
		switch {
		case !final || ctx.Err() != nil:
			continue
		case errors.Is(err, ErrBehind):
			n.ends.Do(n.hooks.OnBehind)
		case err == nil:
			err = n.checkRemoved(ctx)
			fallthrough
		default:
			if err != nil {
				n.ends.Do(func() { n.hooks.OnUnusable(err) })
			}
		}
		return
	}
}

// bootstrapped notes that the first node has begun its log.
func (n *Node) bootstrapped() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.id.Bootstrap {
		return nil
	}
	n.id.Bootstrap = false
	return n.id.write(n.data)
}

// etcdTLS returns the files for an etcd that runs elsewhere; nil: it is reached without TLS.
func (o Options) etcdTLS() *etcdlog.TLS {
	if o.TLSCA == "" && o.TLSCert == "" {
		return nil
	}
	return &etcdlog.TLS{CertFile: o.TLSCert, KeyFile: o.TLSKey, CAFile: o.TLSCA}
}

// servers returns the URLs of the etcd servers, this node's first. Edge nodes use different ones.
func (n *Node) servers() (all []string) {
	for _, p := range append([]Peer{n.id.Peer}, n.id.Peers...) {
		if p.Role != Voter {
			continue
		}
		if err := checkListen(p.Address); err != nil { // it must not keep this node from the others
			n.logger.Warn("address of a node not used", "node", p.Name, "cause", err)
			continue
		}
		all = append(all, etcdClientURL(p.Address))
	}
	if n.id.Role != Voter {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return all
}

// StoreOptions completes the options of the node's store.
func (n *Node) StoreOptions(o *store.Options) {
	o.Name, o.Node, o.FetchBlob, o.ReplicateBlob = n.id.Name, true, n.fetchBlob, n.replicateBlob
	o.Log = func(after uint64, deliver func(uint64, []byte) error) store.SharedLog {
		n.log = etcdlog.Open(etcdlog.Options{Client: n.client, After: after, Deliver: deliver, Logger: n.logger})
		return n.log
	}
}

// Serve answers the other nodes, asks each of them each second, and campaigns for ownership, until
// StopServing. Call it once. The caller keeps st and keys, and closes them after StopServing. The error matches
// ErrRemoved if the cluster has removed this node, as far as the log can be reached.
func (n *Node) Serve(st *store.Store, keys *keystore.Keystore, hooks Hooks) (err error) {
	n.store, n.keys, n.hooks, n.agreement.changed = st, keys, hooks, make(chan struct{})
	n.missing.wake = make(chan struct{}, 1)
	n.life, n.stop = context.WithCancel(context.Background())
	n.opened.Store(true)
	if !n.unchecked {
		if err := n.checkRemoved(context.Background()); err != nil {
			return err
		}
	}
	if n.listener, err = n.listen(); err != nil {
		return err
	}
	n.noteServer() // a voter without a vote is not ready from the beginning
	n.addMetrics()
	ctx := n.life
	n.loops.Go(func() { n.follow(ctx) })
	n.loops.Go(func() { n.campaign(ctx) })
	n.loops.Go(func() { n.watchServers(ctx) })
	if n.unchecked {
		n.loops.Go(func() { n.checkLater(ctx) })
	}
	n.loops.Go(func() { n.announceLevels(ctx) })
	n.loops.Go(func() { n.fetchMissing(ctx) })
	n.logger.Info("cluster node started", "node", n.id.Name, "role", n.id.Role, "address", n.id.Address)
	return nil
}

// StopServing ends what Serve has begun. The store may be closed afterwards. It may be called twice,
// and without Serve.
func (n *Node) StopServing() {
	if n.listener == nil {
		return
	}
	n.stop()
	n.listener.close()
	n.loops.Wait()
}

// Close ends the connection to the log, and its server.
func (n *Node) Close() {
	n.StopServing()
	if n.etcd != nil {
		n.etcd.endJoining() // which uses the client
	}
	n.client.Close()
	n.peerClient.close()
	if n.etcd != nil {
		n.etcd.close()
	}
}

// Name returns the node's name.
func (n *Node) Name() string { return n.id.Name }

// peers returns the other nodes, as far as this one knows.
func (n *Node) peers() []Peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.id.Peers)
}

// nodes returns all nodes, as of the newest commit that this node has applied; before Serve, or if the store is damaged,
// as far as this node knows.
func (n *Node) nodes(ctx context.Context) (all []Peer) {
	if n.opened.Load() {
		_ = n.store.View(ctx, func(tx *store.Tx) (err error) {
			all, err = nodesIn(tx)
			return err
		})
	}
	if len(all) == 0 {
		all = append(n.peers(), n.id.Peer)
	}
	return all
}

// peerState is what another node has said of itself.
type peerState struct {
	State
	at   time.Time // when the answer arrived
	skew time.Duration
	err  error // of the last question; nil: it was answered
}

// connectedFor is how long a node counts as connected after its last answer.
const connectedFor = 3 * time.Second

func (h peerState) connected(now time.Time) bool {
	return !h.at.IsZero() && now.Sub(h.at) < connectedFor
}

// answers reports whether the node is connected, and has answered the last question.
func (h peerState) answers(now time.Time) bool { return h.err == nil && h.connected(now) }

// state returns what this node says of itself.
func (n *Node) state() State {
	health := n.store.Health()
	seq, revision, chain := n.store.Position()
	s := State{
		Peer: n.id.Peer, Version: version.Read().Version, Levels: level.Known(),
		Applied: uint64(health.Applied), Staleness: -1,
		Release: n.hooks.Release(), Secrets: n.hooks.Secrets(), Vars: n.hooks.Vars(),
		Time: n.now(), At: position{uint64(seq), revision, chain[:]}, MissingFiles: n.missing.count.Load(),
	}
	s.NotReady, s.NoRelease = n.hooks.NotReady()
	if health.Staleness < time.Hour*24*365 {
		s.Staleness = health.Staleness.Milliseconds()
	}
	if s.NotReady == "" && health.Reason != nil {
		s.NotReady = health.Reason.Error()
	}
	if cause, _ := n.notVoting(); cause != nil {
		s.NotVoting, s.NoRelease = cause.Detail, false
		s.NotReady = cmp.Or(s.NotReady, cause.Detail)
	}
	return s
}

// Replication says where a commit can be read.
type Replication struct {
	// Nodes is how many nodes there are, Applied how many of them have applied the commit, and Missing
	// the names of the others.
	Nodes   int      `json:"nodes"`
	Applied int      `json:"applied"`
	Missing []string `json:"missing,omitempty"`
}

// WaitApplied waits until the other nodes have applied a commit: two seconds at most, and not for
// nodes that did not answer lately.
func (n *Node) WaitApplied(ctx context.Context, seq store.Seq) Replication {
	ctx, cancel := context.WithTimeout(ctx, appliedWait)
	defer cancel()
	peers := n.nodes(ctx)
	var mu sync.Mutex
	a := Replication{Nodes: len(peers)}
	note := func(name string, applied bool) {
		mu.Lock()
		defer mu.Unlock()
		if applied {
			a.Applied++
		} else {
			a.Missing = append(a.Missing, name)
		}
	}
	var asked sync.WaitGroup
	for _, p := range peers {
		switch {
		case p.Name == n.id.Name:
			note(p.Name, true)
		case n.isCutOff(p.Name):
			note(p.Name, false)
		default:
			asked.Go(func() {
				_, err := call[struct{}](ctx, n.peerClient, p.Address, opApplied, seqArgument{uint64(seq)})
				note(p.Name, err == nil)
			})
		}
	}
	asked.Wait()
	slices.Sort(a.Missing)
	return a
}

// isCutOff reports whether a node was asked, and did not answer lately.
func (n *Node) isCutOff(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	h, asked := n.states[name]
	return asked && !h.connected(clock.Mark())
}

// PrepareAll has the connected nodes compile a stored release. The error is a fault with the code
// Invalid, and names those that cannot.
func (n *Node) PrepareAll(ctx context.Context, release string) error {
	now := clock.Mark()
	n.mu.Lock()
	var peers []Peer
	for _, h := range n.states {
		if h.connected(now) {
			peers = append(peers, h.Peer)
		}
	}
	n.mu.Unlock()
	var refused []string
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, p := range peers {
		asked.Go(func() {
			ctx, cancel := n.whileConnected(ctx, p.Name)
			defer cancel()
			_, err := call[struct{}](ctx, n.peerClient, p.Address, opPrepare, idArgument{release})
			if err == nil || fault.CodeOf(err) == fault.Unavailable { // it ends, or is cut off
				return
			}
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, fmt.Sprintf("node %s cannot serve the release: %s", p.Name, fault.Of(err).Detail))
		})
	}
	asked.Wait()
	if len(refused) == 0 {
		return nil
	}
	slices.Sort(refused)
	return fault.New(fault.Invalid, "%s", strings.Join(refused, "; "))
}

// ActivateOnOwner has the owner activate a stored release. Call it if this node is not the owner.
func (n *Node) ActivateOnOwner(ctx context.Context, change release.Activation) error {
	asked, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	name, err := n.client.Owner(asked)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable,
			"a majority of the voters cannot be reached, so no release can be activated")
	}
	for _, p := range n.peers() {
		if p.Name == name {
			ctx, cancel := n.whileConnected(ctx, name)
			defer cancel()
			_, err := call[struct{}](ctx, n.peerClient, p.Address, opActivate, change)
			return err
		}
	}
	return fault.New(fault.Unavailable, "the cluster has no owner at the moment: try again in some seconds")
}
