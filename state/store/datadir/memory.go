package datadir

import (
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"runner.example/internal/clock"
)

// memory keeps blobs in memory.
type memory struct {
	mu   sync.Mutex
	blob map[Digest]memoryBlob
}

type memoryBlob struct {
	data   []byte // is not modified
	stored time.Time
}

func (m *memory) put(_ context.Context, contents []io.Reader, check func(Digest) error) (stored []BlobInfo, err error) {
	for _, r := range contents {
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		info := BlobInfo{sha256.Sum256(data), int64(len(data)), clock.System()}
		if err := check(info.Digest); err != nil {
			return nil, err
		}
		m.set(info, data)
		stored = append(stored, info)
	}
	return stored, nil
}

func (m *memory) set(info BlobInfo, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blob == nil {
		m.blob = make(map[Digest]memoryBlob)
	}
	m.blob[info.Digest] = memoryBlob{data, info.Stored}
}

func (m *memory) open(d Digest) (*Blob, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	blob, ok := m.blob[d]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return openBytes(blob.data), nil
}

func (m *memory) info(d Digest) (BlobInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	blob, ok := m.blob[d]
	if !ok {
		return BlobInfo{}, fs.ErrNotExist
	}
	return BlobInfo{d, int64(len(blob.data)), blob.stored}, nil
}

func (m *memory) list(visit func(Digest) error) error {
	m.mu.Lock()
	all := slices.Collect(maps.Keys(m.blob))
	m.mu.Unlock()
	for _, d := range all {
		if err := visit(d); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) remove(d Digest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.blob[d]; !ok {
		return fs.ErrNotExist
	}
	delete(m.blob, d)
	return nil
}
