package store

import (
	"bytes"
	"context"
)

// BlobPrefix begins the keys of references. A reference says that an owner, such as a field of a row, needs a blob. There
// is one key for each digest and owner, and no counter, so that the transactions of two owners do not conflict:
//
//	blob/ <digest, 32 bytes> <owner>
const BlobPrefix = "blob/"

// AppendBlobReference appends the key of a reference; its value is empty. The transaction that writes it must make sure
// that the blob exists: the blob has a pin, or the transaction has read another reference to it.
// In a cluster the commit is proposed when the blob is on the disks of a majority of the voters.
func AppendBlobReference(dst []byte, d Digest, owner ...[]byte) []byte {
	dst = append(append(dst, BlobPrefix...), d[:]...)
	for _, part := range owner {
		dst = append(dst, part...)
	}
	return dst
}

// IsBlobReferenced reports whether a blob has a reference.
func (t *Tx) IsBlobReferenced(d Digest) (bool, error) {
	for _, err := range t.Scan(AppendBlobReference(nil, d), nil, false) {
		return err == nil, err
	}
	return false, nil
}

// referencesBatch is how many references one call of ReferencedBlobs reads.
const referencesBatch = 1000

// ReferencedBlobs returns a batch of the blobs that have references. It begins at the key from; nil: at the first
// reference. The next batch begins at next; nil: this batch is the last one.
func (s *Store) ReferencedBlobs(ctx context.Context, from []byte) (all []Digest, next []byte, err error) {
	err = s.View(ctx, func(tx *Tx) error {
		all, next = nil, nil
		read := 0
		for item, err := range tx.Scan([]byte(BlobPrefix), from, false) {
			if err != nil {
				return err
			}
			d, _, ok := CutBlobReference(item.Key)
			if read++; read > referencesBatch {
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

// FetchReferencedBlobs fetches all blobs that have references and that this node lacks, for a backup. It logs each that
// no node has. The error matches ErrUnavailable if one cannot be fetched.
func (s *Store) FetchReferencedBlobs(ctx context.Context) error {
	if s.blobs.Fetch == nil {
		return nil
	}
	for from := []byte(nil); ; {
		referenced, next, err := s.ReferencedBlobs(ctx, from)
		if err != nil {
			return err
		}
		for _, d := range referenced {
			if _, err := s.StatBlob(d); err != ErrNotFound {
				continue
			}
			switch err := s.FetchBlob(ctx, d); {
			case err == ErrNotFound:
				s.log.Warn("file of a row is missing on all nodes", "sha256", d.String())
			case err != nil:
				return err
			}
		}
		if from = next; next == nil {
			return nil
		}
	}
}

// CutBlobReference splits the key of a reference, without copying it. ok is false if the key is not one.
func CutBlobReference(key []byte) (d Digest, owner []byte, ok bool) {
	rest, ok := bytes.CutPrefix(key, []byte(BlobPrefix))
	if !ok || len(rest) < len(d) {
		return d, nil, false
	}
	return Digest(rest[:len(d)]), rest[len(d):], true
}
