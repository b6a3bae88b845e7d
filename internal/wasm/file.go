package wasm

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// shownBytes of a file that is too large tell what it is.
const shownBytes = 64 << 10

// ReadFile reads the file of a module, which may have so many bytes. An error is
// one line that goes on after the file's name. It never waits for another process:
// what is no plain file, such as a pipe or a device, is refused.
func ReadFile(path string, most int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("is %s and no file: remove it, and build the module again", kindOf(info.Mode()))
	case info.Size() > int64(most):
		begin, _ := io.ReadAll(io.LimitReader(f, shownBytes)) // what can be read of it
		if err := Foreign(begin); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("is %d bytes large, and a module may have %d: strip debug information", info.Size(), most)
	}
	file, err := io.ReadAll(io.LimitReader(f, int64(most)+1)) // it may have grown; then Parse refuses it
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return file, nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}
