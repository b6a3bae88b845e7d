// Package socket is what differs between systems in TCP connections and pipes: the numbers of errors, how bytes are
// read and written, and what the peer has acknowledged.
//
// Linux has the fast ways; elsewhere net does the work. All functions may be called by all goroutines, except where one
// says otherwise.
package socket
