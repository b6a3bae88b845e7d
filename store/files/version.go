package files

import "encoding/binary"

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
	r := listReader{list}
	var v Version
	for len(r.left) > 0 {
		meta, user := r.bytes(1), r.bytes(1)
		v = Version{Seq: r.number(), Key: r.bytes(r.number()), Value: r.bytes(r.number())}
		if r.left == nil || meta[0]&^deleted != 0 || len(v.Key) == 0 || len(v.Key) > maxKeyBytes {
			return ErrLayout
		}
		v.Deleted, v.UserMeta = meta[0] == deleted, user[0]
		if err := do(&v); err != nil {
			return err
		}
	}
	return nil
}

// listReader reads a list. After an error left is nil, and what it returns has no meaning.
type listReader struct{ left []byte }

func (r *listReader) bytes(n uint64) []byte {
	if uint64(len(r.left)) < n {
		r.left = nil
	}
	if r.left == nil {
		return nil
	}
	b := r.left[:n:n]
	r.left = r.left[n:]
	return b
}

func (r *listReader) number() uint64 {
	n, size := binary.Uvarint(r.left)
	r.bytes(uint64(max(size, 0)))
	if size <= 0 {
		r.left = nil
	}
	return n
}
