package runner

import "runner.example/sdk/go/internal/host"

// Warm runs a handler before there are requests, once for each body given or
// once with none, and drops what it answers. Called from the export
// runner_warm it runs before the runner takes the image of memory that every
// request begins with:
//
//	//go:wasmexport runner_warm
//	func exportWarm() {
//		runner.Warm(listOrders)
//		runner.Warm(createOrder, `{"item":"tea"}`)
//	}
//
// Most handlers do not need it: the SDK prepares the JSON of the module's types, the stack and
// the memory by itself. It helps if a first run prepares something else, such
// as a regular expression that is compiled when it is first used.
//
// The request is empty but for the body, and services answer unavailable. A
// handler that would keep something of it in a package variable, such as a
// random number to be used by later requests, is not to be warmed.
func Warm(handler Handler, bodies ...string) {
	if len(bodies) == 0 {
		bodies = []string{""}
	}
	for _, body := range bodies {
		Serve(host.Blank{Given: body}, handler)
	}
}
