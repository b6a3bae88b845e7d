package telemetry

import (
	"bytes"
	"os"
	"sync"
	"time"

	"runner.example/internal/system/socket"
)

// chunkBytes is how much a queue writes at once, and its smallest allocation.
const chunkBytes = 32 << 10

// Queue is a writer. After Limit was called, its callers do not wait for the reader of a
// pipe: a caller writes what the pipe accepts at once, and a goroutine writes the rest from
// memory. Lines that do not fit in memory are discarded and counted.
//
// Each call of Write must have whole lines. A Queue is safe for concurrent use.
type Queue struct {
	file *os.File
	// onDisk: the file has no reader to wait for.
	onDisk bool
	// blocking: the system does not support writes without waiting for this file.
	blocking bool

	mu      sync.Mutex
	limit   int // 0: callers wait
	report  func(lines int) []byte
	chunks  [][]byte // to be written, the oldest first
	spare   []byte   // an empty chunk
	held    int      // capacity of chunks, and of the one that is being written
	dropped int      // lines, since the last report
	idle    chan struct{}
}

// NewQueue returns a Queue over file. Its callers wait until Limit is called.
func NewQueue(file *os.File) *Queue {
	q := &Queue{file: file}
	info, err := file.Stat()
	q.onDisk = err == nil && info.Mode().IsRegular()
	return q
}

// Limit makes Write return at once: from now on at most limit bytes, and one more line, are
// kept in memory. After lines were discarded, the Queue calls report with their number and
// writes the line that it returns. Writes to a file on disk wait as before.
func (q *Queue) Limit(limit int, report func(lines int) []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.onDisk {
		q.limit, q.report = limit, report
	}
}

// Write writes or queues p, or discards it as a whole. It returns errors only before Limit.
func (q *Queue) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.limit == 0:
		return q.file.Write(p)
	case q.idle == nil: // nothing is queued before p
		if n := q.writeNow(p); n < len(p) {
			q.add(p[n:]) // of any size: a part of the line may be written
			q.idle = make(chan struct{})
			go q.drain()
		}
	case q.held+q.growth(len(p)) > q.limit:
		q.dropped += bytes.Count(p, []byte("\n"))
	default:
		q.add(p)
	}
	return len(p), nil
}

// writeNow writes what the file accepts without waiting.
func (q *Queue) writeNow(p []byte) (n int) {
	if q.blocking {
		return 0
	}
	n, ok := socket.WriteNow(q.file, p)
	q.blocking = !ok // drain meets other errors again
	return n
}

// growth returns how much more memory n bytes take.
func (q *Queue) growth(n int) int {
	if last := len(q.chunks) - 1; last >= 0 && len(q.chunks[last])+n <= cap(q.chunks[last]) {
		return 0
	}
	return max(n, chunkBytes)
}

func (q *Queue) add(p []byte) {
	if grown := q.growth(len(p)); grown > 0 {
		chunk := q.spare
		if q.spare = nil; cap(chunk) < grown {
			chunk = make([]byte, 0, grown)
		}
		q.chunks = append(q.chunks, chunk)
		q.held += cap(chunk)
	}
	last := len(q.chunks) - 1
	q.chunks[last] = append(q.chunks[last], p...)
}

// drain writes until the queue is empty.
func (q *Queue) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.chunks) > 0 {
		chunk := q.chunks[0]
		q.chunks[0] = nil
		q.chunks = q.chunks[1:]
		q.mu.Unlock()
		_, err := q.file.Write(chunk)
		q.mu.Lock()
		q.held -= cap(chunk)
		if cap(chunk) == chunkBytes {
			q.spare = chunk[:0]
		}
		if q.dropped > 0 && err == nil {
			line := q.report(q.dropped)
			q.dropped = 0
			q.chunks = append([][]byte{line}, q.chunks...) // first, even over the limit
			q.held += cap(line)
		}
	}
	close(q.idle)
	q.idle, q.chunks = nil, nil
}

// Flush waits until the queue is empty, at most for wait.
func (q *Queue) Flush(wait time.Duration) {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle == nil {
		return
	}
	end := time.NewTimer(wait)
	defer end.Stop()
	select {
	case <-idle:
	case <-end.C:
	}
}
