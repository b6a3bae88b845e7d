package limit_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"runner.example/internal/caller"
	"runner.example/runtime/limit"
)

var start = time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)

// gate is one limit asked for one caller.
type gate struct {
	limiter *limit.Limiter
	uses    []limit.Use
}

func newGate(count int, per time.Duration) *gate {
	l := limit.New(start, limit.Options{})
	lim := l.Limit(limit.Spec{ID: "a.schema:1:1", Count: count, Per: per})
	return &gate{l, []limit.Use{{Limit: lim, Caller: []byte("kkey_1")}}}
}

func (g *gate) at(d time.Duration) bool { return g.limiter.Take(start.Add(d), g.uses) }

func TestTheNthRequestIsAllowedAndTheNextIsNot(t *testing.T) {
	for _, count := range []int{1, 2, 600, 1000, 1001, 5000} {
		g := newGate(count, time.Minute)
		for i := range count {
			if !g.at(time.Duration(i) * 59 * time.Second / time.Duration(count)) {
				t.Fatalf("%d/minute: request %d was refused", count, i+1)
			}
		}
		if g.at(59 * time.Second) {
			t.Fatalf("%d/minute: request %d passed", count, count+1)
		}
		if got := limit.RetryAfter(g.uses); got != 1 && got != 2 {
			t.Errorf("%d/minute: retry after %d s, want 1 or 2", count, got)
		}
	}
}

func TestRefusedRequestsAreNotCounted(t *testing.T) {
	g := newGate(2, time.Minute)
	g.at(0)
	g.at(time.Second)
	for i := range 58 {
		if g.at(time.Duration(2+i) * time.Second) {
			t.Fatalf("the request at %d s passed", 2+i)
		}
	}
	if !g.at(time.Minute) {
		t.Error("the request at 60 s was refused: its window holds one other")
	}
}

// TestNeverMoreThanTheCountInAnyWindow compares with a plain list of time
// stamps: exact rings must answer the same, buckets may refuse one bucket early.
func TestNeverMoreThanTheCountInAnyWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.OneOf(rapid.IntRange(1, 12), rapid.SampledFrom([]int{1000, 1001, 1200})).Draw(t, "count")
		per := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 7 * time.Nanosecond, 24 * time.Hour}).Draw(t, "per")
		seed := rapid.Uint64().Draw(t, "seed")
		rng := rand.New(rand.NewPCG(seed, 1))
		g := newGate(count, per)
		bucket := time.Duration(0)
		if count > 1000 {
			bucket = (per + 239) / 240
		}
		var admitted []time.Duration
		now := time.Duration(0)
		pace := rng.Int64N(3*int64(per)/int64(count) + 1)
		for range 4 * count {
			switch n := len(admitted); { // pauses, edges of the window, bursts and streams
			case rng.IntN(2*count) == 0:
				now += time.Duration(rng.Int64N(int64(per) + 1))
			case n >= count && rng.IntN(4) == 0:
				now = max(now, admitted[n-count]+per-time.Duration(rng.IntN(2)))
			case n >= count && bucket > 0 && rng.IntN(4) == 0:
				now = max(now, admitted[n-count]+per+bucket-time.Duration(rng.IntN(2)))
			default:
				now += time.Duration(rng.Int64N(pace + 1))
			}
			inWindow, surely := 0, 0
			for i := len(admitted) - 1; i >= 0 && now-admitted[i] < per+bucket; i-- {
				surely++
				if now-admitted[i] < per {
					inWindow++
				}
			}
			got := g.at(now)
			switch {
			case got && inWindow >= count:
				t.Fatalf("at %v passed with %d in the window", now, inWindow)
			case !got && surely < count:
				t.Fatalf("at %v refused with %d in the window and a bucket", now, surely)
			}
			if got {
				admitted = append(admitted, now)
			}
			if used := g.uses[0].Limit; used == nil || g.uses[0].Remaining < 0 || g.uses[0].Remaining > count {
				t.Fatalf("at %v %d remain of %d", now, g.uses[0].Remaining, count)
			}
		}
	})
}

func TestTimesOutOfOrderNeverAllowMore(t *testing.T) {
	for _, count := range []int{600, 1500} {
		g := newGate(count, time.Minute)
		edge := 40 * time.Minute / 240 // between two buckets
		passed := 0
		for i := range 2 * count {
			if g.at(edge + time.Duration(1-i%2*2)) {
				passed++
			}
		}
		if passed != count {
			t.Errorf("%d of %d/minute passed", passed, count)
		}
		if g.at(edge + time.Minute - 1) {
			t.Errorf("%d/minute: one more passed before the window was over", count)
		}
	}
}

func TestARequestRefusedByOneLimitIsCountedByNone(t *testing.T) {
	l := limit.New(start, limit.Options{})
	fast := l.Limit(limit.Spec{ID: "1", Count: 2, Per: time.Second})
	slow := l.Limit(limit.Spec{ID: "2", Count: 5, Per: time.Minute, By: "ip"})
	uses := []limit.Use{{Limit: slow, Caller: []byte("a1")}, {Limit: fast, Caller: []byte("k1")}}
	passed := 0
	for i := range 40 {
		if l.Take(start.Add(time.Duration(i)*100*time.Millisecond), uses) {
			passed++
		}
	}
	if passed != 5 {
		t.Fatalf("%d requests passed in 4 s, want 5", passed)
	}
	if !uses[0].Refused || uses[1].Refused || limit.RetryAfter(uses) != 57 {
		t.Errorf("refused by slow %v, by fast %v, retry after %d s; want true, false, 57",
			uses[0].Refused, uses[1].Refused, limit.RetryAfter(uses))
	}
	only := []limit.Use{{Limit: fast, Caller: []byte("k1")}}
	if !l.Take(start.Add(4*time.Second), only) || only[0].Remaining != 1 {
		t.Errorf("the fast limit counted a refused request: %d remain", only[0].Remaining)
	}
}

// A client waits for the limits that refused, and for the last of them; not for one that would admit
// its request, although that one has a window too.
func TestRetryAfterIsForTheLimitsThatRefused(t *testing.T) {
	l := limit.New(start, limit.Options{})
	second := limit.Use{Limit: l.Limit(limit.Spec{ID: "1", Count: 1, Per: time.Second}), Caller: []byte("k1")}
	minute := limit.Use{Limit: l.Limit(limit.Spec{ID: "2", Count: 2, Per: time.Minute}), Caller: []byte("k1")}
	day := limit.Use{Limit: l.Limit(limit.Spec{ID: "3", Count: 5, Per: 24 * time.Hour}), Caller: []byte("k1")}
	take := func(at time.Duration, order ...limit.Use) []limit.Use {
		l.Take(start.Add(at), order)
		return order
	}
	if uses := take(0, second, minute, day); uses[0].Refused || uses[1].Refused || uses[2].Refused {
		t.Fatal("the first request was refused")
	}
	for _, row := range []struct {
		at   time.Duration
		uses []limit.Use
		want int
	}{
		{500 * time.Millisecond, []limit.Use{second, minute, day}, 1},
		{500 * time.Millisecond, []limit.Use{day, minute, second}, 1},
		{2 * time.Second, []limit.Use{day, minute}, 1}, // admitted: the minute is used up
		{2500 * time.Millisecond, []limit.Use{day, minute}, 58},
		{2500 * time.Millisecond, []limit.Use{minute, day}, 58},
		{2500 * time.Millisecond, []limit.Use{second, minute}, 58},
		{59500 * time.Millisecond, []limit.Use{minute, day}, 1},
	} {
		if got := limit.RetryAfter(take(row.at, row.uses...)); got != row.want {
			t.Errorf("at %v: retry after %d s, want %d", row.at, got, row.want)
		}
	}
}

func TestHeadersSayWhatRemains(t *testing.T) {
	l := limit.New(start, limit.Options{})
	uses := []limit.Use{
		{Limit: l.Limit(limit.Spec{ID: "1", Count: 600, Per: time.Minute}), Caller: []byte("k1")},
		{Limit: l.Limit(limit.Spec{ID: "2", Count: 1, Per: 24 * time.Hour, By: "ip"}), Caller: []byte("a1")},
	}
	l.Take(start, uses)
	l.Take(start.Add(1500*time.Millisecond), uses)
	const policy = `"600/minute";q=600;w=60, "1/day by ip";q=1;w=86400`
	if got := string(limit.AppendPolicy(nil, uses)); got != policy {
		t.Errorf("policy %s\n  want %s", got, policy)
	}
	const state = `"600/minute";r=599;t=59, "1/day by ip";r=0;t=86399`
	if got := string(limit.AppendState(nil, uses)); got != state {
		t.Errorf("state %s\n want %s", got, state)
	}
	if got := limit.RetryAfter(uses); got != 86399 {
		t.Errorf("retry after %d s, want 86399", got)
	}
}

func TestTheSameSpecKeepsItsCountersAcrossReleases(t *testing.T) {
	l := limit.New(start, limit.Options{})
	spec := limit.Spec{ID: "a.schema:3:9", Count: 1, Per: time.Minute}
	first := l.Limit(spec)
	l.Take(start, []limit.Use{{Limit: first, Caller: []byte("k1")}})

	again := l.Limit(spec)
	l.Retain([]*limit.Limit{again})
	if l.Take(start, []limit.Use{{Limit: again, Caller: []byte("k1")}}) {
		t.Error("a reload with the same limit gave a fresh quota")
	}
	other := spec
	other.Count = 2
	if !l.Take(start, []limit.Use{{Limit: l.Limit(other), Caller: []byte("k1")}}) {
		t.Error("a changed limit began with an old counter")
	}
	l.Retain(nil)
	if n := l.Counters(); n != 0 {
		t.Errorf("%d counters of limits that were dropped", n)
	}
	if !l.Take(start, []limit.Use{{Limit: l.Limit(spec), Caller: []byte("k1")}}) {
		t.Error("a limit that was dropped came back with its counters")
	}
}

func TestOnlyCountersWithAnEmptyWindowAreEvicted(t *testing.T) {
	const room = 4000
	l := limit.New(start, limit.Options{Counters: room})
	minute := l.Limit(limit.Spec{ID: "1", Count: 2, Per: time.Minute})
	second := l.Limit(limit.Spec{ID: "2", Count: 2, Per: time.Second})
	take := func(lim *limit.Limit, who string, d time.Duration) bool {
		return l.Take(start.Add(d), []limit.Use{{Limit: lim, Caller: []byte(who)}})
	}
	// Each limit may use an eighth of the counters for its own keys, and both together half
	// of them.
	const most = room * 3 / 4
	for i := range most {
		lim := minute
		if i%2 == 1 {
			lim = second
		}
		take(lim, fmt.Sprint("k", i), 0)
	}
	if n := l.Counters(); n != most {
		t.Fatalf("%d counters, want %d", n, most)
	}
	// Further keys have no counter; they still get their full limit.
	for i := range 20 {
		who := fmt.Sprint("other", i)
		if got := fmt.Sprint(take(minute, who, 0), take(minute, who, 0), take(minute, who, 0)); got != "true true false" {
			t.Fatalf("%s at a full table: %s, want true true false", who, got)
		}
	}
	if got := fmt.Sprint(take(minute, "k0", 0), take(minute, "k0", 0)); got != "true false" {
		t.Errorf("a known caller lost its counter: %s", got)
	}
	if n := l.Counters(); n != most {
		t.Errorf("%d counters, want %d", n, most)
	}
	// After a second half of the windows are empty and go; the other half stays.
	for i := range room / 2 {
		take(minute, fmt.Sprint("late", i), time.Second)
	}
	for i := 2; i < most; i += 2 {
		who := fmt.Sprint("k", i)
		if got := fmt.Sprint(take(minute, who, time.Second), take(minute, who, time.Second)); got != "true false" {
			t.Errorf("%s lost its counter while its window was not empty: %s", who, got)
		}
	}
	// A new counter includes what was counted before it.
	if take(minute, "other0", time.Minute-1) {
		t.Error("a caller that had no counter passed three times in a minute")
	}
	for i := range room / 2 {
		who := fmt.Sprint("later", i)
		if got := fmt.Sprint(take(minute, who, 2*time.Minute), take(minute, who, 2*time.Minute), take(minute, who, 2*time.Minute)); got != "true true false" {
			t.Fatalf("%s had no counter of its own: %s", who, got)
		}
	}
	if n := l.Counters(); n > most {
		t.Errorf("%d counters, want at most %d", n, most)
	}
}

func TestACounterIsNotEvictedByItsOwnRequest(t *testing.T) {
	for i := range 500 { // callers, so that some have both counters in one shard
		l := limit.New(start, limit.Options{})
		who := fmt.Append(nil, "k", i)
		old := limit.Use{Limit: l.Limit(limit.Spec{ID: "1", Count: 1, Per: time.Second}), Caller: who}
		fresh := limit.Use{Limit: l.Limit(limit.Spec{ID: "2", Count: 9, Per: time.Second}), Caller: who}
		l.Take(start, []limit.Use{old})
		later := start.Add(time.Second)
		if !l.Take(later, []limit.Use{old, fresh}) {
			t.Fatalf("%s was refused with an empty window", who)
		}
		if l.Take(later, []limit.Use{old}) {
			t.Fatalf("%s passed twice: its counter was lost", who)
		}
	}
}

func TestRequestsAreCountedWhenAllBucketsAreFull(t *testing.T) {
	const count = 2400
	g := newGate(count, time.Minute)
	passed := 0
	for i := range 3 * count { // each window is used up by an even stream
		if g.at(time.Duration(i) * time.Minute / count) {
			passed++
		}
	}
	if passed < 3*count-3*count/240 || passed > 3*count {
		t.Errorf("%d of %d passed at the very pace of the limit", passed, 3*count)
	}
}

func TestIdleCountersAreEvictedForNewOnes(t *testing.T) {
	l := limit.New(start, limit.Options{})
	lim := l.Limit(limit.Spec{ID: "1", Count: 5, Per: time.Second})
	for i := range 100_000 {
		now := start.Add(time.Duration(i) * time.Millisecond)
		l.Take(now, []limit.Use{{Limit: lim, Caller: fmt.Append(nil, "a", i)}})
	}
	if n := l.Counters(); n > 4000 {
		t.Errorf("%d counters with 1,000 callers a second, want at most 4,000", n)
	}
}

// TestAFullTableKeepsItsLimits lets random callers of random limits
// come and go in a table too small for them.
func TestAFullTableKeepsItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		room := rapid.IntRange(1, 20).Draw(t, "room")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		l := limit.New(start, limit.Options{Counters: room})
		limits := []*limit.Limit{
			l.Limit(limit.Spec{ID: "1", Count: 3, Per: time.Second}),
			l.Limit(limit.Spec{ID: "2", Count: 2, Per: time.Minute}),
			l.Limit(limit.Spec{ID: "3", Count: 2000, Per: time.Second}),
		}
		passed := map[string][]time.Duration{}
		now := time.Duration(0)
		for range 500 {
			now += time.Duration(rng.Int64N(int64(200 * time.Millisecond)))
			i, who := rng.IntN(2), fmt.Sprint("a", rng.IntN(30))
			uses := []limit.Use{{Limit: limits[i], Caller: []byte(who)}, {Limit: limits[2], Caller: []byte(who)}}
			if rng.IntN(2) == 0 {
				uses = uses[:1]
			}
			if l.Take(start.Add(now), uses) {
				id := fmt.Sprint(i, who)
				passed[id] = append(passed[id], now)
				count, per := []int{3, 2}[i], []time.Duration{time.Second, time.Minute}[i]
				if list := passed[id]; len(list) > count && now-list[len(list)-1-count] < per {
					t.Fatalf("caller %s passed more than %d times in %v", who, count, per)
				}
			}
			if n := l.Counters(); n > room || n < 0 {
				t.Fatalf("%d counters in a table of %d", n, room)
			}
		}
	})
}

func TestConcurrentCallersNeverGetMoreThanTheLimit(t *testing.T) {
	l := limit.New(time.Now(), limit.Options{Counters: 100})
	fast := l.Limit(limit.Spec{ID: "1", Count: 700, Per: time.Hour})
	wide := l.Limit(limit.Spec{ID: "2", Count: 1500, Per: time.Hour})
	for g := range 4 { // those who came first have counters of their own
		l.Take(time.Now(), []limit.Use{{Limit: fast, Caller: fmt.Append(nil, "k", g)}})
	}
	var mine, all atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			who := fmt.Append(nil, "k", g%4)
			uses := []limit.Use{{Limit: fast, Caller: who}, {Limit: wide}}
			if g%2 == 0 {
				uses[0], uses[1] = uses[1], uses[0]
			}
			for i := range 2000 {
				if l.Take(time.Now(), uses) {
					all.Add(1)
					if g%4 == 0 {
						mine.Add(1) // of at most 699: one is gone
					}
				}
				if i%10 == 0 { // other callers keep the table full
					l.Take(time.Now(), []limit.Use{{Limit: fast, Caller: fmt.Append(nil, "x", g, i)}})
				}
			}
		})
	}
	wg.Wait()
	if all.Load() != 1500 || mine.Load() > 699 {
		t.Errorf("%d passed in all and %d of one caller, want 1500 and at most 699", all.Load(), mine.Load())
	}
}

// A request may reserve memory for a counter, and find after a search for more memory that another
// request has created the counter meanwhile. Then it returns what it reserved.
func TestReservedCountersAreReturned(t *testing.T) {
	l := limit.New(start, limit.Options{Counters: 64})
	short := l.Limit(limit.Spec{ID: "1", Count: 9, Per: time.Millisecond})
	full := l.Limit(limit.Spec{ID: "2", Count: 9, Per: 24 * time.Hour})
	for i := range 64 {
		l.Take(start, []limit.Use{{Limit: full, Caller: fmt.Append(nil, "k", i)}})
	}
	before := l.Counters()
	const others = 3
	for round := range 5_000 {
		now := start.Add(time.Duration(2*round+2) * time.Millisecond) // the counters of the last round are empty
		caller := fmt.Append(nil, "k", round)
		var begin, done sync.WaitGroup
		begin.Add(1)
		for range others {
			done.Go(func() {
				begin.Wait()
				l.Take(now, []limit.Use{{Limit: short, Caller: caller}})
			})
		}
		done.Go(func() {
			begin.Wait()
			l.Take(now, []limit.Use{{Limit: short, Caller: caller}, {Limit: full, Caller: fmt.Append(nil, "new", round)}})
		})
		begin.Done()
		done.Wait()
	}
	if n := l.Counters(); n < before || n > before+8 { // and those of the last round
		t.Errorf("%d counters, and %d before", n, before)
	}
	l.Retain(nil)
	if n := l.Counters(); n != 0 {
		t.Errorf("%d counters are reserved, and there is none", n)
	}
}

func TestCallersAreNamedByWhatTheLimitCounts(t *testing.T) {
	l := limit.New(start, limit.Options{})
	key := &caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Tenant: "t1"}
	user := &caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "t1"}
	nobody := &caller.Caller{}
	v4, mapped := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("::ffff:192.0.2.1")
	v6 := netip.MustParseAddr("2001:db8:1:2:3::1%eth0")
	rows := []struct {
		by      string
		who     *caller.Caller
		address netip.Addr
		want    string
	}{
		{"", key, v4, "kkey_1"}, {"", user, v4, "uu1"}, {"", nobody, v4, "a192.0.2.1"}, {"", nobody, mapped, "a192.0.2.1"},
		{"ip", key, v4, "a192.0.2.1"}, {"ip", nobody, v6, "a2001:db8:1:2::"},
		{"key", key, v4, "kkey_1"}, {"key", user, v4, "uu1"},
		{"user", user, v4, "uu1"}, {"user", key, v4, "kkey_1"}, {"user", nobody, v4, "a192.0.2.1"},
		{"tenant", key, v4, "tt1"}, {"tenant", user, v4, "tt1"}, {"tenant", nobody, v4, "a192.0.2.1"},
		{"global", key, v4, ""},
	}
	for _, row := range rows {
		lim := l.Limit(limit.Spec{ID: row.by, Count: 1, Per: time.Second, By: row.by})
		if got := string(lim.AppendCaller(nil, row.who, row.address)); got != row.want {
			t.Errorf("by %q of a %v at %v: %q, want %q", row.by, row.who.Kind, row.address, got, row.want)
		}
	}
}

func TestADecisionAllocatesNothing(t *testing.T) {
	for _, count := range []int{600, 5000} {
		l := limit.New(start, limit.Options{})
		uses := []limit.Use{
			{Limit: l.Limit(limit.Spec{ID: "1", Count: count, Per: time.Minute}), Caller: []byte("k1")},
			{Limit: l.Limit(limit.Spec{ID: "2", Count: 9, Per: time.Second}), Caller: []byte("a1")},
		}
		now, head := start, make([]byte, 0, 256)
		step := func() {
			now = now.Add(50 * time.Millisecond)
			l.Take(now, uses)
			head = limit.AppendState(limit.AppendPolicy(head[:0], uses), uses)
		}
		for range 3000 {
			step()
		}
		if n := testing.AllocsPerRun(2000, step); n != 0 {
			t.Errorf("%d/minute: %v allocations a decision, want 0", count, n)
		}
	}
}

func TestImpossibleLimitsPanic(t *testing.T) {
	for _, spec := range []limit.Spec{{Per: time.Second}, {Count: 1}} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.HasPrefix(fmt.Sprint(r), "BUG:") {
					t.Errorf("%+v: recovered %v, want a BUG", spec, r)
				}
			}()
			limit.New(start, limit.Options{}).Limit(spec)
		}()
	}
}

func BenchmarkTake(b *testing.B) {
	for _, count := range []int{600, 100_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			l := limit.New(time.Now(), limit.Options{})
			lim := l.Limit(limit.Spec{ID: "1", Count: count, Per: time.Second})
			var callers atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				uses := []limit.Use{{Limit: lim, Caller: fmt.Append(nil, "k", callers.Add(1))}}
				for pb.Next() {
					l.Take(time.Now(), uses)
				}
			})
		})
	}
}

// parts returns one limit as each of several nodes has it.
func parts(count, nodes int, per time.Duration) (all []*gate) {
	for node := range nodes {
		g := newGate(count, per)
		g.limiter.Divide(node, nodes)
		all = append(all, g)
	}
	return all
}

func TestThePartsOfAllNodesAreTheLimit(t *testing.T) {
	for _, row := range []struct{ count, nodes int }{{600, 3}, {601, 3}, {602, 3}, {1, 3}, {2, 3}, {5, 5}, {1001, 2}, {5000, 7}, {7, 1}} {
		passed, least, most := 0, row.count, 0
		for _, g := range parts(row.count, row.nodes, time.Minute) {
			mine := 0
			for range row.count + 1 {
				if g.at(time.Second) {
					mine++
				}
			}
			passed += mine
			least, most = min(least, mine), max(most, mine)
		}
		if passed != row.count || most-least > 1 {
			t.Errorf("%d nodes with %d/minute: %d passed, from %d to %d on a node", row.nodes, row.count, passed, least, most)
		}
	}
}

func TestTheHeadersOfADividedLimitTellThePart(t *testing.T) {
	for i, want := range []string{
		`"601/minute";q=201;w=60 "601/minute";r=200;t=60`, `"601/minute";q=200;w=60 "601/minute";r=199;t=60`,
		`"601/minute";q=200;w=60 "601/minute";r=199;t=60`,
	} {
		g := parts(601, 3, time.Minute)[i]
		g.at(0)
		if got := fmt.Sprintf("%s %s", limit.AppendPolicy(nil, g.uses), limit.AppendState(nil, g.uses)); got != want {
			t.Errorf("node %d: %s\n   want %s", i, got, want)
		}
		if got := string(limit.AppendWholePolicy(nil, g.uses)); got != `"601/minute";q=601;w=60` {
			t.Errorf("the whole: %s", got)
		}
	}
}

func TestANodeWithoutAPartRefusesForAWindow(t *testing.T) {
	g := parts(1, 2, time.Minute)[1]
	if g.at(0) {
		t.Error("the second of two nodes admits a request of 1/minute")
	}
	if got := limit.RetryAfter(g.uses); got != 60 {
		t.Errorf("retry after %d s, want 60", got)
	}
	if got := fmt.Sprintf("%s %s", limit.AppendPolicy(nil, g.uses), limit.AppendState(nil, g.uses)); got != `"1/minute";q=0;w=60 "1/minute";r=0;t=60` {
		t.Error(got)
	}
}

// TestRetryAfterIsTrueWhenAPartShrinks: a refused caller is admitted after that time, and not a
// second before.
func TestRetryAfterIsTrueWhenAPartShrinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.OneOf(rapid.IntRange(2, 40), rapid.SampledFrom([]int{1001, 1500})).Draw(t, "count")
		nodes := rapid.IntRange(2, 5).Draw(t, "nodes")
		counters := rapid.SampledFrom([]int{1, 1000}).Draw(t, "counters") // one: with a debt, or in the sketch
		l := limit.New(start, limit.Options{Counters: counters})
		lim := l.Limit(limit.Spec{ID: "1", Count: count, Per: time.Minute})
		uses := []limit.Use{{Limit: lim, Caller: []byte("k1")}}
		now := time.Duration(0)
		for range rapid.IntRange(1, count).Draw(t, "requests") {
			now += time.Duration(rapid.IntRange(0, int(40*time.Second)/count).Draw(t, "pause"))
			l.Take(start.Add(now), uses)
		}
		node := rapid.IntRange(0, nodes-1).Draw(t, "node")
		l.Divide(node, nodes)
		if l.Take(start.Add(now), uses) || count/nodes == 0 {
			return
		}
		if uses[0].Remaining != 0 {
			t.Fatalf("refused with %d remaining", uses[0].Remaining)
		}
		reset := now + uses[0].Reset
		if before := reset - time.Nanosecond; before > now && l.Take(start.Add(before), uses) {
			t.Fatalf("admitted at %v, before %v", before, reset)
		}
		if !l.Take(start.Add(reset), uses) {
			t.Fatalf("refused at %v, when one should be admitted; another at %v", reset, reset+uses[0].Reset)
		}
	})
}
