package watch_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"runner.example/state/store/commitlog"
	"runner.example/state/store/watch"
)

// added is an entry of the model.
type added struct {
	entry *watch.Entry[int]
	keys  []string
	spans []commitlog.Span
}

// matches returns how many keys and spans of a have key.
func (a added) matches(key string) (n int) {
	for _, k := range a.keys {
		if k == key {
			n++
		}
	}
	for _, s := range a.spans {
		if key >= string(s.Lo) && (s.Hi == nil || key < string(s.Hi)) {
			n++
		}
	}
	return n
}

// randomKey returns a key of few letters: keys are often equal, or prefixes of others.
func randomKey(r *rand.Rand) string {
	key := make([]byte, r.IntN(5))
	for i := range key {
		key[i] = "\x00ab\xff"[r.IntN(4)]
	}
	return string(key)
}

func randomSpan(r *rand.Rand) commitlog.Span {
	switch lo := []byte(randomKey(r)); r.IntN(4) {
	case 0:
		return commitlog.PrefixSpan(lo, nil, false)
	case 1:
		return commitlog.Span{Lo: lo}
	default:
		return commitlog.Span{Lo: lo, Hi: []byte(randomKey(r))} // its end may be before its start
	}
}

func TestAnIndexFindsWhatAListOfEntriesFinds(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var x watch.Index[int]
	model := map[int]added{}
	most := 0
	for step := range 20_000 {
		grows := step/2000%2 == 0
		switch {
		case r.IntN(3) == 0:
			key := randomKey(r)
			var want, got []int
			for value, a := range model {
				for range a.matches(key) {
					want = append(want, value)
				}
			}
			for _, e := range x.Match(key, nil) {
				got = append(got, e.Value)
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("step %d: %q is watched by %v, want %v", step, key, got, want)
			}
		case grows == (r.IntN(4) > 0):
			var a added
			for range r.IntN(4) {
				a.keys = append(a.keys, randomKey(r))
			}
			for range r.IntN(4) {
				a.spans = append(a.spans, randomSpan(r))
			}
			a.entry = x.Add(step, a.keys, a.spans)
			model[step] = a
		default:
			for value, a := range model {
				x.Remove(a.entry)
				x.Remove(a.entry)
				delete(model, value)
				break
			}
		}
		if x.Len() != len(model) {
			t.Fatalf("step %d: %d entries, want %d", step, x.Len(), len(model))
		}
		most = max(most, x.Len())
	}
	if most < 300 {
		t.Errorf("there were never more than %d entries", most)
	}
	all := 0
	for e := range x.All() {
		if _, ok := model[e.Value]; !ok {
			t.Errorf("entry %d was removed", e.Value)
		}
		x.Remove(e)
		all++
	}
	if all != len(model) || x.Len() != 0 {
		t.Errorf("all entries are %d, want %d; %d are left", all, len(model), x.Len())
	}
	for range 1000 {
		if found := x.Match(randomKey(r), nil); len(found) > 0 {
			t.Fatalf("an empty index finds %v", found)
		}
	}
}

func TestAMatchAllocatesNothing(t *testing.T) {
	var x watch.Index[int]
	for i := range 1000 {
		x.Add(i, readsOf(i), spansOf(i))
	}
	found := make([]*watch.Entry[int], 0, 1000)
	key := readsOf(7)[0]
	if n := testing.AllocsPerRun(100, func() { found = x.Match(key, found[:0]) }); n > 0 || len(found) != 1 {
		t.Errorf("%v allocations, found %d", n, len(found))
	}
}

// readsOf and spansOf are what a request reads that lists the newest rows of user i by an index: entries of the
// index, and the rows.
func readsOf(i int) (keys []string) {
	for row := range 20 {
		keys = append(keys, fmt.Sprintf("entity/r\x00\x00\x00\x05%026d", i*100+row))
	}
	return keys
}

func spansOf(i int) []commitlog.Span {
	own := commitlog.PrefixSpan(fmt.Appendf(nil, "entity/i\x00\x00\x00\x06\x01user%06d\x00\x01", i), nil, false)
	window := commitlog.Span{ // all overlap
		Lo: fmt.Appendf(nil, "entity/i\x00\x00\x00\x07\x01%010d", i), Hi: fmt.Appendf(nil, "entity/i\x00\x00\x00\x07\x01%010d", 100_000+i),
	}
	return []commitlog.Span{own, window}
}

// BenchmarkIndex has 8,000 entries with 20 keys and 2 ranges each.
func BenchmarkIndex(b *testing.B) {
	const n = 8000
	var x watch.Index[int]
	for i := range n {
		x.Add(i, readsOf(i), spansOf(i))
	}
	var found []*watch.Entry[int]
	for _, c := range []struct {
		name string
		key  func(i int) string
		hits int
	}{
		{"key", func(i int) string { return fmt.Sprintf("entity/r\x00\x00\x00\x05%026d", i%n*100) }, 1},
		{"range", func(i int) string { return fmt.Sprintf("entity/i\x00\x00\x00\x06\x01user%06d\x00\x01xyz", i%n) }, 1},
		{"ranges that overlap", func(i int) string { return fmt.Sprintf("entity/i\x00\x00\x00\x07\x01%010d", i%10) }, -1},
		{"nothing", func(i int) string { return fmt.Sprintf("entity/r\x00\x00\x00\x08%026d", i) }, 0},
	} {
		b.Run("match/"+c.name, func(b *testing.B) {
			keys := make([]string, n)
			for i := range keys {
				keys[i] = c.key(i * 7919)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				found = x.Match(keys[i%n], found[:0])
				if c.hits >= 0 && len(found) != c.hits {
					b.Fatalf("%d hits", len(found))
				}
			}
		})
	}
	b.Run("add and remove", func(b *testing.B) {
		keys, spans := make([][]string, 100), make([][]commitlog.Span, 100)
		for i := range keys {
			keys[i], spans[i] = readsOf(n+i), spansOf(n+i)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			x.Remove(x.Add(i, keys[i%100], spans[i%100]))
		}
	})
}
