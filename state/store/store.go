package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runner.example/internal/clock"
	"runner.example/internal/level"
	"runner.example/internal/system/disk"
	"runner.example/internal/telemetry"
	"runner.example/state/store/commitlog"
	"runner.example/state/store/datadir"
	"runner.example/state/store/files"
	"runner.example/state/store/retry"
	"runner.example/state/store/space"
)

// Seq is the number of a commit: that of the log's entry in which a transaction was
// committed. It begins with 1; transactions committed together share one.
type Seq = commitlog.Seq

// Options configure a store. The zero value is a store in memory.
type Options struct {
	// Dir is the data directory, created if it does not exist. In the file, a relative path
	// starts from the app directory. Flag: --data.
	Dir string `toml:"store.dir" default:"data" nonempty:"true"`
	// MaxFiles limits the contents on this node's disk: those of rows and of releases together. Beyond it, uploads
	// and files that handlers make are refused. 0: only the free space limits them.
	MaxFiles int64 `toml:"files.max_total" unit:"size" max:"4096gb"`
	// Clock is the source of Tx.Now and of nothing else; nil: the machine's.
	Clock clock.Calendar
	// Logger gets the log lines of Badger and of the store; nil discards them.
	Logger *slog.Logger
	// Node permits a data directory that belongs to a node of a cluster, see SetNode.
	Node bool
	// Log opens the log of a cluster, whose node the data directory then belongs to; nil: the store
	// decides alone.
	Log OpenSharedLog
	// Name is that of the node in its cluster. Empty: the store is standalone, as it must be for a Restore.
	Name string
	// FetchBlob gets a blob that this store lacks from another node; the store checks and closes
	// it. The error matches ErrNotFound if no node has the blob. It may be called by several
	// goroutines, and once at a time for one digest. Nil: there are no other nodes.
	FetchBlob func(ctx context.Context, d Digest) (io.ReadCloser, error)
	// ReplicateBlob copies a blob to a majority of the voters of the cluster. When it returns nil, the blob is on their
	// disks. Nil: the store is not in a cluster.
	ReplicateBlob func(ctx context.Context, d Digest) error
	// Metrics counts commits; nil: nothing is counted.
	Metrics *telemetry.Metrics
}

// setup is what Options do not change.
type setup struct {
	windowEntries int
	openLog       openLog     // nil: the local log
	levels        level.Range // that the program knows; zero: level.Known
}

// Store is an open store. It is safe for concurrent use.
type Store struct {
	dir       string
	clock     func() time.Time
	log       *slog.Logger
	metrics   metrics
	lock      *datadir.Lock // nil in memory
	content   content
	db        *badger.DB // of content; nil in memory
	base      *base      // of a fork; nil: there is none
	scrubber  *scrubber  // nil in memory
	mark      *datadir.Mark
	machine   *machine
	sequencer *sequencer
	space     space.Reserver
	unwritten atomic.Int64 // bytes of uploads that were admitted and are not on the disk yet
	snapshots snapshots
	followers followers
	watches   watches
	turns     *retry.Turns
	blobs     datadir.Blobs
	replicate func(context.Context, Digest) error // nil: standalone
	owner     owner
	levels    level.Range // that the program knows
	level     atomic.Int64

	applied applied
	failure atomic.Pointer[error] // why writing stopped
	damage  atomic.Pointer[error] // what cannot be read

	closing struct {
		sync.Mutex
		released bool // files are closed
	}
}

// Open opens the store, creating it if needed, and audits it. An error that matches
// ErrLocked says that another process, or another Store of this one, has the data
// directory.
func Open(o Options) (*Store, error) {
	with := setup{windowEntries: commitlog.MaxWindowEntries}
	if o.Log != nil {
		with.openLog = o.Log.open
	}
	s, err := open(o, with)
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", o.Dir, err)
	}
	return s, nil
}

func open(o Options, with setup) (_ *Store, err error) {
	s := newStore(o, cmp.Or(with.levels, level.Known()))
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	if err := s.openFiles(o.Node || with.openLog != nil); err != nil {
		return nil, err
	}
	records, err := s.begin(with.windowEntries)
	if err != nil {
		return nil, err
	}
	if with.openLog != nil && s.dir != "" { // from now on there may be commits of other nodes
		if err := s.SetNode(true); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(s.openLevel(with.openLog == nil), s.followOwner()); err != nil {
		return nil, err
	}
	startSequencer(s, with.openLog, records)
	return s, nil
}

// begin audits the log and continues it. It returns the records, as checkRecords does.
func (s *Store) begin(windowEntries int) ([]logRecord, error) {
	if s.db == nil {
		s.resume(windowEntries, logRecord{})
		return nil, nil
	}
	before := mismatches.Load()
	records, marked, err := checkRecords(s.db, Seq(s.mark.Seq()))
	if err == nil {
		err = s.checkMark(newestOf(records), marked)
	}
	if err == nil {
		s.resume(windowEntries, newestOf(records))
	}
	if mismatches.Load() != before { // in a table that files.Inspect did not read in whole
		err = cmp.Or(s.scrubber.first(), err)
	}
	if err != nil && !errors.Is(err, commitlog.ErrFormat) {
		err = files.InFile(filepath.Join(s.dir, badgerName), fmt.Errorf("audit: %w", err))
	}
	return records, err
}

// newStore returns a store without content.
func newStore(o Options, levels level.Range) *Store {
	s := &Store{
		dir: o.Dir, clock: o.Clock.Or(), log: o.Logger, metrics: newMetrics(o.Metrics), turns: retry.New(), mark: &datadir.Mark{},
		levels: levels,
	}
	s.owner.name, s.blobs.Limit, s.replicate = o.Name, o.MaxFiles, o.ReplicateBlob
	if o.FetchBlob != nil {
		s.blobs.Fetch = func(ctx context.Context, d Digest) (io.ReadCloser, error) {
			r, err := o.FetchBlob(ctx, d)
			if err != nil {
				return nil, err
			}
			return &admittedReader{store: s, r: r}, nil
		}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// resume continues the log after the entry with that record.
func (s *Store) resume(windowEntries int, newest logRecord) {
	split := make(map[string]int)
	if s.db != nil {
		split = loadSplit(s.db, newest.Seq)
	}
	s.machine = newMachine(s.content, s.mark, windowEntries, newest, split)
	s.applied.set(s.machine.position())
	s.discard()
}

// openFiles creates the data directory, locks it and opens the files in it.
func (s *Store) openFiles(node bool) (err error) {
	if s.dir == "" {
		s.content = newMemory(nil, new(tree), logRecord{})
		return nil
	}
	if err := datadir.Make(s.dir); err != nil {
		return err
	}
	if s.lock, err = datadir.Acquire(s.dir); err != nil {
		return err
	}
	if is, err := datadir.IsNode(s.dir); err != nil || is && !node {
		return cmp.Or(err, ErrNode)
	}
	if err := s.blobs.Open(filepath.Join(s.dir, "blobs")); err != nil {
		return err
	}
	m, err := openMark(s.dir)
	if err == nil {
		s.mark = m
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data := filepath.Join(s.dir, badgerName)
	if err := files.Inspect(data, s.mark.Seq()); err != nil {
		return err
	}
	if err := files.RemoveEmptyLogs(data); err != nil {
		return err
	}
	if err := s.openTables(data); err != nil {
		return err
	}
	if err := datadir.Restrict(data); err != nil {
		return err
	}
	return errors.Join(disk.SyncDir(s.dir), disk.SyncDir(filepath.Dir(s.dir)))
}

// openMark opens the commit mark in dir. If it cannot be used, the store is damaged.
func openMark(dir string) (*datadir.Mark, error) {
	m, err := datadir.OpenMark(dir)
	var unusable *datadir.MarkError
	if errors.As(err, &unusable) {
		return nil, files.InFile(unusable.Path, unusable.Cause)
	}
	return m, err
}

// openTables opens the database in dir and starts the checks of its files.
func (s *Store) openTables(dir string) error {
	s.space.Dir, s.space.Log, s.space.MemTableBytes = dir, s.log, memTableBytes
	if err := s.space.Prepare(); err != nil {
		return err
	}
	scrubber := newScrubber(s, dir)
	db, err := openBadger(dir, s.log, scrubber.compacting, scrubber.compacted)
	if err != nil {
		return err
	}
	s.content, s.db, s.scrubber = tables{db}, db, scrubber
	scrubber.start(db)
	return s.space.Attach()
}

// checkMark compares the newest entry of the log with the mark, and sets the mark to it.
func (s *Store) checkMark(newest, marked logRecord) error {
	if !s.mark.Exists() {
		if newest.marked {
			return files.Damaged(filepath.Join(s.dir, datadir.MarkName), "it is missing: it names the newest commit")
		}
		m, err := datadir.CreateMark(s.dir, newest.position()) // a new store, or one of a version without marks
		if err == nil {
			s.mark = m
		}
		return err
	}
	old := !newest.marked && uint64(newest.Seq) > s.mark.Seq() // a version without marks wrote the last commits
	if !old && !s.mark.Fits(uint64(newest.Seq), marked.position()) {
		return files.Damaged(s.mark.Path(),
			"it names commit %d, but the log ends with commit %d of another history: the files are from different times or stores",
			s.mark.Seq(), newest.Seq)
	}
	return s.mark.Set(newest.position())
}

// SetNode records on disk that the data directory belongs to a node of a cluster, or that it
// does no longer. While it does, Open refuses it with ErrNode, unless Options.Node is set:
// commits that the other nodes do not know would be lost. A store in memory has no directory.
func (s *Store) SetNode(node bool) error {
	if s.dir == "" {
		return errors.New("the store is in memory: it cannot be part of a cluster")
	}
	return datadir.SetNode(s.dir, node)
}

// release closes the files.
func (s *Store) release() (err error) {
	if s.db != nil {
		if err := s.closeBadger(); err != nil {
			return err
		}
	}
	s.base.release()
	s.space.Close()
	if s.mark != nil {
		err = s.mark.Close()
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Release())
	}
	return err
}

// How long Badger may take to write its memtables.
const (
	checkWait = 500 * time.Millisecond // until closeBadger looks whether it can succeed
	flushWait = 30 * time.Second
)

// closeBadger closes the database. If Badger cannot write a table it retries without end:
// then closeBadger returns an error, and the data directory stays locked until the process
// ends.
func (s *Store) closeBadger() error {
	s.scrubber.stop()
	closed := make(chan error, 1)
	go func() { closed <- s.db.Close() }()
	wait := time.NewTicker(checkWait)
	defer wait.Stop()
	for began := clock.Mark(); ; {
		select {
		case err := <-closed:
			return err
		case <-s.scrubber.stuck:
			return errors.New(
				"acknowledged commits are on disk, but tables are damaged and cannot be compacted: keep the data directory, and restore a backup into a new one")
		case <-wait.C:
		}
		if _, err := os.Stat(filepath.Join(s.dir, badgerName, badger.ManifestFilename)); errors.Is(err, fs.ErrNotExist) {
			return errors.New("the data directory was removed while it was open, and its content is lost: restore a backup")
		}
		switch cause := s.space.Waiting(); {
		case space.IsFull(cause):
			return ErrUnflushed
		case cause != nil:
			return fmt.Errorf("acknowledged commits are on disk, but their tables cannot be written; the next start writes them: %w", cause)
		case time.Since(began) > flushWait:
			return fmt.Errorf("acknowledged commits are on disk, but their tables were not written within %s; the next start writes them", flushWait)
		}
	}
}

const (
	// closeWait is how long Close waits for open transactions, and for queued commits.
	closeWait = 10 * time.Second
	// sharedCloseWait is how long it waits for queued commits if the log is shared: the other nodes may
	// be cut off, and then nothing is decided.
	sharedCloseWait = 2 * time.Second
)

// BeginClose says that Close will follow. If the log is shared, commits that are not decided within the
// limit from now fail, as those after them, and after two seconds at most. So a node that is cut off
// from its cluster can stop.
func (s *Store) BeginClose(limit time.Duration) {
	if s.sequencer.fresh != nil {
		time.AfterFunc(min(limit, sharedCloseWait), s.sequencer.abort)
	}
}

// Close refuses new transactions, commits the queued ones within ten seconds, waits as long until
// open ones end, and closes the files. If some do not end it returns an error and leaves
// the files open and locked: Close may be called again, and ending the process then loses
// no acknowledged commit. It also returns an error if the data directory was removed or
// cannot be written to, which matches ErrUnflushed if the disk is full. After it returned nil, further calls do nothing.
func (s *Store) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closing.released {
		return nil
	}
	s.sequencer.close()
	s.watches.close()
	err := s.snapshots.close(closeWait)
	if err == nil {
		s.closing.released = true
		err = s.release()
	}
	if err != nil {
		return fmt.Errorf("close store %q: %w", s.dir, err)
	}
	return nil
}

// View runs fn on one snapshot of the store, which has all commits acknowledged before. It
// returns the error of fn unchanged. If a read of fn failed, the error matches
// ErrUnavailable, even if fn ignored it. The snapshot is held until fn returns, and keeps
// old versions from being discarded.
func (s *Store) View(ctx context.Context, fn func(*Tx) error) error {
	if s.isClosed() {
		return errClosed
	}
	tx := &Tx{store: s, ctx: ctx}
	defer tx.end()
	return tx.result(fn(tx))
}

// maxTries is how often Update runs fn before it gives up.
const maxTries = 5

// Update runs fn and commits its writes. Transactions are serializable in the order of
// their sequence numbers. If other transactions wrote meanwhile what fn has read, fn runs
// again on a new snapshot, at most five times in all: it should have no side effects other
// than on tx.
//
// After a nil error the change is on disk and visible to every transaction begun
// afterwards. The number is that of the commit, 0 if fn wrote nothing. A transaction without
// writes never conflicts. An error of fn is returned unchanged, and nothing is written;
// the same applies if fn panics, or if one of its reads failed, even if fn ignored that.
//
// Other errors match ErrConflict, ErrTooLarge or ErrUnavailable, and nothing is written, or
// ErrUnknown: the context ended, or writing to disk failed, during the commit. If the
// context ended, the error matches its cause too.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) (Seq, error) {
	if s.isClosed() {
		return 0, errClosed
	}
	var held *retry.Turn // made at the first conflict
	defer func() { held.Release() }()
	for attempt := 1; ; attempt++ {
		p, err := s.propose(ctx, fn, attempt, held)
		if p == nil || err != nil {
			return 0, err
		}
		switch p.outcome() {
		case commitlog.Committed:
			return p.seq, nil
		case commitlog.TooLarge:
			return 0, ErrTooLarge
		}
		if attempt == maxTries {
			return 0, ErrConflict
		}
		if held == nil {
			held = new(retry.Turn)
		}
		s.turns.Take(ctx, held, p.Verdict.Clash)
	}
}

// propose runs fn once and has the log decide its writes; the proposal is nil if it wrote
// nothing.
func (s *Store) propose(ctx context.Context, fn func(*Tx) error, attempt int, turn *retry.Turn) (*proposal, error) {
	tx := &Tx{store: s, ctx: ctx, attempt: int32(attempt), records: true, turn: turn}
	defer tx.end()
	err := tx.result(fn(tx))
	switch early := tx.early; {
	case early == nil && err != nil:
		return nil, err
	case early == nil:
		return tx.propose()
	case early.err != nil:
		return nil, early.err
	case early.proposal != nil && early.proposal.outcome() != commitlog.Committed:
		return early.proposal, nil
	default:
		return early.proposal, err
	}
}

// propose ends the transaction and has the log decide its writes; the proposal is nil if it wrote nothing.
func (t *Tx) propose() (_ *proposal, failed error) {
	s, ctx := t.store, t.ctx
	t.stop()
	if t.writes.Len() == 0 {
		return nil, nil
	}
	if ctx.Err() != nil {
		return nil, unavailable(context.Cause(ctx))
	}
	if cause := s.failure.Load(); cause != nil {
		return nil, unavailable(*cause)
	}
	if err := s.replicateBlobs(ctx, t.blobs); err != nil {
		return nil, err
	}
	p := t.proposal()
	// The blobs have pins until the proposal is decided, also if the context ends before.
	p.unpin = s.pinBlobs(t.blobs)
	defer func() {
		if p != nil && p.unpin != nil && !errors.Is(failed, ErrUnknown) {
			p.unpin()
		}
	}()
	defer func(began time.Time) { s.metrics.proposed(p, failed, time.Since(began)) }(clock.Mark())
	err := s.sequencer.propose(ctx, p)
	for n := 0; err == nil && p.outcome() == commitlog.TooOld && n < maxRenewals; n++ {
		if p, err = t.renew(p); err == nil && p.outcome() == commitlog.Committed {
			p.unpin = s.pinBlobs(t.blobs)
			err = s.sequencer.propose(ctx, p)
		}
	}
	return p, err
}

// publish notifies followers of the entry committed as seq, makes it readable, and has its watches called.
func (s *Store) publish(seq Seq, e *commitlog.Entry) {
	s.followers.notify(seq, e, func() { s.applied.set(s.machine.position()) })
	s.watches.wrote(seq, e)
	s.discard()
}

// discard drops the versions that neither the window nor an open transaction needs.
func (s *Store) discard() { s.content.discard(s.machine.window.Floor(), &s.snapshots) }

func (s *Store) appliedSeq() Seq { return s.applied.get() }

func (s *Store) isClosed() bool {
	select {
	case <-s.sequencer.closing:
		return true
	default:
		return false
	}
}

// WaitFor returns when commit seq and all before it can be read here. The
// error matches ErrUnavailable if ctx ends or the store is closed first.
func (s *Store) WaitFor(ctx context.Context, seq Seq) error {
	return s.waitUntil(ctx, func() bool { return s.appliedSeq() >= seq })
}

// waitUntil returns when reached, which depends on what is applied, is true.
func (s *Store) waitUntil(ctx context.Context, reached func() bool) error {
	for {
		grown := s.applied.wait(reached)
		if grown == nil {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return unavailable(context.Cause(ctx))
		case <-s.sequencer.stopped:
			if reached() {
				return nil
			}
			return errClosed
		}
	}
}

// applied is the newest entry that can be read: its number, and its revision in the log.
type applied struct {
	seq, revision atomic.Uint64

	mu    sync.Mutex
	chain commitlog.Digest // up to that entry
	grown chan struct{}    // closed when they grow; nil without a waiter
}

func (a *applied) get() Seq { return Seq(a.seq.Load()) }

// set makes the versions up to seq readable and wakes the waiters.
func (a *applied) set(seq Seq, revision uint64, chain commitlog.Digest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.chain = chain
	a.seq.Store(uint64(seq))
	a.revision.Store(revision)
	if a.grown != nil {
		close(a.grown)
		a.grown = nil
	}
}

// wait returns nil if reached is true, otherwise a channel that is closed when more is applied.
func (a *applied) wait(reached func() bool) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if reached() {
		return nil
	}
	if a.grown == nil {
		a.grown = make(chan struct{})
	}
	return a.grown
}

// Barrier returns when a View begun afterwards sees every commit that any node acknowledged
// before the call. A single node acknowledges only readable commits, so it does not wait. The
// error matches ErrUnavailable if ctx ends first, the store is closed, or the other nodes
// cannot be reached.
func (s *Store) Barrier(ctx context.Context) error {
	if ctx.Err() != nil {
		return unavailable(context.Cause(ctx))
	}
	if s.isClosed() {
		return errClosed
	}
	revision, err := s.sequencer.log.tip(ctx)
	if err != nil {
		return unavailable(err)
	}
	return s.waitUntil(ctx, func() bool { return s.applied.revision.Load() >= revision })
}

// Health is the state of a store.
type Health struct {
	Applied Seq // the newest commit that can be read
	// Staleness is how far reads may lag behind: all that any node had acknowledged so long ago
	// can be read. It is 0 on a single node, and the longest Duration until it is known.
	Staleness time.Duration
	// Silence is how long the log that nodes share has not answered: it cannot while no majority of its servers
	// can be reached. It is 0 on a single node, and the longest Duration if the log has never answered.
	Silence     time.Duration
	Writable    bool   // whether commits are possible now
	NotWritable error  // why they are not; else nil
	Reason      error  // why this store cannot write, or what it cannot read; nil during a silence of the log
	Waiting     int    // queued commits
	Snapshots   uint64 // snapshots taken since Open
}

// Silent reports whether the log that nodes share does not answer: no majority of its servers can be reached.
func (h Health) Silent() bool { return silent(h.Silence) != nil }

// Health returns the state of the store; it never waits.
func (s *Store) Health() Health {
	h := Health{
		Applied:   s.appliedSeq(),
		Waiting:   len(s.sequencer.queue) + len(s.sequencer.renewed),
		Snapshots: s.snapshots.count(),
	}
	if f := s.sequencer.fresh; f != nil {
		h.Staleness, h.Silence = f.lag.Of(s.applied.revision.Load()), f.silence()
	}
	if err := s.space.Reason(); err != nil {
		h.Reason = unavailable(err)
	}
	if cause := s.failure.Load(); cause != nil {
		h.Reason = unavailable(*cause)
	}
	if s.isClosed() {
		h.Reason = errClosed
	}
	if h.NotWritable = h.Reason; h.Reason == nil {
		h.NotWritable = silent(h.Silence)
	}
	h.Writable = h.NotWritable == nil
	if cause := s.damage.Load(); cause != nil && h.Reason == nil {
		h.Reason = unavailable(*cause)
	}
	return h
}
