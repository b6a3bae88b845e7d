package admin

import (
	"crypto/sha256"
	"encoding/binary"

	"runner.example/internal/fault"
	"runner.example/state/store"
)

// A batch is many small blobs in one upload, PUT BatchPath:
//
//	┌─────────┬─────────────────────────┬───────┐
//	│ 32      │ 8                       │ size  │
//	│ SHA-256 │ size, bytes, big endian │ bytes │   for each blob
//	└─────────┴─────────────────────────┴───────┘
const (
	// MaxBatchBytes limits the body of an upload of a batch. A client sends a blob alone if it is larger than
	// MaxBatchedBytes.
	MaxBatchBytes   = 8 << 20
	MaxBatchedBytes = 1 << 20
	batchHead       = sha256.Size + 8
)

// Batch collects blobs for an upload. The zero value is empty.
type Batch struct{ body []byte }

// Add adds a blob, unless the batch would become too large.
func (b *Batch) Add(data []byte) bool {
	if len(b.body)+batchHead+len(data) > MaxBatchBytes {
		return false
	}
	digest := sha256.Sum256(data)
	b.body = append(b.body, digest[:]...)
	b.body = binary.BigEndian.AppendUint64(b.body, uint64(len(data)))
	b.body = append(b.body, data...)
	return true
}

// Empty reports whether no blob was added.
func (b *Batch) Empty() bool { return len(b.body) == 0 }

// ReadBatch returns the blobs of an upload, which are parts of body. The error is a fault with the code Invalid if it is
// cut, or if bytes do not have their digest.
func ReadBatch(body []byte) (blobs [][]byte, err error) {
	for len(body) > 0 {
		if len(body) < batchHead {
			return nil, fault.New(fault.Invalid, "the upload is cut after %d files", len(blobs))
		}
		want, size := store.Digest(body[:sha256.Size]), binary.BigEndian.Uint64(body[sha256.Size:batchHead])
		if body = body[batchHead:]; size > uint64(len(body)) {
			return nil, fault.New(fault.Invalid, "the upload is cut after %d files", len(blobs))
		}
		data := body[:size:size]
		if got := store.Digest(sha256.Sum256(data)); got != want {
			return nil, fault.New(fault.Invalid, "the bytes have the SHA-256 %v, not %v: they were changed on the way", got, want)
		}
		blobs, body = append(blobs, data), body[size:]
	}
	return blobs, nil
}
