package hostabi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/outbound"
	"runner.example/hostabi/recording"
)

const slowOrigin = "https://api.example.com"

// slowService answers fetches without a network: each body has the parts, each after a pause.
type slowService struct {
	kind   string // its content type
	length int64
	parts  []slowPart
	open   atomic.Int32 // bodies that are not closed
}

type slowPart struct {
	after time.Duration
	text  string
}

func (s *slowService) RoundTrip(r *http.Request) (*http.Response, error) {
	s.open.Add(1)
	body := &slowBody{service: s, ctx: r.Context(), parts: s.parts}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {s.kind}}, ContentLength: s.length, Body: body, Request: r}, nil
}

type slowBody struct {
	service *slowService
	ctx     context.Context
	parts   []slowPart
}

func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.parts) == 0 {
		return 0, io.EOF
	}
	part := &b.parts[0]
	select {
	case <-time.After(part.after):
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
	n := copy(p, part.text)
	b.parts = append([]slowPart{{0, part.text[n:]}}, b.parts[1:]...)
	if b.parts[0].text == "" {
		b.parts = b.parts[1:]
	}
	return n, nil
}

func (b *slowBody) Close() error {
	b.service.open.Add(-1)
	return nil
}

// fetches has the guest's fetches answered by the service.
func (g *guest) fetches(service *slowService, options outbound.Options) {
	g.t.Helper()
	origins, err := outbound.ParseOrigins([]string{slowOrigin})
	if err != nil {
		g.t.Fatal(err)
	}
	if service.length == 0 {
		service.length = -1
	}
	options.Answer = service
	g.call.Host.Origins, g.call.Host.Outbound = origins, outbound.New(options)
}

// reads fetches with "stream" and reads until the end or an error: what each operation gave, and when.
func (g *guest) reads(more string) (steps []string) {
	g.t.Helper()
	began := time.Now()
	step := func(result map[string]any) {
		text := fmt.Sprint(time.Since(began), " ")
		switch {
		case result["code"] != nil:
			text += fmt.Sprint(result["code"], ": ", result["message"])
		case result["end"] == true:
			text += fmt.Sprint(result["data"], " end")
		case result["stream"] != nil:
			text += fmt.Sprint("stream ", result["stream"])
		case result["body"] != nil:
			text += fmt.Sprint("body ", result["body"])
		default:
			text += fmt.Sprint(result["data"])
		}
		steps = append(steps, text)
	}
	result, _ := g.op("fetch", `{"url":"`+slowOrigin+`","stream":true`+more+`}`)
	step(result)
	for number := result["stream"]; number != nil && len(steps) < 20; {
		result, n := g.op("fetch.read", fmt.Sprintf(`{"stream":%v}`, number))
		step(result)
		if n < 0 || result["end"] == true {
			break
		}
	}
	return steps
}

func TestABodyIsReadAsItComes(t *testing.T) {
	const ms = time.Millisecond
	long := strings.Repeat("x", 70<<10)
	for name, row := range map[string]struct {
		service *slowService
		more    string
		want    []string
	}{
		"a body that comes at once":    {&slowService{parts: []slowPart{{0, "a"}, {5 * ms, "b"}}}, "", []string{"5ms body ab"}},
		"a body that comes later":      {&slowService{parts: []slowPart{{0, "a"}, {5 * ms, "b"}, {20 * ms, "c"}}}, "", []string{"10ms stream 1", "10ms ab", "25ms c", "25ms  end"}},
		"events are not waited for":    {&slowService{kind: "Text/Event-Stream; charset=utf-8", parts: []slowPart{{0, "a"}, {5 * ms, "b"}}}, "", []string{"0s stream 1", "0s a", "5ms b", "5ms  end"}},
		"bytes that are not text":      {&slowService{parts: []slowPart{{0, "\xff"}, {20 * ms, "\x00"}}}, "", []string{"10ms stream 1", "10ms map[base64:/w==]", "20ms map[base64:AA==]", "20ms  end"}},
		"a part has at most 64 KiB":    {&slowService{parts: []slowPart{{0, long}, {20 * ms, "c"}}}, "", []string{"10ms stream 1", "10ms " + long[:64<<10], "10ms " + long[64<<10:], "20ms c", "20ms  end"}},
		"the timeout is of each pause": {&slowService{parts: []slowPart{{90 * ms, "a"}, {90 * ms, "b"}, {101 * ms, "c"}}}, `,"timeout":0.1`, []string{"10ms stream 1", "90ms a", "180ms b", "280ms deadline: fetch.read: no answer within 100ms"}},
		"the timeout with the head":    {&slowService{parts: []slowPart{{9 * ms, "a"}}}, `,"timeout":0.005`, []string{"5ms deadline: fetch: no answer within 5ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuest(t, hostabi.Limits{})
				g.fetches(row.service, outbound.Options{})
				if got := g.reads(row.more); fmt.Sprint(got) != fmt.Sprint(row.want) {
					t.Errorf("got %.300q\nwant %.300q", got, row.want)
				}
				synctest.Wait()
				if row.service.open.Load() != 0 {
					t.Error("the body is not closed")
				}
			})
		})
	}
}

func TestTheRestOfABodyIsReadAsAWhole(t *testing.T) {
	for name, row := range map[string]struct {
		service *slowService
		want    string
	}{
		"within the limit":  {&slowService{parts: []slowPart{{0, "ab"}, {time.Second, "cd"}, {time.Second, "ef"}}}, "map[data:abcdef end:true]"},
		"over it":           {&slowService{parts: []slowPart{{0, "ab"}, {time.Second, "cdefghijk"}, {time.Hour, ""}}}, "map[code:too_large message:fetch.read: the answer has more than 10 bytes]"},
		"announced over it": {&slowService{length: 11, parts: []slowPart{{time.Hour, "abcdefghijk"}}}, "map[code:too_large message:fetch.read: the answer has more than 10 bytes]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuest(t, hostabi.Limits{})
				g.fetches(row.service, outbound.Options{MaxBody: 10})
				g.op("fetch", `{"url":"`+slowOrigin+`","stream":true,"timeout":60}`)
				if got, _ := g.op("fetch.read", `{"stream":1,"whole":true}`); fmt.Sprint(got) != row.want {
					t.Errorf("got %v, want %s", got, row.want)
				}
				synctest.Wait()
				if row.service.open.Load() != 0 {
					t.Error("the body is not closed")
				}
			})
		})
	}
}

// With one connection, another fetch needs the end of the first body.
// An open body counts as memory of the handlers. Without any there is no body to read, and its connection is closed.
func TestABodyHoldsMemoryUntilItsEnd(t *testing.T) {
	for name, end := range map[string]func(g *guest){
		"it is read to its end": func(g *guest) { g.op("fetch.read", `{"stream":1,"whole":true}`) },
		"it is closed":          func(g *guest) { g.op("fetch.close", `{"stream":1}`) },
		"the run ends":          func(g *guest) { g.call.End() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, sandbox := newGuest(t, hostabi.Limits{}), &recordingSandbox{most: 200 << 10}
				g.sandbox = sandbox
				service := &slowService{parts: []slowPart{{0, "a"}, {time.Second, "b"}}}
				g.fetches(service, outbound.Options{})
				fetch := `{"url":"` + slowOrigin + `","stream":true}`
				if g.op("fetch", fetch); sandbox.held != 128<<10 {
					t.Errorf("an open body holds %d bytes", sandbox.held)
				}
				if got, _ := g.op("fetch", fetch); got["code"] != "unavailable" || sandbox.held != 128<<10 {
					t.Errorf("another one without memory: %v, %d bytes are held", got, sandbox.held)
				}
				synctest.Wait()
				if n := service.open.Load(); n != 1 {
					t.Errorf("%d bodies are open", n)
				}
				if end(g); sandbox.held != 0 {
					t.Errorf("after that %d bytes are held", sandbox.held)
				}
				g.call.End()
			})
		})
	}
}

func TestABodyHoldsItsConnectionUntilItsEnd(t *testing.T) {
	for name, end := range map[string]func(g *guest){
		"it is read to its end": func(g *guest) { g.op("fetch.read", `{"stream":1,"whole":true}`) },
		"it is closed":          func(g *guest) { g.op("fetch.close", `{"stream":1}`) },
		"the run ends": func(g *guest) {
			g.call.End()
			g.call.Begin()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuest(t, hostabi.Limits{})
				service := &slowService{parts: []slowPart{{0, "a"}, {time.Second, "b"}}}
				g.fetches(service, outbound.Options{Connections: 1})
				again := `{"url":"` + slowOrigin + `","stream":true,"timeout":0.1}`
				g.op("fetch", `{"url":"`+slowOrigin+`","stream":true}`)
				if got, _ := g.op("fetch", again); got["code"] != "unavailable" || got["message"] != "fetch: no connection is free; try again" {
					t.Errorf("while it is open: %v", got)
				}
				end(g)
				synctest.Wait()
				if service.open.Load() != 0 {
					t.Errorf("%d bodies are open", service.open.Load())
				}
				if got, _ := g.op("fetch", again); got["status"] != 200.0 {
					t.Errorf("after that: %v", got)
				}
				g.call.End()
			})
		})
	}
}

func TestBodiesThatAreNotReadDoNotDelayOtherFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{})
		g.fetches(&slowService{parts: []slowPart{{time.Hour, "a"}}}, outbound.Options{})
		for n := range 20 { // more than are under way at once
			if got, _ := g.op("fetch", `{"url":"`+slowOrigin+`","stream":true}`); got["stream"] != float64(n+1) {
				t.Errorf("fetch %d: %v", n, got)
			}
		}
		g.call.End()
	})
}

func TestABodyIsReadOnlyWhileItIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{})
		g.fetches(&slowService{parts: []slowPart{{time.Second, "a"}}}, outbound.Options{})
		for args, want := range map[string]string{
			`{}`:                          `fetch.read: member "stream" is missing`,
			`{"stream":1}`:                `fetch.read: member "stream" is not the number of an open stream`,
			`{"stream":0}`:                `fetch.read: member "stream" is not the number of an open stream`,
			`{"stream":1.5}`:              `fetch.read: member "stream" must be a whole number`,
			`{"stream":1,"unknown":true}`: `fetch.read: member "stream" is not the number of an open stream`,
		} {
			if got, n := g.op("fetch.read", args); n != int32(abi.Invalid) || got["message"] != want {
				t.Errorf("%s: %v", args, got)
			}
		}
		g.op("fetch", `{"url":"`+slowOrigin+`","stream":true}`)
		reading := g.do("call_start", "fetch.read", `{"stream":1}`)
		if got, n := g.op("fetch.close", `{"stream":1}`); n < 0 {
			t.Errorf("close: %v", got)
		}
		if n := g.raw("call_take", uint32(reading)); n != int32(abi.Unavailable) {
			t.Errorf("a read while it is closed: %d", n)
		}
		if got, n := g.op("fetch.close", `{"stream":1}`); n < 0 {
			t.Errorf("close again: %v", got)
		}
		if _, n := g.op("fetch.read", `{"stream":1}`); n != int32(abi.Invalid) {
			t.Errorf("a read after it: %d", n)
		}
	})
}

// What is read counts as moved, and in a streamed answer waits for the budget of the next second.
func TestTheBytesOfABodyAreMoved(t *testing.T) {
	part := strings.Repeat("x", 60_000)
	many := &slowService{kind: "text/event-stream"}
	for range 20 {
		many.parts = append(many.parts, slowPart{time.Millisecond, part})
	}
	synctest.Test(t, func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{MovedBytes: 1_000_000})
		g.fetches(many, outbound.Options{})
		g.do("call", "fetch", `{"url":"`+slowOrigin+`","stream":true}`)
		parts, last := 0, int32(0)
		for last = g.do("call", "fetch.read", `{"stream":1}`); last > 0; last = g.do("call", "fetch.read", `{"stream":1}`) {
			parts++
		}
		if parts < 14 || parts > 16 || last != int32(abi.TooLarge) {
			t.Errorf("after %d parts of 60,000 bytes, of 1,000,000 that may be moved: %d", parts, last)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		g, _, now := newStreamingGuest(t, hostabi.Limits{MovedBytes: 1_000_000, HostCalls: 100_000})
		g.fetches(many, outbound.Options{})
		g.do("response_begin", 200)
		g.op("fetch", `{"url":"`+slowOrigin+`","stream":true}`)
		began, size := time.Now(), 0
		start := *now
		for {
			got, n := g.op("fetch.read", `{"stream":1}`)
			if n < 0 {
				t.Fatal(got)
			}
			if size += len(got["data"].(string)); got["end"] == true {
				break
			}
			*now = start.Add(time.Since(began))
		}
		if took := time.Since(began); size != 20*len(part) || took < 2*time.Second || took > 3*time.Second {
			t.Errorf("%d bytes within %s", size, took)
		}
	})
}

func TestTheReadsOfABodyAreReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{})
		service := &slowService{parts: []slowPart{{0, "a"}, {time.Second, "b"}}}
		g.fetches(service, outbound.Options{})
		recorder := &recording.Recorder{}
		g.call.Recorder = recorder
		g.call.Begin()
		recorded := g.reads("")
		g.call.End()
		made := &recording.Recording{Format: recording.Format, ID: g.call.Request.ID, Request: recording.RequestOf(g.call.Request, nil)}
		recorder.Take(made)
		player, err := recording.NewPlayer(made, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		player.Live = true
		g.call.Recorder, g.call.Player = nil, player
		g.call.Begin()
		for i, step := range g.reads("") {
			_, was, _ := strings.Cut(recorded[i], " ")
			if step != "0s "+was {
				t.Errorf("step %d is %q, recorded was %q", i, step, was)
			}
		}
		if d := player.Divergence(); d != nil || player.Left() > 0 {
			t.Errorf("%v, %d calls are left", d, player.Left())
		}
		for op, args := range map[string]string{"fetch.read": `{"stream":1}`, "fetch": `{"url":"` + slowOrigin + `","stream":true}`} {
			if got, n := g.op(op, args); n != int32(abi.Unavailable) {
				t.Errorf("%s after what was recorded: %v", op, got)
			}
		}
	})
}
