package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/wait"
	"runner.example/state/store/commitlog"
)

// sequencer puts the queued proposals into one entry, appends it to the log, and applies what
// the log delivers. While one entry is under way, the next proposals queue up: this is the
// group commit.
type sequencer struct {
	store   *Store
	log     entryLog
	fresh   *freshness // nil if the log is local
	queue   chan *proposal
	renewed chan *proposal // taken first, see Tx.renew
	closing chan struct{}  // no more proposals are accepted
	closed  sync.Once
	stopped chan struct{}   // run has returned
	ctx     context.Context // ends when Close no longer waits for the log
	abort   context.CancelFunc
	held    *proposal             // taken from the queue, did not fit in the last entry
	newest  commitlog.ID          // of the entry made last
	pending atomic.Pointer[batch] // appended and not delivered
	full    bool                  // the log refused the last entry, and that was logged
	last    int                   // proposals in the entry made last
	// restored is closed when the window is complete, or the store cannot write.
	restored chan struct{}
	// applying is full while an entry is being applied.
	applying chan struct{}
}

const (
	queueLen          = 1024
	maxEntryProposals = 512
	// linger is how long an entry waits for as many proposals as the last one had: their writers have
	// just been answered. Else entries with one proposal and with all others would alternate.
	linger = 300 * time.Microsecond
)

// startSequencer opens the log and begins to apply. A nil open is the local log. The window is
// restored from the records in the background: reads do not wait for it.
func startSequencer(s *Store, open openLog, records []logRecord) {
	q := &sequencer{
		store:    s,
		queue:    make(chan *proposal, queueLen),
		renewed:  make(chan *proposal, queueLen),
		closing:  make(chan struct{}),
		stopped:  make(chan struct{}),
		restored: make(chan struct{}),
		applying: make(chan struct{}, 1),
	}
	q.ctx, q.abort = context.WithCancel(context.Background())
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	q.newest.Proposer = binary.BigEndian.Uint64(random[:])
	s.sequencer = q
	if len(records) == 0 {
		close(q.restored)
	} else {
		go q.restore(records)
	}
	if open == nil {
		q.log = localLog{q}
	} else {
		q.log = open(s.machine.revision, q)
		q.fresh = startFreshness(q)
	}
	go q.run()
}

func (q *sequencer) restore(records []logRecord) {
	defer close(q.restored)
	err := q.store.restoreWindow(q.ctx, records)
	if q.store.scrubber != nil && errors.Is(err, ErrDamaged) {
		err = cmp.Or(q.store.scrubber.first(), err) // it names the file
	}
	switch {
	case err == nil:
	case q.ctx.Err() != nil: // closed meanwhile
		q.store.failure.Store(&err)
	default:
		_ = q.store.stopWrites(fmt.Errorf("restore the window: %w", err)) // for Health, and what waits
	}
}

// propose queues p and waits until it is decided. An error says whether p was not decided
// (ErrUnavailable) or may have been (ErrUnknown).
func (q *sequencer) propose(ctx context.Context, p *proposal) error {
	p.done = make(chan struct{})
	queue := q.queue
	if p.try > maxTries { // see Tx.renew
		queue = q.renewed
	}
	select {
	case queue <- p:
	case <-ctx.Done():
		return unavailable(context.Cause(ctx))
	case <-q.closing:
		return errClosed
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		if p.withdraw() {
			return unavailable(context.Cause(ctx))
		}
	case <-q.stopped:
		if p.withdraw() {
			return errClosed
		}
	}
	select { // taken: it may be decided by now
	case <-p.done:
		return p.err
	default:
		return unknown(context.Cause(ctx))
	}
}

// between runs fn while no entry is being applied.
func (q *sequencer) between(ctx context.Context, fn func()) error {
	select {
	case <-q.restored:
	case <-ctx.Done():
		return unavailable(context.Cause(ctx))
	}
	if q.store.isClosed() {
		return errClosed
	}
	select {
	case q.applying <- struct{}{}:
		defer func() { <-q.applying }()
		fn()
		return nil
	case <-ctx.Done():
		return unavailable(context.Cause(ctx))
	case <-q.closing:
		return errClosed
	}
}

// close refuses further proposals, and returns when the queued ones are applied. Those that are
// not applied within closeWait, or sharedCloseWait, fail. Nothing is applied afterwards.
func (q *sequencer) close() {
	q.closed.Do(func() {
		close(q.closing)
		wait := closeWait
		if q.fresh != nil {
			wait = sharedCloseWait
		}
		limit := time.AfterFunc(wait, q.abort)
		<-q.stopped
		limit.Stop()
		q.abort()
		q.log.close()
		<-q.restored
		q.applying <- struct{}{} // what between runs has ended
		if q.fresh != nil {
			<-q.fresh.stopped
		}
	})
}

func (q *sequencer) run() {
	defer close(q.stopped)
	for {
		select {
		case q.held = <-q.renewed:
			q.commit()
		case q.held = <-q.queue:
			q.commit()
		case <-q.closing:
			q.held = q.next(nil)
			q.commit()
			return
		}
	}
}

// commit makes entries until the queue is empty.
func (q *sequencer) commit() {
	for q.held != nil {
		if b := q.gather(); len(b.proposals) > 0 {
			q.append(b)
		}
	}
}

// gather builds an entry of the held proposal and the queued ones, up to the limits of an
// entry. Retried ones come first, so that they do not lose again.
func (q *sequencer) gather() *batch {
	b := &batch{}
	keys, bytes, retried := 0, 0, false
	var more <-chan time.Time
	if q.fresh != nil && q.last > 1 {
		more = time.After(linger)
	}
	for p := q.held; p != nil; p = q.next(more) {
		q.held = nil
		if n := len(b.proposals); n > 0 &&
			(n == maxEntryProposals || keys+len(p.Writes) > maxEntryKeys || bytes+p.cost() > maxEntryBytes) {
			q.held = p
			break
		}
		if !p.take() {
			continue
		}
		b.proposals = append(b.proposals, p)
		keys, bytes = keys+len(p.Writes), bytes+p.cost()
		retried = retried || p.try > 1
		if len(b.proposals) >= q.last {
			more = nil
		}
	}
	q.last = len(b.proposals)
	if retried {
		slices.SortStableFunc(b.proposals, func(a, b *proposal) int { return b.try - a.try })
	}
	b.entry.Proposals = make([]*commitlog.Proposal, len(b.proposals))
	for i, p := range b.proposals {
		b.entry.Proposals[i] = &p.Proposal
	}
	return b
}

// next returns a queued proposal, nil if there is none before more, or now if that is nil.
func (q *sequencer) next(more <-chan time.Time) *proposal {
	select {
	case p := <-q.renewed:
		return p
	default:
	}
	if more == nil {
		select {
		case p := <-q.queue:
			return p
		default:
			return nil
		}
	}
	select {
	case p := <-q.queue:
		return p
	case <-more:
		return nil
	}
}

// append appends the entry of b until the log has delivered it.
func (q *sequencer) append(b *batch) {
	if q.ctx.Err() != nil {
		b.finish(0, errClosed)
		return
	}
	if cause := q.store.failure.Load(); cause != nil {
		b.finish(0, unavailable(*cause))
		return
	}
	if q.fresh != nil { // a shared log
		// Without disk space the store could not apply the entry, and could not take it back.
		if err := q.store.space.Reason(); err != nil {
			b.finish(0, unavailable(err))
			return
		}
		b.decided = make(chan struct{})
	} else {
		q.store.beginLevel(&b.entry)
	}
	q.newest.Batch++
	b.entry.ID, b.entry.Base, b.entry.Level = q.newest, q.store.appliedSeq(), q.store.Level()
	q.pending.Store(b)
	for try := 1; ; try++ {
		again := time.NewTimer(resendAfter)
		err := q.log.append(q.ctx, &b.entry)
		if q.pending.Load() != b {
			q.full = false
			return // delivered
		}
		if try == 1 && q.refuse(b, err) {
			return
		}
		if err != nil && try == 1 {
			q.store.log.Warn("entry not appended", "cause", err)
		}
		select {
		case <-b.decided:
			q.full = false
		case <-q.ctx.Done():
			q.giveUp(unknown(errClosed))
		case <-again.C:
			cause := q.store.failure.Load()
			if cause == nil {
				continue
			}
			q.giveUp(unknown(*cause))
		}
		again.Stop()
		return
	}
}

// refuse ends b if err says that the log does not have its entry, and reports whether it did. What is
// too large for one entry is appended in several.
func (q *sequencer) refuse(b *batch, err error) bool {
	code := fault.CodeOf(err)
	if code != fault.TooLarge && code != fault.Unavailable || !q.pending.CompareAndSwap(b, nil) {
		return false
	}
	switch {
	case code == fault.Unavailable:
		if !q.full {
			q.store.log.Warn("log takes no entries", "cause", err)
		}
		q.full = true
		b.finish(0, unavailable(err))
	case len(b.proposals) == 1:
		b.finish(0, fmt.Errorf("%w: %w", ErrTooLarge, err))
	default:
		for _, p := range b.proposals {
			q.append(&batch{proposals: []*proposal{p}, entry: commitlog.Entry{Proposals: []*commitlog.Proposal{&p.Proposal}}})
		}
	}
	return true
}

// giveUp fails what is under way.
func (q *sequencer) giveUp(err error) {
	if b := q.pending.Swap(nil); b != nil {
		b.finish(0, err)
	}
}

// receive is deliver for an encoded entry. One that cannot be decoded stops the store.
func (q *sequencer) receive(revision uint64, encoded []byte) error {
	e, err := commitlog.Decode(encoded)
	if err != nil {
		err = fmt.Errorf("entry at revision %d: %w", revision, err)
		if errors.Is(err, commitlog.ErrFormat) {
			return q.store.stopForGood(err)
		}
		return q.store.stopWrites(err)
	}
	return q.deliver(revision, e)
}

// deliver applies the next entry of the log. The revision is its place there, or 0: then the entry
// gets its place by being applied. An entry whose revision is applied already is ignored. After
// an error the log does not have the entry, or it must deliver no more.
func (q *sequencer) deliver(revision uint64, e *commitlog.Entry) error {
	q.applying <- struct{}{}
	defer func() { <-q.applying }()
	if revision > 0 && revision <= q.store.machine.revision {
		return nil
	}
	own := q.pending.Load()
	if own != nil && own.entry.ID != e.ID {
		own = nil
	}
	seq, err := q.apply(revision, e, own)
	if own != nil && q.pending.CompareAndSwap(own, nil) {
		own.finish(seq, err)
	}
	return err
}

// apply applies an entry, whose verdicts own waits for unless it is nil.
func (q *sequencer) apply(revision uint64, delivered *commitlog.Entry, own *batch) (Seq, error) {
	s, refused, e := q.store, unavailable, delivered
	if own != nil {
		e = &own.entry
	}
	if revision > 0 {
		refused = unknown // the log has it: it is applied after a restart
	}
	<-q.restored
	if cause := s.failure.Load(); cause != nil {
		return 0, refused(*cause)
	}
	for {
		s.machine.decide(e)
		if revision == 0 && !e.Commits() { // the local log has no entry that changes nothing
			return 0, nil
		}
		err := s.space.Admit(diskUse(e, s.machine.split))
		if err == nil {
			break
		}
		if revision == 0 {
			return 0, refused(err)
		}
		// The entry waits for space, and all that follow it. What waits for one of them is told at once, and
		// append refuses the rest.
		q.giveUp(refused(err))
		e = delivered // the other one belongs to its transactions again
		if wait.For(q.ctx, resendAfter) != nil {
			return 0, refused(err)
		}
	}
	seq, err := s.machine.commit(revision, e)
	if err != nil {
		return 0, unknown(s.stopWrites(fmt.Errorf("commit %d: %w", seq, err)))
	}
	tooOld := s.followLevel(e)
	s.publish(seq, e)
	if tooOld != nil {
		_ = s.stopForGood(tooOld) // after this entry, which was in the form of the level before
	}
	return seq, nil
}

// stopWrites stops the store and returns why.
func (s *Store) stopWrites(cause error) error {
	return s.stop(fmt.Errorf("writes stopped, restart to recover: %w", cause))
}

// stopForGood stops the store because of something that a restart does not change.
func (s *Store) stopForGood(cause error) error {
	return s.stop(fmt.Errorf("writes stopped: %w", cause))
}

func (s *Store) stop(err error) error {
	s.log.Error("store writes stopped", "cause", err)
	s.failure.Store(&err)
	return err
}
