package hostabi

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/hostabi/recording"
	"runner.example/internal/clock"
)

// Start is one start of a program: what it does before it waits for its first request. Two starts with
// the same StartInput do the same, as far as the host decides it.
type Start struct {
	*StartInput
	// Waits is called when the program waits. The run ends with its error, and with ErrWaits without one.
	Waits func(*Waiting) error
	// Unread is why a file of the program could not be read; nil: all could that it has read.
	Unread error

	random *rand.ChaCha8
	run    int // of the times, which the last reading was in
	reads  int // of that run, in this start
}

// Waiting is where a program waits for requests. It does not change.
type Waiting struct {
	// Handlers are the handlers that the program has; nil: it is one itself.
	Handlers []string
	byFile   bool // it waits in a write to the file that calls the host
	open     []openedFile
}

// Result is what the host function in which the program waits returns for a request of a handler.
func (w *Waiting) Result(handler int) uint64 {
	if w.byFile {
		return wasiOK
	}
	return uint64(handler)
}

// StartInput is what two starts of a program read of the host. They may run side by side: the clock is read by the start
// that is ahead, and the other one reads the same times. They are never ahead of the machine's clocks, which the
// program reads in its requests.
type StartInput struct {
	seed [32]byte // of what is read as random
	time time.Time
	mark time.Time // the same moment, of the clock behind the guest's monotonic clock

	mu        sync.Mutex
	monotonic time.Duration // the same moment, of the guest's monotonic clock without its first second; 0: it was not read
	times     []timeRun
}

// timeRun is a number of readings of the clocks at the same time, since the beginning.
type timeRun struct {
	passed time.Duration
	reads  int
}

// Drawn returns what the starts have read of the host.
func (in *StartInput) Drawn() recording.Drawn {
	in.mu.Lock()
	defer in.mu.Unlock()
	p := &recording.ProgramStart{Time: in.time, Monotonic: in.monotonic}
	for _, t := range in.times {
		p.Readings = append(p.Readings, recording.Reading{At: int64(t.passed), Count: t.reads})
	}
	return recording.Drawn{Seed: in.seed[:], Program: p}
}

// RepeatedStart returns the input of starts that read what others have read, as Drawn returned it for a program.
func RepeatedStart(d *recording.Drawn) *StartInput {
	in := &StartInput{seed: [32]byte(d.Seed), time: d.Program.Time, mark: clock.Mark(), monotonic: d.Program.Monotonic}
	for _, t := range d.Program.Readings {
		in.times = append(in.times, timeRun{time.Duration(t.At), t.Count})
	}
	return in
}

// since is the time from the start of the guest's monotonic clock to that of the program.
func (in *StartInput) since(started time.Time) time.Duration {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.monotonic == 0 {
		in.monotonic = in.mark.Sub(started)
	}
	return in.monotonic
}

// NewStartInput returns the input of starts that begin at the given time.
func NewStartInput(seed [32]byte, now time.Time) *StartInput {
	return &StartInput{seed: seed, time: now, mark: clock.Mark()}
}

// StartLimits are the limits of a start, which may read the files of a program.
func StartLimits(cpu time.Duration) Limits {
	return Limits{CPU: cpu, HostCalls: 1_000_000, MovedBytes: 1 << 30, LogLines: 1_000, LogBytes: 256 << 10}
}

// ErrWaits ends a start: the program waits for a request.
var ErrWaits = fmt.Errorf("the program waits for a request")

// BeginStart makes the run a start of the program. Call it after Begin.
func (c *Call) BeginStart(with *Program, s *Start) {
	c.beginProgram(with)
	s.random, s.run, s.reads = rand.NewChaCha8(s.seed), 0, 0
	c.start = s
}

// Starting reports whether the run is a start of a program.
func (c *Call) Starting() bool { return c.start != nil }

// BeginResumed says that the run continues a program that waited for this request, of a handler.
func (c *Call) BeginResumed(with *Program, w *Waiting, handler int) {
	c.resumed = true
	c.program.give(with) // libraries may ask for variables when the first one is read
	c.files.open = append(c.files.open[:0], w.open...)
	if w.byFile {
		c.files.host.answer(0, strconv.AppendInt(nil, int64(handler), 10))
	}
}

// requestNext waits for a request. A start ends here, and so does the run of a request.
func requestNext(c *Call, g guest) int32 {
	names, ok := g.bytes(0)
	switch {
	case !ok:
		return int32(abi.Invalid)
	case c.start != nil:
		_, byFile := g.memory.(messageMemory)
		c.unwind(c.wait(names, byFile))
	case c.resumed:
		c.unwind(&Exit{})
	}
	return int32(abi.Denied)
}

// wait ends a start, and returns what its run ends with.
func (c *Call) wait(names []byte, byFile bool) error {
	handlers, err := readHandlers(names)
	if err == nil && !byFile { // a message is alone
		err = c.files.host.idle()
	}
	if err == nil {
		err = c.start.Waits(&Waiting{handlers, byFile, slices.Clone(c.files.open)})
	}
	if err == nil {
		err = ErrWaits
	}
	return err
}

// Limits of the handlers of a program.
const (
	maxHandlers     = 1000
	maxHandlerBytes = 256
)

// readHandlers reads the names of handlers, which are separated by line ends.
func readHandlers(text []byte) ([]string, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var all []string
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		name := string(line)
		switch {
		case len(all) == maxHandlers:
			return nil, fmt.Errorf("request_next: the program has more than %d handlers", maxHandlers)
		case len(name) > maxHandlerBytes || !isName(name):
			return nil, fmt.Errorf("request_next: %.60q is not a handler's name: letters, digits and _", name)
		case slices.Contains(all, name):
			return nil, fmt.Errorf("request_next: the handler %s is named twice", name)
		}
		all = append(all, name)
	}
	return all, nil
}

// isName reports whether a schema can name a handler so.
func isName(s string) bool {
	letters := strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
	return s != "" && letters == "" && (s[0] < '0' || s[0] > '9')
}

// passed reads the clock: it returns how much time has passed when the other start made this reading, or now.
func (s *Start) passed() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch last := len(s.times) - 1; {
	case last >= 0 && s.reads < s.times[s.run].reads: // in the same run
	case s.run < last:
		s.run, s.reads = s.run+1, 0
	default: // the other start has not come here yet
		now := time.Since(s.mark).Truncate(ClockGrain)
		if last < 0 || s.times[last].passed != now {
			s.times = append(s.times, timeRun{passed: now})
			s.run, s.reads = last+1, 0
		}
		s.times[s.run].reads++
	}
	s.reads++
	return s.times[s.run].passed
}
