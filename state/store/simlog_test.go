package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"runner.example/internal/level"
	"runner.example/state/store/commitlog"
)

// SimLog is a log in memory that the stores of a test share. It delays entries and deliveries,
// loses appended entries, has entries twice or late, and delivers revisions again.
type SimLog struct {
	faults bool
	stop   chan struct{}
	late   sync.WaitGroup

	mu        sync.Mutex
	random    *rand.Rand
	entries   []simEntry
	has       map[commitlog.ID]bool
	grown     chan struct{} // closed when entries grow
	cut       map[*Store]bool
	doubles   int
	lost      int
	redeliver int
	refuse    func(encoded []byte) error
}

type simEntry struct {
	revision uint64
	bytes    []byte
}

// NewSimLog returns a log with faults, which random decides; nil: a log without.
func NewSimLog(random *rand.Rand) *SimLog {
	return &SimLog{
		faults: random != nil, random: random, stop: make(chan struct{}), has: map[commitlog.ID]bool{},
		grown: make(chan struct{}), cut: map[*Store]bool{},
	}
}

// Close ends what is under way. The stores are closed before.
func (l *SimLog) Close() {
	close(l.stop)
	l.late.Wait()
}

// Open opens a store that shares the log.
func (l *SimLog) Open(o Options, windowEntries int) (*Store, error) {
	return l.OpenKnowing(o, windowEntries, level.Range{})
}

// OpenKnowing is Open for a program that knows these levels.
func (l *SimLog) OpenKnowing(o Options, windowEntries int, levels level.Range) (*Store, error) {
	return open(o, setup{windowEntries: windowEntries, levels: levels, openLog: func(revision uint64, q *sequencer) entryLog {
		n := &simNode{log: l, q: q, stop: make(chan struct{}), stopped: make(chan struct{})}
		go n.tail(revision)
		return n
	}})
}

// Cut cuts a store off from the log, or connects it again.
func (l *SimLog) Cut(s *Store, off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[s] = off
	close(l.grown)
	l.grown = make(chan struct{})
}

// Refuse makes the log add no entry for which refuse, called with it encoded, returns an error; nil: it
// adds all.
func (l *SimLog) Refuse(refuse func(encoded []byte) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse = refuse
}

// Faults returns how many entries were appended twice and not at all, and how many revisions were
// delivered again.
func (l *SimLog) Faults() (doubles, lost, redelivered int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.doubles, l.lost, l.redeliver
}

// Put appends an encoded entry.
func (l *SimLog) Put(encoded []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(encoded)
}

func (l *SimLog) put(encoded []byte) {
	revision := uint64(1)
	if n := len(l.entries); n > 0 {
		revision += l.entries[n-1].revision
	}
	if l.faults {
		revision += l.random.Uint64N(3) // other keys of the engine
	}
	l.entries = append(l.entries, simEntry{revision, encoded})
	close(l.grown)
	l.grown = make(chan struct{})
}

// chance returns true once in n times, never without faults.
func (l *SimLog) chance(n int) bool { return l.faults && l.random.IntN(n) == 0 }

// pause waits for a random time of at most limit; false if stop is closed first.
func (l *SimLog) pause(limit time.Duration, stop chan struct{}) bool {
	if !l.faults {
		return true
	}
	l.mu.Lock()
	d := time.Duration(l.random.Int64N(int64(limit)))
	l.mu.Unlock()
	select {
	case <-time.After(d):
		return true
	case <-stop:
		return false
	}
}

// simNode is a SimLog as one store has it.
type simNode struct {
	log           *SimLog
	q             *sequencer
	stop, stopped chan struct{}
	closed        sync.Once
}

var errSim = errors.New("the log cannot be reached")

func (n *simNode) append(_ context.Context, e *commitlog.Entry) error {
	l, encoded := n.log, e.Encode(nil)
	l.pause(20*time.Millisecond, l.stop)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut[n.q.store] {
		return errSim
	}
	if l.refuse != nil {
		if err := l.refuse(encoded); err != nil {
			return err
		}
	}
	if l.chance(8) {
		l.lost++
		return errSim
	}
	if !l.has[e.ID] {
		l.put(encoded)
		l.has[e.ID] = true
	}
	if l.chance(8) {
		l.doubles++
		l.put(encoded)
	}
	if l.chance(10) {
		l.late.Go(func() {
			if l.pause(time.Minute, l.stop) {
				l.Put(encoded)
			}
		})
	}
	if l.chance(20) {
		return errSim // although it was appended
	}
	return nil
}

func (n *simNode) tip(ctx context.Context) (uint64, error) {
	l := n.log
	for {
		l.mu.Lock()
		cut, grown, tip := l.cut[n.q.store], l.grown, uint64(0)
		if last := len(l.entries) - 1; last >= 0 {
			tip = l.entries[last].revision
		}
		l.mu.Unlock()
		if !cut {
			return tip, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (n *simNode) close() {
	n.closed.Do(func() { close(n.stop) })
	<-n.stopped
}

// tail delivers the entries after revision.
func (n *simNode) tail(revision uint64) {
	defer close(n.stopped)
	l := n.log
	for at := 0; ; {
		l.mu.Lock()
		if l.chance(50) && at > 0 {
			l.redeliver++
			at -= 1 + l.random.IntN(min(at, 20))
		}
		cut, grown, have := l.cut[n.q.store], l.grown, at < len(l.entries)
		var e simEntry
		if have {
			e = l.entries[at]
		}
		l.mu.Unlock()
		switch {
		case cut || !have:
			select {
			case <-grown:
			case <-n.stop:
				return
			}
		case e.revision <= revision: // the store had it before it was opened
			at++
		case !l.pause(5*time.Millisecond, n.stop) || n.q.receive(e.revision, e.bytes) != nil:
			return
		default:
			at++
		}
	}
}
