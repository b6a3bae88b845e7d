package store

// References say which keys name a blob: those of the owners that need its bytes, such as a field of a row. There is
// one key per digest and owner, and no counter, so that two owners of one blob do not conflict:
//
//	blob/ <digest, 32 bytes> <owner>
const blobPrefix = "blob/"

// AppendBlobReference appends the key which says that an owner has a blob. The transaction that writes it must name a
// blob that is there: one with a pin, or one that another key names which the transaction has read. Its value is empty.
func AppendBlobReference(dst []byte, d Digest, owner ...[]byte) []byte {
	dst = append(append(dst, blobPrefix...), d[:]...)
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

// BlobReferences calls visit with the owner of each reference to each blob, in the order of digests. The owner is valid
// until visit returns.
func (t *Tx) BlobReferences(visit func(d Digest, owner []byte) error) error {
	for item, err := range t.Scan([]byte(blobPrefix), nil, false) {
		if err != nil {
			return err
		}
		rest := item.Key[len(blobPrefix):]
		if len(rest) < len(Digest{}) {
			continue
		}
		if err := visit(Digest(rest[:len(Digest{})]), rest[len(Digest{}):]); err != nil {
			return err
		}
	}
	return nil
}
