package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"runner.example/internal/atomicio"
	"runner.example/internal/level"
	"runner.example/internal/system/disk"
	"runner.example/internal/system/filelock"
	"runner.example/keystore"
	"runner.example/state/store"
)

// RestoreOptions are the paths that Restore reads and writes.
type RestoreOptions struct {
	// Dir is the data directory to create. It must be empty if it exists.
	Dir string
	// Pepper is the path of the pepper of the backed-up store.
	Pepper string
	// KeepPepper means that the server reads the pepper at that path. Otherwise Restore
	// copies it into the data directory.
	KeepPepper bool
	// Complete adds files to the directory before it appears; nil: none are added.
	Complete func(dir string) error
}

// ErrNotEmpty matches the error of a Restore into a directory that has files.
var ErrNotEmpty = errors.New("the data directory is not empty")

// Restore makes a data directory from a backup. It appears complete or not at all. The error
// matches ErrInvalid if the backup is not intact, and ErrNotEmpty if the directory has
// files.
func Restore(ctx context.Context, r io.Reader, opt RestoreOptions) (info Info, err error) {
	dir, err := CheckTarget(opt.Dir)
	if err != nil {
		return Info{}, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return Info{}, err
	}
	partial := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+"-restoring")
	work := filepath.Join(partial, "data") // the store locks its directory itself
	lock, err := makePartial(partial, work)
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(partial), lock.Close()) }()
	if err := os.Mkdir(work, 0o700); err != nil {
		return Info{}, err
	}
	if info, err = restoreInto(ctx, r, work, opt.Pepper); err != nil {
		return Info{}, err
	}
	if !opt.KeepPepper {
		text, err := os.ReadFile(opt.Pepper)
		if err != nil {
			return Info{}, err
		}
		if err := atomicio.WriteFile(keystore.Options{Dir: work}.PepperPath(), text); err != nil {
			return Info{}, err
		}
	}
	if opt.Complete != nil {
		if err := opt.Complete(work); err != nil {
			return Info{}, err
		}
	}
	switch err := disk.RenameDir(work, dir); {
	case errors.Is(err, fs.ErrExist):
		return Info{}, fmt.Errorf("%w: %s", ErrNotEmpty, dir)
	case err != nil:
		return Info{}, err
	}
	return info, disk.SyncDir(filepath.Dir(dir))
}

// CheckTarget returns the absolute path at which Restore makes the data directory, or the error with which
// it refuses the directory before it changes anything.
func CheckTarget(dir string) (path string, err error) {
	if path, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved // a symlink to an empty directory is kept
	}
	return path, checkEmpty(path)
}

// checkEmpty returns an error if dir cannot become the data directory.
func checkEmpty(dir string) error {
	at, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case at.Mode().Type() == fs.ModeSymlink:
		return fmt.Errorf("the data directory %q is a symlink whose target does not exist", dir)
	}
	if here, err := os.Stat("."); err == nil && os.SameFile(here, at) {
		return fmt.Errorf(
			"the data directory %q is the working directory, which restore would replace: run the command in another directory",
			dir)
	}
	entries, err := os.ReadDir(dir)
	switch {
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%w: %s", ErrNotEmpty, dir)
	}
	mounted, err := disk.IsMountPoint(dir)
	if mounted {
		return fmt.Errorf("the data directory %q is a mount point: name a new directory in it", dir)
	}
	return err
}

// makePartial makes the directory path for work, or removes the work that a killed restore left in it. It is
// locked until the file that makePartial returns is closed.
func makePartial(path, work string) (lock *os.File, err error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	// lockPartial refuses a link.
	if lock, err = filelock.OpenDir(path, "lock"); err != nil {
		return nil, err
	}
	if err = lockPartial(lock); err == nil {
		err = os.RemoveAll(work)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func restoreInto(ctx context.Context, r io.Reader, dir, pepper string) (info Info, err error) {
	in, head, err := readHead(ctx, r)
	if err != nil {
		return Info{}, err
	}
	if err := level.Known().Remedy(head.Level, ""); err != nil { // before all of it is read
		return Info{}, err
	}
	check, err := hex.DecodeString(head.PepperCheck)
	if err != nil {
		return Info{}, ErrInvalid
	}
	if err := keystore.CheckPepper(pepper, check); err != nil {
		return Info{}, err
	}
	st, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if err := st.Restore(ctx, in); err != nil {
		return Info{}, invalid(err)
	}
	return describe(head, in), nil
}
