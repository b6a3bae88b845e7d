package hostabi

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"runner.example/entity"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/cost"
	"runner.example/internal/outbound"
	"runner.example/internal/secret"
	"runner.example/keystore"
	"runner.example/schema"
	"runner.example/store"
)

// Host is what host functions work with: the rooms below and the limits of one
// run. All runs of a release share one Host; nothing changes it.
type Host struct {
	Keystore *keystore.Keystore
	// Entities is how the active schema's rows lie in the store.
	Entities *entity.Model
	// Schema is the active one: scopes are judged by it.
	Schema *schema.Schema
	// Secrets are the declared secrets, and the only ones that guests can read.
	Secrets secret.Values
	// Origins are where guests can send requests to, by way of Outbound, which
	// must be there when one is declared.
	Origins  outbound.Origins
	Outbound *outbound.Client
	// Logger gets the guests' lines and the causes of internal failures. It
	// must be the redacting one.
	Logger *slog.Logger
	// Limits of one run; the zero value stands for DefaultLimits.
	Limits Limits
}

// Limits bound what one run of a handler may ask of the host. A field that is
// zero has its default.
type Limits struct {
	// HostCalls counts calls of functions of the module "runner".
	HostCalls int
	// MovedBytes counts bytes copied between guest and host, both ways; the
	// request's body is read once without being counted.
	MovedBytes int
	// StoreOps counts operations of call that reach the store.
	StoreOps int
	// Fetches counts requests that are sent to others.
	Fetches int
	// Rows counts rows that operations look at, found or not.
	Rows int
	// ResponseBytes bounds the body of the answer.
	ResponseBytes int
	LogLines      int
	LogBytes      int
	// CPU bounds the time on a processor of all runs for one request together.
	CPU time.Duration
}

// DefaultLimits returns the limits that hold where nothing else is said.
func DefaultLimits() Limits {
	return Limits{
		HostCalls:     1000,
		MovedBytes:    10 << 20,
		StoreOps:      200,
		Fetches:       50,
		Rows:          100_000,
		ResponseBytes: 8 << 20,
		LogLines:      64,
		LogBytes:      16 << 10,
		CPU:           time.Second,
	}
}

// CPU is the limit of that name, or its default.
func (h *Host) CPU() time.Duration { return h.Limits.filled().CPU }

func (l Limits) filled() Limits {
	d := DefaultLimits()
	fill := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	fill(&l.HostCalls, d.HostCalls)
	fill(&l.MovedBytes, d.MovedBytes)
	fill(&l.StoreOps, d.StoreOps)
	fill(&l.Fetches, d.Fetches)
	fill(&l.Rows, d.Rows)
	fill(&l.ResponseBytes, d.ResponseBytes)
	fill(&l.LogLines, d.LogLines)
	fill(&l.LogBytes, d.LogBytes)
	if l.CPU == 0 {
		l.CPU = d.CPU
	}
	return l
}

// BodyMemory allocates memory for the body of an answer of n bytes. It returns nil if
// there is none at the moment. The memory is valid until the request is over, or until
// the next call.
type BodyMemory interface {
	BodyMemory(n int) []byte
}

// Call is one run of a handler. Its owner sets the exported fields, hands it to
// the sandbox, and reads Response and KeepsWrites when the run is over; it may
// be used for run after run, by one goroutine at a time.
type Call struct {
	// Context ends when the time of the request is over. A Deadline does so
	// without a timer.
	Context context.Context
	Host    *Host
	// Request is nil while a module initializes itself without a request.
	Request *abi.Request
	// SentBody is the body as it came, which is what a sender signs, where the request's
	// may have defaults filled in. nil: that of the request.
	SentBody []byte
	Caller   caller.Caller
	// Handler is the module's name and the handler's: what one handler has a share of
	// is counted by it. The sandbox sets it.
	Handler string
	// Address is the client's, for the audit; the zero Addr when it has none.
	Address netip.Addr
	// Tx is the request's transaction; whoever opened it commits it.
	Tx *store.Tx
	// Mints lets the handler open and end sessions. ClientSession is the one that the
	// client's cookie is of, whoever Caller is; it ends when another is opened.
	Mints         bool
	ClientSession string
	// HostCORS keeps the handler from saying which pages may read its answer: the host
	// does, or nobody.
	HostCORS bool
	// Attempt counts the runs for this request from 1.
	Attempt int
	// Used is the processor time that the request has used before its first run. It counts
	// as time of its runs.
	Used time.Duration
	// Bodies gives memory for large bodies of answers; nil: the heap does.
	Bodies BodyMemory

	// Response is the answer of the last run. Its bytes hold until the next
	// Begin, those of Bodies as long as BodyMemory says.
	Response abi.Response

	limits         Limits
	initializing   bool
	keepsWrites    bool
	overloaded     bool
	setCookie      string // that the answer is to have; empty: none
	opened         string // the session that this run has opened
	hostCalls      int
	inside         bool // a host function runs, or failed
	waited         time.Duration
	cpu            time.Duration // of all runs for this request
	onWait         func(begins bool)
	onWork         func() error
	work           cost.Meter   // of what the host functions of this run compute
	lookFunc       func() error // look, made once
	moved          int
	storeOps       int
	fetches        int
	sent           bool   // by a run for this request
	contextText    []byte // the JSON of the function context, once asked for
	rows           entity.Access
	reachesRows    bool          // rows is for this run
	outdated       bool          // the schema was changed meanwhile
	result         entity.Result // of the last operation
	called         bool          // there was one
	succeeded      bool          // it did not fail
	tickets        *tickets      // nil: no operation was started
	log            logBudget
	stdout, stderr output
	program        program // of a command
}

// keptResultBytes is the most that a Call keeps, from run to run, for the results
// of operations.
const keptResultBytes = 64 << 10

// Begin makes the Call ready for a run: no answer, full budgets, nothing of the
// run before. The sandbox calls it.
func (c *Call) Begin() {
	c.endTickets()
	c.Response.Reset()
	c.limits = c.Host.Limits.filled()
	c.initializing, c.keepsWrites, c.called, c.succeeded = false, false, false, false
	c.overloaded = false
	c.setCookie, c.opened = "", ""
	if c.lookFunc == nil {
		c.lookFunc = c.look
	}
	c.work.Reset(c.lookFunc)
	c.reachesRows, c.outdated = false, false
	c.hostCalls, c.moved, c.storeOps, c.fetches = 0, 0, 0, 0
	c.inside, c.waited = false, 0
	if c.Attempt <= 1 {
		c.cpu, c.sent = c.Used, false
	}
	if c.Request != nil {
		c.moved = -len(c.Request.Body)
	}
	c.contextText, c.result = c.contextText[:0], entity.Result{JSON: c.result.JSON[:0]}
	if cap(c.result.JSON) > keptResultBytes {
		c.result.JSON = nil
	}
	c.log = logBudget{}
	c.program.reset()
	c.stdout = output{call: c, level: slog.LevelInfo, line: c.stdout.line[:0]}
	c.stderr = output{call: c, level: slog.LevelWarn, line: c.stderr.line[:0]}
}

// Initializing says whether the guest runs its own initialization, in which
// every host call but log fails.
func (c *Call) Initializing(yes bool) { c.initializing = yes }

// End ends the operations that are still under way, and writes out what the log
// holds back: lines without an end, and how many were dropped. The sandbox calls
// it when the guest does not run again; nothing that the run began goes on after
// it.
func (c *Call) End() {
	c.endTickets()
	c.stdout.flush()
	c.stderr.flush()
	c.logDropped()
}

// SetCookie is the value of the header of that name by which the client gets the
// session that the handler opened, or loses the one that it ended; empty where it did
// neither. It is for an answer whose writes are committed.
func (c *Call) SetCookie() string { return c.setCookie }

// KeepsWrites reports whether the handler asked that its writes are committed
// whatever it answers.
func (c *Call) KeepsWrites() bool { return c.keepsWrites }

// Overloaded reports whether there was no memory for the body of the answer.
func (c *Call) Overloaded() bool { return c.overloaded }

// move counts bytes that are about to be copied and says whether they may be;
// when not, the budget counts as spent.
func (c *Call) move(n int) bool {
	c.moved += n
	return c.moved <= c.limits.MovedBytes
}
