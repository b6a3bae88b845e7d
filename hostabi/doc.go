// Package hostabi is everything a guest can ask of the host: the functions of
// the module "runner", the operations of call, and what is left of WASI.
//
// A command has no function for its handler but a _start: BeginProgram gives it
// the request as CGI gives it to a script, EndProgram makes what it wrote the
// answer (RFC 3875).
//
// One Call is the state of one run of a handler: what it was asked, in whose
// name it acts, what it answered, what it may still spend. The guest runs under
// a Guest, a context of its own type that leads to the Call, so a host function finds its
// state without looking it up.
//
// An operation that waits (fetch, sleep) is done by a goroutine of its own, which
// touches neither the Call nor the guest; the guest waits for it without a turn and
// without its time being counted as computing. What a run has started is ended, and
// waited for, when the run ends.
//
// What always holds: a guest can pass any number to any function and gets an
// errno for it, never a panic of the host; nothing is read from or written to
// memory that the guest did not name; guest memory is borrowed for the length
// of one host call and whatever outlives it is copied; authority comes from the
// caller alone, never from an argument; a budget that is spent stays spent.
//
// What never happens here: HTTP (a fault's status is known to front, how requests
// to others are sent to outbound), compiling
// or running modules (sandbox does), deciding about a commit (the corridor
// does, it only learns here whether the handler asked to keep its writes).
package hostabi
