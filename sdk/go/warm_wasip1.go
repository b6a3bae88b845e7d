//go:build wasip1

package runner

import (
	"runtime"
	"runtime/metrics"

	"runner.example/sdk/go/internal/codec"
)

// prepare runs after the module's initialization and its runner_warm, before the runner takes
// the image of memory that every request begins with. It prepares once what every request
// would otherwise prepare again.
//
//go:wasmexport runner_prepare
func prepare() {
	codec.PrepareAll()
	collect()
	growStack()
	fillCaches()
}

// collect runs a garbage collection if a request might otherwise collect the garbage of the
// initialization. If not, it does nothing, because memory that was never used need not be
// cleared.
func collect() {
	used := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/goal:bytes"}}
	metrics.Read(used)
	if used[0].Value.Uint64() > used[1].Value.Uint64()/2 {
		runtime.GC()
	}
}

// stackBytes is how much stack a handler has before the runtime must copy it.
const stackBytes = 28 << 10

// growStack enlarges the current stack, on which the handlers run. A garbage collection
// shrinks it.
//
//go:noinline
func growStack() {
	var frame [stackBytes]byte
	use(frame[:])
}

//go:noinline
func use([]byte) {}

// smallBytes is the size up to which a handler finds memory of each size class prepared.
const smallBytes = 1 << 10

var (
	filledBytes    []byte
	filledPointers []*byte
)

// fillCaches allocates one object of each small size class, with pointers and without, so that the
// allocator has memory for more of them at hand. A garbage collection takes this memory back.
func fillCaches() {
	for n := 8; n <= smallBytes; n += 8 {
		filledBytes, filledPointers = make([]byte, n), make([]*byte, n/8)
	}
	filledBytes, filledPointers = nil, nil
}
