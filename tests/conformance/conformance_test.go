package conformance_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/python"
	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/longwork"
	"runner.example/hostabi/outbound"
	"runner.example/hostabi/password"
	"runner.example/hostabi/recording"
	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/internal/secret"
	"runner.example/internal/tree"
	"runner.example/keystore"
	"runner.example/runtime"
	"runner.example/runtime/router"
	"runner.example/runtime/sandbox"
	"runner.example/runtime/upload"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/sdk/rust/rusttest"
	"runner.example/state/entity"
	"runner.example/state/store"

	// Compilers read these files, so the test must run again when one changes.
	_ "runner.example/sdk/assemblyscript"
)

var update = flag.Bool("update", false, "write the traces of the guest that runs into testdata")

// guests are the directories of guests/, by the SDK that they use.
var guests = map[string][]string{
	"go": {"go"}, "typescript": {"ts"}, "python": {"python"}, "c": {"c", "cpp"}, "rust": {"rust"}, "assemblyscript": {"as"},
}

// languages are those that have a guest.
func languages(t testing.TB) (names []string) {
	t.Helper()
	entries, err := os.ReadDir("guests")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestEverySDKHasAGuest(t *testing.T) {
	sdks, err := os.ReadDir(filepath.Join("..", "..", "sdk"))
	if err != nil {
		t.Fatal(err)
	}
	there := languages(t)
	for _, sdk := range sdks {
		if sdk.Name() == "wit" { // types without code: hostabi/wasi tests what they say
			continue
		}
		if len(guests[sdk.Name()]) == 0 {
			t.Errorf("sdk/%s has no guest here", sdk.Name())
		}
		for _, guest := range guests[sdk.Name()] {
			if !slices.Contains(there, guest) {
				t.Errorf("guests/%s is missing, which tries sdk/%s", guest, sdk.Name())
			}
		}
	}
}

func TestEverySDKHasTheSameEffects(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) < 10 {
		t.Fatalf("%d cases found: %v", len(cases), err)
	}
	for _, language := range languages(t) {
		t.Run(language, func(t *testing.T) {
			g := newGuest(t, language)
			ctx := g.trace.listening(t.Context())
			if language == "python" { // a program calls the host through a file, and cannot be continued with a listener
				ctx = t.Context()
			}
			g.load(t, ctx)
			for _, file := range cases {
				name := strings.TrimSuffix(filepath.Base(file), ".txtar")
				t.Run(name, func(t *testing.T) { g.conforms(t, file) })
			}
			t.Run("memory", g.tellsALackOfMemory)
			t.Run("large row", g.handlesALargeRow)
			t.Run("result past a budget", g.tellsTheBudgetOfAResult)
			t.Run("list without a limit", g.listsEveryKey)
			t.Run("streams", g.streamsAnswers)
			t.Run("bodies", g.streamsBodies)
		})
	}
}

// tellsALackOfMemory sends valid JSON that does not fit in memory. The response must not
// call it invalid.
func (g *guest) tellsALackOfMemory(t *testing.T) {
	for what, body := range map[string]string{
		"a text":               `{"item":"` + strings.Repeat(`tea\n`, 5<<20) + `"}`,
		"no room for the body": `{"item":"` + strings.Repeat("tea", 24<<20) + `"}`,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w := g.newWorld(t)
		w.host.Limits.CPU = time.Minute
		call := &hostabi.Call{Input: hostabi.Input{
			Context: ctx, Host: w.host, Attempt: 1,
			Request: &abi.Request{Method: []byte("POST"), Path: []byte("/body"), Body: []byte(body)},
		}}
		err := g.modules["body"].Run(call, "body")
		if fault.CodeOf(err) != fault.HandlerOutOfMemory {
			t.Errorf("%s of %d MiB answers %d %q (%v)\n%s", what, len(body)>>20, call.Response.Status, call.Response.Code, err, w.log.String())
		}
	}
}

// handlesALargeRow inserts, reads and updates a row of nearly 1 MiB, the limit of a row.
func (g *guest) handlesALargeRow(t *testing.T) {
	w := g.newWorld(t)
	w.host.Limits.CPU = time.Minute // the default is spent on a busy machine
	item := strings.Repeat("tea, \"é\"\n", 1<<20/10-20)
	text, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []struct{ line, want string }{
		{"POST /orders\n\n{\"item\":" + string(text) + "}", "send 201 "},
		{"GET /names/<id1>", "send 200 "},
		{"PATCH /orders/<id1>", "send 200 "},
	} {
		w.log.Reset()
		lines := w.serve(t, request.line)
		last := lines[len(lines)-1]
		if !strings.HasPrefix(last, request.want) || !strings.Contains(last, string(text)) {
			t.Errorf("%.20q ends with %.200s\n%s", request.line, last, w.log.String())
		}
	}
}

// tellsTheBudgetOfAResult reads a row with budgets that end before, between and after the calls that
// read the result. The handler gets the row or the error, and never other bytes.
func (g *guest) tellsTheBudgetOfAResult(t *testing.T) {
	w := g.newWorld(t)
	item := strings.Repeat("tea", 20<<10)
	w.serve(t, "POST /orders\n\n{\"item\":\""+item+"\"}")
	var calls []hostabi.Limits
	for n := range 30 {
		calls = append(calls, hostabi.Limits{HostCalls: 1 + n})
	}
	for cause, budgets := range map[string][]hostabi.Limits{
		"a request may call the host":          calls,
		"the request has moved too many bytes": {{MovedBytes: 50 << 10}},
	} {
		refused := false
		for _, limits := range budgets {
			w.host.Limits = hostabi.NewHost(hostabi.Host{Limits: limits}).Limits
			w.log.Reset()
			lines := w.serve(t, "GET /names/<id1>")
			switch last := lines[len(lines)-1]; {
			case strings.HasPrefix(last, "send 200 ") && strings.Contains(last, item):
			case last == "failed" && strings.Contains(w.log.String(), cause):
				refused = true
			default:
				t.Errorf("%s, %+v: %.200s\n%.500s", cause, w.host.Limits, last, w.log.String())
			}
		}
		if !refused {
			t.Errorf("no request was refused: %s", cause)
		}
	}
}

// listsEveryKey lists more keys than the host gives at once, without a limit: all of them or an
// error of a budget, and never a part.
func (g *guest) listsEveryKey(t *testing.T) {
	w := g.newWorld(t)
	const request = "GET /all-keys"
	who := keystore.Authority{Schema: w.schema, Caller: parseRequest(t, w.schema, w.router, request, w.trace.filled).caller}
	const n = 2345
	if _, err := w.store.Update(t.Context(), func(tx *store.Tx) error {
		for i := range n {
			if _, err := w.host.Keystore.Create(tx, who, keystore.CreateRequest{Scope: "readers", Name: fmt.Sprint("key ", i)}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	w.host.Limits.CPU = time.Minute // the default is spent on a busy machine
	want := fmt.Sprintf(`send 200 {"end":true,"keys":%d,"kind":"key","name":"newest",`, n+1)
	if lines := w.serve(t, request); len(lines) != 5 || !strings.HasPrefix(lines[4], want) {
		t.Errorf("%.600q\nwant at the end %s", lines, want)
	}
	w.host.Limits.StoreOps = 3
	if lines := w.serve(t, request); lines[len(lines)-1] != "failed" && !strings.HasPrefix(lines[len(lines)-1], "error ") {
		t.Errorf("with a budget of two pages: %.300q", lines)
	}
}

func TestEveryHandlerHasACase(t *testing.T) {
	app, _ := readSchema(t)
	asked := map[string]bool{"bodies": true} // streamsBodies calls it over a connection
	cases, _ := filepath.Glob("testdata/*.txtar")
	paths := newRouter(app)
	for _, file := range cases {
		for _, part := range readCase(t, file).Files {
			if part.Name == "request" {
				r := parseRequest(t, app, paths, string(part.Data), func(s string) string { return s })
				asked[r.handler] = true
			}
		}
	}
	for _, r := range app.Routes {
		if !asked[r.Handler] {
			t.Errorf("no case calls %s", r.Handler)
		}
	}
}

// guest is the guest of a language, loaded into the sandbox.
type guest struct {
	schema  *schema.Schema
	sources []diag.Source
	router  *router.Router
	secrets secret.Values
	trace   recorder
	dir     string
	modules map[string]*sandbox.Module // by handler
}

// signingKey signs deliveries of Standard Webhooks.
const signingKey = "twenty-four bytes secret"

var secrets = map[string]string{
	"HOOK":    "the secret of the hook",
	"SIGNING": "whsec_" + base64.StdEncoding.EncodeToString([]byte(signingKey)),
}

// newGuest builds the guest of a language as `runner build` does.
func newGuest(t testing.TB, language string) *guest {
	t.Helper()
	g := &guest{modules: map[string]*sandbox.Module{}}
	g.schema, g.sources = readSchema(t)
	g.router = newRouter(g.schema)
	var err error
	g.secrets, err = secret.Resolve(g.schema.Secrets, func(string) (string, bool) { return "", false }, secrets)
	if err != nil {
		t.Fatal(err)
	}
	g.dir = filepath.Join("guests", language)
	buildGuest(t, g.dir, g.schema)
	return g
}

// moduleFiles are the guest's modules; that of Python has the files of its app.
func (g *guest) moduleFiles(t testing.TB) []runtime.ModuleFile {
	t.Helper()
	files, err := runtime.ReadModules(g.dir)
	for i := range files {
		if err == nil && files[i].ShortName() == schema.PythonModule {
			files[i].Files, err = tree.OpenDir(g.dir, schema.PythonFiles)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// load creates an engine, whose context may have a listener, and loads the guest.
func (g *guest) load(t testing.TB, ctx context.Context) {
	t.Helper()
	engine, err := sandbox.New(ctx, sandboxOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, file := range g.moduleFiles(t) {
		m, err := engine.LoadAs(t.Context(), file.Name, file.Wasm, runtime.ModuleSettings(g.schema, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, handler := range m.Handlers() {
			g.modules[handler] = m
		}
	}
	for _, r := range g.schema.Routes {
		if g.modules[r.Handler] == nil {
			t.Errorf("the guest exports no %s", r.Handler)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// sandboxOptions are those of all engines. Compiled code is kept, because CPython is compiled for many seconds.
func sandboxOptions(t testing.TB) sandbox.Options {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Options{NoBreaker: true, CacheDir: filepath.Join(cache, "runner-tests", "conformance")}
}

// buildGuest does what `runner build` does.
func buildGuest(t testing.TB, dir string, app *schema.Schema) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, "build")); err != nil { // so that no old module is tested
		t.Fatal(err)
	}
	rusttest.Setenv(t)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	options := toolchain.Options{
		Dir: dir, Name: "conformance", Schema: app, CacheDir: filepath.Join(cache, "runner", "engine"),
		Log: func(text string) { t.Log("while it is built:", text) },
	}
	for _, r := range app.Routes {
		if !slices.Contains(options.Handlers, r.Handler) {
			options.Handlers = append(options.Handlers, r.Handler)
		}
	}
	options.Interpreter = python.NewInterpreter(sandboxOptions(t), nil)
	defer func() {
		if err := options.Interpreter.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	_, doubts, err := toolchain.Build(t.Context(), options)
	mistakes, ok := errors.AsType[*toolchain.DiagnosticsError](err)
	if doubts != nil && !ok {
		mistakes, ok = doubts, true
	}
	if ok {
		for _, d := range mistakes.List.Sorted() {
			t.Error(d)
		}
		t.FailNow()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func readSchema(t testing.TB) (*schema.Schema, []diag.Source) {
	t.Helper()
	text, err := os.ReadFile("app.schema")
	if err != nil {
		t.Fatal(err)
	}
	sources := []diag.Source{{Name: "app.schema", Text: text}}
	app, found := compiler.Compile(sources, compiler.Options{})
	if found.HasErrors() {
		t.Fatal(found.Sorted())
	}
	return app, sources
}

func newRouter(app *schema.Schema) *router.Router {
	var routes []router.Route
	for _, r := range app.Routes {
		routes = append(routes, router.Route{Method: r.Method, Path: r.Path})
	}
	return router.New(routes)
}

func readCase(t testing.TB, file string) *txtar.Archive {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// world is the state that the requests of a case share.
type world struct {
	*guest
	store *store.Store
	host  *hostabi.Host
	log   bytes.Buffer
}

// conforms runs a case and compares its traces.
func (g *guest) conforms(t *testing.T, file string) {
	archive := readCase(t, file)
	w := g.newWorld(t)
	var lines []string
	changed := false
	for i, part := range archive.Files {
		want := strings.Split(strings.TrimSpace(string(part.Data)), "\n")
		switch part.Name {
		case "request":
			w.log.Reset()
			lines = w.serve(t, string(part.Data))
		case "trace":
			merged := likeness(lines, want)
			if diff := cmp.Diff(want, merged); diff != "" && !*update {
				t.Errorf("request %d of %s has another trace (-want +got):\n%s\nthe log:\n%s", i, file, diff, w.log.String())
			}
			archive.Files[i].Data = []byte(strings.Join(merged, "\n") + "\n")
			changed = changed || !slices.Equal(want, merged)
		case "log":
			for _, text := range want {
				if !strings.Contains(w.log.String(), text) {
					t.Errorf("%s: the log does not contain %q:\n%s", file, text, w.log.String())
				}
			}
		default:
			t.Fatalf("%s: part %q is none of request, trace, log", file, part.Name)
		}
	}
	if *update && changed {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// likeness replaces lines of a trace by the lines of the file with an open end that they match.
func likeness(lines, want []string) []string {
	merged := slices.Clone(lines)
	for i := range merged {
		if i < len(want) && fits(merged[i], want[i]) {
			merged[i] = want[i]
		}
	}
	return merged
}

func fits(line, want string) bool {
	open, ok := strings.CutSuffix(want, "…")
	return ok && strings.HasPrefix(line, open)
}

func (g *guest) newWorld(t testing.TB) *world {
	t.Helper()
	g.trace.begin()
	w := &world{guest: g}
	var err error
	if w.store, err = store.Open(store.Options{}); err != nil {
		t.Fatal(err)
	}
	keys, err := keystore.Open(t.Context(), w.store, keystore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(keys.Close(), w.store.Close()); err != nil {
			t.Error(err)
		}
	})
	model, err := entity.Activate(t.Context(), w.store, g.schema, g.sources, entity.Options{CursorKey: keys.Derive("cursors")})
	if err != nil {
		t.Fatal(err)
	}
	origins, client := g.newService(t)
	w.host = hostabi.NewHost(hostabi.Host{
		Keystore: keys, Store: w.store, Entities: model, Schema: g.schema, Secrets: g.secrets, Origins: origins, Outbound: client,
		Passwords: password.Options{Memory: 7 << 20, Passes: 1}, LongWork: longwork.New(longwork.Options{}),
		Logger: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Messages: g.trace.message,
	})
	return w
}

// newService starts the service that handlers may call.
func (g *guest) newService(t testing.TB) (outbound.Origins, *outbound.Client) {
	t.Helper()
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/two", http.StatusFound)
			return
		}
		w.Header().Set("X-Told", strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("X-A")))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(append(body, 0xff))
	}))
	t.Cleanup(service.Close)
	g.trace.service = service.URL
	origins, err := outbound.ParseOrigins([]string{service.URL})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(service.Certificate())
	return origins, outbound.New(outbound.Options{AllowPrivate: true, Roots: roots})
}

// serve runs a handler for a request in a transaction, as the runner does, and returns its
// trace.
func (w *world) serve(t testing.TB, text string) []string {
	t.Helper()
	r := parseRequest(t, w.schema, w.router, text, w.trace.filled)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w.signInMany(t, r.sessions)
	var recorder recording.Recorder
	var draws recording.Draws
	call := &hostabi.Call{Input: hostabi.Input{
		Context: ctx, Host: w.host, Request: &r.Request, Caller: r.caller, Recorder: &recorder, Draws: &draws,
	}}
	if r.uploads {
		call.Form, call.SendsFiles = w.upload(t, &r.Request), true
	}
	failed := false
	dropped := errors.New("dropped")
	_, err := w.store.Update(ctx, func(tx *store.Tx) error {
		call.Tx, call.Attempt, call.CreatesSession = tx, call.Attempt+1, r.mints
		if err := w.modules[r.handler].Run(call, r.handler); err != nil {
			w.host.Logger.Error("the run failed", "cause", errors.Unwrap(err))
			failed = true
			return dropped
		}
		if call.Response.Status >= 400 && !call.KeepsWrites() {
			return dropped
		}
		return nil
	})
	if err != nil && err != dropped {
		t.Fatalf("%s: %v", r.handler, err)
	}
	failure, others := call.Failures()
	if failure != nil {
		others = append(others, *failure)
	}
	for _, f := range others { // as the runtime does
		fmt.Fprintf(&w.log, "%s: %s %v\n", f.Kind, f.Message, f.Frames)
	}
	lines := w.trace.take(failed)
	w.replays(t, &r, call, &recorder, &draws, lines)
	if r := &call.Response; r.Code == string(fault.InvalidInput) { // which the host has made of a failure
		lines[len(lines)-1] = fmt.Sprintf("error %d %s %s", r.Status, r.Code, r.Detail)
	}
	return lines
}

// upload stores the body of a request, as the runtime does.
func (w *world) upload(t testing.TB, r *abi.Request) *hostabi.Form {
	t.Helper()
	form := &hostabi.Form{}
	kind, _ := r.Header("content-type")
	fields, err := upload.Read(t.Context(), bytes.NewReader(r.Body), string(kind), func(ctx context.Context, p upload.File, contents io.Reader) error {
		info, release, err := w.store.PutPinned(ctx, contents)
		if err != nil {
			return err
		}
		t.Cleanup(release)
		form.Files = append(form.Files, hostabi.FormFile{
			File:  schema.File{ID: ids.New(time.Now()), Name: p.Name, Type: p.Type, Size: info.Size, SHA256: info.Digest},
			Field: p.Field, Declared: p.Declared,
		})
		return nil
	}, func(int64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		form.Fields = append(form.Fields, [2]string{f.Name, f.Value})
	}
	r.Body = nil
	return form
}

// replays runs the handler again on what was recorded of its run: without the store it makes the same calls, and ends
// in the same way.
func (w *world) replays(t testing.TB, r *request, call *hostabi.Call, recorder *recording.Recorder, draws *recording.Draws, want []string) {
	t.Helper()
	made := &recording.Recording{
		Format: recording.Format, ID: r.ID, Request: recording.RequestOf(&r.Request, r.Body), Caller: recording.CallerOf(&call.Caller, call.Address),
		Run: draws.Drawn(),
	}
	made.Deadline, _ = call.Context.Deadline()
	recorder.Take(made)
	if made.Truncated {
		return
	}
	values := map[string]string{}
	for _, name := range w.schema.Secrets {
		value, _ := w.secrets.Get(name)
		values[name] = value.Reveal()
	}
	made.Hide(values)
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range values {
		if strings.Contains(string(text), value) {
			t.Errorf("%s: the recording has the secret %s:\n%s", r.handler, name, text)
		}
	}
	player, err := recording.NewPlayer(made, func(name string) (string, bool) { return values[name], true })
	if err != nil {
		t.Fatal(err)
	}
	request, sent := player.Recording.Request.Request(r.ID)
	host := *w.host
	host.Logger = slog.New(slog.DiscardHandler)
	again := &hostabi.Call{Input: hostabi.Input{
		Context: call.Context, Host: &host, Request: request, SentBody: sent, Caller: call.Caller, Attempt: call.Attempt,
		CreatesSession: call.CreatesSession, Draws: player.Draws, Player: player,
	}}
	failed := w.modules[r.handler].Run(again, r.handler) != nil
	again.Failures()
	lines := w.trace.take(failed)
	if d := player.Divergence(); d != nil || player.Left() > 0 {
		t.Errorf("%s: the replay diverges, with %d calls left: %v\nthe recording: %s", r.handler, player.Left(), d, text)
	}
	if diff := cmp.Diff(want, lines); diff != "" && len(made.Credentials) == 0 { // else the guest has read others
		t.Errorf("%s: the replay has another trace (-recorded +replayed):\n%s", r.handler, diff)
	}
	if got, was := &again.Response, &call.Response; !failed && (got.Status != was.Status || got.Code != was.Code) {
		t.Errorf("%s: the replay answers %d %s, recorded was %d %s", r.handler, got.Status, got.Code, was.Status, was.Code)
	}
}

// signInMany creates n sessions of the user "many".
func (w *world) signInMany(t testing.TB, n int) {
	t.Helper()
	if n == 0 {
		return
	}
	operator := keystore.Authority{Schema: w.schema, Caller: caller.Caller{Kind: caller.System}}
	_, err := w.store.Update(t.Context(), func(tx *store.Tx) error {
		for range n {
			if _, err := w.host.Keystore.CreateSession(tx, operator, keystore.CreateSessionRequest{UserID: "many"}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// request is a request of a case with its handler.
type request struct {
	abi.Request
	handler string
	mints   bool
	uploads bool // its body is a form or a file
	caller  caller.Caller
	// sessions is how many sessions of the user "many" are created before.
	sessions int
}

// parseRequest reads a request of a case; README.md describes the form.
func parseRequest(t testing.TB, app *schema.Schema, paths *router.Router, text string, filled func(string) string) request {
	t.Helper()
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
	first, who, _ := strings.Cut(filled(lines[0]), " as ")
	who, session, _ := strings.Cut(who, " ")
	method, target, ok := strings.Cut(first, " ")
	r := request{caller: callers[who]}
	r.caller.SessionID = session
	if _, known := callers[who]; !ok || !known {
		t.Fatalf("%q is not a request: write METHOD /target, optionally followed by a caller", lines[0])
	}
	path, query, asked := strings.Cut(target, "?")
	r.Request = abi.Request{ID: "00000000000000000000000001", Method: []byte(method), Path: []byte(path), Body: unquote(t, strings.TrimSuffix(body, "\n"))}
	if asked {
		r.RawQuery = []byte(query)
	}
	var m router.Match
	if paths.Match(r.Method, r.Path, &m) != router.Found {
		t.Fatalf("%s %s has no route", method, path)
	}
	route := app.Routes[m.Route]
	r.handler, r.Route, r.mints, r.uploads = route.Handler, route.Path, route.CreatesSession, route.Upload
	r.Params = slices.Clone(m.Params)
	for _, pair := range strings.FieldsFunc(query, func(c rune) bool { return c == '&' }) {
		name, value, _ := strings.Cut(pair, "=")
		r.Query = append(r.Query, abi.Pair{Name: decode(t, name), Value: decode(t, value)})
	}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(filled(line), ":")
		name, value = strings.ToLower(name), strings.TrimSpace(value)
		if name == "job" {
			attempt, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			r.Job = &abi.Job{ID: "job_01kb0p0f5mzv4n7q8r9s0t1v2w", Attempt: attempt, ScheduledFor: "2026-01-31T09:30:00.000Z"}
			continue
		}
		if name == "sessions" {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			r.sessions = n
			continue
		}
		if name == "signed" {
			r.Headers = append(r.Headers, signature(value, r.Body)...)
			continue
		}
		r.Headers = append(r.Headers, abi.Pair{Name: []byte(name), Value: []byte(value)})
	}
	return r
}

// signature returns the headers of a Standard Webhooks delivery that is signed now.
func signature(id string, body []byte) []abi.Pair {
	now := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(signingKey))
	fmt.Fprintf(mac, "%s.%s.%s", id, now, body)
	return []abi.Pair{
		{Name: []byte("webhook-id"), Value: []byte(id)},
		{Name: []byte("webhook-timestamp"), Value: []byte(now)},
		{Name: []byte("webhook-signature"), Value: []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))},
	}
}

// callers are the callers that a case can name.
var callers = map[string]caller.Caller{
	"":        {Kind: caller.APIKey, KeyID: "key_1", Scope: "orders", Capability: "conformance.orders", Metadata: json.RawMessage(`{"plan":"gold","n":[1,2]}`)},
	"orders":  {Kind: caller.APIKey, KeyID: "key_1", Scope: "orders", Capability: "conformance.orders"},
	"readers": {Kind: caller.APIKey, KeyID: "key_2", Scope: "readers", Capability: "conformance.readers"},
	"ada":     {Kind: caller.Session, UserID: "ada", Tenant: "acme", Roles: []string{"admin", "möbel"}, Claims: json.RawMessage(`{"iss":"https://id.example","n":[1,"ü"]}`)},
	"nobody":  {},
}

// unquote returns the bytes of a body, which the case writes with escapes.
func unquote(t testing.TB, body string) []byte {
	t.Helper()
	var out []byte
	for {
		before, rest, more := strings.Cut(body, `\x`)
		out = append(out, before...)
		if !more {
			return out
		}
		b, err := strconv.ParseUint(rest[:min(2, len(rest))], 16, 8)
		if err != nil {
			t.Fatalf(`\x%.2s in a body is not a byte: %v`, rest, err)
		}
		out, body = append(out, byte(b)), rest[2:]
	}
}

func decode(t testing.TB, text string) []byte {
	t.Helper()
	plain, err := url.QueryUnescape(text)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(plain)
}
