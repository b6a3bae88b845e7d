// Package runnerhttp sends the requests of net/http with Fetch of the runner, because
// a handler has no sockets. It is a package of its own because net/http makes a
// module larger by some MiB.
//
//	import _ "runner.example/sdk/go/runnerhttp"
//
// With this import http.Get, http.DefaultClient and all packages that use
// http.DefaultTransport work. A package that makes its own transport takes a client:
//
//	resty.NewWithClient(runnerhttp.Client())
//
// The schema declares the origins with `outbound`. Bodies are sent and received whole,
// and requests of several goroutines are sent one after the other: use
// runner.Context.FetchAll for several at once. An error of the runner is a
// *runner.HostError.
//
// Outside of a handler, in unit tests, requests go through http.DefaultTransport as
// usual, so that a server of net/http/httptest can answer them.
package runnerhttp

import (
	"net/http"
)

// Client returns a new client whose requests the runner sends. The caller may change it.
func Client() *http.Client { return &http.Client{Transport: Transport()} }
