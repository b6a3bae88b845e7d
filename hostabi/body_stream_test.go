package hostabi_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/recording"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
)

// arriving is a body whose parts are there when they are asked for.
type arriving struct {
	parts   []string
	ends    error // after the parts; nil: the body is complete
	refused error // of the whole body
	whole   int   // calls of Whole
	reads   int
}

func (b *arriving) Length() int64 { return -1 }

func (b *arriving) Read(p []byte) (int, error) {
	b.reads++
	if len(b.parts) == 0 {
		if b.ends != nil {
			return 0, b.ends
		}
		return 0, io.EOF
	}
	n := copy(p, b.parts[0])
	if b.parts[0] = b.parts[0][n:]; b.parts[0] == "" {
		b.parts = b.parts[1:]
	}
	return n, nil
}

func (b *arriving) Whole() ([]byte, error) {
	b.whole++
	return []byte(strings.Join(b.parts, "")), b.ends
}

func (b *arriving) Check([]byte, *cost.Meter) error { return b.refused }

// receiving makes the body of the guest's request one that arrives.
func (g *guest) receiving(b *arriving) *recordingSandbox {
	sandbox := &recordingSandbox{}
	g.sandbox, g.call.BodyStream, g.call.Request.Body = sandbox, b, nil
	g.call.Begin()
	return sandbox
}

// ends runs a function that ends the run, and returns its error.
func ends(run func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	run()
	return nil
}

func TestABodyIsReadInParts(t *testing.T) {
	g := newGuest(t, hostabi.Limits{HostCalls: 50, MovedBytes: 1 << 10})
	b := &arriving{}
	for range 200 {
		b.parts = append(b.parts, strings.Repeat("x", 700)) // more than the room
	}
	sandbox := g.receiving(b)
	length, calls := 0, 0
	for {
		part, n := g.get("request_read")
		if n == 0 {
			break
		}
		if n < 0 || part == "" {
			t.Fatalf("after %d bytes: %d", length, n)
		}
		length, calls = length+len(part), calls+1
	}
	if length != 200*700 || calls != 400 || sandbox.streams != 1 || len(sandbox.waits) != 2*b.reads {
		t.Errorf("%d bytes in %d calls, %d places, %d waits for %d reads", length, calls, sandbox.streams, len(sandbox.waits), b.reads)
	}
	if n := g.raw("request_read", room, roomBytes); n != 0 {
		t.Errorf("after the end: %d", n)
	}
	if n := g.raw("request_read", room, 0); n != int32(abi.Invalid) {
		t.Errorf("without room: %d", n)
	}
	if n := g.raw("request_body", 0, room, roomBytes); n != int32(abi.Invalid) || b.whole != 0 {
		t.Errorf("as a whole after it was read in parts: %d", n)
	}
	if got, n := g.op("count", `{"from":"Thing"}`); n < 0 {
		t.Errorf("what was read counts as calls or as moved bytes: %v", got)
	}
	if !g.call.HasReadParts() || g.call.BodyFault() != nil {
		t.Errorf("read parts: %v, fault %v", g.call.HasReadParts(), g.call.BodyFault())
	}
}

func TestABodyThatArrivesIsReadAsAWhole(t *testing.T) {
	g := newGuest(t, hostabi.Limits{MovedBytes: 1 << 10})
	body := strings.Repeat("0123456789", 50)
	b := &arriving{parts: []string{body[:100], body[100:]}}
	g.receiving(b)
	for range 2 {
		if got, n := g.get("request_body", 0); got != body || b.whole != 1 {
			t.Errorf("%d %q after %d times", n, got, b.whole)
		}
	}
	if part, n := g.get("request_read"); part != body || g.call.HasReadParts() {
		t.Errorf("in parts after it was read as a whole: %d %q", n, part)
	}
	if _, n := g.get("request_read"); n != 0 {
		t.Errorf("its end: %d", n)
	}
	if string(g.call.SentBody) != body || g.call.BodyStream != nil {
		t.Errorf("the next run does not have the body: %q", g.call.SentBody)
	}
	g.call.Attempt = 2
	g.call.Begin()
	if part, n := g.get("request_read"); part != body {
		t.Errorf("in the next run: %d %q", n, part)
	}
}

func TestABodyThatIsRefusedAsAWholeEndsTheRun(t *testing.T) {
	for name, b := range map[string]*arriving{"not there": {ends: fault.New(fault.RequestTimeout, "late")}, "checked": {refused: fault.New(fault.RequestTimeout, "bad")}} {
		g := newGuest(t, hostabi.Limits{})
		g.receiving(b)
		err := ends(func() { g.raw("request_body", 0, room, roomBytes) })
		refused, ok := errors.AsType[*hostabi.BodyRefused](err)
		if !ok || fault.CodeOf(refused) != fault.RequestTimeout {
			t.Errorf("%s: the run ends with %v", name, err)
		}
	}
}

func TestAPartThatCannotBeReadIsAnErrno(t *testing.T) {
	for code, errno := range map[fault.Code]abi.Errno{
		fault.BodyTooLarge: abi.TooLarge, fault.RequestTimeout: abi.Deadline, fault.InvalidRequest: abi.Unavailable,
	} {
		g := newGuest(t, hostabi.Limits{})
		b := &arriving{parts: []string{"half"}, ends: fault.New(code, "why")}
		g.receiving(b)
		if part, n := g.get("request_read"); part != "half" {
			t.Errorf("%s: the first part is %d %q", code, n, part)
		}
		for range 2 { // it stays
			if n := g.raw("request_read", room, roomBytes); n != int32(errno) {
				t.Errorf("%s: %d, want %s", code, n, errno)
			}
		}
		if fault.CodeOf(g.call.BodyFault()) != code || b.reads != 2 {
			t.Errorf("%s: the client gets %v after %d reads", code, g.call.BodyFault(), b.reads)
		}
		g.call.Attempt = 2
		if g.call.Begin(); !g.call.HasReadParts() {
			t.Errorf("%s: the next run may begin, but the body is gone", code)
		}
		g.call.Attempt = 1
		if g.call.Begin(); g.call.HasReadParts() {
			t.Errorf("%s: the next request begins as if it had read parts", code)
		}
	}
}

func TestTheBodyIsReadInPartsThroughTheHostsFile(t *testing.T) {
	g, file := asProgram(t, hostabi.Limits{MovedBytes: 100 << 10})
	part := strings.Repeat("p", 60<<10)
	g.call.BodyStream, g.call.Request.Body = &arriving{parts: []string{part, part, part, "end"}}, nil
	for _, want := range []string{part, part, part, "end", ""} {
		g.writeTo(t, file, "request_read 0\n")
		if got := g.readFrom(t, file, 64<<10); got != fmt.Sprintf("ok %d\n%s", len(want), want) {
			t.Fatalf("%d bytes %.50q, want %d", len(got), got, len(want))
		}
	}
}

func TestTheBodyOfACommandFlowsToItsStandardInput(t *testing.T) {
	g := newGuest(t, hostabi.Limits{MovedBytes: 1 << 10})
	part := strings.Repeat("p", 2<<10)
	g.receiving(&arriving{parts: []string{part, "x", part}})
	g.program()
	if got := string(g.input(300, 212)); got != part+"x"+part {
		t.Errorf("%d bytes", len(got))
	}
}

func TestThePartsOfABodyAreReplayed(t *testing.T) {
	record := func(b *arriving) (*guest, *recording.Player, []int32) {
		g := newGuest(t, hostabi.Limits{})
		recorder := &recording.Recorder{}
		g.call.Recorder = recorder
		g.receiving(b)
		read := g.readsAll()
		g.call.End()
		made := &recording.Recording{Format: recording.Format, ID: g.call.Request.ID, Request: recording.RequestOf(g.call.Request, nil)}
		made.Request.InParts = g.call.HasReadParts()
		recorder.Take(made)
		player, err := recording.NewPlayer(made, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		g.call.Recorder, g.call.Player, g.call.BodyStream = nil, player, nil
		g.call.Begin()
		return g, player, read
	}
	for name, b := range map[string]*arriving{
		"complete": {parts: []string{"a", strings.Repeat("b", 1300), "c"}},
		"cut off":  {parts: []string{"a"}, ends: fault.New(fault.InvalidRequest, "gone")},
		"empty":    {},
	} {
		g, player, recorded := record(b)
		replayed := g.readsAll()
		if len(replayed) != len(recorded) || player.Divergence() != nil || player.Left() > 0 {
			t.Errorf("%s: %v is replayed, %v was recorded; %v, %d are left", name, replayed, recorded, player.Divergence(), player.Left())
			continue
		}
		for i := range replayed {
			if replayed[i] != recorded[i] {
				t.Errorf("%s: call %d returns %d, recorded was %d", name, i, replayed[i], recorded[i])
			}
		}
	}
}

// readsAll reads the body in parts, and returns what each call has returned.
func (g *guest) readsAll() (all []int32) {
	for {
		n := g.raw("request_read", room, roomBytes)
		if all = append(all, n); n <= 0 {
			return all
		}
	}
}
