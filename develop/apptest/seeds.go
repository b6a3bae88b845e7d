package apptest

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// seeds are the seeds of the runs of handlers in one test, in the order in which the runs begin to draw. Any goroutine may
// use them.
type seeds struct {
	mu     sync.Mutex
	source *rand.ChaCha8
}

// newSeeds returns seeds that follow from that of the run of tests and a name.
func newSeeds(seed uint64, name string) *seeds {
	return &seeds{source: rand.NewChaCha8(sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), name...)))}
}

func (s *seeds) next() (seed [32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.source.Read(seed[:]) // it returns no error
	return seed
}
