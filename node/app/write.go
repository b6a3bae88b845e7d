package app

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"runner.example/internal/atomicio"
	"runner.example/internal/console"
)

// WriteFile writes a file: in one step if it is a regular file, which keeps its mode, or a
// new one, whose mode depends on the umask. Links are followed. Other files, such as pipes
// and devices, are written to.
func WriteFile(path string, text []byte) error {
	err := writeTo(path, text)
	if err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	return nil
}

func writeTo(path string, text []byte) error {
	mode := fs.FileMode(0o666)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil { // a link whose target does not exist
			return os.WriteFile(path, text, mode)
		}
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return os.WriteFile(path, text, mode)
	default:
		mode = info.Mode().Perm()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	temp, err := atomicio.Create(filepath.Dir(path), "."+filepath.Base(path)+"-", mode)
	if err != nil {
		return err
	}
	defer temp.Discard()
	_, err = temp.Write(text)
	if info != nil {
		err = errors.Join(err, temp.Chmod(mode)) // without the umask
	}
	if err != nil {
		return err
	}
	return temp.Rename(path)
}

// WriteIfChanged writes a file, and creates its directories. A regular file with the same
// content is not touched.
func WriteIfChanged(path string, text []byte) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir(), os.IsPathSeparator(path[len(path)-1]):
		return console.Invalid("%q is a directory: name a file", path)
	case err == nil && info.Mode().IsRegular():
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, text) {
			return nil
		}
	case err != nil:
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write %q: %w", path, err)
		}
	}
	return WriteFile(path, text)
}
