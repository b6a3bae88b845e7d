package store_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"runner.example/state/store"
	"runner.example/state/store/commitlog"
)

// logModel decides entries as the store must, from the whole log.
type logModel struct {
	window   int // in entries
	seq      store.Seq
	written  []map[string]bool // by each entry, from 1
	first    map[commitlog.ID]bool
	chain    commitlog.Digest
	content  map[string]string
	version  map[string]store.Seq
	outcomes map[commitlog.Outcome]int
}

func newLogModel(window int) *logModel {
	return &logModel{
		window: window, written: make([]map[string]bool, 1), first: map[commitlog.ID]bool{},
		content: map[string]string{}, version: map[string]store.Seq{}, outcomes: map[commitlog.Outcome]int{},
	}
}

// apply decides e, which it changes, as the next entry.
func (m *logModel) apply(e *commitlog.Entry) {
	floor := m.seq - min(m.seq, store.Seq(m.window))
	m.seq++
	now := map[string]bool{}
	for _, p := range e.Proposals {
		p.Verdict = commitlog.Verdict{Outcome: m.judge(e, p, floor, now)}
		m.outcomes[p.Verdict.Outcome]++
		if p.Verdict.Outcome != commitlog.Committed {
			continue
		}
		for _, w := range p.Writes {
			now[w.Key] = true
			m.content[w.Key], m.version[w.Key] = string(w.Value), m.seq
			if w.Deleted {
				delete(m.content, w.Key)
			}
		}
	}
	m.first[e.ID] = true
	m.written = append(m.written, now)
	digest, _ := e.Digest(nil)
	m.chain = commitlog.Link(m.chain, digest)
}

func (m *logModel) judge(e *commitlog.Entry, p *commitlog.Proposal, floor store.Seq, now map[string]bool) commitlog.Outcome {
	switch {
	case e.Base < floor:
		return commitlog.TooOld
	case m.first[e.ID]:
		return commitlog.Duplicate
	case len(p.Reads)+len(p.Spans) == 0:
		return commitlog.Committed
	case p.Snapshot < floor:
		return commitlog.TooOld
	}
	for _, keys := range append(m.written[p.Snapshot+1:], now) {
		for key := range keys {
			if slices.Contains(p.Reads, key) {
				return commitlog.Conflict
			}
			for _, r := range p.Spans {
				if key >= string(r.Lo) && (r.Hi == nil || key < string(r.Hi)) {
					return commitlog.Conflict
				}
			}
		}
	}
	return commitlog.Committed
}

// dump returns what contentOf returns for a store with the same content.
func (m *logModel) dump() string {
	var all strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m.content)) {
		fmt.Fprintf(&all, "%d:%q=%q\n", m.version[k], k, m.content[k])
	}
	return all.String()
}

// feed makes random entries of three proposers.
type feed struct {
	random  *rand.Rand
	window  int
	batches [3]uint64
	bases   [3]store.Seq
	sent    [][]byte
}

// next returns the entry that becomes number seq. One of eight was sent before.
func (f *feed) next(seq store.Seq) []byte {
	r := f.random
	if n := len(f.sent); n > 0 && r.IntN(8) == 0 {
		return f.sent[max(0, n-1-r.IntN(3*f.window))]
	}
	who := r.IntN(2)
	if r.IntN(50) == 0 {
		who = 2
	}
	f.batches[who]++
	if who < 2 || r.IntN(2) == 0 { // otherwise it was under way since the one before
		f.bases[who] = max(f.bases[who], seq-min(seq, store.Seq(1+r.IntN(3))))
	}
	e := &commitlog.Entry{ID: commitlog.ID{Proposer: uint64(100 + who), Batch: f.batches[who]}, Base: f.bases[who]}
	for range 1 + r.IntN(4) {
		e.Proposals = append(e.Proposals, f.proposal(seq))
	}
	f.sent = append(f.sent, e.Encode(nil))
	return f.sent[len(f.sent)-1]
}

func (f *feed) key() string { return fmt.Sprintf("k%03d", f.random.IntN(150)) }

func (f *feed) proposal(seq store.Seq) *commitlog.Proposal {
	r := f.random
	p := &commitlog.Proposal{}
	if r.IntN(4) > 0 {
		age := 1 + r.IntN(4)
		if r.IntN(4) == 0 {
			age = 1 + r.IntN(2*f.window)
		}
		p.Snapshot = seq - min(seq, store.Seq(age))
		for range r.IntN(3) {
			p.Reads = append(p.Reads, f.key())
		}
		if r.IntN(3) == 0 {
			lo := f.key()
			p.Spans = append(p.Spans, commitlog.Span{Lo: []byte(lo), Hi: []byte(lo + "\xff")})
		}
		if r.IntN(40) == 0 {
			p.Spans = append(p.Spans, commitlog.Span{Lo: []byte("k140")})
		}
	}
	keys := map[string]bool{}
	for range 1 + r.IntN(3) {
		keys[f.key()] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		w := commitlog.Write{Key: k, Deleted: r.IntN(3) == 0}
		if !w.Deleted {
			n := 1 + r.IntN(50)
			if r.IntN(200) == 0 {
				n = 600 << 10 // in pieces
			}
			w.Value = bytes.Repeat([]byte{byte('a' + r.IntN(26))}, n)
		}
		p.Writes = append(p.Writes, w)
	}
	return p
}

// Replicas get one random log: one without interruption; one is closed and opened again; one is
// compacted too; one is replaced by a backup of the first. All must decide as the model does.
func TestReplicasOfOneLogAreEqual(t *testing.T) {
	sequential(t)
	const window = 40
	entries := 1500
	if os.Getenv("RUNNER_SOAK") != "" {
		entries = 12_000
	}
	random := newRandom(t)
	log := store.NewSimLog(nil)
	defer log.Close()
	model, feed := newLogModel(window), &feed{random: random(), window: window}
	names := []string{"continuous", "reopened", "compacted", "restored"}
	stores, dirs := make([]*store.Store, len(names)), make([]string, len(names))
	openReplica := func(i int) {
		s, err := log.Open(store.Options{Dir: dirs[i], Node: true}, window)
		if err != nil {
			t.Fatalf("%s, after entry %d: %v", names[i], model.seq, err)
		}
		stores[i] = s
	}
	closeReplica := func(i int) {
		if err := stores[i].Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range names {
		dirs[i] = t.TempDir()
		openReplica(i)
		defer func() { closeReplica(i) }()
	}
	compare := func() {
		t.Helper()
		content := model.dump()
		for i, s := range stores {
			if err := s.WaitFor(t.Context(), model.seq); err != nil {
				t.Fatalf("%s: %v", names[i], err)
			}
			if want := hex.EncodeToString(model.chain[:]); s.Chain() != want {
				t.Fatalf("at entry %d the chain of the %s replica is %.8s, want %.8s", model.seq, names[i], s.Chain(), want)
			}
			if contentOf(t, s) != content {
				t.Fatalf("at entry %d the %s replica has other content", model.seq, names[i])
			}
		}
	}
	for n := 1; n <= entries; n++ {
		encoded := feed.next(model.seq)
		e, err := commitlog.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		model.apply(e)
		log.Put(encoded)
		if n%61 != 0 {
			continue
		}
		compare()
		switch n / 61 % 4 {
		case 0:
			closeReplica(1)
			openReplica(1)
		case 1, 3: // the tables are compacted, then the window is restored from them
			closeReplica(2)
			openReplica(2)
			if _, err := stores[2].Versions(); err != nil {
				t.Fatal(err)
			}
			closeReplica(2)
			openReplica(2)
		case 2:
			copied := backup(t, stores[0])
			closeReplica(3)
			dirs[3] = t.TempDir()
			s, err := store.OpenWindow(store.Options{Dir: dirs[3]}, window)
			if err != nil {
				t.Fatal(err)
			}
			if err := restore(t, s, bytes.NewReader(copied)); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			openReplica(3)
		}
	}
	compare()
	for o := commitlog.Committed; o <= commitlog.Duplicate; o++ {
		if o != commitlog.TooLarge && model.outcomes[o] < entries/50 {
			t.Errorf("only %d proposals have outcome %d", model.outcomes[o], o)
		}
	}
	t.Logf("%d entries, outcomes %v", entries, model.outcomes)
}
