package datadir

import (
	"bytes"
	"crypto/sha256"
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

	"runner.example/internal/atomicio"
	"runner.example/internal/system/disk"
)

// Mark is the commit mark: a file that names the newest entry of the log. It shows what
// the log must hold when a store is opened: Badger does not notice that a log was cut
// short.
//
// # How it is written
//
// When Badger has synced entry n, the mark of n is written, and then its commits are
// acknowledged. A write survives the process, so after a kill the mark names every
// acknowledged commit. The sync follows within markDelay, in the background: a mark must
// not reach the disk before its entry, and a second sync for each entry would take as long
// as Badger's.
//
// # Which logs fit
//
// The mark names entry m. The log is whole if it holds m with the mark's chain hash. It may
// go on after m: the process ended before the mark of the next entry was written, or the
// power failed before it was on disk. A log that ends before m has lost acknowledged
// commits, and a log with another chain hash belongs to another store. If the log has
// discarded the record of m, only the order is compared. A loss of power can hide damage
// to the entries of the last markDelay.
//
// # Layout
//
// Two slots, each in its own block, written alternately, so that a torn write leaves the
// other slot intact. The valid slot of the highest generation counts.
//
//	slot = "rnmark1\n" | generation, 8 | entry, 8 | state, 1 | chain hash, 32 |
//	       CRC-32C of all before, 4
//
// The zero value is the mark of a store in memory: it is not written. An open mark is for
// one goroutine.
type Mark struct {
	file *os.File // nil in memory
	path string
	now  Position // what was written last
	slot int      // and to which slot

	timer   *time.Timer // of the next sync; nil before the first
	pending atomic.Bool // a sync is scheduled and has not begun
	syncing sync.WaitGroup
	failed  atomic.Pointer[error] // why a sync failed
}

// markDelay is the longest time from the write of a mark to its sync.
const markDelay = 10 * time.Millisecond

// Position is what a mark says.
type Position struct {
	Seq       uint64            // the newest entry of the log
	Chain     [sha256.Size]byte // chain hash of the log up to Seq
	Restoring bool              // a backup is being restored: the store holds part of it

	generation uint64
}

const (
	// MarkName is the name of the file in the data directory.
	MarkName  = "commit-mark"
	markMagic = "rnmark1\n"

	markSlots    = 2
	markBlockLen = 4096
	markSlotLen  = len(markMagic) + 8 + 8 + 1 + sha256.Size + crc32.Size

	// The states of a slot.
	markWhole     = 0
	markRestoring = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (p *Position) encode() []byte {
	b := append(make([]byte, 0, markSlotLen), markMagic...)
	b = binary.BigEndian.AppendUint64(b, p.generation)
	b = binary.BigEndian.AppendUint64(b, p.Seq)
	if p.Restoring {
		b = append(b, markRestoring)
	} else {
		b = append(b, markWhole)
	}
	b = append(b, p.Chain[:]...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeSlot reads a slot; false if it is damaged.
func decodeSlot(b []byte) (p Position, ok bool) {
	if len(b) < markSlotLen || !bytes.HasPrefix(b, []byte(markMagic)) {
		return p, false
	}
	end := markSlotLen - crc32.Size
	if crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return p, false
	}
	b = b[len(markMagic):]
	p.generation = binary.BigEndian.Uint64(b)
	p.Seq = binary.BigEndian.Uint64(b[8:])
	p.Restoring = b[16] == markRestoring
	copy(p.Chain[:], b[17:])
	return p, b[16] <= markRestoring
}

// MarkError says why a mark cannot be used.
type MarkError struct {
	Path  string
	Cause error
}

func (e *MarkError) Error() string { return fmt.Sprintf("%q: %v", e.Path, e.Cause) }
func (e *MarkError) Unwrap() error { return e.Cause }

// OpenMark opens the mark in dir. If there is none the error matches fs.ErrNotExist; if
// its content cannot be used, the error is a *MarkError.
func OpenMark(dir string) (*Mark, error) {
	path := filepath.Join(dir, MarkName)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	m := &Mark{file: f, path: path}
	if err := m.read(); err != nil {
		return nil, errors.Join(&MarkError{path, err}, f.Close())
	}
	return m, nil
}

func (m *Mark) read() error {
	all := make([]byte, markSlots*markBlockLen)
	n, err := io.ReadFull(m.file, all)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	found := false
	for at := 0; at < n; at += markBlockLen {
		p, ok := decodeSlot(all[at:n])
		if ok && (!found || p.generation > m.now.generation) {
			m.now, m.slot, found = p, at/markBlockLen, true
		}
	}
	switch {
	case !found:
		return errors.New("it does not name the newest commit: both copies are damaged")
	case m.now.Restoring:
		return errors.New(
			"the restore of a backup into this store did not finish: remove the data directory and restore again")
	}
	return nil
}

// CreateMark writes the file in dir, whole or not at all.
func CreateMark(dir string, now Position) (*Mark, error) {
	path := filepath.Join(dir, MarkName)
	all := make([]byte, markSlots*markBlockLen)
	for n := range markSlots {
		now.generation = uint64(n)
		copy(all[n*markBlockLen:], now.encode())
	}
	if err := atomicio.WriteFile(path, all); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &Mark{file: f, path: path, now: now, slot: markSlots - 1}, nil
}

// Exists reports whether the mark is a file: that of a store in memory is not, nor that of
// a data directory that has none yet.
func (m *Mark) Exists() bool { return m.file != nil }

// Path returns the path of the file.
func (m *Mark) Path() string { return m.path }

// Seq returns the newest entry that the mark names: the log must hold it.
func (m *Mark) Seq() uint64 { return m.now.Seq }

// Advance writes that the log ends at p, which is on disk, and syncs the mark within
// markDelay. It fails if an earlier sync has failed.
func (m *Mark) Advance(p Position) error {
	if m.file == nil {
		return nil
	}
	if cause := m.failed.Load(); cause != nil {
		return *cause
	}
	if err := m.put(p); err != nil {
		return err
	}
	if m.pending.CompareAndSwap(false, true) {
		m.syncing.Add(1)
		m.timer = time.AfterFunc(markDelay, m.syncLater)
	}
	return nil
}

func (m *Mark) syncLater() {
	defer m.syncing.Done()
	m.pending.Store(false) // what is written from now on gets its own sync
	if err := m.sync(); err != nil {
		m.failed.Store(&err)
	}
}

// settle returns when no sync is scheduled or running.
func (m *Mark) settle() {
	if m.timer != nil && m.timer.Stop() {
		m.pending.Store(false)
		m.syncing.Done()
	}
	m.syncing.Wait()
}

// Set writes p and syncs it.
func (m *Mark) Set(p Position) error {
	if m.file == nil {
		return nil
	}
	m.settle()
	if err := m.put(p); err != nil {
		return err
	}
	return m.sync()
}

func (m *Mark) sync() error {
	if err := disk.SyncData(m.file); err != nil {
		return fmt.Errorf("sync %q: %w", m.path, err)
	}
	return nil
}

// put writes p into the older slot.
func (m *Mark) put(p Position) error {
	p.generation = m.now.generation + 1
	m.now, m.slot = p, (m.slot+1)%markSlots
	_, err := m.file.WriteAt(p.encode(), int64(m.slot*markBlockLen))
	return err
}

// Close syncs and closes the file.
func (m *Mark) Close() error {
	if m.file == nil {
		return nil
	}
	m.settle()
	return errors.Join(m.sync(), m.file.Close())
}

// Fits reports whether a log that ends with entry last belongs to the mark. The position
// at is that of the entry that the mark names, zero if its record was discarded or is not
// there.
func (m *Mark) Fits(last uint64, at Position) bool {
	switch m.now.Seq {
	case 0:
		return true
	case at.Seq:
		return at.Chain == m.now.Chain
	}
	return m.now.Seq < last // too far behind to compare
}
