package sandbox

import (
	"context"
	"time"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/internal/system/process"
	"runner.example/runtime/cpuqueue"
)

// slice is how many units of fuel a guest gets at a time. A unit is a pass through a loop or
// a call, and one more for every 64 ns that it takes at worst (see internal/wasm). Measured,
// a slice lasts from 13 µs in the tightest loops to 2 ms when every load misses the caches.
// At its end the guest calls refill, which takes 0.1 µs. Only there and in host calls can
// the garbage collector and Go's scheduler stop the guest, and its time be over.
const slice = 1 << 15

// The first write to a page costs 1.6 µs (2.1 GHz EPYC), which the weight of an instruction
// does not include: otherwise all slices would be too short. So a slice is shortSlice while
// there is more memory than smallMemory. A unit stands for at most two stores. So such a
// slice spends 7 ms on new pages if each pass touches one, and at worst 13 ms; a slice with
// small memory 3 ms. If all slices were that short, Go programs would take 6 % longer; few
// handlers have more than smallMemory.
const (
	shortSlice  = 1 << 12
	smallMemory = 8 << 20
)

// nextSlice is the next slice's fuel for the guest's amount of memory.
func (s *sandbox) nextSlice() int64 {
	if s.memory.Size() > smallMemory {
		return shortSlice
	}
	return slice
}

// A run that has computed for longAfter is long: it goes on only with a CPU slot
// (internal/cpuqueue), and is asked every yieldEvery whether another run goes first. While long
// runs wait for a CPU slot and new ones for an instance slot, a run is long after crowdedAfter:
// otherwise the beginnings of many long runs would delay all short runs.
const (
	longAfter    = 2 * time.Millisecond
	crowdedAfter = longAfter / 4
	yieldEvery   = 5 * time.Millisecond
)

// measureEvery is how often the thread's CPU time is read, which costs two system calls.
const measureEvery = time.Millisecond

// meter measures one run. Times are those of Options.Now.
type meter struct {
	slices  int           // granted
	granted int64         // their units, without those that were withdrawn
	hosted  time.Duration // that host functions computed before the second slice
	first   time.Duration

	mark   time.Duration // up to which time is charged
	waited time.Duration // that the guest had waited then
	thread int           // on which it ran then
	cpu    time.Duration // of that thread
}

// refill is the host function that a guest calls when its fuel is spent, and when its memory
// grows.
func refill(ctx context.Context, _ api.Module, stack []uint64) {
	s := ctx.(*guest).sandbox
	s.block = api.DecodeI32(stack[0])
	stack[0] = uint64(s.refill())
	s.block = -1
}

// refill returns the fuel of the next slice. If the run's time is over or the CPU queue is
// full, it ends the run by a panic.
func (s *sandbox) refill() uint32 {
	call, m, now := s.guest.Call(), &s.meter, s.engine.options.Now()
	m.slices++
	s.settleFuel()
	next := s.nextSlice()
	m.granted += next
	if s.stop.because != nil {
		s.checkStop(now)
		return uint32(next)
	}
	if m.slices == 2 { // until now the run was short, and its own time too little to count
		m.first = now - m.hosted
		m.remark(s.engine, now, call.Waited())
		s.owed = 0
		s.charge(call, m.hosted, now)
		return uint32(next)
	}
	spent, err := s.measureRun(call, now)
	if err != nil {
		panic(err)
	}
	s.charge(call, spent, now)
	return uint32(next)
}

// Working is refill within a host function, which must end with the error. While the run is
// short, neither it nor its host functions are measured.
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
	spent, err := s.measureRun(call, now)
	if err != nil {
		return err
	}
	return call.Charge(spent)
}

// measureRun is measure for a run, which leaves its thread if it may wait.
func (s *sandbox) measureRun(call *hostabi.Call, now time.Duration) (time.Duration, error) {
	if s.cpuDue(now) {
		s.leaveThread()
	}
	return s.measure(call.Context, now, call.Waited())
}

// account is the CPU time of one run, or of other work for a request.
type account struct {
	engine *Engine
	meter  meter
	task   cpuqueue.Task
	by     *callerState // nil until the work is slow
	slot   slot
}

// slot is the instance slot of a run.
type slot struct {
	claim          // without a handler the run has no slot
	memory *memory // of the sandbox
	parked bool
	queued bool  // it has parked to wait for a CPU slot
	bytes  int64 // of memory that it parked with

	began  time.Duration // when it began to wait for something other than a CPU slot
	waited time.Duration // for slots after such waits, in this run
	waits  bool          // it has waited for something other than a CPU slot
}

// measure returns the CPU time to charge now. It acquires or yields a CPU slot if that is
// due. waited is how long the work has waited for other things. The error is cpuqueue.ErrFull
// or hostabi.ErrTimeOver.
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

// settleFuel no longer counts the rest of a slice as granted.
func (s *sandbox) settleFuel() {
	if left := api.DecodeI32(s.fuel.Get()); left > 0 {
		s.meter.granted -= int64(left)
	}
}

// Worked is called after host functions have computed for a while, which takes no fuel. It
// ends the slice, so that the guest's time is measured at its next fuel check.
func (s *sandbox) Worked(d time.Duration) {
	if s.guest.Call().Starting() { // two starts have the same slices, so that they leave the same on the stack
		return
	}
	s.settleFuel()
	s.fuel.Set(0)
	if s.meter.slices == 1 {
		s.meter.hosted += d
	}
}

// spent is the CPU time since the mark: that of the thread, if the guest is still on it, and
// at most the time that has passed.
func (m *meter) spent(e *Engine, now, waited time.Duration) time.Duration {
	passed := now - m.mark - (waited - m.waited)
	if process.ThreadID() == m.thread {
		passed = min(passed, e.options.CPUTime()-m.cpu)
	}
	return max(0, passed)
}

func (m *meter) remark(e *Engine, now, waited time.Duration) {
	m.mark, m.waited = now, waited
	m.thread, m.cpu = process.ThreadID(), e.options.CPUTime()
}

// threadTime is the CPU time of the thread that calls it.
func threadTime() time.Duration {
	t, known := process.ThreadTime()
	if !known {
		return 1<<63 - 1 // then spent counts the time that has passed
	}
	return t
}

// cpuDue reports whether the work must acquire or yield a CPU slot, or yield its turn.
func (a *account) cpuDue(now time.Duration) bool {
	if a.engine.slots.background.due(a.slot.turn, now) {
		return true
	}
	if t := &a.task; t.Running() {
		return now-t.RunsSince() >= yieldEvery && a.engine.cpu.Contended()
	}
	took := now - a.meter.first
	return took >= longAfter || took >= crowdedAfter && a.engine.cpu.Contended() && a.engine.slots.Contended()
}

// acquireCPU acquires a CPU slot, or yields it and acquires one again. While the work waits for
// it, its guest parks. The error is cpuqueue.ErrFull or hostabi.ErrTimeOver.
func (a *account) acquireCPU(ctx context.Context) (err error) {
	if err := a.yieldTurn(ctx); err != nil {
		return err
	}
	q, t, waits := a.engine.cpu, &a.task, false
	if t.Running() {
		waits = q.Yield(t)
	} else if waits, err = q.Join(ctx, t, &a.caller().cpu); err != nil {
		return err
	}
	switch {
	case !waits:
	case a.park(true):
		if err = q.Wait(ctx, t); err != nil && err != cpuqueue.ErrFull {
			err = hostabi.ErrTimeOver
		}
	case q.Leave(t): // else it has a slot meanwhile
		return cpuqueue.ErrFull
	}
	a.unpark(ctx)
	return err
}

// yieldTurn lets other background guests go first, and requests. A guest that serves a request has no turn.
func (a *account) yieldTurn(ctx context.Context) error {
	b, t := &a.engine.slots.background, a.slot.turn
	if !b.due(t, a.engine.options.Now()) {
		return nil
	}
	t.waits = b.turns.Yield(&t.task)
	if !t.waits && !b.besideRequests() {
		return nil
	}
	a.releaseCPU()
	a.leaveSlot()
	if a.unpark(ctx); !t.task.Running() {
		return hostabi.ErrTimeOver
	}
	return nil
}

// caller returns the state of the caller, which is kept until the end of the work.
func (a *account) caller() *callerState {
	if a.by == nil {
		a.by = a.engine.slots.caller(a.slot.claim)
	}
	return a.by
}

// park gives the instance slot back, if the work has one, while it waits for a CPU slot (computes)
// or for something else. false: the work must not wait.
func (a *account) park(computes bool) bool {
	p := &a.slot
	if p.parked || p.handlerState == nil {
		return true // without a handler it has no slot, as in the initialization
	}
	few := p.turn != nil // there are few of these, so they may keep their slots
	if few && computes {
		return true
	}
	if a.leaveSlot(); p.parked && p.turn != nil {
		a.engine.slots.background.release(p.turn)
	}
	if p.queued = p.parked && computes; p.queued {
		p.countQueued(1)
	}
	return p.parked || few
}

// leaveSlot gives the instance slot back, if the guest finds a place. A background guest does.
func (a *account) leaveSlot() {
	p := &a.slot
	p.memory.chargeWritten()
	p.bytes = p.memory.charged
	defer func() {
		if !p.parked {
			p.memory.chargeAll()
		}
	}()
	p.parked = (p.turn != nil || a.engine.memory.hasReserve()) && a.engine.slots.park(p.claim, a.caller(), p.bytes)
}

// unpark takes an instance slot again, if the guest has parked.
func (a *account) unpark(ctx context.Context) {
	p := &a.slot
	if !p.parked {
		return
	}
	if p.queued {
		p.countQueued(-1)
	}
	p.parked, p.queued = false, false
	defer p.memory.chargeAll()
	a.engine.slots.unpark(ctx, p.claim, a.by, p.bytes, a.task.Running())
}

// releaseCPU releases the CPU slot, if there is one.
func (a *account) releaseCPU() {
	if a.task.Running() {
		a.engine.cpu.Release(&a.task)
	}
}

// finish ends the work and releases its CPU slot. It is called after the sandbox is restored, as that
// takes long, too, if many pages were written.
func (a *account) finish() {
	a.releaseCPU()
	if a.slot.streams {
		a.engine.slots.endStream(a.by)
	}
	if a.by != nil {
		a.engine.slots.forget(a.by)
		a.by = nil
	}
	a.slot = slot{}
}

// BeginStream takes a place among the guests whose answers are streamed.
func (s *sandbox) BeginStream() error {
	if s.slot.handlerState == nil || s.slot.streams {
		return nil
	}
	if !s.engine.slots.beginStream(s.caller()) {
		s.engine.metrics.overload.With("streams").Inc()
		return errNoStream
	}
	s.slot.streams = true
	return nil
}

// Wait is called when the guest begins to wait for something, and when it ends. Meanwhile other
// runs have its CPU slot and its instance slot. At the end it waits for an instance slot, and
// before that for a CPU slot if it has computed for long.
func (s *sandbox) Wait(begins bool) error {
	p, now := &s.slot, s.engine.options.Now()
	if begins {
		s.leaveThread()
		s.releaseCPU()
		p.began, p.waits = now, true
		if h := p.handlerState; h != nil && !p.streams {
			h.expect(true)
			s.memory.chargeWritten()
			h.expectMemory(s.memory.charged)
		}
		if !s.park(false) {
			return errCannotPark
		}
		return nil
	}
	s.meter.first += now - p.began
	if p.turn != nil { // its turn comes before the CPU slot
		s.unpark(s.guest.Call().Context)
	}
	var err error
	if s.meter.slices > 1 && s.cpuDue(now) {
		err = s.acquireCPU(s.guest.Call().Context)
	}
	s.unpark(s.guest.Call().Context)
	p.waited += s.engine.options.Now() - now
	return err
}
