package audit

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"runner.example/store"
)

// Log follows the records of a store and knows the head of their chain. Its
// methods may be called from any goroutine.
type Log struct {
	store  *store.Store
	unhook func()

	mu   sync.Mutex
	head Head
	// open are the records of the newest version that has any. They are not in
	// head yet: more of them may come.
	open []link
	// early are the records that came while Open was reading; nil afterwards.
	early map[string]link
}

// Open reads the records of st and follows the store until Close.
func Open(ctx context.Context, st *store.Store) (*Log, error) {
	l := &Log{store: st, early: map[string]link{}}
	l.unhook = st.OnApply(prefix, l.apply)
	if err := st.View(ctx, l.load); err != nil {
		l.unhook()
		return nil, err
	}
	return l, nil
}

// Close stops following the store.
func (l *Log) Close() { l.unhook() }

// Head returns the head of the chain over all records that can be read.
func (l *Log) Head() Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) > 0 && l.store.Health().Applied >= l.open[0].version {
		l.foldLocked()
	}
	return l.head
}

// Run writes the head into the log each time that every has passed, and once
// more when ctx ends; then it returns.
func (l *Log) Run(ctx context.Context, logger *slog.Logger, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			logger.Info("audit head", "head", l.Head().String())
		case <-ctx.Done():
			logger.Info("audit head", "head", l.Head().String())
			return
		}
	}
}

func (l *Log) load(tx *store.Tx) error {
	all, err := links(tx, func(seen link) {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.early, seen.key)
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.early {
		all = append(all, e)
	}
	l.early = nil
	slices.SortFunc(all, order)
	for _, one := range all {
		l.addLocked(one)
	}
	return nil
}

func (l *Log) apply(version store.Seq, change store.Change) {
	if change.Deleted {
		return // records are never deleted; what does it shows when the chain is computed again
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one := newLink(version, change.Key, change.Value)
	if l.early != nil {
		l.early[one.key] = one
		return
	}
	l.addLocked(one)
}

func (l *Log) addLocked(one link) {
	if len(l.open) > 0 && l.open[0].version != one.version {
		l.foldLocked()
	}
	l.open = append(l.open, one)
}

func (l *Log) foldLocked() {
	slices.SortFunc(l.open, order)
	for _, one := range l.open {
		l.head = l.head.then(one)
	}
	l.open = l.open[:0]
}
