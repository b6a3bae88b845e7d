package store_test

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
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
