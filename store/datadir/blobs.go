package datadir

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Blobs are the immutable files of a directory. The caller gives each the name that
// its content has: its digest.
type Blobs struct{ Dir string }

// tempBlob begins the names of files that are being written.
const tempBlob = "new-"

// Open makes the directory and removes files that an earlier process did not finish.
func (b Blobs) Open() error {
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return err
	}
	unfinished, err := filepath.Glob(filepath.Join(b.Dir, tempBlob+"*"))
	if err != nil {
		return err
	}
	for _, path := range unfinished {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// Put writes all that r yields to a file, syncs it and gives it the name that name returns
// then. It replaces a file of that name: its bytes are the same, or damaged.
func (b Blobs) Put(r io.Reader, name func() string) (err error) {
	f, err := os.CreateTemp(b.Dir, tempBlob+"*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), b.Path(name())); err != nil {
		return err
	}
	return Sync(b.Dir)
}

// Path returns the path of the file with that name.
func (b Blobs) Path(name string) string { return filepath.Join(b.Dir, name) }

// Names returns the names of all files, sorted, also of those that are being written.
func (b Blobs) Names() ([]string, error) {
	entries, err := os.ReadDir(b.Dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}
