package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/node/release"
	"runner.example/state/store"
)

// Client runs operations on a node: in this process, over its socket, or over the network. It is
// safe for concurrent use. An operation that is refused returns a *fault.Fault, the same in all
// ways. An error that matches ErrNoServer means that the server has ended and nothing was
// done.
type Client struct{ transport Transport }

// Transport carries operations to a node. Its errors are faults with a detail, except ErrNoServer.
type Transport interface {
	// Do runs the operation with that name, and returns its result.
	Do(ctx context.Context, operation string, args []byte) ([]byte, error)
	// Backup writes a backup to w.
	Backup(ctx context.Context, request BackupRequest, w io.Writer) error
	// Put stores the contents of a file.
	Put(ctx context.Context, f release.File, contents io.Reader) error
	// PutBatch stores the blobs of a batch, whose body this is.
	PutBatch(ctx context.Context, body []byte) error
	// PutContents stores the contents of a file of a row. name is what errors call them.
	PutContents(ctx context.Context, f Blob, name string, contents io.Reader) error
	// ReadContents writes the contents of a file of a row to w.
	ReadContents(ctx context.Context, d store.Digest, w io.Writer) error
}

// NewClient returns a client that uses the transport.
func NewClient(t Transport) *Client { return &Client{t} }

// SetAnswerTimeout changes how long a server may be silent, which is AnswerTimeout at first. It is called before
// the first operation, and has no effect in this process.
func (c *Client) SetAnswerTimeout(d time.Duration) {
	if p, ok := c.transport.(*peer); ok {
		p.answerTimeout = d
	}
}

// ask runs an operation and decodes its result.
func ask[A, R any](ctx context.Context, c *Client, op Operation[A, R], args A) (R, error) {
	var result R
	text, err := Marshal(args)
	if err != nil {
		return result, fmt.Errorf("encode the arguments of %s: %w", op.Name, err)
	}
	answer, err := c.transport.Do(ctx, op.Name, text)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(answer, &result); err != nil {
		unreadable := fault.New(fault.Internal,
			"cannot decode the answer to %s: does the server have another version?", op.Name)
		return result, errors.Join(unreadable, err)
	}
	return result, nil
}

// peer is the Transport to a server at the other end of connections.
type peer struct {
	transport *http.Transport
	// base is the URL of an operation before its name.
	base string
	// token is sent with each request; zero: none is.
	token secret.Token
	// answerTimeout is how long the server may be silent: see silence.
	answerTimeout time.Duration
}

// Do sends an operation, and returns the result.
func (p *peer) Do(ctx context.Context, operation string, args []byte) ([]byte, error) {
	limit := limitSilence(ctx, p.answerTimeout)
	defer limit.stop()
	answer, err := p.send(limit, operation, args)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(limit.received(answer.Body), MaxMessage))
	switch {
	case err != nil:
		return nil, limit.explain(fault.Wrap(err, fault.Unavailable, "the server closed the connection during its answer"))
	case answer.StatusCode == http.StatusOK:
		return body, nil
	}
	return nil, refused(answer, body)
}

// send sends an operation. The caller closes the body of the answer.
func (p *peer) send(limit *silence, operation string, args []byte) (*http.Response, error) {
	request, err := p.request(limit, http.MethodPost, operation, bytes.NewReader(args), int64(len(args)))
	if err != nil {
		return nil, err
	}
	answer, err := p.transport.RoundTrip(request)
	if errors.Is(err, ErrNoServer) {
		return nil, ErrNoServer
	}
	if unreached, ok := errors.AsType[*fault.Fault](err); ok { // of a dial: nothing was sent
		return nil, unreached
	}
	if err != nil {
		return nil, limit.explain(fault.Wrap(err, fault.Unavailable, "the server closed the connection; the operation may or may not have been done"))
	}
	return answer, nil
}

// request returns a request with the token and a body of that size.
func (p *peer) request(limit *silence, method, name string, body io.Reader, size int64) (*http.Request, error) {
	r, err := http.NewRequestWithContext(limit.ctx, method, p.base+name, limit.sent(body))
	if err != nil {
		return nil, err
	}
	if r.ContentLength = size; size == 0 {
		r.Body = http.NoBody // net/http takes 0 for an unknown length
	}
	if !p.token.IsZero() {
		r.Header.Set("Authorization", "Bearer "+p.token.Reveal())
	}
	return r, nil
}

// refused returns the error that a server has sent. If it names Retry-After, its value follows.
func refused(answer *http.Response, body []byte) error {
	var r Refusal
	if err := json.Unmarshal(body, &r); err != nil || r.Code == "" {
		return fault.New(fault.Internal, "the server answered with status %d: does it have another version?", answer.StatusCode)
	}
	if wait, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		r.Detail += fmt.Sprintf(" (%d s)", wait)
	}
	return r.fault()
}
