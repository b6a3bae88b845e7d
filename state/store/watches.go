package store

import (
	"context"
	"sync"
	"sync/atomic"

	"runner.example/state/store/commitlog"
	"runner.example/state/store/watch"
)

// Watch waits for the first commit that writes something in a Reads.
type Watch struct {
	watches *watches
	since   Seq // commits after this one end the watch
	changed func(Seq)
	state   atomic.Int32         // watchPending, …
	entry   *watch.Entry[*Watch] // in the index
}

// The states of a watch, in this order.
const (
	watchPending int32 = iota // the commits between the View and the Watch are not checked yet
	watchActive
	watchEnded // stopped, or changed was or is being called
)

// Watch calls changed when a commit after r.Snapshot has written something in r. Deleting a key, or writing the value that
// it has, also counts. Watch calls changed once, with the number of the commit, when this node can read that commit. In
// rare cases, such as a burst of commits, it calls changed after a commit that wrote nothing in r.
//
// If there is such a commit already, or r is too old to know, fresh is false and there is no watch: the caller must read
// again. r must be of this store. A later Widen of r does not change the watch. The error matches ErrUnavailable if ctx ends
// before Watch returns, or the store is closed. ctx does not end the watch.
//
// One goroutine of the store calls the functions of all watches, one after the other in the order of the commits, and
// perhaps before Watch returns. They must not block, and may call Stop, but not Close. No commit waits for them. After
// Close has returned, none is called.
func (s *Store) Watch(ctx context.Context, r *Reads, changed func(Seq)) (w *Watch, fresh bool, err error) {
	w = &Watch{watches: &s.watches, since: r.Snapshot, changed: changed}
	if !s.watches.add(w, r) {
		return nil, false, errClosed
	}
	// From here on commits find the watch in the index. The window knows the earlier ones.
	err = s.sequencer.between(ctx, func() {
		wrote := s.machine.window.Wrote(w.since, r.keys, r.spans)
		fresh = !wrote && w.state.CompareAndSwap(watchPending, watchActive)
	})
	if !fresh {
		w.Stop()
		return nil, false, err
	}
	return w, true, nil
}

// Stop ends the watch, and reports whether this prevents the call of changed. If it returns false, changed was called, is
// running or is about to run, or Stop was called before. Any goroutine may call Stop, also several times.
func (w *Watch) Stop() bool {
	was := w.state.Swap(watchEnded)
	if was != watchEnded {
		w.watches.remove(w)
	}
	return was != watchEnded
}

// watches has the watches of a store. Commits append the keys that they write to a queue. The matcher, a goroutine, looks
// these keys up in the index.
type watches struct {
	mu      sync.Mutex
	index   watch.Index[*Watch]
	found   []*watch.Entry[*Watch] // scratch of the matcher
	closed  bool
	stopped chan struct{} // closed when the matcher has returned; nil: the matcher was not started
	wake    chan struct{} // has a value when the queue has grown, or is closed; made with stopped

	waiting atomic.Int64 // the number of watches in the index; if it is 0, commits append nothing

	queue struct {
		sync.Mutex
		written
		closed bool
	}
}

// written has the keys that entries of the log have written, in the order of the entries.
type written struct {
	lost    Seq // the newest entry whose keys are not known, which is before all of entries; 0: there is none
	entries []writtenEntry
	keys    []string // of all entries
}

// writtenEntry is an entry. Its keys are those from the end of the previous entry up to its own end.
type writtenEntry struct {
	seq Seq
	end int
}

const (
	// maxWrittenKeys is how many keys may wait for the matcher. If there are more, all watches count as changed.
	maxWrittenKeys = 200_000
	// matchedKeys is how many keys the matcher looks up while it holds the lock of the index.
	matchedKeys = 128
)

// add adds w to the index. It returns false after close.
func (ws *watches) add(w *Watch, r *Reads) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return false
	}
	if ws.stopped == nil {
		ws.stopped, ws.wake = make(chan struct{}), make(chan struct{}, 1)
		go ws.run()
	}
	w.entry = ws.index.Add(w, r.keys, r.spans)
	ws.waiting.Store(int64(ws.index.Len()))
	return true
}

func (ws *watches) remove(w *Watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.removeLocked(w)
}

func (ws *watches) removeLocked(w *Watch) {
	ws.index.Remove(w.entry)
	ws.waiting.Store(int64(ws.index.Len()))
}

// wrote appends the keys that entry seq has written to the queue. The goroutine that applies entries calls it, when the
// entry can be read.
func (ws *watches) wrote(seq Seq, e *commitlog.Entry) {
	if ws.waiting.Load() == 0 {
		return
	}
	q := &ws.queue
	q.Lock()
	for p := range e.Committed {
		for i := range p.Writes {
			q.keys = append(q.keys, p.Writes[i].Key)
		}
	}
	q.entries = append(q.entries, writtenEntry{seq, len(q.keys)})
	if len(q.keys) > maxWrittenKeys {
		q.written = written{lost: seq}
	}
	q.Unlock()
	ws.signal()
}

// lose makes all watches count as changed by the entries up to seq, whose keys are not known. The caller ensures that no
// entry is applied meanwhile.
func (ws *watches) lose(seq Seq) {
	if ws.waiting.Load() == 0 {
		return
	}
	ws.queue.Lock()
	ws.queue.written = written{lost: seq}
	ws.queue.Unlock()
	ws.signal()
}

func (ws *watches) signal() {
	select {
	case ws.wake <- struct{}{}:
	default: // the matcher has not received the previous signal yet
	}
}

// close ends all watches. When it returns, none of their functions runs.
func (ws *watches) close() {
	ws.mu.Lock()
	ws.closed = true
	stopped := ws.stopped
	ws.mu.Unlock()
	if stopped == nil {
		return
	}
	ws.queue.Lock()
	ws.queue.closed = true
	ws.queue.Unlock()
	ws.signal()
	<-stopped
}

// run is the matcher.
func (ws *watches) run() {
	defer close(ws.stopped)
	var w written
	for range ws.wake {
		if !ws.take(&w) {
			return
		}
		ws.match(&w)
	}
}

// take moves the queue to w, and gives the previous memory of w to the queue. It returns false after close.
func (ws *watches) take(w *written) bool {
	clear(w.keys)
	if cap(w.keys) > maxWrittenKeys/10 {
		w.keys = nil
	}
	ws.queue.Lock()
	defer ws.queue.Unlock()
	*w, ws.queue.written = ws.queue.written, written{entries: w.entries[:0], keys: w.keys[:0]}
	return !ws.queue.closed
}

// match ends the watches that the written keys concern, and calls their functions.
func (ws *watches) match(w *written) {
	if w.lost > 0 {
		ws.end(w.lost, func(end func(*watch.Entry[*Watch])) {
			for e := range ws.index.All() {
				end(e)
			}
		})
	}
	from := 0
	for _, e := range w.entries {
		for from < e.end {
			keys := w.keys[from:min(from+matchedKeys, e.end)]
			from += len(keys)
			ws.end(e.seq, func(end func(*watch.Entry[*Watch])) {
				for _, key := range keys {
					ws.found = ws.index.Match(key, ws.found[:0])
					for _, e := range ws.found {
						end(e)
					}
					clear(ws.found)
				}
			})
		}
	}
}

// end ends the watches that find passes to its argument, unless they have seen entry seq, and calls their functions.
func (ws *watches) end(seq Seq, find func(end func(*watch.Entry[*Watch]))) {
	var ended []*Watch
	ws.mu.Lock()
	if !ws.closed {
		find(func(e *watch.Entry[*Watch]) {
			if w := e.Value; w.since < seq {
				ws.removeLocked(w)
				ended = append(ended, w)
			}
		})
	}
	ws.mu.Unlock()
	for _, w := range ended {
		if w.state.Swap(watchEnded) == watchActive {
			w.changed(seq)
		}
	}
}
