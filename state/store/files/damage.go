package files

import (
	"errors"
	"fmt"
)

// ErrDamaged means that a file of the store is missing, or is not as the store wrote it.
// The error that wraps it names the file.
var ErrDamaged = errors.New("the store is damaged")

// damage is the damage of one file.
type damage struct {
	file  string // path
	cause error
}

// Damaged returns an error that matches ErrDamaged and says what is wrong with the file
// at that path. The rest is as for fmt.Errorf.
func Damaged(file, format string, args ...any) error {
	return &damage{file, fmt.Errorf(format, args...)}
}

// InFile returns err as damage of the file at that path, unless err matches ErrDamaged
// already. It returns nil for nil.
func InFile(file string, err error) error {
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
