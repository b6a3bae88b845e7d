// Package server runs the operations of package admin on a node. An operation runs in this process on an
// open store, or in the running server over the Unix socket in its data directory, or over the network.
// All run the same code, so their answers do not differ.
//
// Local is the node; a file for each subject has its operations. An operation has the authority of an
// operator, is one transaction unless its method says otherwise, and is recorded with the operator. A
// token is only in the answer of the operation that created it.
//
// SocketServer is the socket. Only the server's own user and root may use it. The kernel reports the
// peer's uid of each connection; the mode of the file is a second check. The uid is the operator.
//
// RemoteServer is the network: HTTP/1.1 over TLS 1.3, on an address of its own, if an operator has set
// one. Each request needs a platform key with the role of its operation, is limited in size, time and
// number, and is recorded with the id of the key and the client's address. No other credential is looked
// at.
package server
