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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
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

// Blobs is a set of immutable byte strings, each under its digest. The zero value keeps them in memory. It is
// safe for concurrent use.
type Blobs struct {
	dir *directory // nil: they are in memory
	mem memory
	// Base has further blobs, which no method changes; nil: there are none. A set with a Base is in memory.
	Base *Blobs
	// Fetch gets a blob from another node; see FetchOnce.
	Fetch func(context.Context, Digest) (io.ReadCloser, error)
	// Limit is the total size in bytes beyond which PutPinned fails with ErrLimit; 0: no limit. Set it before Open. The
	// blobs of Base do not count.
	Limit int64
	used  atomic.Int64 // bytes of all blobs, and of those that PutPinned is reading; only counted with a Limit

	mu       sync.Mutex
	fetching map[Digest]*fetch
	pins     map[Digest]*pins
	// kept is read-locked by KeepAll.
	kept sync.RWMutex
}

// backend keeps blobs in one place. It is safe for concurrent use, except that put and remove of one digest exclude
// each other.
type backend interface {
	// put stores the bytes of each reader as a blob, and returns the descriptions in the same order. It calls check with
	// each digest before it stores the blob, and stops at an error. When it returns nil, all blobs are durable. After
	// an error some may be stored. It replaces a blob with the same digest, because its bytes may be damaged.
	put(ctx context.Context, contents []io.Reader, check func(Digest) error) ([]BlobInfo, error)
	// open opens a blob. It does not read it.
	open(d Digest) (*Blob, error)
	// info describes a blob. It does not read it.
	info(d Digest) (BlobInfo, error)
	// list calls visit with each digest, in any order. Blobs that are stored or removed meanwhile may be missing.
	list(visit func(Digest) error) error
	// remove removes a blob.
	remove(d Digest) error
}

// ErrLimit is returned when the blobs would have more bytes than Limit.
var ErrLimit = errors.New("the blobs have reached their size limit")

// Errors of Remove.
var (
	// ErrKept is returned while KeepAll keeps all blobs.
	ErrKept = errors.New("a backup is being written")
	// ErrPinned is returned while the blob has a pin.
	ErrPinned = errors.New("the blob is in use")
)

// BlobInfo describes a blob.
type BlobInfo struct {
	Digest Digest
	Size   int64     // bytes
	Stored time.Time // the last time
}

// backend returns the backend of all blobs except those of Base.
func (b *Blobs) backend() backend {
	if b.dir != nil {
		return b.dir
	}
	return &b.mem
}

// Open keeps the blobs in the directory dir from now on. It makes the directory if it does not exist, and removes
// files that an earlier process did not finish.
func (b *Blobs) Open(dir string) (err error) {
	if b.dir, err = openDirectory(dir); err != nil || b.Limit == 0 {
		return err
	}
	return b.dir.list(func(d Digest) error {
		info, err := b.dir.info(d)
		b.used.Add(info.Size)
		return err
	})
}

// Put stores the bytes of r as a blob, unless check returns an error for its digest. When it returns nil, the blob is
// on disk. It replaces a blob with the same digest, because its bytes may be damaged.
func (b *Blobs) Put(ctx context.Context, r io.Reader, check func(Digest) error) (Digest, error) {
	stored, release, err := b.put(ctx, []io.Reader{r}, check, persistent)
	if err != nil {
		return Digest{}, err
	}
	release(nil)
	return stored[0].Digest, nil
}

// PutPinned is Put, and pins the blob: see Pin.
func (b *Blobs) PutPinned(ctx context.Context, r io.Reader) (info BlobInfo, release func(Referenced), err error) {
	stored, release, err := b.put(ctx, []io.Reader{r}, func(Digest) error { return nil }, provisional)
	if err != nil {
		return BlobInfo{}, nil, err
	}
	return stored[0], release, nil
}

// PutAll stores several blobs. It is much faster than one Put for each, because the file system syncs them together.
// When it returns nil, all of them are on disk. After an error some may be stored.
func (b *Blobs) PutAll(ctx context.Context, blobs [][]byte) error {
	contents := make([]io.Reader, len(blobs))
	for i, data := range blobs {
		contents[i] = bytes.NewReader(data)
	}
	_, release, err := b.put(ctx, contents, func(Digest) error { return nil }, persistent)
	if err != nil {
		return err
	}
	release(nil)
	return nil
}

// lifetime says what becomes of a new blob when its last pin is released.
type lifetime int

const (
	persistent  lifetime = iota // it stays
	provisional                 // it is removed, unless something refers to it
)

// put stores blobs, which are pinned until release is called.
func (b *Blobs) put(ctx context.Context, contents []io.Reader, check func(Digest) error, life lifetime) (_ []BlobInfo, release func(Referenced), err error) {
	var mu sync.Mutex // the backend calls check from several goroutines
	var pinned []Digest
	counted := &usage{blobs: b}
	defer counted.end()
	var once sync.Once
	release = func(referenced Referenced) {
		once.Do(func() {
			for _, d := range pinned {
				b.unpin(d, referenced)
			}
		})
	}
	read := make([]io.Reader, len(contents))
	for i, r := range contents {
		read[i] = &ctxReader{ctx, r}
		if life == provisional && b.Limit > 0 {
			read[i] = counted.reader(read[i])
		}
	}
	stored, err := b.backend().put(ctx, read, func(d Digest) error {
		if err := check(d); err != nil {
			return err
		}
		b.pin(d, life)
		mu.Lock()
		defer mu.Unlock()
		pinned = append(pinned, d)
		return nil
	})
	if err != nil {
		release(nil)
		return nil, nil, err
	}
	counted.end()
	b.countStored(stored)
	return stored, release, nil
}

// Read opens a blob after it has compared the bytes with the digest. The caller must close it. The
// error matches fs.ErrNotExist if there is no such blob.
func (b *Blobs) Read(ctx context.Context, d Digest) (io.ReadCloser, error) {
	r, err := b.OpenBlob(d)
	if err != nil {
		return nil, err
	}
	if err := r.verify(ctx, d); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// OpenBlob opens a blob without reading it. The caller must close it. The error matches fs.ErrNotExist if there is no
// such blob.
func (b *Blobs) OpenBlob(d Digest) (*Blob, error) {
	r, err := b.backend().open(d)
	if b.Base != nil && errors.Is(err, fs.ErrNotExist) {
		return b.Base.OpenBlob(d)
	}
	return r, err
}

// Info returns the description of a blob. It does not read the bytes. The error matches fs.ErrNotExist if the blob does not
// exist.
func (b *Blobs) Info(d Digest) (BlobInfo, error) {
	info, err := b.backend().info(d)
	if b.Base != nil && errors.Is(err, fs.ErrNotExist) {
		return b.Base.Info(d)
	}
	return info, err
}

// KeepAll keeps all blobs until end is called: until then Remove returns ErrKept.
func (b *Blobs) KeepAll() (end func()) {
	b.kept.RLock()
	return b.kept.RUnlock
}

// Remove deletes a blob. The error matches fs.ErrNotExist if the blob does not exist or is only in Base, ErrKept while
// KeepAll holds, and ErrPinned while the blob has a pin.
func (b *Blobs) Remove(d Digest) error {
	_, err := b.RemoveUnless(d, func() (bool, error) { return false, nil })
	return err
}

// Referenced reports whether something refers to a blob. It is called while no pin begins or ends.
type Referenced func() (bool, error)

// RemoveUnless is Remove, unless something refers to the blob. It calls referenced when the blob has no pin, so
// referenced sees each commit that was made under a pin.
func (b *Blobs) RemoveUnless(d Digest, referenced Referenced) (removed bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pins[d] != nil {
		return false, ErrPinned
	}
	return b.removeLocked(d, referenced)
}

func (b *Blobs) removeLocked(d Digest, referenced Referenced) (removed bool, err error) {
	if !b.kept.TryLock() {
		return false, ErrKept
	}
	defer b.kept.Unlock()
	if is, err := referenced(); err != nil || is {
		return false, err
	}
	info, err := b.backend().info(d)
	if err != nil {
		return false, err
	}
	if err := b.backend().remove(d); err != nil {
		return false, err
	}
	if b.Limit > 0 {
		b.used.Add(-info.Size)
	}
	return true, nil
}

// List returns the digests of all blobs, in order.
func (b *Blobs) List() (all []Digest, err error) {
	err = b.Each(func(d Digest) error {
		all = append(all, d)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(x, y Digest) int { return bytes.Compare(x[:], y[:]) })
	return slices.Compact(all), nil
}

// Each calls visit with the digest of each blob, in any order, and twice if Base has it too. If visit returns an error,
// Each stops and returns it. Blobs that are stored or removed meanwhile may be missing.
func (b *Blobs) Each(visit func(Digest) error) error {
	if b.Base != nil {
		if err := b.Base.Each(visit); err != nil {
			return err
		}
	}
	return b.backend().list(visit)
}

// ctxReader reads until its context ends. Then it returns the cause.
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
