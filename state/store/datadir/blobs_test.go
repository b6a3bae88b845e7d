package datadir_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"runner.example/state/store/datadir"
)

func digest(text string) datadir.Digest { return sha256.Sum256([]byte(text)) }

func accept(datadir.Digest) error { return nil }

// inMemoryAndOnDisk runs a test with both backends.
func inMemoryAndOnDisk(t *testing.T, test func(t *testing.T, b *datadir.Blobs)) {
	t.Run("in memory", func(t *testing.T) { test(t, new(datadir.Blobs)) })
	t.Run("on disk", func(t *testing.T) { test(t, onDisk(t)) })
}

func onDisk(t *testing.T) *datadir.Blobs {
	t.Helper()
	b := new(datadir.Blobs)
	if err := b.Open(filepath.Join(t.TempDir(), "blobs")); err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, b *datadir.Blobs, text string) datadir.Digest {
	t.Helper()
	d, err := b.Put(t.Context(), strings.NewReader(text), accept)
	if err != nil || d != digest(text) {
		t.Fatalf("stored as %v, want %v: %v", d, digest(text), err)
	}
	return d
}

func read(t *testing.T, b *datadir.Blobs, d datadir.Digest) (string, error) {
	t.Helper()
	r, err := b.Read(t.Context(), d)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), errors.Join(err, r.Close())
}

// Random puts and removals are compared with a map. On disk, the directory is reopened in between.
func TestBlobsAgreeWithAMap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	inMemoryAndOnDisk(t, func(t *testing.T, b *datadir.Blobs) {
		random := rand.New(rand.NewPCG(seed, 0))
		model := map[datadir.Digest]string{}
		for range 200 {
			text := strings.Repeat(string('a'+rune(random.IntN(8))), random.IntN(3)*4_000)
			switch d := digest(text); random.IntN(4) {
			case 0, 1:
				put(t, b, text)
				model[d] = text
			case 2:
				_, there := model[d]
				if err := b.Remove(d); there != (err == nil) || err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("remove %v, which exists: %v: %v", d, there, err)
				}
				delete(model, d)
			case 3:
				if dir := filepath.Dir(b.Path(d)); dir != "." {
					b = new(datadir.Blobs)
					if err := b.Open(dir); err != nil {
						t.Fatal(err)
					}
				}
			}
			all, err := b.List()
			if err != nil || len(all) != len(model) || !slices.IsSortedFunc(all, func(x, y datadir.Digest) int { return bytes.Compare(x[:], y[:]) }) {
				t.Fatalf("%d blobs are listed, want %d in order: %v", len(all), len(model), err)
			}
			for _, d := range all {
				want, there := model[d]
				got, err := read(t, b, d)
				if !there || err != nil || got != want {
					t.Fatalf("%v has %d bytes, want %d (%v): %v", d, len(got), len(want), there, err)
				}
				if info, err := b.Info(d); err != nil || info.Digest != d || info.Size != int64(len(want)) || time.Since(info.Stored).Abs() > time.Hour {
					t.Fatalf("Info: %+v, %v", info, err)
				}
			}
		}
		absent := digest("absent")
		_, err := read(t, b, absent)
		_, infoErr := b.Info(absent)
		if !errors.Is(err, fs.ErrNotExist) || !errors.Is(infoErr, fs.ErrNotExist) {
			t.Errorf("a blob that does not exist: %v, %v", err, infoErr)
		}
	})
}

func TestManyBlobsAreStoredTogether(t *testing.T) {
	inMemoryAndOnDisk(t, func(t *testing.T, b *datadir.Blobs) {
		want := map[datadir.Digest]string{}
		var blobs [][]byte
		for i := range 100 {
			text := strings.Repeat("x", i%40) // some are equal
			want[digest(text)] = text
			blobs = append(blobs, []byte(text))
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := b.PutAll(ended, blobs); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the context: %v", err)
		}
		if err := errors.Join(b.PutAll(t.Context(), blobs), b.PutAll(t.Context(), nil)); err != nil {
			t.Fatal(err)
		}
		for d, text := range want {
			if got, err := read(t, b, d); err != nil || got != text {
				t.Fatalf("%v is read as %q, %v", d, got, err)
			}
		}
		if all, err := b.List(); err != nil || len(all) != len(want) {
			t.Errorf("%d blobs are listed, %v; want %d", len(all), err, len(want))
		}
	})
}

// files returns the names in the directory of the blobs.
func files(t *testing.T, b *datadir.Blobs) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(b.Path(datadir.Digest{})))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestAFailedPutLeavesNothing(t *testing.T) {
	refused, broken := errors.New("refused"), errors.New("broken")
	inMemoryAndOnDisk(t, func(t *testing.T, b *datadir.Blobs) {
		put(t, b, "kept")
		ended, end := context.WithCancelCause(t.Context())
		end(broken)
		for name, try := range map[string]func() (datadir.Digest, error){
			"refused": func() (datadir.Digest, error) {
				return b.Put(t.Context(), strings.NewReader("text"), func(d datadir.Digest) error {
					if d != digest("text") {
						t.Errorf("checked as %v", d)
					}
					return refused
				})
			},
			"a reader fails": func() (datadir.Digest, error) {
				return b.Put(t.Context(), io.MultiReader(strings.NewReader("text"), iotest.ErrReader(broken)), accept)
			},
			"the context ends": func() (datadir.Digest, error) { return b.Put(ended, strings.NewReader("text"), accept) },
		} {
			if d, err := try(); !errors.Is(err, refused) && !errors.Is(err, broken) || d != (datadir.Digest{}) {
				t.Errorf("%s: %v, %v", name, d, err)
			}
			if all, err := b.List(); err != nil || len(all) != 1 || all[0] != digest("kept") {
				t.Errorf("%s: the blobs are %v, %v", name, all, err)
			}
			if b.Path(digest("kept")) != digest("kept").String() && len(files(t, b)) != 1 {
				t.Errorf("%s: files are left: %q", name, files(t, b))
			}
		}
		if err := b.Remove(digest("kept")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestChangedBytesAreNotRead(t *testing.T) {
	b := onDisk(t)
	d := put(t, b, "content")
	for _, damaged := range []string{"c0ntent", "conten", "content.", ""} {
		if err := os.WriteFile(b.Path(d), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := read(t, b, d); err == nil || !strings.Contains(err.Error(), "its bytes have changed") {
			t.Errorf("%q is read as %q, %v", damaged, text, err)
		}
	}
	put(t, b, "content") // replaces it
	if text, err := read(t, b, d); err != nil || text != "content" {
		t.Errorf("stored again: %q, %v", text, err)
	}
	if info, err := os.Stat(b.Path(d)); err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
}

func TestUnfinishedFilesAreRemovedAndOthersIgnored(t *testing.T) {
	b := onDisk(t)
	d := put(t, b, "content")
	dir := filepath.Dir(b.Path(d))
	for _, name := range []string{"new-123", "README", strings.ToUpper(digest("upper").String())} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := new(datadir.Blobs)
	if err := again.Open(dir); err != nil {
		t.Fatal(err)
	}
	if names := files(t, again); slices.Contains(names, "new-123") || len(names) != 3 {
		t.Errorf("the files are %q", names)
	}
	if all, err := again.List(); err != nil || len(all) != 1 || all[0] != d {
		t.Errorf("listed %v, %v", all, err)
	}
}

func TestKeepAllPreventsRemovals(t *testing.T) {
	inMemoryAndOnDisk(t, func(t *testing.T, b *datadir.Blobs) {
		d := put(t, b, "content")
		first, second := b.KeepAll(), b.KeepAll()
		first()
		if err := b.Remove(d); !errors.Is(err, datadir.ErrKept) {
			t.Errorf("removed: %v", err)
		}
		second()
		if err := b.Remove(d); err != nil {
			t.Error(err)
		}
	})
}

// Goroutines that want the same blob share one call of Fetch, and its error. Later calls find the blob.
func TestABlobIsFetchedOnceForConcurrentCallers(t *testing.T) {
	failed := errors.New("unreachable")
	for name, row := range map[string]struct {
		text string
		err  error
		want string // in the error
	}{"fetched": {"content", nil, ""}, "failed": {"", failed, "unreachable"}, "other bytes": {"c0ntent", nil, "the other node sent bytes with the SHA-256 " + digest("c0ntent").String()}} {
		inMemoryAndOnDisk(t, func(t *testing.T, b *datadir.Blobs) {
			synctest.Test(t, func(t *testing.T) {
				var calls, closed atomic.Int32
				b.Fetch = func(_ context.Context, d datadir.Digest) (io.ReadCloser, error) {
					calls.Add(1)
					time.Sleep(time.Second) // the other callers join
					return closer{strings.NewReader(row.text), &closed}, row.err
				}
				errs := make(chan error)
				for range 5 {
					go func() { errs <- b.FetchOnce(t.Context(), digest("content")) }()
				}
				for range 5 {
					if err := <-errs; (err != nil) != (row.want != "") || err != nil && !strings.Contains(err.Error(), row.want) {
						t.Errorf("%s: %v", name, err)
					}
				}
				all, err := b.List()
				if err != nil || (len(all) == 1) != (row.want == "") {
					t.Errorf("%s: the blobs are %v, %v", name, all, err)
				}
				if calls.Load() != 1 || row.err == nil && closed.Load() != 1 {
					t.Errorf("%s: %d calls, %d readers closed", name, calls.Load(), closed.Load())
				}
				err = b.FetchOnce(t.Context(), digest("content"))
				if again := calls.Load() - 1; (again == 0) != (row.want == "") || (err == nil) != (row.want == "") {
					t.Errorf("%s: %d more calls: %v", name, again, err)
				}
			})
			if row.want == "" {
				if err := b.Remove(digest("content")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

type closer struct {
	io.Reader
	closed *atomic.Int32
}

func (c closer) Close() error { c.closed.Add(1); return nil }

// If the context of the goroutine that fetches ends, one of the waiting goroutines fetches instead. If the context of a
// waiting goroutine ends, it returns the cause.
func TestAWaitingCallerFetchesWhenTheFirstOneGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(datadir.Blobs)
		gone := errors.New("the client has gone")
		var calls atomic.Int32
		b.Fetch = func(ctx context.Context, _ datadir.Digest) (io.ReadCloser, error) {
			calls.Add(1)
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(time.Minute):
				return io.NopCloser(strings.NewReader("content")), nil
			}
		}
		first, endFirst := context.WithCancelCause(t.Context())
		impatient, endImpatient := context.WithCancelCause(t.Context())
		results := make([]chan error, 3)
		for i, ctx := range []context.Context{first, t.Context(), impatient} {
			results[i] = make(chan error, 1)
			go func() { results[i] <- b.FetchOnce(ctx, digest("content")) }()
			synctest.Wait()
		}
		endImpatient(gone)
		if err := <-results[2]; err != gone || calls.Load() != 1 {
			t.Errorf("one that waits and gives up: %v, %d calls", err, calls.Load())
		}
		endFirst(gone)
		if err := <-results[0]; !errors.Is(err, gone) {
			t.Errorf("the first: %v", err)
		}
		if err := <-results[1]; err != nil || calls.Load() != 2 {
			t.Errorf("the second: %v, %d calls", err, calls.Load())
		}
	})
}

func TestABlobCanBeFetchedAfterAPanicOfFetch(t *testing.T) {
	b := new(datadir.Blobs)
	b.Fetch = func(context.Context, datadir.Digest) (io.ReadCloser, error) { panic("x") }
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		_ = b.FetchOnce(t.Context(), digest("content"))
	}()
	b.Fetch = func(context.Context, datadir.Digest) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("content")), nil
	}
	if err := b.FetchOnce(t.Context(), digest("content")); err != nil {
		t.Error(err)
	}
}

func FuzzParseDigest(f *testing.F) {
	f.Add(digest("x").String())
	f.Add(strings.ToUpper(digest("x").String()))
	f.Add("")
	f.Add(strings.Repeat("0", 63))
	f.Fuzz(func(t *testing.T, text string) {
		d, err := datadir.ParseDigest(text)
		if want := len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""; want != (err == nil) {
			t.Fatalf("%q: %v", text, err)
		}
		if err != nil {
			return
		}
		if d.String() != text {
			t.Errorf("%q is read as %v", text, d)
		}
		inJSON, err := json.Marshal(d)
		if err != nil || string(inJSON) != `"`+text+`"` {
			t.Errorf("%q is %s in JSON: %v", text, inJSON, err)
		}
		var back datadir.Digest
		if err := json.Unmarshal(inJSON, &back); err != nil || back != d {
			t.Errorf("%s is read as %v: %v", inJSON, back, err)
		}
	})
}
