package auth

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"runner.example/audit"
	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/store"
)

const (
	// maxCounts bounds what waits to be written. What finds no room is counted
	// without its address, by reason and minute alone.
	maxCounts = 8192
	// countsPerWrite keeps one transaction small.
	countsPerWrite = 500
	writeEvery     = time.Minute
	lastWrite      = 10 * time.Second
)

// tally counts refused credentials for the audit. The zero value is ready.
type tally struct {
	mu     sync.Mutex
	counts map[countKey]int
}

// countKey is what refusals have in common that make one audit record.
type countKey struct {
	network netip.Addr
	reason  keystore.Reason
	minute  int64 // since 1970
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// add counts one refusal.
func (t *tally) add(network netip.Addr, reason keystore.Reason, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addLocked(countKey{network, reason, minuteOf(now)}, 1)
}

func (t *tally) addLocked(key countKey, n int) {
	if t.counts == nil {
		t.counts = map[countKey]int{}
	}
	if _, known := t.counts[key]; !known && len(t.counts) >= maxCounts {
		key.network = netip.Addr{}
	}
	t.counts[key] += n
}

// take removes and returns the counts of all minutes before one, in order.
func (t *tally) take(before int64) []count {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []count
	for key, n := range t.counts {
		if key.minute < before {
			out = append(out, count{key, n})
			delete(t.counts, key)
		}
	}
	slices.SortFunc(out, func(a, b count) int {
		return cmp.Or(cmp.Compare(a.minute, b.minute), a.network.Compare(b.network), cmp.Compare(a.reason, b.reason))
	})
	return out
}

// putBack adds counts that could not be written.
func (t *tally) putBack(counts []count) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range counts {
		t.addLocked(c.countKey, c.n)
	}
}

// count is one audit record to be.
type count struct {
	countKey
	n int
}

// record is the count as the audit has it.
func (c count) record() audit.Record {
	address := text(c.network)
	if c.network.Is6() {
		address += "/64"
	}
	return audit.Record{
		Time:    audit.Timestamp{Time: time.Unix(c.minute*60, 0)},
		Actor:   audit.Actor{Kind: caller.Anonymous.String()},
		Action:  audit.RefuseCredentials,
		Result:  string(fault.InvalidToken),
		Reason:  string(c.reason),
		Address: address,
		Count:   c.n,
	}
}

// Run writes the counts of refused credentials to the audit, each minute those
// of the minutes before, and what is left when ctx ends. It returns after that
// last write; the store must be open till then.
func (a *Authenticator) Run(ctx context.Context) {
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			a.write(ctx, minuteOf(now))
		case <-ctx.Done():
			last, stop := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
			defer stop()
			a.write(last, math.MaxInt64)
			return
		}
	}
}

// write appends the counts of all minutes before one to the audit.
func (a *Authenticator) write(ctx context.Context, before int64) {
	for counts := range slices.Chunk(a.tally.take(before), countsPerWrite) {
		if err := a.append(ctx, counts); err != nil {
			a.tally.putBack(counts)
			a.logger.Warn("counts of refused credentials could not be written; trying again in a minute", "cause", err)
		}
	}
}

func (a *Authenticator) append(ctx context.Context, counts []count) error {
	_, err := a.store.Update(ctx, func(tx *store.Tx) error {
		for _, c := range counts {
			if err := audit.Append(tx, c.record()); err != nil {
				return fmt.Errorf("write the audit record: %w", err)
			}
		}
		return nil
	})
	return err
}
