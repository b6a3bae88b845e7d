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
	"syscall"
)

// mark is the high-water mark: a file beside Badger's that names the newest entry
// of the log. By it Open knows what the log must hold, since a log that was cut
// short looks whole to Badger.
//
// # How it is written
//
// The mark of entry n is written and synced at the same time as Badger syncs the
// entry, so it costs no time of its own. It says then that n is on its way. When
// both are on disk, and before anybody is told, it is written once more, saying
// that n is acknowledged; this is not synced, since it has to outlive the process
// and not the power. The mark of entry n+1, which is synced, says the same.
//
// # What Open takes for whole
//
// The log ends with entry n and the mark names m:
//
//	n = m      with the chain hash of the mark
//	n = m + 1  which follows from m: the process ended before the mark of n was written
//	n = m - 1  with the hash before m, if m is only on its way: the process ended
//	           before the log was written; m was acknowledged to nobody
//
// All else is damage: the log lost what was acknowledged, or the files are of
// different times or stores.
//
// # Layout
//
// Two slots, each in a block of its own and written in turn, so that what tears a
// slot leaves the one before. The valid slot of the highest generation counts.
//
//	slot = "rnmark1\n" | generation, 8 | entry, 8 | state, 1 | chain hash, 32 |
//	       chain hash of the entry before, 32 | CRC-32C of all before, 4
//
// Only the goroutine that applies touches an open mark.
type mark struct {
	file *os.File // nil: a store in memory, which has no mark
	now  markSlot // what was written last
	slot int      // and where
}

// markSlot is what a slot says.
type markSlot struct {
	generation uint64
	seq        Seq
	state      markState
	chain      digest // of the log up to seq
	before     digest // of the log up to the entry before; only if on its way
}

type markState byte

const (
	markAcknowledged markState = iota // the log holds seq
	markOnItsWay                      // the log holds the entry before, and perhaps seq
	markRestoring                     // a backup is being restored: the store holds part of it
)

const (
	markName  = "commit-mark"
	markMagic = "rnmark1\n"

	markSlots    = 2
	markBlockLen = 4096
	markSlotLen  = len(markMagic) + 8 + 8 + 1 + 2*len(digest{}) + crc32.Size
)

func (s *markSlot) encode() []byte {
	b := append(make([]byte, 0, markSlotLen), markMagic...)
	b = binary.BigEndian.AppendUint64(b, s.generation)
	b = binary.BigEndian.AppendUint64(b, uint64(s.seq))
	b = append(b, byte(s.state))
	b = append(append(b, s.chain[:]...), s.before[:]...)
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
	copy(s.before[:], b[17+len(s.chain):])
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
		return damagedFile(m.file.Name(), "it does not tell which commit is the newest: neither of its two copies is whole")
	case m.now.state == markRestoring:
		return damagedFile(m.file.Name(), "a backup was being restored into this store and did not come to its end: remove the folder and restore again")
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

// announce writes that the entry of r is on its way, which follows an entry of the
// chain hash before.
func (m *mark) announce(before digest, r *logRecord) error {
	return m.set(markSlot{seq: r.seq, state: markOnItsWay, chain: r.chain, before: before})
}

// acknowledge writes that what was announced is on disk, and that is known to all
// that outlives the process.
func (m *mark) acknowledge() error {
	if m.file == nil {
		return nil
	}
	m.now.generation++
	m.now.state = markAcknowledged
	return m.put()
}

// set makes s what the mark says, on disk.
func (m *mark) set(s markSlot) error {
	if m.file == nil {
		return nil
	}
	s.generation = m.now.generation + 1
	m.now, m.slot = s, (m.slot+1)%markSlots
	if err := m.put(); err != nil {
		return err
	}
	if err := syscall.Fdatasync(int(m.file.Fd())); err != nil {
		return fmt.Errorf("sync %q: %w", m.file.Name(), err)
	}
	return nil
}

// put writes what the mark says into its slot.
func (m *mark) put() error {
	_, err := m.file.WriteAt(m.now.encode(), int64(m.slot*markBlockLen))
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
	return errors.Join(m.file.Sync(), m.file.Close())
}

// mark returns the mark of a log that ends with r.
func (r *logRecord) mark() markSlot {
	return markSlot{seq: r.seq, chain: r.chain}
}

// least returns the entry that the log must hold at least.
func (m *mark) least() Seq {
	if m.now.state == markOnItsWay {
		return m.now.seq - 1
	}
	return m.now.seq
}

// fits reports whether a log that ends with r is what the mark says it is.
func (m *mark) fits(r *logRecord) bool {
	switch {
	case r.seq == m.now.seq:
		return r.chain == m.now.chain
	case r.seq == m.now.seq+1:
		return r.chain == link(m.now.chain, r.entry)
	case r.seq+1 == m.now.seq:
		return m.now.state == markOnItsWay && r.chain == m.now.before
	}
	return false
}
