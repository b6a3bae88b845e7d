package store

import (
	"bytes"
	"context"
)

// BlobPrefix begins the keys of references. A reference says that an owner, such as a field of a row, needs the bytes of a
// blob. There is one key per digest and owner, and no counter, so that two owners of one blob do not conflict:
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

// namedAtOnce is how many references BlobsNamed reads.
const namedAtOnce = 1000

// BlobsNamed returns the blobs that references name, each once, from the key of a reference on; nil: from the first one.
// next is the key of the next call; nil: there are no more.
func (s *Store) BlobsNamed(ctx context.Context, from []byte) (all []Digest, next []byte, err error) {
	err = s.View(ctx, func(tx *Tx) error {
		all, next = nil, nil
		read := 0
		for item, err := range tx.Scan([]byte(BlobPrefix), from, false) {
			if err != nil {
				return err
			}
			d, _, ok := CutBlobReference(item.Key)
			if read++; read > namedAtOnce {
				next = bytes.Clone(item.Key)
				return nil
			}
			if ok && (len(all) == 0 || all[len(all)-1] != d) {
				all = append(all, d)
			}
		}
		return nil
	})
	return all, next, err
}

// FetchNamed stores the blobs that references name, this node lacks and another one has: a backup has them then. One
// that no node has is logged. The error matches ErrUnavailable if one of them cannot be fetched.
func (s *Store) FetchNamed(ctx context.Context) error {
	if s.blobs.Fetch == nil {
		return nil
	}
	for from := []byte(nil); ; {
		named, next, err := s.BlobsNamed(ctx, from)
		if err != nil {
			return err
		}
		for _, d := range named {
			if _, err := s.HasBlob(d); err != ErrNotFound {
				continue
			}
			switch err := s.FetchBlob(ctx, d); {
			case err == ErrNotFound:
				s.log.Warn("file of a row is on no node", "sha256", d.String())
			case err != nil:
				return err
			}
		}
		if from = next; next == nil {
			return nil
		}
	}
}

// CutBlobReference returns the parts of a reference, which are parts of key; ok is false if it is not one.
func CutBlobReference(key []byte) (d Digest, owner []byte, ok bool) {
	rest, ok := bytes.CutPrefix(key, []byte(BlobPrefix))
	if !ok || len(rest) < len(d) {
		return d, nil, false
	}
	return Digest(rest[:len(d)]), rest[len(d):], true
}
