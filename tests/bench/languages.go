//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/python"
	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/tree"
	"runner.example/keystore"
	"runner.example/runtime"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/store"
)

const guestsDir = "tests/bench/guests"

// language has the measurements of one language. Its guest has the handlers of guestsDir.
type language struct {
	name, directory string
	file            string // in the directory, of a component; "": the module that runner build makes
	missing         error  // why there is no guest
	path            string // of its module
	app             *schema.Schema
	size            int64
	first, again    []float64 // ms to load the module: compiled, and from the cache
	module          *sandbox.Module
	fresh           *sandbox.Module      // the same, initialized in each call; nil: it initializes nothing
	calls           map[string][]float64 // µs by handler, one median of each round; "fresh" is hello in fresh
	pages           map[string]int       // changed by a call
}

// benchmark is the name of the benchmark of its idle sandboxes.
func (l *language) benchmark() string {
	return "guest-" + l.directory + strings.TrimSuffix(l.file[strings.LastIndex(l.file, "/")+1:], ".wasm")
}

func languages() []*language {
	return []*language{
		{name: "TypeScript", directory: "ts"},
		{name: "Go", directory: "go"},
		{name: "Rust", directory: "rust"},
		{name: "C", directory: "c"},
		{name: "C++", directory: "cpp"},
		{name: "AssemblyScript", directory: "as"},
		{name: "Python", directory: "python"},
		{name: "CGI program in C", directory: "cgi"},
		{name: "waiting program in C", directory: "waiting"},
		{name: "component in Rust", directory: "component", file: "build/rust.wasm"},
		{name: "component in JavaScript", directory: "component", file: "build/javascript.wasm"},
	}
}

// task is a handler that every guest has, and the request that it gets.
type task struct {
	handler, body string
	status        int
	check         func(answer any) bool
}

func (t task) method() string {
	if t.body == "" {
		return "GET"
	}
	return "POST"
}

func tasks() []task {
	member := func(value any, name string) any {
		object, _ := value.(map[string]any)
		return object[name]
	}
	return []task{
		{"hello", "", 200, func(answer any) bool { return member(answer, "message") == "hello" }},
		{"order", `{"item":"lamp","qty":3}`, 201, func(answer any) bool {
			id, _ := member(answer, "id").(string)
			return member(answer, "item") == "lamp" && member(answer, "qty") == 3.0 && len(id) == 26
		}},
		{"hundred", hundredRows(), 200, func(answer any) bool {
			rows, _ := answer.([]any)
			return len(rows) == 100 && member(rows[99], "total") == 99*12.5 && member(rows[0], "item") == "a lamp of brass"
		}},
	}
}

func hundredRows() string {
	var rows []string
	for i := range 100 {
		rows = append(rows, fmt.Sprintf(`{"id":"o-%03d","item":"a lamp of brass","qty":%d,"price":12.5}`, i, i))
	}
	return "[" + strings.Join(rows, ",") + "]"
}

// measuredSchema reads the schema of the guests.
func measuredSchema() (*schema.Schema, string, error) {
	text, err := os.ReadFile(filepath.Join(guestsDir, "app.schema"))
	if err != nil {
		return nil, "", err
	}
	app, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: text}}, compiler.Options{})
	if found.HasErrors() {
		return nil, "", fmt.Errorf("%s: %v", guestsDir, found.Sorted())
	}
	return app, string(text), nil
}

// measureLanguages builds the guests and measures them in turns, those in the directories that are named, or all. A
// language whose guest cannot be built is reported as missing; any other failure is an error.
func measureLanguages(rounds int, only []string) (_ []*language, err error) {
	ctx := context.Background()
	app, text, err := measuredSchema()
	if err != nil {
		return nil, err
	}
	sources := []diag.Source{{Name: "app.schema", Text: []byte(text)}}
	all := languages()
	if len(only) > 0 {
		all = slices.DeleteFunc(all, func(l *language) bool { return !slices.Contains(only, l.directory) })
	}
	var there []*language
	for _, l := range all {
		if l.missing = l.build(ctx, app); l.missing != nil {
			fmt.Fprintf(os.Stderr, "bench: without %s: %v\n", l.name, l.missing)
			continue
		}
		there = append(there, l)
	}
	for range 3 {
		for _, l := range there {
			if err := l.measureLoad(ctx); err != nil {
				return nil, err
			}
		}
	}
	host, close, err := newHost(ctx, app, sources)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, close()) }()
	engine, err := sandbox.New(ctx, sandbox.Options{NoBreaker: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close(ctx)) }()
	for _, l := range there {
		if l.module, err = l.load(ctx, engine); err != nil {
			return nil, err
		}
		if !l.module.Initializes() {
			continue
		}
		wasm, err := os.ReadFile(l.path)
		if err != nil {
			return nil, err
		}
		if l.fresh, err = engine.LoadAs(ctx, l.path, wasm, sandbox.Settings{Fresh: true}); err != nil {
			return nil, err
		}
	}
	for range rounds {
		for _, t := range tasks() {
			for _, l := range there {
				if err := l.measureCalls(ctx, host, t, l.module, t.handler); err != nil {
					return nil, err
				}
				if l.fresh == nil || t.handler != "hello" {
					continue
				}
				if err := l.measureCalls(ctx, host, t, l.fresh, "fresh"); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// build builds the guest's module as `runner build` does.
func (l *language) build(ctx context.Context, app *schema.Schema) (err error) {
	l.app, l.calls, l.pages = app, map[string][]float64{}, map[string]int{}
	dir := filepath.Join(guestsDir, l.directory)
	if l.directory == "cgi" || l.directory == "waiting" {
		l.path = filepath.Join(dir, "build", "program.wasm")
		err = compileC(filepath.Join(dir, "program.c"), l.path)
	} else {
		l.path, err = buildHandlers(ctx, dir, app)
	}
	if err == nil && l.file != "" {
		l.path = filepath.Join(dir, l.file)
		err = makeComponents(dir)
	}
	if err != nil {
		return err
	}
	info, err := os.Stat(l.path)
	if err == nil {
		l.size = info.Size()
	}
	return err
}

// buildHandlers builds the handlers of an app as `runner build` does, and returns the path of their module.
func buildHandlers(ctx context.Context, dir string, app *schema.Schema) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	interpreter := python.NewInterpreter(sandbox.Options{CacheDir: filepath.Join(cache, "runner", "bench")}, nil)
	defer interpreter.Close(ctx)
	options := toolchain.Options{
		Dir: dir, Name: "measured", Schema: app, Interpreter: interpreter, CacheDir: filepath.Join(cache, "runner", "engine"),
	}
	for _, r := range app.Routes {
		options.Handlers = append(options.Handlers, r.Handler)
	}
	modules, _, err := toolchain.Build(ctx, options)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, modules[0].File), nil
}

// makeComponents makes the components in a directory with npm's jco.
func makeComponents(dir string) error {
	jco, err := exec.Command("tools/fetch-jco.sh").Output()
	if err != nil {
		return fmt.Errorf("tools/fetch-jco.sh: %w", err)
	}
	said, err := exec.Command("node", filepath.Join(dir, "build.mjs"), strings.TrimSpace(string(jco))).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make components: %w %s", err, said)
	}
	return nil
}

// compileC compiles a program in C, which can use the SDK.
func compileC(source, out string) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	said, err := exec.Command("clang-22", "--target=wasm32-wasi", "-Wno-deprecated", "-O2", "-Wl,--strip-all", "-Isdk/c",
		source, "-o", out).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w %s", err, said)
	}
	return nil
}

func (l *language) load(ctx context.Context, engine *sandbox.Engine) (*sandbox.Module, error) {
	wasm, err := os.ReadFile(l.path)
	if err != nil {
		return nil, err
	}
	file := runtime.ModuleFile{Name: l.path, Wasm: wasm}
	if l.directory == "python" {
		if file.Files, err = tree.OpenDir(filepath.Join(guestsDir, l.directory), schema.PythonFiles); err != nil {
			return nil, err
		}
	}
	return engine.LoadAs(ctx, l.path, wasm, runtime.ModuleSettings(l.app, file))
}

// measureLoad loads the module twice, in engines that share a cache directory.
func (l *language) measureLoad(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "runner-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, list := range []*[]float64{&l.first, &l.again} {
		engine, err := sandbox.New(ctx, sandbox.Options{CacheDir: filepath.Join(dir, "cache")})
		if err != nil {
			return err
		}
		began := time.Now()
		_, err = l.load(ctx, engine)
		*list = append(*list, time.Since(began).Seconds()*1000)
		if err = errors.Join(err, engine.Close(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// host serves the guests, with a store in memory.
type host struct {
	*hostabi.Host
	store *store.Store
}

func newHost(ctx context.Context, app *schema.Schema, sources []diag.Source) (_ *host, close func() error, err error) {
	st, err := store.Open(store.Options{})
	if err != nil {
		return nil, nil, err
	}
	keys, err := keystore.Open(ctx, st, keystore.Options{})
	if err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	close = func() error { return errors.Join(keys.Close(), st.Close()) }
	rows, err := entity.Activate(ctx, st, app, sources, entity.Options{CursorKey: keys.Derive("cursors")})
	if err != nil {
		return nil, nil, errors.Join(err, close())
	}
	limits := hostabi.Limits{CPU: time.Hour}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	return &host{hostabi.NewHost(hostabi.Host{Keystore: keys, Entities: rows, Schema: app, Limits: limits, Logger: logger}), st}, close, nil
}

// lap is how long one handler is called before the next one.
const lap = 30 * time.Millisecond

// measureCalls calls a handler for one lap, each time in a transaction that is discarded,
// and keeps the median under a name.
func (l *language) measureCalls(ctx context.Context, h *host, t task, module *sandbox.Module, name string) error {
	pair := func(name, value string) abi.Pair { return abi.Pair{Name: []byte(name), Value: []byte(value)} }
	call := &hostabi.Call{Input: hostabi.Input{
		Host: h.Host,
		Request: &abi.Request{
			ID: "01request", Route: "/:what", Method: []byte("POST"), Path: []byte("/" + t.handler),
			Params:  []abi.Pair{pair("what", t.handler)},
			Headers: []abi.Pair{pair("host", "127.0.0.1:8080"), pair("user-agent", "curl/8.5.0"), pair("accept", "*/*"), pair("content-type", "application/json")},
			Body:    []byte(t.body),
		},
		Caller: caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Scope: "callers", Capability: "measured.callers"},
	}}
	handler := t.handler
	if command := module.Command(); command != "" {
		handler = command
	}
	discarded := errors.New("discarded")
	once := func(run func() error) (time.Duration, error) {
		began := time.Now()
		_, err := h.store.Update(ctx, func(tx *store.Tx) error {
			call.Context, call.Tx, call.Attempt = ctx, tx, tx.Attempt()
			if err := run(); err != nil {
				return err
			}
			return discarded
		})
		took := time.Since(began)
		if !errors.Is(err, discarded) {
			return 0, fmt.Errorf("%s in %s: %w", t.handler, l.name, err)
		}
		return took, nil
	}
	_, err := once(func() error {
		usage, err := module.Measure(call, handler)
		l.pages[name] = usage.ChangedPages
		return err
	})
	if err != nil {
		return err
	}
	var answer any
	if err := json.Unmarshal(call.Response.Body, &answer); err != nil || call.Response.Status != t.status || !t.check(answer) {
		return fmt.Errorf("%s in %s answers %d %s", t.handler, l.name, call.Response.Status, call.Response.Body)
	}
	var times []float64
	for began := time.Now(); time.Since(began) < lap || len(times) < 9; {
		took, err := once(func() error { return module.Run(call, handler) })
		if err != nil {
			return err
		}
		times = append(times, took.Seconds()*1e6)
	}
	l.calls[name] = append(l.calls[name], median(times))
	return nil
}

// idleBenchmarks measure the memory of idle sandboxes.
var idleBenchmarks = []string{"test", "-run", "^$", "-bench", "Idle/(guest|python)", "-benchtime", "5x", "./runtime/sandbox"}

// measureIdle measures idle sandboxes of the guests that are there.
func measureIdle(all []*language) (metrics, error) {
	var paths []string
	for _, l := range all {
		if l.missing == nil && l.directory != schema.PythonModule { // that needs its files; see programs
			path, err := filepath.Abs(l.path)
			if err != nil {
				return nil, err
			}
			paths = append(paths, l.benchmark()+"="+path)
		}
	}
	return idleOf(paths...)
}

// idleOf measures idle sandboxes of modules, name=path or name=path=directory.
func idleOf(modules ...string) (metrics, error) {
	cmd := exec.Command("tools/go.sh", idleBenchmarks...)
	cmd.Env = append(os.Environ(), "RUNNER_BENCH_MODULES="+strings.Join(modules, ","))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(idleBenchmarks, " "), err, out)
	}
	return parseMetrics(out), nil
}

// languagesText explains the table.
const languagesText = `The same three handlers in each language (tests/bench/guests), called in turns in one process
without HTTP. Each call has a restored sandbox, the caller of an API key, and a transaction that is
discarded. *hello* returns a constant. *order* parses a JSON body with two members, inserts a row and
returns it. *hundred* parses a hundred rows of JSON, writes a number into each, and returns them.
Times are in µs: the median of the rounds, with the smallest and the largest. Load is the time of the
first start, which compiles the module, and of a later one. Pages have 4 KiB. A CGI program is
started for each request. The components export handlers of ` + "`runner:app`" + `: the one in Rust is made by
jco, the one in JavaScript by componentize-js.

`

// printLanguages measures the languages alone.
func printLanguages(rounds int, only []string) error {
	all, err := measureLanguages(rounds, only)
	if err != nil {
		return err
	}
	idle, err := measureIdle(all)
	if err != nil {
		return err
	}
	fmt.Print(languageTable(all, idle))
	return nil
}

// languageTable compares the languages.
func languageTable(all []*language, idle metrics) string {
	var b strings.Builder
	b.WriteString("| language | module | load: first, later | idle sandbox | hello | order | hundred | changed pages |\n|---|---|---|---|---|---|---|---|\n")
	for _, l := range all {
		if l.missing != nil {
			fmt.Fprintf(&b, "| %s | not measured: cannot build it here | | | | | | |\n", l.name)
			continue
		}
		sandbox := idle["Idle/"+l.benchmark()]
		fmt.Fprintf(&b, "| %s | %d KiB | %.0f ms, %.1f ms |", l.name, l.size>>10, median(l.first), median(l.again))
		if sandbox == nil {
			b.WriteString(" see programs |")
		} else {
			fmt.Fprintf(&b, " %.0f KiB, later %.0f |", sandbox["used-KiB"], sandbox["trimmed-KiB"])
		}
		var pages []string
		for _, t := range tasks() {
			fmt.Fprintf(&b, " %s |", spread(l.calls[t.handler], format(median(l.calls[t.handler]))))
			pages = append(pages, fmt.Sprint(l.pages[t.handler]))
		}
		fmt.Fprintf(&b, " %s |\n", strings.Join(pages, ", "))
	}
	b.WriteString(freshText)
	for _, l := range all {
		if l.missing != nil || l.fresh == nil {
			continue
		}
		var ratios []float64
		for i, fresh := range l.calls["fresh"] {
			ratios = append(ratios, fresh/l.calls["hello"][i])
		}
		column := func(name string) string { return spread(l.calls[name], format(median(l.calls[name]))) }
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", l.name, column("hello"), column("fresh"), spread(ratios, format(median(ratios))))
	}
	return b.String()
}

// freshText explains the second table.
const freshText = `
*hello* of the same modules with ` + "`module <name> { fresh: true }`" + `, which initializes the module in each call, in
the same rounds. The last column is the ratio of the two.

| language | restored | fresh | ratio |
|---|---|---|---|
`

// format shows about three digits.
func format(n float64) string {
	if n < 100 {
		return "%.1f"
	}
	return "%.0f"
}

// measureBuild measures `runner build` of a small app in TypeScript, in ms.
func measureBuild(runner, app string) (all []float64, err error) {
	text := "import { ok } from \"@runner/sdk\";\nexport function hello() {\n  return ok({ message: \"hello\" });\n}\n"
	err = errors.Join(
		os.MkdirAll(filepath.Join(app, "handlers"), 0o755),
		os.WriteFile(filepath.Join(app, "app.schema"), []byte(helloSchema), 0o644),
		os.WriteFile(filepath.Join(app, "handlers", "hello.ts"), []byte(text), 0o644),
	)
	if err != nil {
		return nil, err
	}
	for range 9 {
		began := time.Now()
		if out, err := exec.Command(runner, "build", app).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("runner build: %w\n%s", err, out)
		}
		all = append(all, time.Since(began).Seconds()*1000)
	}
	return all, nil
}

// devTest logs the time from saving a file to the first response of the new version.
var devTest = []string{"test", "-run", "^TestASavedFileIsServed$", "-count", "3", "-v", "./tests/operations"}

var servedLine = regexp.MustCompile(`served (\d+) ms after the save`)

// measureSave measures that time, in ms.
func measureSave() (all []float64, err error) {
	out, err := exec.Command("tools/go.sh", devTest...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(devTest, " "), err, out)
	}
	for _, m := range servedLine.FindAllSubmatch(out, -1) {
		all = append(all, number(servedLine, m[0]))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("go %s logged no times of saves:\n%s", strings.Join(devTest, " "), out)
	}
	return all, nil
}
