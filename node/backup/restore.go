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
	"syscall"

	"golang.org/x/sys/unix"

	"runner.example/internal/atomicio"
	"runner.example/internal/level"
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
	lock, err := makePartial(partial)
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(partial), lock.Close()) }()
	work := filepath.Join(partial, "data") // the store locks its directory itself
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
	switch err := unix.Rename(work, dir); { // os.Rename does not replace an empty directory
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		return Info{}, fmt.Errorf("%w: %s", ErrNotEmpty, dir)
	case err != nil:
		return Info{}, fmt.Errorf("rename %q to %q: %w", work, dir, err)
	}
	return info, atomicio.SyncDir(filepath.Dir(dir))
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
	parent, err := os.Lstat(filepath.Dir(dir))
	if err != nil {
		return err
	}
	if parent.Sys().(*syscall.Stat_t).Dev != at.Sys().(*syscall.Stat_t).Dev {
		return fmt.Errorf("the data directory %q is a mount point: name a new directory in it", dir)
	}
	return nil
}

// makePartial makes an empty directory, or empties one that a killed restore left. It is
// locked until the file that makePartial returns is closed.
func makePartial(path string) (lock *os.File, err error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = lockPartial(dir)
	if err == nil {
		err = empty(dir)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// empty removes everything in a directory.
func empty(dir *os.File) error {
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir.Name(), name)))
	}
	return err
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
