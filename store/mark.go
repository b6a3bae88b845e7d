package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"runner.example/store/files"
)

// mark is the high-water mark: a file beside Badger's that names the newest entry
// of the log. By it Open knows what the log must hold, since a log that was cut
// short looks whole to Badger.
//
// # How it is written
//
// When Badger has synced entry n, the mark of n is written, and then its commits are
// acknowledged. What was written outlives the process, so after a kill the mark names
// all that was acknowledged. It is synced within markDelay, in the background: a mark
// may not reach the disk before its entry, and a second sync for each entry would take
// as long as Badger's.
//
// # What Open takes for whole
//
// The mark names entry m. The log is whole if it holds m, with the mark's chain hash,
// and may go on behind it: the process ended before the mark of the next entry was
// written, or the power failed before it was on disk. A log that ends before m has lost
// what was acknowledged, and one of another chain belongs to another store. If the log
// has discarded the record of m, only the order is compared. A loss of power can hide
// damage to the entries of the last markDelay.
//
// # Layout
//
// Two slots, each in a block of its own and written in turn, so that what tears a
// slot leaves the one before. The valid slot of the highest generation counts.
//
//	slot = "rnmark1\n" | generation, 8 | entry, 8 | state, 1 | chain hash, 32 |
//	       CRC-32C of all before, 4
//
// Only the goroutine that applies touches an open mark, but for the sync.
type mark struct {
	file *os.File // nil: a store in memory, which has no mark
	now  markSlot // what was written last
	slot int      // and where

	timer   *time.Timer // of the next sync; nil before the first
	pending atomic.Bool // a sync comes that has not begun
	syncing sync.WaitGroup
	failed  atomic.Pointer[error] // why a sync failed
}

// markDelay is how long after an entry its mark is synced at the latest.
const markDelay = 10 * time.Millisecond

// markSlot is what a slot says.
type markSlot struct {
	generation uint64
	seq        Seq
	state      markState
	chain      digest // of the log up to seq
}

type markState byte

const (
	markWhole     markState = iota // the log holds seq
	markRestoring                  // a backup is being restored: the store holds part of it
)

const (
	markName  = "commit-mark"
	markMagic = "rnmark1\n"

	markSlots    = 2
	markBlockLen = 4096
	markSlotLen  = len(markMagic) + 8 + 8 + 1 + len(digest{}) + crc32.Size
)

func (s *markSlot) encode() []byte {
	b := append(make([]byte, 0, markSlotLen), markMagic...)
	b = binary.BigEndian.AppendUint64(b, s.generation)
	b = binary.BigEndian.AppendUint64(b, uint64(s.seq))
	b = append(b, byte(s.state))
	b = append(b, s.chain[:]...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeSlot reads a slot; false if it is not whole.
func decodeSlot(b []byte) (s markSlot, ok bool) {
	if len(b) < markSlotLen || !bytes.HasPrefix(b, []byte(markMagic)) {
		return s, false
	}
	end := markSlotLen - crc32.Size
	if crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return s, false
	}
	b = b[len(markMagic):]
	s.generation = binary.BigEndian.Uint64(b)
	s.seq = Seq(binary.BigEndian.Uint64(b[8:]))
	s.state = markState(b[16])
	copy(s.chain[:], b[17:])
	return s, s.state <= markRestoring
}

// openMark opens the mark of the store in dir. Without one the error matches
// fs.ErrNotExist.
func openMark(dir string) (*mark, error) {
	path := filepath.Join(dir, markName)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	m := &mark{file: f}
	if err := m.read(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

func (m *mark) read() error {
	all := make([]byte, markSlots*markBlockLen)
	n, err := io.ReadFull(m.file, all)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return files.InFile(m.file.Name(), err)
	}
	found := false
	for at := 0; at < n; at += markBlockLen {
		s, ok := decodeSlot(all[at:n])
		if ok && (!found || s.generation > m.now.generation) {
			m.now, m.slot, found = s, at/markBlockLen, true
		}
	}
	switch {
	case !found:
		return files.Damaged(m.file.Name(), "it does not name the newest commit: both copies are damaged")
	case m.now.state == markRestoring:
		return files.Damaged(m.file.Name(), "the restore of a backup into this store did not finish: remove the folder and restore again")
	}
	return nil
}

// makeMark makes the file in dir, whole or not at all.
func makeMark(dir string, now markSlot) (_ *mark, err error) {
	path := filepath.Join(dir, markName)
	f, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	all := make([]byte, markSlots*markBlockLen)
	for n := range markSlots {
		now.generation = uint64(n)
		copy(all[n*markBlockLen:], now.encode())
	}
	if _, err := f.WriteAt(all, 0); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, err
	}
	return &mark{file: f, now: now, slot: markSlots - 1}, syncDir(dir)
}

// advance writes that the log ends with the entry of r, which is on disk, and has the
// mark synced within markDelay. It fails when an earlier sync has.
func (m *mark) advance(r *logRecord) error {
	if m.file == nil {
		return nil
	}
	if cause := m.failed.Load(); cause != nil {
		return *cause
	}
	if err := m.put(r.mark()); err != nil {
		return err
	}
	if m.pending.CompareAndSwap(false, true) {
		m.syncing.Add(1)
		m.timer = time.AfterFunc(markDelay, m.syncLater)
	}
	return nil
}

func (m *mark) syncLater() {
	defer m.syncing.Done()
	m.pending.Store(false) // what is written from now on has a sync of its own
	if err := m.sync(); err != nil {
		m.failed.Store(&err)
	}
}

// settle has no sync come or be under way.
func (m *mark) settle() {
	if m.timer != nil && m.timer.Stop() {
		m.pending.Store(false)
		m.syncing.Done()
	}
	m.syncing.Wait()
}

// set makes s what the mark says, on disk.
func (m *mark) set(s markSlot) error {
	if m.file == nil {
		return nil
	}
	m.settle()
	if err := m.put(s); err != nil {
		return err
	}
	return m.sync()
}

func (m *mark) sync() error {
	for {
		if err := unix.Fdatasync(int(m.file.Fd())); err == nil {
			return nil
		} else if err != unix.EINTR {
			return fmt.Errorf("sync %q: %w", m.file.Name(), err)
		}
	}
}

// put writes s into the slot whose turn it is.
func (m *mark) put(s markSlot) error {
	s.generation = m.now.generation + 1
	m.now, m.slot = s, (m.slot+1)%markSlots
	_, err := m.file.WriteAt(s.encode(), int64(m.slot*markBlockLen))
	return err
}

// meta returns the user byte of the log's record: whether commits write the mark.
func (m *mark) meta() byte {
	if m.file == nil {
		return 0
	}
	return metaMarked
}

func (m *mark) close() error {
	if m.file == nil {
		return nil
	}
	m.settle()
	return errors.Join(m.sync(), m.file.Close())
}

// mark returns the mark of a log that ends with r.
func (r *logRecord) mark() markSlot {
	return markSlot{seq: r.seq, chain: r.chain}
}

// least returns the entry that the log must hold at least.
func (m *mark) least() Seq { return m.now.seq }

// fits reports whether a log that ends with entry last belongs to the mark. The record
// at is that of the entry that the mark names, zero if it was discarded or is not there.
func (m *mark) fits(last Seq, at *logRecord) bool {
	switch m.now.seq {
	case 0:
		return true
	case at.seq:
		return at.chain == m.now.chain
	}
	return m.now.seq < last // too far behind to compare
}
