package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lockDir takes the folder for this Store, or says who has it. The lock is one on
// the folder itself, which nobody removes to clean up, and ends with the process,
// however that ends; what the file "lock" says is only for people.
func lockDir(dir string) (*os.File, error) {
	f, err := flockDir(dir)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(lockFile(dir), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// flockDir is lockDir without a word for people: it changes nothing in the folder.
func flockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return f, nil
	}
	defer f.Close()
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, err
	}
	if pid := readPID(dir); pid > 0 {
		return nil, fmt.Errorf("%w by pid %d", ErrLocked, pid)
	}
	return nil, fmt.Errorf("%w by another process", ErrLocked)
}

// unlockDir gives the folder up. Closing the file alone would not, as long as a
// child that this process is just starting has a copy of the descriptor.
func unlockDir(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

func lockFile(dir string) string { return filepath.Join(dir, "lock") }

// readPID returns 0 if the holder has not written its number yet.
func readPID(dir string) int {
	b, err := os.ReadFile(lockFile(dir))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}
