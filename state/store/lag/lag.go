package lag

import (
	"math"
	"sync"
	"time"
)

// Lag remembers when the log was asked for its newest entry. Once that entry is applied, the store has
// all that any node had acknowledged then. So no clock of another node counts. The zero value is ready;
// any goroutine may use it.
type Lag struct {
	mu   sync.Mutex
	asOf time.Time // what was acknowledged then is applied; zero if no time is known
	tips []tip     // that are not applied, ascending
}

type tip struct {
	revision uint64
	asked    time.Time
}

// maxTips limits the memory of a store that applies nothing for long.
const maxTips = 4096

// Add notes that the newest entry was that of a revision, or a newer one, when the log was asked. applied
// is the revision that the store has applied.
func (l *Lag) Add(applied, revision uint64, asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(applied)
	if n := len(l.tips); n > 0 && l.tips[n-1].revision == revision {
		l.tips[n-1].asked = asked
	} else if n < maxTips {
		l.tips = append(l.tips, tip{revision, asked})
	}
}

// Of returns how far a store lags behind that has applied a revision; math.MaxInt64 if that is not known.
func (l *Lag) Of(applied uint64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(applied)
	if l.asOf.IsZero() {
		return math.MaxInt64
	}
	return time.Since(l.asOf)
}

// settle drops the tips that are applied.
func (l *Lag) settle(applied uint64) {
	n := 0
	for ; n < len(l.tips) && l.tips[n].revision <= applied; n++ {
		l.asOf = l.tips[n].asked
	}
	l.tips = append(l.tips[:0], l.tips[n:]...)
}
