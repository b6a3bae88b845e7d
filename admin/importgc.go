package admin

import (
	"runtime/debug"
	"sync"
	"time"
)

// importGC makes the garbage collector run more often while rows are imported. The store's
// memtables are most of the heap then, and have no pointers to follow, but the heap would grow to
// twice their size between collections. The zero value is ready.
type importGC struct {
	mu sync.Mutex
	// imported is when the last batch began.
	imported time.Time
	lowered  bool
}

const (
	// importGCPercent is what the heap may grow between collections.
	importGCPercent = 20
	// importGCHold is how long the collector is left so after a batch: changing it stops all
	// goroutines, so it is not done for each batch.
	importGCHold = 5 * time.Second
)

// lower is called when a batch begins.
func (g *importGC) lower() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.imported = time.Now()
	if g.lowered {
		return
	}
	g.lowered = true
	before := debug.SetGCPercent(importGCPercent)
	time.AfterFunc(importGCHold, func() { g.restore(before) })
}

// restore restores the collector if importGCHold has passed since the last batch.
func (g *importGC) restore(percent int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if rest := importGCHold - time.Since(g.imported); rest > 0 {
		time.AfterFunc(rest, func() { g.restore(percent) })
		return
	}
	debug.SetGCPercent(percent)
	g.lowered = false
}
