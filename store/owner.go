package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ownerKey holds the name of the node that owns the background work of a cluster.
const ownerKey = "cluster/owner"

// owner is what the store of a node knows about the owner.
type owner struct {
	name string // of this node; empty: alone

	mu    sync.Mutex
	since Seq           // the commit that made this node the owner; 0: it is not
	begun chan struct{} // closed while this node is the owner
}

// CheckOwner returns nil if this node is the owner of its cluster: the node that does the background
// work for all. Otherwise it returns ErrNotOwner. It reads the owner in the transaction, so that an
// Update conflicts with a change of the owner; winning an election alone excludes nothing. In a
// store that is alone it returns nil, and reads nothing.
func (t *Tx) CheckOwner() error {
	name := t.store.owner.name
	if name == "" {
		return nil
	}
	is, err := t.Get([]byte(ownerKey))
	if errors.Is(err, ErrNotFound) || err == nil && string(is) != name {
		return ErrNotOwner
	}
	return err
}

// BecomeOwner makes this node the owner of its cluster, after it has won the election. After it
// returned nil, no transaction in which an earlier owner called CheckOwner is committed. The errors
// are those of Update. In a store that is alone it does nothing.
func (s *Store) BecomeOwner(ctx context.Context) error {
	if s.owner.name == "" {
		return nil
	}
	// Written in any case: the owner here may be out of date.
	_, err := s.Update(ctx, func(tx *Tx) error { return tx.Set([]byte(ownerKey), []byte(s.owner.name)) })
	if err != nil {
		return fmt.Errorf("become the owner of the cluster: %w", err)
	}
	return nil
}

// IsOwner reports whether this node is the owner of its cluster, as far as it knows; true in a store
// that is alone. It reads nothing, and may be out of date: it says whether background work is
// worth a try.
func (s *Store) IsOwner() bool {
	if s.owner.name == "" {
		return true
	}
	since, _ := s.owner.state()
	return since > 0
}

// WaitOwner returns nil when this node is the owner of its cluster, and CheckOwner says so; at once
// in a store that is alone. The error matches ErrUnavailable if ctx ends or the store is closed
// first.
func (s *Store) WaitOwner(ctx context.Context) error {
	if s.owner.name == "" {
		return nil
	}
	for {
		since, begun := s.owner.state()
		if since > 0 {
			return s.WaitFor(ctx, since)
		}
		select {
		case <-begun:
		case <-ctx.Done():
			return unavailable(context.Cause(ctx))
		case <-s.sequencer.stopped:
			return errClosed
		}
	}
}

func (o *owner) state() (since Seq, begun <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, o.begun
}

// follow records the owner as of a commit.
func (o *owner) follow(seq Seq, c Change) {
	if string(c.Key) != ownerKey {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch is, was := string(c.Value) == o.name, o.since > 0; {
	case is && !was:
		o.since = seq
		close(o.begun)
	case was && !is:
		o.since, o.begun = 0, make(chan struct{})
	}
}

// followOwner reads the owner, and follows it from now on. No entry is applied yet.
func (s *Store) followOwner() error {
	if s.owner.name == "" {
		return nil
	}
	s.owner.begun = make(chan struct{})
	tx := &Tx{store: s, ctx: context.Background()}
	defer tx.end()
	name, err := tx.Get([]byte(ownerKey))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	s.owner.follow(max(1, s.appliedSeq()), Change{Key: []byte(ownerKey), Value: name})
	s.OnApply([]byte(ownerKey), s.owner.follow)
	return nil
}
