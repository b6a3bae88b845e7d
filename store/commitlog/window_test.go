package commitlog_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/store/commitlog"
)

// A window restored from the newest version of each key decides as the one that saw all
// entries. Both drop entries at the same time, by their number and by the bytes of keys.
func TestARestoredWindowDecidesAsTheOneThatSawAllEntries(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const size = 60
	long := false
	key := func() string {
		k := fmt.Sprintf("%02d", r.IntN(80))
		if long {
			k += strings.Repeat("k", 60_000+r.IntN(3))
		}
		return k
	}
	all := commitlog.NewWindow(size, 0)
	restored := commitlog.NewWindow(size, 0)
	var records []commitlog.Record
	newest := map[string]commitlog.Seq{}
	byBytes, outcomes := 0, map[commitlog.Outcome]int{}
	for seq := commitlog.Seq(1); seq <= 1500; seq++ {
		long = seq/100%2 == 1
		e := randomEntry(r, seq, key)
		verdicts := make([][]commitlog.Verdict, 2)
		for i, w := range []*commitlog.Window{all, restored} {
			w.Decide(e, func(p *commitlog.Proposal) bool { return len(p.Writes) < 9 })
			for _, p := range e.Proposals {
				verdicts[i] = append(verdicts[i], commitlog.Verdict{Outcome: p.Verdict.Outcome}) // the clash is for a hint only
			}
		}
		if !slices.Equal(verdicts[0], verdicts[1]) {
			t.Fatalf("entry %d: verdicts %v, restored %v", seq, verdicts[0], verdicts[1])
		}
		for _, p := range e.Proposals {
			outcomes[p.Verdict.Outcome]++
		}
		record := all.Add(seq, e)
		if got := restored.Add(seq, e); got != record || restored.Floor() != all.Floor() {
			t.Fatalf("entry %d: record %+v and floor %d, restored %+v and %d", seq, record, all.Floor(), got, restored.Floor())
		}
		records = append(records, record)
		for p := range e.Committed {
			for _, w := range p.Writes {
				newest[w.Key] = seq
			}
		}
		if all.Floor()+size > seq && seq > size {
			byBytes++
		} else if all.Floor()+size < seq {
			t.Fatalf("after entry %d the window begins after %d", seq, all.Floor())
		}
		if r.IntN(10) == 0 {
			restored = restore(all.Floor(), size, records, newest)
		}
	}
	if byBytes < 50 || byBytes > 1450 {
		t.Errorf("the bytes of keys bound the window %d times of 1500", byBytes)
	}
	for o := commitlog.Committed; o <= commitlog.Duplicate; o++ {
		if outcomes[o] < 20 {
			t.Errorf("only %d proposals have outcome %d", outcomes[o], o)
		}
	}
}

// restore restores a window from the newest version of each key.
func restore(floor commitlog.Seq, size int, records []commitlog.Record, newest map[string]commitlog.Seq) *commitlog.Window {
	w := commitlog.NewWindow(size, floor)
	keys := map[commitlog.Seq][]string{}
	for k, seq := range newest {
		keys[seq] = append(keys[seq], k)
	}
	for _, r := range records[floor:] {
		slices.Sort(keys[r.Seq])
		w.Restore(r, keys[r.Seq])
	}
	return w
}

func randomEntry(r *rand.Rand, seq commitlog.Seq, key func() string) *commitlog.Entry {
	e := &commitlog.Entry{ID: commitlog.ID{Proposer: uint64(r.IntN(2)), Batch: uint64(seq)}, Base: seq - 1}
	if r.IntN(10) == 0 {
		e.Batch = uint64(max(1, int(seq)-r.IntN(100)))
		e.Base = commitlog.Seq(e.Batch) - 1 // as it was then
	}
	for range 1 + r.IntN(3) {
		p := &commitlog.Proposal{Snapshot: seq - min(seq, commitlog.Seq(1+r.IntN(10)*r.IntN(10)))}
		for range r.IntN(3) {
			p.Reads = append(p.Reads, key())
		}
		if r.IntN(4) == 0 {
			lo := key()
			p.Spans = append(p.Spans, commitlog.Span{Lo: []byte(lo), Hi: []byte(lo + "\xff")})
		}
		keys := map[string]bool{}
		for range 1 + r.IntN(10) {
			keys[key()] = true
		}
		for k := range keys {
			p.Writes = append(p.Writes, commitlog.Write{Key: k})
		}
		slices.SortFunc(p.Writes, func(a, b commitlog.Write) int { return strings.Compare(a.Key, b.Key) })
		e.Proposals = append(e.Proposals, p)
	}
	return e
}

// The oldest entry leaves the window when there are more entries than its size, or when their keys count more
// than 16 MiB, each with 32 bytes beside its length. The newest entry stays in any case.
func TestTheLimitsOfAWindowArePartOfIt(t *testing.T) {
	add := func(w *commitlog.Window, seq commitlog.Seq, keys ...string) {
		e := &commitlog.Entry{ID: commitlog.ID{Proposer: 1, Batch: uint64(seq)}, Base: seq - 1}
		p := &commitlog.Proposal{}
		for _, key := range keys {
			p.Writes = append(p.Writes, commitlog.Write{Key: key})
		}
		e.Proposals = []*commitlog.Proposal{p}
		w.Add(seq, e)
	}
	w := commitlog.NewWindow(3, 0)
	for seq := commitlog.Seq(1); seq <= 6; seq++ {
		add(w, seq, "key")
		if want := max(seq, 3) - 3; w.Floor() != want {
			t.Errorf("after entry %d of 3 that fit, the floor is %d, want %d", seq, w.Floor(), want)
		}
	}
	const limit, perKey = 16 << 20, 32
	for more, want := range map[int]commitlog.Seq{0: 0, 1: 1} {
		w := commitlog.NewWindow(3, 0)
		add(w, 1, strings.Repeat("a", limit/2-perKey))
		add(w, 2, strings.Repeat("b", limit/2-perKey+more))
		if w.Floor() != want {
			t.Errorf("with keys that count %d bytes more than the limit, the floor is %d, want %d", more, w.Floor(), want)
		}
		add(w, 3, strings.Repeat("c", 2*limit))
		if w.Floor() != 2 {
			t.Errorf("with one entry that is larger than the limit, the floor is %d", w.Floor())
		}
	}
}
