package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// ownerKey holds the name of the node that owns the background work of a cluster.
const ownerKey = "cluster/owner"

// owner is what the store of a node knows about the owner.
type owner struct {
	name     string // of this node; empty: alone
	disowned atomic.Bool

	mu      sync.Mutex
	since   Seq           // the commit that made this node the owner; 0: it is not
	changed chan struct{} // closed when since changes
}

// Standalone is what WaitOwner and Tenure return in a store that is standalone.
const Standalone Seq = 1

// InCluster reports whether the store is that of a node of a cluster.
func (s *Store) InCluster() bool { return s.owner.name != "" }

// Node returns the name of the node in its cluster; empty in a store that is standalone.
func (t *Tx) Node() string { return t.store.owner.name }

// CheckOwner returns nil if this node is the owner of its cluster: the node that does the background
// work for all. Otherwise it returns ErrNotOwner. It reads the owner in the transaction, so that an
// Update conflicts with a change of the owner; winning an election alone excludes nothing. In a
// store that is standalone it returns nil, and reads nothing.
func (t *Tx) CheckOwner() error {
	_, err := t.Tenure()
	return err
}

// Tenure is CheckOwner, and returns the commit that made this node the owner. Work of several
// transactions that depend on each other compares it: another owner may have undone the first ones
// in between.
func (t *Tx) Tenure() (Seq, error) {
	name := t.store.owner.name
	if name == "" {
		return Standalone, nil
	}
	for item, err := range t.Scan([]byte(ownerKey), nil, false) {
		switch {
		case err != nil:
			return 0, err
		case string(item.Key) == ownerKey && string(item.Value) == name && !t.store.owner.disowned.Load():
			return item.Version, nil
		}
		break
	}
	return 0, ErrNotOwner
}

// BecomeOwner makes this node the owner of its cluster, after it has won the election. After it
// returned nil, no transaction in which an earlier owner called CheckOwner is committed. The errors
// are those of Update. In a store that is standalone it does nothing.
func (s *Store) BecomeOwner(ctx context.Context) error {
	if s.owner.name == "" {
		return nil
	}
	s.owner.disowned.Store(false)
	// Written in any case: the owner here may be out of date.
	_, err := s.Update(ctx, func(tx *Tx) error { return tx.Set([]byte(ownerKey), []byte(s.owner.name)) })
	if err != nil {
		return fmt.Errorf("become the owner of the cluster: %w", err)
	}
	return nil
}

// Disown makes this node not the owner until BecomeOwner is called, whatever the other nodes know. In a
// store that is standalone it does nothing.
func (s *Store) Disown() { s.owner.disowned.Store(true) }

// UpdateAsOwner is Update, and calls CheckOwner before fn: on a node that is not the owner, the error
// is ErrNotOwner, and nothing is written.
func (s *Store) UpdateAsOwner(ctx context.Context, fn func(*Tx) error) (Seq, error) {
	return s.Update(ctx, func(tx *Tx) error {
		if err := tx.CheckOwner(); err != nil {
			return err
		}
		return fn(tx)
	})
}

// IsOwner reports whether this node is the owner of its cluster, as far as it knows; true in a store
// that is standalone. It reads nothing, and may be out of date: it says whether background work is
// worth a try.
func (s *Store) IsOwner() bool {
	since, _ := s.owner.state()
	return since > 0
}

// WaitOwner returns when this node is the owner of its cluster by a later commit than after, which
// is the one that WaitOwner returned last, or 0. It returns that commit, and Tenure does too from
// then on. A store that is standalone is the owner since Standalone. The error matches
// ErrUnavailable if ctx ends or the store is closed first.
func (s *Store) WaitOwner(ctx context.Context, after Seq) (since Seq, err error) {
	for {
		since, changed := s.owner.state()
		if since > after {
			if changed == nil { // alone
				return since, nil
			}
			return since, s.WaitFor(ctx, since)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, unavailable(context.Cause(ctx))
		case <-s.sequencer.stopped:
			return 0, errClosed
		}
	}
}

func (o *owner) state() (since Seq, changed <-chan struct{}) {
	if o.name == "" {
		return Standalone, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.disowned.Load() {
		return 0, o.changed
	}
	return o.since, o.changed
}

// set records since which commit this node is the owner; 0: it is not.
func (o *owner) set(since Seq) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.since, o.changed = since, make(chan struct{})
}

// follow follows the key of the owner.
func (o *owner) follow(seq Seq, c Change) {
	switch {
	case string(c.Key) != ownerKey:
	case string(c.Value) == o.name:
		o.set(seq)
	default:
		o.set(0)
	}
}

// followOwner reads the owner, and follows it from now on. No entry is applied meanwhile.
func (s *Store) followOwner() error {
	if s.owner.name == "" {
		return nil
	}
	tx := &Tx{store: s, ctx: context.Background()}
	defer tx.end()
	since, err := tx.Tenure()
	if err != nil && !errors.Is(err, ErrNotOwner) {
		return err
	}
	s.owner.since, s.owner.changed = since, make(chan struct{})
	s.OnApply([]byte(ownerKey), s.owner.follow)
	return nil
}
