package datadir

import (
	"context"
	"fmt"
)

// fetch is a running call of Fetch, which several goroutines may wait for.
type fetch struct {
	ended  chan struct{}
	err    error // set before ended is closed
	gaveUp bool  // it ended with the context of its caller: another goroutine must fetch
}

// FetchOnce gets a blob with Fetch, and stores it if its bytes have the digest. Goroutines that want the same blob at
// the same time share one call of Fetch.
func (b *Blobs) FetchOnce(ctx context.Context, d Digest) error {
	for {
		f, began := b.joinFetch(d)
		if began {
			b.runFetch(ctx, d, f)
			return f.err
		}
		select {
		case <-f.ended:
			if !f.gaveUp {
				return f.err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Refetch replaces a blob whose bytes have changed by the one that Fetch gets.
func (b *Blobs) Refetch(ctx context.Context, d Digest) error { return b.fetch(ctx, d) }

// joinFetch returns the fetch of a blob, and whether the caller must run it.
func (b *Blobs) joinFetch(d Digest) (f *fetch, began bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f = b.fetching[d]; f != nil {
		return f, false
	}
	if b.fetching == nil {
		b.fetching = make(map[Digest]*fetch)
	}
	f = &fetch{ended: make(chan struct{})}
	b.fetching[d] = f
	return f, true
}

// runFetch fetches a blob and ends f.
func (b *Blobs) runFetch(ctx context.Context, d Digest, f *fetch) {
	f.gaveUp = true // if Fetch panics
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.fetching, d)
		close(f.ended)
	}()
	if _, err := b.Info(d); err == nil { // fetched since the caller looked
		f.gaveUp = false
		return
	}
	f.err = b.fetch(ctx, d)
	f.gaveUp = ctx.Err() != nil
}

func (b *Blobs) fetch(ctx context.Context, d Digest) error {
	r, err := b.Fetch(ctx, d)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = b.Put(ctx, r, func(got Digest) error {
		if got != d {
			return fmt.Errorf("the other node sent bytes with the SHA-256 %v", got)
		}
		return nil
	})
	return err
}
