package node

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"runner.example/internal/fault"
	"runner.example/runtime"
)

const (
	// warnSkew is the difference between the clocks of two nodes that is logged.
	warnSkew = time.Second
	// maxSkew is the difference at which a node is not ready: times of keys, sessions and records that
	// one node writes would be wrong for the others.
	maxSkew = 30 * time.Second
)

// Skews knows how much the clocks of other nodes differ from that of this one. A node whose clock
// differs by more than 30 s from those of more than half of the others is not ready: so one wrong clock
// does not stop all nodes. Any goroutine may call its methods.
type Skews struct {
	logger *slog.Logger
	// setNotReady is Runtime.SetNotReady.
	setNotReady func(runtime.Reason, *fault.Fault)

	mu      sync.Mutex
	logged  map[string]bool // the nodes whose difference was logged
	blocked bool            // this node is not ready
}

// NewSkews returns Skews of no other nodes.
func NewSkews(rt *runtime.Runtime, logger *slog.Logger) *Skews {
	return &Skews{logger: logger, setNotReady: rt.SetNotReady, logged: map[string]bool{}}
}

// Measured takes how far the clock of each node that answers is ahead of that of this one; behind if it
// is negative. It reports whether the clock of this node agrees with them.
func (s *Skews) Measured(skews map[string]time.Duration) (agrees bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var far []string
	for _, name := range slices.Sorted(maps.Keys(skews)) {
		skew := skews[name]
		switch differs := skew.Abs() > warnSkew; {
		case differs && !s.logged[name]:
			s.logger.Warn("clocks of nodes differ", "node", name, "ahead", skew)
			s.logged[name] = true
		case !differs && s.logged[name]:
			s.logger.Info("clocks of nodes agree again", "node", name, "ahead", skew)
			delete(s.logged, name)
		}
		if skew.Abs() > maxSkew {
			far = append(far, fmt.Sprintf("%s by %v", name, skew.Abs().Truncate(time.Second)))
		}
	}
	if 2*len(far) > len(skews) {
		s.setNotReady(runtime.Clock, fault.New(fault.NotReady,
			"the clock of this node differs from those of other nodes: %s", strings.Join(far, ", ")))
		if !s.blocked {
			s.logger.Error("clock differs too much; not ready", "nodes", far)
		}
		s.blocked = true
	} else if s.blocked {
		s.setNotReady(runtime.Clock, nil)
		s.logger.Info("clock agrees with other nodes again")
		s.blocked = false
	}
	return !s.blocked
}
