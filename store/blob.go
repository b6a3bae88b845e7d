package store

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
	"slices"
	"strings"
	"sync"

	"runner.example/store/datadir"
	"runner.example/store/space"
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

// blobs are files named by their digest, or a map in memory.
type blobs struct {
	files datadir.Blobs // without a directory in memory
	mu    sync.Mutex
	mem   map[Digest][]byte
}

// PutBlob stores all that r yields and returns its digest. After it returned the blob is on
// disk; equal blobs are stored once. If it fails nothing is stored. The error matches
// ErrUnavailable if the disk is full.
func (s *Store) PutBlob(ctx context.Context, r io.Reader) (Digest, error) {
	if s.isClosed() {
		return Digest{}, errClosed
	}
	d, err := s.blobs.put(&ctxReader{ctx, r})
	if space.IsFull(err) {
		err = unavailable(err)
	}
	if err != nil {
		return Digest{}, fmt.Errorf("store blob: %w", err)
	}
	return d, nil
}

// Blob opens a blob, which the caller must close. Its bytes have been checked
// against the digest. The error is ErrNotFound if there is no such blob.
func (s *Store) Blob(ctx context.Context, d Digest) (io.ReadCloser, error) {
	if s.isClosed() {
		return nil, errClosed
	}
	r, err := s.blobs.get(ctx, d)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("read blob %v: %w", d, err)
	}
	return r, nil
}

func (b *blobs) put(r io.Reader) (d Digest, err error) {
	h := sha256.New()
	r = io.TeeReader(r, h)
	if b.files.Dir != "" {
		err = b.files.Put(r, func() string { h.Sum(d[:0]); return d.String() })
		return d, err
	}
	all, err := io.ReadAll(r)
	if err != nil {
		return Digest{}, err
	}
	h.Sum(d[:0])
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mem == nil {
		b.mem = make(map[Digest][]byte)
	}
	b.mem[d] = all
	return d, nil
}

func (b *blobs) get(ctx context.Context, d Digest) (io.ReadCloser, error) {
	if b.files.Dir != "" {
		return openVerified(ctx, b.files.Path(d.String()), d)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	all, ok := b.mem[d]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(all)), nil
}

// openVerified opens the file if its bytes have the digest.
func openVerified(ctx context.Context, path string, d Digest) (_ *os.File, err error) {
	f, err := os.Open(path)
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

// list returns the digests of all blobs, in order.
func (b *blobs) list() ([]Digest, error) {
	if b.files.Dir == "" {
		return b.listMem(), nil
	}
	names, err := b.files.Names()
	if err != nil {
		return nil, err
	}
	var ds []Digest
	for _, name := range names {
		if d, err := ParseDigest(name); err == nil {
			ds = append(ds, d)
		}
	}
	return ds, nil
}

func (b *blobs) listMem() []Digest {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.SortedFunc(maps.Keys(b.mem), func(x, y Digest) int { return bytes.Compare(x[:], y[:]) })
}

// ctxReader reads until its context ends.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *ctxReader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, unavailable(context.Cause(r.ctx))
	}
	return r.r.Read(b)
}
