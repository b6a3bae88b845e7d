package recording

import (
	crand "crypto/rand"
	"math/rand/v2"
	"time"

	"runner.example/internal/clock"
)

// What Draws.Read records: clocks, and for Polls whether the responses that a component waits for are ready.
const (
	Wall = iota
	Monotonic
	Timers
	Polls
	clocks
)

// maxReadings is how many different readings of a clock are recorded.
const maxReadings = 100_000

// Drawn is what a run read from its Draws.
type Drawn struct {
	// Seed is the seed of the random bytes, which are the output of ChaCha8. Nil: the run read no random bytes.
	Seed []byte `json:"seed,omitempty"`
	// Readings are those of the clocks.
	Readings [clocks][]Reading `json:"readings"`
	// Program is the start of a program that waits for its requests; nil: the module is not such a program.
	Program *ProgramStart `json:"program,omitempty"`
}

// Reading is one or more successive readings of a clock with the same result.
type Reading struct {
	At    int64 `json:"at"`
	Count int   `json:"count"`
}

// ProgramStart has the times that a program read when it started.
type ProgramStart struct {
	Time      time.Time     `json:"time"`
	Monotonic time.Duration `json:"monotonic"`
	Readings  []Reading     `json:"readings"`
}

// Draws gives a run its random bytes and the time, and records them. Those of Repeat give recorded values. The zero
// value records. One goroutine at a time may use it.
type Draws struct {
	// Seeds gives the seed of each run that records; nil: it is random.
	Seeds func() [32]byte

	seed     [32]byte
	seeded   bool
	random   rand.ChaCha8
	readings [clocks][]Reading
	base     time.Time

	repeats bool
	given   [clocks]int // how often the first of readings was given
	over    [clocks]int64
	overAt  [clocks]time.Time
}

// Repeat returns Draws that give the recorded values d. A clock that is read more often continues from its last reading.
func Repeat(d *Drawn) *Draws {
	r := &Draws{repeats: true, base: clock.Mark(), readings: d.Readings}
	if len(d.Seed) == len(r.seed) {
		r.seed, r.seeded = [32]byte(d.Seed), true
		r.random.Seed(r.seed)
	}
	return r
}

// Begin discards what was recorded, for another run.
func (d *Draws) Begin() {
	for i := range d.readings {
		d.readings[i] = d.readings[i][:0]
	}
	d.seeded, d.base = false, clock.Mark()
}

// Random fills b with random bytes.
func (d *Draws) Random(b []byte) {
	if !d.seeded {
		if d.Seeds != nil {
			d.seed = d.Seeds()
		} else {
			_, _ = crand.Read(d.seed[:]) // never fails
		}
		d.random.Seed(d.seed)
		d.seeded = true
	}
	_, _ = d.random.Read(b) // never fails
}

// Read reads a clock, whose time is now, and returns the time for the guest.
func (d *Draws) Read(which int, now int64) int64 {
	if d.repeats {
		return d.repeat(which, now)
	}
	all := d.readings[which]
	if last := len(all) - 1; last >= 0 && (all[last].At == now || last == maxReadings) {
		all[last].Count++
		return now
	}
	d.readings[which] = append(all, Reading{now, 1})
	return now
}

func (d *Draws) repeat(which int, now int64) int64 {
	all := d.readings[which]
	if len(all) > 0 {
		at := all[0].At
		d.over[which] = at
		if d.given[which]++; d.given[which] >= all[0].Count {
			d.readings[which], d.given[which] = all[1:], 0
		}
		return at
	}
	if which == Polls {
		return now
	}
	if d.overAt[which].IsZero() {
		if d.overAt[which] = clock.Mark(); d.over[which] == 0 {
			d.over[which] = now
		}
	}
	return d.over[which] + int64(time.Since(d.overAt[which]).Truncate(time.Millisecond))
}

// Mark reads the clock of timers, in whole milliseconds.
func (d *Draws) Mark() time.Time {
	return d.base.Add(time.Duration(d.Read(Timers, int64(time.Since(d.base).Truncate(time.Millisecond)))))
}

// Drawn returns a copy of what was recorded.
func (d *Draws) Drawn() (c Drawn) {
	if d.seeded {
		c.Seed = append([]byte{}, d.seed[:]...)
	}
	for i := range d.readings {
		c.Readings[i] = append([]Reading(nil), d.readings[i]...)
	}
	return c
}
