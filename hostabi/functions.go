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
		run, ok := bodies[f.Name]
		if !ok {
			panic("BUG: host function " + f.Name + " has no body")
		}
		all = append(all, bind(f, run))
	}
	return all
}

// body is what a host function does. A negative result is an errno.
type body func(c *Call, g guest) int32

var bodies = map[string]body{
	"request_method":       requestMethod,
	"request_path":         requestPath,
	"request_param":        requestParam,
	"request_query":        requestQuery,
	"request_header":       requestHeader,
	"request_pairs":        requestPairs,
	"request_body":         requestBody,
	"context":              requestContext,
	"response_header":      responseHeader,
	"response_send":        responseSend,
	"response_error":       responseError,
	"response_send_result": responseSendResult,
	"call":                 call,
	"call_result":          callResult,
	"call_start":           callStart,
	"call_wait":            callWait,
	"call_take":            callTake,
	"keep_writes":          keepWrites,
	"log":                  logText,
}

// timed are the functions that compute for longer than a look at the clock takes,
// with arguments that a guest can find; the budgets bound what the others do.
var timed = map[string]bool{
	"call": true, "call_start": true, "call_take": true, "log": true, "context": true, "response_header": true, "response_error": true,
	"fd_write": true, "fd_read": true, "environ_get": true, "poll_oneoff": true, "random_get": true,
}

// slow are the functions that may take long: each looks at the clock first.
var slow = map[string]bool{"call": true, "call_start": true, "call_wait": true, "call_take": true}

// bind puts the checks that all functions share before run. An answer can be
// given when a budget is spent, and a log has a budget of its own, so that it
// tells what it dropped.
func bind(f abi.Function, run body) Function {
	answering := strings.HasPrefix(f.Name, "response_")
	logging := f.Name == "log"
	slow, timed := slow[f.Name], timed[f.Name]
	fn := func(ctx context.Context, m api.Module, stack []uint64) {
		gc := guestOf(ctx)
		c := gc.call
		c.inside = true
		result := int32(c.enter(answering, slow))
		if result == 0 || logging {
			if timed {
				gc.beginWork()
			}
			result = run(c, guest{m.Memory(), stack})
			if timed {
				gc.endWork()
			}
			c.checkWork()
		}
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

// guest is the other side of one host call: its memory and its arguments, i32
// words in order.
type guest struct {
	memory api.Memory
	words  []uint64
}

// longest is the first length that no pointer comes with.
const longest = 1 << 31

func (g guest) number(word int) int32 { return api.DecodeI32(g.words[word]) }

// bytes gives the memory that two words name; the slice is the guest's and
// holds until the host call returns. A length of 0 needs no valid pointer.
func (g guest) bytes(word int) ([]byte, bool) {
	at, n := api.DecodeU32(g.words[word]), api.DecodeU32(g.words[word+1])
	if n == 0 {
		return nil, true
	}
	if n >= longest {
		return nil, false
	}
	return g.memory.Read(at, n)
}

// give writes a value into the room the guest offered, when it fits, and
// returns its length.
func (c *Call) give(room, value []byte) int32 {
	if len(value) > len(room) {
		return int32(len(value))
	}
	if !c.move(len(value)) {
		return int32(abi.Limit)
	}
	c.copy(room, value)
	return int32(len(value))
}

// maxCopy is how much is copied at once.
const maxCopy = 256 << 10

// copy copies as much of value as there is room for.
func (c *Call) copy(room, value []byte) {
	n := min(len(room), len(value))
	for ; n > maxCopy && c.work.Spend(maxCopy/4) == nil; n -= maxCopy {
		copy(room, value[:maxCopy])
		room, value = room[maxCopy:], value[maxCopy:]
	}
	copy(room[:min(n, maxCopy)], value)
}

// givePiece writes what fits of value from offset on and returns how much there
// was to write.
func (c *Call) givePiece(room, value []byte, offset int32) int32 {
	if offset < 0 {
		return int32(abi.Invalid)
	}
	rest := value[min(int(offset), len(value)):]
	if !c.move(min(len(room), len(rest))) {
		return int32(abi.Limit)
	}
	c.copy(room, rest)
	return int32(len(rest))
}
