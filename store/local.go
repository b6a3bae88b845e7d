package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// localLog is the log of a single node. It puts the queued proposals into one entry,
// numbers it, and applies it. While one entry is being synced, the next proposals queue up:
// this is the group commit.
type localLog struct {
	store   *Store
	queue   chan *proposal
	renewed chan *proposal // taken first, see Tx.renew
	calls   chan func()    // run between two entries
	closing chan struct{}  // no more proposals are accepted
	closed  sync.Once
	stopped chan struct{} // run has returned
	held    *proposal     // taken from the queue, did not fit in the last entry
}

const (
	queueLen          = 1024
	maxEntryProposals = 512
)

func startLocalLog(s *Store) *localLog {
	l := &localLog{
		store:   s,
		queue:   make(chan *proposal, queueLen),
		renewed: make(chan *proposal, queueLen),
		calls:   make(chan func()),
		closing: make(chan struct{}),
		stopped: make(chan struct{}),
	}
	go l.run()
	return l
}

// propose queues p and waits until it is decided. An error says whether p was not decided
// (ErrUnavailable) or may have been (ErrUnknown).
func (l *localLog) propose(ctx context.Context, p *proposal) error {
	p.done = make(chan struct{})
	queue := l.queue
	if p.try > maxTries { // see Tx.renew
		queue = l.renewed
	}
	select {
	case queue <- p:
	case <-ctx.Done():
		return unavailable(context.Cause(ctx))
	case <-l.closing:
		return errClosed
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		if p.withdraw() {
			return unavailable(context.Cause(ctx))
		}
	case <-l.stopped:
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
func (l *localLog) between(ctx context.Context, fn func()) error {
	done := make(chan struct{})
	select {
	case l.calls <- func() { defer close(done); fn() }:
		<-done
		return nil
	case <-ctx.Done():
		return unavailable(context.Cause(ctx))
	case <-l.closing:
		return errClosed
	}
}

// close refuses further proposals, and returns when the queued ones are applied.
func (l *localLog) close() {
	l.closed.Do(func() { close(l.closing) })
	<-l.stopped
}

func (l *localLog) run() {
	defer close(l.stopped)
	for {
		select {
		case l.held = <-l.renewed:
			l.apply()
		case l.held = <-l.queue:
			l.apply()
		case fn := <-l.calls:
			fn()
		case <-l.closing:
			l.held = l.next()
			l.apply()
			return
		}
	}
}

// apply applies entries until the queue is empty.
func (l *localLog) apply() {
	for l.held != nil {
		e := l.gather()
		if len(e.proposals) > 0 {
			l.store.applyLocal(e)
		}
	}
}

// gather builds an entry of the held proposal and the queued ones, up to the limits of an
// entry. Retried ones come first, so that they do not lose again.
func (l *localLog) gather() *entry {
	e := &entry{}
	keys, bytes, retried := 0, 0, false
	for p := l.held; p != nil; p = l.next() {
		l.held = nil
		if n := len(e.proposals); n > 0 &&
			(n == maxEntryProposals || keys+len(p.writes) > maxEntryKeys || bytes+p.cost() > maxEntryBytes) {
			l.held = p
			break
		}
		if !p.take() {
			continue
		}
		e.proposals = append(e.proposals, p)
		keys, bytes = keys+len(p.writes), bytes+p.cost()
		retried = retried || p.try > 1
	}
	if retried {
		slices.SortStableFunc(e.proposals, func(a, b *proposal) int { return b.try - a.try })
	}
	return e
}

// next returns a queued proposal, nil if there is none.
func (l *localLog) next() *proposal {
	select {
	case p := <-l.renewed:
		return p
	default:
	}
	select {
	case p := <-l.queue:
		return p
	default:
		return nil
	}
}

// applyLocal applies e as the next entry. If none of its proposals commits, it does not
// become part of the log.
func (s *Store) applyLocal(e *entry) {
	seq := s.machine.applied + 1
	defer func() {
		for _, p := range e.proposals {
			close(p.done)
		}
	}()
	if cause := s.failure.Load(); cause != nil {
		e.fail(unavailable(*cause))
		return
	}
	if s.machine.decide(seq, e) == 0 {
		return
	}
	if err := s.space.Admit(e.diskUse(s.machine.split)); err != nil {
		e.fail(unavailable(err))
		return
	}
	if err := s.machine.commit(seq, e); err != nil {
		err = fmt.Errorf("writes stopped, restart to recover: commit %d: %w", seq, err)
		s.log.Error("store writes stopped", "cause", err)
		s.failure.Store(&err)
		e.fail(unknown(err))
		return
	}
	s.publish(seq, e)
}

// fail sets the error of every proposal of e.
func (e *entry) fail(err error) {
	for _, p := range e.proposals {
		p.err = err
	}
}
