package store

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/dgraph-io/badger/v4/fb"
)

// A table of Badger is blocks and an index of them, each with its checksum:
//
//	blocks | index | length of index, 4 | checksum of index | length of checksum, 4
//	block = entries | offsets of entries, 4 each | number of entries, 4 |
//	        checksum of all before | length of checksum, 4
//
// A checksum is CRC-32C in the encoding of protobuf.
const tableExt = ".sst"

var (
	errShort    = errors.New("it is too short")
	errChecksum = errors.New("checksum mismatch")
)

// sst is an open table, for checking it.
type sst struct {
	file   *os.File
	index  *fb.TableIndex
	raw    []byte // of the index
	blocks int64  // bytes
}

// openTable opens a table and checks its index.
func openTable(path string) (_ *sst, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	t := &sst{file: f}
	if err := t.readIndex(); err != nil {
		return nil, errors.Join(inFile(path, fmt.Errorf("index of the table: %w", err)), f.Close())
	}
	return t, nil
}

func (t *sst) close() error { return t.file.Close() }

func (t *sst) readIndex() error {
	info, err := t.file.Stat()
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
		return errShort
	}
	if !bytes.Equal(sum, tableChecksum(index)) {
		return errChecksum
	}
	t.index, t.raw, t.blocks = fb.GetRootAsTableIndex(index, 0), index, end
	return nil
}

// readBefore reads what ends at end with its length, and moves end before it.
func (t *sst) readBefore(end *int64) ([]byte, error) {
	var length [4]byte
	if *end < int64(len(length)) {
		return nil, errShort
	}
	*end -= int64(len(length))
	if _, err := t.file.ReadAt(length[:], *end); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(length[:]))
	if n > *end {
		return nil, errShort
	}
	*end -= n
	b := make([]byte, n)
	_, err := t.file.ReadAt(b, *end)
	return b, err
}

// check reads every block and checks it.
func (t *sst) check() error {
	in := bufio.NewReaderSize(io.NewSectionReader(t.file, 0, t.blocks), 1<<20)
	var buf []byte
	at := int64(0)
	for i := range t.index.OffsetsLength() {
		var block fb.BlockOffset
		if !t.index.Offsets(&block, i) || int64(block.Offset()) != at {
			return inFile(t.file.Name(), fmt.Errorf("block %d is not at byte %d", i, at))
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
			return inFile(t.file.Name(), fmt.Errorf("block %d of %d, at byte %d: %w", i+1, t.index.OffsetsLength(), at, err))
		}
		at += int64(n)
	}
	if at != t.blocks {
		return inFile(t.file.Name(), fmt.Errorf("bytes %d to %d are in no block", at, t.blocks))
	}
	return nil
}

func checkBlock(b []byte) error {
	if len(b) < 4 {
		return errShort
	}
	b, length := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if int(length) > len(b) {
		return errChecksum
	}
	at := len(b) - int(length)
	if !bytes.Equal(b[at:], tableChecksum(b[:at])) {
		return errChecksum
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
