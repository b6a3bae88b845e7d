package wasm

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"runner.example/internal/system/disk"
)

// ReadFile reads the file of a module of at most limit bytes. An error is one line that
// continues the file's name. ReadFile never waits for another process: it refuses what is
// not a regular file, such as a pipe or a device.
func ReadFile(path string, limit int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|disk.NoWait, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("is %s, not a file: remove it, and build the module again", kindOf(info.Mode()))
	case info.Size() > int64(limit):
		var begin [len(magic)]byte
		if _, err := io.ReadFull(f, begin[:]); err == nil && checkMagic(begin[:]) != nil {
			return nil, checkMagic(begin[:])
		}
		return nil, fmt.Errorf("is %d bytes large, and a module may have %d: strip debug information", info.Size(), limit)
	}
	file, err := io.ReadAll(io.LimitReader(f, int64(limit)+1)) // it may have grown; then Parse refuses it
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return file, nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}
