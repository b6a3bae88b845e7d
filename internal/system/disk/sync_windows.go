package disk

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

func syncData(f *os.File) error { return f.Sync() }

func syncDir(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "sync", Path: path, Err: windows.ERROR_DIRECTORY}
	}
	dir, err := Open(path, os.O_RDWR, 0)
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	for _, unsupported := range []error{
		windows.ERROR_ACCESS_DENIED, windows.ERROR_INVALID_FUNCTION, windows.ERROR_INVALID_PARAMETER,
		windows.ERROR_INVALID_HANDLE, windows.ERROR_NOT_SUPPORTED, windows.ERROR_SHARING_VIOLATION,
	} {
		if errors.Is(err, unsupported) {
			return nil
		}
	}
	return err
}
