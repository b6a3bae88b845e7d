package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/node/admin"
	"runner.example/state/store"
)

// contents is a directory with the contents of files, each in a file whose name is its SHA-256.
type contents string

func (dir contents) path(d store.Digest) string { return filepath.Join(string(dir), d.String()) }

// create makes the directory, unless it is there.
func (dir contents) create() error {
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		return console.Invalid("--files: %w", err)
	}
	return nil
}

// check returns an error if the directory is not there.
func (dir contents) check() error {
	info, err := os.Stat(string(dir))
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	if err != nil {
		return console.Invalid("--files: %w", err)
	}
	return nil
}

// fetch stores the contents of a file of a row, unless the directory has them. shown gets their bytes.
func (dir contents) fetch(ctx context.Context, node *admin.Client, f admin.FileOfRow, shown io.Writer) error {
	path := dir.path(f.Digest)
	if info, err := os.Stat(path); err == nil && info.Size() == f.Size {
		return nil
	}
	part, err := os.CreateTemp(string(dir), "*.part") // mode 0600
	if err != nil {
		return console.Invalid("--files: %w", err)
	}
	err = fill(part, func(w io.Writer) error {
		return node.ReadContents(ctx, f.Digest, io.MultiWriter(w, shown))
	})
	if fault.CodeOf(err) == fault.NotFound {
		return fmt.Errorf("%s: %w: if a row was changed meanwhile, run the command again", f.Field, err)
	}
	if err != nil {
		return err
	}
	return os.Rename(part.Name(), path)
}

// send sends the contents of a file of a row to the node. wrong says why the row cannot be imported; empty: it can.
func (dir contents) send(ctx context.Context, node *admin.Client, f admin.FileOfRow, shown io.Writer) (wrong string, err error) {
	path := dir.path(f.Digest)
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("%s: the contents are missing: %s has no file %v", f.Field, dir, f.Digest), nil
	}
	if err != nil {
		return "", console.Invalid("--files: %w", err)
	}
	defer in.Close()
	info, err := in.Stat()
	switch {
	case err != nil:
		return "", console.Invalid("--files: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Sprintf("%s: %s is not a regular file", f.Field, path), nil
	case info.Size() != f.Size:
		return fmt.Sprintf("%s: %s has %d bytes, and the row says %d", f.Field, path, info.Size(), f.Size), nil
	}
	err = node.PutContents(ctx, admin.Blob{Digest: f.Digest, Size: f.Size}, path, io.TeeReader(in, shown))
	if fault.CodeOf(err) == fault.Invalid {
		return fmt.Sprintf("%s: %s: %s", f.Field, path, fault.Of(err).Detail), nil
	}
	return "", err
}

// writeNew writes a file that must not be there, with mode 0600.
func writeNew(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return console.Invalid("--out: %w", err)
	}
	return fill(file, write)
}

// fill writes a new file and closes it. After an error it removes the file: a part looks like a whole one.
func fill(file *os.File, write func(io.Writer) error) error {
	err := write(file)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
