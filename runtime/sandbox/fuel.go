package sandbox

import (
	"context"
	"time"

	"github.com/tetratelabs/wazero/api"
	"golang.org/x/sys/unix"

	"runner.example/internal/cpuqueue"
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

// A run that has computed for longAfter is long: it goes on only with a CPU slot
// (internal/cpuqueue), and is asked every yieldEvery whether another run goes first.
const (
	longAfter  = 2 * time.Millisecond
	yieldEvery = 5 * time.Millisecond
)

// measureEvery is how often the processor's clock is read: it costs two system
// calls.
const measureEvery = time.Millisecond

// meter measures one run. Times are those of Options.Now.
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
	s := ctx.(*guest).sandbox
	stack[0] = uint64(s.refill())
}

// refill returns how much fuel there is next. It ends the run, by a panic of
// hostabi or with cpuqueue.ErrFull, when there is none.
func (s *sandbox) refill() uint32 {
	call, m, now := s.guest.Call(), &s.meter, s.engine.options.Now()
	m.slices++
	s.settleFuel()
	next := s.nextSlice()
	m.granted += next
	if m.slices == 2 { // until now it was a short run, whose own time is too little to count
		m.first = now - m.hosted
		m.remark(s.engine, now, call.Waited())
		s.owed = 0
		call.Spend(m.hosted)
		return uint32(next)
	}
	spent, err := s.measure(call.Context, now, call.Waited())
	if err != nil {
		panic(err)
	}
	call.Spend(spent)
	return uint32(next)
}

// Working is refill in the midst of a host function, which must end with the error. A
// run that is short is not measured: nor is its host function, until it is none.
func (s *sandbox) Working() error {
	call, m, now := s.guest.Call(), &s.meter, s.engine.options.Now()
	if m.slices == 1 {
		hosted := m.hosted + s.guest.Unreported()
		if hosted < measureEvery {
			return nil
		}
		m.slices, m.first = 2, now-hosted
		m.remark(s.engine, now, call.Waited())
		s.owed = 0
		if err := call.Charge(hosted); err != nil {
			return err
		}
	}
	spent, err := s.measure(call.Context, now, call.Waited())
	if err != nil {
		return err
	}
	return call.Charge(spent)
}

// account is what one run, or other work for a request, has of the processors.
type account struct {
	engine *Engine
	meter  meter
	task   cpuqueue.Task
}

// measure gives the processor time to be charged at the moment, and has a turn taken
// or passed on when one is due. waited is how long the work has waited for other
// things. cpuqueue.ErrFull says that there is no use in waiting for a turn; when it is the
// time of ctx that ends, the one who looks at the clock next ends the work.
func (a *account) measure(ctx context.Context, now, waited time.Duration) (spent time.Duration, err error) {
	m := &a.meter
	if now-m.mark >= measureEvery {
		spent = m.spent(a.engine, now, waited)
		m.remark(a.engine, now, waited)
	}
	if a.cpuDue(now) {
		spent += m.spent(a.engine, now, waited)
		err = a.acquireCPU(ctx)
		m.remark(a.engine, a.engine.options.Now(), waited)
	}
	return spent, err
}

// settleFuel makes what is left of a slice not count as granted.
func (s *sandbox) settleFuel() {
	if left := api.DecodeI32(s.fuel.Get()); left > 0 {
		s.meter.granted -= int64(left)
	}
}

// Worked is told that host functions have computed for a while, which takes no
// fuel: the slice ends, so that the guest's time is looked at where it is counted
// next.
func (s *sandbox) Worked(d time.Duration) {
	s.settleFuel()
	s.fuel.Set(0)
	if s.meter.slices == 1 {
		s.meter.hosted += d
	}
}

// spent is the processor time since the mark: that of the thread, when the
// guest is still on it, and never more than has passed.
func (m *meter) spent(e *Engine, now, waited time.Duration) time.Duration {
	passed := now - m.mark - (waited - m.waited)
	if unix.Gettid() == m.thread {
		passed = min(passed, e.options.CPUTime()-m.cpu)
	}
	return max(0, passed)
}

func (m *meter) remark(e *Engine, now, waited time.Duration) {
	m.mark, m.waited = now, waited
	m.thread, m.cpu = unix.Gettid(), e.options.CPUTime()
}

// threadTime is the processor time of the thread that calls it.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 1<<63 - 1 // then the time that passed counts
	}
	return time.Duration(t.Nano())
}

// cpuDue reports whether the work must take a turn, or let others have theirs.
func (a *account) cpuDue(now time.Duration) bool {
	if t := &a.task; t.Running() {
		return now-t.RunsSince() >= yieldEvery && a.engine.cpu.Contended()
	}
	return now-a.meter.first >= longAfter
}

// acquireCPU fails with cpuqueue.ErrFull alone.
func (a *account) acquireCPU(ctx context.Context) error {
	q, t := a.engine.cpu, &a.task
	if t.Running() {
		_ = q.Yield(ctx, t)
	} else if q.Acquire(ctx, t) == cpuqueue.ErrFull {
		return cpuqueue.ErrFull
	}
	return nil
}

// releaseCPU gives the turn back, if there is one. After a request that is when the
// sandbox is restored: that takes its time, too, when much was touched.
func (a *account) releaseCPU() {
	if a.task.Running() {
		a.engine.cpu.Release(&a.task)
	}
}

// Wait is told when the guest begins and ends to wait for something. Meanwhile
// others have its turn, and its place; when it has waited, it waits for a place.
func (s *sandbox) Wait(begins bool) {
	slots, p := s.engine.slots, &s.parking
	switch {
	case begins:
		s.releaseCPU()
		if p.handler != nil {
			p.bytes = s.memory.charged
			p.parked = slots.park(p.handler, p.bytes)
		}
	case p.parked:
		p.parked = false
		began := s.engine.options.Now()
		slots.unpark(s.guest.Call().Context, p.handler, p.bytes)
		p.waited += s.engine.options.Now() - began
	}
}
