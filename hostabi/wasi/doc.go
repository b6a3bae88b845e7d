// Package wasi has the host's side of WASI 0.2, of 0.3 and of runner:app: the functions that components import, as host
// modules.
//
// Their types are those of the WIT files. The components wasi.wasm and app.wasm have them, which
// tools/wasi-types.sh and tools/app-types.sh make. Each function gets its arguments as values of package
// canon, and returns its result as one. A result with strings or lists is written in steps, because only
// the guest can allocate its memory: after the function, generated code calls allocate, of the module
// "component", until all blocks are written.
//
// A run has a table of handles for each component instance in the file. All are empty after the run. Using
// a handle that is not in the table, or is of another resource, ends the run. So does dropping a resource
// that still has children: the pollables of a stream, the stream of a body, the headers of a message.
//
// The module "component" also has the functions that generated code needs for calls between component
// instances, and for resources that the component defines. A handle that is passed on moves from one table
// to another. A borrowed handle gets a number of its own for the time of the call. Until the call ends, the
// owner cannot drop its handle.
//
// Requests are not streamed. The body of an incoming request or response is complete when the guest gets
// it. An outgoing request is sent when its body is complete, while the guest continues. end_http makes the
// answer from what response-outparam.set got, or end_request from what task.return got. Trailers are not
// sent, as RFC 9110, section 6.5.1, permits, and none arrive.
//
// On a route with stream: response-outparam.set and task.return begin the answer, unless its body is
// complete. Then what the guest writes to the body is sent at once. If the kernel does not take it at once,
// the write waits, also one that should not block.
//
// The guest waits in calls of the host: pollables of clocks, and of requests to other services, block the
// call. A wait for something that cannot happen ends the run. In WASI 0.3 a run is one task, which waits for
// events of sets. task.go has its built-ins, and pipe.go has streams and futures. What the guest writes to a
// stream that the host reads is taken at once. What the host writes to a stream is copied to the guest's
// buffer when the guest asks for the result.
//
// Fields are kept unchanged. Those that only the host sets, such as Content-Length and Date, are skipped
// when the message is sent. Files are those of the module, and can only be read. Sockets are refused.
//
// A function that passes text, lists or new handles counts as a host call. What it copies counts as moved
// bytes. The functions of runner:app run those of the module "runner", which count and check themselves.
//
// A handler of runner:app is a function of the component: begin_handler writes its request, and end_handler
// makes the answer from its result.
package wasi
