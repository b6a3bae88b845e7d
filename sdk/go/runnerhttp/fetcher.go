package runnerhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	runner "runner.example/sdk/go"
	"runner.example/sdk/go/internal/host"
)

// fetcher is an http.RoundTripper that sends requests with Fetch of a host.
type fetcher struct{ host host.Host }

// maxTimeout is the longest timeout that the runner permits for one request.
const maxTimeout = time.Minute

// framing are headers that are not sent from Request.Header. net/http does not send them from there
// either, or they belong to the connection, which the runner makes.
var framing = map[string]bool{
	"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Trailer": true, "Connection": true, "Keep-Alive": true,
}

// RoundTrip implements http.RoundTripper. It does not follow redirects: http.Client does.
func (f fetcher) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := readBody(request)
	if err != nil {
		return nil, err
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	if request.Host != "" && request.Host != request.URL.Host {
		return nil, fmt.Errorf("runnerhttp: the header Host of a request to %s cannot be %s: remove Request.Host",
			request.URL.Host, request.Host)
	}
	url := *request.URL
	url.User, url.Fragment = nil, ""
	fetch := runner.FetchRequest{Method: request.Method, URL: url.String(), Body: body, Timeout: maxTimeout, Redirect: "manual"}
	if deadline, ok := request.Context().Deadline(); ok {
		fetch.Timeout = max(time.Millisecond, min(maxTimeout, time.Until(deadline)))
	}
	for name, values := range request.Header {
		for _, value := range values {
			if !framing[http.CanonicalHeaderKey(name)] {
				fetch.Headers = append(fetch.Headers, runner.Pair{Name: name, Value: value})
			}
		}
	}
	ctx, _ := runner.New(f.host)
	got, err := ctx.Fetch(fetch)
	if err != nil {
		return nil, fetchError{err}
	}
	return response(request, got), nil
}

// readBody reads the body of a request and closes it, as a RoundTripper must.
func readBody(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(request.Body)
	return body, errors.Join(err, request.Body.Close())
}

func response(request *http.Request, got runner.FetchResponse) *http.Response {
	r := &http.Response{
		StatusCode: got.Status, Status: strings.TrimSpace(fmt.Sprint(got.Status, " ", http.StatusText(got.Status))),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(got.Body)), ContentLength: int64(len(got.Body)), Request: request,
	}
	for _, h := range got.Headers {
		r.Header.Add(h.Name, h.Value)
	}
	return r
}

// fetchError is an error of Fetch in the form that net/http expects.
type fetchError struct{ error }

func (e fetchError) Unwrap() error { return e.error }

// Timeout reports whether the request timed out.
func (e fetchError) Timeout() bool {
	var failure *runner.HostError
	return errors.As(e.error, &failure) && failure.Code == "deadline"
}

// Is makes a timeout match context.DeadlineExceeded.
func (e fetchError) Is(target error) bool { return target == context.DeadlineExceeded && e.Timeout() }
