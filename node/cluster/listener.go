package cluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/connlimit"
	"runner.example/internal/fault"
	"runner.example/node/backup"
	"runner.example/node/release"
	"runner.example/state/store"
)

// The limits of the listener for other nodes.
const (
	maxConns    = 256
	headTime    = 10 * time.Second
	requestTime = 30 * time.Second
	idleTime    = 2 * time.Minute
	// maxSnapshots is how many backups are sent at once.
	maxSnapshots = 2
	// appliedWait is how long a node waits until it has applied a commit.
	appliedWait = 2 * time.Second
)

// MaxConnections is how many connections a node has with others at the same time: those that it accepts, and
// those of its etcd server.
const MaxConnections = maxConns + 64

// listener answers other nodes.
type listener struct {
	node      *Node
	http      *http.Server
	done      chan struct{}
	snapshots chan struct{}
}

// listen begins to answer at the address of the node.
func (n *Node) listen() (*listener, error) {
	ln, err := net.Listen("tcp", n.id.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for other nodes on %s: %w", n.id.Address, err)
	}
	l := &listener{node: n, done: make(chan struct{}), snapshots: make(chan struct{}, maxSnapshots)}
	l.http = &http.Server{
		Handler: l, ReadHeaderTimeout: headTime, ReadTimeout: requestTime, IdleTimeout: idleTime, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(n.logger.Handler(), slog.LevelDebug), // anyone can cause it
	}
	go func() {
		defer close(l.done)
		err := l.http.Serve(tls.NewListener(connlimit.Listen(ln, maxConns, "cluster", n.logger), n.tls.server()))
		if !errors.Is(err, http.ErrServerClosed) {
			n.logger.Error("listener for other nodes ended", "cause", err)
		}
	}()
	return l, nil
}

// close ends all connections.
func (l *listener) close() {
	_ = l.http.Close()
	<-l.done
}

// ServeHTTP runs the operation that the path names.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := l.answer(w, r)
	if err == nil && answer == nil {
		return // a stream was sent
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		answer = errorAnswerOf(err)
	}
	_ = json.NewEncoder(w).Encode(answer) // the other node may have closed the connection
}

// answer runs the operation. It returns nil if it has sent the answer itself.
func (l *listener) answer(w http.ResponseWriter, r *http.Request) (any, error) {
	operation := strings.TrimPrefix(r.URL.Path, "/") // CONNECT has an empty path
	if r.Method != http.MethodPost {
		return nil, fault.New(fault.Invalid, "the method must be POST")
	}
	if operation == opJoin {
		r.Body = http.MaxBytesReader(w, r.Body, maxJoin) // anyone can send it
		var request joinRequest
		if err := decode(w, r, &request); err != nil {
			return nil, err
		}
		return l.node.admit(r.Context(), request)
	}
	caller, err := l.authenticate(r, operation == opMember)
	if err != nil {
		return nil, err
	}
	switch operation {
	case opState:
		return l.node.state(), nil
	case opMember:
		if caller.Leaving { // its etcd server may be removed already
			return nil, fault.New(fault.Denied, "the node %q is leaving the cluster", caller.Name)
		}
		return struct{}{}, nil
	case opApplied:
		var args seqArgument
		if err := decode(w, r, &args); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(r.Context(), appliedWait)
		defer cancel()
		return struct{}{}, l.node.store.WaitFor(ctx, store.Seq(args.Seq))
	case opChain:
		var args seqArgument
		if err := decode(w, r, &args); err != nil {
			return nil, err
		}
		// Without an answer of this node, another one could take itself for the one that differs.
		ctx, cancel := context.WithTimeout(r.Context(), appliedWait)
		defer cancel()
		_ = l.node.store.WaitFor(ctx, store.Seq(args.Seq)) // if it fails, the commit is not known
		chain, known, err := l.node.store.ChainAt(r.Context(), store.Seq(args.Seq))
		if err != nil || !known {
			return chainAnswer{}, err
		}
		return chainAnswer{chain[:]}, nil
	case opPrepare:
		var args idArgument
		if err := decode(w, r, &args); err != nil {
			return nil, err
		}
		extend(w, prepareTime)
		return struct{}{}, l.node.hooks.Prepare(r.Context(), args.ID)
	case opActivate:
		var args release.Activation
		if err := decode(w, r, &args); err != nil {
			return nil, err
		}
		extend(w, prepareTime)
		return struct{}{}, l.node.hooks.Activate(r.Context(), args)
	case opBlob:
		var args idArgument
		if err := decode(w, r, &args); err != nil {
			return nil, err
		}
		return nil, l.sendBlob(w, r, args.ID)
	case opKeepBlob:
		var args idArgument
		if err := decode(w, r, &args); err != nil {
			return nil, err
		}
		return struct{}{}, l.keepBlob(w, r, args.ID)
	case opSnapshot:
		return nil, l.sendSnapshot(w, r, caller.Name)
	}
	return nil, fault.New(fault.NotFound, "unknown operation %q: is this node older than the other one?", operation)
}

// maxJoin limits the request of a machine that joins, in bytes.
const maxJoin = 16 << 10

// prepareTime limits the time in which a node compiles a release.
const prepareTime = 5 * time.Minute

// extend gives the answer to a request more time.
func extend(w http.ResponseWriter, d time.Duration) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(clock.In(d)) // it is always supported
	_ = control.SetWriteDeadline(clock.In(d))
}

// authenticate returns the record of the node that asks. One that was removed is refused: with newest, as
// of all commits that any node had acknowledged, else as of those that this node has applied.
func (l *listener) authenticate(r *http.Request, newest bool) (known record, err error) {
	if len(r.TLS.VerifiedChains) == 0 {
		return known, fault.New(fault.Denied, "the connection has no certificate of the cluster")
	}
	if newest {
		ctx, cancel := context.WithTimeout(r.Context(), appliedWait)
		defer cancel()
		if err := l.node.store.Barrier(ctx); err != nil {
			return known, err
		}
	}
	certificate := r.TLS.PeerCertificates[0]
	name := certificate.Subject.CommonName
	err = l.node.store.View(r.Context(), func(tx *store.Tx) (err error) {
		known, err = recordOf(tx, name)
		return err
	})
	if errors.Is(err, store.ErrNotFound) || err == nil && !known.isOf(certificate.Raw) {
		return known, fault.New(fault.Denied, "the cluster has no node with the name %q and this certificate", name)
	}
	return known, err
}

// decode reads the arguments of an operation.
func decode(w http.ResponseWriter, r *http.Request, args any) error {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxJSON)).Decode(args); err != nil {
		return fault.New(fault.Invalid, "the arguments are not valid: %v", err)
	}
	return nil
}

// admit makes a machine with an invitation a node.
func (n *Node) admit(ctx context.Context, r joinRequest) (joinAnswer, error) {
	answer := joinAnswer{Cluster: n.id.Cluster, Endpoints: n.id.Endpoints}
	if err := checkName(r.Name); err != nil {
		return answer, err
	}
	if err := checkListen(r.Address); err != nil {
		return answer, err
	}
	err := n.store.View(ctx, func(tx *store.Tx) error { // before anything that costs time
		if err := n.checkSelf(tx); err != nil {
			return err
		}
		if _, err := invitationOf(tx, r.Secret); err != nil {
			return err
		}
		return checkLevels(tx, r.Levels)
	})
	if err != nil {
		return answer, err
	}
	a, err := readCA(n.data)
	if err != nil {
		return answer, err
	}
	if answer.Certificate, err = a.sign(r.Peer, r.CSR); err != nil { // it is sent only after the invitation was taken
		return answer, err
	}
	if answer.Pepper, err = os.ReadFile(n.pepper); err != nil {
		return answer, err
	}
	answer.CA = a.certPEM()
	if r.Role == Voter {
		if answer.CAKey, err = a.keyPEM(); err != nil {
			return answer, err
		}
	}
	_, err = n.store.Update(ctx, func(tx *store.Tx) error {
		if err := n.checkSelf(tx); err != nil {
			return err
		}
		if err := redeem(tx, r.Secret, r.Peer, answer.Certificate, r.Levels); err != nil {
			return err
		}
		answer.Peers, err = nodesIn(tx)
		return err
	})
	if err != nil {
		return joinAnswer{}, err
	}
	n.logger.Info("node joined", "node", r.Name, "role", r.Role, "address", r.Address)
	return answer, nil
}

// sendSnapshot sends a backup.
func (l *listener) sendSnapshot(w http.ResponseWriter, r *http.Request, to string) error {
	select {
	case l.snapshots <- struct{}{}:
		defer func() { <-l.snapshots }()
	default:
		return fault.New(fault.Unavailable, "the node sends %d backups already: try again later", maxSnapshots)
	}
	l.node.logger.Info("sending a backup to another node", "node", to)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // the backup has its own progress
	out := &progressWriter{w: w, control: control}
	if _, err := backup.Write(r.Context(), l.node.store, l.node.keys, l.node.hooks.App(), out, nil); err != nil {
		l.node.logger.Warn("backup transfer to node failed", "node", to, "cause", err)
		if !out.began {
			return err
		}
		panic(http.ErrAbortHandler)
	}
	return nil
}

// progressWriter gives each write of a stream time.
type progressWriter struct {
	w       io.Writer
	control *http.ResponseController
	began   bool
}

func (p *progressWriter) Write(b []byte) (int, error) {
	p.began = true
	_ = p.control.SetWriteDeadline(clock.In(requestTime))
	return p.w.Write(b)
}
