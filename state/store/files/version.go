package files

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Version is one version of a key of Badger.
type Version struct {
	Key      []byte
	Seq      uint64 // the commit that wrote it
	Deleted  bool
	UserMeta byte
	Value    []byte
}

// deleted is the bit of meta of a version that deletes its key.
const deleted = 1

// meta returns Badger's meta byte.
func (v *Version) meta() byte {
	if v.Deleted {
		return deleted
	}
	return 0
}

// maxKeyBytes is the limit of Badger.
const maxKeyBytes = 65_000

// Append appends v to a list of versions. In a list, a version is
//
//	meta, 1 | user byte, 1 | commit, uvarint | length, uvarint | key | length, uvarint | value
func (v *Version) Append(list []byte) []byte {
	list = append(list, v.meta(), v.UserMeta)
	list = binary.AppendUvarint(list, v.Seq)
	list = append(binary.AppendUvarint(list, uint64(len(v.Key))), v.Key...)
	return append(binary.AppendUvarint(list, uint64(len(v.Value))), v.Value...)
}

// EachVersion calls do with each version in a list, which is valid until do returns. The
// error is that of do, or ErrLayout.
func EachVersion(list []byte, do func(*Version) error) error {
	var v Version
	for len(list) > 0 {
		if len(list) < 2 || list[0]&^deleted != 0 {
			return ErrLayout
		}
		v.Deleted, v.UserMeta = list[0] == deleted, list[1]
		seq, size := binary.Uvarint(list[2:])
		if size <= 0 {
			return ErrLayout
		}
		v.Seq, list = seq, list[2+size:]
		v.Key, list = cutBytes(list)
		v.Value, list = cutBytes(list)
		if list == nil || len(v.Key) == 0 || len(v.Key) > maxKeyBytes {
			return ErrLayout
		}
		if err := do(&v); err != nil {
			return err
		}
	}
	return nil
}

// Order checks that versions come in the order of a table: keys ascend, and the versions of a
// key descend. It is for one goroutine.
type Order struct {
	key []byte // of the version before
	seq uint64
}

// ErrOrder means that a version does not come after the one before.
var ErrOrder = errors.New("the keys are not in order")

// Next checks the next version, and reports whether it is one of the same key as the version
// before.
func (o *Order) Next(v *Version) (same bool, err error) {
	after := bytes.Compare(v.Key, o.key)
	if after < 0 || after == 0 && v.Seq >= o.seq {
		return false, ErrOrder
	}
	if after > 0 {
		o.key = append(o.key[:0], v.Key...)
	}
	o.seq = v.Seq
	return after == 0, nil
}

// cutBytes returns the bytes whose length is before them, and what is after them; nil if the
// length is not valid.
func cutBytes(list []byte) (b, after []byte) {
	n, size := binary.Uvarint(list)
	if size <= 0 || n > uint64(len(list)-size) {
		return nil, nil
	}
	end := size + int(n)
	return list[size:end:end], list[end:]
}
