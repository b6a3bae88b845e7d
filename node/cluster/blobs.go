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

// cutOffTime limits an operation with a node that did not answer lately.
const cutOffTime = 30 * time.Second

// whileReached is whileConnected, except that a node that is cut off has 30 seconds: it may have started since it was
// asked last.
func (n *Node) whileReached(ctx context.Context, name string) (_ context.Context, cancel context.CancelFunc) {
	if n.isCutOff(name) {
		return context.WithTimeout(ctx, cutOffTime)
	}
	return n.whileConnected(ctx, name)
}

// fetchBlob gets a blob from the first node that has it.
func (n *Node) fetchBlob(ctx context.Context, d store.Digest) (io.ReadCloser, error) {
	peers := slices.DeleteFunc(n.nodes(ctx), func(p Peer) bool { return p.Name == n.id.Name })
	n.mu.Lock()
	slices.SortStableFunc(peers, func(a, b Peer) int { // those that answer first
		return -cmp.Compare(n.states[a.Name].at.UnixNano(), n.states[b.Name].at.UnixNano())
	})
	n.mu.Unlock()
	var failures []error
	for _, p := range peers {
		reached, cancel := n.whileReached(ctx, p.Name)
		body, err := n.peerClient.open(reached, p.Address, opBlob, idArgument{d.String()})
		if err == nil {
			return &cancelledBody{body, cancel}, nil
		}
		cancel()
		if fault.CodeOf(err) != fault.NotFound {
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 {
		return nil, fmt.Errorf("fetch a blob from other nodes: %w", errors.Join(failures...))
	}
	return nil, store.ErrNotFound
}

// cancelledBody is an answer whose context ends when it is closed.
type cancelledBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *cancelledBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// spreadBlob has other voters store a blob that a node has, until a majority of the voters has it on disk. If etcd
// runs elsewhere the cluster has no voters, and each node counts. The error names the nodes that do not have the blob.
func (n *Node) spreadBlob(ctx context.Context, d store.Digest) error {
	nodes := n.nodes(ctx)
	if voters := slices.DeleteFunc(slices.Clone(nodes), func(p Peer) bool { return p.Role != Voter }); len(voters) > 0 {
		nodes = voters
	}
	needed := len(nodes)/2 + 1
	others := slices.DeleteFunc(nodes, func(p Peer) bool { return p.Name == n.id.Name })
	if _, err := n.store.HasBlob(d); err == nil && len(others) < len(nodes) {
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
			asked, end := context.WithTimeout(n.life, prepareTime) // a minority may take longer than the commit
			defer end()
			reached, cancel := n.whileReached(asked, p.Name)
			defer cancel()
			_, err := call[struct{}](reached, n.peerClient, p.Address, opKeepBlob, idArgument{d.String()})
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

// sendBlob sends a file that this node has.
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
	extend(w, prepareTime)
	if _, err := io.Copy(w, blob); err != nil {
		panic(http.ErrAbortHandler) // so that the other node sees that it is incomplete
	}
	return nil
}

// keepBlob stores a blob that another node is about to name in a commit.
func (l *listener) keepBlob(w http.ResponseWriter, r *http.Request, digest string) error {
	d, err := store.ParseDigest(digest)
	if err != nil {
		return fault.New(fault.Invalid, "%v", err)
	}
	extend(w, prepareTime)
	return l.node.store.KeepBlob(r.Context(), d)
}
