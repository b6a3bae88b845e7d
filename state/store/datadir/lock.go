package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"runner.example/internal/system/filelock"
)

// ErrLocked means that another process, or another store of this one, has the directory.
var ErrLocked = errors.New("locked")

// Lock is an exclusive lock of a data directory. It is a flock of the directory itself,
// which is not removed in a cleanup, and ends with the process however that ends. The file
// "lock" names the holder for people. On Windows it is also what is locked.
type Lock struct{ dir *os.File }

// Acquire locks dir and writes this process's id to the file "lock". If another process
// has the lock, the error matches ErrLocked and names it.
func Acquire(dir string) (*Lock, error) {
	l, err := AcquireUnchanged(dir)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(lockFile(dir), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(err, l.dir.Close())
	}
	return l, nil
}

// AcquireUnchanged is Acquire, but it changes no file in dir. On Windows it creates the file "lock" if there is none.
func AcquireUnchanged(dir string) (*Lock, error) {
	f, err := filelock.OpenDir(dir, lockName)
	if err != nil {
		return nil, err
	}
	if err = filelock.Try(f); err == nil {
		return &Lock{f}, nil
	}
	defer f.Close()
	if !errors.Is(err, filelock.ErrHeld) {
		return nil, err
	}
	if pid := readPID(dir); pid > 0 {
		return nil, fmt.Errorf("%w by pid %d", ErrLocked, pid)
	}
	return nil, fmt.Errorf("%w by another process", ErrLocked)
}

// Release unlocks the directory. To close the file is not enough: a child that this
// process is starting may have a copy of the descriptor.
func (l *Lock) Release() error {
	return errors.Join(filelock.Unlock(l.dir), l.dir.Close())
}

const lockName = "lock"

func lockFile(dir string) string { return filepath.Join(dir, lockName) }

// readPID returns the holder's process id, 0 if it has not written it yet.
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
