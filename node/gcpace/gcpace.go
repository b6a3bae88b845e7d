package gcpace

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"runner.example/internal/clock"
)

const (
	// interval is the time between two adjustments.
	interval = time.Second
	// minGrowth and busyGrowth are the least and the greatest growth, in bytes. The part of the
	// heap with pointers may be larger than busyGrowth: then the heap grows by that.
	minGrowth  = 4 << 20
	busyGrowth = 32 << 20
)

// Start adjusts the collector of this process until stop is called, which restores its setting. If
// the environment variable GOGC is set, it does nothing.
func Start() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		p := New()
		defer p.End()
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			p.Adjust(clock.Mark())
			select {
			case <-end:
				return
			case <-ticker.C:
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// Pacer adjusts the collector of this process. Only one may exist at a time, and one goroutine may
// use it.
type Pacer struct {
	before, percent int // the setting before the pacer, and now
	samples         [3]metrics.Sample
	allocated       uint64    // bytes, at the last adjustment
	adjusted        time.Time // zero before the first one
}

// New returns a pacer that has changed nothing yet.
func New() *Pacer {
	p := &Pacer{
		samples: [3]metrics.Sample{
			{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/total:bytes"}, {Name: "/gc/heap/allocs:bytes"},
		},
	}
	p.before = debug.SetGCPercent(100)
	p.percent = 100
	return p
}

// End restores the setting from before the pacer.
func (p *Pacer) End() { debug.SetGCPercent(p.before) }

// Adjust sets the growth of the heap to the garbage of one second, as measured since the last call:
// at least minGrowth, at most busyGrowth, and never less than what the collector must follow, in the heap and in
// the stacks of goroutines, or more than a doubling.
func (p *Pacer) Adjust(now time.Time) {
	metrics.Read(p.samples[:])
	live, scanned, allocated := p.samples[0].Value.Uint64(), p.samples[1].Value.Uint64(), p.samples[2].Value.Uint64()
	rate := uint64(0)
	if took := now.Sub(p.adjusted).Seconds(); !p.adjusted.IsZero() && took > 0 {
		rate = uint64(float64(allocated-p.allocated) / took)
	}
	p.allocated, p.adjusted = allocated, now
	growth := max(scanned, min(busyGrowth, max(minGrowth, rate)))
	percent := int(min(100, max(1, growth*100/max(1, live))))
	// Each change stops all goroutines for a moment, so small ones are not made.
	if percent < p.percent*3/4 || percent > p.percent*4/3 || percent == 100 && p.percent != 100 {
		debug.SetGCPercent(percent)
		p.percent = percent
	}
}
