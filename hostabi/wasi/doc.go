// Package wasi has the host's side of WASI 0.2, of 0.3 and of runner:app: the functions that components import, as host
// modules.
//
// Their types are those of the WIT files, which wasi.wasm and app.wasm have as components:
// tools/wasi-types.sh and tools/app-types.sh make them. Each function gets its arguments as values of package canon, and returns its result as one. A
// result that has strings or lists is written in steps, because only the guest allocates its memory:
// after the function it calls allocate, of the module "component", until all blocks are written.
//
// A run has a table of handles for each component instance in the file. They are empty after the run. A
// handle that is not in the table or of another resource ends the run, and so does dropping a resource
// whose children are there: the pollables of a stream, the stream of a body, the headers of a message.
//
// The module "component" also has what generated code needs for calls between component instances, and
// for resources that the component defines. A handle that is passed on leaves one table for another. One
// that is borrowed gets another number, for a call, and cannot be dropped by its owner as long.
//
// Requests and answers are whole. The body of an incoming request or response is there when the guest
// gets it. An outgoing request is sent when its body is finished, beside the guest. The answer is
// made by end_http, from what response-outparam.set got, or by end_request, from what task.return got. Trailers
// are not sent, as RFC 9110, section 6.5.1, permits, and none arrive.
//
// Waiting is the host's: pollables of clocks, and of requests to other services, block the call in
// which the guest waits. A wait for something that cannot happen ends the run. In WASI 0.3 a run is one task,
// which waits for events of sets: task.go has its built-ins, and pipe.go streams and futures. What the host reads
// of a stream it takes at once. It writes to the guest's buffer when the guest asks for the result.
//
// Fields are kept as they are; what only the host sets, such as Content-Length and Date, is skipped when
// the message is sent. Files are those of the module, and can only be read. Sockets are refused.
//
// A function that passes text, lists or new handles counts as a host call. What it copies counts as moved
// bytes. The functions of runner:app run those of the module "runner", which count and check by themselves.
//
// A handler of runner:app is a function of the component: begin_handler writes its request, and end_handler
// makes the answer of its result.
package wasi
