package datadir

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
)

// Blob is an open blob. It can be read to the end after the blob was removed.
type Blob struct {
	source
	size int64
	file *os.File // nil in memory
}

// source is an *os.File or a *bytes.Reader.
type source interface {
	io.ReadSeeker
	io.ReaderAt
}

func openFile(f *os.File) (*Blob, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &Blob{f, info.Size(), f}, nil
}

func openBytes(data []byte) *Blob {
	return &Blob{bytes.NewReader(data), int64(len(data)), nil}
}

// Size returns the length in bytes.
func (b *Blob) Size() int64 { return b.size }

// File returns the file that has exactly the bytes of the blob, for sendfile; nil in memory. Close closes it.
func (b *Blob) File() *os.File { return b.file }

// Close closes the blob.
func (b *Blob) Close() error {
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}

// ErrChanged is returned when the bytes of a blob do not have its digest.
var ErrChanged = errors.New("its bytes have changed: store it again or restore a backup")

// verify compares the bytes of the blob with its digest, and seeks back to the start.
func (b *Blob) verify(ctx context.Context, d Digest) error {
	if b.file == nil {
		return nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, &ctxReader{ctx, b.file}); err != nil {
		return err
	}
	if Digest(h.Sum(nil)) != d {
		return ErrChanged
	}
	_, err := b.Seek(0, io.SeekStart)
	return err
}

// Check compares the bytes of a blob with its digest, step by step. It must be closed.
type Check struct {
	blob   *Blob
	digest Digest
	sum    hash.Hash
}

// NewCheck returns the check of a blob. The error matches fs.ErrNotExist if there is no such blob.
func (b *Blobs) NewCheck(d Digest) (*Check, error) {
	blob, err := b.OpenBlob(d)
	if err != nil {
		return nil, err
	}
	return &Check{blob, d, sha256.New()}, nil
}

// Step reads up to that many bytes, and returns how many it has read. The error is io.EOF when all bytes are read and
// have the digest, and ErrChanged when they do not have it.
func (c *Check) Step(bytes int64) (int64, error) {
	n, err := io.CopyN(c.sum, c.blob, bytes)
	if err == io.EOF && Digest(c.sum.Sum(nil)) != c.digest {
		err = ErrChanged
	}
	return n, err
}

// Close closes the blob.
func (c *Check) Close() error { return c.blob.Close() }
