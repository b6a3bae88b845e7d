package outbound

import (
	"strings"
	"testing"
)

// ErrUnreachable is what an address that may not be reached fails with.
var ErrUnreachable = errUnreachable

// Control looks at an address as a socket that is about to connect does.
func (c *Client) Control(address string) error { return c.declared.control("tcp", address, nil) }

// ControlPublic is Control for requests to public hosts.
func (c *Client) ControlPublic(address string) error { return c.public.control("tcp", address, nil) }

// Target is the URL that a request goes to.
func Target(t *testing.T, r *Request) string { return r.url.String() }

// Sent is a request as it is written to a connection.
func Sent(t *testing.T, r *Request) string {
	t.Helper()
	request, err := r.http(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := request.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Redirected is the request that an answer with that Location leads to, nil where it
// leads nowhere.
func Redirected(r *Request, location string) *Request {
	next, err := r.redirected(307, location)
	if err != nil {
		return nil
	}
	return next
}
