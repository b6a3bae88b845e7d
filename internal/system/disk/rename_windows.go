package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/windows"
)

// renameWait is how long Rename waits for the handles of others.
const renameWait = time.Second

func rename(from, to string) error {
	for pause := time.Millisecond; ; pause *= 2 {
		err := renameOnce(from, to)
		if err == nil {
			return nil
		}
		busy := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
		if !busy || pause > renameWait/2 {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
		}
		time.Sleep(pause)
	}
}

// renameOnce replaces a file that is open: os.Root does that, os.Rename does not.
func renameOnce(from, to string) error {
	dir := filepath.Dir(to)
	if filepath.Dir(from) != dir {
		return cause(os.Rename(from, to))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return cause(err)
	}
	defer root.Close()
	return cause(root.Rename(filepath.Base(from), filepath.Base(to)))
}

// cause returns an error of package os without the paths.
func cause(err error) error {
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return link.Err
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

func renameNew(from, to string) error {
	source, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	target, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	if err := windows.MoveFileEx(source, target, windows.MOVEFILE_WRITE_THROUGH); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func renameDir(from, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}

func isMountPoint(dir string) (bool, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return false, err
	}
	volume := make([]uint16, len(path)+windows.MAX_PATH)
	if err := windows.GetVolumePathName(name, &volume[0], uint32(len(volume))); err != nil {
		return false, &fs.PathError{Op: "GetVolumePathName", Path: dir, Err: err}
	}
	return strings.EqualFold(filepath.Clean(windows.UTF16ToString(volume)), filepath.Clean(path)), nil
}
