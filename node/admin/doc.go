// Package admin is the protocol for the operators of a node, and its client. operations.go has the table
// of operations. A file for each subject has the arguments and results of its operations, and the methods
// of Client that ask for them. message.go has what all messages share.
//
// A client runs operations in this process on an open store, in the running server over the Unix socket
// in its data directory (Dial), or over the network (DialURL). Package server answers.
package admin
