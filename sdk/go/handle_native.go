//go:build !wasip1

package runner

// Handle runs the handler for the request at hand. It is the body of every
// exported function:
//
//	//go:wasmexport listOrders
//	func exportListOrders() { runner.Handle(listOrders) }
//
// Outside of the runner there is no request: native tests call the
// handler through package runnertest.
func Handle(Handler) {
	panic("runner: Handle works inside the runner only; test handlers with package runnertest")
}
