package wasi_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/files"
)

const files3 = "wasi:filesystem/types@0.3 [method]descriptor."

// TestReadsAndWritesOfNothing: they complete when the other end is ready, but two of them do not wake each other forever.
func TestReadsAndWritesOfNothing(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	read, write := op("stream.read async", bytesOf), op("stream.write async", bytesOf)
	cancelRead, cancelWrite := op("stream.cancel-read", bytesOf), op("stream.cancel-write", bytesOf)

	r, w := g.pipe("stream", bytesOf)
	g.want(blocked, read, r, 512, 0)
	g.want(0, write, w, 512, 0) // the reader waits for something
	g.want(blocked, write, w, 512, 3)
	g.want(0, cancelRead, r) // it was complete
	g.want(3<<4, read, r, 600, 3)
	g.want(3<<4, cancelWrite, w)

	g.want(blocked, write, w, 512, 0)
	g.want(blocked, read, r, 600, 0)
	g.want(0, cancelWrite, w)
	g.want(2, cancelRead, r)

	g.want(blocked, write, w, 512, 3)
	g.want(0, read, r, 600, 0) // there is something
	g.want(2<<4, read, r, 600, 2)
	g.want(1<<4, read, r, 600, 2) // the write continues until its writer knows
	g.want(blocked, read, r, 600, 0)
	g.want(3<<4, cancelWrite, w)
	g.want(2, cancelRead, r)

	g.want(blocked, read, r, 600, 2)
	g.want(0, write, w, 512, 0)
	g.want(2, cancelRead, r)

	q := uint32(g.must("begin_request")) // the host writes
	outcome, settle := g.settled(sentOf)
	body := uint64(g.do(messages+"[static]request.consume-body", q, outcome).([]any)[0].(uint32))
	settle()
	g.want(0, read, body, 512, 0)
	if text := g.all(body); text != "the body" {
		t.Errorf("the body is %q", text)
	}
}

// TestTextsInPipesAreCounted: a string in a value that the guest writes to a future is a copy for the host.
func TestTextsInPipesAreCounted(t *testing.T) {
	g := newGuest(t, hostabi.Limits{MovedBytes: 100_000})
	var trap error
	writes := 0
	for ; trap == nil && writes < 10; writes++ {
		q := g.do(messages+"[static]request.new", g.fields(), none, uint32(must(g.settled(trailersOf))), none).([]any)[0]
		readable, writable := g.pipe("future", sentOf)
		g.do(messages+"[static]request.consume-body", q, uint32(readable))
		clear(g.memory[768:1024])
		g.memory[768], g.memory[776] = 1, 38 // an internal-error
		binary.LittleEndian.PutUint32(g.memory[784:], 1)
		binary.LittleEndian.PutUint32(g.memory[788:], 4096)
		binary.LittleEndian.PutUint32(g.memory[792:], 30_000)
		clear(g.memory[4096:40_000])
		_, trap = g.built(op("future.write", sentOf), writable, 768)
	}
	if writes != 4 || trap == nil || !strings.Contains(trap.Error(), "bytes") {
		t.Errorf("%d writes: %v", writes, trap)
	}
}

func must(readable uint32, _ func()) uint32 { return readable }

// TestWhatTheHostPassesOnIsCounted: the guest connects a file to the log again and again.
func TestWhatTheHostPassesOnIsCounted(t *testing.T) {
	g := newGuest(t, hostabi.Limits{MovedBytes: 600_000})
	g.program = &hostabi.Program{Root: hostabi.NewRoot()}
	g.begin(nil)
	const size = 1 << 18
	if err := g.program.Root.Add(files.File{Path: "big", Size: size, Read: func() ([]byte, error) { return make([]byte, size), nil }}); err != nil {
		t.Fatal(err)
	}
	root := g.do("wasi:filesystem/preopens@0.3 get-directories").([]any)[0].([]any)[0]
	file := value(g.do(files3+"open-at", root, uint64(0), "big", uint64(0), uint64(1)))
	for n := range 4 {
		stream := g.do(files3+"read-via-stream", file, uint64(0)).([]any)[0]
		_, trap := g.try("wasi:cli/stdout@0.3 write-via-stream", stream)
		if trap != nil && n == 2 && strings.Contains(trap.Error(), "moved too many bytes") {
			return
		}
		if trap != nil {
			t.Fatalf("time %d: %v", n, trap)
		}
	}
	t.Error("it was not counted")
}

// TestWritersLearnThatAMessageIsDropped: its body and its trailers have no reader then.
func TestWritersLearnThatAMessageIsDropped(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	message := func() (request any, body, trailers, sent uint64) {
		r, body := g.pipe("stream", bytesOf)
		future, trailers := g.pipe("future", trailersOf)
		pair := g.do(messages+"[static]request.new", g.fields(), some(uint32(r)), uint32(future), none).([]any)
		clear(g.memory[768:1024])
		g.want(blocked, op("stream.write async", bytesOf), body, 512, 4)
		return pair[0], body, trailers, uint64(pair[1].(uint32))
	}
	told := func(body, trailers, sent uint64) {
		t.Helper()
		set := g.must("waitable-set.new")
		g.must("waitable.join", body, set)
		g.want(3, "waitable-set.wait", set, 904)
		if n := binary.LittleEndian.Uint32(g.memory[908:]); n != dropped {
			t.Errorf("the write has %#x", n)
		}
		g.want(dropped, op("future.write", trailersOf), trailers, 768)
		g.want(0, op("future.read", sentOf), sent, 640)
		if g.memory[640] != 1 {
			t.Errorf("the message was sent: %x", g.memory[640:664])
		}
	}
	q, body, trailers, sent := message()
	g.drop(messages, "request", q)
	told(body, trailers, sent)

	q, body, trailers, sent = message() // it has no authority
	g.expect("#1 #19", client+"send", q)
	told(body, trailers, sent)

	q, body, trailers, sent = message()
	g.expect("#0", messages+"[method]request.set-authority", q, some(g.serve(nil)))
	core := []uint64{uint64(q.(uint32)), 1024}
	if trap := g.raw(g.functions[client+"[async]send"], core); trap != nil || core[0]&15 != 1 {
		t.Fatal(core[0], trap)
	}
	g.want(4<<4, op("stream.cancel-write", bytesOf), body)
	g.want(4, "subtask.cancel", core[0]>>4)
	g.want(dropped, op("stream.write", bytesOf), body, 512, 4)
	g.want(dropped, op("future.write", trailersOf), trailers, 768)
	g.want(0, op("future.read", sentOf), sent, 640)
	g.must("subtask.drop", core[0]>>4)
}

// TestAnswersWithoutTheBodyThatTheirLengthSays: RFC 9110, section 8.6, permits it for HEAD and the status 304.
func TestAnswersWithoutTheBodyThatTheirLengthSays(t *testing.T) {
	for _, row := range []struct {
		method string
		status uint64
	}{{"HEAD", 200}, {"GET", 304}} {
		g := newGuest(t, hostabi.Limits{})
		g.call.Request.Method = []byte(row.method)
		g.must("begin_request")
		trailers, _ := g.settled(trailersOf)
		pair := g.do(messages+"[static]response.new", g.fields("content-length", "12"), none, trailers).([]any)
		g.expect("#0", messages+"[method]response.set-status-code", pair[0], row.status)
		g.returns(ok(pair[0]))
		if err := g.finish(); err != nil || uint64(g.call.Response.Status) != row.status {
			t.Errorf("%s: %v, status %d", row.method, err, g.call.Response.Status)
		}

		g = newGuest(t, hostabi.Limits{}) // as WASI 0.2 has it
		g.call.Request.Method = []byte(row.method)
		_, outparam := g.http()
		response := g.do(types+"[constructor]outgoing-response", g.fields("content-length", "12"))
		g.expect("#0", types+"[method]outgoing-response.set-status-code", response, row.status)
		body := value(g.do(types+"[method]outgoing-response.body", response))
		g.do(types+"[static]response-outparam.set", outparam, ok(response))
		g.expect("#0", types+"[static]outgoing-body.finish", body, none)
		if err := g.end(); err != nil || uint64(g.call.Response.Status) != row.status {
			t.Errorf("%s: %v, status %d", row.method, err, g.call.Response.Status)
		}
	}
}

// TestEachInstanceHasItsOwnContext: a call between component instances is a task of its own.
func TestEachInstanceHasItsOwnContext(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.must("context.set 0", 7)
	g.must("instance", 1)
	g.want(0, "context.get 0")
	g.must("context.set 0", 9)
	g.must("instance", 0)
	g.want(7, "context.get 0")
	g.call.End()
	g.begin(nil)
	g.want(0, "context.get 0")
	g.must("instance", 1)
	g.want(0, "context.get 0")
}
