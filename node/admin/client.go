package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"

	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/keystore"
	"runner.example/node/release"
	"runner.example/state/audit"
)

// Client runs operations on a node: in this process, over its socket, or over the network. It is
// safe for concurrent use. An operation that is refused returns a *fault.Fault, the same in all
// ways. An error that matches ErrNoServer means that the server has ended and nothing was
// done.
type Client struct {
	send func(ctx context.Context, operation string, args []byte) ([]byte, error)
	// backup writes a backup to w.
	backup func(ctx context.Context, w io.Writer) error
	// put sends the contents of a file.
	put func(ctx context.Context, f release.File, contents io.Reader) error
}

// Client returns a client that runs everything in this process.
func (l *Local) Client() *Client {
	uid := uint32(os.Geteuid())
	return &Client{
		send: func(ctx context.Context, operation string, args []byte) ([]byte, error) {
			return l.do(ctx, userOperator(uid), operation, args)
		},
		backup: func(ctx context.Context, w io.Writer) error {
			if err := l.backup(ctx, w); err != nil {
				return explained(err)
			}
			return nil
		},
		put: l.put,
	}
}

// Dial returns a client of the server that uses the data directory dir, once that server
// has answered. The error matches ErrNoServer when no server answers.
func Dial(ctx context.Context, dir string) (*Client, error) {
	first, err := dial(ctx, dir)
	if err != nil {
		return nil, err
	}
	_ = first.Close() // it has shown that a server accepts connections
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, dir) },
		// A kept connection may be closed just when an operation is sent on it; then it is
		// unknown whether the operation was done.
		DisableKeepAlives: true,
	}
	p := &peer{transport: transport, base: "http://runner/"} // the host has no meaning on a Unix socket
	return p.client(), nil
}

// peer is a server at the other end of connections.
type peer struct {
	transport *http.Transport
	// base is the URL of an operation before its name.
	base string
	// token is sent with each request; zero: none is.
	token secret.Token
}

func (p *peer) client() *Client { return &Client{send: p.post, backup: p.receive, put: p.sendFile} }

func (p *peer) post(ctx context.Context, operation string, args []byte) ([]byte, error) {
	answer, err := p.send(ctx, operation, args)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxMessage))
	switch {
	case err != nil:
		return nil, fault.Wrap(err, fault.Unavailable, "the server closed the connection during its answer")
	case answer.StatusCode == http.StatusOK:
		return body, nil
	}
	return nil, refused(answer, body)
}

// send sends an operation. The caller closes the body of the answer.
func (p *peer) send(ctx context.Context, operation string, args []byte) (*http.Response, error) {
	request, err := p.request(ctx, http.MethodPost, operation, bytes.NewReader(args))
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
		return nil, fault.Wrap(err, fault.Unavailable, "the server closed the connection; the operation may or may not have been done")
	}
	return answer, nil
}

// request returns a request with the token.
func (p *peer) request(ctx context.Context, method, name string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.base+name, body)
	if err == nil && !p.token.IsZero() {
		r.Header.Set("Authorization", "Bearer "+p.token.Reveal())
	}
	return r, err
}

// refused returns the error that a server has sent. If it names Retry-After, its value follows.
func refused(answer *http.Response, body []byte) error {
	var r refusal
	if err := json.Unmarshal(body, &r); err != nil || r.Code == "" {
		return fault.New(fault.Internal, "the server answered with status %d: does it have another version?", answer.StatusCode)
	}
	if wait, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		r.Detail += fmt.Sprintf(" (%d s)", wait)
	}
	return fault.New(r.Code, "%s", r.Detail).WithHint(r.Hint)
}

// CreateKey creates a key; only this answer has its token.
func (c *Client) CreateKey(ctx context.Context, request CreateKey) (keystore.Key, error) {
	return ask[keystore.Key](ctx, c, "apiKeys.create", request)
}

// RotateKey gives a key a new token; only this answer has it.
func (c *Client) RotateKey(ctx context.Context, request RotateKey) (keystore.Key, error) {
	return ask[keystore.Key](ctx, c, "apiKeys.rotate", request)
}

// ListKeys returns one page of keys.
func (c *Client) ListKeys(ctx context.Context, request ListKeys) (keystore.Page, error) {
	return ask[keystore.Page](ctx, c, "apiKeys.list", request)
}

// Key returns one key.
func (c *Client) Key(ctx context.Context, id string) (keystore.Key, error) {
	return ask[keystore.Key](ctx, c, "apiKeys.get", KeyID{ID: id})
}

// RevokeKey revokes a key permanently; revoking a revoked key changes nothing.
func (c *Client) RevokeKey(ctx context.Context, id string) (Changed[keystore.Key], error) {
	return ask[Changed[keystore.Key]](ctx, c, "apiKeys.revoke", KeyID{ID: id})
}

// DisableKey disables a key until EnableKey.
func (c *Client) DisableKey(ctx context.Context, id string) (Changed[keystore.Key], error) {
	return ask[Changed[keystore.Key]](ctx, c, "apiKeys.disable", KeyID{ID: id})
}

// EnableKey enables a disabled key.
func (c *Client) EnableKey(ctx context.Context, id string) (keystore.Key, error) {
	return ask[keystore.Key](ctx, c, "apiKeys.enable", KeyID{ID: id})
}

// ListAudit returns audit records in the order of the hash chain.
func (c *Client) ListAudit(ctx context.Context, request ListAudit) ([]audit.Entry, error) {
	return ask[[]audit.Entry](ctx, c, "audit.list", request)
}

// VerifyAudit recomputes the hash chain over all records.
func (c *Client) VerifyAudit(ctx context.Context, request VerifyAudit) (AuditHead, error) {
	return ask[AuditHead](ctx, c, "audit.verify", request)
}

// ask sends one operation and decodes its result.
func ask[R any](ctx context.Context, c *Client, operation string, args any) (R, error) {
	var result R
	text, err := marshal(args)
	if err != nil {
		return result, fmt.Errorf("encode the arguments of %s: %w", operation, err)
	}
	answer, err := c.send(ctx, operation, text)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(answer, &result); err != nil {
		return result, errors.Join(fault.New(fault.Internal, "cannot decode the answer to %s: does the server have another version?", operation), err)
	}
	return result, nil
}
