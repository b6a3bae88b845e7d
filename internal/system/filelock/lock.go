package filelock

import (
	"context"
	"errors"
	"os"
	"time"

	"runner.example/internal/wait"
)

// ErrHeld means that another process, or another open file of this one, has the lock.
var ErrHeld = errors.New("locked")

// poll is how often Wait tries.
const poll = 50 * time.Millisecond

// Try locks f and returns at once; the error is ErrHeld if the lock is not free. Closing f ends the
// lock, unless a child that this process is starting has a copy of it: Unlock ends it always. Who has
// the lock must not ask for it again.
func Try(f *os.File) error { return try(f) }

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
func Unlock(f *os.File) error { return unlock(f) }

// OpenDir opens what stands for the lock of the directory dir: on Unix the directory itself. Windows
// cannot lock a directory: there it is the file of that name in it, which OpenDir creates if there is none.
func OpenDir(dir, name string) (*os.File, error) { return openDir(dir, name) }
