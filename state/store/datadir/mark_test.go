package datadir_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"runner.example/state/store/datadir"
)

// at is the position of an entry in a log whose chain hashes are all different.
func at(seq uint64) datadir.Position {
	return datadir.Position{Seq: seq, Chain: digest(strings.Repeat("x", int(seq)))}
}

func createMark(t testing.TB, dir string, p datadir.Position) *datadir.Mark {
	t.Helper()
	m, err := datadir.CreateMark(dir, p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func closeMark(t testing.TB, m *datadir.Mark) {
	t.Helper()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

func markFile(dir string) string { return filepath.Join(dir, datadir.MarkName) }

// names reports whether the mark in dir names exactly this position.
func names(t *testing.T, dir string, p datadir.Position) bool {
	t.Helper()
	m, err := datadir.OpenMark(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer closeMark(t, m)
	return m.Seq() == p.Seq && m.Fits(p.Seq, p) && !m.Fits(p.Seq, datadir.Position{Seq: p.Seq, Chain: digest("another")})
}

func TestAMarkNamesWhatWasWrittenLast(t *testing.T) {
	dir := t.TempDir()
	if _, err := datadir.OpenMark(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the mark does not exist: %v", err)
	}
	m := createMark(t, dir, at(7))
	if !m.Exists() || m.Path() != markFile(dir) || m.Seq() != 7 {
		t.Errorf("created: %v, %q, %d", m.Exists(), m.Path(), m.Seq())
	}
	for seq := uint64(8); seq < 14; seq++ {
		if err := m.Advance(at(seq)); err != nil {
			t.Fatal(err)
		}
		if !names(t, dir, at(seq)) { // before it is synced: a kill does not lose it
			t.Errorf("the file does not name entry %d", seq)
		}
	}
	if err := m.Set(at(3)); err != nil { // a restore may go back
		t.Fatal(err)
	}
	if !names(t, dir, at(3)) || m.Seq() != 3 {
		t.Error("the file does not name what was set")
	}
	closeMark(t, m)
	if !names(t, dir, at(3)) {
		t.Error("closed, the file does not name what was set")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("other files are left: %v, %v", entries, err)
	}
	if info, err := os.Stat(markFile(dir)); err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
}

func TestTheMarkOfAStoreInMemoryIsNotWritten(t *testing.T) {
	var m datadir.Mark
	if m.Exists() {
		t.Error("it is a file")
	}
	if err := errors.Join(m.Advance(at(1)), m.Set(at(2)), m.Close()); err != nil {
		t.Error(err)
	}
}

// Two slots are written alternately: a torn write leaves the one before. Any damage of one slot leaves the
// other, and damage of both is an error.
func TestADamagedSlotLeavesTheOther(t *testing.T) {
	const block = 4096
	dir := t.TempDir()
	m := createMark(t, dir, at(1))
	for seq := uint64(2); seq <= 5; seq++ {
		if err := m.Set(at(seq)); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(markFile(dir))
		if err != nil || len(whole) != 2*block {
			t.Fatalf("the file has %d bytes: %v", len(whole), err)
		}
		older := seq - 1
		damaged := 0
		for slot := range 2 {
			for byteAt := range 61 { // all of a slot
				bad := bytes.Clone(whole)
				bad[slot*block+byteAt] ^= 1 << rand.IntN(8)
				if err := os.WriteFile(markFile(dir), bad, 0o600); err != nil {
					t.Fatal(err)
				}
				switch {
				case names(t, dir, at(older)):
					damaged++
				case !names(t, dir, at(seq)):
					t.Fatalf("with byte %d of slot %d damaged, the mark names neither %d nor %d", byteAt, slot, older, seq)
				}
			}
		}
		if damaged != 61 {
			t.Errorf("%d damaged bytes of 61 lead to the older slot", damaged)
		}
		for _, cut := range []int{block, block + 60, 60, 0} {
			if err := os.WriteFile(markFile(dir), whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			m, err := datadir.OpenMark(dir)
			if cut < 61 {
				if _, bad := errors.AsType[*datadir.MarkError](err); !bad || !strings.Contains(err.Error(), strconv.Quote(markFile(dir))) || !strings.Contains(err.Error(), "both copies are damaged") {
					t.Errorf("cut off after %d bytes: %v", cut, err)
				}
				continue
			}
			if err != nil || m.Seq() != older && m.Seq() != seq {
				t.Fatalf("cut off after %d bytes: %v", cut, err)
			}
			closeMark(t, m)
		}
		if err := os.WriteFile(markFile(dir), whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	closeMark(t, m)
}

func TestAnUnfinishedRestoreIsRefused(t *testing.T) {
	dir := t.TempDir()
	m := createMark(t, dir, datadir.Position{Seq: 4, Chain: digest("x"), Restoring: true})
	if _, err := datadir.OpenMark(dir); err == nil || !strings.Contains(err.Error(), "did not finish") {
		t.Errorf("opened: %v", err)
	}
	if err := m.Set(at(4)); err != nil {
		t.Fatal(err)
	}
	closeMark(t, m)
	if !names(t, dir, at(4)) {
		t.Error("the finished restore is not named")
	}
}

func TestWhichLogsFitAMark(t *testing.T) {
	for _, row := range []struct {
		marked uint64
		last   uint64
		at     datadir.Position // entry marked of the log
		want   bool
	}{
		{0, 0, datadir.Position{}, true},                            // nothing was committed
		{0, 9, datadir.Position{}, true},                            // nor marked
		{5, 5, at(5), true},                                         // whole
		{5, 9, at(5), true},                                         // the process ended before it marked 6 to 9
		{5, 5, datadir.Position{Seq: 5, Chain: digest("y")}, false}, // of another store
		{5, 9, datadir.Position{Seq: 5, Chain: digest("y")}, false},
		{5, 4, datadir.Position{}, false}, // cut off
		{5, 5, datadir.Position{}, false}, // its newest record is missing
		{5, 6, datadir.Position{}, true},  // the record of 5 was discarded
	} {
		dir := t.TempDir()
		m := createMark(t, dir, at(row.marked))
		if got := m.Fits(row.last, row.at); got != row.want {
			t.Errorf("a log up to %d, whose entry %d is there: %v, and the mark of %d: %v, want %v", row.last, row.at.Seq, row.at.Seq != 0, row.marked, got, row.want)
		}
		closeMark(t, m)
	}
}

// Whatever is in the file, it names an entry or is refused by its name.
func FuzzMark(f *testing.F) {
	dir := f.TempDir()
	closeMark(f, createMark(f, dir, at(3)))
	whole, err := os.ReadFile(markFile(dir))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:100])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(markFile(dir), text, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := datadir.OpenMark(dir)
		if err != nil {
			if _, bad := errors.AsType[*datadir.MarkError](err); !bad {
				t.Errorf("%v", err)
			}
			return
		}
		next := at(m.Seq()%100 + 1)
		if err := m.Set(next); err != nil {
			t.Fatal(err)
		}
		closeMark(t, m)
		if !names(t, dir, next) {
			t.Errorf("after the content %q, the mark does not name what was set", text)
		}
	})
}
