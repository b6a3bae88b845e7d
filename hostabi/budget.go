package hostabi

import (
	"time"

	"runner.example/internal/cost"
)

// Limits limit what one run of a handler may ask of the host; NewHost fills those that are
// zero. Fields with a toml tag are settings (package settings).
type Limits struct {
	// HostCalls limits the calls of functions of the module "runner" in one request,
	// MovedBytes the bytes copied between guest and host, without the first reading of the
	// request's body, and StoreOps the operations on the store.
	HostCalls  int `toml:"sandbox.host_calls" default:"1000" min:"1"`
	MovedBytes int `toml:"sandbox.moved_bytes" unit:"size" default:"10mb" min:"1kb" max:"1gb"`
	StoreOps   int `toml:"sandbox.store_operations" default:"200" min:"1"`
	// Fetches limits the outbound requests of one request.
	Fetches int `toml:"outbound.fetches" default:"50" min:"1" max:"10000"`
	// Rows limits the rows that the operations of one request scan, matching or not.
	Rows int `toml:"sandbox.rows" default:"100000" min:"1"`
	// ResponseBytes limits the body of a handler's answer.
	ResponseBytes int `toml:"sandbox.response" unit:"size" default:"8mb" min:"1kb" max:"1gb"`
	// LogLines limits the log lines of one request, LogBytes their size in the log, with
	// the fields around each text. Further lines are discarded and counted.
	LogLines int `toml:"sandbox.log_lines" default:"64" min:"1"`
	LogBytes int `toml:"sandbox.log_bytes" unit:"size" default:"16kb" min:"1b" max:"1mb"`
	// CPU limits the CPU time of one request in all its runs: in the handler, in the
	// host on its behalf, and for the checks of its body and result. Beyond that the answer is
	// 504. Waiting does not count.
	CPU time.Duration `toml:"sandbox.cpu" default:"1s" min:"1ms" max:"1h"`
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
	b.limits = in.Host.Limits
	b.hostCalls, b.moved, b.storeOps, b.fetches, b.waited = 0, 0, 0, 0, 0
	if in.Attempt <= 1 {
		b.cpu = in.Used
	}
	if in.Request != nil {
		b.moved = -len(in.Request.Body)
	}
	b.work.Reset(checkWork)
}

// AddCPU adds CPU time that was used outside of the runs of the request.
func (b *budget) AddCPU(cpu time.Duration) { b.cpu += cpu }

// CPU returns the CPU time that the runs for this request have used.
func (b *budget) CPU() time.Duration { return b.cpu }

// CPULeft returns the CPU time that the runs for this request may still use.
func (b *budget) CPULeft() time.Duration { return b.limits.CPU - b.cpu }

// Waited returns how long the guest has waited, in this run, for something that needs no
// processor.
func (b *budget) Waited() time.Duration { return b.waited }

// HostCalls returns how many functions of the module "runner" this run has called.
func (b *budget) HostCalls() int { return b.hostCalls }

// Moved returns how many bytes this run has copied beyond the request's body.
func (b *budget) Moved() int { return max(0, b.moved) }

// countMoved counts n bytes that are about to be copied, and reports whether the limit permits
// them. If not, later calls fail too.
func (b *budget) countMoved(n int) bool {
	b.moved += n
	return b.moved <= b.limits.MovedBytes
}
