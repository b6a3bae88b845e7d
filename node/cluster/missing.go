package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/state/store"
)

const (
	// missingRound is how long after a complete look at the files of rows the next one begins, missingRetry the same
	// when this node still lacks some.
	missingRound = time.Hour
	missingRetry = 30 * time.Second
	// missingBatch is how many digests of new references are noted.
	missingBatch = 1000
	// fetchTime limits the fetch of one file.
	fetchTime = time.Hour
)

// missingFiles are the files of rows that this node lacks. They are fetched in the background, and when they are asked for.
type missingFiles struct {
	count atomic.Int64 // as of the last look
	wake  chan struct{}

	mu       sync.Mutex
	named    map[store.Digest]bool // by commits since they were taken
	overflow bool                  // by more than named has
}

// fetchMissing fetches the files that this node lacks, until ctx ends.
func (n *Node) fetchMissing(ctx context.Context) {
	m := &n.missing
	stop := n.store.OnApply([]byte(store.BlobPrefix), func(_ store.Seq, c store.Change) {
		if d, _, ok := store.CutBlobReference(c.Key); ok && !c.Deleted {
			m.note(d)
		}
	})
	defer stop()
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			n.lookForMissing(ctx)
			if m.count.Load() > 0 {
				look.Reset(missingRetry)
			} else {
				look.Reset(missingRound)
			}
		case <-m.wake:
			named, overflow := m.take()
			if lacks := n.fetchAll(ctx, named); (overflow || lacks > 0) && m.count.Swap(max(1, lacks)) == 0 {
				look.Reset(missingRetry) // else it comes anyway
			}
		}
	}
}

func (m *missingFiles) note(d store.Digest) {
	m.mu.Lock()
	if m.named == nil {
		m.named = map[store.Digest]bool{}
	}
	if len(m.named) < missingBatch {
		m.named[d] = true
	} else {
		m.overflow = true
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default: // it has a value
	}
}

// take returns the digests that were noted; overflow: there were more.
func (m *missingFiles) take() (all []store.Digest, overflow bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for d := range m.named {
		all = append(all, d)
	}
	overflow = m.overflow
	m.named, m.overflow = nil, false
	return all, overflow
}

// lookForMissing goes through the files of all rows, and fetches those that this node lacks.
func (n *Node) lookForMissing(ctx context.Context) {
	var lacks int64
	for from := []byte(nil); ctx.Err() == nil; {
		batch, next, err := n.store.BlobsNamed(ctx, from)
		if err != nil {
			if ctx.Err() == nil {
				n.logger.Warn("files of rows not looked up; trying again later", "cause", err)
			}
			n.missing.count.Store(max(1, lacks))
			return
		}
		lacks += n.fetchAll(ctx, batch)
		if next == nil {
			n.missing.count.Store(lacks)
			return
		}
		from = next
	}
}

// fetchAll fetches those of the files that this node lacks, and returns how many it still lacks.
func (n *Node) fetchAll(ctx context.Context, files []store.Digest) (lacks int64) {
	for _, d := range files {
		if _, err := n.store.HasBlob(d); !errors.Is(err, store.ErrNotFound) {
			continue
		}
		fetching, cancel := context.WithTimeout(ctx, fetchTime)
		err := n.store.FetchBlob(fetching, d)
		cancel()
		if err != nil {
			lacks++
			if ctx.Err() == nil {
				n.logger.Debug("file not fetched; trying again later", "sha256", d.String(), "cause", err)
			}
		}
	}
	return lacks
}
