// Package hostabi has everything that a guest can ask of the host: the functions of the
// module "runner", the operations of call, and a part of WASI.
//
// A command has no function per handler but a _start. BeginProgram passes it the request
// as CGI does, and EndProgram makes its output the answer (RFC 3875).
//
// One Call is the state of one run of a handler: its Input, its Response, its budget and
// its operations. The guest runs under a Guest, a context in which a host function finds
// the Call without a lookup.
//
// An operation that waits (fetch, sleep) runs in its own goroutine, which touches neither
// the Call nor the guest. While the guest waits for it, the guest has no CPU slot, and the
// time does not count as CPU time. At the end of a run its pending operations are
// cancelled and waited for.
//
// Invariants: any number that a guest passes to a function yields a result or an errno,
// never a panic of the host. Only memory that the guest named is read or written. Guest
// memory is borrowed for one host call; what outlives the call is copied. Authority comes
// only from the caller, never from an argument. A budget that is spent stays spent.
//
// This package does not know HTTP (front maps faults to statuses, outbound sends
// requests), does not compile or run modules (sandbox does), and does not commit (runtime
// does, and asks KeepsWrites).
package hostabi
