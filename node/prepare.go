package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"runner.example/internal/fault"
	"runner.example/node/release"
)

// keepPrepared is how long a release that was compiled for an activation is kept, if it is not activated.
const keepPrepared = 2 * time.Minute

// Prepare loads a stored release as an activation by another node does, without activating it: the
// activation then finds its modules compiled, if it follows within two minutes. The errors are those of
// Activate about signatures, modules and secrets; Invalid if a file cannot be read or fetched; and
// Unavailable if this node has no connection to its cluster. It waits for no activation of this node, since
// two nodes may prepare for each other.
func (v *Activator) Prepare(ctx context.Context, id string) error {
	if err := v.store.Barrier(ctx); err != nil { // the release may have been added a moment ago
		return err
	}
	bundle, err := v.stored(ctx, v.app.Load(), id)
	if unreadable, ok := errors.AsType[*release.UnreadableError](err); ok {
		return fault.Wrap(err, fault.Invalid, "%s", unreadable.Detail)
	}
	if err != nil {
		return err
	}
	done, err := v.runtime.Prepare(ctx, bundle)
	if err != nil {
		return bundle.Explain(err)
	}
	v.prepared.keep(id, done)
	return nil
}

// prepared keeps releases that were compiled for an activation.
type prepared struct {
	logger *slog.Logger

	mu     sync.Mutex // held while a release is dropped, so that none is after close
	kept   map[string]*keptRelease
	closed bool
}

type keptRelease struct {
	release func() error
	timer   *time.Timer
}

// keep keeps a release until it is dropped, or for keepPrepared.
func (p *prepared) keep(id string, release func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked(id)
	k := &keptRelease{release: release}
	if p.closed {
		p.end(k)
		return
	}
	if p.kept == nil {
		p.kept = map[string]*keptRelease{}
	}
	k.timer = time.AfterFunc(keepPrepared, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.kept[id] == k { // no later one
			p.dropLocked(id)
		}
	})
	p.kept[id] = k
}

// drop drops a release, which is active now.
func (p *prepared) drop(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked(id)
}

// close drops all releases, and those that are kept from now on.
func (p *prepared) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for id := range p.kept {
		p.dropLocked(id)
	}
}

func (p *prepared) dropLocked(id string) {
	if k := p.kept[id]; k != nil {
		k.timer.Stop()
		delete(p.kept, id)
		p.end(k)
	}
}

func (p *prepared) end(k *keptRelease) {
	if err := k.release(); err != nil {
		p.logger.Error("prepared release not closed", "cause", err)
	}
}
