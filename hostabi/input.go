package hostabi

import (
	"context"
	"net/netip"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/hostabi/recording"
	"runner.example/internal/caller"
	"runner.example/state/store"
)

// BodyMemory allocates memory for the body of an answer of n bytes. It returns nil if
// there is none at the moment. The memory is valid until the request is over, or until
// the next call.
type BodyMemory interface {
	BodyMemory(n int) []byte
}

// Input is what a run of a handler is given. The owner of the Call sets it before each
// run, and keeps the bytes valid and unchanged until the run is over.
type Input struct {
	// Context ends with the request's time. A deadline.Context does so without a timer.
	Context context.Context
	Host    *Host
	// Request is nil while a module initializes itself without a request.
	Request *abi.Request
	// SentBody is the body as it was sent, which a signature covers; the request's may
	// have defaults filled in. nil: the request's body.
	SentBody []byte
	Caller   caller.Caller
	// Handler is "module handler", the name under which shared limits are counted. The
	// sandbox sets it.
	Handler string
	// Address is the client's, for the audit; the zero Addr if unknown.
	Address netip.Addr
	// Tx is the request's transaction; its owner commits it, if the answer is not streamed.
	Tx *store.Tx
	// Stream sends an answer in parts; nil: its parts become the body of an ordinary answer.
	Stream AnswerStream
	// BodyStream is the body of the request, if it has not arrived yet; nil: it is Request.Body. A run that needs all of it
	// sets Request.Body, and BodyStream to nil.
	BodyStream BodyStream
	// Form is the body of a request on a route with upload; nil: the route has none.
	Form *Form
	// SendsFiles lets the answer be a file: its owner sends Response.File.
	SendsFiles bool
	// ReadOnly denies operations that write or send something.
	ReadOnly bool
	// Background lets the run wait for an instance slot as long as its time lasts, behind requests: no client waits for
	// this run.
	Background bool
	// StreamsOutput sends the output of a command, and the body of a component, as it comes.
	StreamsOutput bool
	// CreatesSession lets the handler create sessions, and list and revoke the sessions of users
	// that it names. ClientSession is the session of the client's cookie, whatever Caller is; it ends
	// when another one is opened.
	CreatesSession bool
	ClientSession  string
	// HostCORS forbids the handler to set Access-Control-* headers.
	HostCORS bool
	// OwnChallenge lets the handler set WWW-Authenticate: the host checks no credentials.
	OwnChallenge bool
	// Attempt counts the runs for this request from 1.
	Attempt int
	// Used is the CPU time that the request used before its first run. It counts
	// as time of its runs.
	Used time.Duration
	// Bodies allocates the bodies of large answers; nil: the heap is used.
	Bodies BodyMemory

	// Recorder collects what the run gets from the host; nil: it is not recorded.
	Recorder *recording.Recorder
	// Draws give the run random bytes and the time, and record them; nil: the host does.
	Draws *recording.Draws
	// Player answers the run, whose Draws are the Player's; nil: the host does.
	Player *recording.Player
}
