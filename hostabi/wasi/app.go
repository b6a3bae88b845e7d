package wasi

import (
	"bytes"
	"cmp"
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
	return ok(canon.Part(func(l *canon.Lowered, t *component.ValueType, to, at int) error {
		return putPairs(l, t.Element, to, at, r.call.Request.Params, textOf)
	}))
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

// putPairs puts a list of pairs, which have the type t, where a block has its pointer. text makes the bytes of a value
// UTF-8.
func putPairs(l *canon.Lowered, t *component.ValueType, to, at int, pairs []abi.Pair, text func([]byte) []byte) error {
	list, err := l.List(to, at, len(pairs), t)
	for i, p := range pairs {
		if err != nil {
			break
		}
		offset := i * int(t.Size())
		err = cmp.Or(l.Bytes(list, offset, textOf(p.Name)), l.Bytes(list, offset+int(t.Offset(1)), text(p.Value)))
	}
	return err
}

// handlerType is the type of handlers.
var handlerType = sync.OnceValue(func() *component.FuncType { return host().Handler() })

// beginHandler writes the request where the guest wants it.
func beginHandler(c *hostabi.Call, m api.Memory, core []uint64) {
	r, q, t := runOf(c), c.Request, handlerType().Params[0].Type
	r.enter(m)
	l, pair, at := &r.result, t.Fields[2].Type.Element, func(field int) int { return int(t.Offset(field)) }
	l.Begin(t)
	r.place("request", uint32(core[0]), cmp.Or(
		l.Bytes(0, at(0), textOf(q.Method)), l.Bytes(0, at(1), textOf(q.Path)),
		putPairs(l, pair, 0, at(2), q.Params, textOf), putPairs(l, pair, 0, at(3), q.Query, textOf),
		putPairs(l, pair, 0, at(4), q.Headers, abi.HeaderText),
		l.Bytes(0, at(5), q.Body),
	), true)
	r.ask(core)
}

// endHandler reads the result of a handler, and answers.
func endHandler(c *hostabi.Call, m api.Memory, core []uint64) {
	r := runOf(c)
	r.enter(m)
	r.reader.Lifter = canon.Lifter{Memory: whole(m), Budget: c.ResponseBytes() + maxText}
	failed, response := r.reader.Place(handlerType().Result, uint32(core[0])).Case()
	if failed != 0 {
		code, _ := response.Field(0).Case()
		c.AnswerFailure(string(response.Field(2).Bytes()), abi.NotFound-abi.Errno(code), string(response.Field(1).Bytes()))
		return
	}
	if c.Response.Status != 0 {
		return // the operation problem has answered
	}
	headers := response.Field(1)
	for i := range headers.Length() {
		name, value := headers.Element(i).Field(0).Bytes(), headers.Element(i).Field(1).Bytes()
		if errno := c.Function("response_header", name, value); errno < 0 {
			r.refused(errno, "header %.60q of the answer", name)
			return
		}
	}
	r.send(int(response.Field(0).Unsigned()), response.Field(2))
}

// send answers with a body.
func (r *run) send(status int, body canon.Place) {
	const bytes, text, lastResult, problem = 0, 1, 2, 3 // cases of body
	errno := int32(0)
	switch kind, body := body.Case(); kind {
	case bytes, text:
		errno = r.call.Function("response_send", status, body.Bytes())
	case lastResult:
		part, _ := body.Case()
		errno = r.call.Function("response_send_result", status, int(part))
		if errno == int32(abi.NotFound) && part == abi.PartRow {
			r.call.AnswerFailure("", abi.NotFound, "")
			return
		}
	case problem:
		errno = r.call.Function("response_error", status, body.Field(0).Bytes(), body.Field(1).Bytes())
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
