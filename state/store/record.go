package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"runner.example/state/store/commitlog"
	"runner.example/state/store/datadir"
)

// logKey holds the state of the log, as of each version:
//
//	format, 1 | sequence number, 8 | floor of the window, 8 | revision, 8 |
//	proposer, 8 | batch, 8 | bytes of keys in the window, 4 |
//	digest of the entry, 32 | chain hash, 32
//
// chain hash = SHA-256(chain hash of the entry before | digest of this one),
// and all zero before the first. The digest includes the verdicts. The first format had only
// the sequence number, the floor, the digest without verdicts and the chain hash.
var logKey = []byte{spaceMeta, 'l', 'o', 'g'}

type logRecord struct {
	commitlog.Record
	floor         Seq
	revision      uint64 // the place of the entry in the log of a cluster; 0 in a local one
	digest, chain commitlog.Digest
	first         bool // it has the first format
	// marked: the commit also wrote the mark, as all on disk do except those of versions
	// without a mark. It is the user byte of the key.
	marked bool
}

const metaMarked = 1

const (
	recordFormat   = 2
	recordLen      = 1 + 5*8 + 4 + 2*len(commitlog.Digest{})
	firstRecordLen = 2*8 + 2*len(commitlog.Digest{})
)

func (r *logRecord) encode() []byte {
	b := append(make([]byte, 0, recordLen), recordFormat)
	for _, n := range []uint64{uint64(r.Seq), uint64(r.floor), r.revision, r.Proposer, r.Batch} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = binary.BigEndian.AppendUint32(b, r.Bytes)
	return append(append(b, r.digest[:]...), r.chain[:]...)
}

func (r *logRecord) decode(b []byte) error {
	number := func() (n uint64) {
		n, b = binary.BigEndian.Uint64(b), b[8:]
		return n
	}
	switch {
	case len(b) == firstRecordLen:
		r.first = true
		r.Seq, r.floor = Seq(number()), Seq(number())
	case len(b) == recordLen && b[0] == recordFormat:
		b = b[1:]
		r.Seq, r.floor, r.revision = Seq(number()), Seq(number()), number()
		r.Proposer, r.Batch = number(), number()
		r.Bytes, b = binary.BigEndian.Uint32(b), b[4:]
	case len(b) > 0 && b[0] > recordFormat:
		return fmt.Errorf("%w: its record has format %d, and this version reads up to %d",
			commitlog.ErrFormat, b[0], recordFormat)
	default:
		return errors.New("the record of the log is not valid")
	}
	copy(r.digest[:], b)
	copy(r.chain[:], b[len(r.digest):])
	return nil
}

// meta returns the user byte of the record.
func (r *logRecord) meta() byte {
	if !r.marked {
		return 0
	}
	return metaMarked
}

// newestOf returns the first record, zero in an empty store.
func newestOf(records []logRecord) (newest logRecord) {
	if len(records) > 0 {
		newest = records[0]
	}
	return newest
}

// windowFloor returns the floor of the window after r. Records of the first format do not have
// what restores a window: it begins after them.
func (r *logRecord) windowFloor() Seq {
	if r.first {
		return r.Seq
	}
	return r.floor
}

// position returns the mark of a log that ends with r.
func (r *logRecord) position() datadir.Position {
	return datadir.Position{Seq: uint64(r.Seq), Chain: r.chain}
}
