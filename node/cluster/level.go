package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/level"
	"runner.example/internal/version"
	"runner.example/internal/wait"
	"runner.example/state/store"
)

// NodeLevels is what a node knows.
type NodeLevels struct {
	// Node is its name; empty: a standalone server.
	Node string `json:"node"`
	// Version is that of its runner; empty: the node has not answered.
	Version string `json:"version"`
	// Levels are those that its runner knows. Of a node that has not answered they are what it knew when
	// it joined, or ran last.
	Levels level.Range `json:"levels"`
	// Error is why the node has not answered, or empty.
	Error string `json:"error"`
}

// LevelOverview is the level in force, and what each node knows.
type LevelOverview struct {
	Level int          `json:"level"`
	Nodes []NodeLevels `json:"nodes"`
}

// SelfLevels returns what this program knows. The name is that of its node, or empty.
func SelfLevels(name string) NodeLevels {
	return NodeLevels{Node: name, Version: version.Read().Version, Levels: level.Known()}
}

// Levels asks all nodes which levels they know.
func (n *Node) Levels(ctx context.Context) (o LevelOverview, err error) {
	var all []record
	err = n.store.View(ctx, func(tx *store.Tx) error {
		if o.Level, err = tx.Level(); err != nil {
			return err
		}
		all, err = recordsIn(tx)
		return err
	})
	if err != nil {
		return o, err
	}
	o.Nodes = make([]NodeLevels, len(all))
	var asked sync.WaitGroup
	for i, r := range all {
		if r.Name == n.id.Name {
			o.Nodes[i] = SelfLevels(r.Name)
			continue
		}
		asked.Go(func() { o.Nodes[i] = n.askLevels(ctx, r) })
	}
	asked.Wait()
	return o, nil
}

func (n *Node) askLevels(ctx context.Context, r record) NodeLevels {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := call[State](ctx, n.peerClient, r.Address, opState, struct{}{})
	if err != nil {
		return NodeLevels{Node: r.Name, Levels: r.Levels.OrFirst(), Error: err.Error()}
	}
	return NodeLevels{Node: r.Name, Version: s.Version, Levels: s.Levels.OrFirst()}
}

// Target returns the level to raise to: the newest that a node knows.
func (o LevelOverview) Target() (to int) {
	for _, n := range o.Nodes {
		to = max(to, n.Levels.Newest)
	}
	return max(to, o.Level)
}

// Refuse returns an error that names the nodes which do not know a level, or have not answered; nil: all
// know it. Its code is Conflict.
func (o LevelOverview) Refuse(to int) error {
	var reasons []string
	for _, n := range o.Nodes {
		switch {
		case n.Error != "":
			reasons = append(reasons, fmt.Sprintf(
				"node %s does not answer: start it, or remove it with runner cluster leave %s", n.Node, n.Node))
		case n.Levels.Has(to):
		case n.Node == "":
			return fault.New(fault.Invalid, "this runner knows %s, and not level %d", n.Levels, to)
		default:
			reasons = append(reasons, fmt.Sprintf("node %s (runner %s) knows %s: install a newer runner there",
				n.Node, cmp.Or(n.Version, "of unknown version"), n.Levels))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "the level stays %d, because not all nodes know level %d: %s",
		o.Level, to, strings.Join(reasons, "; "))
}

// RaiseLevel raises the level of the cluster, and returns the one before. o is what Levels has just returned: the
// raise is refused unless all nodes in it have answered and know the level. also runs in the same transaction,
// unless the cluster has the level already.
func (n *Node) RaiseLevel(ctx context.Context, o LevelOverview, to int, also func(*store.Tx) error) (before int, err error) {
	if o.Level == to {
		return to, nil
	}
	if err := o.Refuse(to); err != nil {
		return o.Level, err
	}
	for until := clock.Mark().Add(announceWait); ; {
		before, err = n.tryRaise(ctx, to, also)
		// A runner that was just replaced has answered, and announces what it knows at any moment.
		if !errors.Is(err, errNotAnnounced) || clock.Mark().After(until) || wait.For(ctx, pollInterval/4) != nil {
			break
		}
	}
	if err == nil && before != to {
		n.logger.Info("level raised", "from", before, "to", to)
	}
	return before, err
}

// announceWait is how long a raise waits until each node has announced what it knows.
const announceWait = 5 * time.Second

// errNotAnnounced means that the record of a node does not have the level.
var errNotAnnounced = errors.New("the record of the node has other levels")

func (n *Node) tryRaise(ctx context.Context, to int, also func(*store.Tx) error) (before int, err error) {
	_, err = n.store.Update(ctx, func(tx *store.Tx) error {
		if err := n.checkSelf(tx); err != nil {
			return err
		}
		// A node may have joined, or have begun with an older runner, since it was asked.
		all, err := recordsIn(tx)
		if err != nil {
			return err
		}
		for _, r := range all {
			if !r.Levels.Has(to) {
				return fault.Wrap(errNotAnnounced, fault.Conflict,
					"node %s has announced %s, and not level %d: look at runner level show, and try again", r.Name, r.Levels, to)
			}
		}
		if before, err = tx.RaiseLevel(to); err != nil || before == to {
			return err
		}
		return also(tx)
	})
	return before, err
}

// checkLevels refuses a machine that joins, and does not know the level of the cluster.
func checkLevels(tx *store.Tx, known level.Range) error {
	now, err := tx.Level()
	if err != nil || known.Has(now) {
		return err
	}
	return fault.New(fault.Conflict,
		"the cluster has level %d, and the runner of the machine that joins knows %s: install runner %s there, which this node has, or a newer one, and join again",
		now, known, version.Read().Version)
}

// announceLevels keeps what this program knows in the record of this node: it may have been another
// program before, and an older node drops it when it writes the record. It returns when ctx ends.
func (n *Node) announceLevels(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if err := n.announceOnce(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, ErrRemoved) {
			n.logger.Debug("levels not announced", "cause", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (n *Node) announceOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	known := false
	err := n.store.View(ctx, func(tx *store.Tx) error {
		r, err := recordOf(tx, n.id.Name)
		known = r.Levels == level.Known()
		return err
	})
	if err != nil || known {
		return err
	}
	_, err = n.store.Update(ctx, func(tx *store.Tx) error {
		if err := n.checkSelf(tx); err != nil {
			return err
		}
		r, err := recordOf(tx, n.id.Name)
		if err != nil {
			return err
		}
		r.Levels = level.Known()
		return putRecord(tx, r)
	})
	return err
}
