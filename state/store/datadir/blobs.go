package datadir

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/internal/atomicio"
	"runner.example/internal/clock"
	"runner.example/internal/system/disk"
)

// Digest names a blob: the SHA-256 of its bytes.
type Digest [sha256.Size]byte

// String returns the digest as 64 hexadecimal digits, lower case.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// ParseDigest reads what String returns.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(d) || s != strings.ToLower(s) {
		return d, fmt.Errorf("digest %q: want %d hexadecimal digits, lower case", s, 2*len(d))
	}
	copy(d[:], b)
	return d, nil
}

// MarshalText returns the digest as String does, for JSON.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads what MarshalText returns.
func (d *Digest) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDigest(string(text))
	return err
}

// Blobs are immutable files, named by their digest. The zero value keeps them in memory. It is
// safe for concurrent use.
type Blobs struct {
	dir string
	mu  sync.Mutex
	mem map[Digest]memBlob // without a directory
	// Base has more blobs, of which no method changes any; nil: there are none. With it there is no directory.
	Base *Blobs
	// Fetch gets a blob from another place; see FetchOnce.
	Fetch    func(context.Context, Digest) (io.ReadCloser, error)
	fetching map[Digest]*fetch
	// kept is read-locked while no blob may be removed.
	kept sync.RWMutex
}

// ErrKept: KeepAll has not ended.
var ErrKept = errors.New("a backup is being written")

type memBlob struct {
	data   []byte
	stored time.Time
}

// BlobInfo describes a blob.
type BlobInfo struct {
	Digest Digest
	Size   int64     // bytes
	Stored time.Time // when it was stored the last time
}

// tempBlob begins the names of files that are being written.
const tempBlob = "new-"

// Open makes the directory dir, uses it from now on, and removes files that an earlier process
// did not finish.
func (b *Blobs) Open(dir string) error {
	b.dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	unfinished, err := filepath.Glob(filepath.Join(dir, tempBlob+"*"))
	if err != nil {
		return err
	}
	for _, path := range unfinished {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// Put stores all that r yields, unless check returns an error for its digest. After it returned
// the blob is on disk. It replaces a blob with that digest: its bytes are the same, or damaged.
func (b *Blobs) Put(ctx context.Context, r io.Reader, check func(Digest) error) (d Digest, err error) {
	h := sha256.New()
	r = io.TeeReader(&ctxReader{ctx, r}, h)
	if b.dir == "" {
		data, err := io.ReadAll(r)
		if err != nil {
			return Digest{}, err
		}
		h.Sum(d[:0])
		if err := check(d); err != nil {
			return Digest{}, err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.mem == nil {
			b.mem = make(map[Digest]memBlob)
		}
		b.mem[d] = memBlob{data, clock.System()}
		return d, nil
	}
	f, err := atomicio.Create(b.dir, tempBlob, 0o600)
	if err != nil {
		return Digest{}, err
	}
	defer f.Discard()
	if _, err := io.Copy(f, r); err != nil {
		return Digest{}, err
	}
	h.Sum(d[:0])
	if err := check(d); err != nil {
		return Digest{}, err
	}
	if err := f.Commit(b.Path(d)); err != nil {
		return Digest{}, err
	}
	return d, nil
}

// putAtOnce is how many blobs PutAll writes at the same time: the file system syncs them together.
const putAtOnce = 16

// PutAll stores the blobs with these bytes, in one go: many small ones take a fraction of the time that Put needs for
// each. After it returned nil all of them are on disk. After an error some may be stored.
func (b *Blobs) PutAll(ctx context.Context, blobs [][]byte) error {
	if b.dir == "" {
		for _, data := range blobs {
			if _, err := b.Put(ctx, bytes.NewReader(data), func(Digest) error { return nil }); err != nil {
				return err
			}
		}
		return nil
	}
	var next atomic.Int64
	var running sync.WaitGroup
	errs := make([]error, min(putAtOnce, len(blobs)))
	for i := range errs {
		running.Go(func() {
			for at := next.Add(1) - 1; errs[i] == nil && at < int64(len(blobs)); at = next.Add(1) - 1 {
				errs[i] = b.putUnnamed(ctx, blobs[at])
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return disk.SyncDir(b.dir)
}

// putUnnamed stores a blob, whose name may be lost in a power cut.
func (b *Blobs) putUnnamed(ctx context.Context, data []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f, err := atomicio.Create(b.dir, tempBlob, 0o600)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Rename(b.Path(sha256.Sum256(data)))
}

// Path returns the path of a blob's file.
func (b *Blobs) Path(d Digest) string { return filepath.Join(b.dir, d.String()) }

// Read opens a blob, which the caller must close. Its bytes have been compared with the digest. The
// error matches fs.ErrNotExist if there is no such blob.
func (b *Blobs) Read(ctx context.Context, d Digest) (io.ReadCloser, error) {
	if b.dir != "" {
		return openVerified(ctx, b.Path(d), d)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	blob, ok := b.mem[d]
	switch {
	case !ok && b.Base != nil:
		return b.Base.Read(ctx, d)
	case !ok:
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(blob.data)), nil
}

// openVerified opens the file if its bytes have the digest.
func openVerified(ctx context.Context, path string, d Digest) (_ *os.File, err error) {
	f, err := disk.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	h := sha256.New()
	if _, err := io.Copy(h, &ctxReader{ctx, f}); err != nil {
		return nil, err
	}
	if Digest(h.Sum(nil)) != d {
		return nil, errors.New("its bytes have changed: store it again or restore a backup")
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, err
}

// Info describes a blob, whose bytes are not read. The error matches fs.ErrNotExist if there is no
// such blob.
func (b *Blobs) Info(d Digest) (BlobInfo, error) {
	if b.dir != "" {
		info, err := os.Stat(b.Path(d))
		if err != nil {
			return BlobInfo{}, err
		}
		return BlobInfo{d, info.Size(), info.ModTime()}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	blob, ok := b.mem[d]
	switch {
	case !ok && b.Base != nil:
		return b.Base.Info(d)
	case !ok:
		return BlobInfo{}, fs.ErrNotExist
	}
	return BlobInfo{d, int64(len(blob.data)), blob.stored}, nil
}

// KeepAll keeps all blobs until end is called: Remove returns ErrKept.
func (b *Blobs) KeepAll() (end func()) {
	b.kept.RLock()
	return b.kept.RUnlock
}

// Remove removes a blob, but none of Base. The error matches fs.ErrNotExist if there is no such blob.
func (b *Blobs) Remove(d Digest) error {
	if !b.kept.TryLock() {
		return ErrKept
	}
	defer b.kept.Unlock()
	if b.dir != "" {
		return os.Remove(b.Path(d))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.mem[d]; !ok {
		return fs.ErrNotExist
	}
	delete(b.mem, d)
	return nil
}

// List returns the digests of all blobs, in order.
func (b *Blobs) List() ([]Digest, error) {
	if b.dir == "" {
		return b.listMemory()
	}
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return nil, err
	}
	var all []Digest
	for _, e := range entries { // some are being written
		if d, err := ParseDigest(e.Name()); err == nil {
			all = append(all, d)
		}
	}
	return all, nil
}

func (b *Blobs) listMemory() (all []Digest, err error) {
	if b.Base != nil {
		if all, err = b.Base.List(); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	all = slices.AppendSeq(all, maps.Keys(b.mem))
	slices.SortFunc(all, func(x, y Digest) int { return bytes.Compare(x[:], y[:]) })
	return slices.Compact(all), nil
}

// ctxReader reads until its context ends; then its error is the cause.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *ctxReader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(b)
}
