package runtime

import (
	goruntime "runtime"
	"runtime/debug"
	"time"

	"runner.example/internal/system/process"
)

// MemoryUse has memory limits and the memory in use, in bytes.
type MemoryUse struct {
	// HandlersLimit is the limit of all handlers together, Handlers what they use.
	HandlersLimit, Handlers int64
	// BodiesLimit is the limit of large bodies, AnswersLimit that of answers that wait for
	// slow clients.
	BodiesLimit, AnswersLimit int64
}

// MemoryUse returns the memory limits in force and the memory in use. It may be called by
// any goroutine.
func (r *Runtime) MemoryUse() MemoryUse {
	limit, used := r.engine.Memory()
	return MemoryUse{
		HandlersLimit: limit, Handlers: used,
		BodiesLimit: r.opt.Front.MaxBodyMemory, AnswersLimit: r.opt.Front.MaxAnswerMemory,
	}
}

// busyTime is the CPU time in a second from which on the process counts as busy.
const busyTime = 200 * time.Millisecond

// returnMemory frees what loading and a replaced bundle have left: the collector unmaps the code of
// modules that are closed. The free memory is returned to the system in the first second in which the
// process is not busy: a busy one needs it again at once, and each page costs it a fault. One call at a
// time waits for that. A runtime that closes does not wait for the collector: the process ends.
func (r *Runtime) returnMemory() {
	if r.serving.Err() != nil {
		return
	}
	goruntime.GC()
	if !r.returning.CompareAndSwap(false, true) {
		return
	}
	defer r.returning.Store(false)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for before := process.CPUTime(); ; {
		select {
		case <-r.serving.Done():
			return
		case <-tick.C:
		}
		now := process.CPUTime()
		if now-before < busyTime {
			debug.FreeOSMemory()
			return
		}
		before = now
	}
}
