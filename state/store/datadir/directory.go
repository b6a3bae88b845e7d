package datadir

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"runner.example/internal/atomicio"
	"runner.example/internal/system/disk"
)

// directory keeps each blob in a file, whose name is the digest.
type directory struct{ path string }

// tempPrefix begins the names of files that are being written.
const tempPrefix = "new-"

// openDirectory makes the directory if it does not exist, and removes unfinished files.
func openDirectory(path string) (*directory, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	dir := &directory{path}
	return dir, dir.names(func(name string) error {
		if strings.HasPrefix(name, tempPrefix) {
			return os.Remove(filepath.Join(path, name))
		}
		return nil
	})
}

// Path returns the path of a blob's file; in memory, its digest.
func (b *Blobs) Path(d Digest) string {
	if b.dir == nil {
		return d.String()
	}
	return b.dir.file(d)
}

func (dir *directory) file(d Digest) string { return filepath.Join(dir.path, d.String()) }

// maxWriters is how many blobs put writes at the same time, so that the file system can sync them together.
const maxWriters = 16

func (dir *directory) put(ctx context.Context, contents []io.Reader, check func(Digest) error) ([]BlobInfo, error) {
	if len(contents) == 0 {
		return nil, nil
	}
	stored := make([]BlobInfo, len(contents))
	var next atomic.Int64
	var running sync.WaitGroup
	errs := make([]error, min(maxWriters, len(contents)))
	for i := range errs {
		running.Go(func() {
			for at := next.Add(1) - 1; errs[i] == nil && at < int64(len(contents)); at = next.Add(1) - 1 {
				stored[at], errs[i] = dir.write(ctx, contents[at], check)
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return stored, disk.SyncDir(dir.path)
}

// write stores a blob. Until the directory is synced, a power cut may lose its name.
func (dir *directory) write(ctx context.Context, r io.Reader, check func(Digest) error) (info BlobInfo, err error) {
	if ctx.Err() != nil {
		return info, context.Cause(ctx)
	}
	f, err := atomicio.Create(dir.path, tempPrefix, 0o600)
	if err != nil {
		return info, err
	}
	defer f.Discard()
	h := sha256.New()
	if info.Size, err = io.Copy(f, io.TeeReader(r, h)); err != nil {
		return info, err
	}
	h.Sum(info.Digest[:0])
	if err := f.Sync(); err != nil {
		return info, err
	}
	at, err := f.Stat()
	if err != nil {
		return info, err
	}
	info.Stored = at.ModTime()
	if err := check(info.Digest); err != nil {
		return info, err
	}
	return info, f.Rename(dir.file(info.Digest))
}

func (dir *directory) open(d Digest) (*Blob, error) {
	f, err := disk.Open(dir.file(d), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	b, err := openFile(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return b, nil
}

func (dir *directory) info(d Digest) (BlobInfo, error) {
	info, err := os.Stat(dir.file(d))
	if err != nil {
		return BlobInfo{}, err
	}
	return BlobInfo{d, info.Size(), info.ModTime()}, nil
}

func (dir *directory) remove(d Digest) error { return os.Remove(dir.file(d)) }

func (dir *directory) list(visit func(Digest) error) error {
	return dir.names(func(name string) error {
		d, err := ParseDigest(name)
		if err != nil { // it is being written
			return nil
		}
		return visit(d)
	})
}

// namesBatch is how many names are read at once: a directory may have millions of them.
const namesBatch = 1000

// names calls visit with the name of each file.
func (dir *directory) names(visit func(name string) error) error {
	f, err := os.Open(dir.path)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(namesBatch)
		for _, name := range names {
			if err := visit(name); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
