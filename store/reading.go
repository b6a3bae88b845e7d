package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4/y"
)

// Badger does not tell that it met a damaged block: its iterators end there as at the
// end of a table, and a lookup goes on in older tables. A row is then absent, or is
// what it was before its last change. So each read of Badger's stands between
// Tx.reading and reading.done, which find out in three ways:
//
//   - Badger formats y.ErrChecksumMismatch for every block whose checksum is wrong.
//     That variable holds a value of ours, which counts.
//   - A block of an impossible layout makes Badger panic.
//   - A page that the disk does not give is a fault of the memory it is mapped to,
//     which is made a panic too.
//
// The count is of the process. With two stores open, a read of one may fail because
// of the other; that happens only after damage, and for the length of one read.
//
// What these do not see is damage to a checksum's own length, which Badger gives an
// error of another kind: that is found by scrubber. The index of a table, which Badger
// believes once the table is open, is in memory: see pins.

// mismatches counts the blocks whose checksum was found wrong.
var mismatches atomic.Uint64

// mismatch is what y.ErrChecksumMismatch is replaced by.
type mismatch struct{}

func (mismatch) Error() string {
	mismatches.Add(1)
	return "checksum mismatch"
}

func init() { y.ErrChecksumMismatch = mismatch{} }

// reading is one read of a transaction in Badger, or several.
type reading struct {
	tx     *Tx
	before uint64
	faults bool // how the goroutine treated faults before
	left   bool // what runs is not Badger
}

// reading begins a read. The caller defers done, on the same goroutine.
func (t *Tx) reading() reading {
	return reading{tx: t, before: mismatches.Load(), faults: debug.SetPanicOnFault(true)}
}

// metDamage reports whether Badger met damage since the read began.
func (r *reading) metDamage() bool { return mismatches.Load() != r.before }

// leave and enter stand around what is not part of the read.
func (r *reading) leave() { r.left = true }
func (r *reading) enter() { r.left, r.before = false, mismatches.Load() }

// done ends a read. If it met damage, or failed in a way that Badger does tell, err
// becomes that, and the transaction fails too, whatever its function makes of it.
func (r *reading) done(err *error) {
	debug.SetPanicOnFault(r.faults)
	if r.left {
		return
	}
	p := recover()
	cause := *err
	switch {
	case p != nil:
		cause = fmt.Errorf("a table cannot be read: %v", p)
	case r.metDamage():
		cause = errBlock
	case cause == nil || errors.Is(cause, ErrNotFound) || errors.Is(cause, ErrUnavailable) || errors.Is(cause, errEnded):
		return
	}
	*err = r.tx.store.damaged(cause)
	r.tx.broken = *err
}

var errBlock = errors.New("a table cannot be read: the checksum of a block is wrong")

// damaged notes that something cannot be read, and returns what the reader is told.
// The first cause is logged, and is that of Health until the file is known.
func (s *Store) damaged(cause error) error {
	cause = fmt.Errorf("%w: %w", ErrDamaged, cause)
	if s.damage.CompareAndSwap(nil, &cause) {
		s.log.Error("store damaged", "cause", cause)
		if s.scrubber != nil {
			s.scrubber.look()
		}
	}
	return unavailable(*s.damage.Load())
}

// foundDamaged notes that a file is damaged, which the cause names.
func (s *Store) foundDamaged(cause error) {
	was := s.damage.Swap(&cause)
	if was == nil || (*was).Error() != cause.Error() {
		s.log.Error("store file damaged", "cause", cause)
	}
}

// result is the error of a transaction whose function returned err: a read that
// failed is not made good by what the function made of it.
func (t *Tx) result(err error) error {
	if t.broken != nil && !errors.Is(err, t.broken) {
		return t.broken
	}
	return err
}
