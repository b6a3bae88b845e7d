package store

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"
)

// snapshots counts the transactions that read at each sequence number, so that no version
// that an open one can see is discarded, and Badger is not closed while one is open. Badger
// does not count readers in managed mode.
type snapshots struct {
	mu     sync.Mutex
	open   []reader // ascending by seq
	kept   Seq      // what oldest returned last: no version above was discarded
	taken  uint64
	closed bool
	idle   chan struct{} // made by close; closed when no reader is left
}

type reader struct {
	seq Seq
	n   int
}

// acquire registers a reader at the sequence number that now returns; false after close. It
// calls now under the lock, so that no version visible there is discarded in between.
func (s *snapshots) acquire(now func() Seq) (Seq, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, false
	}
	seq := now()
	s.add(seq)
	return seq, true
}

// acquireAt registers a reader at a number below that of a registered one; false if a version that is visible there may have
// been discarded.
func (s *snapshots) acquireAt(seq Seq) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || seq < s.kept {
		return false
	}
	s.add(seq)
	return true
}

// acquireKept registers a reader that needs all versions up to seq: at the oldest number
// above which no version was discarded. It must be released at kept.
func (s *snapshots) acquireKept(now func() Seq) (seq, kept Seq, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, 0, false
	}
	s.add(s.kept)
	return now(), s.kept, true
}

func (s *snapshots) add(seq Seq) {
	s.taken++
	i := s.find(seq)
	if i == len(s.open) || s.open[i].seq != seq {
		s.open = slices.Insert(s.open, i, reader{seq: seq})
	}
	s.open[i].n++
}

// find returns where the readers at seq are or belong.
func (s *snapshots) find(seq Seq) int {
	return sort.Search(len(s.open), func(i int) bool { return s.open[i].seq >= seq })
}

// release ends one reader at seq.
func (s *snapshots) release(seq Seq) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(seq)
	s.open[i].n--
	if s.open[i].n > 0 {
		return
	}
	s.open = slices.Delete(s.open, i, i+1)
	if s.closed && len(s.open) == 0 {
		close(s.idle)
	}
}

// oldest returns the sequence number of the oldest reader, or limit if that is less. New
// readers are never below the newest applied entry, so the result stays valid.
func (s *snapshots) oldest(limit Seq) Seq {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) > 0 {
		limit = min(limit, s.open[0].seq)
	}
	s.kept = limit
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
		return fmt.Errorf("transactions or forks are still open after %v: end them first", limit)
	}
}
