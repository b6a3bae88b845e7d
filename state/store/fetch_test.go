package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"runner.example/state/store"
)

// blobSource is where another node has blobs.
type blobSource struct {
	mu      sync.Mutex
	content string
	err     error
	calls   int
	open    int
	wait    chan struct{} // if not nil, a call waits until it is closed
}

func (b *blobSource) fetch(ctx context.Context, _ store.Digest) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if wait := b.wait; wait != nil {
		b.mu.Unlock()
		defer b.mu.Lock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if b.err != nil {
		return nil, b.err
	}
	b.open++
	return &fetched{strings.NewReader(b.content), b}, nil
}

type fetched struct {
	io.Reader
	from *blobSource
}

func (f *fetched) Close() error { f.from.open--; return nil }

func blobText(ctx context.Context, s *store.Store, d store.Digest) (string, error) {
	r, err := s.Blob(ctx, d)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), errors.Join(err, r.Close())
}

func TestABlobOfAnotherNodeIsFetchedOnce(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		source := &blobSource{content: "of another node"}
		s := open(store.Options{FetchBlob: source.fetch})
		d := store.Digest(sha256.Sum256([]byte(source.content)))
		if _, err := s.StatBlob(d); err != store.ErrNotFound {
			t.Errorf("before: %v", err)
		}
		if _, err := s.LocalBlob(t.Context(), d); err != store.ErrNotFound || source.calls != 0 {
			t.Errorf("of this node: %v, %d calls", err, source.calls)
		}
		for range 2 {
			if got, err := blobText(t.Context(), s, d); got != source.content || err != nil {
				t.Errorf("read %q, %v", got, err)
			}
		}
		if source.calls != 1 || source.open != 0 {
			t.Errorf("%d calls, %d not closed", source.calls, source.open)
		}
		if info, err := s.StatBlob(d); err != nil || info.Size != int64(len(source.content)) {
			t.Errorf("after: %+v, %v", info, err)
		}
	})
}

func TestAFailedFetchStoresNothing(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		broken := errors.New("connection lost")
		source := &blobSource{content: "other bytes"}
		s := open(store.Options{FetchBlob: source.fetch})
		d := store.Digest(sha256.Sum256([]byte("the right bytes")))
		if _, err := blobText(t.Context(), s, d); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "SHA-256") {
			t.Errorf("other bytes: %v", err)
		}
		source.err = broken
		if _, err := blobText(t.Context(), s, d); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, broken) {
			t.Errorf("no connection: %v", err)
		}
		source.err = store.ErrNotFound
		if _, err := blobText(t.Context(), s, d); err != store.ErrNotFound {
			t.Errorf("no node has it: %v", err)
		}
		if blobs, err := s.Blobs(); err != nil || len(blobs) != 0 || source.open != 0 {
			t.Errorf("left %v, %v, %d not closed", blobs, err, source.open)
		}
		source.content, source.err = "the right bytes", nil
		if got, err := blobText(t.Context(), s, d); got != source.content || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
	})
}

func TestConcurrentReadersOfABlobShareOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &blobSource{content: "of another node", wait: make(chan struct{})}
		s := mustOpen(t, store.Options{FetchBlob: source.fetch})
		d := store.Digest(sha256.Sum256([]byte(source.content)))
		first, giveUp := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := blobText(first, s, d)
			gone <- err
		}()
		synctest.Wait()
		done := make(chan error, 8)
		for range cap(done) {
			go func() {
				got, err := blobText(t.Context(), s, d)
				if got != source.content {
					err = errors.Join(err, errors.New("other content"))
				}
				done <- err
			}()
		}
		impatient, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := blobText(impatient, s, d)
			left <- err
		}()
		synctest.Wait()
		if source.calls != 1 {
			t.Errorf("%d calls at the same time", source.calls)
		}
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("a reader that does not wait any longer: %v", err)
		}
		giveUp() // the goroutine that fetches for all: another one takes over
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the first reader: %v", err)
		}
		synctest.Wait()
		close(source.wait)
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if source.calls != 2 {
			t.Errorf("%d calls, want 2", source.calls)
		}
	})
}

func TestAPanicDuringAFetchLeavesTheBlobFetchable(t *testing.T) {
	calls := 0
	content := []byte("of another node")
	s := mustOpen(t, store.Options{FetchBlob: func(context.Context, store.Digest) (io.ReadCloser, error) {
		if calls++; calls == 1 {
			panic("first")
		}
		return io.NopCloser(bytes.NewReader(content)), nil
	}})
	d := store.Digest(sha256.Sum256(content))
	func() {
		defer func() { _ = recover() }()
		_, _ = blobText(t.Context(), s, d)
	}()
	if got, err := blobText(t.Context(), s, d); got != string(content) || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

// A backup has what the store has. Before it, the store gets what it lacks of the files of rows.
func TestFilesThatReferencesNameAreFetchedForABackup(t *testing.T) {
	broken := errors.New("connection lost")
	contents, fetches := map[store.Digest]string{}, 0
	var fails error
	s := mustOpen(t, store.Options{Dir: t.TempDir(), FetchBlob: func(_ context.Context, d store.Digest) (io.ReadCloser, error) {
		fetches++
		if fails != nil {
			return nil, fails
		}
		if content, ok := contents[d]; ok {
			return io.NopCloser(strings.NewReader(content)), nil
		}
		return nil, store.ErrNotFound
	}})
	const files = 1500
	_, err := s.Update(t.Context(), func(tx *store.Tx) error {
		for i := range files {
			content := fmt.Sprint("file ", i)
			d := store.Digest(sha256.Sum256([]byte(content)))
			if i != 7 { // which no node has
				contents[d] = content
			}
			for _, owner := range []string{"one row", "another row"} {
				if err := tx.Set(store.AppendBlobReference(nil, d, []byte(owner)), nil); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	fails = broken
	if err := s.FetchReferencedBlobs(t.Context()); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, broken) {
		t.Errorf("while no node answers: %v", err)
	}
	fails, fetches = nil, 0
	if err := s.FetchReferencedBlobs(t.Context()); err != nil || fetches != files {
		t.Errorf("%d fetches of %d files: %v", fetches, files, err)
	}
	if blobs, err := s.Blobs(); err != nil || len(blobs) != files-1 {
		t.Errorf("%d blobs, %v", len(blobs), err)
	}
}
