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
	"path/filepath"

	"github.com/dgraph-io/badger/v4/fb"

	"runner.example/internal/system/disk"
)

// A table of Badger is blocks and an index of them, each with its checksum:
//
//	blocks | index | length of index, 4 | checksum of index | length of checksum, 4
//	block = entries | offsets of entries, 4 each | number of entries, 4 |
//	        checksum of all before | length of checksum, 4
//
// A checksum is CRC-32C in the encoding of protobuf.
const TableExt = ".sst"

// The kinds of damage to a part of a file.
var (
	ErrShort    = errors.New("it is too short")
	ErrChecksum = errors.New("checksum mismatch")
	ErrLayout   = errors.New("the layout is not valid")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Table is an open table whose index was checked. It is for one goroutine.
type Table struct {
	File       *os.File // for reading; Close closes it
	Index      *fb.TableIndex
	RawIndex   []byte // what Index reads
	BlockBytes int64  // of the blocks, which the file begins with
}

// TablePath returns the path of the table with that id in dir.
func TablePath(dir string, id uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%06d%s", id, TableExt))
}

// OpenTable opens a table and checks its index. The caller closes it. If the index is
// damaged the error matches ErrDamaged and names the file.
func OpenTable(path string) (_ *Table, err error) {
	f, err := disk.Open(path, os.O_RDONLY, 0) // Badger may remove it
	if err != nil {
		return nil, err
	}
	t := &Table{File: f}
	if err := t.readIndex(); err != nil {
		return nil, errors.Join(InFile(path, fmt.Errorf("index of the table: %w", err)), f.Close())
	}
	return t, nil
}

// Close closes the file.
func (t *Table) Close() error { return t.File.Close() }

func (t *Table) readIndex() error {
	info, err := t.File.Stat()
	if err != nil {
		return err
	}
	end := info.Size()
	sum, err := t.readBefore(&end)
	if err != nil {
		return err
	}
	index, err := t.readBefore(&end)
	if err != nil {
		return err
	}
	if len(index) == 0 { // zeros at the end of the file: they have a right checksum
		return ErrShort
	}
	if !bytes.Equal(sum, tableChecksum(index)) {
		return ErrChecksum
	}
	t.Index, t.RawIndex, t.BlockBytes = fb.GetRootAsTableIndex(index, 0), index, end
	return nil
}

// readBefore reads what ends at end with its length, and moves end before it.
func (t *Table) readBefore(end *int64) ([]byte, error) {
	var length [4]byte
	if *end < int64(len(length)) {
		return nil, ErrShort
	}
	*end -= int64(len(length))
	if _, err := t.File.ReadAt(length[:], *end); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(length[:]))
	if n > *end {
		return nil, ErrShort
	}
	*end -= n
	b := make([]byte, n)
	_, err := t.File.ReadAt(b, *end)
	return b, err
}

// check reads every block and checks it.
func (t *Table) check() error {
	in := bufio.NewReaderSize(io.NewSectionReader(t.File, 0, t.BlockBytes), 1<<20)
	var buf []byte
	at := int64(0)
	for i := range t.Index.OffsetsLength() {
		var block fb.BlockOffset
		if !t.Index.Offsets(&block, i) || int64(block.Offset()) != at {
			return InFile(t.File.Name(), fmt.Errorf("block %d is not at byte %d", i, at))
		}
		n := int(block.Len())
		if cap(buf) < n {
			buf = make([]byte, n)
		}
		_, err := io.ReadFull(in, buf[:n])
		if err == nil {
			err = checkBlock(buf[:n])
		}
		if err != nil {
			return InFile(t.File.Name(), fmt.Errorf("block %d of %d, at byte %d: %w", i+1, t.Index.OffsetsLength(), at, err))
		}
		at += int64(n)
	}
	if at != t.BlockBytes {
		return InFile(t.File.Name(), fmt.Errorf("bytes %d to %d do not belong to a block", at, t.BlockBytes))
	}
	return nil
}

// checkBlock checks the checksum at the end of a block.
func checkBlock(b []byte) error {
	if len(b) < 4 {
		return ErrShort
	}
	b, length := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if int(length) > len(b) {
		return ErrChecksum
	}
	at := len(b) - int(length)
	if !bytes.Equal(b[at:], tableChecksum(b[:at])) {
		return ErrChecksum
	}
	return nil
}

// tableChecksum returns the checksum of b as it stands in a table.
func tableChecksum(b []byte) []byte {
	sum := crc32.Checksum(b, castagnoli)
	if sum == 0 {
		return nil
	}
	return binary.AppendUvarint([]byte{2 << 3}, uint64(sum)) // field 2
}
