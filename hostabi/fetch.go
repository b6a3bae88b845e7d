package hostabi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/hostabi/abi"
	"runner.example/hostabi/octets"
	"runner.example/hostabi/outbound"
	"runner.example/internal/cost"
	"runner.example/internal/fairqueue"
	"runner.example/internal/fault"
)

const (
	// fetchTime is the default timeout of a fetch, maxTime the longest of a fetch or a
	// sleep.
	fetchTime = 10 * time.Second
	maxTime   = 60 * time.Second
	// maxInFlight is how many outbound requests of a run are in flight at the same time.
	// Others wait.
	maxInFlight = 16
	// maxHeaderText is the longest JSON of a request's headers.
	maxHeaderText = 64 << 10
	// maxTraceState is the longest tracestate that is passed on.
	maxTraceState = 512
)

// fetch sends a request to one of the origins that the schema declares. It ends with its
// own timeout or with the request's time.
func fetch(c *Call, text []byte) (work, error) {
	args, err := readArguments(text, &c.work)
	if err != nil {
		return nil, err
	}
	method, given := args.optionalText("method")
	if !given {
		method = "GET"
	}
	target := args.text("url")
	byByte := args.optionalBool("headerBytes")
	headers := args.optionalHeaders("headers", byByte)
	body, _ := args.optionalData("body")
	timeout := args.optionalTime("timeout", fetchTime, time.Millisecond, maxTime)
	redirect, given := args.optionalText("redirect")
	way := outbound.Redirect(redirect)
	if given && way != outbound.Follow && way != outbound.Manual && way != outbound.Refuse {
		args.wrong("member %q must be follow, manual or error", "redirect")
	}
	stream := args.optionalBool("stream")
	origins := c.Host.Origins
	if args.optionalBool("publicOnly") {
		if !origins.AllowsPublic() {
			args.wrong("member %q needs `outbound { public: true }` in the schema", "publicOnly")
		}
		origins = origins.PublicOnly()
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	request, err := outbound.NewRequest(origins, method, target, c.traced(headers), body)
	if err != nil {
		return nil, faultOf(err)
	}
	f, err := c.newFlight(request.WithRedirect(way), timeout)
	f.byByte = byByte
	if stream {
		return c.open(f), err
	}
	return f.fly, err
}

// newFlight counts a fetch, which is then sent.
func (c *Call) newFlight(request *outbound.Request, timeout time.Duration) (flight, error) {
	if c.fetches++; c.fetches > c.limits.Fetches {
		return flight{}, fault.New(fault.Limit, "a request may fetch at most %d times", c.limits.Fetches)
	}
	if err := c.admitPublic(request); err != nil {
		return flight{}, err
	}
	if !c.streaming { // else the handler does not run again
		c.sent = append(c.sent, request.String())
	}
	return flight{
		client: c.Host.Outbound, by: c.parties(), request: request, timeout: timeout, pending: c.pendingOps(),
	}, nil
}

// traced adds the trace of the request to the headers of a fetch, unless the handler has set
// one.
func (c *Call) traced(headers []outbound.Header) []outbound.Header {
	trace := c.Request.Trace()
	own := func(h outbound.Header) bool { return strings.EqualFold(h.Name, "traceparent") }
	if trace.ID == "" || slices.ContainsFunc(headers, own) {
		return headers
	}
	headers = append(headers, outbound.Header{Name: "traceparent", Value: trace.Traceparent()})
	if state, ok := c.Request.Header("tracestate"); ok && len(state) <= maxTraceState {
		headers = append(headers, outbound.Header{Name: "tracestate", Value: string(state)})
	}
	return headers
}

// Sent returns the outbound requests that runs for this request have sent, as method and
// URL without query. If there is one, the handler must not run again, because it may have
// had an effect. The slice is valid until the next first run.
func (c *Call) Sent() []string { return c.sent }

// flight is one fetch, apart from the guest that wants it.
type flight struct {
	client  *outbound.Client
	by      fairqueue.Parties
	request *outbound.Request
	timeout time.Duration
	// byByte: each character of a header's value is one byte.
	byByte  bool
	pending *pendingOperations
}

func (f flight) fly(ctx context.Context) (answer, error) {
	response, err := f.get(ctx)
	if err != nil {
		return nil, faultOf(err)
	}
	return func(out []byte, m *cost.Meter) ([]byte, error) { return appendResponse(out, response, f.byByte, m) }, nil
}

// get sends the request and receives the response, within the timeout.
func (f flight) get(ctx context.Context) (*outbound.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	response, err := f.send(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, noAnswer(f.timeout)
	}
	return response, err
}

func noAnswer(timeout time.Duration) error {
	return fault.New(fault.Deadline, "no answer within %s", timeout)
}

// send sends the request when fewer than maxInFlight are under way.
func (f flight) send(ctx context.Context) (*outbound.Response, error) {
	select {
	case f.pending.inFlight <- struct{}{}:
		defer func() { <-f.pending.inFlight }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return f.client.Do(ctx, f.by, f.request, f.pending.reserve)
}

// faultOf returns the fault that a guest sees for an error of outbound.
func faultOf(err error) error {
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok {
		return err
	}
	code := fault.Unavailable
	switch e.Reason {
	case outbound.Invalid:
		code = fault.Invalid
	case outbound.Denied:
		code = fault.Denied
	case outbound.TooLarge:
		code = fault.TooLarge
	}
	return fault.Wrap(e, code, "%s", e.Detail)
}

// failedBytes is the size of a line of logFailed in the log beside its values.
const failedBytes = len(
	`{"time":"2006-01-02T15:04:05.000Z","level":"WARN","msg":"fetch failed","requestId":"","cause":""}` + "\n")

// logFailed logs the cause, within the run's log budget, if err is of a fetch that was
// sent.
func (c *Call) logFailed(err error) {
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok || e.Kind == "" {
		return
	}
	text := e.Error()
	_, size := fits([]byte(text), math.MaxInt)
	if c.log.admit(c.limits, failedBytes+traceBytes+len(c.Request.ID)+size) {
		c.Host.Logger.LogAttrs(context.Background(), slog.LevelWarn, "fetch failed", c.Request.LogID(),
			slog.String("cause", text))
	}
}

// appendResponse appends the result of a fetch.
func appendResponse(out []byte, r *outbound.Response, byByte bool, m *cost.Meter) ([]byte, error) {
	out, err := appendHead(out, r, byByte)
	if err != nil {
		return out, err
	}
	out, err = octets.Append(append(out, `,"body":`...), r.Body, m)
	return append(out, '}'), err
}

// appendHead appends the result of a fetch without its body and its end.
func appendHead(out []byte, r *outbound.Response, byByte bool) ([]byte, error) {
	out = append(out, `{"status":`...)
	out = strconv.AppendInt(out, int64(r.Status), 10)
	var err error
	if r.URL != "" {
		if out, err = jsontext.AppendQuote(append(out, `,"url":`...), r.URL); err != nil {
			return out, err
		}
	}
	out = append(out, `,"headers":[`...)
	for i, h := range r.Headers {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = jsontext.AppendQuote(append(out, '['), h.Name); err != nil {
			return out, err
		}
		if out, err = jsontext.AppendQuote(append(out, ','), headerText(h.Value, byByte)); err != nil {
			return out, err
		}
		out = append(out, ']')
	}
	return append(out, ']'), nil
}

// headerText returns the value of a header as text.
func headerText(value string, byByte bool) string {
	switch {
	case !byByte && utf8.ValidString(value), !strings.ContainsFunc(value, func(r rune) bool { return r >= utf8.RuneSelf }):
		return value
	case byByte:
		return string(abi.AppendByteText(nil, []byte(value)))
	}
	return string(abi.HeaderText([]byte(value)))
}

// headerBytes returns the bytes whose numbers are the characters of text.
func headerBytes(text string) (value string, ok bool) {
	b := make([]byte, 0, len(text))
	for _, c := range text {
		if c > 0xff {
			return "", false
		}
		b = append(b, byte(c))
	}
	return string(b), true
}

// optionalHeaders returns copies of headers, which are written as [[name, value], …].
func (a *arguments) optionalHeaders(name string, byByte bool) (headers []outbound.Header) {
	raw := a.take(name)
	if raw == nil {
		return nil
	}
	var pairs [][]*string // null is not a string
	wrong := len(raw) > maxHeaderText || json.Unmarshal(raw, &pairs) != nil
	for _, pair := range pairs {
		if wrong = wrong || len(pair) != 2 || pair[0] == nil || pair[1] == nil; wrong {
			break
		}
		value := *pair[1]
		if byByte {
			var ok bool
			if value, ok = headerBytes(value); !ok {
				a.wrong("member %q has a value with a character above U+00FF, which is not a byte", name)
				return nil
			}
		}
		headers = append(headers, outbound.Header{Name: *pair[0], Value: value})
	}
	if wrong {
		a.wrong("member %q must be a list of [name, value], both strings, of at most %d bytes", name, maxHeaderText)
	}
	return headers
}

// optionalTime returns a time span in seconds, which may have a fraction. It must not be null.
func (a *arguments) optionalTime(name string, otherwise, least, most time.Duration) time.Duration {
	a.notNull(name)
	raw := a.take(name)
	if raw == nil {
		return otherwise
	}
	seconds, err := strconv.ParseFloat(string(raw), 64)
	if raw.Kind() != '0' || err != nil || seconds < least.Seconds() || seconds > most.Seconds() {
		a.wrong("member %q must be a number of seconds from %g to %.0f", name, least.Seconds(), most.Seconds())
		return otherwise
	}
	return time.Duration(seconds * float64(time.Second))
}
