package sandbox

import (
	"context"
	"time"

	"github.com/tetratelabs/wazero/api"
	"golang.org/x/sys/unix"

	"runner.example/hostabi"
)

// slice is how many units of fuel a guest gets at a time. A unit is a pass
// through a loop or a call, and one more for every 64 ns that it takes at worst
// (see internal/wasm), so by measurement a slice lasts from some 13 µs, in the
// tightest loops, to 2 ms, when every load misses the caches; at its end the guest
// calls refill, and only there (and in host calls) can the collector stop it, the
// scheduler give its processor to others, or its time be over. A call of refill
// takes 0.1 µs.
const slice = 1 << 15

// A page of memory that is touched for the first time costs 1.6 µs more than any
// other (2.1 GHz EPYC), which the weight of an instruction does not have in it, or
// all slices would be shorter than they need to be. So a slice is shortSlice while
// there is more memory than smallMemory. A unit pays for two stores at most, so such
// a slice spends 7 ms on new pages when it touches one in a pass, and 13 at worst;
// a slice of small memory 3 ms. All slices that short would cost Go programs 6 %;
// few handlers have more than smallMemory.
const (
	shortSlice  = 1 << 12
	smallMemory = 8 << 20
)

// nextSlice is how much fuel there is for the memory that the guest has.
func (s *sandbox) nextSlice() int64 {
	if s.memory.size > smallMemory {
		return shortSlice
	}
	return slice
}

// measureEvery is how often the processor's clock is read: it costs two system
// calls.
const measureEvery = time.Millisecond

// meter measures one run. Times are those of Engine.now.
type meter struct {
	slices  int           // granted
	granted int64         // units in them, but for those taken back
	hosted  time.Duration // that host functions computed before the second slice
	first   time.Duration

	mark   time.Duration // up to here time was charged
	waited time.Duration // that the guest had waited then
	thread int           // on which it ran then
	cpu    time.Duration // of that thread
}

// refill is the host function that guests call when their fuel is spent, and when
// their memory grows.
func refill(ctx context.Context, _ api.Module, stack []uint64) {
	s := ctx.(*hostabi.Guest).Owner.(*sandbox)
	stack[0] = uint64(s.refill())
}

// refill returns how much fuel there is next. It ends the run, by a panic of
// hostabi or with errCrowded, when there is none.
func (s *sandbox) refill() uint32 {
	call, m, now := s.guest.Call(), &s.meter, s.engine.now()
	m.slices++
	s.settleFuel()
	next := s.nextSlice()
	m.granted += next
	if m.slices == 2 { // until now it was a short run, whose own time is too little to count
		m.first = now - m.hosted
		m.remark(now, call)
		s.owed = 0
		call.Spend(m.hosted)
		return uint32(next)
	}
	var spent time.Duration
	if now-m.mark >= measureEvery {
		spent = m.spent(now, call)
		m.remark(now, call)
	}
	if s.turnDue(now) {
		spent += m.spent(now, call)
		s.takeTurn()
		m.remark(s.engine.now(), call)
	}
	call.Spend(spent)
	return uint32(next)
}

// settleFuel makes what is left of a slice not count as granted.
func (s *sandbox) settleFuel() {
	if left := api.DecodeI32(s.fuel.Get()); left > 0 {
		s.meter.granted -= int64(left)
	}
}

// worked is told that host functions have computed for a while, which takes no
// fuel: the slice ends, so that the guest's time is looked at where it is counted
// next.
func (s *sandbox) worked(d time.Duration) {
	s.settleFuel()
	s.fuel.Set(0)
	if s.meter.slices == 1 {
		s.meter.hosted += d
	}
}

// spent is the processor time since the mark: that of the thread, when the
// guest is still on it, and never more than has passed.
func (m *meter) spent(now time.Duration, call *hostabi.Call) time.Duration {
	passed := now - m.mark - (call.Waited() - m.waited)
	if unix.Gettid() == m.thread {
		passed = min(passed, threadTime()-m.cpu)
	}
	return max(0, passed)
}

func (m *meter) remark(now time.Duration, call *hostabi.Call) {
	m.mark, m.waited = now, call.Waited()
	m.thread, m.cpu = unix.Gettid(), threadTime()
}

// threadTime is the processor time of the thread that calls it.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 1<<63 - 1 // then the time that passed counts
	}
	return time.Duration(t.Nano())
}

// turnDue reports whether the guest must take a turn, or let others have
// theirs.
func (s *sandbox) turnDue(now time.Duration) bool {
	if r := &s.runner; r.holding {
		return now-r.since >= turnTime && s.engine.turns.wanted()
	}
	return now-s.meter.first >= longAfter
}

// takeTurn ends the run when there is no use in waiting for a turn. When it is
// the request's time that ends, whoever looks at the clock next ends the run.
func (s *sandbox) takeTurn() {
	t, r, ctx := s.engine.turns, &s.runner, s.guest.Call().Context
	if r.holding {
		_ = t.pass(ctx, r)
	} else if t.take(ctx, r) == errCrowded {
		panic(errCrowded)
	}
}

// giveTurn gives the turn back, if there is one. After a request that is when the
// sandbox is restored: that takes its time, too, when much was touched.
func (s *sandbox) giveTurn() {
	if s.runner.holding {
		s.engine.turns.give(&s.runner)
	}
}

// waits is told when the guest begins and ends to wait for something. Meanwhile
// others have its turn, and its place; when it has waited, it waits for a place.
func (s *sandbox) waits(begins bool) {
	places := &s.engine.places
	switch {
	case begins:
		s.giveTurn()
		if s.place != nil {
			s.bed = s.memory.charged
			s.resting = places.rest(s.place, s.bed)
		}
	case s.resting:
		s.resting = false
		began := s.engine.now()
		places.resume(s.guest.Call().Context, s.place, s.bed)
		s.queued += s.engine.now() - began
	}
}
