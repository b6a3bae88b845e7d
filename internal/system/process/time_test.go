package process_test

import (
	"runtime"
	"testing"

	"runner.example/internal/system/process"
)

func TestComputingUsesTime(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used, id := process.CPUTime(), process.ThreadID()
	thread, known := process.ThreadTime()
	for n := 0; process.CPUTime() == used; n++ { // its resolution may be coarse
		if n > 1e9 {
			t.Fatal("the CPU time of the process does not change")
		}
	}
	if now, _ := process.ThreadTime(); known && now <= thread {
		t.Errorf("the CPU time of the thread was %s, and is %s", thread, now)
	}
	if now := process.ThreadID(); now != id {
		t.Errorf("the same thread is %d, and was %d", now, id)
	}
	other := make(chan int)
	go func() {
		runtime.LockOSThread()
		other <- process.ThreadID()
	}()
	if <-other == id {
		t.Error("another thread has the same number")
	}
}
