// Package front speaks HTTP/1.1 with clients. It decides which status a fault becomes.
// Bytes borrowed from fasthttp do not leave it: callers get bytes of an Exchange, which are
// valid until its end.
//
// fasthttp runs the connections (workers, keep-alive, the head of an answer) and
// never reads a byte of a client. Each connection is wrapped:
//
//	socket ──► conn ──────────► Exchange ──► handle
//	            │ one head, scanned, bounded, parsed once
//	            │ one body, framed by that head alone
//	            └─► fasthttp: "GET / HTTP/1.1", always the same bytes
//
// So there is only one parser of where a message ends, which prevents request smuggling. A
// refused head takes the same way, with its refusal; every answer is made in one place.
//
// Invariants: A connection serves one request at a time, in order. The next head is not
// parsed before the last answer is written. A body that was not read to its end closes the
// connection, unless all of it had arrived and could be skipped. This package makes no
// decision about authority, and logs no byte of a client.
package front
