package live

import (
	"slices"
	"sync"
)

// Listener is one reader of events, such as a connection, with its subscriptions. A slow reader misses values, but never
// the newest. Next is for one goroutine; any goroutine may use the rest.
type Listener[Q any] struct {
	hub *Hub[Q]
	// Wake has a value when Next may have an event, after Rest.
	Wake chan struct{}

	mu    sync.Mutex
	ready []*Subscription[Q] // with something to send, in order

	// The lock of the Hub guards these.
	turn   bool // it is one of those that send
	queued bool // it waits for its turn
	waits  bool // it calls Rest before it waits for Wake
}

// Subscription is the interest of a listener in a query. The lock of its Hub guards it, except that of the listener ready.
type Subscription[Q any] struct {
	// Name is what its owner calls it.
	Name string

	listener *Listener[Q]
	query    *query[Q]
	sent     uint64 // hash of the last event that the reader has; valid if knows
	knows    bool
	greeted  bool   // Next has returned something for it
	last     *Event // that ends it
	ended    bool
	ready    bool // it is in the listener's list
}

// Listen returns a listener without subscriptions.
func (h *Hub[Q]) Listen() *Listener[Q] {
	return &Listener[Q]{hub: h, Wake: make(chan struct{}, 1), waits: true}
}

// Subscribe watches q for the listener, under a name that Next returns. Queries with the same key must be equal. If knows is
// true, the reader has the event with the hash already.
func (l *Listener[Q]) Subscribe(name, key string, q Q, hash uint64, knows bool) *Subscription[Q] {
	s := &Subscription[Q]{Name: name, listener: l, sent: hash, knows: knows}
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.hub.join(s, key, q)
	return s
}

// Move makes s watch another query: that of its caller after a change of the caller's authority.
func (s *Subscription[Q]) Move(key string, q Q) {
	h := s.listener.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.ended {
		h.leave(s)
		h.join(s, key, q)
	}
}

// End ends s. If last is not nil, the reader gets it; then Next returns s once more. Without it Next does not return s any
// more, also if s has ended with an event before.
func (s *Subscription[Q]) End(last *Event) {
	h := s.listener.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.ended {
		s.ended, s.last = true, last
		h.leave(s)
		s.offer()
	}
	if last == nil {
		s.withdraw()
	}
}

// Refuse returns a subscription that has ended with an event, which the reader gets.
func (l *Listener[Q]) Refuse(name string, last *Event) *Subscription[Q] {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	s := &Subscription[Q]{Name: name, listener: l, ended: true, last: last}
	s.offer()
	return s
}

// join adds s to the query with the key, which is made if there is none.
func (h *Hub[Q]) join(s *Subscription[Q], key string, q Q) {
	have := h.queries[key]
	if have == nil {
		have = &query[Q]{key: key, q: q, subs: map[*Subscription[Q]]struct{}{}}
		h.queries[key] = have
	}
	have.subs[s], s.query = struct{}{}, have
	switch {
	case have.event.Kind != "":
		s.offer()
	case !have.pending: // else the run that is planned or under way gives the value
		h.want(have)
	}
}

// leave removes s from its query, and the query from the hub after its last subscription.
func (h *Hub[Q]) leave(s *Subscription[Q]) {
	q := s.query
	delete(q.subs, s)
	s.query = nil
	if len(q.subs) == 0 {
		h.held -= q.event.size()
		delete(h.queries, q.key)
		q.end()
	}
}

// offer tells the listener of s that Next may have an event. The hub's lock is held.
func (s *Subscription[Q]) offer() {
	l := s.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if !s.ready {
		s.ready = true
		l.ready = append(l.ready, s)
	}
	l.wantTurn()
}

// wantTurn wakes l when it is its turn. The hub's lock is held.
func (l *Listener[Q]) wantTurn() {
	if !l.turn && !l.queued && !l.waits {
		l.queued = true
		l.hub.queue = append(l.hub.queue, l)
		l.hub.giveTurns()
	}
}

// giveTurns wakes listeners that wait for their turn. If all that have an event woke at once, requests would wait until
// thousands of them have sent it. The hub's lock is held.
func (h *Hub[Q]) giveTurns() {
	for h.turns < h.maxTurns && len(h.queue) > 0 {
		l := h.queue[0]
		h.queue[0] = nil
		h.queue = h.queue[1:]
		if l.queued = false; !l.waits {
			l.turn = true
			h.turns++
			l.Alert()
		}
	}
}

// endTurn lets another listener send. The hub's lock is held.
func (l *Listener[Q]) endTurn() {
	if l.turn {
		l.turn = false
		l.hub.turns--
		l.hub.giveTurns()
	}
}

// Rest must be called before a wait for Wake, when the events of Next are sent. From then on other listeners may send.
func (l *Listener[Q]) Rest() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.waits = false
	l.endTurn()
	l.mu.Lock()
	more := len(l.ready) > 0
	l.mu.Unlock()
	if more {
		l.wantTurn()
	}
}

// Wait must be called before a wait for the reader, and at the end: other listeners may send. Wake gets no value before
// Rest.
func (l *Listener[Q]) Wait() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.waits = true
	l.endTurn()
}

// Alert gives Wake a value.
func (l *Listener[Q]) Alert() {
	select {
	case l.Wake <- struct{}{}:
	default:
	}
}

// withdraw is the opposite of offer. The hub's lock is held.
func (s *Subscription[Q]) withdraw() {
	l := s.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.ready {
		s.ready = false
		l.ready = slices.DeleteFunc(l.ready, func(r *Subscription[Q]) bool { return r == s })
	}
}

// Next returns the next subscription with an event that its reader does not have, and the event. If the reader had it before
// it subscribed, unchanged is true, once. A nil subscription means that there is nothing now.
func (l *Listener[Q]) Next() (s *Subscription[Q], e Event, unchanged bool) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	for {
		if s = l.pop(); s == nil {
			return nil, Event{}, false
		}
		switch {
		case s.last != nil:
			e = *s.last
		case s.ended || s.query.event.Kind == "":
			continue
		default:
			e = s.query.event
		}
		first := !s.greeted
		s.greeted = true
		if s.knows && s.sent == e.Hash && !e.Last {
			if first {
				return s, e, true
			}
			continue
		}
		s.sent, s.knows = e.Hash, true
		l.hub.sent++
		return s, e, false
	}
}

func (l *Listener[Q]) pop() *Subscription[Q] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ready) == 0 {
		return nil
	}
	s := l.ready[0]
	l.ready = slices.Delete(l.ready, 0, 1)
	s.ready = false
	return s
}
