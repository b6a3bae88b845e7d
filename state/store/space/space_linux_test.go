package space_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"runner.example/state/store/space"
)

// logs are Badger's logs as a plain model has them: it writes to one, and creates the next when the log or its
// table is full. It takes at most what was admitted, and how much of that is not known.
type logs struct {
	t          *testing.T
	dir        string
	full       int64
	id         int
	log, table int64 // of the current one
}

func (l *logs) path() string { return filepath.Join(l.dir, fmt.Sprintf("%05d.mem", l.id)) }

func (l *logs) next() {
	l.t.Helper()
	l.id++
	l.log, l.table = 20, 0
	file, err := os.OpenFile(l.path(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := errors.Join(file.Truncate(2*l.full), file.Close()); err != nil {
		l.t.Fatal(err)
	}
}

// write is a commit. All its bytes must be reserved before.
func (l *logs) write(u space.Use) {
	l.t.Helper()
	if l.log >= l.full || l.table >= l.full {
		l.next()
	}
	l.log, l.table = l.log+u.Log, l.table+u.Table
	info, err := os.Stat(l.path())
	if err != nil {
		l.t.Fatal(err)
	}
	if reserved := info.Sys().(*syscall.Stat_t).Blocks * 512; reserved < min(l.log, 2*l.full) {
		l.t.Fatalf("log %d has %d bytes, and %d are reserved", l.id, l.log, reserved)
	}
}

func newReserver(t *testing.T, full int64) (*space.Reserver, *logs) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "badger")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "MANIFEST"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := &logs{t: t, dir: dir, full: full}
	l.next()
	s := &space.Reserver{Dir: dir, Log: slog.New(slog.DiscardHandler), MemTableBytes: full}
	if err := errors.Join(s.Prepare(), s.Attach()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, l
}

// Whatever of its use each commit takes, and when the logs change, the space of a commit is reserved before
// Badger gets it.
func TestTheSpaceOfACommitIsReservedBeforeItIsWritten(t *testing.T) {
	for range 4 {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		s, l := newReserver(t, 32<<20)
		for range 150 {
			bytes := random.Int64N(64 << 10)
			if random.IntN(4) == 0 { // as large as a commit can be
				bytes = 9 << 20
			}
			use := space.UseOf(1+random.IntN(1000), bytes)
			if err := s.Admit(use); err != nil {
				t.Fatal(err)
			}
			taken := use
			if random.IntN(3) == 0 {
				taken.Log, taken.Table = random.Int64N(use.Log+1), random.Int64N(use.Table+1)
			}
			l.write(taken)
		}
		if l.id < 3 {
			t.Errorf("the logs have changed %d times", l.id-1)
		}
	}
}

// The next log is removed when it was not used.
func TestAnUnusedLogIsRemoved(t *testing.T) {
	s, l := newReserver(t, 1<<20)
	for range 2 {
		if err := s.Admit(space.UseOf(1, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	l.id++
	if info, err := os.Stat(l.path()); err != nil || info.Size() != 0 {
		t.Errorf("the next log: %v, %v", info, err)
	}
	s.Close()
	if _, err := os.Stat(l.path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the next log is left: %v", err)
	}
}

func TestInMemoryEverythingFits(t *testing.T) {
	var s space.Reserver
	if err := errors.Join(s.Attach(), s.Admit(space.UseOf(1, 1<<50)), s.Reason()); err != nil {
		t.Error(err)
	}
}
