package store

import (
	"context"
	"time"

	"runner.example/state/store/commitlog"
)

// entryLog decides the order of entries: those of this store, or of all nodes of a cluster. It
// calls sequencer.deliver or receive with each entry, one at a time and in order, beginning after
// the newest that the store has applied. An entry may be in the log twice.
type entryLog interface {
	// append adds e to the log, unless the log has an entry with its ID. It may return
	// before e is delivered, and waits at most resendAfter. The store calls it again until e
	// is delivered, unless the first call returned an error as of SharedLog.Append.
	append(ctx context.Context, e *commitlog.Entry) error
	// tip returns the revision of the newest entry: at least that of each entry which any
	// store had applied when tip was called.
	tip(ctx context.Context) (revision uint64, err error)
	// close ends the deliveries, and waits for the current one.
	close()
}

// openLog opens a log that delivers the entries after revision to q.
type openLog func(revision uint64, q *sequencer) entryLog

// localLog is the log of a store alone. An entry gets its place by being applied, and becomes
// durable as a Badger transaction. One that commits nothing gets none: so a conflict costs no
// sync of the disk.
type localLog struct{ q *sequencer }

func (l localLog) append(_ context.Context, e *commitlog.Entry) error { return l.q.deliver(0, e) }

// tip returns 0, which is always applied: an entry is applied when append returns.
func (l localLog) tip(context.Context) (uint64, error) { return 0, nil }

func (l localLog) close() {}

const (
	// resendAfter is after how long an entry that was not delivered is appended again.
	resendAfter = time.Second
	// tipEvery is the pause between two questions for the tip.
	tipEvery = 500 * time.Millisecond
	// tipWait limits the wait for an answer.
	tipWait = 2 * time.Second
)
