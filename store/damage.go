package store

import (
	"errors"
	"fmt"
)

// ErrDamaged means that a file of the store is missing, or is not as the store wrote it.
// The error that wraps it names the file. Such a store must not be served: keep the
// folder as it is, and restore a backup into a new one.
var ErrDamaged = errors.New("the store is damaged")

// damage is what is wrong with one file.
type damage struct {
	file  string // path
	cause error
}

// damagedFile says what is wrong with a file of the store.
func damagedFile(file, format string, args ...any) error {
	return &damage{file, fmt.Errorf(format, args...)}
}

// inFile names the file that err is about, unless err names one.
func inFile(file string, err error) error {
	if err == nil || errors.Is(err, ErrDamaged) {
		return err
	}
	return &damage{file, err}
}

// Error names the file and what is wrong with it.
func (d *damage) Error() string { return fmt.Sprintf("%v: %q: %v", ErrDamaged, d.file, d.cause) }

// Is reports whether target is ErrDamaged.
func (d *damage) Is(target error) bool { return target == ErrDamaged }

func (d *damage) Unwrap() error { return d.cause }
