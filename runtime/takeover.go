package runtime

import (
	"context"
	"errors"
	"time"

	"runner.example/internal/wait"
	"runner.example/state/entity/catalog"
	"runner.example/state/store"
)

// takeOverAgain is the pause before takeOver tries again.
const takeOverAgain = time.Second

// takeOver ends what activations of earlier owners of the cluster have left, each time that this node
// becomes the owner: until then, requests that write may be refused. It returns when ctx ends. On a
// node that is standalone it does nothing: Activate does it.
func (r *Runtime) takeOver(ctx context.Context) {
	for done := store.Standalone; ; {
		since, err := r.opt.Store.WaitOwner(ctx, done)
		if err != nil {
			return
		}
		r.activating.Lock()
		err = catalog.TakeOver(ctx, r.opt.Store)
		r.activating.Unlock()
		if err == nil || errors.Is(err, store.ErrNotOwner) {
			done = since
			continue
		}
		if ctx.Err() == nil {
			r.opt.Logger.Error("interrupted activation not ended; trying again", "cause", err)
		}
		if wait.For(ctx, takeOverAgain) != nil {
			return
		}
	}
}
