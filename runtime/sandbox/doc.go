// Package sandbox compiles WebAssembly modules and runs their handlers. Each request finds
// a sandbox in the state that the module's initialization left.
//
// An Engine has the compiler, the host's functions and the limits of all guests. A Module
// is one loaded file. Module.Run runs one handler for one request.
//
// Load rewrites a module (internal/wasm), so that it counts fuel, bounds its stack and
// exports its globals. It compiles the module (runtime/compile), and runs its start
// function, _initialize, runner_warm, runner_prepare and runner_random once. The result is kept
// as an image: the memory in a sealed memory file, and the values of the globals. Only the regions
// that runner_random listed differ between requests: they get new random bytes.
//
//	               image (sealed, one for all)
//	                │ private copies
//	┌───────────────┼────────────────┐
//	sandbox         sandbox          sandbox     one goroutine at a time each
//	instance + memory + globals + functions
//
// After a request its sandbox is restored: pages that were written get the image's bytes
// back, memory that grew is released, globals are set. The kernel finds these pages, unless
// the request wrote to no other pages than those before it. This takes some microseconds, far
// less than a new instance, and leaves no byte and no global of one request to the next. A
// module with other state (it writes to tables, drops segments, has globals that are
// vectors or references) gets a new instance for each request.
//
// A module that is loaded as fresh is initialized in each request. Its image is the memory before
// the initialization.
//
// A module with a _start and none of the schema's handlers is a command, which is one
// handler. _start runs in a sandbox that is as it was before it. Its exit ends the run, not
// the sandbox.
//
// A component (internal/component) is linked to one core module first. If it answers requests as
// wasi:http/incoming-handler says, it is one handler too; its imports are those of hostabi/wasi.
//
// A guest that computes for more than a moment queues for a CPU slot (internal/cpuqueue).
// What the host computes for a request counts as the guest's time, and is scheduled and
// ended in the same way: in host functions, whose loops use a cost.Meter, and as Work
// before and after the run.
//
// When a run fails, its native stack is read before the sandbox is restored: it has the active
// calls. They get names and lines (internal/symbols) when the instance slot is free again.
//
// # Invariants
//
//   - A guest always counts fuel. At the end of each slice of fuel the garbage collector and
//     Go's scheduler can stop it, and its deadline is checked. It never runs after that.
//   - A guest has no more memory than its limit, and all guests and images together no more
//     than theirs.
//   - No more guests run at once than there are instance slots. One handler leaves some of
//     them to others, and the wait for one is limited. A guest has a slot for a moment at a
//     time, or together with a CPU slot: while it waits, for a CPU slot or for something else,
//     it parks. A guest that must wait and cannot park ends. Handlers and callers share the number
//     of parked guests, their memory, and the time of CPU slots.
//   - Some memory is reserved for small guests that run.
//   - A sandbox in which the host failed is discarded.
//   - The text of a trap is the cause of a fault, never its detail.
//
// Some optimizations rely on how the compiler and the kernel work inside. Each is tested
// when an Engine is made, and disabled if its test fails.
//
// The package does not decide what a handler may do (hostabi), nor what happens to its
// answer and its writes (runtime).
package sandbox
