package sandbox

import (
	"runtime"

	"runner.example/internal/system/process"
)

// A guest writes to a page for the first time by a page fault: until then the page is
// marked, is not private, or does not exist, and in each case the processor must not write
// to it. The kernel counts the faults of each thread. So if a run stayed on one thread, and
// that thread had no fault, the run wrote only to pages that were found before. Then the
// next restore copies to these, and does not scan the memory.
//
// The rule needs three facts:
//
//   - Only the run's goroutine writes to the guest's memory. Operations that run in other
//     goroutines touch neither the call nor the guest (hostabi).
//   - The goroutine does not change its thread. It is locked to it, and where it waits for
//     something else the lock ends, and with it the shortcut.
//   - The kernel counts a fault before the write can succeed. The self-test checks this for
//     writes of the guest and of the kernel.

// threadRun is a run of the guest on one thread.
type threadRun struct {
	locked  bool
	faults  int64 // that the thread had before it; -1: unknown
	faulted bool  // memory.faulted before it
}

// lockThread is called before a run.
func (s *sandbox) lockThread() {
	if s.engine.optimizations.faults && s.memory.Image() != nil {
		runtime.LockOSThread()
		s.thread = threadRun{locked: true, faults: process.ThreadFaults(), faulted: s.memory.faulted}
	}
}

// keepThread lets the run stay on the thread that it has now. Its faults on others are not known.
func (s *sandbox) keepThread() {
	if !s.thread.locked {
		runtime.LockOSThread()
		s.thread = threadRun{locked: true, faults: -1}
	}
}

// leaveThread is called before the goroutine waits: a waiting goroutine must not keep a
// thread.
func (s *sandbox) leaveThread() {
	if s.thread.locked {
		s.thread.locked = false
		runtime.UnlockOSThread()
	}
}

// unlockThread is called after a run.
func (s *sandbox) unlockThread() {
	if s.thread.locked && process.ThreadFaults() == s.thread.faults {
		s.memory.faulted = s.thread.faulted
	}
	s.leaveThread()
}
