package outbound

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"time"

	"runner.example/internal/fairqueue"
	"runner.example/internal/settings"
)

// Options of a Client. The zero value is for a public server. Fields with a toml tag are
// settings (package settings).
type Options struct {
	// AllowPrivate permits private and loopback addresses, and http to them, for declared
	// origins and the addresses of declared names. Link-local addresses and metadata
	// services stay blocked.
	AllowPrivate bool `toml:"outbound.allow_private"`
	// Roots are the trusted certificate authorities; nil: those of the system.
	Roots *x509.CertPool
	// Resolve finds the addresses of a name; nil: the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Answer answers requests in place of the network; nil: they are sent. Any goroutine may call it.
	Answer http.RoundTripper
	// MaxBody limits the body of an answer to an outbound request.
	MaxBody int `toml:"outbound.answer" unit:"size" default:"5mb" min:"1kb" max:"1gb"`
	// Connections is how many connections are open at a time, in use or idle; further
	// requests wait. One origin, one handler, and one caller may have three quarters of them.
	Connections int `default:"128"`
	// PublicRate is how many requests a minute the callers of one tenant may send to hosts that the
	// schema does not list (public: true). Callers without a tenant count together.
	PublicRate int `toml:"outbound.public_rate" default:"600" min:"1" max:"1000000"`
}

// MaxConnections returns how many connections a client with these options opens.
func (o Options) MaxConnections() int {
	settings.FillZero(&o)
	return o.Connections
}

const (
	maxAnswerHead = 64 << 10
	maxRedirects  = 5
	idleTime      = 60 * time.Second
	hostIdle      = 16
	firstBytes    = 32 << 10 // allocated at first, for any Content-Length
)

// Client sends requests. Any goroutine may use it. Close it.
type Client struct {
	options Options
	// declared sends requests to declared origins, public those to other public hosts.
	declared, public *side
	slots            *connectionSlots
	open             chan struct{} // holds one for each connection
}

// side sends requests of one kind: to declared origins, or to public hosts. The two sides never share a connection,
// because they may reach different addresses.
type side struct {
	client       *Client
	allowPrivate bool
	dialer       net.Dialer
	transport    *http.Transport
}

// New returns a client, which connects when it sends a request.
func New(options Options) *Client {
	settings.FillZero(&options)
	if options.Resolve == nil {
		options.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	c := &Client{
		options: options, slots: newConnectionSlots(options.Connections), open: make(chan struct{}, options.Connections),
	}
	c.declared, c.public = c.newSide(options.AllowPrivate), c.newSide(false)
	return c
}

func (c *Client) newSide(allowPrivate bool) *side {
	s := &side{client: c, allowPrivate: allowPrivate}
	s.dialer = net.Dialer{Control: s.control, FallbackDelay: -1}
	// A service could keep an idle HTTP/2 connection busy for as long as it likes. An idle
	// HTTP/1.1 connection is closed at the first byte that arrives.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	s.transport = &http.Transport{
		Proxy:                  nil, // also none that the environment names
		DialContext:            s.dial,
		DialTLSContext:         s.dialTLS,
		Protocols:              &protocols,
		DisableCompression:     true,
		MaxIdleConns:           max(1, c.options.Connections/2),
		MaxIdleConnsPerHost:    hostIdle,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxAnswerHead,
	}
	return s
}

// PublicRate returns Options.PublicRate, or its default.
func (c *Client) PublicRate() int { return c.options.PublicRate }

// MaxBody returns Options.MaxBody, or its default.
func (c *Client) MaxBody() int { return c.options.MaxBody }

// Close closes idle connections. Requests in progress end with their contexts.
func (c *Client) Close() {
	c.declared.transport.CloseIdleConnections()
	c.public.transport.CloseIdleConnections()
}

// Response is a response. Its headers are sorted, with names in lower case.
type Response struct {
	// URL is the last URL of a request that was redirected; otherwise empty.
	URL     string
	Status  int
	Headers []Header
	Body    []byte
}

// Do sends a request, follows redirects, and reads the response. admit is called with the number of bytes of body that
// have arrived, before more are read, and may refuse them; nil: all are read. The rest is as with Open.
func (c *Client) Do(ctx context.Context, by fairqueue.Parties, r *Request,
	admit func(bytes int) bool) (*Response, error) {
	response, body, err := c.Open(ctx, by, r)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	response.Body, err = body.readAll(admit)
	if err != nil {
		return nil, err
	}
	return response, nil
}

// Open sends a request, follows redirects, and returns the head of the response, and the body. The connection counts for
// a handler and its caller, until the Body is closed. When ctx ends, also while the body is read, the error is the cause
// of that. Otherwise it is an *Error: Denied, TooLarge or Unavailable, the last also if no
// connection was free before the deadline of ctx.
func (c *Client) Open(ctx context.Context, by fairqueue.Parties, r *Request) (*Response, *Body, error) {
	ctx, cancel := context.WithCancel(ctx)
	sent := r
	for range maxRedirects + 1 {
		body, next, err := c.once(ctx, by, r)
		switch {
		case next != nil:
			r = next
			continue
		case err != nil:
			cancel() // also dials for it that are still in progress
			return nil, nil, err
		}
		body.cancel = cancel
		response := body.head()
		if sent != r {
			response.URL = r.url.String()
		}
		return response, body, nil
	}
	cancel()
	return nil, nil, refuse(Unavailable, "the answer redirects more than %d times", maxRedirects)
}

// once sends one request. It returns the body of the response, or the request of a redirect.
func (c *Client) once(ctx context.Context, by fairqueue.Parties, r *Request) (_ *Body, _ *Request, err error) {
	origin, _ := originOf(r.url)
	slot, err := c.slots.acquire(ctx, origin, by)
	if err != nil {
		return nil, nil, err
	}
	kept := false
	defer func() {
		if !kept {
			slot.release()
		}
	}()
	h, err := r.http(context.WithValue(ctx, fetchKey{}, ctx))
	if err != nil {
		return nil, nil, refuse(Invalid, "the url cannot be read")
	}
	side := c.declared
	if r.public {
		side = c.public
	}
	var transport http.RoundTripper = side.transport
	if c.options.Answer != nil {
		transport = c.options.Answer
	}
	answer, err := transport.RoundTrip(h)
	if err != nil {
		return nil, nil, c.failed(ctx, r, err)
	}
	next, err := r.redirected(answer.StatusCode, answer.Header.Get("Location"))
	if next == nil && err == nil && answer.StatusCode < 200 {
		err = refuse(Unavailable, "%s changes the protocol", r.url.Host)
	}
	if next == nil && err == nil {
		kept = true
		return &Body{client: c, ctx: ctx, request: r, answer: answer, slot: slot}, nil, nil
	}
	_ = answer.Body.Close() // the rest of the body is not read
	return nil, next, err
}

// TooLarge is the error of a body that is over MaxBody.
func (c *Client) TooLarge() error {
	return refuse(TooLarge, "the answer has more than %d bytes", c.options.MaxBody)
}

// failed returns the error for a request without a response.
func (c *Client) failed(ctx context.Context, r *Request, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	host, kind := r.url.Host, kindOf(err)
	switch kind {
	case KindAddress:
		return failure(kind, Denied, "%s has no address that may be reached", host)
	case KindDNS:
		return failure(kind, Unavailable, "the name of %s cannot be resolved", host)
	case KindCertificate:
		return failure(kind, Unavailable, "the certificate of %s is not trusted", host)
	case KindProtocol:
		return failure(kind, Unavailable,
			"%s gave no answer that can be read: it is not HTTP, or its headers have more than %d KiB", host, maxAnswerHead>>10)
	}
	return failure(kind, Unavailable, "%s gave no answer", host)
}
