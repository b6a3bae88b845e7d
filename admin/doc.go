// Package admin is what operators do to a node: one set of operations, done in
// this process on an open store or asked of the running server over the Unix
// socket in its data folder. Both ways run the same code on the same bytes, so
// their answers do not differ.
//
// What always holds: who may talk to the socket is the server's own user or
// root, checked by the kernel's word for every connection and not by the file's
// mode alone; an operation runs with the authority of the operator, is one
// transaction, and is recorded with the uid that asked. A token leaves in the
// answer of the operation that made it and in no other way.
//
// What never happens here: anything reachable from the network.
package admin
