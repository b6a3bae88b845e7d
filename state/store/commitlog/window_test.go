package commitlog_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/state/store/commitlog"
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

// phantoms are what a proposal read, beside keys that another one writes: "b" and "d".
var phantoms = []struct {
	read  string // a key, or "lo hi" of a span; without hi it has no end
	clash string // "": none
}{
	{"a", ""}, {"b", "b"}, {"b\x00", ""}, {"c", ""}, {"d", "d"}, {"d\x00", ""}, {"e", ""},
	{"a b", ""}, {"a b\x00", "b"}, {"a c", "b"}, {"b c", "b"}, {"b\x00 d", ""}, {"c d", ""}, {"c d\x00", "d"}, {"c e", "d"},
	{"d e", "d"}, {"d\x00 e", ""}, {"e f", ""}, {" b", ""}, {" z", "b"}, {"c ", "d"}, {"d\x00 ", ""}, {" ", "b"},
}

// reads returns a proposal that read one of phantoms.
func reads(read string, snapshot commitlog.Seq) *commitlog.Proposal {
	p := &commitlog.Proposal{Snapshot: snapshot, Writes: []commitlog.Write{{Key: "of it"}}}
	lo, hi, isSpan := strings.Cut(read, " ")
	if !isSpan {
		p.Reads = []string{read}
		return p
	}
	span := commitlog.Span{Lo: []byte(lo)}
	if hi != "" {
		span.Hi = []byte(hi)
	}
	p.Spans = []commitlog.Span{span}
	return p
}

func writes(keys ...string) *commitlog.Proposal {
	p := &commitlog.Proposal{}
	for _, k := range keys {
		p.Writes = append(p.Writes, commitlog.Write{Key: k})
	}
	return p
}

// A proposal conflicts with a write of what it read, and with none beside that: of an earlier entry, and
// of an earlier proposal of its own entry, if that one commits.
func TestAProposalConflictsOnlyWithWritesOfWhatItRead(t *testing.T) {
	all := func(*commitlog.Proposal) bool { return true }
	for _, row := range phantoms {
		want := commitlog.Verdict{}
		if row.clash != "" {
			want = commitlog.Verdict{Outcome: commitlog.Conflict, Clash: row.clash}
		}
		for i, before := range [][]*commitlog.Proposal{ // within one entry
			{writes("b", "d")}, {writes("b"), writes("d")}, {writes("d"), writes("b")},
		} {
			w := commitlog.NewWindow(10, 0)
			e := &commitlog.Entry{ID: commitlog.ID{Proposer: 1, Batch: 1}, Proposals: append(before, reads(row.read, 0))}
			w.Decide(e, all)
			if got := e.Proposals[len(before)].Verdict; got.Outcome != want.Outcome || got.Outcome == commitlog.Conflict && i != 2 && got != want {
				t.Errorf("%q after %d of its entry: %+v, want %+v", row.read, i, got, want)
			}
		}
		// Those before it do not commit: they are too large, or conflict themselves.
		w := commitlog.NewWindow(10, 0)
		lost := writes("b", "d")
		lost.Reads = []string{"x"}
		e := &commitlog.Entry{ID: commitlog.ID{Proposer: 1, Batch: 1}, Proposals: []*commitlog.Proposal{writes("b", "c", "d"), writes("x"), lost, reads(row.read, 0)}}
		w.Decide(e, func(p *commitlog.Proposal) bool { return len(p.Writes) < 3 })
		if got := e.Proposals[3].Verdict; (got.Outcome == commitlog.Committed) == wrote(row.read, "x") || lost.Verdict.Outcome != commitlog.Conflict {
			t.Errorf("%q after proposals that do not commit: %+v", row.read, got)
		}
		// Of entries: one before its snapshot, one at it, and one after it.
		for snapshot, conflicts := range []bool{true, true, false} {
			w := commitlog.NewWindow(10, 0)
			for seq, p := range []*commitlog.Proposal{writes("other"), writes("b", "d")} {
				e := &commitlog.Entry{ID: commitlog.ID{Proposer: 1, Batch: uint64(seq + 1)}, Base: commitlog.Seq(seq), Proposals: []*commitlog.Proposal{p}}
				w.Decide(e, all)
				w.Add(commitlog.Seq(seq+1), e)
			}
			e := &commitlog.Entry{ID: commitlog.ID{Proposer: 1, Batch: 3}, Base: 2, Proposals: []*commitlog.Proposal{reads(row.read, commitlog.Seq(snapshot))}}
			w.Decide(e, all)
			got := e.Proposals[0].Verdict
			if is := got.Outcome == commitlog.Conflict; is != (conflicts && row.clash != "") && (snapshot != 0 || !wrote(row.read, "other")) {
				t.Errorf("%q of snapshot %d, after entries: %+v, want a conflict: %v", row.read, snapshot, got, conflicts && row.clash != "")
			}
		}
	}
}

// wrote reports whether a key is in what one of phantoms read.
func wrote(read, key string) bool {
	lo, hi, isSpan := strings.Cut(read, " ")
	return !isSpan && read == key || isSpan && key >= lo && (hi == "" || key < hi)
}

// A snapshot at the floor of the window sees all that was dropped.
func TestASnapshotAtTheFloorOfTheWindowIsNotTooOld(t *testing.T) {
	w := commitlog.NewWindow(2, 0)
	for seq := commitlog.Seq(1); seq <= 5; seq++ {
		w.Add(seq, &commitlog.Entry{ID: commitlog.ID{Proposer: 1, Batch: uint64(seq)}, Proposals: []*commitlog.Proposal{writes("b")}})
	}
	if w.Floor() != 3 {
		t.Fatalf("the floor is %d", w.Floor())
	}
	for _, row := range []struct {
		base, snapshot commitlog.Seq
		read           string
		want           commitlog.Outcome
	}{
		{3, 3, "a", commitlog.Committed}, {3, 3, "b", commitlog.Conflict}, {3, 2, "a", commitlog.TooOld}, {2, 3, "a", commitlog.TooOld},
		{5, 5, "b", commitlog.Committed}, {5, 4, "b", commitlog.Conflict},
	} {
		e := &commitlog.Entry{ID: commitlog.ID{Proposer: 2, Batch: 1}, Base: row.base, Proposals: []*commitlog.Proposal{reads(row.read, row.snapshot)}}
		w.Decide(e, func(*commitlog.Proposal) bool { return true })
		if got := e.Proposals[0].Verdict.Outcome; got != row.want {
			t.Errorf("base %d, snapshot %d, %s: outcome %d, want %d", row.base, row.snapshot, row.read, got, row.want)
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
