package store

import (
	"context"
	"fmt"

	"runner.example/state/store/commitlog"
)

// SharedLog is a log to which the stores of several nodes append.
type SharedLog interface {
	// Append adds an encoded entry, unless the log has one with this id. An error with the code
	// fault.TooLarge or fault.Unavailable means that this call did not add it and will not; after
	// another one it may have been added. It does not keep the bytes after it returned.
	Append(ctx context.Context, id commitlog.ID, entry []byte) error
	// Tip returns the revision of the newest entry: at least that of each entry that was in the
	// log when Tip was called.
	Tip(ctx context.Context) (revision uint64, err error)
	// Stopped is closed when nothing more is delivered, and Err then says why; nil after Close.
	Stopped() <-chan struct{}
	Err() error
	// Close ends the deliveries, and waits for the current one.
	Close()
}

// OpenSharedLog opens a log, which calls deliver with each entry after a revision: in order, one at
// a time, until an error. The bytes belong to deliver.
type OpenSharedLog func(after uint64, deliver func(revision uint64, entry []byte) error) SharedLog

// open makes the log that the store uses.
func (open OpenSharedLog) open(revision uint64, q *sequencer) entryLog {
	shared := open(revision, q.receive)
	go func() {
		<-shared.Stopped()
		if err := shared.Err(); err != nil && q.store.failure.Load() == nil {
			_ = q.store.stopWrites(fmt.Errorf("follow the log: %w", err)) // for Health, and what waits
		}
	}()
	return &sharedLog{SharedLog: shared}
}

// sharedLog is a SharedLog as the sequencer uses it.
type sharedLog struct {
	SharedLog
	encoded []byte // of the entry that is appended; one at a time is
}

func (l *sharedLog) append(ctx context.Context, e *commitlog.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, resendAfter)
	defer cancel()
	l.encoded = e.Encode(l.encoded[:0])
	return l.Append(ctx, e.ID, l.encoded)
}

func (l *sharedLog) tip(ctx context.Context) (uint64, error) { return l.Tip(ctx) }

func (l *sharedLog) close() { l.Close() }
