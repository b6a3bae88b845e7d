// Package front is the door to the network: HTTP/1.1 in, HTTP/1.1 out. It
// knows which status a fault becomes, and it is where borrowed bytes end: what
// leaves it belongs to an Exchange and dies with it.
//
// fasthttp runs the connections here (workers, deadlines, keep-alive, the head
// of an answer) and never sees a byte of a caller. Each connection is wrapped:
//
//	socket ──► conn ──────────► Exchange ──► handle
//	            │ one head, scanned, bounded, parsed once
//	            │ one body, framed by that head alone
//	            └─► fasthttp: "GET / HTTP/1.1", always the same bytes
//
// So there is one parser and no second opinion about where a message ends,
// which is what request smuggling lives from. A head that is refused is handed
// on in the same way, with the refusal; every answer is made in one place.
//
// What always holds: a connection serves one request at a time, in order; the
// next head is not looked at before the last answer is written; a body that
// was not read to its end closes the connection, unless all of it was already
// here and could be skipped. Nothing here decides who may do what, and nothing
// here logs a byte that came from a caller.
package front
