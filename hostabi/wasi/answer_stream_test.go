package wasi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
)

// receiver is a client that takes the parts of an answer, until it is gone.
type receiver struct {
	status int
	parts  []string
	waits  bool // each part must be waited for
	waited int
	gone   bool
}

func (c *receiver) Begin(r *abi.Response) (bool, error) {
	c.status = r.Status
	return c.waits, c.result()
}

func (c *receiver) Write(part []byte) (bool, error) {
	c.parts = append(c.parts, string(part))
	return c.waits, c.result()
}

func (c *receiver) Gone() <-chan struct{} { return nil }

func (c *receiver) Flush() error {
	c.waited++
	return c.result()
}

func (c *receiver) result() error {
	if c.gone {
		return errors.New("gone")
	}
	return nil
}

// newStreamingGuest is a guest on a route with stream:, and its client.
func newStreamingGuest(t *testing.T, limits hostabi.Limits) (*guest, *receiver) {
	g, c := newGuest(t, limits), &receiver{}
	g.call.Stream, g.call.StreamsOutput = c, true
	return g, c
}

func TestTheBodyOfAnAnswerIsSentAsItIsWritten(t *testing.T) {
	g, c := newStreamingGuest(t, hostabi.Limits{ResponseBytes: 10})
	_, outparam := g.http()
	response, body := g.response("x-a", "1")
	stream := value(g.do(types+"[method]outgoing-body.write", body))
	g.expect("#0", streams+"[method]output-stream.blocking-write-and-flush", stream, []byte("before"))
	if c.status != 0 {
		t.Errorf("the answer has begun before its head was there: %d", c.status)
	}
	g.do(types+"[method]outgoing-response.set-status-code", response, uint64(201))
	g.do(types+"[static]response-outparam.set", outparam, ok(response))
	if c.status != 201 || len(c.parts) != 1 || c.parts[0] != "before" || fmt.Sprintf("%s", g.call.Response.Headers) != "[{x-a 1} {content-type application/octet-stream}]" {
		t.Errorf("the answer begins with %d %q, %s", c.status, c.parts, g.call.Response.Headers)
	}
	c.waits = true
	g.expect("#0", streams+"[method]output-stream.blocking-write-and-flush", stream, []byte("more than an answer may have"))
	g.do(streams+"[method]output-stream.check-write", stream)
	g.expect("#0", streams+"[method]output-stream.write-zeroes", stream, uint64(2))
	g.expect("#0", streams+"[method]output-stream.write", stream, []byte{})
	g.expect("#0", streams+"[method]output-stream.flush", stream)
	if len(c.parts) != 3 || c.parts[1] != "more than an answer may have" || c.parts[2] != "\x00\x00" || c.waited != 2 {
		t.Errorf("the client has %q, and was waited for %d times", c.parts, c.waited)
	}
	g.drop(streams, "output-stream", stream)
	g.expect("#0", types+"[static]outgoing-body.finish", body, none)
	if err := g.end(); err != nil || !g.call.Streaming() || g.call.Response.Status != 201 || len(g.call.Response.Body) > 0 {
		t.Errorf("%v %+v", err, g.call.Response)
	}
}

// What is complete when the head is there is an ordinary answer, and so is one whose status has no body.
func TestACompleteAnswerIsNotStreamed(t *testing.T) {
	for what, do := range map[string]func(g *guest, outparam any){
		"without a body": func(g *guest, outparam any) {
			g.do(types+"[static]response-outparam.set", outparam, ok(g.do(types+"[constructor]outgoing-response", g.fields())))
		},
		"with a body": func(g *guest, outparam any) {
			response, body := g.response()
			g.write(body, "all")
			g.expect("#0", types+"[static]outgoing-body.finish", body, none)
			g.do(types+"[static]response-outparam.set", outparam, ok(response))
		},
		"204": func(g *guest, outparam any) {
			response, body := g.response()
			g.do(types+"[method]outgoing-response.set-status-code", response, uint64(204))
			g.do(types+"[static]response-outparam.set", outparam, ok(response))
			g.expect("#0", types+"[static]outgoing-body.finish", body, none)
		},
	} {
		g, c := newStreamingGuest(t, hostabi.Limits{})
		_, outparam := g.http()
		do(g, outparam)
		if err := g.end(); err != nil || g.call.Streaming() || c.status != 0 || g.call.Response.Status == 0 {
			t.Errorf("%s: %v, the client has %d, the answer is %d %q", what, err, c.status, g.call.Response.Status, g.call.Response.Body)
		}
	}
}

// Without a client that takes parts, as in a job, the answer is whole, and has the limit of an answer.
func TestAnAnswerWithoutAClientIsWhole(t *testing.T) {
	g, _ := newStreamingGuest(t, hostabi.Limits{})
	g.call.Stream = nil
	_, outparam := g.http()
	response, body := g.response()
	g.do(types+"[static]response-outparam.set", outparam, ok(response))
	g.write(body, "all")
	g.expect("#0", types+"[static]outgoing-body.finish", body, none)
	if err := g.end(); err != nil || g.call.Streaming() || string(g.call.Response.Body) != "all" {
		t.Errorf("%v %q", err, g.call.Response.Body)
	}
}

// The calls and the bytes of parts have no limit: the client limits them.
func TestAComponentMayWriteAnyNumberOfParts(t *testing.T) {
	g, c := newStreamingGuest(t, hostabi.Limits{HostCalls: 20, MovedBytes: 20_000})
	_, outparam := g.http()
	response, body := g.response()
	g.do(types+"[static]response-outparam.set", outparam, ok(response))
	stream := value(g.do(types+"[method]outgoing-body.write", body))
	for range 100 {
		g.do(streams+"[method]output-stream.check-write", stream)
		g.expect("#0", streams+"[method]output-stream.write", stream, make([]byte, 1000))
		g.do(streams+"[method]output-stream.flush", stream)
		ready := g.do(streams+"[method]output-stream.subscribe", stream)
		g.do(poll+"poll", []any{ready})
		g.drop(poll, "pollable", ready)
	}
	if len(c.parts) != 100 {
		t.Errorf("the client has %d parts", len(c.parts))
	}
}

func TestAWriteFailsWhenTheClientIsGone(t *testing.T) {
	g, c := newStreamingGuest(t, hostabi.Limits{})
	_, outparam := g.http()
	response, body := g.response()
	g.do(types+"[static]response-outparam.set", outparam, ok(response))
	stream := value(g.do(types+"[method]outgoing-body.write", body))
	g.expect("#0", streams+"[method]output-stream.blocking-write-and-flush", stream, []byte("part"))
	c.gone = true
	failed := value(g.do(streams+"[method]output-stream.blocking-write-and-flush", stream, []byte("part")))
	g.expect("the client takes no more of the answer", "wasi:io/error@0.2 [method]error.to-debug-string", value(failed))
	g.expect("#1 #7", types+"http-error-code", value(failed))
	g.expect("#1 #1", streams+"[method]output-stream.check-write", stream)
	g.drop(streams, "output-stream", stream)
	g.expect("#1 #7", types+"[static]outgoing-body.finish", body, none)
	if err := g.end(); err != nil {
		t.Errorf("a handler that ends then: %v", err)
	}
}

// A begun answer that is not complete is cut off.
func TestABegunAnswerThatIsNotComplete(t *testing.T) {
	for want, do := range map[string]func(g *guest, body any){
		"was not finished":                          func(g *guest, body any) { g.write(body, "a") },
		"it has 2 bytes, and Content-Length says 3": func(g *guest, body any) { g.write(body, "12"); g.do(types+"[static]outgoing-body.finish", body, none) },
	} {
		g, c := newStreamingGuest(t, hostabi.Limits{})
		_, outparam := g.http()
		response, body := g.response("content-length", "3")
		g.do(types+"[static]response-outparam.set", outparam, ok(response))
		do(g, body)
		if err := g.end(); err == nil || !strings.Contains(err.Error(), want) || c.status != 200 {
			t.Errorf("%v, want %s; the client has %d", err, want, c.status)
		}
	}
}

// WASI 0.3.
func TestTheBodyOfATasksAnswerIsSentAsItIsWritten(t *testing.T) {
	g, c := newStreamingGuest(t, hostabi.Limits{ResponseBytes: 10})
	g.must("begin_request")
	r, w := g.pipe("stream", bytesOf)
	copy(g.memory[512:], "an answer of parts")
	g.want(blocked, op("stream.write async", bytesOf), w, 512, 3) // the stream has no reader
	g.responds(some(uint32(r)), "content-type", "text/plain")
	if c.status != 200 || len(c.parts) != 1 || c.parts[0] != "an " {
		t.Errorf("the answer begins with %d %q", c.status, c.parts)
	}
	set := g.must("waitable-set.new")
	g.must("waitable.join", w, set)
	g.want(3, "waitable-set.wait", set, 900)
	g.want(15<<4, op("stream.write", bytesOf), w, 515, 15)
	if len(c.parts) != 2 || c.parts[1] != "answer of parts" {
		t.Errorf("the client has %q", c.parts)
	}
	c.gone = true
	g.want(dropped, op("stream.write", bytesOf), w, 512, 3)
	g.must(op("stream.drop-writable", bytesOf), w)
	if err := g.finish(); err != nil || !g.call.Streaming() {
		t.Errorf("%v, streaming %v", err, g.call.Streaming())
	}
}
