package keystore

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"runner.example/internal/fault"
)

const (
	// setBack is how far the clock may go back and still be believed.
	setBack = 5 * time.Minute
	// markStep is how far the mark may lag behind the clock, so that requests do
	// not write the same word all the time.
	markStep = time.Second
)

// clock gives the time by which keys are judged: the wall clock, or the latest
// wall time that this node has ever seen when the clock is far behind it, so
// that setting it back does not bring expired keys to life. Safe for concurrent
// use.
type clock struct {
	wall   func() time.Time
	logger *slog.Logger
	// path is the file that keeps the mark over a restart; empty: none.
	path   string
	mark   atomic.Int64 // latest wall time seen, in ms
	warned atomic.Bool
	saved  int64 // what the file holds; used by one goroutine at a time
}

func openClock(path string, wall func() time.Time, logger *slog.Logger) (*clock, error) {
	c := &clock{wall: wall, logger: logger, path: path}
	if path == "" {
		return c, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "read the clock file %q", path)
	}
	mark, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fault.New(fault.Invalid,
			"the clock file %q is damaged: delete it when you are sure that this machine's clock is right", path)
	}
	c.saved = mark.UnixMilli()
	c.mark.Store(c.saved)
	return c, nil
}

// now returns the time by which keys are judged, in milliseconds since 1970.
func (c *clock) now() int64 { return c.judge(c.wall()) }

// judge returns the time by which keys are judged when the wall clock shows t.
func (c *clock) judge(t time.Time) int64 {
	now, mark := t.UnixMilli(), c.mark.Load()
	switch {
	case now >= mark+markStep.Milliseconds():
		// Who loses the race loses to a mark of about the same time.
		if c.mark.CompareAndSwap(mark, now) {
			c.warned.Store(false)
		}
	case now < mark-setBack.Milliseconds():
		c.warn(now, mark)
		return mark
	}
	return now
}

func (c *clock) warn(now, mark int64) {
	if c.warned.Swap(true) {
		return
	}
	c.logger.Warn("the clock was set back: keys are judged by the latest time seen until it catches up;"+
		" if that time was wrong, stop the server and delete the clock file",
		"clock", timeOf(now), "latest", timeOf(mark), "file", c.path)
}

// save writes the mark to its file when it is ahead of what stands there.
func (c *clock) save() error {
	mark := c.mark.Load()
	if c.path == "" || mark <= c.saved {
		return nil
	}
	if err := writeWhole(c.path, []byte(timeOf(mark).Format(timeLayout)+"\n")); err != nil {
		return err
	}
	c.saved = mark
	return nil
}
