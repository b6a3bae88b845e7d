//go:build wasip1

package runner

import "runner.example/sdk/go/internal/host"

// Handle runs the handler for the request at hand. It is the body of every
// exported function:
//
//	//go:wasmexport listOrders
//	func exportListOrders() { runner.Handle(listOrders) }
func Handle(handler Handler) { Serve(host.Guest{}, handler) }
