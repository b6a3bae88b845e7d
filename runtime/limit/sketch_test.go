package limit_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"runner.example/runtime/limit"
)

// fill has many callers use the whole limit.
func fill(l *limit.Limiter, lim *limit.Limit, kind string, from, n, count int, at time.Duration) {
	uses := make([]limit.Use, 1)
	for i := range n {
		for range count {
			uses[0] = limit.Use{Limit: lim, Caller: fmt.Append(nil, kind, from+i)}
			l.Take(start.Add(at), uses)
		}
	}
}

// passes counts how often the caller passes until it is refused.
func passes(l *limit.Limiter, lim *limit.Limit, who string, at time.Duration) (n int) {
	uses := []limit.Use{{Limit: lim, Caller: []byte(who)}}
	for l.Take(start.Add(at), uses) {
		n++
	}
	return n
}

// TestOneLimitDoesNotExhaustTheOthers has more addresses on one limit than there are
// counters. Callers of other limits, and callers of this one that are known by a key,
// are counted exactly as before.
func TestOneLimitDoesNotExhaustTheOthers(t *testing.T) {
	room, addresses := 2000, 2020
	if os.Getenv("RUNNER_SOAK") != "" {
		room, addresses = 100_000, 101_000
	}
	l := limit.New(start, limit.Options{Counters: room})
	public := l.Limit(limit.Spec{ID: "1", Count: 5, Per: 24 * time.Hour})
	keyed := l.Limit(limit.Spec{ID: "2", Count: 600, Per: time.Minute})
	byIP := l.Limit(limit.Spec{ID: "3", Count: 10, Per: time.Hour, By: "ip"})
	fill(l, public, "a", 0, addresses, 6, 0)
	// Of six pools each has a twelfth of the counters.
	for i := range room / 12 {
		for _, c := range []struct {
			lim  *limit.Limit
			who  string
			want int
		}{
			{keyed, fmt.Sprint("k", i), 600}, {public, fmt.Sprint("k", i), 5}, {byIP, fmt.Sprint("a", i), 10},
		} {
			if i >= 100 && c.want == 600 {
				continue // it takes long
			}
			if got := passes(l, c.lim, c.who, time.Second); got != c.want {
				t.Fatalf("%s passed %d times, want %d", c.who, got, c.want)
			}
		}
	}
	refused := 0
	const unseen = 1000
	for i := range unseen {
		if passes(l, public, fmt.Sprint("a", addresses+i), time.Second) != 5 {
			refused++
		}
	}
	if refused > unseen/100 {
		t.Errorf("%d of %d addresses never seen did not get what is theirs", refused, unseen)
	}
	if n := l.Counters(); n > room {
		t.Errorf("%d counters in a memory of %d", n, room)
	}
}

// TestAnUnseenCallerIsRefusedNoMoreOftenThanTheBound measures how often callers are
// refused because of n others that have no counter, all of which have used up the limit:
// at most (1-e^(-n/w))^4, where w is four times the counters.
func TestAnUnseenCallerIsRefusedNoMoreOftenThanTheBound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	room := 1 << 12
	if os.Getenv("RUNNER_SOAK") != "" {
		room = 1 << 17
	}
	w := 4 * float64(room)
	for _, count := range []int{1, 5} {
		for _, n := range []int{room / 2, room, 4 * room, 8 * room} {
			l := limit.New(start, limit.Options{Counters: room})
			lim := l.Limit(limit.Spec{ID: "1", Count: count, Per: 24 * time.Hour})
			exact := room * 3 / 4
			fill(l, lim, "a", 0, exact+n, count, 0)
			if got := l.Counters(); got != exact {
				t.Fatalf("%d counters, want %d", got, exact)
			}
			const asked = 20_000
			refused := 0
			uses := make([]limit.Use, 2)
			// A second limit that always refuses keeps the asking from being counted.
			full := l.Limit(limit.Spec{ID: "2", Count: 1, Per: 24 * time.Hour, By: "global"})
			l.Take(start, []limit.Use{{Limit: full}})
			for i := range asked {
				uses[0], uses[1] = limit.Use{Limit: lim, Caller: fmt.Append(nil, "a", 10_000_000+i)}, limit.Use{Limit: full}
				l.Take(start, uses)
				if uses[0].Refused {
					refused++
				}
			}
			bound := math.Pow(1-math.Exp(-float64(n)/w), 4)
			// Chance: six standard deviations, and what uneven shards add.
			most := bound*1.1 + 6*math.Sqrt(bound/asked)
			got := float64(refused) / asked
			t.Logf("%d of the limit %d/day: %d without a counter, w = %g: %.4f of unseen callers are refused, bound %.4f", exact+n, count, n, w, got, bound)
			if got > most {
				t.Errorf("%.4f are refused, want at most %.4f", got, most)
			}
		}
	}
}

// TestCallersWithoutACounterAreCountedUpwards compares callers at a full table with the
// plain list of what each was let through: never more than the limit in a window. One
// that shares no cells is let through as often, at most a third of a window late.
func TestCallersWithoutACounterAreCountedUpwards(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	for _, c := range []struct {
		callers int
		alone   bool
	}{{20, true}, {30_000, false}} {
		seed := rand.Uint64()
		t.Logf("%d callers, seed %d", c.callers, seed)
		rng := rand.New(rand.NewPCG(seed, 1))
		const count, per = 5, 30 * time.Second
		l := limit.New(start, limit.Options{Counters: 1})
		lim := l.Limit(limit.Spec{ID: "1", Count: count, Per: per})
		other := l.Limit(limit.Spec{ID: "2", Count: 1_000_000, Per: 1000 * time.Hour})
		l.Take(start, []limit.Use{{Limit: other, Caller: []byte("kfirst")}}) // the one counter there is
		passed := map[int][]time.Duration{}
		now := time.Duration(0)
		steps := 100_000
		pace := 10 * per * time.Duration(c.callers) / time.Duration(steps) / time.Duration(min(c.callers, 100))
		for range steps {
			now += time.Duration(rng.Int64N(int64(2*pace) + 1))
			who := rng.IntN(c.callers)
			uses := []limit.Use{{Limit: lim, Caller: fmt.Append(nil, "a", who)}}
			allowed := l.Take(start.Add(now), uses)
			list := passed[who]
			in := func(window time.Duration) (n int) {
				for i := len(list) - 1; i >= 0 && now-list[i] < window; i-- {
					n++
				}
				return n
			}
			switch {
			case allowed && in(per) >= count:
				t.Fatalf("caller %d passed with %d in the window", who, in(per))
			case !allowed && c.alone && in(per*4/3) < count:
				t.Fatalf("caller %d was refused with %d in the window and a third", who, in(per*4/3))
			case !allowed && uses[0].Reset <= 0 || uses[0].Reset > per*4/3:
				t.Fatalf("caller %d must wait %v", who, uses[0].Reset)
			}
			if allowed {
				passed[who] = append(list, now)
			}
		}
		if l.Counters() != 1 {
			t.Fatalf("%d counters, want that of the first alone", l.Counters())
		}
	}
}

func TestRetryAfterOfAFullTableIsLongEnough(t *testing.T) {
	l := limit.New(start, limit.Options{Counters: 1})
	lim := l.Limit(limit.Spec{ID: "1", Count: 3, Per: time.Minute})
	l.Take(start, []limit.Use{{Limit: l.Limit(limit.Spec{ID: "2", Count: 1, Per: time.Hour}), Caller: []byte("k")}})
	uses := []limit.Use{{Limit: lim, Caller: []byte("a")}}
	for _, at := range []time.Duration{time.Second, 21 * time.Second, 41 * time.Second} {
		if !l.Take(start.Add(at), uses) {
			t.Fatalf("refused at %v", at)
		}
	}
	at := 42 * time.Second
	for range 4 {
		if l.Take(start.Add(at), uses) {
			t.Fatalf("passed at %v", at)
		}
		wait := uses[0].Reset
		if l.Take(start.Add(at+wait-1), uses) {
			t.Fatalf("passed %v after %v, a nanosecond before it should", wait-1, at)
		}
		if !l.Take(start.Add(at+wait), uses) {
			t.Fatalf("refused %v after %v, the time that the header gave", wait, at)
		}
		at += wait
	}
}

// TestSketchesOfMoreLimitsGetNarrowerAndKeepTheirCounts overflows one limit after the other.
func TestSketchesOfMoreLimitsGetNarrowerAndKeepTheirCounts(t *testing.T) {
	const room, callers = 4096, 2000
	l := limit.New(start, limit.Options{Counters: room})
	var limits []*limit.Limit
	for i := range 8 {
		limits = append(limits, l.Limit(limit.Spec{ID: fmt.Sprint(i), Count: 2, Per: time.Hour}))
	}
	fill(l, limits[0], "k", 0, room*3/4, 1, 0) // takes what is in common
	for i, lim := range limits {
		fill(l, lim, "a", 0, callers, 2, time.Duration(i))
	}
	for i, lim := range limits {
		for c := range callers {
			if got := passes(l, lim, fmt.Sprint("a", c), time.Minute); got != 0 {
				t.Fatalf("address %d passed limit %d %d times more", c, i, got)
			}
		}
	}
}

func TestMemoryDoesNotGrowWithTheCallers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	const room = 4096
	l := limit.New(start, limit.Options{Counters: room})
	lim := l.Limit(limit.Spec{ID: "1", Count: 5, Per: 24 * time.Hour})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	fill(l, lim, "a", 0, 2*room, 5, 0)
	before := heap()
	fill(l, lim, "a", 2*room, 40*room, 5, time.Second)
	if after := heap(); after > before+before/10+1<<20 {
		t.Errorf("%d bytes with %d callers, %d with %d", before, 2*room, after, 42*room)
	}
	runtime.KeepAlive(l)
}

// TestAReloadUnderAttackKeepsItsCounters reloads with a limit more and a limit less
// while one is exhausted.
func TestAReloadUnderAttackKeepsItsCounters(t *testing.T) {
	const room = 2000
	l := limit.New(start, limit.Options{Counters: room})
	public := limit.Spec{ID: "1", Count: 5, Per: 24 * time.Hour}
	gone := limit.Spec{ID: "2", Count: 5, Per: 24 * time.Hour}
	fill(l, l.Limit(gone), "a", 0, room, 5, 0)
	fill(l, l.Limit(public), "a", 0, 2*room, 5, 0)

	added := limit.Spec{ID: "3", Count: 3, Per: time.Minute}
	limits := []*limit.Limit{l.Limit(public), l.Limit(added)}
	l.Retain(limits)
	for i := range 2 * room {
		if got := passes(l, limits[0], fmt.Sprint("a", i), time.Second); got != 0 {
			t.Fatalf("address %d passed %d times more after a reload", i, got)
		}
	}
	for i := range 200 {
		if got := passes(l, limits[1], fmt.Sprint("k", i), time.Second); got != 3 {
			t.Fatalf("key %d passed the new limit %d times, want 3", i, got)
		}
	}
	if n := l.Counters(); n > room {
		t.Errorf("%d counters in a memory of %d", n, room)
	}
}
