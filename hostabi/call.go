package hostabi

import (
	"context"
	"log/slog"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/hostabi/longwork"
	"runner.example/hostabi/outbound"
	"runner.example/hostabi/password"
	"runner.example/internal/clock"
	"runner.example/internal/fairqueue"
	"runner.example/internal/secret"
	"runner.example/internal/settings"
	"runner.example/keystore"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/jobs"
	"runner.example/state/store"
)

// Host is what host functions use: the packages below and the limits of one run. All runs
// of a release share one Host, which must not be changed.
type Host struct {
	Keystore *keystore.Keystore
	// Store has the transactions of operations after an answer has begun.
	Store *store.Store
	// Entities maps the rows of the active schema to the store.
	Entities *entity.Model
	// Schema is the active schema. Scopes are checked by it.
	Schema *schema.Schema
	// Jobs says when no more jobs may wait; nil: never. KeepJobs is how long jobs are kept that a
	// guest cancels.
	Jobs     *jobs.Queue
	KeepJobs jobs.Keep
	// Secrets are the declared secrets, and the only ones that guests can read.
	Secrets secret.Values
	// Origins are the origins that guests can send requests to, through Outbound. Outbound
	// must be set if there is any.
	Origins  outbound.Origins
	Outbound *outbound.Client
	// TakePublic counts a request to a public host that the schema does not list, by the caller's tenant or "", and
	// reports whether it may be sent. Any goroutine may call it; nil: all may be sent.
	TakePublic func(tenant string) bool
	// Passwords are the parameters of hashes of passwords.
	Passwords password.Options
	// LongWork is where passwords are hashed and RSA keys are made. It must be set if a guest
	// may do that.
	LongWork *longwork.Slots
	// Logger gets the guests' lines and the causes of internal errors. It must redact
	// secrets.
	Logger *slog.Logger
	// Calendar is what guests see as the time; nil: the machine's.
	Calendar clock.Calendar
	// Observe is told what the schema has allowed and refused; nil: nobody is.
	Observe schema.Observer
	// Sleep moves the Calendar by d in place of a wait, while a handler does nothing but sleep; nil: handlers wait.
	Sleep func(d time.Duration)
	// Limits of one run.
	Limits Limits
	// Messages is told each message that a program has written to the host's file, and its answer, before the program
	// goes on; nil: none. It must not keep the bytes.
	Messages func(message, answer []byte)
	// Test answers the operation "test" of the module of a test run; nil: there is no such operation. It gets JSON and
	// returns JSON; it may wait until ctx ends, and is called by several goroutines.
	Test func(ctx context.Context, args []byte) ([]byte, error)
}

// NewHost returns a host. A limit or a parameter of hashes that is zero has its default.
func NewHost(h Host) *Host {
	settings.FillZero(&h)
	h.Calendar = h.Calendar.Or()
	return &h
}

// now is the time that the guest of c sees. Without a host, as while a module is initialized, it is the machine's.
func (c *Call) now() time.Time {
	if c == nil || c.Host == nil {
		return clock.System()
	}
	return c.Host.Calendar.Or()()
}

// Call is one run of a handler. Its owner sets the Input, hands it to the sandbox, and
// reads Response and KeepsWrites after the run. It may be used for run after run, by one
// goroutine at a time.
type Call struct {
	Input
	// Response is the answer of the last run. Its bytes are valid until the next Begin,
	// those of Bodies as BodyMemory says.
	Response abi.Response
	// Spent is what the runs of the request have used, if the sandbox measures it. The
	// caller sets it to zero before the first.
	Spent Spent

	budget
	operationState
	output
	answerState
	bodyState
	runFiles

	sandbox      Sandbox      // that the guest runs in; may be nil
	guest        *Guest       // that the call is bound to
	checkFunc    func() error // checkRun, bound once, as the next two
	fileOf       func(id string) (schema.File, bool)
	sawFile      func(schema.File, entity.FileOwner)
	initializing bool
	stopping     bool // see Stopping
	muted        bool
	inside       bool    // a host function runs, or failed
	program      program // of a command
	start        *Start  // of a program; nil: it is no start
	resumed      bool    // the program waited for the request
	live         bool    // the host answers what the Player does not
	files        fileTable
	extension    Extension // of a component
	texts        texts     // arguments of Function, with their memory
	words        []uint64
}

// keptResultBytes is the largest buffer for results that a Call keeps between runs.
const keptResultBytes = 64 << 10

// Spent is the time in which a handler computed, and the fuel that it used.
type Spent struct {
	Time time.Duration
	Fuel int64
}

// Begin prepares the Call for a run: no answer, full budgets, no state of the previous
// run. The sandbox calls it.
func (c *Call) Begin() {
	c.endPending()
	c.streams.closeAll()
	if c.checkFunc == nil {
		c.checkFunc, c.fileOf, c.sawFile = c.checkRun, c.writableFile, c.noteFile
	}
	c.Response.Reset()
	c.budget.reset(&c.Input, c.checkFunc)
	c.operationState.reset(c.Attempt <= 1)
	c.output.reset(c)
	c.answerState = answerState{}
	c.bodyState.reset(c.Attempt <= 1)
	c.initializing, c.stopping, c.muted, c.inside = false, false, false, false
	c.program.reset()
	c.start, c.resumed, c.live = nil, false, false
	if c.Recorder != nil {
		c.Recorder.Begin()
	}
	if c.Draws != nil && c.Player == nil {
		c.Draws.Begin()
	}
	c.files.begin()
	c.runFiles.reset()
}

// parties are the handler and the caller, which the run's slots are counted for.
func (c *Call) parties() fairqueue.Parties {
	return fairqueue.Parties{c.Handler, string(c.Caller.AppendIdentity(nil, c.Address))}
}

// Initializing sets whether the guest runs its own initialization, in which every host
// call but log fails.
func (c *Call) Initializing(yes bool) { c.initializing = yes }

// Stopping says that the run is over: every host call fails, and only the sandbox limits the
// time from now on. With reports the guest may log again, to say where it stopped.
func (c *Call) Stopping(reports bool) {
	c.stopping, c.muted = true, !reports
	if reports {
		c.log = logBudget{dropped: c.log.dropped}
	}
}

// End cancels the pending operations and waits for them, and closes the streams. Then it logs incomplete lines and
// the number of dropped ones; if the guest has reported failures, Failures logs that number. The sandbox
// calls it after the last guest code of a run.
func (c *Call) End() {
	c.endPending()
	c.streams.closeAll()
	c.closeWriters()
	if c.extension != nil {
		c.extension.End()
	}
	c.stdout.flush()
	c.stderr.flush()
	c.logCrash()
	if len(c.reports) == 0 {
		c.logDropped()
	}
}
