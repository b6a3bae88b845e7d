package store_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"runner.example/state/store"
	"runner.example/tests/harness"
)

func putPinned(t *testing.T, s *store.Store, text string) (store.Digest, func()) {
	t.Helper()
	info, release, err := s.PutPinned(t.Context(), strings.NewReader(text))
	if err != nil || info.Size != int64(len(text)) {
		t.Fatalf("stored as %+v, %v", info, err)
	}
	return info.Digest, release
}

// addReference commits a reference of the owner to the blob.
func addReference(t *testing.T, s *store.Store, d store.Digest, owner string) {
	t.Helper()
	_, err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Set(store.AppendBlobReference(nil, d, []byte(owner)), nil) })
	if err != nil {
		t.Fatal(err)
	}
}

func removeReference(t *testing.T, s *store.Store, d store.Digest, owner string) {
	t.Helper()
	_, err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Delete(store.AppendBlobReference(nil, d, []byte(owner))) })
	if err != nil {
		t.Fatal(err)
	}
}

func hasBlob(t *testing.T, s *store.Store, d store.Digest) bool {
	t.Helper()
	_, err := s.StatBlob(d)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// sweep deletes all blobs without references and pins, except keep, however new they are.
func sweep(t *testing.T, s *store.Store, keep ...store.Digest) (deleted int) {
	t.Helper()
	keeps := func(d store.Digest) bool {
		for _, k := range keep {
			if k == d {
				return true
			}
		}
		return false
	}
	if err := s.SweepBlobs(t.Context(), time.Now().Add(time.Hour), keeps, func(store.BlobInfo) { deleted++ }); err != nil {
		t.Fatal(err)
	}
	return deleted
}

func TestAnOpenBlobIsReadAtAnyOffset(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		content := []byte(strings.Repeat("0123456789", 10_000))
		d := putBlob(t, s, string(content))
		b, err := s.OpenBlob(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if b.Size() != int64(len(content)) {
			t.Errorf("the size is %d", b.Size())
		}
		part := make([]byte, 4)
		if n, err := b.ReadAt(part, 99_995); n != 4 || err != nil || string(part) != "5678" {
			t.Errorf("ReadAt: %q, %v", part[:n], err)
		}
		if at, err := b.Seek(-10, io.SeekEnd); at != 99_990 || err != nil {
			t.Errorf("Seek: %d, %v", at, err)
		}
		if err := s.DeleteBlob(d); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(b); err != nil || string(rest) != "0123456789" {
			t.Errorf("the rest of a deleted blob: %q, %v", rest, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := s.OpenBlob(t.Context(), d); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an absent blob: %v", err)
		}
		d = putBlob(t, s, string(content))
		if b, err = s.OpenBlob(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if err := iotest.TestReader(b, content); err != nil {
			t.Error(err)
		}
	})
}

func TestABlobIsDeletedWithItsLastPin(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		d, first := putPinned(t, s, "upload")
		second := s.PinBlob(d)
		_, third := putPinned(t, s, "upload")
		if err := s.DeleteBlob(d); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a pinned blob is deleted: %v", err)
		}
		if n := sweep(t, s); n != 0 {
			t.Errorf("the sweep deleted %d blobs", n)
		}
		first()
		first() // does nothing
		third()
		if !hasBlob(t, s, d) {
			t.Error("deleted before the last pin")
		}
		second()
		if hasBlob(t, s, d) {
			t.Error("the blob is not deleted with its last pin")
		}
	})
}

func TestABlobThatIsReferencedOrStoredOtherwiseOutlivesItsPins(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		for text, other := range map[string]func(d store.Digest){
			"referenced":    func(d store.Digest) { addReference(t, s, d, "row") },
			"stored during": func(store.Digest) { putBlob(t, s, "stored during") },
			"stored together": func(store.Digest) {
				if err := s.PutBlobs(t.Context(), [][]byte{[]byte("stored together")}); err != nil {
					t.Fatal(err)
				}
			},
		} {
			d, release := putPinned(t, s, text)
			other(d)
			release()
			if got := readBlob(t, s, d); got != text {
				t.Errorf("%s: %q", text, got)
			}
		}
		before := putBlob(t, s, "stored before")
		_, release := putPinned(t, s, "stored before")
		release()
		if !hasBlob(t, s, before) {
			t.Error("a blob that existed before is deleted with its pin")
		}
	})
}

func TestASweepDeletesBlobsWithoutReferencesAndPins(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		kept, referenced, pinned, unused := putBlob(t, s, "kept"), putBlob(t, s, "referenced"), putBlob(t, s, "pinned"), putBlob(t, s, "unused")
		addReference(t, s, referenced, "a")
		addReference(t, s, referenced, "b")
		release := s.PinBlob(pinned)
		err := s.SweepBlobs(t.Context(), time.Now().Add(-time.Hour), func(store.Digest) bool { return false }, func(store.BlobInfo) {
			t.Error("a new blob is deleted")
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := sweep(t, s, kept); n != 1 || hasBlob(t, s, unused) {
			t.Errorf("%d blobs are deleted", n)
		}
		release()
		removeReference(t, s, referenced, "a")
		if n := sweep(t, s, kept); n != 1 || hasBlob(t, s, pinned) {
			t.Errorf("after the release of the pin, %d blobs are deleted", n)
		}
		removeReference(t, s, referenced, "b")
		if n := sweep(t, s, kept); n != 1 || hasBlob(t, s, referenced) {
			t.Errorf("without references, %d blobs are deleted", n)
		}
		if n := sweep(t, s); n != 1 || hasBlob(t, s, kept) {
			t.Errorf("at last %d blobs are deleted", n)
		}
	})
}

// Goroutines upload the same few contents, and write and delete references to some of them, during sweeps. No reference is
// without its blob, and at the end no blob is left.
func TestNoReferencedBlobIsDeletedByConcurrentSweeps(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		texts := []string{"a", "b", "c"}
		ctx, cancel := context.WithCancel(t.Context())
		swept := make(chan error, 1)
		go func() {
			for ctx.Err() == nil {
				err := s.SweepBlobs(t.Context(), time.Now().Add(time.Hour), func(store.Digest) bool { return false }, func(store.BlobInfo) {})
				if err != nil {
					swept <- err
					return
				}
			}
			swept <- nil
		}()
		done := make(chan error, 4)
		for worker := range 4 {
			go func() {
				random := rand.New(rand.NewPCG(1, uint64(worker)))
				owner := []byte{byte(worker)}
				done <- func() error {
					for range 100 {
						info, release, err := s.PutPinned(t.Context(), strings.NewReader(texts[random.IntN(len(texts))]))
						if err != nil {
							return err
						}
						keeps, key := random.IntN(2) == 0, store.AppendBlobReference(nil, info.Digest, owner)
						_, err = s.Update(t.Context(), func(tx *store.Tx) error {
							if keeps {
								return tx.Set(key, nil)
							}
							return nil
						})
						release()
						if err != nil {
							return err
						}
						if !keeps {
							continue
						}
						if _, err := s.StatBlob(info.Digest); err != nil {
							return err
						}
						if _, err = s.Update(t.Context(), func(tx *store.Tx) error { return tx.Delete(key) }); err != nil {
							return err
						}
					}
					return nil
				}()
			}()
		}
		for range 4 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		cancel()
		if err := <-swept; err != nil {
			t.Error(err)
		}
		sweep(t, s)
		if all, err := s.Blobs(); err != nil || len(all) != 0 {
			t.Errorf("left: %v, %v", all, err)
		}
	})
}

func TestADamagedBlobIsFoundAndFetchedAgain(t *testing.T) {
	for _, others := range []bool{false, true} {
		var text harness.LockedBuffer
		o := store.Options{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&text, nil))}
		if others {
			o.FetchBlob = func(context.Context, store.Digest) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader("content")), nil
			}
		}
		s := mustOpen(t, o)
		d := putBlob(t, s, "content")
		putBlob(t, s, strings.Repeat("other", 1<<20))
		s.CheckBlobs()
		if text.String() != "" {
			t.Errorf("of whole blobs is logged: %s", text.String())
		}
		path := filepath.Join(o.Dir, "blobs", d.String())
		if err := os.WriteFile(path, []byte("c0ntent"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.CheckBlobs()
		want := "blob damaged"
		if others {
			want = "damaged blob replaced"
		}
		if !strings.Contains(text.String(), want) || !strings.Contains(text.String(), d.String()) {
			t.Errorf("logged %q, want %q", text.String(), want)
		}
		if b, err := s.Blob(t.Context(), d); (err == nil) != others {
			t.Errorf("read after the check: %v", err)
		} else if err == nil {
			b.Close()
		}
	}
}

func TestUploadsStopAtTheLimitOfFiles(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		s := mustOpen(t, store.Options{Dir: dir, MaxFiles: 10})
		d, release := putPinned(t, s, "7 bytes")
		_, _, err := s.PutPinned(t.Context(), strings.NewReader("4 by"))
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "[files] max_total") {
			t.Errorf("beyond the limit: %v", err)
		}
		if got := readBlob(t, s, d); got != "7 bytes" {
			t.Errorf("at the limit a blob reads %q", got)
		}
		release()
		putPinned(t, s, "10 bytes !")
	}
}

// The context of an Update may end while its commit is being applied. Then the pin is released before the reference is
// visible.
func TestABlobOutlivesACommitWhoseOutcomeIsUnknown(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		s := mustOpen(t, store.Options{Dir: dir})
		applying, apply := make(chan struct{}), make(chan struct{})
		once := sync.OnceFunc(func() {
			close(applying)
			<-apply
		})
		defer s.OnApply([]byte(store.BlobPrefix), func(store.Seq, store.Change) { once() })()
		d, release := putPinned(t, s, "content")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.Update(ctx, func(tx *store.Tx) error { return tx.Set(store.AppendBlobReference(nil, d, []byte("row")), nil) })
			release()
			ended <- err
		}()
		<-applying
		cancel()
		if err := <-ended; !errors.Is(err, store.ErrUnknown) {
			t.Errorf("the Update returns %v", err)
		}
		if n := sweep(t, s); n != 0 || !hasBlob(t, s, d) {
			t.Errorf("the blob is there: %v, after a sweep of %d", hasBlob(t, s, d), n)
		}
		close(apply)
		put(t, s, "after", "1") // the commit before it is applied
		if sweep(t, s); readBlob(t, s, d) != "content" {
			t.Error("the blob has changed")
		}
		removeReference(t, s, d, "row")
		if sweep(t, s); hasBlob(t, s, d) {
			t.Error("the pin of the commit was not released")
		}
	}
}
