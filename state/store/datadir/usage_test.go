package datadir_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"runner.example/state/store/datadir"
)

// freeBytes returns how many more bytes PutPinned accepts, at most most. It removes what it stores.
func freeBytes(t *testing.T, b *datadir.Blobs, most int) int {
	t.Helper()
	low, high := 0, most
	for low < high {
		n := (low + high + 1) / 2
		_, release, err := b.PutPinned(t.Context(), strings.NewReader(strings.Repeat("r", n)))
		switch {
		case err == nil:
			release(func() (bool, error) { return false, nil })
			low = n
		case errors.Is(err, datadir.ErrLimit):
			high = n - 1
		default:
			t.Fatal(err)
		}
	}
	return low
}

func TestPinnedBlobsStopAtTheLimitOfAllBlobs(t *testing.T) {
	inMemoryAndOnDisk(t, func(t *testing.T, b *datadir.Blobs) {
		b.Limit = 1000
		dir := filepath.Dir(b.Path(datadir.Digest{}))
		if dir != "." { // the limit counts blobs that exist before Open
			put(t, b, strings.Repeat("before", 10))
			b = &datadir.Blobs{Limit: 1000}
			if err := b.Open(dir); err != nil {
				t.Fatal(err)
			}
		} else {
			put(t, b, strings.Repeat("before", 10))
		}
		if n := freeBytes(t, b, 2000); n != 940 {
			t.Errorf("%d bytes are free, want 940 of 1000", n)
		}
		put(t, b, strings.Repeat("before", 10)) // again
		a := put(t, b, strings.Repeat("a", 100))
		if n := freeBytes(t, b, 2000); n != 840 {
			t.Errorf("%d bytes are free, want 840", n)
		}
		put(t, b, strings.Repeat("b", 900)) // Put has no limit
		if n := freeBytes(t, b, 2000); n != 0 {
			t.Errorf("beyond the limit %d bytes are free", n)
		}
		if err := errors.Join(b.Remove(a), b.Remove(digest(strings.Repeat("b", 900)))); err != nil {
			t.Fatal(err)
		}
		var uploads sync.WaitGroup
		for i := range 8 {
			uploads.Go(func() {
				for range 20 {
					_, release, err := b.PutPinned(t.Context(), strings.NewReader(strings.Repeat(string(rune('c'+i/2)), 200)))
					if err == nil {
						release(func() (bool, error) { return false, nil })
					} else if !errors.Is(err, datadir.ErrLimit) {
						t.Error(err)
					}
				}
			})
		}
		uploads.Wait()
		if n := freeBytes(t, b, 2000); n != 940 {
			t.Errorf("at the end %d bytes are free, want 940", n)
		}
	})
}
