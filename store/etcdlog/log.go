package etcdlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"runner.example/store/commitlog"
)

const (
	prefixEntry = "log/"
	keyTip      = "tip"
	// watchPause is the pause before a watch that ended is started again.
	watchPause = 100 * time.Millisecond
	// deleteBatch is how many entries one transaction deletes: the servers' limit of operations.
	deleteBatch = 128
)

// ErrTruncated means that the log does not have all entries after the revision that a node has
// applied. The node needs a backup of another node.
var ErrTruncated = errors.New("the log does not have all entries that this node lacks")

// ErrFull means that the servers have no space for an entry until the log is truncated.
var ErrFull = errors.New("the log is full")

// Options configure a Log.
type Options struct {
	// Client is connected to the servers. The caller closes it after the log.
	Client *Client
	// After is the revision of the newest entry that is not delivered.
	After uint64
	// Deliver gets each entry with its revision: in order, one at a time. It owns the bytes.
	// After an error nothing more is delivered.
	Deliver func(revision uint64, entry []byte) error
	// Logger is told when the deliveries are interrupted; nil: nobody is.
	Logger *slog.Logger
}

// Log is the log as one node has it. Any goroutine may call its methods.
type Log struct {
	opt     Options
	stop    context.CancelFunc
	stopped chan struct{}

	mu  sync.Mutex
	err error
}

// Open begins to deliver entries. Close the log.
func Open(opt Options) *Log {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Log{opt: opt, stop: stop, stopped: make(chan struct{})}
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

// Append adds an entry, unless the log has one with this id. After an error that is not ErrFull it
// may have been added. It does not keep the bytes after it returned.
func (l *Log) Append(ctx context.Context, id commitlog.ID, entry []byte) error {
	key := fmt.Sprintf("%s%016x/%016x", prefixEntry, id.Proposer, id.Batch)
	_, err := l.opt.Client.etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, string(entry)), clientv3.OpPut(keyTip, "")).
		Commit()
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return ErrFull
	}
	if err != nil {
		return fmt.Errorf("append to the log: %w", err)
	}
	return nil
}

// Tip returns the revision of the newest entry, 0 if there is none: at least that of each entry that
// was in the log when Tip was called. A server that is cut off from the others does not answer.
func (l *Log) Tip(ctx context.Context) (uint64, error) { return l.opt.Client.tip(ctx) }

// Truncate deletes the entries up to a revision, and gives their space to new ones. It may be
// called again, and by any node. A node that has applied less can then no longer follow the log.
func (l *Log) Truncate(ctx context.Context, revision uint64) error {
	c := l.opt.Client.etcd
	for {
		old, err := c.Get(ctx, prefixEntry, clientv3.WithPrefix(), clientv3.WithKeysOnly(),
			clientv3.WithMaxModRev(int64(revision)), clientv3.WithLimit(deleteBatch))
		if err != nil {
			return fmt.Errorf("list old entries of the log: %w", err)
		}
		if len(old.Kvs) == 0 {
			break
		}
		var deletes []clientv3.Op
		for _, kv := range old.Kvs {
			deletes = append(deletes, clientv3.OpDelete(string(kv.Key)))
		}
		if _, err := c.Txn(ctx).Then(deletes...).Commit(); err != nil {
			return fmt.Errorf("delete old entries of the log: %w", err)
		}
	}
	// The history keeps their bytes until the deletes are compacted too, by the next call: compacting
	// them now would end the watches of nodes that have applied less than that.
	_, err := c.Compact(ctx, int64(revision), clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact the log: %w", err)
	}
	return l.endAlarms(ctx)
}

// endAlarms lets servers that were full take entries again, if there are any.
func (l *Log) endAlarms(ctx context.Context) error {
	c := l.opt.Client.etcd
	alarms, err := c.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("ask for full servers of the log: %w", err)
	}
	if len(alarms.Alarms) == 0 {
		return nil
	}
	for _, server := range c.Endpoints() { // their files keep their size otherwise
		if _, err := c.Defragment(ctx, server); err != nil {
			return fmt.Errorf("free space on %s: %w", server, err)
		}
	}
	if _, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return fmt.Errorf("let full servers of the log take entries: %w", err)
	}
	return nil
}

// tail delivers the entries after the revision in the options. It returns nil when ctx ends.
func (l *Log) tail(ctx context.Context) error {
	next := int64(l.opt.After) + 1
	for ctx.Err() == nil {
		err := l.watch(ctx, &next)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, ErrTruncated) || errors.Is(err, errDeliver) {
			return err
		}
		l.opt.Logger.Warn("log interrupted; watching it again", "cause", err)
		select {
		case <-ctx.Done():
		case <-time.After(watchPause):
		}
	}
	return nil
}

// errDeliver is around the errors of Deliver.
var errDeliver = errors.New("an entry was not applied")

// watch delivers the entries from *next on until the watch ends.
func (l *Log) watch(ctx context.Context, next *int64) error {
	// A server that is cut off from the others ends the watch, and the client asks another one.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for part := range l.opt.Client.etcd.Watch(ctx, prefixEntry, clientv3.WithPrefix(), clientv3.WithRev(*next), clientv3.WithFilterDelete(), clientv3.WithFragment()) {
		if part.CompactRevision != 0 {
			return fmt.Errorf("%w: it begins after revision %d, and the next one of this node is %d", ErrTruncated, part.CompactRevision, *next)
		}
		if err := part.Err(); err != nil {
			return err
		}
		for _, event := range part.Events {
			if event.Kv.ModRevision < *next {
				continue
			}
			if err := l.opt.Deliver(uint64(event.Kv.ModRevision), event.Kv.Value); err != nil {
				return fmt.Errorf("%w: %w", errDeliver, err)
			}
			*next = event.Kv.ModRevision + 1
		}
	}
	return errors.New("the watch ended")
}
