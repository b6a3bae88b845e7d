package hostabi

import (
	"log/slog"

	"runner.example/entity"
	"runner.example/hostabi/abi"
	"runner.example/internal/outbound"
	"runner.example/internal/secret"
	"runner.example/keystore"
	"runner.example/schema"
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

// Call is one run of a handler. Its owner sets the Input, hands it to the sandbox, and
// reads Response and KeepsWrites after the run. It may be used for run after run, by one
// goroutine at a time.
type Call struct {
	Input
	// Response is the answer of the last run. Its bytes are valid until the next Begin,
	// those of Bodies as BodyMemory says.
	Response abi.Response

	budget
	operations
	output

	sandbox      Sandbox      // that the guest runs in; may be nil
	checkFunc    func() error // checkRun, bound once
	initializing bool
	inside       bool    // a host function runs, or failed
	program      program // of a command
}

// keptResultBytes is the most that a Call keeps, from run to run, for the results
// of operations.
const keptResultBytes = 64 << 10

// Begin makes the Call ready for a run: no answer, full budgets, nothing of the
// run before. The sandbox calls it.
func (c *Call) Begin() {
	c.endPending()
	if c.checkFunc == nil {
		c.checkFunc = c.checkRun
	}
	c.Response.Reset()
	c.budget.reset(&c.Input, c.checkFunc)
	c.operations.reset(c.Attempt <= 1)
	c.output.reset(c)
	c.initializing, c.inside = false, false
	c.program.reset()
}

// Initializing says whether the guest runs its own initialization, in which
// every host call but log fails.
func (c *Call) Initializing(yes bool) { c.initializing = yes }

// End ends the operations that are still under way, and writes out what the log
// holds back: lines without an end, and how many were dropped. The sandbox calls
// it when the guest does not run again; nothing that the run began goes on after
// it.
func (c *Call) End() {
	c.endPending()
	c.stdout.flush()
	c.stderr.flush()
	c.logDropped()
}
