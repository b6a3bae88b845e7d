package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"runner.example/internal/fault"
	"runner.example/state/store"
)

// cutOffTimeout limits a call of a node that did not answer lately.
const cutOffTimeout = 30 * time.Second

// callContext is whileConnected, except that a node that is cut off has 30 seconds to answer: it may have started since
// it was polled last.
func (n *Node) callContext(ctx context.Context, name string) (_ context.Context, cancel context.CancelFunc) {
	if n.isCutOff(name) {
		return context.WithTimeout(ctx, cutOffTimeout)
	}
	return n.whileConnected(ctx, name)
}

// fetchBlob gets a blob from the first node that has it.
func (n *Node) fetchBlob(ctx context.Context, d store.Digest) (io.ReadCloser, error) {
	peers := slices.DeleteFunc(n.nodes(ctx), func(p Peer) bool { return p.Name == n.id.Name })
	n.mu.Lock()
	slices.SortStableFunc(peers, func(a, b Peer) int { // the one that answered last is the first
		return -cmp.Compare(n.states[a.Name].at.UnixNano(), n.states[b.Name].at.UnixNano())
	})
	n.mu.Unlock()
	var failures []error
	for _, p := range peers {
		callCtx, cancel := n.callContext(ctx, p.Name)
		body, err := n.peerClient.open(callCtx, p.Address, opBlob, idArgument{d.String()})
		if err == nil {
			return &cancelOnClose{body, cancel}, nil
		}
		cancel()
		if fault.CodeOf(err) != fault.NotFound {
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 {
		return nil, fmt.Errorf("fetch from other nodes: %w", errors.Join(failures...))
	}
	return nil, store.ErrNotFound
}

// cancelOnClose cancels the context of an answer when its body is closed.
type cancelOnClose struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *cancelOnClose) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// replicateBlob asks the voters to keep a blob, and returns when a majority of them has it on disk. If etcd runs
// elsewhere the cluster has no voters, and each node counts as one. The error names the nodes that do not have the blob.
func (n *Node) replicateBlob(ctx context.Context, d store.Digest) error {
	nodes := n.nodes(ctx)
	voters := slices.DeleteFunc(slices.Clone(nodes), func(p Peer) bool { return p.Role != Voter })
	if len(voters) == 0 {
		voters = nodes
	}
	needed := len(voters)/2 + 1
	others := slices.DeleteFunc(voters, func(p Peer) bool { return p.Name == n.id.Name })
	if _, err := n.store.StatBlob(d); err == nil && len(others) < len(voters) {
		needed--
	}
	if needed == 0 {
		return nil
	}
	type answer struct {
		node string
		err  error
	}
	answers := make(chan answer, len(others))
	for _, p := range others {
		go func() {
			timed, end := context.WithTimeout(n.life, blobTimeout) // not ctx: a minority may take longer than the commit
			defer end()
			callCtx, cancel := n.callContext(timed, p.Name)
			defer cancel()
			_, err := call[struct{}](callCtx, n.peerClient, p.Address, opKeepBlob, idArgument{d.String()})
			answers <- answer{p.Name, err}
		}()
	}
	var failures []string
	for range others {
		select {
		case a := <-answers:
			if a.err != nil {
				failures = append(failures, fmt.Sprintf("%s: %v", a.node, a.err))
			} else if needed--; needed == 0 {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	slices.Sort(failures)
	return fault.New(fault.Unavailable, "a file is not on a majority of the voters: %s", strings.Join(failures, "; "))
}

// blobTimeout limits the transfer of a blob between two nodes.
const blobTimeout = 5 * time.Minute

// sendBlob sends a blob that this node has.
func (l *listener) sendBlob(w http.ResponseWriter, r *http.Request, digest string) error {
	d, err := store.ParseDigest(digest)
	if err != nil {
		return fault.New(fault.Invalid, "%v", err)
	}
	blob, err := l.node.store.LocalBlob(r.Context(), d)
	if err != nil {
		return err
	}
	defer blob.Close()
	extend(w, blobTimeout)
	if _, err := io.Copy(w, blob); err != nil {
		panic(http.ErrAbortHandler) // so that the other node does not take the part for the whole
	}
	return nil
}

// keepBlob stores a blob that a commit of another node is about to refer to.
func (l *listener) keepBlob(w http.ResponseWriter, r *http.Request, digest string) error {
	d, err := store.ParseDigest(digest)
	if err != nil {
		return fault.New(fault.Invalid, "%v", err)
	}
	extend(w, blobTimeout)
	return l.node.store.KeepBlob(r.Context(), d)
}
