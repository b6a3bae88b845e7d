package store

import "bytes"

// BlobPrefix begins the keys of references. References say which keys name a blob: those of the owners that need its bytes, such as a field of a row. There is
// one key per digest and owner, and no counter, so that two owners of one blob do not conflict:
//
//	blob/ <digest, 32 bytes> <owner>
const BlobPrefix = "blob/"

// AppendBlobReference appends the key which says that an owner has a blob. The transaction that writes it must name a
// blob that is there: one with a pin, or one that another key names which the transaction has read. Its value is empty.
// In a cluster the commit is proposed when the blob is on the disks of a majority of the voters.
func AppendBlobReference(dst []byte, d Digest, owner ...[]byte) []byte {
	dst = append(append(dst, BlobPrefix...), d[:]...)
	for _, part := range owner {
		dst = append(dst, part...)
	}
	return dst
}

// NamesBlob reports whether a reference names a blob.
func (t *Tx) NamesBlob(d Digest) (bool, error) {
	for _, err := range t.Scan(AppendBlobReference(nil, d), nil, false) {
		return err == nil, err
	}
	return false, nil
}

// CutBlobReference returns the parts of a reference, which are parts of key; ok is false if it is not one.
func CutBlobReference(key []byte) (d Digest, owner []byte, ok bool) {
	rest, ok := bytes.CutPrefix(key, []byte(BlobPrefix))
	if !ok || len(rest) < len(d) {
		return d, nil, false
	}
	return Digest(rest[:len(d)]), rest[len(d):], true
}
