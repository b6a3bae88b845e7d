package hostabi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/longwork"
	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/secret"
	"runner.example/keystore"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// emptyModule has two pages of memory, exported, and nothing else.
var emptyModule = []byte("\x00asm\x01\x00\x00\x00" + "\x05\x03\x01\x00\x02" + "\x07\x0a\x01\x06memory\x02\x00")

const memoryBytes = 2 << 16

// guest is the other side of the host's functions: real guest memory, and calls
// as a module would make them.
type guest struct {
	t         testing.TB
	module    api.Module
	functions map[string]hostabi.Function
	wasi      map[string]hostabi.Function
	call      *hostabi.Call
	log       *bytes.Buffer
	store     *store.Store
	next      uint32 // free memory
	sandbox   hostabi.Sandbox
}

const appSchema = `
app Test
secret SIGNING_KEY
var ORIGIN: url = "https://mail.example.com"
apiKeys {
	maxLifetime: 90d
	scopes: {
		read_only: @system("test:read") {
			@issue when auth.kind == "session"
			@grant read on Thing
		},
		admin: @system("test:admin") {
			@issue when auth.userId == "owner"
			@grant read, write, delete on Thing
		}
	}
}
`

// newGuest is a guest in the middle of a request of a session, with limits of
// the test's.
func newGuest(t testing.TB, limits hostabi.Limits) *guest {
	t.Helper()
	ctx := context.Background()
	runtime := wazero.NewRuntime(ctx)
	module, err := runtime.Instantiate(ctx, emptyModule)
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := keystore.Open(ctx, st, keystore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := keys.Close(); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		if err := runtime.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	app, model := activate(t, st, appSchema)
	secrets, err := secret.Resolve(app.Secrets, func(string) (string, bool) { return "", false },
		map[string]string{"SIGNING_KEY": "s3cr3t", "OTHER": "not declared"})
	if err != nil {
		t.Fatal(err)
	}
	log := new(bytes.Buffer)
	g := &guest{t: t, module: module, functions: map[string]hostabi.Function{}, wasi: map[string]hostabi.Function{}, log: log, store: st, next: 1024}
	for _, f := range hostabi.Functions() {
		g.functions[f.Name] = f
	}
	for _, f := range hostabi.WASI() {
		g.wasi[f.Name] = f
	}
	g.call = &hostabi.Call{Input: hostabi.Input{
		Context: ctx,
		Host: hostabi.NewHost(hostabi.Host{
			Keystore: keys, Store: st, Entities: model, Schema: app, Secrets: secrets, Limits: limits,
			LongWork: longwork.New(longwork.Options{Parallel: 2}),
			Logger:   slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}),
		Request: &abi.Request{
			ID: "01j000000000000000000000aa", Method: []byte("POST"), Path: []byte("/v1/things/a%20b"), Route: "/v1/things/:id",
			Params:   pairs("id", "a b"),
			RawQuery: []byte("q=1&empty=&%71=2"),
			Query:    pairs("q", "1", "empty", "", "q", "2"),
			Headers:  pairs("content-type", "application/json", "x-ü", "ö"),
			Body:     []byte(`{"n":1}`),
		},
		Caller:  caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "t1", Roles: []string{"editor"}},
		Address: netip.MustParseAddr("192.0.2.1"),
		Attempt: 1,
	}}
	g.call.Begin()
	// A transaction for as long as the test lasts; what it writes is dropped.
	started, done, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = st.Update(ctx, func(tx *store.Tx) error {
			g.call.Tx = tx
			close(started)
			<-done
			return context.Canceled
		})
	}()
	<-started
	t.Cleanup(func() { close(done); <-ended })
	return g
}

// activate activates a schema in the store.
func activate(t testing.TB, st *store.Store, text string) (*schema.Schema, *entity.Model) {
	t.Helper()
	sources := []diag.Source{{Name: "app.schema", Text: []byte(text)}}
	app, diagnostics := compiler.Compile(sources, compiler.Options{})
	if diagnostics.HasErrors() {
		t.Fatal(diagnostics)
	}
	model, err := entity.Activate(context.Background(), st, app, sources, entity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return app, model
}

func pairs(texts ...string) (list []abi.Pair) {
	for i := 0; i < len(texts); i += 2 {
		list = append(list, abi.Pair{Name: []byte(texts[i]), Value: []byte(texts[i+1])})
	}
	return list
}

// raw calls a function with i32 words.
func (g *guest) raw(name string, words ...uint32) int32 {
	g.t.Helper()
	f := g.functions[name]
	if len(words) != len(f.Params) {
		g.t.Fatalf("%s takes %d words, not %d", name, len(f.Params), len(words))
	}
	stack := make([]uint64, max(1, len(words)))
	for i, w := range words {
		stack[i] = 0xdead_beef_0000_0000 | uint64(w) // the upper half means nothing
	}
	f.Fn.Call(g.context(), g.module, stack)
	if len(f.Results) == 0 {
		return 0
	}
	return api.DecodeI32(stack[0])
}

// recordingSandbox records what host functions report to the sandbox.
type recordingSandbox struct {
	waits   []bool
	mayWait func(begins bool) error // nil: always
	worked  time.Duration
	working func() error
	held    int
	most    int // that it lets the host hold
	streams int // calls of BeginStream
}

func (s *recordingSandbox) BeginStream() error {
	s.streams++
	return nil
}

func (s *recordingSandbox) Hold(bytes int) bool {
	if s.held+bytes > s.most {
		return false
	}
	s.held += bytes
	return true
}

func (s *recordingSandbox) Release(bytes int) { s.held -= bytes }

func (s *recordingSandbox) Wait(begins bool) error {
	s.waits = append(s.waits, begins)
	if s.mayWait == nil {
		return nil
	}
	return s.mayWait(begins)
}

func (s *recordingSandbox) Worked(d time.Duration) { s.worked += d }
func (s *recordingSandbox) Working() error {
	if s.working == nil {
		return nil
	}
	return s.working()
}

// context is what the guest runs under.
func (g *guest) context() context.Context {
	ctx := &hostabi.Guest{Context: g.call.Context, Sandbox: g.sandbox}
	ctx.Bind(g.call)
	return ctx
}

// do calls a function with numbers and texts, which are put into memory.
func (g *guest) do(name string, args ...any) int32 {
	g.t.Helper()
	return g.raw(name, g.words(args)...)
}

func (g *guest) words(args []any) (words []uint32) {
	g.t.Helper()
	for _, a := range args {
		switch a := a.(type) {
		case int:
			words = append(words, uint32(int32(a)))
		case string:
			at, n := g.put(a)
			words = append(words, at, n)
		}
	}
	return words
}

func (g *guest) put(text string) (at, n uint32) {
	g.t.Helper()
	at = g.next
	if !g.module.Memory().WriteString(at, text) {
		at = 1024 // around again
		if !g.module.Memory().WriteString(at, text) {
			g.t.Fatalf("%d bytes do not fit into guest memory", len(text))
		}
	}
	g.next = at + uint32(len(text))
	return at, uint32(len(text))
}

// room is where give lets the host write.
const room, roomBytes = 512, 512

// get calls a function that gives bytes, with args before the room.
func (g *guest) get(name string, args ...any) (string, int32) {
	g.t.Helper()
	n := g.raw(name, append(g.words(args), room, roomBytes)...)
	if n < 0 || n > roomBytes {
		return "", n
	}
	b, _ := g.module.Memory().Read(room, uint32(n))
	return string(b), n
}

// op runs an operation and reads its result.
func (g *guest) op(name, args string) (map[string]any, int32) {
	g.t.Helper()
	n := g.do("call", name, args)
	return g.result(name, n), n
}

// result reads the last result, which a call said has n bytes.
func (g *guest) result(name string, n int32) map[string]any {
	g.t.Helper()
	var text []byte
	for offset := 0; ; offset += roomBytes {
		rest := g.raw("call_result", uint32(offset), room, roomBytes)
		if rest < 0 {
			g.t.Fatalf("call_result after %s: %d", name, rest)
		}
		b, _ := g.module.Memory().Read(room, uint32(min(rest, roomBytes)))
		text = append(text, b...)
		if rest <= roomBytes {
			break
		}
	}
	if n >= 0 && int(n) != len(text) {
		g.t.Errorf("%s returns a length of %d, its result has %d", name, n, len(text))
	}
	var result map[string]any
	if err := json.Unmarshal(text, &result); err != nil {
		g.t.Fatalf("the result of %s is %q: %v", name, text, err)
	}
	return result
}

const (
	notFound = int32(abi.NotFound)
	invalid  = int32(abi.Invalid)
	denied   = int32(abi.Denied)
	conflict = int32(abi.Conflict)
	tooLarge = int32(abi.TooLarge)
	limit    = int32(abi.Limit)
)

func TestEveryFunctionOfTheTableExistsWithItsSignature(t *testing.T) {
	table, have := abi.Functions(), hostabi.Functions()
	if len(table) != len(have) {
		t.Fatalf("%d functions in the table, %d in the host", len(table), len(have))
	}
	for i, f := range table {
		h := have[i]
		if h.Name != f.Name || len(h.Params) != f.Words() || (len(h.Results) == 1) != f.Result {
			t.Errorf("%s of %d words is %s %v -> %v", f.Name, f.Words(), h.Name, h.Params, h.Results)
		}
	}
}

func TestEveryOperationOfTheTableExists(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for _, op := range abi.Ops() {
		result, n := g.op(op.Name, `{"no such member":1}`)
		if n != invalid || !strings.Contains(result["message"].(string), op.Name) || strings.Contains(result["message"].(string), "unknown operation") {
			t.Errorf("%s: %d %v", op.Name, n, result)
		}
	}
}

// TestPointersOutsideGuestMemoryAreInvalid calls every function with every pointer of it
// wrong in every way, and the rest right.
func TestPointersOutsideGuestMemoryAreInvalid(t *testing.T) {
	lies := [][2]uint32{
		{memoryBytes, 1}, {memoryBytes - 1, 2}, {0, memoryBytes + 1}, {1 << 31, 1}, {0xffff_ffff, 1},
		{16, 0xffff_ffff}, {0, 1 << 31}, {0xffff_ffff, 0xffff_ffff},
	}
	g := newGuest(t, hostabi.Limits{HostCalls: 1 << 20})
	right := map[string]uint32{"status": 400, "kind": 1}
	for _, f := range abi.Functions() {
		for wrong, p := range f.Params {
			if p.Kind == abi.Number {
				continue
			}
			for _, lie := range lies {
				var words []uint32
				for i, p := range f.Params {
					switch {
					case i == wrong:
						words = append(words, lie[0], lie[1])
					case p.Kind == abi.Number:
						words = append(words, right[p.Name])
					default:
						words = append(words, 0, 0)
					}
				}
				if got := g.raw(f.Name, words...); f.Result && got != invalid {
					t.Errorf("%s with %s at %#x, %#x long: %d, want invalid", f.Name, p.Name, lie[0], lie[1], got)
				}
			}
		}
	}
	if r := g.call.Response; r.Status != 0 || len(r.Headers) != 0 {
		t.Errorf("calls that failed left an answer: %+v", r)
	}
	if n := g.raw("response_send", 200, 0xffff_ffff, 0); n != 0 {
		t.Errorf("a length of 0 with any pointer: %d", n)
	}
}

func TestAHostCallAfterTheDeadlineUnwindsTheGuest(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	ctx, cancel := context.WithCancel(context.Background())
	g.call.Context = ctx
	cancel()
	for name, f := range g.functions {
		func() {
			defer func() {
				if r := recover(); r != hostabi.ErrTimeOver {
					t.Errorf("%s: %v", name, r)
				}
			}()
			g.call.Begin()
			g.raw(name, make([]uint32, len(f.Params))...)
		}()
	}
}

func TestBeginResetsThePreviousRun(t *testing.T) {
	g := newGuest(t, hostabi.Limits{HostCalls: 10})
	for range 20 {
		g.raw("request_method", 0, 0)
	}
	g.do("response_header", "x-a", "1")
	g.do("response_send", 200, "x")
	g.raw("keep_writes")
	g.call.Begin()
	if g.call.KeepsWrites() || g.call.Response.Status != 0 || len(g.call.Response.Headers) != 0 || len(g.call.Response.Body) != 0 {
		t.Errorf("the answer of the run before is there: %+v", g.call.Response)
	}
	if n := g.raw("call_result", 0, 0, 0); n != notFound {
		t.Errorf("a result before any call: %d", n)
	}
	if n := g.raw("request_method", 0, 0); n != 4 {
		t.Errorf("the budget of the run before counts: %d", n)
	}
	if g.raw("keep_writes"); !g.call.KeepsWrites() {
		t.Error("keep_writes is not noted")
	}
}

func TestBeforeTheRequestOnlyTheLogWorks(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	request := g.call.Request
	for what, begin := range map[string]func(){
		"initializing": func() { g.call.Initializing(true) },
		"no request":   func() { g.call.Initializing(false); g.call.Request = nil },
	} {
		begin()
		for _, f := range abi.Functions() {
			if n := g.raw(f.Name, make([]uint32, f.Words())...); f.Result && n != denied {
				t.Errorf("%s: %s returns %d, want denied", what, f.Name, n)
			}
		}
		if g.do("log", 1, "up"); !strings.Contains(g.log.String(), `"msg":"up"`) {
			t.Errorf("%s: no log line", what)
		}
		g.call.Request = request
		g.log.Reset()
	}
	if g.call.KeepsWrites() {
		t.Error("keep_writes worked before the request")
	}
}

func TestReadingTheRequestAllocatesNothing(t *testing.T) {
	g := newGuest(t, hostabi.Limits{HostCalls: 1 << 30, MovedBytes: 1 << 30})
	at, n := g.put("content-type")
	ctx := g.context()
	stack := make([]uint64, 8)
	for _, row := range []struct {
		function string
		words    []uint64
	}{
		{"request_path", []uint64{room, roomBytes}},
		{"request_header", []uint64{uint64(at), uint64(n), room, roomBytes}},
		{"request_pairs", []uint64{2, room, roomBytes}},
		{"request_body", []uint64{0, room, roomBytes}},
	} {
		f := g.functions[row.function]
		allocs := testing.AllocsPerRun(10_000, func() { // enough runs that allocations of other goroutines round to 0
			copy(stack, row.words)
			f.Fn.Call(ctx, g.module, stack)
		})
		if allocs != 0 || api.DecodeI32(stack[0]) <= 0 {
			t.Errorf("%s: %v allocations, result %d", row.function, allocs, api.DecodeI32(stack[0]))
		}
	}
}
