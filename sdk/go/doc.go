// Package runner is the SDK for handlers written in Go.
//
// A handler is a function over a Context and a Request that returns a Response
// made by one of nine helpers:
//
//	func createOrder(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
//		order, err := runner.Body[NewOrder](req)
//		if err != nil {
//			return runner.Response{}, err
//		}
//		if order.Item == "" {
//			return runner.BadRequest("missing field: item"), nil
//		}
//		return runner.Created(order), nil
//	}
//
//	//go:wasmexport createOrder
//	func exportCreateOrder() { runner.Handle(createOrder) }
//
//	func main() {}
//
// and is compiled, in the directory handlers/orders of the app, to a reactor module
// in the app's directory build:
//
//	cd handlers/orders && GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-s -w' -o ../../build/orders.wasm .
//
// Rows are read and changed with the caller's authority, which the schema
// declares and the runner enforces: Query, Get, Insert, Update and Remove. All
// that one request reads and writes is one transaction. It commits when the
// handler answers below 400; when another request got in between, the handler
// runs again, so what it does beside its operations has to bear being done twice.
//
//	func listOrders(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
//		query := runner.Query("Order").OrderBy("createdAt", "desc").Limit(50)
//		if status := req.Query("status"); status != "" {
//			query = query.Where("status", "=", status)
//		}
//		if err := query.All(ctx, nil); err != nil {
//			return runner.Response{}, err
//		}
//		return runner.OK(runner.Rows), nil // from the runner to the caller, as they are
//	}
//
// Other services are reached with Context.Fetch, and several of them at once with
// Context.FetchAll, at the origins that the schema declares with `outbound`: a
// handler has no sockets, so net/http reaches nothing. A handler that has fetched
// is not run again; when another request got in between, the caller gets 409. So
// write first, and fetch last.
//
// Every request runs in a sandbox of its own: package variables hold at the
// start of each what they held when the module was initialised, and nothing
// that a request leaves in them is seen by another. A sandbox is never used by
// two goroutines of the host at once.
//
// Take randomness from crypto/rand: it is new in every request. What Go's runtime
// draws by itself begins each request with the same state, as the rest of memory
// does: the functions of math/rand and math/rand/v2 that need no generator give
// two requests the same sequence, and the seeds of maps and of hash/maphash repeat.
// So nothing that others must not guess may come from them. Where a sequence is
// wanted, seed a generator in the request,
//
//	var seed [32]byte
//	crand.Read(seed[:]) // crypto/rand
//	dice := rand.New(rand.NewChaCha8(seed)) // math/rand/v2
//
// or, where it belongs to a package variable, in an export that the runner calls
// at the start of every request, before the handler:
//
//	//go:wasmexport runner_reseed
//	func exportReseed() { dice = newDice() }
//
// In it, as in runner_warm, the host gives randomness and takes log lines, and no
// more.
package runner
