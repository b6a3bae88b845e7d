//go:build wasip1

package runner

import (
	"math/rand/v2"
	"unsafe"
)

// This file is also added to modules without the SDK, whose go.mod may name an early version of Go.

// runnerRandomTable has the regions of memory with the random state of Go's runtime: their number, and
// the address and the length of each.
var runnerRandomTable [1 + 2*2]uint32

// runnerRandomMemory is the memory that is searched. It begins with the runtime's M.
type runnerRandomMemory [1024 + 64]uint64

// runnerRandom returns the table. The runner writes new random bytes to its regions at the start of
// every request, as all memory is otherwise as the initialization left it. A module has one M, and
// the runtime draws everything from two generators in it: a ChaCha8 for math/rand, maps and
// hash/maphash, and a small one for select. Where they are depends on the version of Go, so they are
// found by what they do.
//
//go:wasmexport runner_random
func runnerRandom() unsafe.Pointer {
	m := runnerRandomM()
	chacha, cheap := runnerRandomFindChaCha(m), runnerRandomFindCheap(m)
	if chacha < 0 || cheap < 0 {
		const text = "the random state of Go's runtime is not found: build the module with another version of Go, or with a later version of the runner"
		runnerRandomLog(3, text)
		panic(text)
	}
	// The host need not write values that are drawn already. Few requests draw more than those that are
	// left; then the generator computes others from the seed, which follows the values.
	const left = 8
	for s := (*runnerRandomState)(unsafe.Pointer(&m[chacha])); s.filled != 32 || s.next != 32-left; {
		rand.Uint64()
	}
	address := func(word int) uint32 { return uint32(uintptr(unsafe.Pointer(&m[word]))) }
	runnerRandomTable = [1 + 2*2]uint32{2, address(chacha + 32 - left), 8 * (left + 4), address(cheap), 8}
	return unsafe.Pointer(&runnerRandomTable)
}

// runnerRandomState is that of internal/chacha8rand. With other values and another seed, the rest
// stays valid.
type runnerRandomState struct {
	values       [32]uint64
	seed         [4]uint64
	next, filled uint32
}

// runnerRandomFindChaCha returns the word at which a generator begins whose output is that of
// math/rand/v2; -1: there is none.
func runnerRandomFindChaCha(m *runnerRandomMemory) int {
	const draws = 40 // more than there are values
search:
	for i := 0; i < 1024; i++ {
		s := (*runnerRandomState)(unsafe.Pointer(&m[i]))
		for n := 0; n < draws; n++ {
			drawn := rand.Uint64()
			if s.next == 0 || s.next > s.filled || s.filled > 32 || s.values[s.next-1] != drawn {
				continue search
			}
		}
		return i
	}
	return -1
}

// runnerRandomFindCheap returns the only word that changes when the runtime draws from the small generator;
// -1: there is none.
func runnerRandomFindCheap(m *runnerRandomMemory) int {
	found := -1
	for round := 0; round < 4; round++ {
		before := *m
		runnerRandomCheap()
		for i, word := range before {
			switch {
			case m[i] == word:
			case round == 0 && found < 0:
				found = i
			case i != found:
				return -1
			}
		}
	}
	return found
}

// The two functions of the runtime may be linked to (go.dev/issue/67401).

//go:linkname runnerRandomM runtime.getm
func runnerRandomM() *runnerRandomMemory

//go:linkname runnerRandomCheap runtime.cheaprand
func runnerRandomCheap() uint32

//go:wasmimport runner log
func runnerRandomLog(level uint32, text string)
