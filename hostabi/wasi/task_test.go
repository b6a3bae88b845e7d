package wasi_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/wasi"
	"runner.example/internal/component/canon"
	"runner.example/internal/component/canon/canontest"
)

const (
	messages = "wasi:http/types@0.3 "
	client   = "wasi:http/client@0.3 "
	blocked  = 0xffffffff
	dropped  = 1
)

// Types of streams and futures.
var (
	bytesOf    = wasi.NumberOf("wasi:cli/stdin@0.3", "read-via-stream", 0)
	trailersOf = wasi.NumberOf("wasi:http/types@0.3", "[static]response.new", 2)
	sentOf     = wasi.NumberOf("wasi:http/types@0.3", "[static]request.consume-body", 1)
	entriesOf  = wasi.NumberOf("wasi:filesystem/types@0.3", "[method]descriptor.read-directory", 1)
)

// built calls a built-in with core values, and returns the first result.
func (g *guest) built(name string, args ...uint64) (uint64, error) {
	g.t.Helper()
	f, there := g.functions["component "+name]
	if !there || len(args) != len(f.Params) {
		g.t.Fatalf("%s with %d arguments does not exist", name, len(args))
	}
	core := append(args, make([]uint64, max(1, len(f.Results)))...)
	if trap := g.raw(f, core); trap != nil {
		return 0, trap
	}
	return core[0], g.allocate(&canontest.Heap{Memory: g.memory, Free: 1 << 20})
}

// want is built for a call that must have a result.
func (g *guest) want(want uint64, name string, args ...uint64) {
	g.t.Helper()
	if got, trap := g.built(name, args...); trap != nil || got != want {
		g.t.Errorf("%s%v: %#x, %v; want %#x", name, args, got, trap, want)
	}
}

// must is built for a call that must succeed.
func (g *guest) must(name string, args ...uint64) uint64 {
	g.t.Helper()
	got, trap := g.built(name, args...)
	if trap != nil {
		g.t.Fatalf("%s%v: %v", name, args, trap)
	}
	return got
}

// refuses fails the test unless the call traps with that text.
func (g *guest) refuses(want, name string, args ...uint64) {
	g.t.Helper()
	if got, trap := g.built(name, args...); trap == nil || !strings.Contains(trap.Error(), want) {
		g.t.Errorf("%s%v: %#x, %v; want a trap: %s", name, args, got, trap, want)
	}
}

// pipe makes a stream or future, and returns its ends.
func (g *guest) pipe(word string, of int) (readable, writable uint64) {
	g.t.Helper()
	ends := g.must(fmt.Sprintf("%s.new %d", word, of))
	return ends & 0xffffffff, ends >> 32
}

func op(name string, of int) string { return fmt.Sprintf("%s %d", name, of) }

// all reads a stream of bytes to its end.
func (g *guest) all(stream uint64) (text string) {
	g.t.Helper()
	for {
		n := g.must(op("stream.read", bytesOf), stream, 512, 7)
		if n == dropped {
			return text
		}
		text += string(g.memory[512 : 512+n>>4])
	}
}

// settled makes a future whose value the guest writes when the host reads it: ok, or ok(none).
func (g *guest) settled(of int) (readable uint32, write func()) {
	g.t.Helper()
	r, w := g.pipe("future", of)
	return uint32(r), func() {
		clear(g.memory[768:1024])
		g.want(0, op("future.write", of), w, 768)
		g.must(op("future.drop-writable", of), w)
	}
}

// responds makes the answer of the handler: a response with a body, or without.
func (g *guest) responds(body any, headers ...string) {
	g.t.Helper()
	trailers, write := g.settled(trailersOf)
	pair := g.do(messages+"[static]response.new", g.fields(headers...), body, trailers).([]any)
	g.returns(ok(pair[0]))
	write()
}

func (g *guest) returns(result canon.Case) {
	g.t.Helper()
	core := make([]uint64, 8)
	core[0] = uint64(result.Index)
	switch v := result.Value.(type) {
	case uint32:
		core[1] = uint64(v)
	case canon.Case:
		core[1] = uint64(v.Index)
	}
	if _, trap := g.built("task.return", core...); trap != nil {
		g.t.Fatal(trap)
	}
}

func (g *guest) finish() error {
	_, trap := g.built("end_request")
	return trap
}

func TestAHandlerReadsItsRequestAndWritesItsAnswer(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	q := uint32(g.must("begin_request"))
	g.expect("#2", messages+"[method]request.get-method", q)
	g.expect("#1 /v1/things/a%20b?q=1", messages+"[method]request.get-path-with-query", q)
	g.expect("#1 #0", messages+"[method]request.get-scheme", q)
	g.expect("#1 example.com", messages+"[method]request.get-authority", q)
	headers := g.do(messages+"[method]request.get-headers", q)
	g.expect("[text/plain]", messages+"[method]fields.get", headers, "Content-Type")
	g.expect("#1 #2", messages+"[method]fields.append", headers, "x-b", []byte("1"))
	outcome, write := g.settled(sentOf)
	got := g.do(messages+"[static]request.consume-body", q, outcome).([]any)
	write()
	if text := g.all(uint64(got[0].(uint32))); text != "the body" {
		t.Errorf("the body is %q", text)
	}
	g.refuses("was used to its end", op("stream.read", bytesOf), uint64(got[0].(uint32)), 512, 7)
	g.want(0, op("future.read", trailersOf), uint64(got[1].(uint32)), 640)
	if trailers := g.memory[640:648]; trailers[0] != 0 || trailers[4] != 0 {
		t.Errorf("the trailers are %x", trailers)
	}

	r, w := g.pipe("stream", bytesOf)
	copy(g.memory[512:], "an answer")
	g.want(blocked, op("stream.write async", bytesOf), w, 512, 3) // the stream has no reader
	set := g.must("waitable-set.new")
	g.must("waitable.join", w, set)
	g.want(0, "waitable-set.poll", set, 900)
	g.responds(some(uint32(r)), "x-a", "1", "content-length", "9")
	g.want(3, "waitable-set.wait", set, 900)
	if e := g.memory[900:908]; binary.LittleEndian.Uint32(e) != uint32(w) || binary.LittleEndian.Uint32(e[4:]) != 3<<4 {
		t.Errorf("the event is %x", e)
	}
	g.want(6<<4, op("stream.write", bytesOf), w, 515, 6)
	g.must(op("stream.drop-writable", bytesOf), w)
	if err := g.finish(); err != nil || g.call.Response.Status != 200 || string(g.call.Response.Body) != "an answer" {
		t.Errorf("%v, %d %q", err, g.call.Response.Status, g.call.Response.Body)
	}
	if len(g.call.Response.Headers) != 1 {
		t.Errorf("headers: %v", g.call.Response.Headers)
	}
}

func TestAnswersOfTasksThatAreNotComplete(t *testing.T) {
	for _, row := range []struct {
		what, want string
		make       func(g *guest)
	}{
		{"nothing", "ended without a result", func(*guest) {}},
		{"open", "was not finished", func(g *guest) {
			r, _ := g.pipe("stream", bytesOf)
			g.responds(some(uint32(r)))
		}},
		{"too long", "10 bytes", func(g *guest) {
			r, w := g.pipe("stream", bytesOf)
			g.responds(some(uint32(r)))
			g.want(1, op("stream.write", bytesOf), w, 512, 11)
			g.refuses("was used to its end", op("stream.write", bytesOf), w, 512, 1)
		}},
		{"of another length", "Content-Length says 3", func(g *guest) {
			r, w := g.pipe("stream", bytesOf)
			g.responds(some(uint32(r)), "content-length", "3")
			g.must(op("stream.write", bytesOf), w, 512, 4)
			g.must(op("stream.drop-writable", bytesOf), w)
		}},
		{"without a body, and with a length", "Content-Length says 3", func(g *guest) { g.responds(none, "content-length", "3") }},
		{"an error instead of trailers", "in the place of its trailers", func(g *guest) {
			trailers, w := g.pipe("future", trailersOf)
			r, body := g.pipe("stream", bytesOf)
			pair := g.do(messages+"[static]response.new", g.fields(), some(uint32(r)), uint32(trailers)).([]any)
			g.returns(ok(pair[0]))
			clear(g.memory[768:1024])
			g.memory[768] = 1
			g.want(0, op("future.write", trailersOf), w, 768)
			g.must(op("stream.drop-writable", bytesOf), body)
		}},
	} {
		t.Run(row.what, func(t *testing.T) {
			g := newGuest(t, hostabi.Limits{ResponseBytes: 10})
			g.must("begin_request")
			row.make(g)
			if err := g.finish(); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %s", err, row.want)
			}
		})
	}
}

func TestAHandlerReturnsOnce(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.must("begin_request")
	g.refuses("handles one request", "begin_request")
	g.responds(none)
	g.refuses("returns once", "task.return", 1, 0, 0, 0, 0, 0, 0, 0)
	if err := g.finish(); err != nil || g.call.Response.Status != 200 {
		t.Errorf("%v, status %d", err, g.call.Response.Status)
	}
}

// TestStreamsWithinAComponent: one task has both ends.
func TestStreamsWithinAComponent(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	r, w := g.pipe("stream", bytesOf)
	read, write := op("stream.read async", bytesOf), op("stream.write async", bytesOf)
	copy(g.memory[512:], "0123456789")
	g.want(blocked, write, w, 512, 10)
	g.refuses("is in use", write, w, 512, 1)
	g.want(4<<4, read, r, 600, 4) // what fits
	if got := string(g.memory[600:604]); got != "0123" {
		t.Errorf("%q", got)
	}
	g.want(4<<4, op("stream.cancel-write", bytesOf), w) // it was complete already
	g.refuses("no operation", op("stream.cancel-write", bytesOf), w)
	g.want(blocked, read, r, 600, 4)
	g.want(2, op("stream.cancel-read", bytesOf), r) // cancelled
	g.want(blocked, read, r, 600, 4)
	g.refuses("while an operation is in progress", op("stream.drop-readable", bytesOf), r)
	set := g.must("waitable-set.new")
	g.must("waitable.join", r, set)
	g.refuses("1 members", "waitable-set.drop", set)
	g.want(2<<4, write, w, 514, 2)
	g.want(2, "waitable-set.wait", set, 904)
	g.refuses("cannot happen", "waitable-set.wait", set, 904)
	g.refuses("cannot happen", op("stream.read", bytesOf), r, 600, 4)
	g.want(2, op("stream.cancel-read", bytesOf), r)
	g.want(blocked, read, r, 600, 4)
	g.must(op("stream.drop-writable", bytesOf), w)
	g.want(2, "waitable-set.poll", set, 904)
	if n := binary.LittleEndian.Uint32(g.memory[908:]); n != dropped {
		t.Errorf("the read has %#x", n)
	}
	g.must(op("stream.drop-readable", bytesOf), r)
	g.must("waitable-set.drop", set)

	r, w = g.pipe("stream", bytesOf)
	g.must(op("stream.drop-readable", bytesOf), r)
	g.want(dropped, write, w, 512, 1)
	r, w = g.pipe("future", sentOf)
	g.refuses("no value was written", op("future.drop-writable", sentOf), w)
	g.want(blocked, op("future.write async", sentOf), w, 512)
	g.refuses("only numbers", op("future.read async", sentOf), r, 512)
}

func TestBuiltinsCheckWhatTheyGet(t *testing.T) {
	for _, row := range []struct {
		want, name string
		args       []uint64
	}{
		{"handle 9 of the readable end of a stream is unknown", op("stream.read", bytesOf), []uint64{9, 0, 0}},
		{"handle 1 is of the readable end of a stream, not of the writable end of a stream", op("stream.write", bytesOf), []uint64{1, 0, 0}},
		{"not of the readable end of a future", op("future.read", sentOf), []uint64{1, 0}},
		{"of another type", op("stream.read", entriesOf), []uint64{1, 0, 0}},
		{"outside of memory", op("stream.read", bytesOf), []uint64{1, 64 << 16, 1}},
		{"outside of memory", op("stream.write", bytesOf), []uint64{2, 0xffffffff, 1}},
		{"a buffer of 268435456 elements", op("stream.read", bytesOf), []uint64{1, 0, 1 << 28}},
		{"not aligned", op("future.write", sentOf), []uint64{4, 513}},
		{"handle 0 is unknown", "waitable.join", []uint64{0, 5}},
		{"handle 5 cannot be waited for", "waitable.join", []uint64{5, 5}},
		{"handle 1 is of the readable end of a stream, not of a waitable set", "waitable.join", []uint64{2, 1}},
		{"handle 7 of a waitable set is unknown", "waitable-set.wait", []uint64{7, 0}},
		{"is outside of memory", "waitable-set.poll", []uint64{5, 64<<16 - 4}},
		{"not aligned", "waitable-set.poll", []uint64{5, 2}},
		{"not of a subtask", "subtask.drop", []uint64{1}},
		{"not of a subtask", "subtask.cancel", []uint64{1}},
		{"has not cancelled the task", "task.cancel", nil},
		{"0x3, which is unknown", "task.next", []uint64{3}},
		{"handle 0 of a waitable set", "task.next", []uint64{2}},
		{"is unknown", "error-context.drop", []uint64{77}},
		{"not UTF-8", "error-context.new", []uint64{512, 1}},
		{"returns once", "task.return", []uint64{1, 0, 0, 0, 0, 0, 0, 0}},
		{"without a result", "end_request", nil},
	} {
		g := newGuest(t, hostabi.Limits{})
		g.memory[512] = 0xff
		g.pipe("stream", bytesOf)
		g.pipe("future", sentOf)
		g.must("waitable-set.new")
		g.refuses(row.want, row.name, row.args...)
	}
}

func TestSmallBuiltins(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.must("context.set 1", 7)
	g.want(0, "context.get 0")
	g.want(7, "context.get 1")
	g.want(0, "thread.yield")
	g.must("backpressure.inc")
	g.must("backpressure.dec")
	copy(g.memory[512:], "why")
	h := g.must("error-context.new", 512, 3)
	g.must("error-context.debug-message", h, 640)
	at, n := binary.LittleEndian.Uint32(g.memory[640:]), binary.LittleEndian.Uint32(g.memory[644:])
	if got := string(g.memory[at : at+n]); got != "why" {
		t.Errorf("the message is %q", got)
	}
	g.must("error-context.drop", h)
	g.want(0, "task.next", 1) // a yield
	g.call.End()
	g.begin(nil)
	g.want(0, "context.get 1")
}

// TestPausesAreSubtasks: the shorter one returns first.
func TestPausesAreSubtasks(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	start := func(d time.Duration) uint64 {
		core := []uint64{uint64(d)}
		if trap := g.raw(g.functions["wasi:clocks/monotonic-clock@0.3 [async]wait-for"], core); trap != nil {
			t.Fatal(trap)
		}
		return core[0]
	}
	if got := start(0); got != 2 {
		t.Errorf("no pause is %#x", got)
	}
	set := g.must("waitable-set.new")
	long, short, never := start(300*time.Millisecond), start(10*time.Millisecond), start(time.Hour)
	for _, s := range []uint64{long, short, never} {
		if s&15 != 1 {
			t.Fatalf("a subtask is %#x", s)
		}
		g.must("waitable.join", s>>4, set)
	}
	g.refuses("has not returned", "subtask.drop", short>>4)
	for _, s := range []uint64{short, long} {
		g.want(1, "waitable-set.wait", set, 904)
		if h, state := binary.LittleEndian.Uint32(g.memory[904:]), binary.LittleEndian.Uint32(g.memory[908:]); uint64(h) != s>>4 || state != 2 {
			t.Errorf("event of %d: %d, want %d", h, state, s>>4)
		}
		g.must("subtask.drop", s>>4)
	}
	g.want(4, "subtask.cancel", never>>4)
	g.refuses("has returned", "subtask.cancel", never>>4)
	g.must("subtask.drop", never>>4)
	g.must("waitable-set.drop", set)
	begun := time.Now()
	g.do("wasi:clocks/monotonic-clock@0.3 wait-for", uint64(20*time.Millisecond)) // without a subtask
	if time.Since(begun) < 20*time.Millisecond {
		t.Error("it did not wait")
	}
}

// outgoing makes a request of WASI 0.3. finish writes its body.
func (g *guest) outgoing(authority, path string, method uint32, headers ...string) (request any, finish func(body string)) {
	g.t.Helper()
	r, w := g.pipe("stream", bytesOf)
	trailers, settle := g.settled(trailersOf)
	pair := g.do(messages+"[static]request.new", g.fields(headers...), some(uint32(r)), trailers, none).([]any)
	g.expect("#0", messages+"[method]request.set-authority", pair[0], some(authority))
	g.expect("#0", messages+"[method]request.set-path-with-query", pair[0], some(path))
	g.expect("#0", messages+"[method]request.set-method", pair[0], canon.Case{Index: method})
	return pair[0], func(body string) {
		copy(g.memory[512:], body)
		if len(body) > 0 {
			g.want(uint64(len(body))<<4, op("stream.write", bytesOf), w, 512, uint64(len(body)))
		}
		g.must(op("stream.drop-writable", bytesOf), w)
		settle()
		g.want(0, op("future.read", sentOf), uint64(pair[1].(uint32)), 640)
		if g.memory[640] != 0 {
			g.t.Errorf("the request was not sent: %x", g.memory[640:664])
		}
	}
}

// TestTasksSendRequestsBesideEachOther: the second response arrives first, with its body.
func TestTasksSendRequestsBesideEachOther(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	both, slow := make(chan struct{}, 2), make(chan struct{})
	authority := g.serve(func(w http.ResponseWriter, r *http.Request) {
		both <- struct{}{}
		if r.URL.Path == "/slow" {
			<-slow
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body)
	})
	set := g.must("waitable-set.new")
	send := func(path string, at uint64) uint64 {
		q, finish := g.outgoing(authority, path, 2)
		core := []uint64{uint64(q.(uint32)), at}
		if trap := g.raw(g.functions[client+"[async]send"], core); trap != nil {
			t.Fatal(trap)
		}
		g.must("waitable.join", core[0]>>4, set)
		finish("body of " + path)
		return core[0] >> 4
	}
	first, second := send("/slow", 1024), send("/fast", 1104)
	<-both
	<-both
	for i, want := range []struct {
		subtask, at uint64
		text        string
	}{{second, 1104, "POST /fast body of /fast"}, {first, 1024, "POST /slow body of /slow"}} {
		g.want(1, "waitable-set.wait", set, 904)
		if h := binary.LittleEndian.Uint32(g.memory[904:]); uint64(h) != want.subtask {
			t.Fatalf("event %d is of %d, want %d", i, h, want.subtask)
		}
		result := g.memory[want.at:]
		if result[0] != 0 {
			t.Fatalf("the response is an error: %x", result[:32])
		}
		response := binary.LittleEndian.Uint32(result[8:])
		g.expect("200", messages+"[method]response.get-status-code", response)
		outcome, write := g.settled(sentOf)
		got := g.do(messages+"[static]response.consume-body", response, outcome).([]any)
		write()
		if text := g.all(uint64(got[0].(uint32))); text != want.text {
			t.Errorf("the response is %q", text)
		}
		if i == 0 {
			close(slow)
		}
	}
}

func TestTasksAreToldWhyARequestIsNotSent(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	authority := g.serve(func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	q, _ := g.outgoing("other.example", "/", 0)
	g.expect("#1 #15", client+"send", q)
	q, _ = g.outgoing(authority, "/", 2)
	g.traps("waits for something that cannot happen", client+"send", q) // for its own body
	for _, bad := range []string{"a b", "", "[::1"} {
		q, _ = g.outgoing(authority, "/", 0)
		g.expect("#1", messages+"[method]request.set-authority", q, some(bad))
	}
	trailers, _ := g.settled(trailersOf)
	pair := g.do(messages+"[static]request.new", g.fields(), none, trailers, none).([]any)
	g.drop(messages, "request", pair[0])
	g.want(0, op("future.read", sentOf), uint64(pair[1].(uint32)), 640)
	if g.memory[640] != 1 || g.memory[648] != 38 {
		t.Errorf("a request that was dropped: %x", g.memory[640:664])
	}
}

// TestARequestIsPassedOn: its body is not read by the guest.
func TestARequestIsPassedOn(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	authority := g.serve(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s%s %q", r.Method, r.Header.Get("X-A"), r.Header.Get("X-Forwarded-For"), body)
	})
	g.call.Request.Headers = append(g.call.Request.Headers[:2:2], abi.Pair{Name: []byte("x-a"), Value: []byte("1")})
	for _, name := range []string{"x-forwarded-for", "via", "expect", "X-Real_IP"} { // the runner sets what it needs of them
		g.call.Request.Headers = append(g.call.Request.Headers, abi.Pair{Name: []byte(name), Value: []byte("x")})
	}
	q := uint32(g.must("begin_request"))
	g.expect("#0", messages+"[method]request.set-authority", q, some(authority))
	g.expect("#0", messages+"[method]request.set-scheme", q, some(canon.Case{Index: 1}))
	headers := g.do(messages+"[method]request.get-headers", q)
	before := show(g.do(messages+"[method]fields.copy-all", headers))
	response := value(g.do(client+"send", q))
	g.expect(before, messages+"[method]fields.copy-all", headers)
	g.returns(ok(response))
	if err := g.finish(); err != nil || string(g.call.Response.Body) != `POST 1 "the body"` {
		t.Errorf("%v, %q", err, g.call.Response.Body)
	}
}

func TestOptionsOfRequestsCannotBeChangedLater(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	const set = messages + "[method]request-options.set-"
	o := g.do(messages + "[constructor]request-options")
	g.expect("#1 #0", set+"connect-timeout", o, some(uint64(1e6)))
	g.expect("#0", set+"first-byte-timeout", o, some(uint64(1e6)))
	trailers, _ := g.settled(trailersOf)
	pair := g.do(messages+"[static]request.new", g.fields(), none, trailers, some(o)).([]any)
	o = value(g.do(messages+"[method]request.get-options", pair[0]))
	g.expect("#1 1000000", messages+"[method]request-options.get-first-byte-timeout", o)
	for _, name := range []string{"connect-timeout", "first-byte-timeout", "between-bytes-timeout"} {
		g.expect("#1 #1", set+name, o, none)
	}
	g.expect("#0", set+"first-byte-timeout", g.do(messages+"[method]request-options.clone", o), none)
}

func TestFieldsOfTasks(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	f := g.fields("a", "1", "b", "2", "A", "3")
	g.expect("#0 [1 3]", messages+"[method]fields.get-and-delete", f, "a")
	g.expect("#0 []", messages+"[method]fields.get-and-delete", f, "a")
	g.expect("#1 #0", messages+"[method]fields.get-and-delete", f, "a b")
	g.expect("[[b 2]]", messages+"[method]fields.copy-all", f)
}

// TestStandardStreamsOfTasks: the input is empty, and the output goes to the log.
func TestStandardStreamsOfTasks(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	in := g.do("wasi:cli/stdin@0.3 read-via-stream").([]any)
	if text := g.all(uint64(in[0].(uint32))); text != "" {
		t.Errorf("standard input has %q", text)
	}
	for _, name := range []string{"stdout", "stderr"} {
		r, w := g.pipe("stream", bytesOf)
		future := g.do("wasi:cli/"+name+"@0.3 write-via-stream", uint32(r)).(uint32)
		copy(g.memory[512:], "to "+name+"\n")
		g.want(10<<4, op("stream.write", bytesOf), w, 512, 10)
		of := wasi.NumberOf("wasi:cli/stdin@0.3", "read-via-stream", 1)
		g.want(blocked, op("future.read async", of), uint64(future), 640)
		g.must(op("stream.drop-writable", bytesOf), w)
		g.want(2, op("future.cancel-read", of), uint64(future)) // it has not got the value, which is there now
		g.want(0, op("future.read", of), uint64(future), 640)
	}
	g.call.End()
	if log := g.log.String(); !strings.Contains(log, "to stdout") || !strings.Contains(log, "to stderr") {
		t.Errorf("the log:\n%s", log)
	}
}
