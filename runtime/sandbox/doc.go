// Package sandbox compiles WebAssembly modules and runs their handlers, each
// request in a sandbox that is as the module's initialization left it.
//
// An Engine holds the compiler, the host's functions and the places in which
// guests run; a Module is one compiled file; Module.Run is one handler for one
// request.
//
// Loading a module rewrites it (internal/wasm), so that it counts its fuel and
// its stack and lets its globals be seen, compiles it, and runs its start
// function, _initialize and runner_warm once. Its data and its names are taken out
// before: modules that differ in those alone, as those of one engine for scripts
// do, are compiled once, and share the code. What they leave is kept: the
// memory as an image, a sealed file in memory, and the values of the globals.
//
//	               image (sealed, one for all)
//	                │ private copies
//	┌───────────────┼────────────────┐
//	sandbox         sandbox          sandbox     one goroutine at a time each
//	instance + memory + globals + functions
//
// After a request its sandbox is restored: pages that are no longer the image's
// get its bytes back, memory that grew is taken back, globals are set. That costs
// some microseconds, where a new instance costs far more, and leaves no byte and
// no global of one request to the next. A module that those two do not tell
// everything about (it writes to tables, drops segments, has globals that are
// vectors or references) gets a new instance for each request.
//
// A module with a _start and none of the schema's handlers is a command, one
// handler: _start runs in a sandbox that is as it was before it, and its exit ends
// the run and not the sandbox.
//
// A guest that computes for more than a moment goes on in turns, of which there
// are fewer than processors. Handlers share them evenly; a handler's runs have
// them one after the other, and one that cannot be done in time is refused. What the
// host computes for a request counts as the guest's time, and is scheduled and ended as
// the guest is: in host functions, whose loops use a cost.Meter, and as Work before and
// after the run.
//
// What always holds: a guest never runs uncounted, so at the end of a slice of
// fuel the collector, the scheduler and its deadline get at it; it never runs
// after that; it has no more memory than its limit, and all guests and images together
// no more than theirs; no more guests run at once than there are places, of which
// one handler leaves some to others, and waiting for one has an end; a guest that
// waits for something else leaves its place meanwhile, as long as not too many do; a
// sandbox in which the host failed is thrown away. What a trap says is the cause of a fault,
// never its detail.
//
// Some of this rests on how the compiler and the kernel work inside. Each such
// trick is proved when an Engine is made, and done without when the proof fails.
//
// What never happens here: deciding what a handler may do (hostabi), or what
// becomes of its answer and its writes (the corridor).
package sandbox
