package hostabi

import (
	"context"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi/abi"
)

// Function is one host function, ready to be exported to guests.
type Function struct {
	Name            string
	Params, Results []api.ValueType
	// Fn must be called under a *Guest that is bound to a Call.
	Fn api.GoModuleFunc
}

// Functions returns the functions of the module "runner", in the order of the
// table that describes them.
func Functions() []Function {
	var all []Function
	for _, f := range abi.Functions() {
		all = append(all, byName[f.Name].bind())
	}
	return all
}

// implementation implements a host function. A negative result is an errno.
type implementation func(c *Call, g guest) int32

var implementations = map[string]implementation{
	"request_method":       requestMethod,
	"request_path":         requestPath,
	"request_param":        requestParam,
	"request_query":        requestQuery,
	"request_header":       requestHeader,
	"request_pairs":        requestPairs,
	"request_body":         requestBody,
	"request_read":         requestRead,
	"context":              requestContext,
	"response_header":      responseHeader,
	"response_send":        responseSend,
	"response_error":       responseError,
	"response_send_result": responseSendResult,
	"response_begin":       responseBegin,
	"response_write":       responseWrite,
	"call":                 call,
	"call_result":          callResult,
	"call_start":           callStart,
	"call_wait":            callWait,
	"call_take":            callTake,
	"request_next":         requestNext,
	"keep_writes":          keepWrites,
	"log":                  logText,
}

// timed are the functions that some arguments make compute for longer than reading the
// clock takes. The budgets limit the others.
var timed = map[string]bool{
	"call": true, "call_start": true, "call_take": true, "log": true, "context": true,
	"response_header": true, "response_error": true, "response_write": true, "request_read": true,
	"fd_write": true, "fd_read": true, "environ_get": true, "poll_oneoff": true, "random_get": true,
}

// slow are the functions that may take long: each checks the request's time first.
var slow = map[string]bool{"response_begin": true, "response_write": true, "call": true, "call_start": true, "call_wait": true, "call_take": true}

// boundFunction is a function with what bind knows of it.
type boundFunction struct {
	abi.Function
	body implementation
	// A guest can answer when a budget is spent. The log has its own budget, so that it can report how
	// much it dropped, and waiting for a request needs none.
	answering, always bool
	slow, timed       bool
	reading           bool // call_result, which has what it reads free once
	reports           bool // its error is the last result
}

// byName has the functions by their names. init sets it, because the functions refer to it.
var byName map[string]*boundFunction

func init() {
	byName = map[string]*boundFunction{}
	for _, f := range abi.Functions() {
		body, ok := implementations[f.Name]
		if !ok {
			panic("BUG: host function " + f.Name + " has no body")
		}
		byName[f.Name] = &boundFunction{
			Function: f, body: body,
			answering: strings.HasPrefix(f.Name, "response_"), always: f.Name == "log" || f.Name == "request_next",
			slow: slow[f.Name], timed: timed[f.Name], reading: f.Name == "call_result",
			reports: f.Name == "call" || f.Name == "call_start" || f.Name == "call_take",
		}
	}
}

// run checks what all functions share, and runs the function. timed says whether to measure its time.
func (f *boundFunction) run(gc *Guest, c *Call, g guest, timed bool) int32 {
	result := int32(0)
	if !f.reading || c.unread == 0 {
		result = int32(c.enter(f.answering, f.slow))
	}
	if (f.slow || f.reading) && result == int32(abi.Limit) {
		c.refuse()
	}
	if result == 0 || f.always {
		if timed {
			gc.beginWork()
		}
		result = f.body(c, g)
		if timed {
			gc.endWork()
		}
		c.checkWork()
	}
	return result
}

// bind makes the function one that guests call.
func (f *boundFunction) bind() Function {
	fn := func(ctx context.Context, m api.Module, stack []uint64) {
		gc := guestOf(ctx)
		c := gc.call
		c.inside = true
		result := f.run(gc, c, guest{m.Memory(), stack}, f.timed)
		c.inside = false
		if f.Result {
			stack[0] = api.EncodeI32(result)
		}
	}
	b := Function{Name: f.Name, Fn: fn}
	for range f.Words() {
		b.Params = append(b.Params, api.ValueTypeI32)
	}
	if f.Result {
		b.Results = []api.ValueType{api.ValueTypeI32}
	}
	return b
}
