package sandbox

import (
	"time"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/runtime/pages"
)

// Usage is what one run of a handler used.
type Usage struct {
	// Time is that of the guest alone; Restore is that of restoring its sandbox or making a
	// new one.
	Time, Restore time.Duration
	// Fuel counts passes through loops and calls, weighted by 64 ns.
	Fuel int64
	// ChangedPages are pages of memory that the run changed, PageBytes each;
	// MemoryBytes is all the memory that it had.
	ChangedPages, PageBytes int
	MemoryBytes             int64
	// HostCalls counts calls of the host's functions, MovedBytes what they copied.
	HostCalls, MovedBytes int
}

// Measure is Run and returns what the run used. It is slower than Run.
func (m *Module) Measure(call *hostabi.Call, handler string) (Usage, error) {
	u := usage{}
	err := m.run(call, handler, &u)
	if u.ended > 0 { // what came after was restoring
		u.Restore = m.engine.options.Now() - u.ended
	}
	if u.making > 0 {
		u.Restore += u.began - u.making
	}
	return u.Usage, err
}

// spentFuel is the fuel that the run has used so far.
func (s *sandbox) spentFuel() int64 { return s.meter.granted - int64(api.DecodeI32(s.fuel.Get())) }

// usage is a Usage that is being measured. Times are those of Options.Now.
type usage struct {
	Usage
	making, began, ended time.Duration // making: 0 if no new sandbox was made
}

func (u *usage) begin(e *Engine) { u.began = e.options.Now() }

// end is called before the sandbox is restored.
func (u *usage) end(s *sandbox, call *hostabi.Call) {
	took := s.engine.options.Now() - u.began
	u.Usage = Usage{
		Time: took, Fuel: s.spentFuel(),
		PageBytes: int(pages.Size), MemoryBytes: int64(s.memory.High()),
		HostCalls: call.HostCalls(), MovedBytes: call.Moved(),
	}
	if m := &s.memory; m.Image() != nil {
		for at := uint64(0); at < m.High(); at += pages.Size {
			if !m.Same(at) {
				u.ChangedPages++
			}
		}
	}
	u.ended = s.engine.options.Now()
}
