package credtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"runner.example/internal/atomicio"
	"runner.example/internal/fault"
	"runner.example/state/store"
)

// clockFile is the content of the clock file, as JSON on one line. The next line is the
// CRC-32C of the first in hexadecimal digits; earlier versions did not write it.
type clockFile struct {
	// Time is T, Wall what the wall clock showed then.
	Time time.Time `json:"time"`
	Wall time.Time `json:"wall"`
	// Boot and Uptime, in ms, say when that was by the machine's uptime.
	Boot   string `json:"boot"`
	Uptime int64  `json:"uptime"`
	// Leap is T after the last jump of more than a day that was trusted.
	Leap *time.Time `json:"leap,omitempty"`
	// TimeOff and OffAhead are those of a deviation, in ms, while the time that the
	// machine was off is unknown.
	TimeOff  int64 `json:"timeOff,omitempty"`
	OffAhead int64 `json:"offAhead,omitempty"`
}

// Open reads the file at path and continues from the time in it. Without a path or a
// file the time begins with the wall clock.
func Open(path string, machine Machine, logger *slog.Logger) (*Clock, error) {
	c := &Clock{machine: machine.withDefaults(), kernel: machine.Wall == nil, logger: logger, path: path}
	c.offKnown = true
	file, err := readClockFile(path)
	if err != nil {
		return nil, err
	}
	c.booted = c.machine.Uptime()
	c.opened = c.machine.Wall()
	wall := c.opened.UnixMilli()
	if file == nil {
		c.base.Store(wall)
	} else {
		if file.Leap != nil {
			c.leap = file.Leap.UnixMilli()
		}
		c.base.Store(file.Time.UnixMilli() + c.sinceFile(file, wall))
		if file.TimeOff > 0 {
			c.offKnown, c.offAhead = false, file.OffAhead
			c.deviation.Store(&deviation{
				ahead: file.TimeOff, until: c.base.Load() + steadyFor.Milliseconds(), timeOff: true, offAhead: file.OffAhead,
			})
		}
	}
	// At once: after a kill the next process must find this time, whatever the wall
	// clock shows then.
	switch err := c.Save(); {
	case store.IsFull(err): // room may be made, so the file is not to blame
		return nil, fmt.Errorf("write the clock file %q: %w", path, err)
	case err != nil:
		return nil, fault.Wrap(err, fault.Invalid, "write the clock file %q: %v", path, err)
	}
	return c, nil
}

// sinceFile returns how long ago the file was written, in ms, as far as that is known.
func (c *Clock) sinceFile(file *clockFile, wall int64) int64 {
	if up := c.booted.Milliseconds(); file.Boot != "" && file.Boot == c.machine.Boot && up >= file.Uptime {
		return up - file.Uptime
	}
	// Either the wall clock was as right or wrong when the machine was stopped, or it is
	// right now. In both cases what it gained may be the time off.
	c.offAhead = max(0, file.Time.Sub(file.Wall).Milliseconds())
	off := int64(-1)
	for _, gained := range []int64{wall - file.Wall.UnixMilli(), wall - file.Time.UnixMilli()} {
		if gained <= setAhead.Milliseconds() {
			off = max(off, gained)
		}
	}
	c.offKnown = off >= 0
	return max(0, off)
}

// readClockFile returns nil if there is no file.
func readClockFile(path string) (*clockFile, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "read the clock file %q", path)
	}
	file := &clockFile{}
	line, sum, _ := strings.Cut(strings.TrimRight(string(text), "\n"), "\n")
	if err = json.Unmarshal([]byte(line), file); err != nil { // earlier versions wrote T alone
		file.Time, err = time.Parse(time.RFC3339, strings.TrimSpace(line))
		file.Wall = file.Time
	}
	if sum != "" && sum != clockSum(line) {
		err = errors.New("checksum mismatch")
	}
	if err != nil || file.Time.IsZero() || file.Wall.IsZero() {
		return nil, fault.New(fault.Invalid,
			"the clock file %q is damaged: check that the clock of this machine is right, then delete the file", path)
	}
	return file, nil
}

// Save looks at the wall clock and writes the file.
func (c *Clock) Save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, now, _ := c.lookLocked()
	return c.writeLocked(now, t)
}

// writeLocked writes the file for the time now at the instant t.
func (c *Clock) writeLocked(now int64, t time.Time) error {
	if c.path == "" {
		return nil
	}
	file := clockFile{
		Time: utc(now), Wall: utc(t.UnixMilli()),
		Boot: c.machine.Boot, Uptime: (c.booted + c.passed(t) + c.suspended).Milliseconds(),
	}
	if c.leap != 0 {
		leap := utc(c.leap)
		file.Leap = &leap
	}
	if d := c.deviation.Load(); d != nil && d.timeOff {
		file.TimeOff, file.OffAhead = d.ahead, d.offAhead
	}
	text, err := json.Marshal(file)
	if err != nil {
		return err
	}
	return atomicio.WriteFile(c.path, fmt.Appendf(text, "\n%s\n", clockSum(string(text))))
}

func clockSum(line string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(line), crc32.MakeTable(crc32.Castagnoli)))
}
