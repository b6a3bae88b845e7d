//go:build wasip1

package runnerhttp

import (
	"net/http"

	"runner.example/sdk/go/internal/host"
)

// Transport sends requests with Fetch of the runner; outside of a handler it is
// http.DefaultTransport.
func Transport() http.RoundTripper { return fetcher{host.Guest{}} }

// The default transport stays an *http.Transport: packages expect that type.
func init() {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t.RegisterProtocol("http", Transport())
		t.RegisterProtocol("https", Transport())
	}
}
