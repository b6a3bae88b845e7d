// Package admin runs the operations of operators on a node. An operation runs in this
// process on an open store, or in the running server over the Unix socket in its data
// directory. Both run the same code, so their answers do not differ.
//
// Only the server's own user and root may use the socket. The kernel reports the peer's uid
// of each connection; the mode of the file is a second check. An operation has the
// authority of an operator, is one transaction, and is recorded with the uid. A token is
// only in the answer of the operation that created it.
//
// Nothing here is reachable from the network.
package admin
