package datadir

import "io"

// usage counts the bytes that one call of PutPinned reads, until the blob itself is counted or is discarded.
type usage struct {
	blobs *Blobs
	bytes int64
}

// end takes the bytes out of the count. It may be called again.
func (u *usage) end() {
	u.blobs.used.Add(-u.bytes)
	u.bytes = 0
}

// reader returns a reader of r that fails with ErrLimit when all blobs would have too many bytes.
func (u *usage) reader(r io.Reader) io.Reader { return &usageReader{r, u} }

type usageReader struct {
	r     io.Reader
	usage *usage
}

func (r *usageReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.usage.bytes += int64(n)
	if r.usage.blobs.used.Add(int64(n)) > r.usage.blobs.Limit {
		return 0, ErrLimit
	}
	return n, err
}

// countStored adds the sizes of pinned blobs that are new.
func (b *Blobs) countStored(all []BlobInfo) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, info := range all {
		if p := b.pins[info.Digest]; b.Limit > 0 && !p.counted {
			p.counted = true
			b.used.Add(info.Size)
		}
	}
}
