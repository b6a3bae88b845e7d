package store

import (
	"errors"
	"fmt"

	"runner.example/internal/fault"
	"runner.example/store/datadir"
	"runner.example/store/files"
)

// The ways in which the store refuses. Match them with errors.Is: what is
// returned may wrap one of them together with its cause.
var (
	// ErrNotFound: there is no such key or blob.
	ErrNotFound error = fault.New(fault.NotFound, "not found")
	// ErrConflict: other transactions wrote what this one had read, at every
	// try. Nothing happened.
	ErrConflict error = fault.New(fault.Conflict, "other transactions changed the same data; try again")
	// ErrTooLarge: the transaction, key or value is over its limit.
	ErrTooLarge error = fault.New(fault.TooLarge, "too much for one transaction; write less at a time")
	// ErrUnavailable: the store cannot do it now, because it is closed, stopped
	// writing after a failure, or the context ended first. Nothing happened.
	ErrUnavailable error = fault.New(fault.Unavailable, "the store is unavailable")
	// ErrUnknown: the commit was on its way when waiting for it ended. It may
	// have happened or may still happen.
	ErrUnknown error = fault.New(fault.Unavailable, "it is not known whether the change was stored")
	// ErrLocked: another process, or another Store of this one, has the data directory.
	ErrLocked = datadir.ErrLocked
	// ErrDamaged means that a file of the store is missing, or is not as the store wrote it.
	// The error that wraps it names the file. Such a store must not be served: keep the
	// folder as it is, and restore a backup into a new one.
	ErrDamaged = files.ErrDamaged
	// ErrReadOnly: Set or Delete in a View.
	ErrReadOnly = errors.New("write in a read-only transaction")
)

var (
	errClosed   = fmt.Errorf("%w: it is closed", ErrUnavailable)
	errEnded    = errors.New("use of a transaction after its function returned")
	errEmptyKey = errors.New("empty key")
)

// unavailable says that cause kept the store from doing anything.
func unavailable(cause error) error { return fmt.Errorf("%w: %w", ErrUnavailable, cause) }

// unknown says that cause ended the wait for an outcome.
func unknown(cause error) error { return fmt.Errorf("%w: %w", ErrUnknown, cause) }
