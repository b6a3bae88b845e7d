package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4/y"
)

// Badger does not report a damaged block: its iterators end there as at the end of a
// table, and a lookup continues in older tables. A row would be absent, or have an older
// value. So each read of Badger runs between Tx.reading and reading.done, which detect
// damage in three ways:
//
//   - Badger formats y.ErrChecksumMismatch for every block whose checksum is wrong.
//     That variable holds a value of ours, which counts.
//   - A block of an impossible layout makes Badger panic.
//   - A page that cannot be read from disk is a memory fault of its mapping, which is
//     made a panic too.
//
// The count is of the process. With two stores open, damage in one may make a concurrent
// read of the other fail.
//
// These do not detect damage to the length of a checksum, for which Badger has another
// error: scrubber finds it. Badger does not check the index of a table again once the
// table is open, so indexes are in memory: see files.Pins.

// mismatches counts blocks with a wrong checksum.
var mismatches atomic.Uint64

// mismatch replaces y.ErrChecksumMismatch.
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
	faults bool // the previous setting of debug.SetPanicOnFault
	left   bool // code outside of Badger is running
}

// reading begins a read. The caller defers done, on the same goroutine.
func (t *Tx) reading() reading {
	return reading{tx: t, before: mismatches.Load(), faults: debug.SetPanicOnFault(true)}
}

// metDamage reports whether Badger met damage since the read began.
func (r *reading) metDamage() bool { return mismatches.Load() != r.before }

// leave and enter enclose code that is not part of the read.
func (r *reading) leave() { r.left = true }
func (r *reading) enter() { r.left, r.before = false, mismatches.Load() }

// done ends a read. If it met damage, or Badger returned an error, err is set to that, and
// the transaction fails too, even if its function ignores the error.
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

// damaged records that something cannot be read, and returns the error for the reader. The
// first cause is logged, and is that of Health until the file is known.
func (s *Store) damaged(cause error) error {
	if s.base != nil {
		_ = s.base.store.damaged(cause)
	}
	cause = fmt.Errorf("%w: %w", ErrDamaged, cause)
	if s.damage.CompareAndSwap(nil, &cause) {
		s.log.Error("store damaged", "cause", cause)
		if s.scrubber != nil {
			s.scrubber.checkSoon()
		}
	}
	return unavailable(*s.damage.Load())
}

// foundDamaged records that the file that cause names is damaged.
func (s *Store) foundDamaged(cause error) {
	was := s.damage.Swap(&cause)
	if was == nil || (*was).Error() != cause.Error() {
		s.log.Error("store file damaged", "cause", cause)
	}
}

// result returns the error of a transaction whose function returned err. A failed read
// fails the transaction even if the function ignored it.
func (t *Tx) result(err error) error {
	if t.broken != nil && !errors.Is(err, t.broken) {
		return t.broken
	}
	return err
}
