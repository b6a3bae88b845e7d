package gcpace_test

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"runner.example/node/gcpace"
)

// percent returns what the heap may grow between collections.
func percent() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

var garbage []byte

func TestTheHeapGrowsByWhatIsAllocatedInASecond(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(90))
	const mib = 1 << 20
	unused := make([]byte, 256*mib)
	runtime.GC()

	p := gcpace.New()
	now := time.Now()
	p.Adjust(now)
	idle := percent()
	if idle > 10 { // 4 MiB, or the few that a test has with pointers
		t.Errorf("a heap of 256 MiB without pointers grows by %d %% at rest, want at most 10", idle)
	}
	// allocate allocates so many bytes before the next adjustment, a second later.
	allocate := func(bytes int) uint64 {
		for range bytes / mib {
			garbage = make([]byte, mib)
		}
		now = now.Add(time.Second)
		p.Adjust(now)
		return percent()
	}
	if got := allocate(20 * mib); got < 6 || got > 9 {
		t.Errorf("the heap grows by %d %% at 20 MiB a second, want 20 of 256 MiB", got)
	}
	if got := allocate(2000 * mib); got < 10 || got > 14 {
		t.Errorf("the heap grows by %d %% at 2,000 MiB a second, want 32 of 256 MiB", got)
	}
	if got := allocate(0); got > idle+1 {
		t.Errorf("the heap grows by %d %% at rest again, want %d", got, idle)
	}
	runtime.KeepAlive(unused)
	p.End()
	if got := percent(); got != 90 {
		t.Errorf("the heap grows by %d %% after the end, want 90", got)
	}
}

func TestASmallHeapMayDouble(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(90))
	runtime.GC()
	p := gcpace.New()
	defer p.End()
	p.Adjust(time.Now())
	if got := percent(); got != 100 {
		t.Errorf("the heap of a small program grows by %d %%, want 100", got)
	}
}

func TestTheEnvironmentComesFirst(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(90))
	t.Setenv("GOGC", "90")
	stop := gcpace.Start()
	stop()
	if got := percent(); got != 90 {
		t.Errorf("the heap grows by %d %% although GOGC is set, want 90", got)
	}
}
