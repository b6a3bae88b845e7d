package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"time"

	"runner.example/internal/clock"
	"runner.example/state/store/datadir"
)

// blobScrubber reads all blobs again and again, some bytes at a time, and compares them with their digests. A blob whose
// bytes have changed is fetched from another node. It is for one goroutine.
type blobScrubber struct {
	store *Store
	ctx   context.Context // ends fetches
	// next returns the next blob of the round; nil between rounds.
	next func() (Digest, bool)
	stop func()
	// began is when the round began.
	began time.Time
	// check is that of the blob that is being read; nil: none is.
	check *datadir.Check
	which Digest
}

// blobRoundEvery is the time from the begin of a round to the begin of the next one, at least.
const blobRoundEvery = time.Hour

// scrub reads up to so many bytes of blobs.
func (c *blobScrubber) scrub(budget int64) {
	for budget > 0 {
		if c.check == nil && !c.advance() {
			return
		}
		n, err := c.check.Step(budget)
		budget -= max(n, 1)
		if err == nil {
			continue
		}
		c.check.Close()
		c.check = nil
		if errors.Is(err, datadir.ErrChanged) {
			c.repair()
		} else if !errors.Is(err, io.EOF) {
			c.store.log.Error("blob check failed", "sha256", c.which.String(), "err", err)
		}
	}
}

// advance opens the next blob, or ends the round and returns false.
func (c *blobScrubber) advance() bool {
	if c.next == nil {
		if !c.began.IsZero() && time.Since(c.began) < blobRoundEvery {
			return false
		}
		c.began = clock.Mark()
		c.next, c.stop = iter.Pull(func(yield func(Digest) bool) {
			err := c.store.blobs.Each(func(d Digest) error {
				if !yield(d) {
					return errRoundEnded
				}
				return nil
			})
			if err != nil && err != errRoundEnded {
				c.store.log.Error("blob check failed", "err", err)
			}
		})
	}
	for {
		d, ok := c.next()
		if !ok {
			c.close()
			return false
		}
		check, err := c.store.blobs.NewCheck(d)
		switch {
		case err == nil:
			c.check, c.which = check, d
			return true
		case !errors.Is(err, fs.ErrNotExist): // else it was deleted meanwhile
			c.store.log.Error("blob check failed", "sha256", d.String(), "err", err)
		}
	}
}

var errRoundEnded = errors.New("the round has ended")

// close ends a round.
func (c *blobScrubber) close() {
	if c.next != nil {
		c.stop()
		c.next = nil
	}
	if c.check != nil {
		c.check.Close()
		c.check = nil
	}
}

// repairTimeout limits the fetch of one blob.
const repairTimeout = time.Hour

// repair gets the bytes of the damaged blob again, if another node has them.
func (c *blobScrubber) repair() {
	s, d := c.store, c.which
	file := s.blobs.Path(d)
	if s.blobs.Fetch == nil {
		s.log.Error("blob damaged", "sha256", d.String(), "file", file)
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, repairTimeout)
	defer cancel()
	if err := s.blobs.Refetch(ctx, d); err != nil {
		s.log.Error("blob damaged", "sha256", d.String(), "file", file, "err", err)
		return
	}
	s.log.Warn("damaged blob replaced", "sha256", d.String(), "file", file)
}
