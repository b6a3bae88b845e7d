// Package outbound sends the HTTP requests that handlers ask for, and reaches
// only what it may.
//
// # What always holds
//
//   - A request goes to an origin that the app declares, and so does each that
//     follows a redirect; where the origin changes, what could be a credential is
//     left behind.
//   - A name is resolved once for each connection, and the addresses are checked
//     that are dialled: no loopback, private or link-local one, no multicast, no
//     metadata service, no form of IPv6 that carries an IPv4 address. The socket is
//     checked once more before it connects. So what a name means to somebody else,
//     or a moment later, opens nothing.
//   - Environment variables name no proxy: it would be asked to do what is not
//     allowed here.
//   - Headers that frame a message, or speak for the connection, are not the
//     handler's to set.
//   - Time ends with the context, also that of a dial; an answer's head and body
//     are bounded, and memory is taken for what has come of it alone. What is packed
//     is not unpacked.
//   - Neither an origin nor an asker has all connections. They speak HTTP/1.1 and
//     nothing else: with nobody waiting for an answer they cost nothing.
//   - What the other end sends is in no error.
//
// # What never happens here
//
// Nothing is decided about who may ask, and nothing is logged.
//
// # Goroutines and bytes
//
// A Client is for any number of goroutines and keeps connections for all of them;
// Origins and a Request are immutable. A Response belongs to the caller.
package outbound
