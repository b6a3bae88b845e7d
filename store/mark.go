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

	"golang.org/x/sys/unix"
)

// mark is the high-water mark: a file beside Badger's that names the newest entry
// of the log. By it Open knows what the log must hold, since a log that was cut
// short looks whole to Badger.
//
// # How it is written
//
// When Badger has synced entry n, the mark of n is written, and then its commits are
// acknowledged. What was written outlives the process, so after a kill the mark names
// all that was acknowledged. On the disk it is before n+1 is acknowledged. A sync before
// n is acknowledged would protect no more: it would have to run while Badger syncs, and
// a loss of power could then leave the mark without the entry, which Open would have to
// take for whole.
//
// Where files are written in place, the mark is handed to the disk at once, and Badger's
// sync of n+1, which has the disk write out all it holds, makes it durable; a sync of
// its own would take as long as Badger's. On other file systems it is synced beside
// Badger's sync of n+1.
//
// # What Open takes for whole
//
// The log ends with entry n, the mark names m, and their chain hashes agree:
//
//	n = m
//	n = m + 1  the process ended before the mark of n was written
//	n = m + 2  the power failed, besides, before the mark of m + 1 was on disk
//
// All else is damage: the log lost what was acknowledged, or the files are of
// different times or stores. Damage to the newest entry alone is hidden if the power
// fails before its mark is on disk: before the next commit, or the kernel wrote it back.
//
// # Layout
//
// Two slots, each in a block of its own and written in turn, so that what tears a
// slot leaves the one before. The valid slot of the highest generation counts.
//
//	slot = "rnmark1\n" | generation, 8 | entry, 8 | state, 1 | chain hash, 32 |
//	       CRC-32C of all before, 4
//
// Only the goroutine that applies touches an open mark.
type mark struct {
	file *os.File // nil: a store in memory, which has no mark
	now  markSlot // what was written last
	slot int      // and where

	// inPlace: what is written goes to the blocks where the file is, and the sync of
	// an entry makes all durable that the disk has by then.
	inPlace bool
	failed  error      // why the disk did not take it
	syncing chan error // the result of the sync under way; nil: none is
}

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
	m := &mark{file: f, inPlace: writesInPlace(f)}
	if err := m.read(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

func (m *mark) read() error {
	all := make([]byte, markSlots*markBlockLen)
	n, err := io.ReadFull(m.file, all)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return inFile(m.file.Name(), err)
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
		return damagedFile(m.file.Name(), "it does not name the newest commit: both copies are damaged")
	case m.now.state == markRestoring:
		return damagedFile(m.file.Name(), "the restore of a backup into this store did not finish: remove the folder and restore again")
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
	return &mark{file: f, now: now, slot: markSlots - 1, inPlace: writesInPlace(f)}, syncDir(dir)
}

// advance writes that the log ends with the entry of r, which is on disk.
func (m *mark) advance(r *logRecord) error {
	if m.file == nil {
		return nil
	}
	return m.put(r.mark())
}

// handOver begins to bring the mark to the disk, when its entry was acknowledged.
func (m *mark) handOver() {
	switch {
	case m.file == nil || m.syncing != nil:
	case m.inPlace:
		m.failed = m.writeBack(unix.SYNC_FILE_RANGE_WRITE)
	default:
		done := make(chan error, 1)
		go func() { done <- m.sync() }()
		m.syncing = done
	}
}

// beforeSync is called before the next entry is synced, and afterSync then: after it
// what the mark says is on disk.
func (m *mark) beforeSync() error {
	if m.file == nil || !m.inPlace {
		return nil
	}
	return errors.Join(m.failed, m.writeBack(unix.SYNC_FILE_RANGE_WAIT_BEFORE))
}

func (m *mark) afterSync() error { return m.wait() }

// writeBack hands what was put to the disk, or waits until the disk has it.
func (m *mark) writeBack(flags int) error {
	for {
		err := unix.SyncFileRange(int(m.file.Fd()), 0, markSlots*markBlockLen, flags)
		if err == nil {
			return nil
		} else if err != unix.EINTR {
			return fmt.Errorf("write back %q: %w", m.file.Name(), err)
		}
	}
}

// writesInPlace reports whether f lies on a file system that writes over the blocks of
// a file, and whose sync of any file has the disk write out all it holds: ext4 or XFS.
func writesInPlace(f *os.File) bool {
	var s unix.Statfs_t
	err := unix.Fstatfs(int(f.Fd()), &s)
	return err == nil && (s.Type == unix.EXT4_SUPER_MAGIC || s.Type == unix.XFS_SUPER_MAGIC)
}

// wait ends the sync under way.
func (m *mark) wait() error {
	if m.syncing == nil {
		return nil
	}
	err := <-m.syncing
	m.syncing = nil
	return err
}

// set makes s what the mark says, on disk.
func (m *mark) set(s markSlot) error {
	if m.file == nil {
		return nil
	}
	if err := errors.Join(m.wait(), m.put(s)); err != nil {
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
	return errors.Join(m.wait(), m.sync(), m.file.Close())
}

// mark returns the mark of a log that ends with r.
func (r *logRecord) mark() markSlot {
	return markSlot{seq: r.seq, chain: r.chain}
}

// least returns the entry that the log must hold at least.
func (m *mark) least() Seq { return m.now.seq }

// fits reports whether a log that ends with newest is what the mark says it is. The
// record before is that of the entry before, zero if it was discarded.
func (m *mark) fits(newest, before *logRecord) bool {
	switch newest.seq - m.now.seq {
	case 0:
		return newest.chain == m.now.chain
	case 1:
		return newest.chain == link(m.now.chain, newest.entry)
	case 2:
		return before.seq == 0 || before.chain == link(m.now.chain, before.entry)
	}
	return false
}
