package datadir_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/state/store/datadir"
	"runner.example/tests/harness"
)

// What a call has stored is on disk when it returns: the bytes, and the names in their directory.
func TestAPowerCutLosesNothingThatWasStored(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the file system of the test")
	}
	disk := harness.NewForgetfulDisk(t)
	cut := func() {
		disk.Cut()
		disk.Mount(0)
	}
	dir := filepath.Join(disk.Dir, "blobs")
	opened := func() *datadir.Blobs {
		b := new(datadir.Blobs)
		if err := b.Open(dir); err != nil {
			t.Fatal(err)
		}
		return b
	}
	opened()
	disk.Sync()

	b := opened()
	first := put(t, b, "content")
	cut()
	b = opened()
	if text, err := read(t, b, first); err != nil || text != "content" {
		t.Errorf("a blob after a power cut: %q, %v", text, err)
	}
	if all, err := b.List(); err != nil || len(all) != 1 {
		t.Errorf("after a power cut there are %v, %v", all, err)
	}
	put(t, b, "content") // replaces it
	second := put(t, b, "more")
	cut()
	for d, want := range map[datadir.Digest]string{first: "content", second: "more"} {
		if text, err := read(t, b, d); err != nil || text != want {
			t.Errorf("after the second power cut: %q, %v; want %q", text, err, want)
		}
	}

	created := createMark(t, disk.Dir, at(1))
	cut()
	if !names(t, disk.Dir, at(1)) {
		t.Error("a new mark is lost")
	}
	_ = created.Close() // of the disk before the power cut
	m, err := datadir.OpenMark(disk.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Set(at(2)); err != nil {
		t.Fatal(err)
	}
	cut()
	if !names(t, disk.Dir, at(2)) {
		t.Error("a mark that was set is lost")
	}
	_ = m.Close()

	for _, node := range []bool{true, false} {
		if err := datadir.SetNode(disk.Dir, node); err != nil {
			t.Fatal(err)
		}
		cut()
		if got, err := datadir.IsNode(disk.Dir); err != nil || got != node {
			t.Errorf("the directory is a node's: %v, %v; want %v", got, err, node)
		}
	}
}

// A mark that was advanced is synced within 10 ms, and at the latest when it is closed.
func TestAnAdvancedMarkIsSynced(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the file system of the test")
	}
	disk := harness.NewForgetfulDisk(t)
	created := createMark(t, disk.Dir, at(1))
	closeMark(t, created)
	for seq := uint64(2); seq < 5; seq++ {
		synctest.Test(t, func(t *testing.T) {
			m, err := datadir.OpenMark(disk.Dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Advance(at(seq)); err != nil {
				t.Fatal(err)
			}
			if seq%2 == 0 {
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
				disk.Cut()
				_ = m.Close()
			} else {
				closeMark(t, m)
				disk.Cut()
			}
		})
		disk.Mount(0)
		if !names(t, disk.Dir, at(seq)) {
			t.Errorf("entry %d is not named", seq)
		}
	}
	if _, err := datadir.OpenMark(filepath.Join(disk.Dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A mark that is advanced while an earlier one is being synced gets a sync of its own.
func TestAMarkThatIsAdvancedDuringASyncIsSynced(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the file system of the test")
	}
	disk := harness.NewForgetfulDisk(t)
	closeMark(t, createMark(t, disk.Dir, at(1)))
	for seq := uint64(3); seq < 43; seq += 2 {
		synctest.Test(t, func(t *testing.T) {
			m, err := datadir.OpenMark(disk.Dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Advance(at(seq - 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond) // the sync begins
			for range 10 * seq {
				runtime.Gosched()
			}
			if err := m.Advance(at(seq)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			disk.Cut()
			_ = m.Close()
		})
		disk.Mount(0)
		if !names(t, disk.Dir, at(seq)) {
			t.Fatalf("entry %d is not named", seq)
		}
	}
}
