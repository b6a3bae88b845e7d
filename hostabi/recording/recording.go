package recording

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
)

// Format is the version of the format of Recordings.
const Format = 1

// The limits of one Recording.
const (
	// MaxBytes is the maximum number of bytes of arguments and answers, and of a body.
	MaxBytes = 1 << 20
	// MaxEvents is the maximum number of events.
	MaxEvents = 10_000
)

// Text is bytes that are usually text. In JSON it is a string, or {"base64": "…"} if it is not UTF-8.
type Text []byte

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.Valid(t) {
		var out strings.Builder
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		err := e.Encode(string(t))
		return []byte(strings.TrimSuffix(out.String(), "\n")), err
	}
	return json.Marshal(map[string][]byte{"base64": t})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err == nil {
		*t = Text(s)
		return nil
	}
	var encoded struct {
		Base64 []byte `json:"base64"`
	}
	err := json.Unmarshal(text, &encoded)
	*t = encoded.Base64
	return err
}

// Recording is a run of a handler: the last run for its request.
type Recording struct {
	Format int `json:"format"`
	// ID is the id of the request.
	ID string `json:"id"`
	// Time is when the run began.
	Time time.Time `json:"time"`
	// Kind is "request", "job" or "call" (of a function, by an operator).
	Kind string `json:"kind"`
	// Release is the id of the release; empty: the app was served without one.
	Release string `json:"release,omitempty"`
	// Module is the file of the module, Sum its SHA-256 in hexadecimal digits.
	Module  string `json:"module"`
	Sum     string `json:"sum"`
	Handler string `json:"handler"`
	// Runs is how often the handler ran for the request: a run that met a conflict is repeated.
	Runs int `json:"runs"`
	// Commit is the number of the last commit that the run has seen; 0: it did not read the store, or did not fail.
	Commit uint64 `json:"commit,omitempty"`

	Request Request `json:"request"`
	Caller  Caller  `json:"caller"`
	// Deadline is the deadline of the request.
	Deadline time.Time `json:"deadline,omitzero"`
	// Image is what the module read when it was loaded, Run what the run read.
	Image Drawn `json:"image"`
	Run   Drawn `json:"run"`

	Events []Event `json:"events"`
	// Truncated: the run did more, but the recording became too large.
	Truncated bool    `json:"truncated,omitempty"`
	Outcome   Outcome `json:"outcome"`

	// Secrets and Credentials are the names that replace values.
	Secrets     []string     `json:"secrets,omitempty"`
	Credentials []Credential `json:"credentials,omitempty"`
	// Note is a text for the reader of an exported file.
	Note string `json:"note,omitempty"`
}

// Credential is a name that replaces a credential.
type Credential struct {
	Name string `json:"name"`
	// Length is the length of the credential in bytes.
	Length int `json:"length"`
}

// Request is the request as the handler saw it.
type Request struct {
	Method   Text      `json:"method"`
	Path     Text      `json:"path"`
	Route    string    `json:"route"`
	Secure   bool      `json:"secure,omitempty"`
	RawQuery *Text     `json:"rawQuery,omitempty"`
	Params   [][2]Text `json:"params,omitempty"`
	Query    [][2]Text `json:"query,omitempty"`
	Headers  [][2]Text `json:"headers,omitempty"`
	Body     Text      `json:"body"`
	// Sent is the body as it was sent; nil: it is Body.
	Sent        *Text `json:"sent,omitempty"`
	Traceparent Text  `json:"traceparent,omitempty"`
	// InParts: the handler has read the body as it came, and the events have it.
	InParts bool     `json:"inParts,omitempty"`
	Job     *abi.Job `json:"job,omitempty"`
	// CreatesSession, HostCORS and OwnChallenge are what the route allows the handler: see hostabi.Input.
	CreatesSession bool `json:"createsSession,omitempty"`
	HostCORS       bool `json:"hostCors,omitempty"`
	OwnChallenge   bool `json:"ownChallenge,omitempty"`
}

// RequestOf returns a copy of a request.
func RequestOf(r *abi.Request, sent []byte) Request {
	c := Request{
		Method: clone(r.Method), Path: clone(r.Path), Route: r.Route, Secure: r.Secure, Params: pairsOf(r.Params), Query: pairsOf(r.Query),
		Headers: pairsOf(r.Headers), Body: clone(r.Body), Traceparent: clone(r.Traceparent), Job: r.Job,
	}
	if r.RawQuery != nil {
		raw := clone(r.RawQuery)
		c.RawQuery = &raw
	}
	if sent != nil && string(sent) != string(r.Body) {
		text := clone(sent)
		c.Sent = &text
	}
	return c
}

func clone(b []byte) Text { return append(Text{}, b...) }

func pairsOf(pairs []abi.Pair) (all [][2]Text) {
	for _, p := range pairs {
		all = append(all, [2]Text{clone(p.Name), clone(p.Value)})
	}
	return all
}

// Request returns the request, and the body as it was sent.
func (r *Request) Request(id string) (request *abi.Request, sent []byte) {
	request = &abi.Request{
		ID: id, Secure: r.Secure, Method: r.Method, Path: r.Path, Route: r.Route, Params: pairsFrom(r.Params), Query: pairsFrom(r.Query),
		Headers: pairsFrom(r.Headers), Body: r.Body, Traceparent: r.Traceparent, Job: r.Job,
	}
	if r.RawQuery != nil {
		request.RawQuery = append([]byte{}, *r.RawQuery...)
	}
	if r.Sent != nil {
		return request, append([]byte{}, *r.Sent...)
	}
	return request, append([]byte{}, r.Body...)
}

func pairsFrom(pairs [][2]Text) (all []abi.Pair) {
	for _, p := range pairs {
		all = append(all, abi.Pair{Name: p[0], Value: p[1]})
	}
	return all
}

// Caller is who called, and from where.
type Caller struct {
	Kind       string          `json:"kind"`
	User       string          `json:"user,omitempty"`
	Tenant     string          `json:"tenant,omitempty"`
	Roles      []string        `json:"roles,omitempty"`
	Session    string          `json:"session,omitempty"`
	Key        string          `json:"key,omitempty"`
	Scope      string          `json:"scope,omitempty"`
	Capability string          `json:"capability,omitempty"`
	As         string          `json:"as,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Claims     json.RawMessage `json:"claims,omitempty"`
	Address    netip.Addr      `json:"address,omitzero"`
}

// CallerOf describes a caller.
func CallerOf(c *caller.Caller, address netip.Addr) Caller {
	return Caller{
		Kind: c.Kind.String(), User: c.UserID, Tenant: c.Tenant, Roles: c.Roles, Session: c.SessionID, Key: c.KeyID, Scope: c.Scope,
		Capability: c.Capability, As: c.As, Metadata: c.Metadata, Claims: c.Claims, Address: address,
	}
}

// Caller returns the caller without Claimed, which rules see.
func (c Caller) Caller() caller.Caller {
	who := caller.Caller{
		UserID: c.User, Tenant: c.Tenant, Roles: c.Roles, SessionID: c.Session, KeyID: c.Key, Scope: c.Scope, Capability: c.Capability,
		As: c.As, Metadata: c.Metadata, Claims: c.Claims,
	}
	for kind := caller.Anonymous; kind <= caller.System; kind++ {
		if kind.String() == c.Kind {
			who.Kind = kind
		}
	}
	return who
}

// The kinds of events.
const (
	// Call is an operation with its answer. Start starts an operation and returns its Number. Wait returns the Number of
	// an operation that has ended. Take takes the answer of the operation Number.
	Call  = "call"
	Start = "start"
	Wait  = "wait"
	Take  = "take"
	// Fetch is a request of a component to another service, and Response its response.
	Fetch    = "fetch"
	Response = "response"
	// Read is a part of the body of the request: see Request.InParts. No result is its end.
	Read = "read"
	// Log is a line of the log: Name is its level, Args its text.
	Log = "log"
)

// Event is something that happened in a run.
type Event struct {
	Kind string `json:"kind"`
	// At is when the event began, in microseconds since the run began. Took is its duration; -1: the run ended in it.
	At   int64 `json:"at"`
	Took int64 `json:"took,omitempty"`
	// Name is the operation.
	Name   string `json:"name,omitempty"`
	Args   Text   `json:"args,omitempty"`
	Number int    `json:"number,omitempty"`
	Result Text   `json:"result,omitempty"`
	// Rows and Row are ranges of Result, as in entity.Result.
	Rows  [2]int `json:"rows,omitzero"`
	Row   [2]int `json:"row,omitzero"`
	Error *Error `json:"error,omitempty"`
}

// Ended reports whether the run went on after the event.
func (e *Event) Ended() bool { return e.Took >= 0 }

// IsCall reports whether the event is a call of the host.
func (e *Event) IsCall() bool { return e.Kind != Log }

// Error is the error of an operation.
type Error struct {
	// Op is the operation of the error; empty: none.
	Op   string `json:"op,omitempty"`
	Code string `json:"code"`
	// Message is what the guest reads.
	Message string `json:"message"`
	Entity  string `json:"entity,omitempty"`
	Field   string `json:"field,omitempty"`
	Value   Text   `json:"value,omitempty"`
	Named   bool   `json:"named,omitempty"`
	Public  string `json:"public,omitempty"`
	// Kind is the kind of an outbound.Error.
	Kind string `json:"kind,omitempty"`
}

// Outcome is how a run ended.
type Outcome struct {
	// Failed: it counts as a failure. Limit: time, CPU or memory ended it.
	Failed bool `json:"failed,omitempty"`
	Limit  bool `json:"limit,omitempty"`
	// Status is the status of the answer, or of the refusal if there was no answer.
	Status int    `json:"status"`
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Failure is the kind of the failure and its message, Frames the active calls, innermost first.
	Failure string    `json:"failure,omitempty"`
	Message string    `json:"message,omitempty"`
	Frames  []string  `json:"frames,omitempty"`
	Headers [][2]Text `json:"headers,omitempty"`
	Body    Text      `json:"body,omitempty"`
	// Streamed: the answer was sent while the handler ran, and Body does not have it.
	Streamed bool `json:"streamed,omitempty"`
}

// SetAnswer sets the answer of the handler. It copies at most MaxBytes of the body.
func (o *Outcome) SetAnswer(r *abi.Response) {
	o.Headers = pairsOf(r.Headers)
	o.Body = clone(r.Body[:min(len(r.Body), MaxBytes)])
}

// Describe returns the outcome on one line: the failure and its place, or the status.
func (o *Outcome) Describe() string {
	if o.Failure == "" {
		return strings.TrimSpace(fmt.Sprintf("%d %s", o.Status, o.Code))
	}
	text := o.Failure
	if o.Message != "" {
		text += ": " + strings.ReplaceAll(o.Message, "\n", " ")
	}
	if len(o.Frames) > 0 {
		text += " at " + o.Frames[0]
	}
	return text
}

// Calls returns how many calls of the host are recorded.
func (r *Recording) Calls() (n int) {
	for i := range r.Events {
		if r.Events[i].IsCall() {
			n++
		}
	}
	return n
}
