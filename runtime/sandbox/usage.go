package sandbox

import (
	"time"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
)

// Usage is what one run of a handler took.
type Usage struct {
	// Time is that of the guest alone, Restore that of making its sandbox as new
	// again.
	Time, Restore time.Duration
	// Fuel counts passes through loops, calls, and instructions by 64.
	Fuel int64
	// ChangedPages are pages of memory that the run changed, PageBytes each;
	// MemoryBytes is all the memory that it had.
	ChangedPages, PageBytes int
	MemoryBytes             int64
	// HostCalls counts calls of the host's functions, MovedBytes what they copied.
	HostCalls, MovedBytes int
}

// Measure is Run, and tells what it took. Measuring makes the run no faster.
func (m *Module) Measure(call *hostabi.Call, handler string) (Usage, error) {
	var u Usage
	err := m.run(call, handler, &u)
	return u, err
}

// measure fills u in for a run that took so long and is not yet restored.
func (s *sandbox) measure(u *Usage, call *hostabi.Call, took time.Duration) {
	left := int64(api.DecodeI32(s.fuel.Get()))
	*u = Usage{
		Time: took, Fuel: int64(s.meter.slices)*slice - left,
		PageBytes: int(osPage), MemoryBytes: int64(s.memory.high),
		HostCalls: call.HostCalls(), MovedBytes: call.Moved(),
	}
	if m := &s.memory; m.image != nil {
		for at := uint64(0); at < m.high; at += osPage {
			if !m.same(at) {
				u.ChangedPages++
			}
		}
	}
}
