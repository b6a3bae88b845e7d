package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runner.example/store/files"
)

// scrubber reads and checks all tables of an open store again and again. So it finds
// damage that no request has met yet, and finds the file where a request has met damage.
// It also checks the tables that a compaction has read, before Badger replaces them:
// otherwise rows that the compaction could not read would be lost without an error.
type scrubber struct {
	store *Store
	dir   string // of the tables
	wake  chan struct{}
	done  chan struct{}

	settled chan struct{} // closed after the first round

	quit     chan struct{}
	quitOnce sync.Once

	// opened is closed when the database is there: its compactions may be earlier.
	opened chan struct{}
	db     *badger.DB
	pins   pins

	compactions sync.Mutex
	checked     time.Time     // when the last check of a compaction's tables began
	stuck       chan struct{} // closed when one must not go on
	stuckOnce   sync.Once
}

const (
	scrubEvery = time.Second
	// scrubBytes is how much is read in each of these intervals, but for the first
	// round and one after damage, which take no breaks.
	scrubBytes = 4 << 20
)

func newScrubber(s *Store, dir string) *scrubber {
	return &scrubber{
		store: s, dir: dir, pins: pins{},
		wake: make(chan struct{}, 1), settled: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{}),
		opened: make(chan struct{}), stuck: make(chan struct{}),
	}
}

// start begins to check the tables of db.
func (c *scrubber) start(db *badger.DB) {
	c.db = db
	c.pins.update(db, c.dir)
	close(c.opened)
	go c.run()
}

// stop ends the checks; the database may then be closed.
func (c *scrubber) stop() {
	c.quitOnce.Do(func() { close(c.quit) })
	<-c.done
}

// look has all tables checked soon.
func (c *scrubber) look() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *scrubber) run() {
	defer close(c.done)
	tick := time.NewTicker(scrubEvery)
	defer tick.Stop()
	var next uint64 // the table to go on with
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
		}
		c.pins.update(c.db, c.dir)
	}
}

// round checks tables from the one with that id on, while there is budget. It returns
// with which to go on, 0 at the end, and what is left of the budget.
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
	ids := tableIDs(c.db)
	slices.Sort(ids)
	return ids
}

// check checks one table and returns its size. Damage is noted. A table that was removed
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

// compacted is called when a compaction has read its tables, before it puts others in
// their place. Where one of them is damaged it does not return: the compaction stays as
// it is, and so do the tables.
func (c *scrubber) compacted() {
	arrived := time.Now()
	<-c.opened
	c.compactions.Lock()
	defer c.compactions.Unlock()
	if c.checked.After(arrived) { // for another part of the same compaction
		return
	}
	began := time.Now()
	for _, id := range compacting(c.db) {
		if err := c.checkSurely(id); err != nil {
			stop := fmt.Errorf("writes stopped, tables cannot be compacted: %w", err)
			c.store.failure.CompareAndSwap(nil, &stop)
			c.stuckOnce.Do(func() { close(c.stuck) })
			select {} // with the lock, which keeps other compactions too
		}
	}
	c.checked = began
}

// checkSurely checks a table, and tries again where that is not possible, as without
// file descriptors.
func (c *scrubber) checkSurely(id uint64) error {
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
