package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runner.example/internal/clock"
	"runner.example/state/store/files"
)

// scrubber continuously reads and checks all tables of an open store. So it finds damage
// that no request has met yet, and the file in which a request has met damage. It also
// checks the tables that a compaction has read, before Badger replaces them: otherwise rows
// that the compaction could not read would be lost without an error. It reads the blobs too,
// more slowly: see blobScrubber.
type scrubber struct {
	store *Store
	dir   string // of the tables
	wake  chan struct{}
	done  chan struct{}

	settled chan struct{} // closed after the first round

	quit     <-chan struct{} // closed by stop
	quitting context.CancelFunc
	ctx      context.Context // until then

	// opened is closed when db is set: compactions may begin before.
	opened chan struct{}
	db     *badger.DB
	pins   files.Pins

	compactions sync.Mutex
	checked     time.Time     // when the last check of a compaction's tables began
	stuck       chan struct{} // closed when one must not continue
	stuckOnce   sync.Once
}

const (
	scrubEvery = time.Second
	// scrubBytes is how much is read per interval. The first round, and one after damage,
	// are not limited.
	scrubBytes = 4 << 20
)

func newScrubber(s *Store, dir string) *scrubber {
	ctx, cancel := context.WithCancel(context.Background())
	return &scrubber{
		store: s, dir: dir, pins: files.Pins{}, ctx: ctx, quit: ctx.Done(), quitting: cancel,
		wake: make(chan struct{}, 1), settled: make(chan struct{}), done: make(chan struct{}),
		opened: make(chan struct{}), stuck: make(chan struct{}),
	}
}

// start starts the checks of the tables of db.
func (c *scrubber) start(db *badger.DB) {
	c.db = db
	c.pins.Update(db, c.dir)
	close(c.opened)
	go c.run()
}

// stop ends the checks; the database may then be closed.
func (c *scrubber) stop() {
	c.quitting()
	<-c.done
}

// checkSoon starts a round over all tables.
func (c *scrubber) checkSoon() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *scrubber) run() {
	defer close(c.done)
	tick := time.NewTicker(scrubEvery)
	defer tick.Stop()
	blobs := blobScrubber{store: c.store, ctx: c.ctx}
	defer blobs.close()
	var next uint64 // the table to continue with
	budget := int64(math.MaxInt64)
	settled := sync.OnceFunc(func() { close(c.settled) })
	for {
		if next, budget = c.round(next, budget); next == 0 {
			settled()
		}
		select {
		case <-c.quit:
			return
		case <-c.wake:
			next, budget = 0, math.MaxInt64
		case <-tick.C:
			budget = min(budget, 0) + scrubBytes
			blobs.scrub(scrubBytes)
		}
		c.pins.Update(c.db, c.dir)
	}
}

// round checks the tables with ids of at least from, while there is budget. It returns the
// table to continue with, 0 at the end, and the rest of the budget.
func (c *scrubber) round(from uint64, budget int64) (uint64, int64) {
	ids := c.ids()
	for _, id := range ids {
		if id < from {
			continue
		}
		select {
		case <-c.quit:
			return id, budget
		default:
		}
		if budget <= 0 {
			return id, budget
		}
		size, _ := c.check(id)
		budget -= size
	}
	return 0, budget
}

// first checks all tables and returns the first damage.
func (c *scrubber) first() error {
	for _, id := range c.ids() {
		if _, err := c.check(id); err != nil {
			return err
		}
	}
	return nil
}

// ids returns the ids of the tables, in order.
func (c *scrubber) ids() []uint64 {
	ids := files.TableIDs(c.db)
	slices.Sort(ids)
	return ids
}

// check checks one table and returns its size. Damage is recorded. A table that was removed
// meanwhile is not damaged.
func (c *scrubber) check(id uint64) (int64, error) {
	_, size, err := files.CheckTable(files.TablePath(c.dir, id), math.MaxInt64)
	if err != nil && !slices.Contains(c.ids(), id) {
		return size, nil
	}
	if errors.Is(err, ErrDamaged) {
		c.store.foundDamaged(err)
	}
	return size, err
}

// compacting is called when a compaction has read the content of a table. It unmaps the
// pages, which would otherwise stay mapped until the compaction ends. A compaction may read
// all tables.
func (c *scrubber) compacting() {
	select {
	case <-c.opened:
		files.ReleaseBlocks(c.db)
	default:
	}
}

// compacted is called when a compaction has read its tables, before it replaces them. If one
// of them is damaged it does not return: the compaction never ends, and the tables are kept.
func (c *scrubber) compacted() {
	arrived := clock.Mark()
	<-c.opened
	c.compactions.Lock()
	defer c.compactions.Unlock()
	if c.checked.After(arrived) { // for another part of the same compaction
		return
	}
	began := clock.Mark()
	for _, id := range files.Compacting(c.db) {
		if err := c.checkUntilRead(id); err != nil {
			stop := fmt.Errorf("writes stopped, tables cannot be compacted: %w", err)
			c.store.failure.CompareAndSwap(nil, &stop)
			c.stuckOnce.Do(func() { close(c.stuck) })
			select {} // holding the lock, which stops other compactions too
		}
	}
	c.checked = began
}

// checkUntilRead checks a table, and retries if it cannot be read, for example for lack of
// file descriptors.
func (c *scrubber) checkUntilRead(id uint64) error {
	for {
		_, err := c.check(id)
		if err == nil || errors.Is(err, ErrDamaged) {
			return err
		}
		select {
		case <-c.quit:
			return err
		case <-time.After(scrubEvery):
		}
	}
}
