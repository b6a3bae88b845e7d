package store

import (
	"errors"
	"fmt"

	"runner.example/internal/fault"
	"runner.example/state/store/datadir"
	"runner.example/state/store/files"
	"runner.example/state/store/space"
)

// The errors of the store. Match them with errors.Is: a returned error may wrap one of them
// together with its cause.
var (
	// ErrNotFound: there is no such key or blob.
	ErrNotFound error = fault.New(fault.NotFound, "not found")
	// ErrConflict: at every try other transactions wrote what this one had read. Nothing is
	// written.
	ErrConflict error = fault.New(fault.Conflict, "other transactions changed the same data; try again")
	// ErrTooLarge: the transaction, key or value is over its limit.
	ErrTooLarge error = fault.New(fault.TooLarge, "too much for one transaction; write less at a time")
	// ErrUnavailable: the store is closed, stopped writing after a failure, is damaged, or
	// the context ended first. Nothing is written.
	ErrUnavailable error = fault.New(fault.Unavailable, "the store is unavailable")
	// ErrUnknown: the wait for a commit ended during the commit. It may be written or not.
	ErrUnknown error = fault.New(fault.Unavailable, "it is not known whether the change was stored")
	// ErrLocked: another process, or another Store of this one, has the data directory.
	ErrLocked = datadir.ErrLocked
	// ErrNode: the data directory belongs to a node of a cluster, see SetNode.
	ErrNode error = fault.New(fault.Unavailable,
		"the data directory belongs to a node of a cluster: only its server may open it, so start that with runner serve")
	// ErrNotOwner: this node does not own the background work of its cluster, see Tx.CheckOwner.
	ErrNotOwner error = fault.New(fault.Unavailable, "another node of the cluster does this")
	// ErrDiverged: this store differs from another one of its cluster, see Store.StopDiverged.
	ErrDiverged = errors.New("diverged")
	// ErrDamaged means that a file of the store is missing, or is not as the store wrote it.
	// The error that wraps it names the file. Such a store must not be served: keep the
	// data directory unchanged, and restore a backup into a new one.
	ErrDamaged = files.ErrDamaged
	// ErrUnflushed: the disk is full, so Close could not write tables. All acknowledged commits are on disk, and the
	// next Open writes them. The data directory is locked until the process ends.
	ErrUnflushed = errors.New("acknowledged commits are on disk, but the disk is full and their tables cannot be written; the next start writes them")
	// ErrReadOnly: Set or Delete in a View.
	ErrReadOnly = errors.New("write in a read-only transaction")
)

var (
	errClosed   = fmt.Errorf("%w: it is closed", ErrUnavailable)
	errEnded    = errors.New("use of a transaction after its function returned")
	errEmptyKey = errors.New("empty key")
)

// IsFull reports whether an operation has failed because the disk is full. Health has the reason as long as it is.
func IsFull(err error) bool { return space.IsFull(err) }

// unavailable returns an error that matches ErrUnavailable and cause.
func unavailable(cause error) error { return fmt.Errorf("%w: %w", ErrUnavailable, cause) }

// unknown returns an error that matches ErrUnknown and cause.
func unknown(cause error) error { return fmt.Errorf("%w: %w", ErrUnknown, cause) }
