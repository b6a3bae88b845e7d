package store_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"runner.example/state/store"
)

// zeros yields bytes without end.
type zeros struct{ n byte }

func (z *zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = z.n
	}
	return len(p), nil
}

// Uploads end before they take the space that commits need, and files that are there are read.
func TestUploadsLeaveTheSpaceOfCommits(t *testing.T) {
	onSmallDisks(t, smallDisks, 128<<20, func(t *testing.T, d *disk) {
		s := d.mustOpen()
		put(t, s, "k", "1")
		kept := putBlob(t, s, "kept")
		if _, _, err := s.PutPinned(t.Context(), &zeros{}); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("an upload without end: %v", err)
		}
		stored := 0
		for size := int64(1 << 20); ; stored++ {
			_, _, err := s.PutPinned(t.Context(), io.LimitReader(&zeros{byte(stored)}, size))
			if errors.Is(err, store.ErrUnavailable) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if stored == 0 {
			t.Error("nothing could be uploaded")
		}
		put(t, s, "after", strings.Repeat("x", 1<<20))
		if got := readBlob(t, s, kept); got != "kept" {
			t.Errorf("on the full disk a blob reads %q", got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if left, err := filepath.Glob(filepath.Join(d.dir, "store", "blobs", "new-*")); err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
	})
}

// What commits need depends on what was committed: its tables are written later.
func TestUploadsLeaveTheSpaceOfTablesThatAreNotWritten(t *testing.T) {
	onSmallDisks(t, smallDisks, 256<<20, func(t *testing.T, d *disk) {
		s := d.mustOpen()
		for i := range 25 {
			put(t, s, "before"+strconv.Itoa(i), strings.Repeat("x", 1<<20))
		}
		if _, _, err := s.PutPinned(t.Context(), &zeros{}); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("an upload without end: %v", err)
		}
		for {
			_, _, err := s.PutPinned(t.Context(), io.LimitReader(rand.Reader, 1<<20))
			if errors.Is(err, store.ErrUnavailable) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		for i := range 4 {
			put(t, s, "after"+strconv.Itoa(i), strings.Repeat("x", 1<<20))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Each of many uploads at the same time may seem to fit on the disk.
func TestUploadsAtTheSameTimeLeaveTheSpaceOfCommits(t *testing.T) {
	onSmallDisks(t, smallDisks, 128<<20, func(t *testing.T, d *disk) {
		s := d.mustOpen()
		put(t, s, "k", "1")
		const uploads = 100
		written, goOn := make(chan struct{}, uploads), make(chan struct{})
		var running sync.WaitGroup
		errs := make([]error, uploads)
		for i := range uploads {
			running.Go(func() {
				tell := sync.OnceFunc(func() { written <- struct{}{} })
				_, _, errs[i] = s.PutPinned(t.Context(), io.MultiReader(io.LimitReader(&zeros{byte(i)}, 3<<20), readerFunc(func([]byte) (int, error) {
					tell()
					<-goOn
					return 0, io.EOF
				})))
				tell() // it was refused
			})
		}
		for range uploads {
			<-written
		}
		put(t, s, "during", strings.Repeat("x", 1<<20))
		close(goOn)
		running.Wait()
		refused := 0
		for _, err := range errs {
			if errors.Is(err, store.ErrUnavailable) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		if refused == 0 || refused == uploads {
			t.Errorf("%d of %d uploads were refused", refused, uploads)
		}
		put(t, s, "after", strings.Repeat("x", 1<<20))
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A node that other nodes send files leaves the space of commits too.
func TestFetchedBlobsLeaveTheSpaceOfCommits(t *testing.T) {
	onSmallDisks(t, []string{"tmpfs"}, 128<<20, func(t *testing.T, d *disk) {
		s, err := store.Open(store.Options{Dir: filepath.Join(d.dir, "store"), FetchBlob: func(context.Context, store.Digest) (io.ReadCloser, error) {
			return io.NopCloser(io.LimitReader(&zeros{}, 1<<30)), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, "k", "1")
		if err := s.FetchBlob(t.Context(), store.Digest{1}); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "are needed") {
			t.Errorf("a blob that does not fit: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
