package runner

import (
	"fmt"
	"strings"
	"time"

	"runner.example/sdk/go/internal/codec"
	"runner.example/sdk/go/internal/host"
)

// FetchRequest is a request to another service. Only URL is required: an absolute
// one, whose origin the schema declares with `outbound`.
type FetchRequest struct {
	// Method is GET when it is empty.
	Method  string
	URL     string
	Headers []Pair
	Body    []byte
	// Timeout is 10 s when it is zero, and 60 s at most.
	Timeout time.Duration
	// Redirect is what becomes of an answer that redirects: "follow", as when it is
	// empty, "manual", which keeps the answer, or "error", unavailable.
	Redirect string
	// PublicOnly requires a public host that the schema does not list. Set it for URLs that clients send.
	PublicOnly bool
}

// FetchResponse is the answer to one. Header names are in lower case.
type FetchResponse struct {
	Status  int
	Headers []Pair
	Body    []byte
}

// Header gives the first header of that name, in any case; empty when there is
// none.
func (r FetchResponse) Header(name string) string {
	for _, h := range r.Headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

// JSON reads the body into v.
func (r FetchResponse) JSON(v any) error {
	if err := checkUnicode(r.Body); err != nil {
		return fmt.Errorf("the body %w", err)
	}
	return codec.Unmarshal(append(codec.Padded(len(r.Body))[:0], r.Body...), v)
}

// FetchResult is the outcome of one of several requests.
type FetchResult struct {
	FetchResponse
	Err error
}

// Fetch sends a request and waits for the answer, whatever its status. A *HostError
// says why there is none: denied (an origin that is not declared, an address that
// is not public, a header that is the runner's), deadline (the request's own time),
// unavailable, too_large or limit.
//
// A handler that has fetched is not run again when its transaction conflicts: the
// caller gets 409. So write first, and fetch last.
func (c *Context) Fetch(request FetchRequest) (FetchResponse, error) {
	var response fetchResponse
	err := callHost(c.host, "fetch", request.args(), &response)
	return response.public(), err
}

// FetchAll sends requests that are under way together, and waits for all. The
// results are in the order of the requests.
func (c *Context) FetchAll(requests ...FetchRequest) []FetchResult {
	results := make([]FetchResult, len(requests))
	tickets := make([]int, len(requests))
	for i, request := range requests {
		args, err := appendArgument(nil, "fetch", "", request.args())
		if err == nil {
			tickets[i], err = c.host.Start("fetch", args)
		}
		results[i].Err = host.Of("fetch", err)
	}
	for i := range results {
		if results[i].Err != nil {
			continue
		}
		var response fetchResponse
		err := c.host.Take(tickets[i])
		if err == nil {
			err = host.Decode(c.host, &response)
		}
		results[i] = FetchResult{response.public(), host.Of("fetch", err)}
	}
	return results
}

func (r FetchRequest) args() map[string]any {
	args := map[string]any{"url": r.URL}
	if r.Method != "" {
		args["method"] = r.Method
	}
	if len(r.Headers) > 0 {
		pairs := make([][2]string, len(r.Headers))
		for i, h := range r.Headers {
			pairs[i] = [2]string{h.Name, h.Value}
		}
		args["headers"] = pairs
	}
	if len(r.Body) > 0 {
		args["body"] = octets(r.Body)
	}
	if r.Timeout != 0 {
		args["timeout"] = seconds(r.Timeout)
	}
	if r.Redirect != "" {
		args["redirect"] = r.Redirect
	}
	if r.PublicOnly {
		args["publicOnly"] = true
	}
	return args
}

type fetchResponse struct {
	Status  int         `json:"status"`
	Headers [][2]string `json:"headers"`
	Body    octets      `json:"body"`
}

func (r fetchResponse) public() FetchResponse {
	response := FetchResponse{Status: r.Status, Body: r.Body}
	for _, h := range r.Headers {
		response.Headers = append(response.Headers, Pair{Name: h[0], Value: h[1]})
	}
	return response
}
