package apptest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/state/store"
)

// operator is the authority of the test itself: it makes keys and sessions, and reads and writes rows.
var operator = keystore.Authority{Caller: caller.Caller{Kind: caller.System, UserID: "test"}}

// clientSpec says who a client is.
type clientSpec struct {
	Kind string `json:"kind"` // key, session, jwt or anonymous

	Scope     string          `json:"scope"`     // of a key
	Name      string          `json:"name"`      // of a key
	Metadata  json.RawMessage `json:"metadata"`  // of a key
	ExpiresIn *float64        `json:"expiresIn"` // of a key or a session, in milliseconds; nil: as the schema says
	Tenant    string          `json:"tenant"`
	User      string          `json:"user"`   // of a session
	Roles     []string        `json:"roles"`  // of a session
	Claims    map[string]any  `json:"claims"` // of a jwt
}

// client sends requests with a credential, and keeps cookies like a browser. One goroutine at a time may change it.
type client struct {
	spec clientSpec

	mu         sync.Mutex
	credential string // the value of Authorization; empty: there is none yet, or the client has none
	signedIn   bool   // the credential, or the cookie of the session, was made
	cookies    []setCookies
	jar        *cookiejar.Jar
}

// setCookies are the cookies of one answer.
type setCookies struct {
	from    *url.URL
	cookies []*http.Cookie
}

func newClient(spec clientSpec) *client {
	c := &client{spec: spec}
	c.jar, _ = cookiejar.New(nil) // without options it returns no error
	return c
}

// fork returns a client with the same credential and the same cookies.
func (c *client) fork() *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := newClient(c.spec)
	f.credential, f.signedIn, f.cookies = c.credential, c.signedIn, slices.Clip(c.cookies)
	for _, one := range c.cookies {
		f.jar.SetCookies(one.from, one.cookies)
	}
	return f
}

// expire has the client get a new credential.
func (c *client) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.credential, c.signedIn = "", false
}

// sign adds the credential and the cookies to a request.
func (c *client) sign(ctx context.Context, w *environment, r *http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.signedIn {
		if err := c.signIn(ctx, w, r.URL); err != nil {
			return err
		}
		c.signedIn = true
	}
	if c.credential != "" && r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", c.credential)
	}
	for _, cookie := range c.jar.Cookies(r.URL) {
		r.AddCookie(cookie)
	}
	if r.Header.Get("Cookie") != "" && r.Header.Get("Sec-Fetch-Site") == "" {
		r.Header.Set("Sec-Fetch-Site", "same-origin") // as the pages of the app send it
	}
	return nil
}

// signIn makes the client's credential.
func (c *client) signIn(ctx context.Context, w *environment, to *url.URL) error {
	who := operator
	who.Schema = w.runtime.Schema()
	lifetime := (*time.Duration)(nil)
	if c.spec.ExpiresIn != nil {
		lifetime = new(time.Duration(*c.spec.ExpiresIn * float64(time.Millisecond)))
	}
	switch c.spec.Kind {
	case "anonymous":
	case "key":
		_, err := w.store.Update(ctx, func(tx *store.Tx) error {
			key, err := w.keys.Create(tx, who, keystore.CreateRequest{
				Scope: c.spec.Scope, Name: c.spec.Name, Tenant: c.spec.Tenant, Metadata: c.spec.Metadata, ExpiresIn: lifetime,
			})
			c.credential = "Bearer " + key.Token.Reveal()
			return err
		})
		if err != nil {
			return fmt.Errorf("as.key(%q): %w", c.spec.Scope, err)
		}
	case "session":
		_, err := w.store.Update(ctx, func(tx *store.Tx) error {
			session, err := w.keys.CreateSession(tx, who, keystore.CreateSessionRequest{
				UserID: c.spec.User, Tenant: c.spec.Tenant, Roles: c.spec.Roles, TTL: lifetime,
			})
			if err != nil {
				return err
			}
			name, value, _ := strings.Cut(session.Cookie.Reveal(), "=")
			c.keepCookies(to, []*http.Cookie{{Name: name, Value: value, Path: "/", Secure: true}})
			return nil
		})
		if err != nil {
			return fmt.Errorf("as.session: %w", err)
		}
	case "jwt":
		declared := who.Schema.Auth.JWT
		if declared == nil {
			return fault.New(fault.Invalid, "as.jwt: the schema has no session jwt: use as.session")
		}
		token, err := w.app.issuer.sign(declared, c.spec.Claims, w.calendar.Now())
		if err != nil {
			return fmt.Errorf("as.jwt: %w", err)
		}
		c.credential = "Bearer " + token
	default:
		return fmt.Errorf("BUG: a client of kind %q", c.spec.Kind)
	}
	return nil
}

// keep keeps the cookies of an answer.
func (c *client) keep(r *http.Request, got *http.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cookies := got.Cookies(); len(cookies) > 0 {
		c.keepCookies(r.URL, cookies)
	}
}

func (c *client) keepCookies(from *url.URL, cookies []*http.Cookie) {
	c.cookies = append(c.cookies, setCookies{from, cookies})
	c.jar.SetCookies(from, cookies)
}

// sentRequest is a request of a test.
type sentRequest struct {
	Client  int         `json:"client"`
	Method  string      `json:"method"`
	Path    string      `json:"path"`
	Headers [][2]string `json:"headers"`
	Body    []byte      `json:"body"` // base64; nil: none
}

// http makes the request one to host. Its URL has https, for the cookies that need it.
func (r sentRequest) http(ctx context.Context, host string) (*http.Request, error) {
	if !strings.HasPrefix(r.Path, "/") {
		return nil, fault.New(fault.Invalid, "%s %q: the path must begin with /", r.Method, r.Path)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, "https://"+host+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s %q: %v", r.Method, r.Path, err)
	}
	if r.Body == nil {
		request.Body, request.ContentLength = nil, 0
	}
	for _, h := range r.Headers {
		if strings.EqualFold(h[0], "host") {
			request.Host = h[1]
			continue
		}
		request.Header.Add(h[0], h[1])
	}
	return request, nil
}

// answer is the answer to a request of a test.
type answer struct {
	Status  int         `json:"status"`
	Headers [][2]string `json:"headers"`
	Body    []byte      `json:"body"`
}

func answerOf(got *http.Response, body []byte) answer {
	a := answer{Status: got.StatusCode, Headers: [][2]string{}, Body: body}
	for name, values := range got.Header {
		for _, value := range values {
			a.Headers = append(a.Headers, [2]string{strings.ToLower(name), value})
		}
	}
	slices.SortStableFunc(a.Headers, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return a
}
