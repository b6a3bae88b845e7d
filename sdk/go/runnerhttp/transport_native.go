//go:build !wasip1

package runnerhttp

import "net/http"

// Transport sends requests with Fetch of the runner; outside of a handler it is
// http.DefaultTransport.
func Transport() http.RoundTripper { return http.DefaultTransport }
