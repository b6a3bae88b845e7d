package audit

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/settings"
	"runner.example/state/store"
)

// Log follows the records of a store and knows the head of their chain. Its
// methods may be called from any goroutine.
type Log struct {
	store  *store.Store
	unhook func()

	sealing sync.Mutex // one Seal or Expire at a time; taken before mu
	sealed  int        // how many records since the floor was raised, or many; sealing guards it

	mu   sync.Mutex
	head Head
	// tail are the records up to head that are not sealed yet.
	tail []link
	// open are the records of the newest version that has any. They are not in
	// head yet: more of them may come.
	open []link
	// early are the records that came while Open was reading; loaded says that it is
	// done.
	early  []link
	loaded bool
}

// Open reads the records of st that are not sealed, and follows the store until
// Close.
func Open(ctx context.Context, st *store.Store) (*Log, error) {
	l := &Log{store: st, sealed: floorEvery}
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

// HeadAt returns the head of the chain over the records that tx can read.
func HeadAt(tx *store.Tx) (Head, error) {
	head, err := lastSealed(tx)
	if err != nil {
		return Head{}, err
	}
	rest, err := tail(tx, func(string, []byte) {})
	for _, one := range rest {
		head = head.then(one)
	}
	return head, err
}

// RunOptions are what Run works with. All but KeepRefused, which is a setting (package settings), are
// required.
type RunOptions struct {
	Logger *slog.Logger
	// Every is how often records are sealed and the head is logged.
	Every time.Duration
	// KeepRefused is how long counts of refused credentials are kept. They are removed
	// within a day after that, or within KeepRefused if it is shorter. Records of changes
	// are kept forever.
	KeepRefused time.Duration `toml:"audit.keep_refused" default:"30d" min:"1h"`
	// Now is the time by which they expire.
	Now clock.Calendar
}

// Run seals the records and writes the head into the log each time that Every has
// passed, and once more when ctx ends; then it returns. The store must be open until
// then. After the first Every, and then once a day, it removes expired counts of refused
// credentials.
func (l *Log) Run(ctx context.Context, opt RunOptions) {
	settings.FillZero(&opt)
	ticker := time.NewTicker(opt.Every)
	defer ticker.Stop()
	expiry := time.NewTimer(opt.Every) // not while the server starts
	defer expiry.Stop()
	for running := true; running; {
		select {
		case <-ticker.C:
			l.tend(ctx, opt.Logger)
		case <-expiry.C:
			l.expire(ctx, opt)
			expiry.Reset(min(opt.KeepRefused, 24*time.Hour))
		case <-ctx.Done():
			running = false
			last, stop := context.WithTimeout(context.WithoutCancel(ctx), lastSeal)
			defer stop()
			l.tend(last, opt.Logger)
		}
	}
}

// lastSeal is how long the last sealing may take: what is left is sealed after the
// next start.
const lastSeal = 5 * time.Second

func (l *Log) tend(ctx context.Context, logger *slog.Logger) {
	if err := l.Seal(ctx); err != nil && ctx.Err() == nil {
		logger.Warn("sealing audit records failed; retrying in a minute", "cause", err)
	}
	logger.Info("audit head", "head", l.Head().String())
}

func (l *Log) expire(ctx context.Context, opt RunOptions) {
	now := opt.Now()
	removed, err := l.Expire(ctx, now.Add(-opt.KeepRefused), now)
	if removed > 0 {
		opt.Logger.Info("audit records expired", "removed", removed)
	}
	if err != nil && ctx.Err() == nil {
		opt.Logger.Warn("expiring audit records failed; retrying in a day", "cause", err)
	}
}

func (l *Log) load(tx *store.Tx) error {
	snapshot, err := tx.Snapshot()
	if err != nil {
		return err
	}
	sealed, err := lastSealed(tx)
	if err != nil {
		return err
	}
	all, err := tail(tx, func(string, []byte) {})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head = sealed
	for _, one := range all {
		l.addLocked(one)
	}
	for _, one := range l.early {
		if one.version > snapshot {
			l.addLocked(one)
		}
	}
	l.early, l.loaded = nil, true
	return nil
}

func (l *Log) apply(version store.Seq, change store.Change) {
	if change.Deleted {
		return // it was sealed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one := newLink(version, change.Key, change.Value)
	if !l.loaded {
		l.early = append(l.early, one)
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
	l.tail = append(l.tail, l.open...)
	l.open = l.open[:0]
}
