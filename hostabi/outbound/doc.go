// Package outbound sends HTTP requests for handlers: to the origins that the app
// declares, and to every public host if the app permits it.
//
// # Invariants
//
//   - A request goes to a declared origin, and so does each redirect; or it goes to a public host on the port 80 or 443,
//     and so does each redirect. These two kinds share no connection, and private addresses are never those of a
//     public host. When the origin changes, headers that may hold a credential are removed.
//   - A name is resolved once for each connection, and the addresses are checked before they
//     are dialled: no loopback, private, link-local or multicast address, no metadata
//     service, no IPv6 address with an IPv4 address in it. The socket's address is checked
//     again before it connects. So a name that resolves to another address later opens
//     nothing.
//   - Proxies in environment variables are not used: they could reach other addresses.
//   - Handlers cannot set headers that frame a message or control the connection.
//   - Everything ends with the context, dials included. A response's head and body are
//     limited, and memory is allocated only for bytes that have arrived. Compressed bodies
//     are not decompressed.
//   - Neither an origin, nor a handler, nor a caller of handlers gets all connections. Connections speak only HTTP/1.1,
//     so an idle one costs nothing.
//   - Errors contain nothing that the remote end sent.
//
// The package does not decide which handler may send requests, and does not log.
//
// # Goroutines and bytes
//
// A Client keeps connections for any number of goroutines. Origins and a Request are
// immutable. A Response belongs to the caller.
package outbound
