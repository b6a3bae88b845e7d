package etcdlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/wait"
	"runner.example/state/store/commitlog"
)

const (
	prefixEntry = "log/"
	keyTip      = "tip"
	// watchPause is the pause before a watch that ended is started again.
	watchPause = 100 * time.Millisecond
	// stallLimit is how long a watch may deliver nothing although there is an entry. After
	// stallTries watches that delivered nothing it is doubled for each, up to maxDoubled times: the
	// servers may be slow.
	stallLimit = time.Second
	stallTries = 3
	maxDoubled = 4
	// deleteBatch is how many entries one transaction deletes: the servers' limit of operations.
	deleteBatch = 128
)

// ErrTruncated means that the log does not have all entries after the revision that a node has
// applied. The node needs a backup of another node.
var ErrTruncated = errors.New("the log does not have all entries that this node lacks")

// What Append returns if the log does not have the entry, and will not have it.
var (
	// ErrFull means that the servers have no space for an entry until the log is truncated.
	ErrFull error = fault.New(fault.Unavailable, "the log is full")
	// ErrTooLarge means that an entry has more than MaxEntryBytes, or more than the servers accept.
	ErrTooLarge error = fault.New(fault.TooLarge, "the entry is too large for the log")
)

// Options configure a Log.
type Options struct {
	// Client is connected to the servers. The caller closes it after the log.
	Client *Client
	// After is the revision that the store has applied: only later entries are delivered; 0: all.
	After uint64
	// Deliver is called by one goroutine, in order, never after Close has returned. It owns the bytes.
	// After an error nothing more is delivered.
	Deliver func(revision uint64, entry []byte) error
	// Logger is told when the deliveries are interrupted; nil: nothing is logged.
	Logger *slog.Logger
}

// Log is the log as one node has it. Any goroutine may call its methods.
type Log struct {
	opt     Options
	stop    context.CancelFunc
	stopped chan struct{}

	mu  sync.Mutex
	err error
	watched
}

// watched is what is known of the current watch.
type watched struct {
	delivered uint64 // the revision of the newest entry that was
	busy      bool   // Deliver is called
	end       func() // ends the watch
	// The tip that the watch had not delivered when it was asked for first, 0: none.
	lacks   uint64
	since   time.Time
	stalled int // watches that were ended since the last delivery
}

// Open begins to deliver entries. Close the log.
func Open(opt Options) *Log {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Log{opt: opt, stop: stop, stopped: make(chan struct{}), watched: watched{delivered: opt.After}}
	go func() {
		defer close(l.stopped)
		err := l.tail(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.err = err
	}()
	return l
}

// Close ends the deliveries, and waits for the current one. It may be called twice.
func (l *Log) Close() {
	l.stop()
	<-l.stopped
}

// Stopped is closed when nothing more is delivered.
func (l *Log) Stopped() <-chan struct{} { return l.stopped }

// Err returns why nothing more is delivered: ErrTruncated, or the error of Deliver. It is nil
// before, and after Close.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Append adds an entry, unless the log has one with this id. After an error that is not ErrFull or
// ErrTooLarge it may have been added. It does not keep the bytes after it returned.
func (l *Log) Append(ctx context.Context, id commitlog.ID, entry []byte) error {
	if len(entry) > MaxEntryBytes {
		return ErrTooLarge
	}
	c := l.opt.Client.etcd
	key := entryKey(id)
	_, err := c.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, string(entry)), clientv3.OpPut(keyTip, "")).
		Commit()
	if errors.Is(err, rpctypes.ErrNoSpace) {
		// A server that notices it while it adds the entry has added it.
		var got *clientv3.GetResponse
		if got, err = c.Get(ctx, key, clientv3.WithCountOnly()); err == nil && got.Count == 0 {
			return ErrFull
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrRequestTooLarge),
		strings.Contains(err.Error(), "message larger than max"): // of the connection
		return ErrTooLarge
	}
	return fmt.Errorf("append to the log: %w", err)
}

func entryKey(id commitlog.ID) string {
	return fmt.Sprintf("%s%016x/%016x", prefixEntry, id.Proposer, id.Batch)
}

// Tip returns the revision of the newest entry, 0 if there is none: at least that of each entry that
// was in the log when Tip was called. A server that is cut off from the others does not answer.
// If for a second neither that entry nor another one is delivered, the deliveries begin again
// with another server: the connection to this one may be broken without a sign.
func (l *Log) Tip(ctx context.Context) (uint64, error) {
	tip, err := l.opt.Client.tip(ctx)
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.busy || tip <= l.delivered:
		l.lacks = 0
	case l.lacks == 0:
		l.lacks, l.since = tip, clock.Mark()
	case time.Since(l.since) > stallLimit<<max(0, min(l.stalled-stallTries, maxDoubled)) && l.end != nil:
		l.lacks = 0
		l.stalled++
		l.end()
	}
	return tip, nil
}

// Truncate deletes the entries up to a revision, and gives their space to new ones. It may be
// called again, and by any node. A node that has applied less can then no longer follow the log.
// If servers are full, that may be so for each node that lacks an entry.
func (l *Log) Truncate(ctx context.Context, revision uint64) error {
	c := l.opt.Client.etcd
	newest, err := l.deleteUpTo(ctx, int64(revision))
	if err != nil {
		return err
	}
	alarms, err := c.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("ask for full etcd servers: %w", err)
	}
	full := len(alarms.Alarms) > 0
	// The history keeps their bytes until the deletes are compacted too, by the next call: compacting
	// them now would end the watches of nodes that have applied less than that. But in servers that
	// are full no next entry comes, so that call would not free the bytes.
	upTo := int64(revision)
	if full {
		upTo = newest
	}
	_, err = c.Compact(ctx, upTo, clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact the log: %w", err)
	}
	if full {
		return l.endAlarms(ctx)
	}
	return nil
}

// deleteUpTo deletes the entries up to a revision, and returns one that is not before the deletes.
func (l *Log) deleteUpTo(ctx context.Context, revision int64) (newest int64, err error) {
	c := l.opt.Client.etcd
	// A proposer's entries are in the order of their keys. So a page of them tells where those of the
	// next proposer begin, and the servers read no others.
	from, end := prefixEntry, clientv3.GetPrefixRangeEnd(prefixEntry)
	for {
		page, err := c.Get(ctx, from, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(deleteBatch))
		if err != nil {
			return 0, fmt.Errorf("list old entries of the log: %w", err)
		}
		newest = page.Header.Revision
		var deletes []clientv3.Op
		next := ""
		for _, kv := range page.Kvs {
			key := string(kv.Key)
			switch {
			case key < next: // of a proposer whose rest is newer
			case kv.ModRevision <= revision:
				deletes = append(deletes, clientv3.OpDelete(key))
				next = key + "\x00"
			default:
				next = clientv3.GetPrefixRangeEnd(key[:strings.LastIndexByte(key, '/')+1])
			}
		}
		if len(deletes) > 0 {
			done, err := c.Txn(ctx).Then(deletes...).Commit()
			if err != nil {
				return 0, fmt.Errorf("delete old entries of the log: %w", err)
			}
			newest = done.Header.Revision
		}
		if !page.More {
			return newest, nil
		}
		from = next
	}
}

// endAlarms lets servers that were full take entries again.
func (l *Log) endAlarms(ctx context.Context) error {
	c := l.opt.Client.etcd
	var failed []error
	servers := l.opt.Client.Addresses()
	for _, server := range servers { // their files keep their size otherwise
		if _, err := c.Defragment(ctx, server); err != nil {
			failed = append(failed, fmt.Errorf("free space on %s: %w", server, err))
		}
	}
	if len(failed) == len(servers) {
		return errors.Join(failed...)
	}
	// A server that could not be reached gives the alarm again.
	if _, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		failed = append(failed, fmt.Errorf("let full etcd servers take entries: %w", err))
	}
	return errors.Join(failed...)
}

// tail delivers the entries after the revision in the options. It returns nil when ctx ends.
func (l *Log) tail(ctx context.Context) error {
	next := int64(l.opt.After) + 1
	cause, said := "", time.Time{}
	for ctx.Err() == nil {
		err := l.watch(ctx, &next)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, ErrTruncated) || errors.Is(err, errDeliver) {
			return err
		}
		if now := clock.Mark(); err.Error() != cause || now.Sub(said) >= time.Minute { // it fails ten times a second
			cause, said = err.Error(), now
			l.opt.Logger.Warn("log watch interrupted; retrying", "cause", err)
		}
		_ = wait.For(ctx, watchPause)
	}
	return nil
}

// errDeliver wraps the errors of Deliver.
var errDeliver = errors.New("an entry was not applied")

// watch delivers the entries from *next on until the watch ends.
func (l *Log) watch(ctx context.Context, next *int64) error {
	// A server that is cut off from the others ends the watch, and the client asks another one.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	address, left := l.opt.Client.current.address()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-left:
			cancel()
		case <-stop:
		}
	}()
	l.mu.Lock()
	l.end, l.lacks = func() { cancel(); l.opt.Client.current.leave(address) }, 0
	l.mu.Unlock()
	for part := range l.opt.Client.etcd.Watch(ctx, prefixEntry, clientv3.WithPrefix(), clientv3.WithRev(*next),
		clientv3.WithFilterDelete(), clientv3.WithFragment()) {
		if part.CompactRevision != 0 {
			if err := l.opt.Client.lacksNone(ctx, uint64(*next), part.CompactRevision); err != nil {
				return err
			}
			*next = part.CompactRevision // no entry was in what was compacted
			return errors.New("the history was compacted")
		}
		if err := part.Err(); err != nil {
			return err
		}
		for _, event := range part.Events {
			if event.Kv.ModRevision < *next {
				continue
			}
			if err := l.deliver(uint64(event.Kv.ModRevision), event.Kv.Value); err != nil {
				return fmt.Errorf("%w: %w", errDeliver, err)
			}
			*next = event.Kv.ModRevision + 1
		}
	}
	return errors.New("the watch at " + address + " ended")
}

func (l *Log) deliver(revision uint64, entry []byte) error {
	l.mu.Lock()
	l.busy, l.lacks, l.stalled = true, 0, 0
	l.mu.Unlock()
	err := l.opt.Deliver(revision, entry)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy, l.delivered = false, revision
	return err
}
