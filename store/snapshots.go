package store

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"time"
)

// snapshots counts the transactions that read at each sequence number, so that
// no version an open one can see is discarded and Badger is not closed below
// it. Badger does not count readers in managed mode.
type snapshots struct {
	mu     sync.Mutex
	open   []reader // ascending by seq
	taken  uint64
	closed bool
	idle   chan struct{} // made by close; closed when no reader is left
}

type reader struct {
	seq Seq
	n   int
}

// acquire registers a reader at the sequence number that now tells; false
// after close. The number is asked for under the lock, so that nothing it can
// see is discarded in between.
func (s *snapshots) acquire(now func() Seq) (Seq, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, false
	}
	seq := now()
	s.taken++
	if last := len(s.open) - 1; last >= 0 && s.open[last].seq == seq {
		s.open[last].n++
	} else {
		s.open = append(s.open, reader{seq, 1})
	}
	return seq, true
}

// release ends one reader at seq.
func (s *snapshots) release(seq Seq) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := sort.Search(len(s.open), func(i int) bool { return s.open[i].seq >= seq })
	s.open[i].n--
	if s.open[i].n > 0 {
		return
	}
	s.open = append(s.open[:i], s.open[i+1:]...)
	if s.closed && len(s.open) == 0 {
		close(s.idle)
	}
}

// oldest returns the sequence number of the oldest reader, or limit if that is
// less. Nobody begins to read below what was applied, so a limit below that
// stays good.
func (s *snapshots) oldest(limit Seq) Seq {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) > 0 {
		limit = min(limit, s.open[0].seq)
	}
	return limit
}

// count returns how many snapshots were taken since the store was opened.
func (s *snapshots) count() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// close refuses new readers and waits for the open ones, at most limit.
func (s *snapshots) close(limit time.Duration) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.idle = make(chan struct{})
		if len(s.open) == 0 {
			close(s.idle)
		}
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("transactions still open after %v; end them first", limit)
	}
}
