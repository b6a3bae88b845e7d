package credtime_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/keystore/credtime"
	"runner.example/tests/harness"
)

const day = 24 * time.Hour

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// machine has a wall clock that can be set, and an uptime that cannot.
type machine struct {
	t            testing.TB
	wall         time.Time
	up           time.Duration
	boot         string
	synchronized bool
	log          bytes.Buffer
	path         string
}

func newMachine(t testing.TB) *machine {
	return &machine{t: t, wall: noon, up: time.Hour, boot: "first", path: filepath.Join(t.TempDir(), "clock")}
}

func (m *machine) open() *credtime.Clock {
	m.t.Helper()
	c, err := m.tryOpen()
	if err != nil {
		m.t.Fatal(err)
	}
	return c
}

func (m *machine) tryOpen() (*credtime.Clock, error) {
	return credtime.Open(m.path, credtime.Machine{
		Wall: func() time.Time { return m.wall }, Uptime: func() time.Duration { return m.up }, Boot: m.boot,
		Synchronized: func() bool { return m.synchronized },
	}, slog.New(slog.NewTextHandler(&m.log, nil)))
}

// pass lets time pass, step sets the wall clock, and reboot turns the machine off for a time.
func (m *machine) pass(d time.Duration) { m.wall, m.up = m.wall.Add(d), m.up+d }
func (m *machine) step(d time.Duration) { m.wall = m.wall.Add(d) }
func (m *machine) reboot(off time.Duration) {
	m.wall, m.up, m.boot = m.wall.Add(off), time.Second, m.boot+"+"
}

// wants checks Now and Latest.
func (m *machine) wants(c *credtime.Clock, now, latest time.Time) {
	m.t.Helper()
	if got := c.Now(); got != now.UnixMilli() {
		m.t.Errorf("Now is %v, want %v", time.UnixMilli(got).UTC(), now)
	}
	if got := c.Latest(); got != latest.UnixMilli() {
		m.t.Errorf("Latest is %v, want %v", time.UnixMilli(got).UTC(), latest)
	}
	if n, l := c.Read(); n != now.UnixMilli() || l != latest.UnixMilli() {
		m.t.Errorf("Read is %d, %d", n, l)
	}
}

func TestTimeAdvancesWithTheUptimeWhenTheClockIsSetBack(t *testing.T) {
	for _, back := range []time.Duration{time.Second, 5 * time.Minute, 5*time.Minute + time.Millisecond, 400 * day} {
		m := newMachine(t)
		c := m.open()
		m.step(-back)
		for range 3 {
			m.wants(c, noon.Add(m.up-time.Hour), noon.Add(m.up-time.Hour))
			m.pass(17 * time.Minute)
		}
		if warned, want := strings.Count(m.log.String(), "clock set back"), back > 5*time.Minute; (warned == 1) != want || warned > 1 {
			t.Errorf("%v back: %d warnings", back, warned)
		}
		if err := c.Quarantined(); err != nil {
			t.Errorf("%v back: %v", back, err)
		}
		if at, err := c.ForNew(); err != nil || at != c.Now() {
			t.Errorf("%v back: a new credential is from %d: %v", back, at, err)
		}
		m.step(back)
		m.wants(c, m.wall, m.wall)
		if again := strings.Count(m.log.String(), "clock plausible again"); (again == 1) != (back > 5*time.Minute) {
			t.Errorf("%v back and again: %s", back, m.log.String())
		}
	}
}

func TestAClockThatIsADayAheadIsTrustedAndOneFurtherIsNot(t *testing.T) {
	m := newMachine(t)
	c := m.open()
	m.step(day)
	m.wants(c, m.wall, m.wall)
	if !c.Settled() || c.Quarantined() != nil {
		t.Errorf("a day ahead: settled %v, %v", c.Settled(), c.Quarantined())
	}

	m = newMachine(t)
	c = m.open()
	m.step(day + time.Millisecond)
	m.wants(c, noon, noon)
	if err := c.Quarantined(); err == nil || !strings.Contains(err.Error(), "1.0d ahead") {
		t.Errorf("more than a day ahead: %v", err)
	}
	if at, err := c.ForNew(); err != nil || at != noon.UnixMilli() {
		t.Errorf("a new credential is from %d: %v", at, err)
	}
}

func TestAQuarantinedClockIsTrustedWhenItHasRunForAnHour(t *testing.T) {
	m := newMachine(t)
	c := m.open()
	m.step(40 * day)
	m.wants(c, noon, noon)
	m.pass(30 * time.Minute)
	m.step(time.Minute) // the hour does not begin anew
	m.pass(30*time.Minute - time.Millisecond)
	m.wants(c, noon.Add(m.up-time.Hour), noon.Add(m.up-time.Hour))
	m.pass(time.Millisecond)
	m.wants(c, m.wall, m.wall)
	if c.Quarantined() != nil || c.Settled() {
		t.Errorf("trusted: settled %v, %v", c.Settled(), c.Quarantined())
	}
	m.pass(7*day - time.Millisecond)
	if c.Settled() {
		t.Error("settled before seven days have passed")
	}
	c = m.open() // also after a restart
	m.pass(time.Millisecond)
	if !c.Settled() {
		t.Error("not settled after seven days")
	}

	m = newMachine(t)
	c = m.open()
	m.step(40 * day)
	m.wants(c, noon, noon)
	m.pass(30 * time.Minute)
	m.step(time.Minute + time.Millisecond) // it does
	m.wants(c, noon.Add(30*time.Minute), noon.Add(30*time.Minute))
	m.pass(time.Hour - time.Millisecond)
	m.wants(c, noon.Add(m.up-time.Hour), noon.Add(m.up-time.Hour))
	m.pass(time.Millisecond)
	m.wants(c, m.wall, m.wall)
}

func TestJumpsWithinAnHourCountAsOne(t *testing.T) {
	for _, row := range []struct {
		between time.Duration
		trusted bool
	}{{time.Hour, false}, {time.Hour + time.Millisecond, true}} {
		m := newMachine(t)
		c := m.open()
		m.step(12 * time.Hour)
		m.wants(c, m.wall, m.wall)
		m.pass(row.between)
		before := m.wall
		m.step(12*time.Hour + time.Millisecond)
		want := before
		if row.trusted {
			want = m.wall
		}
		m.wants(c, want, want)
	}
}

func TestAnOperatorAcceptsAnyClock(t *testing.T) {
	for _, by := range []time.Duration{400 * day, -400 * day} {
		m := newMachine(t)
		c := m.open()
		m.step(by)
		m.wants(c, noon, noon)
		if from, to := c.Accept(); from != noon.UnixMilli() || to != m.wall.UnixMilli() {
			t.Errorf("accepted %d instead of %d", to, from)
		}
		m.wants(c, m.wall, m.wall)
		if c.Settled() {
			t.Error("settled at once")
		}
		m.wants(m.open(), m.wall, m.wall) // a start finds it in the file
	}
}

func TestARestartWithoutARebootContinuesByTheUptime(t *testing.T) {
	for _, by := range []time.Duration{0, -400 * day, 400 * day} {
		m := newMachine(t)
		m.open()
		m.pass(3 * time.Hour) // nothing is written meanwhile
		m.step(by)
		m.wants(m.open(), noon.Add(3*time.Hour), noon.Add(3*time.Hour))
	}
}

func TestAfterARebootTheClockSaysHowLongTheMachineWasOffUpToADay(t *testing.T) {
	for _, row := range []struct {
		name         string
		off          time.Duration
		synchronized bool
		now, latest  time.Duration // since the stop
		unknown      bool
	}{
		{"ten minutes", 10 * time.Minute, false, 10 * time.Minute, 10 * time.Minute, false},
		{"a day", day, false, day, day, false},
		{"longer", day + time.Second + time.Millisecond, false, 0, day + time.Second + time.Millisecond, true},
		{"sixty days, with a time server", 60 * day, true, 60 * day, 60 * day, false},
		{"the clock was reset", -400 * day, false, 0, 0, false},
	} {
		m := newMachine(t)
		if err := m.open().Save(); err != nil {
			t.Fatal(err)
		}
		m.reboot(row.off)
		m.synchronized = row.synchronized
		c := m.open()
		m.wants(c, noon.Add(row.now), noon.Add(row.latest))
		_, err := c.ForNew()
		if (err != nil) != row.unknown || row.unknown && (fault.CodeOf(err) != fault.Unavailable || c.Quarantined() == nil) {
			t.Errorf("%s: a new credential: %v; %v", row.name, err, c.Quarantined())
		}
		if !row.unknown {
			continue
		}
		m.pass(10 * time.Minute)
		c = m.open() // a restart changes nothing
		m.wants(c, noon.Add(10*time.Minute), noon.Add(row.latest+10*time.Minute))
		m.synchronized = true
		m.pass(time.Minute)
		m.step(2 * time.Minute) // as the time server has it
		m.wants(c, m.wall, m.wall)
		if at, err := c.ForNew(); err != nil || at != m.wall.UnixMilli() {
			t.Errorf("%s: a new credential, when the clock is synchronized: %v", row.name, err)
		}
	}
}

// What the clock has given is never taken back, however the server ends, and whatever the wall clock shows:
// time never passes more slowly than it does, except by Accept.
func TestTimeNeverGoesBack(t *testing.T) {
	for range 5 {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		m := newMachine(t)
		c := m.open()
		last, lastUp := c.Now(), m.up
		var done []string
		for range 60 {
			some := time.Duration(random.Int64N(int64(2 * time.Hour)))
			switch event := random.IntN(9); event {
			case 0:
				c, done = m.open(), append(done, "killed and started") // without Save
			case 1:
				m.step(some - time.Hour)
				done = append(done, fmt.Sprint("step ", some-time.Hour))
			case 2:
				by := time.Duration(random.IntN(800)-400) * day
				m.step(by)
				done = append(done, fmt.Sprint("step ", by))
			case 3:
				// It is off after the file was written: what was not written is known by the wall clock alone.
				if err := c.Save(); err != nil {
					t.Fatal(err)
				}
				last, lastUp = c.Now(), time.Second
				m.reboot(some)
				c, done = m.open(), append(done, fmt.Sprint("reboot ", some))
			default:
				m.pass(some)
				done = append(done, fmt.Sprint("pass ", some))
			}
			now, latest := c.Read()
			// An event may round the uptime and the wall clock down, to milliseconds each.
			if least := last + (m.up - lastUp).Milliseconds(); now < least-2 || latest < now {
				t.Fatalf("seed %d: Now is %d, and at least %d has passed; Latest is %d: %s", seed, now, least, latest, strings.Join(done, ", "))
			}
			last, lastUp = now, m.up
		}
	}
}

// The file is written before a time is given that is further than the uptime says.
func TestAKillAfterAJumpDoesNotTakeItBack(t *testing.T) {
	m := newMachine(t)
	c := m.open()
	m.step(20 * time.Hour)
	given := c.Now()
	m.wall = noon // the next process finds another clock
	if got := m.open().Now(); got != given {
		t.Errorf("after a kill it is %d, and %d was given", got, given)
	}
}

// A reader that comes while the file is being written waits for it. What is logged when the write
// fails shows that moment.
func TestNoTimeIsGivenBeforeTheFileIsWritten(t *testing.T) {
	m := newMachine(t)
	var c *credtime.Clock
	given, failed := make(chan int64, 1), false
	c, err := credtime.Open(m.path, credtime.Machine{
		Wall: func() time.Time { return m.wall }, Uptime: func() time.Duration { return m.up }, Boot: m.boot,
		Synchronized: func() bool { return false },
	}, slog.New(slog.NewTextHandler(writerFunc(func(line []byte) {
		if failed || !strings.Contains(string(line), "clock file not written") {
			return
		}
		failed = true
		go func() { given <- c.Now() }()
		select {
		case now := <-given:
			t.Errorf("%v is given before the file is written", time.UnixMilli(now).UTC())
		case <-time.After(100 * time.Millisecond):
		}
	}), nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Dir(m.path)); err != nil {
		t.Fatal(err)
	}
	m.step(20 * time.Hour)
	if now := c.Now(); now != m.wall.UnixMilli() || !failed {
		t.Errorf("after a jump it is %v, and the write failed: %v", time.UnixMilli(now).UTC(), failed)
	}
}

// writerFunc is a function as a writer.
type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}

func TestTheFileOfEarlierVersionsIsRead(t *testing.T) {
	for name, text := range map[string]string{
		"the time alone":   "2026-11-01T18:00:00Z\n",
		"without checksum": `{"time":"2026-11-01T18:00:00Z","wall":"2026-11-01T12:00:00Z","boot":"first","uptime":3600000}` + "\n",
	} {
		m := newMachine(t)
		if err := os.WriteFile(m.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, want := m.open().Now(), noon.Add(6*time.Hour).UnixMilli(); got != want {
			t.Errorf("%s: the time is %d, want %d", name, got, want)
		}
	}
}

func TestADamagedFileIsRefusedAndKept(t *testing.T) {
	m := newMachine(t)
	m.open()
	whole, err := os.ReadFile(m.path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"empty": {}, "no time": []byte("{}\n"), "not a time": []byte("yesterday\n"), "cut off": whole[:len(whole)/3],
		"another checksum": append(bytes.Clone(whole[:len(whole)-3]), "0x\n"...),
		"another time":     bytes.Replace(whole, []byte("2026"), []byte("2027"), 1),
	} {
		if err := os.WriteFile(m.path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := m.tryOpen(); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), m.path) {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.ReadFile(m.path); err != nil || !bytes.Equal(after, text) {
			t.Errorf("%s: the file is now %q, %v", name, after, err)
		}
	}
	m.path = filepath.Join(t.TempDir(), "missing", "clock")
	if _, err := m.tryOpen(); fault.CodeOf(err) != fault.Invalid || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that cannot be written: %v", err)
	}
}

// Whatever the file has, it is refused as damaged, or the clock can be used and a start finds its time again.
func FuzzClockFile(f *testing.F) {
	f.Add([]byte("2026-11-01T18:00:00Z\n"))
	f.Add([]byte(`{"time":"2026-11-01T18:00:00Z","wall":"2026-11-01T12:00:00Z","boot":"first","uptime":3600000,"leap":"2026-11-01T18:00:00Z"}` + "\n"))
	f.Add([]byte(`{"time":"2026-11-01T18:00:00Z","wall":"2026-11-01T12:00:00Z","timeOff":9999999999,"offAhead":5}` + "\n00000000\n"))
	m := newMachine(f)
	m.open()
	whole, err := os.ReadFile(m.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, text []byte) {
		m := newMachine(t)
		if err := os.WriteFile(m.path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := m.tryOpen()
		if err != nil {
			if fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		now, latest := c.Read()
		if latest < now {
			t.Errorf("%q: Latest is %d and Now %d", text, latest, now)
		}
		if again := m.open().Now(); again != now {
			t.Errorf("%q: the time was %d, and %d after a restart", text, now, again)
		}
	})
}

// A supervisor starts the server again, which it does not when a file is invalid.
func TestAFullDiskIsNotAnInvalidClockFile(t *testing.T) {
	m := newMachine(t)
	dir := filepath.Join(filepath.Dir(m.path), "disk")
	harness.SmallDisk(t, "tmpfs", dir, 64<<10)
	harness.FillDisk(t, filepath.Join(dir, "filler"))
	m.path = filepath.Join(dir, "clock")
	if _, err := m.tryOpen(); fault.CodeOf(err) == fault.Invalid || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), m.path) {
		t.Errorf("on a full disk: %v", err)
	}
}
