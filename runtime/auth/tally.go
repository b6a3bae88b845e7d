package auth

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/state/audit"
	"runner.example/state/store"
)

const (
	// maxSources limits the sources that are counted separately between two writes.
	maxSources = 1024
	// topSources is the number of sources that have an audit record each in a minute. The
	// others are counted together, by reason.
	topSources = 8
	// maxWaiting limits the counts that wait while the store is unavailable.
	maxWaiting = 2000
	// countsPerWrite limits one transaction.
	countsPerWrite = 500
	writeEvery     = time.Minute
	lastWrite      = 10 * time.Second
)

// tally counts refused credentials for the audit: how many there were for each reason,
// and which sources were the most frequent. Its memory is bounded for any number of
// sources (Misra and Gries, Finding repeated elements, 1982): of n refusals since the
// last write, each source with more than n/(maxSources+1) is known, and its count is too
// low by at most that. The zero value is ready to use.
type tally struct {
	mu      sync.Mutex
	began   time.Time // of the first refusal since the last write
	sources map[source]int
	totals  map[keystore.Reason]int
	waiting []count // could not be written
}

// source identifies the refusals that are counted in one audit record.
type source struct {
	network netip.Addr
	reason  keystore.Reason
}

// add counts one refusal.
func (t *tally) add(s source, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sources == nil {
		t.began, t.sources, t.totals = now, map[source]int{}, map[keystore.Reason]int{}
	}
	t.totals[s.reason]++
	if _, known := t.sources[s]; known || len(t.sources) < maxSources {
		t.sources[s]++
		return
	}
	// One of each source goes with this one, so it happens once in maxSources times.
	for other, n := range t.sources {
		if n == 1 {
			delete(t.sources, other)
		} else {
			t.sources[other] = n - 1
		}
	}
}

// take removes and returns what was counted, in order.
func (t *tally) take() []count {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := append(t.waiting, t.closeLocked()...)
	t.waiting = nil
	slices.SortFunc(out, func(a, b count) int {
		return cmp.Or(a.at.Compare(b.at), a.network.Compare(b.network), cmp.Compare(a.reason, b.reason))
	})
	return out
}

// closeLocked returns the counts since the last write: of the most frequent sources, and
// the rest of each reason.
func (t *tally) closeLocked() (out []count) {
	at := t.began.Truncate(time.Minute)
	for s, n := range t.sources {
		out = append(out, count{s, at, n})
	}
	slices.SortFunc(out, func(a, b count) int {
		return cmp.Or(cmp.Compare(b.n, a.n), a.network.Compare(b.network), cmp.Compare(a.reason, b.reason))
	})
	out = out[:min(len(out), topSources)]
	for _, c := range out {
		t.totals[c.reason] -= c.n
	}
	for reason, n := range t.totals {
		if n > 0 {
			out = append(out, count{source{reason: reason}, at, n})
		}
	}
	t.sources, t.totals = nil, nil
	return out
}

// putBack keeps counts that could not be written. When too many wait, they lose their
// addresses.
func (t *tally) putBack(counts []count) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, counts...)
	if len(t.waiting) <= maxWaiting {
		return
	}
	rest, began := map[keystore.Reason]int{}, t.waiting[0].at
	for _, c := range t.waiting {
		rest[c.reason] += c.n
		if c.at.Before(began) {
			began = c.at
		}
	}
	t.waiting = nil
	for reason, n := range rest {
		t.waiting = append(t.waiting, count{source{reason: reason}, began, n})
	}
}

// count is one audit record to write.
type count struct {
	source
	at time.Time
	n  int
}

// record returns the audit record of the count.
func (c count) record() audit.Record {
	address := text(c.network)
	if c.network.Is6() {
		address += "/64"
	}
	return audit.Record{
		Time:    audit.Timestamp{Time: c.at},
		Actor:   audit.Actor{Kind: caller.Anonymous.String()},
		Action:  audit.RefuseCredentials,
		Result:  string(fault.InvalidToken),
		Reason:  string(c.reason),
		Address: address,
		Count:   c.n,
	}
}

// Run writes the counts of refused credentials to the audit, once a minute and when ctx
// ends. It returns after that last write; the store must be open until then. Until ctx ends it also
// reads the staleness of the store, which MaxStaleness limits.
func (a *Authenticator) Run(ctx context.Context) {
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() { a.fresh.run(ctx, a.store) })
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			a.write(ctx)
		case <-ctx.Done():
			last, stop := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
			defer stop()
			a.write(last)
			return
		}
	}
}

// write appends the counts to the audit.
func (a *Authenticator) write(ctx context.Context) {
	for counts := range slices.Chunk(a.tally.take(), countsPerWrite) {
		if err := a.append(ctx, counts); err != nil {
			a.tally.putBack(counts)
			a.logger.Warn("counts of refused credentials not written; retrying in a minute", "cause", err)
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
