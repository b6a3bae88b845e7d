// Package sandbox compiles WebAssembly modules and runs their handlers, each
// request in a sandbox that nobody used before.
//
// An Engine holds the compiler, the host's functions and the places in which
// guests run; a Module is one compiled file; Module.Run is one handler for one
// request. What stands behind Run is nobody's business but this room's: a
// sandbox is lent, brought back to the module's image after the run, and kept
// for the next one; where that cannot be, it is thrown away.
//
// What always holds: a guest gets memory that is zero but for what its own
// module puts there, and no more of it than the limit; it never runs after its
// time; its memory is given back when nothing of it runs any more, however the
// run ended; no more guests run at once than there are places, and waiting for
// one has an end. What a trap says is the cause of a fault, never its detail.
//
// What never happens here: deciding what a handler may do (hostabi), or what
// becomes of its answer and its writes (the corridor).
package sandbox
