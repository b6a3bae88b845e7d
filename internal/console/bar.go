package console

import (
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
)

// Bar is a progress bar on a terminal.
type Bar struct {
	writer  progress.Writer
	tracker *progress.Tracker
	ended   chan struct{} // closed by End
	done    chan struct{} // closed when nothing more is shown
}

// barAfter is how long the work takes before its bar is shown.
const barAfter = time.Second

// NewBar starts a progress bar, which is shown when the work takes more than a second; a total of 0 is unknown.
// Without a terminal it shows nothing.
func (c *Console) NewBar(what string, total int64, units progress.Units) *Bar {
	if !c.Terminal {
		return &Bar{}
	}
	b := &Bar{
		writer: progress.NewWriter(), tracker: &progress.Tracker{Message: what, Total: total, Units: units},
		ended: make(chan struct{}), done: make(chan struct{}),
	}
	b.writer.SetAutoStop(true) // Stop does nothing if it comes before Render
	b.writer.SetOutputWriter(c.Stderr)
	b.writer.SetUpdateFrequency(100 * time.Millisecond)
	b.writer.Style().Visibility.ETA = true
	b.writer.AppendTracker(b.tracker)
	go func() {
		defer close(b.done)
		select {
		case <-time.After(barAfter):
			b.writer.Render()
		case <-b.ended:
		}
	}()
	return b
}

// Add adds to the progress.
func (b *Bar) Add(n int64) {
	if b.tracker != nil {
		b.tracker.Increment(n)
	}
}

// Write adds the number of bytes, so that a bar can receive a copy of a stream.
func (b *Bar) Write(p []byte) (int, error) {
	b.Add(int64(len(p)))
	return len(p), nil
}

// End ends the bar; err is the outcome.
func (b *Bar) End(err error) {
	if b.tracker == nil {
		return
	}
	if err != nil {
		b.tracker.MarkAsErrored()
	} else {
		b.tracker.MarkAsDone()
	}
	close(b.ended)
	b.writer.Stop()
	<-b.done
}
