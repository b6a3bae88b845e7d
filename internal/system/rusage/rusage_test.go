package rusage_test

import (
	"runtime"
	"testing"

	"runner.example/internal/system/rusage"
)

func TestComputingUsesTime(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	process, id := rusage.Process(), rusage.ThreadID()
	thread, known := rusage.Thread()
	for n := 0; rusage.Process() == process; n++ { // its resolution may be coarse
		if n > 1e9 {
			t.Fatal("the CPU time of the process does not change")
		}
	}
	if now, _ := rusage.Thread(); known && now <= thread {
		t.Errorf("the CPU time of the thread was %s, and is %s", thread, now)
	}
	if now := rusage.ThreadID(); now != id {
		t.Errorf("the same thread is %d, and was %d", now, id)
	}
	other := make(chan int)
	go func() {
		runtime.LockOSThread()
		other <- rusage.ThreadID()
	}()
	if <-other == id {
		t.Error("another thread has the same number")
	}
}
