package wasi

import (
	"bytes"
	_ "embed"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/component"
	"runner.example/internal/component/canon"
	"runner.example/internal/wasm"
)

// The functions of runner:app are those of the module "runner": they run the same code, with the same checks and limits.

//go:embed app.wasm
var appFile []byte

// App is a component that imports all of runner:app, and a function "handler" that has the type of handlers. It must
// not be changed.
var App = sync.OnceValue(func() *component.Plan {
	plan, err := component.Read(appFile, wasm.DefaultLimits())
	if err != nil {
		panic("BUG: app.wasm: " + err.Error())
	}
	return plan
})

// maxText is the limit of the bytes in the texts of a call. It is above the limit of an operation's arguments, whose
// error says what is too long.
const maxText = 16 << 20

// appFunctions implements the interfaces of runner:app.
var appFunctions = func() map[string]map[string]function {
	all := map[string]map[string]function{
		"current-request": {"context": currentContext, "params": currentParams, "raw-query": currentRawQuery, "keep-writes": keepWrites},
		"logging":         {"log": logLine},
		"operations": {
			"call":        func(r *run, a []any) any { return r.started(a[0].(string), "call", a...) },
			"last-result": func(r *run, _ []any) any { return r.lastResult("") },
			"start":       func(r *run, a []any) any { return r.started(a[0].(string), "call_start", a...) },
			"wait":        waitOperation,
			"take":        func(r *run, a []any) any { return r.started("", "call_take", int(a[0].(uint64))) },
		},
	}
	for _, op := range abi.Ops() {
		in, name, err := op.WIT()
		if err != nil {
			panic("BUG: " + err.Error())
		}
		if all[in] == nil {
			all[in] = map[string]function{}
		}
		all[in][name] = func(r *run, a []any) any {
			if errno := r.call.Function("call", op.Name, a[0]); errno < 0 {
				return r.failed(op.Name, errno)
			}
			return r.lastResult(op.Name)
		}
	}
	return all
}()

// failed is the result of a function that has failed with an errno.
func (r *run) failed(operation string, errno int32) any {
	e := abi.Errno(errno)
	return fail([]any{codeOf(e), r.call.Message(e), operation})
}

// codeOf is the case of the WIT enum for an errno.
func codeOf(e abi.Errno) canon.Case {
	if e < abi.Internal {
		e = abi.Internal
	}
	return canon.Case{Index: uint32(abi.NotFound - e)}
}

// lastResult reads the result of the last operation.
func (r *run) lastResult(operation string) any {
	text := make([]byte, len(r.call.LastResult()))
	if errno := r.call.Function("call_result", 0, text); errno < 0 {
		return r.failed(operation, errno)
	}
	return ok(text)
}

// started calls a function that returns a number or the error of an operation.
func (r *run) started(operation, name string, args ...any) any {
	n := r.call.Function(name, args...)
	if n < 0 {
		return r.failed(operation, n)
	}
	return ok(uint64(n))
}

func waitOperation(r *run, _ []any) any {
	switch n := r.call.Function("call_wait"); {
	case n == int32(abi.NotFound):
		return ok(none)
	case n < 0:
		return r.failed("", n)
	default:
		return ok(some(uint64(n)))
	}
}

func currentContext(r *run, _ []any) any {
	buffer := make([]byte, 4<<10)
	n := r.call.Function("context", buffer)
	if int(n) > len(buffer) { // nothing was written
		buffer = make([]byte, n)
		n = r.call.Function("context", buffer)
	}
	if n < 0 {
		return r.failed("", n)
	}
	return ok(buffer[:n])
}

func currentParams(r *run, _ []any) any {
	if n := r.call.Function("request_pairs", abi.PairsParams, []byte(nil)); n < 0 {
		return r.failed("", n)
	}
	return ok(pairsOf(r.call.Request.Params))
}

func currentRawQuery(r *run, _ []any) any {
	if n := r.call.Function("request_pairs", abi.PairsRawQuery, []byte(nil)); n < 0 {
		return r.failed("", n)
	}
	if r.call.Request.RawQuery == nil {
		return ok(none)
	}
	return ok(some(textOf(r.call.Request.RawQuery)))
}

func keepWrites(r *run, _ []any) any {
	r.call.Function("keep_writes")
	return nil
}

func logLine(r *run, a []any) any {
	r.call.Function("log", int(a[0].(canon.Case).Index), a[1])
	return nil
}

// textOf returns bytes of a request as those of a string, which is UTF-8.
func textOf(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\ufffd"))
}

func pairsOf(pairs []abi.Pair) []any {
	all := make([]any, len(pairs))
	for i, p := range pairs {
		all[i] = []any{textOf(p.Name), textOf(p.Value)}
	}
	return all
}

func headersOf(pairs []abi.Pair) []any {
	all := make([]any, len(pairs))
	for i, p := range pairs {
		all[i] = []any{textOf(p.Name), abi.HeaderText(p.Value)}
	}
	return all
}

// handlerType is the type of handlers.
var handlerType = sync.OnceValue(func() *component.FuncType { return host().Handler() })

// beginHandler writes the request where the guest wants it.
func beginHandler(c *hostabi.Call, m api.Memory, core []uint64) {
	r, q := runOf(c), c.Request
	r.enter(m)
	request := []any{textOf(q.Method), textOf(q.Path), pairsOf(q.Params), pairsOf(q.Query), headersOf(q.Headers), q.Body}
	r.write("request", handlerType().Params[0].Type, uint32(core[0]), request, true)
}

// endHandler reads the result of a handler, and answers.
func endHandler(c *hostabi.Call, m api.Memory, core []uint64) {
	r := runOf(c)
	r.enter(m)
	lifter := canon.Lifter{Memory: whole(m), Budget: c.ResponseBytes() + maxText}
	v, err := lifter.Load(handlerType().Result, uint32(core[0]))
	if err != nil {
		c.Trap("result of the handler: %v", err)
	}
	result := v.(canon.Case)
	if result.Index != 0 {
		e := result.Value.([]any)
		c.AnswerFailure(e[2].(string), abi.NotFound-abi.Errno(e[0].(canon.Case).Index), e[1].(string))
		return
	}
	response := result.Value.([]any)
	status := int(response[0].(uint64))
	for _, h := range response[1].([]any) {
		name := h.([]any)[0].(string)
		if errno := c.Function("response_header", name, h.([]any)[1]); errno < 0 {
			r.refused(errno, "header %.60q of the answer", name)
			return
		}
	}
	r.send(status, response[2].(canon.Case))
}

// send answers with a body.
func (r *run) send(status int, body canon.Case) {
	const bytes, text, lastResult, problem = 0, 1, 2, 3 // cases of body
	errno := int32(0)
	switch body.Index {
	case bytes, text:
		errno = r.call.Function("response_send", status, body.Value)
	case lastResult:
		part := int(body.Value.(canon.Case).Index)
		errno = r.call.Function("response_send_result", status, part)
		if errno == int32(abi.NotFound) && part == abi.PartRow {
			r.call.AnswerFailure("", abi.NotFound, "")
			return
		}
	case problem:
		p := body.Value.([]any)
		errno = r.call.Function("response_error", status, p[0], p[1])
	}
	if errno < 0 {
		r.refused(errno, "answer with status %d", status)
	}
}

// refused makes the handler fail: the host does not accept its answer.
func (r *run) refused(errno int32, format string, args ...any) {
	e := abi.Errno(errno)
	r.call.AnswerFailure("response", e, fmt.Sprintf(format, args...)+": "+r.call.Message(e))
}
