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

	"runner.example/audit"
	"runner.example/internal/fault"
	"runner.example/keystore"
)

// Client asks a node to do things, in this process or over its socket. It is
// safe for concurrent use. An operation that is refused gives a *fault.Fault
// that says why in the same words on either way; an error that matches
// ErrNoServer says that the server is gone and nothing was done.
type Client struct {
	send func(ctx context.Context, operation string, args []byte) ([]byte, error)
}

// Client returns a client that does everything in this process.
func (l *Local) Client() *Client {
	uid := uint32(os.Geteuid())
	return &Client{
		send: func(ctx context.Context, operation string, args []byte) ([]byte, error) {
			return l.do(ctx, uid, operation, args)
		},
	}
}

// Dial returns a client of the server on the data folder dir, once that server
// has answered. The error matches ErrNoServer when there is none.
func Dial(ctx context.Context, dir string) (*Client, error) {
	first, err := dial(ctx, dir)
	if err != nil {
		return nil, err
	}
	_ = first.Close() // it has shown that somebody accepts
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, dir) },
		// A connection that was kept may be closed just as an operation is sent on it,
		// and then nobody knows whether it was done.
		DisableKeepAlives: true,
	}
	return &Client{
		send: func(ctx context.Context, operation string, args []byte) ([]byte, error) {
			return post(ctx, transport, operation, args)
		},
	}, nil
}

func post(ctx context.Context, transport *http.Transport, operation string, args []byte) ([]byte, error) {
	// The host is of no meaning on a Unix socket.
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://runner/"+operation, bytes.NewReader(args))
	if err != nil {
		return nil, err
	}
	answer, err := transport.RoundTrip(request)
	if errors.Is(err, ErrNoServer) {
		return nil, ErrNoServer
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the server closed the socket; whether it did what was asked is not known")
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxMessage))
	switch {
	case err != nil:
		return nil, fault.Wrap(err, fault.Unavailable, "the server broke off its answer")
	case answer.StatusCode == http.StatusOK:
		return body, nil
	}
	var r refusal
	if err := json.Unmarshal(body, &r); err != nil || r.Code == "" {
		return nil, fault.New(fault.Internal, "the server answered with status %d: is it of another version?", answer.StatusCode)
	}
	return nil, fault.New(r.Code, "%s", r.Detail)
}

// Status tells how the node is.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, "status", struct{}{})
}

// CreateKey makes a key; the answer has its token, once.
func (c *Client) CreateKey(ctx context.Context, request CreateKey) (keystore.Key, error) {
	return ask[keystore.Key](ctx, c, "apiKeys.create", request)
}

// RotateKey gives a key a new token; the answer has it, once.
func (c *Client) RotateKey(ctx context.Context, request RotateKey) (keystore.Key, error) {
	return ask[keystore.Key](ctx, c, "apiKeys.rotate", request)
}

// ListKeys gives one page of keys.
func (c *Client) ListKeys(ctx context.Context, request ListKeys) (keystore.Page, error) {
	return ask[keystore.Page](ctx, c, "apiKeys.list", request)
}

// Key gives one key.
func (c *Client) Key(ctx context.Context, id string) (keystore.Key, error) {
	return ask[keystore.Key](ctx, c, "apiKeys.get", KeyID{ID: id})
}

// RevokeKey ends a key for good; revoking a revoked one changes nothing.
func (c *Client) RevokeKey(ctx context.Context, id string) (keystore.Key, error) {
	return ask[keystore.Key](ctx, c, "apiKeys.revoke", KeyID{ID: id})
}

// DisableKey takes a key out of service until EnableKey.
func (c *Client) DisableKey(ctx context.Context, id string) (keystore.Key, error) {
	return ask[keystore.Key](ctx, c, "apiKeys.disable", KeyID{ID: id})
}

// EnableKey puts a disabled key back into service.
func (c *Client) EnableKey(ctx context.Context, id string) (keystore.Key, error) {
	return ask[keystore.Key](ctx, c, "apiKeys.enable", KeyID{ID: id})
}

// ListAudit gives audit records in the order of the hash chain.
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
	text, err := json.Marshal(args)
	if err != nil {
		return result, fmt.Errorf("encode the arguments of %s: %w", operation, err)
	}
	answer, err := c.send(ctx, operation, text)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(answer, &result); err != nil {
		return result, errors.Join(fault.New(fault.Internal, "the answer to %s does not fit: is the server of another version?", operation), err)
	}
	return result, nil
}
