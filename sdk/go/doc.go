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
// handler has no sockets, so net/http reaches them with package runnerhttp alone. A handler that has fetched
// is not run again; when another request got in between, the caller gets 409. So
// write first, and fetch last.
//
// Every request runs in a sandbox of its own: package variables hold at the
// start of each what they held when the module was initialized, and nothing
// that a request leaves in them is seen by another. A sandbox is never used by
// two goroutines of the host at once.
//
// Randomness is new in every request: crypto/rand, the functions of math/rand and
// math/rand/v2 that need no generator, the order of maps, the seeds of
// hash/maphash, and the choices of select. The runner renews the state of Go's
// runtime before each request. With a version of Go in which that state is not
// found, the module is refused at startup. Nothing that others must not guess may
// come from math/rand all the same.
//
// What was drawn during the initialization and kept in a package variable, such as
// a generator or a prefix of ids, is the same in every request. Draw it in the
// request, or in an export that the runner calls at the start of every request,
// before the handler:
//
//	//go:wasmexport runner_reseed
//	func exportReseed() { dice = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }
//
// In it, as in runner_warm, the host gives randomness and takes log lines, and no
// more.
package runner
