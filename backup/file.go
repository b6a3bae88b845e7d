package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"runner.example/internal/atomicio"
)

// ErrExists matches the error of a File that must not be replaced.
var ErrExists = errors.New("the file exists")

// File writes a backup to the file path, mode 0600, which appears complete or not at all. send
// writes the backup to its argument, and what arrives is checked. The error matches ErrExists
// if there is such a file, unless force is set.
func File(ctx context.Context, path string, force bool, send func(io.Writer) error) (info Info, err error) {
	if _, err := os.Lstat(path); err == nil && !force {
		return info, fmt.Errorf("%w: %s", ErrExists, path)
	}
	partial := path + ".partial"
	file, err := os.OpenFile(partial, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return info, fmt.Errorf("another process writes %q", partial)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(partial)
		}
	}()
	if err := errors.Join(file.Chmod(0o600), file.Truncate(0)); err != nil {
		return info, err
	}
	info, err = Copy(ctx, file, send)
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return info, err
	}
	flags := uint(unix.RENAME_NOREPLACE)
	if force {
		flags = 0
	}
	err = unix.Renameat2(unix.AT_FDCWD, partial, unix.AT_FDCWD, path, flags)
	if errors.Is(err, fs.ErrExist) {
		return info, fmt.Errorf("%w: %s", ErrExists, path)
	}
	if err != nil {
		return info, fmt.Errorf("rename %q to %q: %w", partial, path, err)
	}
	return info, atomicio.SyncDir(filepath.Dir(path))
}

// Copy writes the backup that send writes to w, and checks it on its way.
func Copy(ctx context.Context, w io.Writer, send func(io.Writer) error) (info Info, err error) {
	in, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		var err error
		info, err = Check(ctx, in)
		in.CloseWithError(err) // ends the backup
		done <- err
	}()
	sent := send(io.MultiWriter(w, out))
	out.CloseWithError(sent)
	found := <-done
	switch {
	case sent != nil && !errors.Is(sent, ErrInvalid):
		return info, sent
	case found != nil:
		return info, fmt.Errorf("the backup that arrived is not intact: %w", found)
	}
	return info, nil
}

// Open opens a backup to read; "-" is stdin. The size is 0 if it is unknown.
func Open(stdin io.Reader, path string) (in io.ReadCloser, size int64, err error) {
	if path == "-" {
		return io.NopCloser(stdin), 0, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	return file, size, nil
}
