package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"runner.example/state/store"
)

// leave fills the disk except for so many bytes.
func (d *disk) leave(free int64) {
	d.t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &s); err != nil {
		d.t.Fatal(err)
	}
	fill := int64(s.Bavail)*s.Bsize - free
	if err := os.WriteFile(d.filler(), make([]byte, fill), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// The disk of a store of a cluster is full when an entry is delivered. What waits for the log is told so at once: that
// its own entry may be stored, and that later ones are not.
func TestAFullDiskAnswersWhatWaitsForASharedLog(t *testing.T) {
	d := mountDisk(t, "tmpfs", 96<<20)
	log := store.NewSimLog(nil)
	t.Cleanup(log.Close)
	full, err := log.Open(store.Options{Dir: filepath.Join(d.dir, "store")}, 50)
	if err != nil {
		t.Fatal(err)
	}
	other, err := log.Open(store.Options{}, 50)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	refused := func(what string, err error) {
		t.Helper()
		if !store.IsFull(err) || !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) {
			t.Errorf("%s: %v", what, err)
		}
	}
	has := func(s *store.Store, key string, seq store.Seq) {
		t.Helper()
		if err := s.WaitFor(ctx, seq); err != nil {
			t.Fatal(err)
		}
		if got := read(t, s, key); len(got) != 5<<20 {
			t.Errorf("%s has %d bytes", key, len(got))
		}
	}
	long := strings.Repeat("x", 5<<20)
	put(t, full, "k", "1")

	d.leave(10 << 20) // enough for a small commit, and not for a long one
	if _, err := full.Update(ctx, setter("own", long)); !errors.Is(err, store.ErrUnknown) || !store.IsFull(err) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("an entry that the log has: %v", err)
	}
	var writers sync.WaitGroup
	for i := range 20 {
		writers.Go(func() {
			_, err := full.Update(ctx, setter(fmt.Sprint(i), ""))
			refused("a commit behind it", err)
		})
	}
	writers.Wait()
	seq, err := other.Update(ctx, setter("l", "1")) // it has the entry
	if err != nil {
		t.Fatal(err)
	}
	has(other, "own", seq)
	if got := read(t, full, "k"); got != "1" {
		t.Errorf("k reads %q", got)
	}
	d.empty()
	has(full, "own", seq)
	put(t, full, "k", "2")

	// The entry of another store.
	d.leave(10 << 20)
	if seq, err = other.Update(ctx, setter("theirs", long)); err != nil {
		t.Fatal(err)
	}
	for full.Health().Writable { // until the entry has been delivered
		if ctx.Err() != nil {
			t.Fatal("the disk is not full")
		}
		<-time.After(time.Millisecond)
	}
	_, err = full.Update(ctx, setter("m", "1"))
	refused("a commit behind the entry of another store", err)
	if err := full.Close(); err != nil && !errors.Is(err, store.ErrUnflushed) {
		t.Errorf("closed on a full disk: %v", err)
	}
	has(other, "theirs", seq)
}
