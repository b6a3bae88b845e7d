package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/state/store"
)

const (
	// scanInterval is the time from a scan of all references to the next one, scanRetry the same while this node lacks
	// files.
	scanInterval = time.Hour
	scanRetry    = 30 * time.Second
	// maxReferenced limits the set of new references. Beyond it, the next scan finds them.
	maxReferenced = 1000
	// fetchTimeout limits the background fetch of one file.
	fetchTimeout = time.Hour
)

// missingFiles are the files of rows that this node lacks. They are fetched in the background, or when a request needs
// them.
type missingFiles struct {
	count atomic.Int64 // as of the last scan
	wake  chan struct{}

	mu         sync.Mutex
	referenced map[store.Digest]bool // by commits since the last call of take
	overflow   bool                  // referenced lacks some
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
	scan := time.NewTimer(0)
	defer scan.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-scan.C:
			n.scanReferences(ctx)
			if m.count.Load() > 0 {
				scan.Reset(scanRetry)
			} else {
				scan.Reset(scanInterval)
			}
		case <-m.wake:
			referenced, overflow := m.take()
			missing := n.fetchAll(ctx, referenced)
			if (overflow || missing > 0) && m.count.Swap(max(1, missing)) == 0 { // otherwise a retry is already scheduled
				scan.Reset(scanRetry)
			}
		}
	}
}

// note records that a commit refers to a blob.
func (m *missingFiles) note(d store.Digest) {
	m.mu.Lock()
	if m.referenced == nil {
		m.referenced = map[store.Digest]bool{}
	}
	if len(m.referenced) < maxReferenced {
		m.referenced[d] = true
	} else {
		m.overflow = true
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default: // fetchMissing is already woken
	}
}

// take returns the recorded digests, and removes them. overflow reports that there were more.
func (m *missingFiles) take() (all []store.Digest, overflow bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, overflow = slices.Collect(maps.Keys(m.referenced)), m.overflow
	m.referenced, m.overflow = nil, false
	return all, overflow
}

// scanReferences fetches the files of all rows that this node lacks, and counts those that are still missing.
func (n *Node) scanReferences(ctx context.Context) {
	var missing int64
	for from := []byte(nil); ctx.Err() == nil; {
		batch, next, err := n.store.ReferencedBlobs(ctx, from)
		if err != nil {
			if ctx.Err() == nil {
				n.logger.Warn("scan for missing files failed; trying again later", "cause", err)
			}
			n.missing.count.Store(max(1, missing))
			return
		}
		missing += n.fetchAll(ctx, batch)
		if next == nil {
			n.missing.count.Store(missing)
			return
		}
		from = next
	}
}

// fetchAll fetches those of the files that this node lacks, and returns how many are still missing.
func (n *Node) fetchAll(ctx context.Context, files []store.Digest) (missing int64) {
	for _, d := range files {
		if _, err := n.store.StatBlob(d); !errors.Is(err, store.ErrNotFound) {
			continue
		}
		timed, cancel := context.WithTimeout(ctx, fetchTimeout)
		err := n.store.FetchBlob(timed, d)
		cancel()
		if err != nil {
			missing++
			if ctx.Err() == nil {
				n.logger.Debug("file fetch failed; trying again later", "sha256", d.String(), "cause", err)
			}
		}
	}
	return missing
}
