package outbound

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Body is the body of a response whose head has arrived. One goroutine at a time may use it. Close it, once.
type Body struct {
	client  *Client
	ctx     context.Context
	cancel  context.CancelFunc // ends dials that are still in progress, too
	request *Request           // the last one
	answer  *http.Response
	slot    claim
}

// head returns the response without its body.
func (b *Body) head() *Response {
	out := &Response{Status: b.answer.StatusCode}
	for name, values := range b.answer.Header {
		for _, value := range values {
			out.Headers = append(out.Headers, Header{strings.ToLower(name), value})
		}
	}
	slices.SortStableFunc(out.Headers, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Length returns how many bytes the service has announced; -1: it has announced none.
func (b *Body) Length() int64 {
	if b.request.method == "HEAD" {
		return 0
	}
	return b.answer.ContentLength
}

// Read waits for bytes. At the end of the whole body the error is io.EOF, and otherwise as Open says.
func (b *Body) Read(p []byte) (int, error) {
	n, err := b.answer.Body.Read(p)
	switch {
	case b.ctx.Err() != nil: // the end of the body may be the result of it
		return n, context.Cause(b.ctx)
	case err != nil && err != io.EOF:
		return n, b.client.failed(b.ctx, b.request, err)
	}
	return n, err
}

// Close ends the response. If its body was not read to the end, the connection is closed.
func (b *Body) Close() {
	_ = b.answer.Body.Close()
	b.cancel()
	b.slot.release()
}

// readAll reads a body of at most Options.MaxBody bytes.
func (b *Body) readAll(admit func(int) bool) (all []byte, err error) {
	length := b.Length()
	if length > int64(b.client.options.MaxBody) {
		return nil, b.client.TooLarge()
	}
	if length > 0 {
		all = make([]byte, 0, min(length+1, firstBytes))
	}
	for {
		if len(all) == cap(all) { // all of which were admitted
			all = slices.Grow(all, max(512, len(all)/2))
		}
		n, err := b.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		switch {
		case len(all) > b.client.options.MaxBody:
			return nil, b.client.TooLarge()
		case n > 0 && admit != nil && !admit(n):
			return nil, ErrRefused
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, err
		}
	}
}
