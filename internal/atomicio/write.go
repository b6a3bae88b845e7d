package atomicio

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"runner.example/internal/system/disk"
)

// WriteFile writes content to the file path, mode 0600, and syncs it. After a crash the file
// has all of the old content or all of the new. One process at a time may write a path.
func WriteFile(path string, content []byte) error {
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := create(next, 0o600)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(content); err != nil {
		return err
	}
	return f.Commit(path)
}

// A File is written under a temporary name. Commit or Rename gives it its own when it is complete.
type File struct{ *os.File }

// Create makes a file in dir, under the name of prefix and a random number, which no other process
// uses. The umask applies to mode. A process that is killed leaves the file; prefix tells it from others.
func Create(dir, prefix string, mode fs.FileMode) (*File, error) {
	return create(filepath.Join(dir, prefix+strconv.FormatUint(rand.Uint64(), 10)), mode)
}

func create(name string, mode fs.FileMode) (*File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}

// Commit syncs the file and does what Rename does. After it returned nil, neither the content nor the
// name is lost in a power cut.
func (f *File) Commit(path string) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Rename(path); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}

// Rename closes the file and moves it to path, which must be in the same file system. If path has a
// file, it is replaced in one step: a reader sees all of the old file or all of the new one.
func (f *File) Rename(path string) error {
	if err := f.Close(); err != nil {
		return err
	}
	if err := disk.Rename(f.Name(), path); err != nil {
		return err
	}
	f.File = nil
	return nil
}

// Discard closes the file and removes it, unless it has been moved to its path.
func (f *File) Discard() {
	if f.File == nil {
		return
	}
	_ = f.Close() // again, after an error of Rename
	_ = os.Remove(f.Name())
}
