package files

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
)

// Badger's write-ahead log of a memtable is a header and entries, then zeros:
//
//	key id, 8 | initial vector, 12 | entries
//	entry = meta, 1 | user meta, 1 | length of key | length of value | expiry |
//	        key | value | CRC-32C of all before, 4
//
// The lengths and the expiry are varints. A commit is entries with the bit
// walTx in meta and one with walEnd, whose value is the version in digits.
const (
	LogExt  = ".mem"
	LogHead = 20 // bytes before the first entry

	// MemTableBytes is the size of memtables with which Badger opens. No value in a log is
	// longer.
	MemTableBytes = 64 << 20

	walTx      = 1 << 6
	walEnd     = 1 << 7
	walMaxKey  = 1 << 16
	walEndKey  = "!badger!txn"
	walVersion = 8 // bytes of version at the end of a key
)

// wal is the content of a write-ahead log.
type wal struct {
	path        string
	first, last uint64 // the whole commits; 0 if there are none
	end         int64  // where they end
	torn        bool   // the bytes after end are not all zero
	// beyond is the newest commit with a whole end after end; 0 if there is none.
	beyond uint64
	// loose: it has entries outside of commits, which Badger writes when it loads a
	// backup. Their versions are not ordered.
	loose bool
}

// readWAL reads the log up to the first damaged byte. It changes nothing.
func readWAL(path string) (*wal, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w := &wal{path: path}
	in := &walReader{r: bufio.NewReaderSize(f, 1<<20)}
	head := make([]byte, LogHead)
	if _, err := io.ReadFull(in, head); err != nil {
		w.torn = !errors.Is(err, io.EOF) // Badger empties a log before it removes it
		return w, notEOF(err)
	}
	if binary.BigEndian.Uint64(head) != 0 {
		return nil, Damaged(path, "its header names an encryption key, but stores are not encrypted")
	}
	w.end = in.n
	if err := w.read(in); err != nil {
		return nil, err
	}
	return w, w.readTail(f)
}

// read reads commits until one is not whole.
func (w *wal) read(in *walReader) error {
	var open uint64 // the commit whose entries are being read
	for {
		e, err := in.next()
		if err != nil || e == nil {
			return err
		}
		switch {
		case e.meta&walTx != 0:
			if open == 0 {
				open = e.version()
			}
			if e.version() != open {
				return nil
			}
			continue
		case e.meta&walEnd != 0:
			seq, err := strconv.ParseUint(string(e.value), 10, 64)
			if err != nil || seq != open {
				return nil
			}
			if w.first == 0 {
				w.first = open
			} else if open != w.last+1 && !w.loose {
				return Damaged(w.path, "commit %d follows commit %d", open, w.last)
			}
			w.last, open = open, 0
		case open != 0:
			return nil
		default:
			w.loose = true
			w.last = max(w.last, e.version())
		}
		w.end = in.n
	}
}

// readTail reads what follows the end.
func (w *wal) readTail(f *os.File) error {
	if _, err := f.Seek(w.end, io.SeekStart); err != nil {
		return err
	}
	const overlap = len(walEndKey) + 64 // more than an end of a commit takes
	buf, zeros := make([]byte, 1<<20), make([]byte, 1<<20)
	have := 0
	for {
		n, err := io.ReadFull(f, buf[have:])
		if err := notEOF(err); err != nil {
			return err
		}
		part := buf[:have+n]
		if w.torn = w.torn || !bytes.Equal(part, zeros[:len(part)]); w.torn {
			w.beyond = max(w.beyond, findEnd(part))
		}
		if n == 0 || err != nil {
			return nil
		}
		have = copy(buf, part[max(0, len(part)-overlap):])
	}
}

// findEnd returns the newest commit whose end is in b, 0 if there is none.
func findEnd(b []byte) (newest uint64) {
	const head = 5 // meta, user meta, two lengths and the expiry, a byte each
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(walEndKey))
		if i < 0 {
			return newest
		}
		at += i + 1
		if start := at - 1 - head; start >= 0 {
			e, err := (&walReader{r: bufio.NewReader(bytes.NewReader(b[start:]))}).next()
			if err == nil && e != nil && e.meta&walEnd != 0 {
				newest = max(newest, e.version())
			}
		}
	}
}

// walEntry is one entry; its bytes are valid until the next one is read.
type walEntry struct {
	meta, userMeta byte
	key, value     []byte
}

func (e *walEntry) version() uint64 {
	return versionOf(e.key)
}

// versionOf returns the version at the end of a Badger key. It is stored inverted, so that
// newer versions come first.
func versionOf(key []byte) uint64 {
	if len(key) < walVersion {
		return 0
	}
	return ^binary.BigEndian.Uint64(key[len(key)-walVersion:])
}

// walReader reads entries and counts bytes.
type walReader struct {
	r    *bufio.Reader
	n    int64  // read
	sum  uint32 // of what was read of the entry
	byte [1]byte
	buf  []byte
	err  error // why the file cannot be read
}

func (r *walReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	r.n += int64(n)
	r.sum = crc32.Update(r.sum, castagnoli, b[:n])
	if r.err == nil {
		r.err = notEOF(err)
	}
	return n, err
}

func (r *walReader) ReadByte() (byte, error) {
	_, err := io.ReadFull(r, r.byte[:])
	return r.byte[0], err
}

// next returns the next entry, nil if it is not whole.
func (r *walReader) next() (*walEntry, error) {
	e, ok := r.entry()
	if !ok {
		return nil, r.err
	}
	return &e, nil
}

func (r *walReader) entry() (e walEntry, ok bool) {
	r.sum = 0
	meta, err := r.ReadByte()
	if err != nil {
		return e, false
	}
	userMeta, err := r.ReadByte()
	if err != nil {
		return e, false
	}
	var lengths [3]uint64
	for i := range lengths {
		if lengths[i], err = binary.ReadUvarint(r); err != nil {
			return e, false
		}
	}
	keyLen, valueLen := lengths[0], lengths[1]
	if keyLen < walVersion || keyLen > walMaxKey || valueLen > MemTableBytes {
		return e, false
	}
	if need := int(keyLen+valueLen) + crc32.Size; cap(r.buf) < need {
		r.buf = make([]byte, 2*need)
	}
	b := r.buf[:keyLen+valueLen]
	if _, err := io.ReadFull(r, b); err != nil {
		return e, false
	}
	sum, stored := r.sum, r.buf[len(b):len(b)+crc32.Size]
	if _, err := io.ReadFull(r, stored); err != nil || binary.BigEndian.Uint32(stored) != sum {
		return e, false
	}
	return walEntry{meta, userMeta, b[:keyLen], b[keyLen:]}, true
}

// notEOF returns err unless it says that a file has ended.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// endsAt says where the whole commits of the log end and what follows.
func (w *wal) endsAt() string {
	switch {
	case w.torn && w.beyond > w.last:
		return fmt.Sprintf("it is damaged at byte %d, after commit %d, and continues up to commit %d",
			w.end, w.last, w.beyond)
	case w.torn:
		return fmt.Sprintf("it is damaged at byte %d, after commit %d", w.end, w.last)
	}
	return fmt.Sprintf("it ends at byte %d, with commit %d", w.end, w.last)
}
