package filelock

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"runner.example/internal/wait"
)

// ErrHeld means that another process, or another open file of this one, has the lock.
var ErrHeld = errors.New("locked")

// poll is how often Wait tries.
const poll = 50 * time.Millisecond

// Try locks f and returns at once; the error is ErrHeld if the lock is not free. Closing f ends the
// lock, unless a child that this process is starting has a copy of it: Unlock ends it always.
func Try(f *os.File) error {
	err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}

// Wait waits until it has locked f as Try does, or ctx has ended, whose error it then returns.
func Wait(ctx context.Context, f *os.File) error {
	for {
		if err := Try(f); err != ErrHeld {
			return err
		}
		if err := wait.For(ctx, poll); err != nil {
			return err
		}
	}
}

// Unlock ends the lock of f, which stays open.
func Unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}
