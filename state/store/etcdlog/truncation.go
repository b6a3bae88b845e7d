package etcdlog

import (
	"slices"
	"time"
)

const (
	// keepEntries and keepTime say what a truncation never deletes.
	keepEntries = 65_536
	keepTime    = 10 * time.Minute
	// maxSamples limits the samples of a Truncation.
	maxSamples = 1024
)

// Sample says which entry was the newest at a time: its sequence number and its revision.
type Sample struct {
	Time     time.Time
	Seq      uint64
	Revision uint64
}

// Truncatable returns up to which revision entries may be deleted, 0: none. Synced has the revision
// that each voter has synced, 0: it is not known. What a majority of them has may be deleted, but
// never the newest 65,536 entries, and none that is younger than 10 minutes. The samples are in order,
// and the last one is of now.
func Truncatable(samples []Sample, synced []uint64) (revision uint64) {
	if len(samples) == 0 || len(synced) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(synced))
	majority := sorted[(len(sorted)-1)/2] // that many of them have at least this revision
	now := samples[len(samples)-1]
	for _, s := range samples {
		if s.Revision <= majority && s.Seq+keepEntries <= now.Seq && now.Time.Sub(s.Time) >= keepTime {
			revision = max(revision, s.Revision)
		}
	}
	return revision
}

// Truncation remembers samples for Truncatable. The zero value has none. One goroutine at a time may
// call it.
type Truncation struct{ samples []Sample }

// Note adds what is true now, and returns up to which revision entries may be deleted. It is called
// at intervals of about a minute.
func (t *Truncation) Note(now Sample, synced []uint64) (revision uint64) {
	revision = Truncatable(append(t.samples, now), synced)
	if n := len(t.samples); n > 0 && t.samples[n-1].Revision == now.Revision {
		return revision // no entry came, and the older time says more
	}
	// Of what may be deleted, only the newest is of use.
	t.samples = slices.DeleteFunc(t.samples, func(s Sample) bool { return s.Revision < revision })
	if len(t.samples) >= maxSamples {
		kept := t.samples[:0]
		for i, s := range t.samples {
			if i%2 == 0 {
				kept = append(kept, s)
			}
		}
		t.samples = kept
	}
	t.samples = append(t.samples, now)
	return revision
}
