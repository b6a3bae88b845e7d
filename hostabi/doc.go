// Package hostabi is everything a guest can ask of the host: the functions of
// the module "runner", the operations of call, and what is left of WASI.
//
// One Call is the state of one run of a handler: what it was asked, in whose
// name it acts, what it answered, what it may still spend. The guest runs under
// a Guest, a context of its own type that leads to the Call, so a host function finds its
// state without looking it up.
//
// What always holds: a guest can pass any number to any function and gets an
// errno for it, never a panic of the host; nothing is read from or written to
// memory that the guest did not name; guest memory is borrowed for the length
// of one host call and whatever outlives it is copied; authority comes from the
// caller alone, never from an argument; a budget that is spent stays spent.
//
// What never happens here: HTTP (a fault's status is known to front), compiling
// or running modules (sandbox does), deciding about a commit (the corridor
// does, it only learns here whether the handler asked to keep its writes).
package hostabi
