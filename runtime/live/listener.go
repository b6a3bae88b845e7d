package live

import (
	"slices"
	"sync"
)

// Listener receives the events of its subscriptions for one reader, such as a connection. A slow reader misses values, but
// never the newest.
//
// One goroutine calls Next until it returns no subscription, sends the events, calls Arm, and receives from Wake. Before it
// blocks on its reader, and when it ends, it calls Disarm. Any goroutine may call the other methods.
type Listener[Q any] struct {
	hub *Hub[Q]
	// Wake gets a value when the listener is armed, has a slot for sending, and Next may have an event; and from Signal.
	Wake chan struct{}

	mu    sync.Mutex
	ready []*Subscription[Q] // those for which Next may have an event, in this order

	// The lock of the Hub guards these.
	sending bool // it has a slot
	queued  bool // it waits for a slot
	armed   bool // it may wait for a slot
}

// Subscription subscribes a listener to a query. The lock of its Hub guards it, and that of its listener guards ready.
type Subscription[Q any] struct {
	// Name is the name that the owner has given it.
	Name string

	listener *Listener[Q]
	query    *query[Q]
	sent     uint64 // the hash of the last event that the reader has; valid if hasSent
	hasSent  bool
	returned bool   // Next has returned it
	final    *Event // the event that ends it
	ended    bool
	ready    bool // it is in the listener's list
}

// Listen returns a listener without subscriptions.
func (h *Hub[Q]) Listen() *Listener[Q] {
	return &Listener[Q]{hub: h, Wake: make(chan struct{}, 1)}
}

// Subscribe subscribes the listener to q. Queries with the same key must be equal. If hasSent is true, the reader already
// has the event whose hash is sent.
func (l *Listener[Q]) Subscribe(name, key string, q Q, sent uint64, hasSent bool) *Subscription[Q] {
	s := &Subscription[Q]{Name: name, listener: l, sent: sent, hasSent: hasSent}
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.hub.join(s, key, q)
	return s
}

// Move subscribes s to another query in place of its own, such as after a change of its caller's authority. It does nothing
// if s has ended.
func (s *Subscription[Q]) Move(key string, q Q) {
	h := s.listener.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.ended {
		h.leave(s)
		h.join(s, key, q)
	}
}

// End ends s. If final is not nil, Next returns it once for s. If final is nil, Next does not return s any more, not even
// with the final event of an earlier call.
func (s *Subscription[Q]) End(final *Event) {
	h := s.listener.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.ended {
		s.ended, s.final = true, final
		h.leave(s)
		s.markReady()
	}
	if final == nil {
		s.clearReady()
	}
}

// Refuse returns a subscription that has ended already. Next returns its final event.
func (l *Listener[Q]) Refuse(name string, final *Event) *Subscription[Q] {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	s := &Subscription[Q]{Name: name, listener: l, ended: true, final: final}
	s.markReady()
	return s
}

// join adds s to the query with the key, which it creates if there is none.
func (h *Hub[Q]) join(s *Subscription[Q], key string, q Q) {
	shared := h.queries[key]
	if shared == nil {
		shared = &query[Q]{key: key, q: q, subs: map[*Subscription[Q]]struct{}{}}
		h.queries[key] = shared
	}
	shared.subs[s], s.query = struct{}{}, shared
	switch {
	case shared.event.Kind != "":
		s.markReady()
	case !shared.pending: // a run that is scheduled or under way gives the value
		h.schedule(shared)
	}
}

// leave removes s from its query, and the query from the hub after its last subscription.
func (h *Hub[Q]) leave(s *Subscription[Q]) {
	q := s.query
	delete(q.subs, s)
	s.query = nil
	if len(q.subs) == 0 {
		h.valueBytes -= q.event.size()
		delete(h.queries, q.key)
		q.stop()
	}
}

// markReady tells the listener of s that Next may have an event of s. The hub's lock is held.
func (s *Subscription[Q]) markReady() {
	l := s.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if !s.ready {
		s.ready = true
		l.ready = append(l.ready, s)
	}
	l.requestSlot()
}

// requestSlot adds l to the queue for a slot, unless it is there, has a slot or is disarmed. The hub's lock is held.
func (l *Listener[Q]) requestSlot() {
	if l.armed && !l.sending && !l.queued {
		l.queued = true
		l.hub.queue = append(l.hub.queue, l)
		l.hub.grantSlots()
	}
}

// grantSlots gives free slots to listeners in the queue, and wakes them. If all listeners with an event woke at once,
// requests would wait until thousands of them have sent it. The hub's lock is held.
func (h *Hub[Q]) grantSlots() {
	for h.slots < h.maxSlots && len(h.queue) > 0 {
		l := h.queue[0]
		h.queue[0] = nil
		h.queue = h.queue[1:]
		if l.queued = false; l.armed {
			l.sending = true
			h.slots++
			l.Signal()
		}
	}
}

// releaseSlot gives the slot of l, if it has one, to another listener. The hub's lock is held.
func (l *Listener[Q]) releaseSlot() {
	if l.sending {
		l.sending = false
		l.hub.slots--
		l.hub.grantSlots()
	}
}

// Arm releases the slot of l. From then on Wake gets a value when l has a slot and Next may have an event.
func (l *Listener[Q]) Arm() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.armed = true
	l.releaseSlot()
	l.mu.Lock()
	more := len(l.ready) > 0
	l.mu.Unlock()
	if more {
		l.requestSlot()
	}
}

// Disarm releases the slot of l, so that other listeners can send. Events do not wake l until Arm is called.
func (l *Listener[Q]) Disarm() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.armed = false
	l.releaseSlot()
}

// Signal gives Wake a value, unless it has one.
func (l *Listener[Q]) Signal() {
	select {
	case l.Wake <- struct{}{}:
	default:
	}
}

// clearReady is the opposite of markReady. The hub's lock is held.
func (s *Subscription[Q]) clearReady() {
	l := s.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.ready {
		s.ready = false
		l.ready = slices.DeleteFunc(l.ready, func(r *Subscription[Q]) bool { return r == s })
	}
}

// Next returns the next subscription with an event that its reader does not have, and the event. If unchanged is true, the
// reader had the event before it subscribed; Next says so once for a subscription. A nil subscription means that there is no
// event now.
func (l *Listener[Q]) Next() (s *Subscription[Q], e Event, unchanged bool) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	for {
		if s = l.pop(); s == nil {
			return nil, Event{}, false
		}
		switch {
		case s.final != nil:
			e = *s.final
		case s.ended || s.query.event.Kind == "":
			continue
		default:
			e = s.query.event
		}
		first := !s.returned
		s.returned = true
		if s.hasSent && s.sent == e.Hash && !e.Last {
			if first {
				return s, e, true
			}
			continue
		}
		s.sent, s.hasSent = e.Hash, true
		l.hub.sent++
		return s, e, false
	}
}

// pop removes the first subscription of the list and returns it; nil if the list is empty.
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
