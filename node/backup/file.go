package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"runner.example/internal/system/disk"
	"runner.example/internal/system/filelock"
)

// ErrExists matches the error of a File that must not be replaced.
var ErrExists = errors.New("the file exists")

// File writes a backup to the file path, mode 0600, which appears complete or not at all. send
// writes the backup to its argument, and File checks the bytes. The error matches ErrExists if
// the file exists, unless force is set. File replaces regular files only, never directories,
// symlinks or devices.
func File(ctx context.Context, path string, force bool, send func(io.Writer) error) (info Info, err error) {
	if err := checkTarget(path, force); err != nil {
		return info, err
	}
	return writeTo(ctx, path+".partial", send, func(Info) error { return rename(path+".partial", path, force) })
}

// writeTo writes a backup to the file partial and syncs it. place gives the file its final name in the same
// directory; after an error the file is removed.
func writeTo(ctx context.Context, partial string, send func(io.Writer) error, place func(Info) error) (info Info, err error) {
	file, err := disk.Open(partial, os.O_RDWR|os.O_CREATE|disk.NoFollow, 0o600)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := lockPartial(file); err != nil {
		return info, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(partial)
		}
	}()
	if err := errors.Join(disk.MakePrivate(partial), file.Truncate(0)); err != nil {
		return info, err
	}
	info, err = Copy(ctx, file, send)
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return info, err
	}
	if err := place(info); err != nil {
		return info, err
	}
	return info, disk.SyncDir(filepath.Dir(partial))
}

// checkTarget returns an error if a backup may not be written to path.
func checkTarget(path string, force bool) error {
	if path == "" || os.IsPathSeparator(path[len(path)-1]) {
		return fmt.Errorf("%q does not name a file", path)
	}
	at, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !at.Mode().IsRegular():
		return fmt.Errorf("%q is not a regular file: choose another name", path)
	case !force:
		return fmt.Errorf("%w: %s", ErrExists, path)
	}
	return nil
}

// lockPartial locks a partial file or directory against other processes that write to the same
// name. The lock is held as long as the file is open. A process renames or removes the file
// only while it has the lock.
func lockPartial(file *os.File) error {
	switch err := filelock.Try(file); {
	case errors.Is(err, filelock.ErrHeld):
		return fmt.Errorf("another process writes %q", file.Name())
	case err != nil:
		return fmt.Errorf("lock %q: %w", file.Name(), err)
	}
	locked, err := file.Stat()
	if err != nil {
		return err
	}
	// Between open and lock the file may have become the finished backup of another process.
	if named, err := os.Lstat(file.Name()); err != nil || !os.SameFile(locked, named) {
		return fmt.Errorf("another process wrote %q", file.Name())
	}
	return nil
}

// rename gives the partial file its final name. The error matches ErrExists if path exists,
// unless force is set.
func rename(partial, path string, force bool) error {
	if force {
		return disk.Rename(partial, path)
	}
	err := disk.RenameNew(partial, path)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s", ErrExists, path)
	}
	return err
}

// Copy writes the backup that send produces to w, and checks the bytes at the same time.
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
