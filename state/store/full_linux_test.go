package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"runner.example/internal/patches"
	"runner.example/state/store"
)

// disk is a separate file system that a test fills.
type disk struct {
	t   *testing.T
	dir string
}

// smallDisks are the file systems that tests fill.
var smallDisks = []string{"tmpfs", "ext4"}

// onSmallDisks runs test on file systems of that many bytes.
func onSmallDisks(t *testing.T, kinds []string, size int64, test func(t *testing.T, d *disk)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { test(t, mountDisk(t, kind, size)) })
	}
}

// mountDisk mounts a new file system until the test ends; where it cannot, it
// skips the test.
func mountDisk(t *testing.T, kind string, size int64) *disk {
	t.Helper()
	if !patches.Applied {
		t.Skip("built without the change of ristretto: a full disk ends the process")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can mount the small file systems that this test fills")
	}
	dir := t.TempDir()
	mount := []string{"-t", kind, "-o", fmt.Sprintf("size=%d", size), "none", dir}
	if kind == "ext4" {
		image := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, size); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mkfs.ext4", "-q", "-m", "0", image).CombinedOutput(); err != nil {
			t.Skipf("cannot make an ext4 file system: %v: %s", err, out)
		}
		mount = []string{"-o", "loop", image, dir}
	}
	if out, err := exec.Command("mount", mount...).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a %s: %v: %s", kind, err, out)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return &disk{t, dir}
}

// fill writes a file until the disk is full.
func (d *disk) fill() {
	f, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for n := 1 << 20; n >= 1; n /= 16 {
		for err == nil {
			_, err = f.Write(make([]byte, n))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			d.t.Fatal(err)
		}
		err = nil
	}
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatal(err)
	}
}

// empty removes what fill wrote.
func (d *disk) empty() {
	if err := os.Remove(d.filler()); err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
}

func (d *disk) filler() string { return filepath.Join(d.dir, "filler") }

func (d *disk) open() (*store.Store, error) {
	return store.OpenWindow(store.Options{Dir: filepath.Join(d.dir, "store")}, 50)
}

func (d *disk) mustOpen() *store.Store {
	d.t.Helper()
	s, err := d.open()
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// refused checks that the store refuses a write for lack of space, reads, and
// says why.
func refused(t *testing.T, s *store.Store) {
	t.Helper()
	_, err := s.Update(t.Context(), setter("refused", "1"))
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) {
		t.Errorf("a write on a full disk: %v", err)
	}
	if got := read(t, s, "k"); got != "1" {
		t.Errorf("on a full disk k reads %q", got)
	}
	if h := s.Health(); h.Writable || h.Reason == nil || !strings.Contains(h.Reason.Error(), "disk is full") {
		t.Errorf("on a full disk health is %+v", h)
	}
}

func TestWritesAreRefusedWhileOtherFilesFillTheDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	onSmallDisks(t, smallDisks, 64<<20, func(t *testing.T, d *disk) {
		s := d.mustOpen()
		put(t, s, "k", "1")
		for range 3 {
			d.fill()
			refused(t, s)
			if _, err := s.PutBlob(t.Context(), strings.NewReader(strings.Repeat("b", 1<<20))); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("a blob on a full disk: %v", err)
			}
			d.empty()
			put(t, s, "l", "1")
			if h := s.Health(); !h.Writable {
				t.Errorf("with space again health is %+v", h)
			}
		}
		d.fill()
		if err := s.Close(); err != nil && !strings.Contains(err.Error(), "disk is full") {
			t.Error(err)
		}
	})
}

// A ramfs does not support reservation, and does not report its free space.
func TestAStoreWorksOnAFileSystemWithoutReservation(t *testing.T) {
	d := mountDisk(t, "ramfs", 0)
	s := d.mustOpen()
	for i := range 8 {
		put(t, s, fmt.Sprintf("row/%d", i), strings.Repeat("x", 5<<20))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = d.mustOpen()
	if got := scanAll(t, s, "row/"); len(got) < 8*5<<20 {
		t.Errorf("only %d bytes are left", len(got))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestAStoreOpensOnAFullDiskOrNamesTheCause(t *testing.T) {
	onSmallDisks(t, smallDisks, 64<<20, func(t *testing.T, d *disk) {
		s := d.mustOpen()
		put(t, s, "k", "1", "long", strings.Repeat("x", 5<<20))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		d.fill()
		s, err := d.open()
		switch {
		case err == nil:
			refused(t, s)
		case !errors.Is(err, syscall.ENOSPC) && !strings.Contains(err.Error(), "disk is full"):
			t.Errorf("opening on a full disk: %v", err)
		}
		d.empty()
		if err != nil {
			s = d.mustOpen()
		}
		put(t, s, "k", "2")
		if got := read(t, s, "long"); len(got) != 5<<20 {
			t.Errorf("of the long value %d bytes are left", len(got))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAStoreFillsItsDiskAndKeepsAcknowledgedCommits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	onSmallDisks(t, smallDisks, 256<<20, func(t *testing.T, d *disk) {
		s := d.mustOpen()
		put(t, s, "k", "1")
		value := strings.Repeat("v", 100<<10)
		acked := 0
		for {
			_, err := s.Update(t.Context(), setter(fmt.Sprintf("row/%06d", acked), value))
			if errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) {
				break // a table that is written now may free space
			}
			if err != nil {
				t.Fatal(err)
			}
			acked++
		}
		if acked < 500 {
			t.Errorf("only %d rows of 100 KiB fit", acked)
		}
		check := func() {
			t.Helper()
			rows := 0
			err := s.View(t.Context(), func(tx *store.Tx) error {
				for item, err := range tx.Scan([]byte("row/"), nil, false) {
					if err != nil {
						return err
					}
					if string(item.Value) != value {
						t.Errorf("%s has changed", item.Key)
					}
					rows++
				}
				return nil
			})
			if err != nil || rows != acked {
				t.Errorf("%d of %d rows are left: %v", rows, acked, err)
			}
		}
		check()
		// A table or a compaction may wait for space: then the directory stays locked until the
		// process ends.
		if err := s.Close(); err != nil && !strings.Contains(err.Error(), "disk is full") {
			t.Fatal(err)
		} else if err != nil {
			t.Skip(err)
		}
		s = d.mustOpen()
		check()
		if err := s.Close(); err != nil && !strings.Contains(err.Error(), "disk is full") {
			t.Error(err)
		}
	})
}

func TestABackupThatDoesNotFitIsNotRestored(t *testing.T) {
	sequential(t)
	from := mustOpen(t, store.Options{Dir: t.TempDir()})
	for i := range 100 {
		put(t, from, fmt.Sprintf("row/%03d", i), strings.Repeat(string(rune('a'+i%26)), 1<<20))
	}
	var backup bytes.Buffer
	if _, err := from.Backup(t.Context(), &backup, nil, nil); err != nil {
		t.Fatal(err)
	}
	want := scanAll(t, from, "")
	onSmallDisks(t, smallDisks, 96<<20, func(t *testing.T, d *disk) {
		s := d.mustOpen()
		err := restore(t, s, bytes.NewReader(backup.Bytes()))
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a backup larger than the disk: %v", err)
		}
		put(t, s, "k", "1")
		if got := scanAll(t, s, ""); got != "k=1" {
			t.Errorf("the store holds %d bytes", len(got))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	onSmallDisks(t, smallDisks, 480<<20, func(t *testing.T, d *disk) {
		s := d.mustOpen()
		if err := restore(t, s, bytes.NewReader(backup.Bytes())); err != nil {
			t.Fatal(err)
		}
		if scanAll(t, s, "") != want {
			t.Error("the restored store holds something else")
		}
		put(t, s, "k", "1")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The disk fills and empties while tables are written and compacted.
func TestADiskThatFillsRepeatedlyLosesNoCommit(t *testing.T) {
	sequential(t)
	rounds, kinds := 2, smallDisks[:1]
	if os.Getenv("RUNNER_SOAK") == "1" {
		rounds, kinds = 20, smallDisks
	}
	onSmallDisks(t, kinds, 700<<20, func(t *testing.T, d *disk) {
		s := d.mustOpen()
		ctx, cancel := context.WithCancel(t.Context())
		const keys = 50
		var mu sync.Mutex
		acked, unknown := map[string]string{}, map[string]bool{}
		var writers sync.WaitGroup
		random := newRandom(t)
		for w := range 4 {
			r := random()
			writers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					key := fmt.Sprintf("%d/%04d", w, r.IntN(keys))
					value := fmt.Sprintf("%d/", n) + strings.Repeat(string(rune('a'+n%26)), 1+r.IntN(400<<10))
					_, err := s.Update(t.Context(), setter(key, value))
					mu.Lock()
					switch {
					case err == nil:
						acked[key] = value
						delete(unknown, key)
					case !errors.Is(err, store.ErrUnavailable):
						t.Error(err)
						unknown[key] = true
					}
					mu.Unlock()
				}
			})
		}
		r := random()
		for range rounds {
			waitForCommits(t, s, 200+r.IntN(300))
			d.fill()
			for refusals := 0; refusals < 20; { // until writes are refused reliably
				// A commit that has begun when the disk fills waits for space, and those behind it.
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if _, err := s.Update(ctx, setter("probe", "1")); err != nil {
					refusals++
				}
				cancel()
			}
			d.empty()
		}
		cancel()
		writers.Wait()
		check := func(s *store.Store) {
			t.Helper()
			lost := 0
			err := s.View(t.Context(), func(tx *store.Tx) error {
				for key, value := range acked {
					if got := get(tx, key); got != value && !unknown[key] {
						lost++
					}
				}
				return nil
			})
			if err != nil || lost > 0 {
				t.Errorf("of %d keys %d are lost or old: %v", len(acked), lost, err)
			}
		}
		check(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = d.mustOpen()
		check(s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// waitForCommits returns after n more commits, or after a time limit.
func waitForCommits(t *testing.T, s *store.Store, n int) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_ = s.WaitFor(ctx, s.Health().Applied+store.Seq(n))
}

// What other nodes have committed cannot be refused: the node waits until there is space.
func TestANodeWithAFullDiskAppliesLater(t *testing.T) {
	sequential(t)
	onSmallDisks(t, smallDisks[:1], 64<<20, func(t *testing.T, d *disk) {
		log := store.NewSimLog(nil)
		defer log.Close()
		full, err := log.Open(store.Options{Dir: filepath.Join(d.dir, "store")}, 50)
		if err != nil {
			t.Fatal(err)
		}
		other, err := log.Open(store.Options{}, 50)
		if err != nil {
			t.Fatal(err)
		}
		put(t, other, "k", "1")
		if err := full.WaitFor(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		d.fill()
		seq := put(t, other, "k", "2")
		refused(t, full)
		if got := full.Health().Applied; got != 1 {
			t.Errorf("on a full disk it has commit %d", got)
		}
		d.empty()
		if err := full.WaitFor(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
		put(t, full, "l", "")
		if err := other.WaitFor(t.Context(), 3); err != nil || full.Chain() != other.Chain() {
			t.Errorf("the nodes differ: %v", err)
		}
		if got := scanAll(t, full, ""); got != "k=2 l=" {
			t.Errorf("it has %s", got)
		}
		if err := errors.Join(full.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	})
}
