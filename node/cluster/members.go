package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"runner.example/internal/fault"
	"runner.example/internal/level"
	"runner.example/state/store"
	"runner.example/state/store/etcdlog"
)

// The table of nodes in the store decides who is a node: a machine is one as long as the table has its
// name with its certificate. Each transaction of this package that gives rights to another machine reads
// the own record, so it is refused on a node that was removed. Such a node ends: see checkRemoved.

// ErrRemoved matches the error of a node that the cluster has removed.
var ErrRemoved = errors.New("the node was removed from its cluster")

// record is what the store has about a node.
type record struct {
	Peer
	// Certificate is the SHA-256 of its certificate: an older one with the same name is not accepted.
	Certificate []byte `json:"certificate"`
	// Leaving: the etcd server of the node is being removed, or was removed, and the record is deleted
	// afterwards.
	Leaving bool `json:"leaving,omitempty"`
	// Levels are those that the runner of the node knows; zero: it does not say so, and knows the first.
	Levels level.Range `json:"levels,omitzero"`
}

// isOf reports whether a node with that certificate, in DER form, is the one of the record.
func (r record) isOf(certificate []byte) bool {
	sum := sha256.Sum256(certificate)
	return bytes.Equal(r.Certificate, sum[:])
}

// newRecord returns the record of a node with its certificate, in PEM form, and the levels that it knows.
func newRecord(node Peer, certificate []byte, levels level.Range) record {
	block, _ := pem.Decode(certificate)
	sum := sha256.Sum256(block.Bytes)
	return record{Peer: node, Certificate: sum[:], Levels: levels}
}

func putRecord(tx *store.Tx, r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return tx.Set([]byte(prefixNodes+r.Name), text)
}

// recordOf returns the record of the node with that name. The error is store.ErrNotFound if the cluster
// has none.
func recordOf(tx *store.Tx, name string) (r record, err error) {
	text, err := tx.Get([]byte(prefixNodes + name))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// recordsIn returns the records of all nodes by name.
func recordsIn(tx *store.Tx) (all []record, err error) {
	for item, err := range tx.Scan([]byte(prefixNodes), nil, false) {
		if err != nil {
			return nil, err
		}
		var r record
		if err := json.Unmarshal(item.Value, &r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// nodesIn returns all nodes by name.
func nodesIn(tx *store.Tx) ([]Peer, error) {
	records, err := recordsIn(tx)
	var all []Peer
	for _, r := range records {
		all = append(all, r.Peer)
	}
	return all, err
}

// checkSelf returns an error that matches ErrRemoved if this node is not one of the cluster as of tx.
func (n *Node) checkSelf(tx *store.Tx) error {
	r, err := recordOf(tx, n.id.Name)
	if errors.Is(err, store.ErrNotFound) || err == nil && !r.isOf(n.tls.pair.Certificate[0]) {
		return fault.Wrap(ErrRemoved, fault.Invalid,
			"the node %q was removed from its cluster: join again with a new data directory, or run runner cluster dissolve to use the data without a cluster",
			n.id.Name)
	}
	return err
}

// confirmSelf returns nil if this node is one of the cluster as of now, which a majority of the voters
// must confirm. The error matches ErrRemoved if it is not.
func (n *Node) confirmSelf(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := n.store.Barrier(ctx); err != nil {
		return err
	}
	return n.store.View(ctx, n.checkSelf)
}

// checkRemoved returns an error that matches ErrRemoved if the cluster has removed this node, and notes
// it, so that the next Start fails too. It asks the log: a store that was replaced by an old backup may
// not have the node yet.
func (n *Node) checkRemoved(ctx context.Context) error {
	err := n.confirmSelf(ctx)
	if !errors.Is(err, ErrRemoved) {
		return nil
	}
	return errors.Join(err, n.markLeft())
}

// markLeft notes that this node belongs to no cluster any more.
func (n *Node) markLeft() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.id.Left = true
	return n.id.write(n.data)
}

// askMembership returns nil if another node confirms that this one is in the table of nodes, and is not
// leaving. A voter that joins asks before it adds its etcd server, whose store does not have the table yet.
func (n *Node) askMembership(ctx context.Context) error {
	err := errors.New("no other node is known")
	for _, p := range n.peers() {
		asked, cancel := context.WithTimeout(ctx, callTimeout)
		_, err = call[struct{}](asked, n.peerClient, p.Address, opMember, struct{}{})
		cancel()
		if err == nil || fault.CodeOf(err) == fault.Denied {
			return err
		}
	}
	return fmt.Errorf("ask whether this node belongs to the cluster: %w", err)
}

// unlisted returns the members of etcd that are not the server of a node, by the names under which
// status lists them and Leave removes them. A crash can leave such a member, and it counts for the
// majority.
func unlisted(members []etcdlog.MemberInfo, all []record) map[string]etcdlog.MemberInfo {
	found := map[string]etcdlog.MemberInfo{}
	for _, m := range members {
		if slices.ContainsFunc(all, func(r record) bool { return slices.Contains(m.PeerURLs, etcdPeerURL(r.Address)) }) {
			continue
		}
		name := m.Name
		if name == "" || slices.ContainsFunc(all, func(r record) bool { return r.Name == name }) {
			name = fmt.Sprintf("member-%x", m.ID)
		}
		found[name] = m
	}
	return found
}
