package sandbox

import (
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi/recording"
)

// Limits of the table of runner_random. Every request pays for its bytes.
const (
	maxRandomRegions = 64
	maxRandomBytes   = 4096
)

// random is the random state in the memory of one sandbox, such as the state of a generator. The image
// has it as the initialization left it, so without new bytes every request would draw the same values.
type random struct {
	// regions lie within the memory as it was when runner_random returned. A memory never becomes
	// smaller.
	regions []region
	// source is seeded for each sandbox from the operating system. ChaCha8 is a cryptographically
	// strong generator: a guest that knows its own bytes cannot compute those of other requests. It
	// belongs to the sandbox, so requests share no lock; it is not in the guest's memory, so a
	// restore does not repeat it. It is nil without regions.
	source *rand.ChaCha8
}

// region is a part of a memory, from an offset to another.
type region struct{ from, to uint64 }

// newRandom makes the random state of a sandbox.
func newRandom(regions []region) random {
	if len(regions) == 0 {
		return random{}
	}
	var seed [32]byte
	crand.Read(seed[:])
	return random{regions, rand.NewChaCha8(seed)}
}

// renewRandom writes new random bytes to the regions. It is called when a request begins, before any
// code of the guest runs.
func (s *sandbox) renewRandom(draws *recording.Draws) {
	for _, r := range s.random.regions {
		if draws != nil {
			draws.Random(s.memory.Bytes()[r.from:r.to])
			continue
		}
		_, _ = s.random.source.Read(s.memory.Bytes()[r.from:r.to]) // it returns no error
	}
}

// findRandom calls runner_random and reads the table whose address it returns:
//
//	u32 n, then n times: u32 address, u32 length
func (s *sandbox) findRandom() error {
	var stack [1]uint64
	if err := s.invoke(s.function(exportRandom), stack[:]...); err != nil {
		return err
	}
	regions, err := readRegions(s.memory.Bytes()[:s.memory.Size()], api.DecodeU32(stack[0]))
	if err != nil {
		return err
	}
	s.random = newRandom(regions)
	return nil
}

// readRegions reads and checks the table at an address. Empty regions are left out.
func readRegions(memory []byte, at uint32) (regions []region, err error) {
	size := uint64(len(memory))
	table := uint64(at)
	if table+4 > size {
		return nil, fmt.Errorf("its table at %d lies outside of memory, which has %d bytes", table, size)
	}
	n := binary.LittleEndian.Uint32(memory[table:])
	if n > maxRandomRegions {
		return nil, fmt.Errorf("its table has %d regions, and the limit is %d", n, maxRandomRegions)
	}
	if table+4+8*uint64(n) > size {
		return nil, fmt.Errorf("its table of %d regions at %d lies outside of memory, which has %d bytes", n, table, size)
	}
	sum := uint64(0)
	for i := range uint64(n) {
		entry := memory[table+4+8*i:]
		from, length := uint64(binary.LittleEndian.Uint32(entry)), uint64(binary.LittleEndian.Uint32(entry[4:]))
		if length == 0 {
			continue
		}
		r := region{from, from + length}
		if r.to > size {
			return nil, fmt.Errorf("region %d of its table, %d bytes at %d, lies outside of memory, which has %d bytes",
				i+1, length, from, size)
		}
		if slices.ContainsFunc(regions, func(o region) bool { return r.from < o.to && o.from < r.to }) {
			return nil, fmt.Errorf("region %d of its table, %d bytes at %d, overlaps another one", i+1, length, from)
		}
		if sum += length; sum > maxRandomBytes {
			return nil, fmt.Errorf("the regions of its table have more than %d bytes", maxRandomBytes)
		}
		regions = append(regions, r)
	}
	return regions, nil
}
