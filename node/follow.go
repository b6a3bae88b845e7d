package node

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/wait"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/state/store"
)

// inCluster reports whether there are other nodes.
func (v *Activator) inCluster() bool { return v.from.PreparePeers != nil }

// follows reports whether another node activates what this one serves.
func (v *Activator) follows() bool { return v.inCluster() && !v.store.IsOwner() }

const (
	// followPause is the pause before a release that could not be loaded is tried again; it doubles each
	// time, up to maxFollowPause.
	followPause    = time.Second
	maxFollowPause = 30 * time.Second
)

// errSuperseded means that another release became active while one was loaded.
var errSuperseded = errors.New("another release is active")

// follow loads each release that another node activates, until ctx ends. Of several in a row it may load
// only the newest.
func (v *Activator) follow(ctx context.Context) {
	var newest atomic.Uint64 // the commit of the newest change
	moved := make(chan struct{}, 1)
	stop := release.OnActivate(v.store, func(seq store.Seq) {
		newest.Store(uint64(seq))
		select {
		case moved <- struct{}{}:
		default: // it is asked for already
		}
	})
	defer stop()
	again := time.NewTimer(maxFollowPause)
	defer again.Stop()
	for pause := followPause; ; {
		again.Stop()
		err := v.store.WaitFor(ctx, store.Seq(newest.Load()))
		for next := err == nil; next; next = err == errSuperseded {
			err = v.loadActive(ctx)
		}
		if err != nil {
			again.Reset(pause)
			pause = min(2*pause, maxFollowPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-moved:
			pause = followPause
		case <-again.C:
		}
	}
}

// loadActive loads the active release if it is not the one that is served. If it cannot, this node is not
// ready; requests are served with the release that it had, but those that touch rows fail if the schema
// of the rows has changed. After errSuperseded it must be called again.
func (v *Activator) loadActive(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	active, err := v.pointer(ctx)
	if err != nil || active.ID == "" || sameActivation(active, v.active) {
		return err
	}
	before := v.active.ID
	next, err := v.candidateOf(ctx, v.app.Load(), active)
	if err == nil {
		err = v.activate(ctx, next)
	}
	if err == nil {
		v.logger.Info("release of another node loaded", "release", active.ID, "before", before)
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	if now, failed := v.pointer(ctx); failed == nil && !sameActivation(now, active) {
		return errSuperseded
	}
	v.notLoaded(active.ID, err)
	return err
}

// sameActivation reports whether two pointers were written by the same activation.
func sameActivation(a, b release.Pointer) bool { return a.ID == b.ID && a.Time.Equal(b.Time.Time) }

// pointer returns the pointer to the active release; the zero value if there is none.
func (v *Activator) pointer(ctx context.Context) (active release.Pointer, err error) {
	err = v.store.View(ctx, func(tx *store.Tx) (err error) {
		active, err = release.Active(tx)
		return err
	})
	return active, err
}

// notLoaded logs why a release is not loaded, and makes the server not ready until one is.
func (v *Activator) notLoaded(id string, err error) {
	_, untrusted := errors.AsType[*release.UntrustedError](err)
	_, unreadable := errors.AsType[*release.UnreadableError](err)
	var public string
	switch {
	case untrusted:
		v.logger.Error("release refused: no trusted signature", "cause", err)
		public = "the release to serve has no trusted signature: the log says more"
	case unreadable:
		v.logger.Error("active release cannot be read", "cause", err)
		public = "the active release cannot be read: the log says why"
	default:
		v.logger.Error("active release cannot be loaded", "release", id, "cause", err)
		public = "the active release cannot be loaded: the log says why"
	}
	v.runtime.SetNotReady(runtime.NotLoaded, fault.New(fault.NotReady, "%s", public))
}

// own does what the owner of the cluster does, each time that this node has become the owner, until ctx
// ends.
func (v *Activator) own(ctx context.Context) {
	for since := store.Seq(0); ; {
		var err error
		if since, err = v.store.WaitOwner(ctx, since); err != nil {
			return // ctx has ended, or the store is closed
		}
		for pause := followPause; ; pause = min(2*pause, maxFollowPause) {
			if err = v.takeOver(ctx); err == nil || errors.Is(err, store.ErrNotOwner) {
				break
			}
			v.logger.Error("takeover from previous owner failed; retrying", "cause", err)
			if wait.For(ctx, pause) != nil {
				return
			}
		}
	}
}

// takeOver activates what the server would activate at its start if no release is active. The runtime
// ends what an activation of the owner before has left.
func (v *Activator) takeOver(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	active, err := v.pointer(ctx)
	if err != nil || active.ID != "" {
		return err // follow loads it
	}
	next, err := v.next(ctx, v.app.Load(), nil)
	if err != nil || next.bundle == nil {
		return err
	}
	return v.activate(ctx, next)
}
