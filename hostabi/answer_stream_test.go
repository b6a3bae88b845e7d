package hostabi_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// client takes the parts of an answer until it is gone.
type client struct {
	head   int // the status
	parts  int
	bytes  int
	gone   bool
	unsent bool // the next part waits
	waited int
	left   chan struct{}
}

func (c *client) Gone() <-chan struct{} { return c.left }

func (c *client) Begin(r *abi.Response) (waits bool, err error) {
	c.head = r.Status
	return c.unsent, c.result()
}

func (c *client) Write(part []byte) (waits bool, err error) {
	c.parts, c.bytes = c.parts+1, c.bytes+len(part)
	return c.unsent, c.result()
}

func (c *client) Flush() error {
	c.waited++
	return c.result()
}

func (c *client) result() error {
	if c.gone {
		return errors.New("gone")
	}
	return nil
}

// A client that hangs up while its handler waits ends what the handler waits for, and nothing that it starts later.
func TestAWaitEndsWhenTheClientHangsUp(t *testing.T) {
	for _, waits := range []string{"call", "call_take", "poll_oneoff"} {
		synctest.Test(t, func(t *testing.T) {
			g, c, _ := newStreamingGuest(t, hostabi.Limits{})
			c.left = make(chan struct{})
			g.do("response_begin", 200)
			began := time.Now()
			time.AfterFunc(time.Second, func() { close(c.left) })
			switch waits {
			case "call":
				if _, errno := g.op("sleep", `{"seconds":50}`); errno != int32(abi.Unavailable) {
					t.Errorf("the sleep returns %d", errno)
				}
			case "call_take":
				if errno := g.do("call_take", int(g.do("call_start", "sleep", `{"seconds":50}`))); errno != int32(abi.Unavailable) {
					t.Errorf("the pending sleep returns %d", errno)
				}
			default:
				g.subscribe([4]uint64{0, 1, uint64(50 * time.Second), 0})
				if errno := g.system("poll_oneoff", 1024, 4096, 1, 8); errno != wasiOK {
					t.Errorf("the poll returns %d", errno)
				}
			}
			if took := time.Since(began); took != time.Second || !g.call.Gone() {
				t.Errorf("%s ends after %s, gone %v", waits, took, g.call.Gone())
			}
			if errno := g.do("response_write", ""); errno != int32(abi.Unavailable) {
				t.Errorf("a part is accepted: %d", errno)
			}
			if _, errno := g.op("sleep", `{"seconds":0.5}`); errno < 0 || time.Since(began) != 1500*time.Millisecond {
				t.Errorf("a later sleep returns %d after %s", errno, time.Since(began))
			}
			g.call.End()
		})
	}
}

// newStreamingGuest is a guest whose answer can be streamed to the client, with a clock that the test moves.
func newStreamingGuest(t *testing.T, limits hostabi.Limits) (g *guest, c *client, now *time.Time) {
	g, c, now = newGuest(t, limits), &client{}, new(time.Time)
	*now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	host := *g.call.Host
	host.Store, host.Calendar = g.store, func() time.Time { return *now }
	g.call.Host, g.call.Stream = &host, c
	return g, c, now
}

func TestAStreamHasTheLimitsOfARequestInEachSecond(t *testing.T) {
	g, c, now := newStreamingGuest(t, hostabi.Limits{HostCalls: 100, StoreOps: 40, LogLines: 40, MovedBytes: 64 << 10})
	if errno := g.do("response_begin", 200); errno != 0 || c.head != 200 || !g.call.Streaming() {
		t.Fatalf("the beginning returns %d, the client has %d", errno, c.head)
	}
	const pieces, length = 20_000, 10 * time.Minute
	for n := range pieces {
		if errno := g.do("response_write", "piece\n"); errno != 0 {
			t.Fatalf("piece %d: errno %d", n, errno)
		}
		if _, errno := g.op("count", `{"from":"Thing"}`); errno < 0 {
			t.Fatalf("the operation after piece %d: errno %d", n, errno)
		}
		*now = now.Add(length / pieces)
	}
	if c.parts != pieces || c.bytes != pieces*len("piece\n") {
		t.Errorf("the client has %d parts, %d bytes", c.parts, c.bytes)
	}
	// Within a second they are limits.
	refused := 0
	for range 50 {
		if _, errno := g.op("count", `{"from":"Thing"}`); errno == int32(abi.Limit) {
			refused++
		}
	}
	if refused == 0 {
		t.Error("50 operations within a second are all allowed, the limit is 40")
	}
}

func TestTheBeginningOfAnAnswerCommits(t *testing.T) {
	g, c, _ := newStreamingGuest(t, hostabi.Limits{})
	if _, errno := g.op("insert", `{"into":"Thing","values":{"name":"before"}}`); errno < 0 {
		t.Fatal(errno)
	}
	tx := g.call.Tx
	if errno := g.do("response_begin", 201); errno != 0 || c.head != 201 {
		t.Fatalf("the beginning returns %d", errno)
	}
	if _, err := tx.Get([]byte("x")); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("the request's transaction is open after the beginning: %v", err)
	}
	if _, errno := g.op("insert", `{"into":"Thing","values":{"name":"after"}}`); errno < 0 {
		t.Errorf("an insert after the beginning: %d", errno)
	}
	if got, _ := g.op("count", `{"from":"Thing"}`); got["count"] != 2.0 {
		t.Errorf("the rows: %v", got)
	}
	g.call.CreatesSession = true
	if _, errno := g.op("sessions.create", `{"userId":"u2"}`); errno != int32(abi.Denied) {
		t.Errorf("a session after the beginning: %d", errno)
	}
	for name, args := range map[string][]any{
		"response_begin": {200}, "response_send": {200, "x"}, "response_header": {"a", "b"},
	} {
		if errno := g.do(name, args...); errno != int32(abi.Invalid) {
			t.Errorf("%s after the beginning returns %d", name, errno)
		}
	}
}

func TestAPartThatWaitsIsFlushedAndAClientThatIsGoneEndsTheAnswer(t *testing.T) {
	g, c, _ := newStreamingGuest(t, hostabi.Limits{})
	if errno := g.do("response_write", "early"); errno != int32(abi.Invalid) {
		t.Errorf("a part before the beginning returns %d", errno)
	}
	for _, status := range []any{199, 204, 304, 600} {
		if errno := g.do("response_begin", status); errno != int32(abi.Invalid) {
			t.Errorf("the beginning with status %v returns %d", status, errno)
		}
	}
	g.do("response_begin", 200)
	c.unsent = true
	if errno := g.do("response_write", "part"); errno != 0 || c.waited != 1 {
		t.Errorf("a part that waits returns %d after %d waits", errno, c.waited)
	}
	c.gone = true
	if errno := g.do("response_write", "part"); errno != int32(abi.Unavailable) || !g.call.Gone() {
		t.Errorf("a part for a client that is gone returns %d", errno)
	}
	if errno := g.do("response_error", 500, "handler_failed", ""); errno != 0 || g.call.BrokenOff() == nil {
		t.Errorf("an error after the beginning returns %d, and %v", errno, g.call.BrokenOff())
	}
}

func TestWithoutAStreamThePartsAreAnOrdinaryAnswer(t *testing.T) {
	g := newGuest(t, hostabi.Limits{ResponseBytes: 1 << 10})
	for _, step := range []int32{
		g.do("response_begin", 202), g.do("response_write", "one "), g.do("response_write", "two"),
	} {
		if step != 0 {
			t.Fatal(step)
		}
	}
	if r := &g.call.Response; r.Status != 202 || string(r.Body) != "one two" || g.call.Streaming() {
		t.Errorf("the answer is %d %q", r.Status, r.Body)
	}
	if errno := g.do("response_write", string(make([]byte, 1<<10))); errno != int32(abi.TooLarge) {
		t.Errorf("more than an answer may have returns %d", errno)
	}
	if errno := g.do("response_error", 409, "late", "no"); errno != 0 || g.call.Response.Status != 409 || g.call.Response.Code != "late" || len(g.call.Response.Body) > 0 {
		t.Errorf("an error in place of the parts: %d, %+v", errno, g.call.Response)
	}
}

// beginsWith is the status of the head that the client has, and what ended the run in response_begin; nil: nothing did.
func beginsWith(g *guest, c *client, status int) (head int, ended any) {
	defer func() { head, ended = c.head, recover() }()
	g.do("response_begin", status)
	return
}

// Otherwise the client would be told to try again what was stored.
func TestARunThatEndsInItsCommitHasBegunItsAnswer(t *testing.T) {
	g, c, _ := newStreamingGuest(t, hostabi.Limits{})
	spent := errors.New("no processor")
	g.sandbox = &recordingSandbox{mayWait: func(begins bool) error {
		if begins {
			return nil
		}
		return spent
	}}
	if _, errno := g.op("insert", `{"into":"Thing","values":{"name":"committed"}}`); errno < 0 {
		t.Fatal(errno)
	}
	if head, ended := beginsWith(g, c, 200); head != 200 || ended != spent || !g.call.Streaming() {
		t.Errorf("the client has the head %d of an answer that is ended by %v, streaming %v", head, ended, g.call.Streaming())
	}
}

func TestARunThatMayNotWaitCommitsNothing(t *testing.T) {
	g, c, _ := newStreamingGuest(t, hostabi.Limits{})
	full := errors.New("no place")
	g.sandbox = &recordingSandbox{mayWait: func(bool) error { return full }}
	if _, errno := g.op("insert", `{"into":"Thing","values":{"name":"never"}}`); errno < 0 {
		t.Fatal(errno)
	}
	if head, ended := beginsWith(g, c, 200); head != 0 || ended != full || g.call.Streaming() {
		t.Errorf("the client has the head %d of an answer that is ended by %v, streaming %v", head, ended, g.call.Streaming())
	}
}

func TestAnOutdatedReleaseBeginsNoAnswer(t *testing.T) {
	g, c, _ := newStreamingGuest(t, hostabi.Limits{})
	activate(t, g.store, strings.Replace(appSchema, "read on Thing", "read on Thing, Other", 1))
	if _, errno := g.op("count", `{"from":"Thing"}`); errno != int32(abi.Unavailable) {
		t.Fatalf("an operation of an outdated release returns %d", errno)
	}
	head, ended := beginsWith(g, c, 200)
	if why, ok := ended.(error); head != 0 || !ok || !errors.Is(why, entity.ErrOutdated) || !g.call.Outdated() {
		t.Errorf("the client has the head %d of an answer that is ended by %v", head, ended)
	}
}

func TestAnAnswerThatDiscardsItsSessionHasNoCookieOfIt(t *testing.T) {
	for status, opens := range map[int]bool{200: true, 401: false} {
		g, _, _ := newStreamingGuest(t, hostabi.Limits{})
		app := *g.call.Host.Schema
		app.Auth.Cookie = &schema.CookieSession{Name: "__Host-session", Idle: time.Hour, Absolute: time.Hour}
		host := *g.call.Host
		host.Schema = &app
		g.call.Host, g.call.CreatesSession = &host, true
		if got, errno := g.op("sessions.create", `{"userId":"u2","ttl":60}`); errno < 0 || g.call.SetCookie() == "" {
			t.Fatalf("%d %v", errno, got)
		}
		if errno := g.do("response_begin", status); errno != 0 || (g.call.SetCookie() != "") != opens {
			t.Errorf("the answer %d returns %d with the cookie %q", status, errno, g.call.SetCookie())
		}
	}
}

func TestAStreamKeepsNothingOfItsOperations(t *testing.T) {
	g, _, _ := newStreamingGuest(t, hostabi.Limits{HostCalls: 1 << 30, MovedBytes: 1 << 30})
	if errno := g.do("response_begin", 200); errno != 0 {
		t.Fatal(errno)
	}
	var before, after runtime.MemStats
	const operations = 30_000
	for n := range operations {
		if n == 1000 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		if n%2 == 0 {
			if _, errno := g.op("sleep", `{"seconds":0}`); errno < 0 {
				t.Fatal(errno)
			}
		} else if number := g.do("call_start", "sleep", `{"seconds":0}`); number != int32(n) || g.do("call_take", int(number)) < 0 {
			t.Fatalf("operation %d has the number %d", n, number)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2<<20 {
		t.Errorf("after %d operations %d KiB are kept", operations, grown>>10)
	}
}
