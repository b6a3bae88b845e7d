package hostabi

import (
	"time"

	"runner.example/internal/cost"
)

// Limits are what one run of a handler may ask of the host. A field that is zero has its
// default.
type Limits struct {
	// HostCalls counts calls of functions of the module "runner".
	HostCalls int
	// MovedBytes counts bytes copied between guest and host, in both directions. Reading
	// the request's body once is free.
	MovedBytes int
	// StoreOps counts operations of call that reach the store.
	StoreOps int
	// Fetches counts outbound requests.
	Fetches int
	// Rows counts rows that operations read, whether they match or not.
	Rows int
	// ResponseBytes is the longest body of an answer.
	ResponseBytes int
	LogLines      int
	LogBytes      int
	// CPU is the processor time of all runs for one request together.
	CPU time.Duration
}

// DefaultLimits returns the limits that apply where none is set.
func DefaultLimits() Limits {
	return Limits{
		HostCalls:     1000,
		MovedBytes:    10 << 20,
		StoreOps:      200,
		Fetches:       50,
		Rows:          100_000,
		ResponseBytes: 8 << 20,
		LogLines:      64,
		LogBytes:      16 << 10,
		CPU:           time.Second,
	}
}

// CPU returns the limit of that name, or its default.
func (h *Host) CPU() time.Duration { return h.Limits.filled().CPU }

func (l Limits) filled() Limits {
	d := DefaultLimits()
	fill := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	fill(&l.HostCalls, d.HostCalls)
	fill(&l.MovedBytes, d.MovedBytes)
	fill(&l.StoreOps, d.StoreOps)
	fill(&l.Fetches, d.Fetches)
	fill(&l.Rows, d.Rows)
	fill(&l.ResponseBytes, d.ResponseBytes)
	fill(&l.LogLines, d.LogLines)
	fill(&l.LogBytes, d.LogBytes)
	if l.CPU == 0 {
		l.CPU = d.CPU
	}
	return l
}

// budget counts what the runs for a request use of their limits. All but cpu counts for
// one run.
type budget struct {
	limits    Limits
	hostCalls int
	moved     int // bytes; below zero by the length of the request's body, which is free
	storeOps  int
	fetches   int
	cpu       time.Duration // of all runs
	waited    time.Duration // by the guest, for something that needs no processor
	work      cost.Meter    // of what host functions compute
}

// reset gives a run its full budget. The first run for a request starts with the processor
// time that the request has used before.
func (b *budget) reset(in *Input, checkWork func() error) {
	b.limits = in.Host.Limits.filled()
	b.hostCalls, b.moved, b.storeOps, b.fetches, b.waited = 0, 0, 0, 0, 0
	if in.Attempt <= 1 {
		b.cpu = in.Used
	}
	if in.Request != nil {
		b.moved = -len(in.Request.Body)
	}
	b.work.Reset(checkWork)
}

// AddCPU adds processor time that was used outside of the runs of the request.
func (b *budget) AddCPU(cpu time.Duration) { b.cpu += cpu }

// CPU returns the processor time that the runs for this request have used.
func (b *budget) CPU() time.Duration { return b.cpu }

// CPULeft returns the processor time that the runs for this request may still use.
func (b *budget) CPULeft() time.Duration { return b.limits.CPU - b.cpu }

// Waited returns how long the guest has waited, in this run, for something that needs no
// processor.
func (b *budget) Waited() time.Duration { return b.waited }

// HostCalls returns how many functions of the module "runner" this run has called.
func (b *budget) HostCalls() int { return b.hostCalls }

// Moved returns how many bytes this run has copied beyond the request's body.
func (b *budget) Moved() int { return max(0, b.moved) }

// move counts n bytes that are about to be copied, and reports whether the limit permits
// them. If not, later calls fail too.
func (b *budget) move(n int) bool {
	b.moved += n
	return b.moved <= b.limits.MovedBytes
}
