//go:build linux

package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"golang.org/x/sys/unix"

	"runner.example/develop/toolchain"
	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/wasm"
	"runner.example/runtime/sandbox"
)

// The parts of a request's time, for handlers that each do one kind of work. Each handler
// runs in five ways in turns: as it was compiled, with fuel, with fuel and a bounded stack,
// in the sandbox with the real host, and in the engine of Node.js as it was compiled. In all
// but the sandbox the host's functions are small: they give the body and take the answer.
// The memory and the globals are restored before each run, and that is not measured.

const partsDir = "tests/bench/parts"

// part is one handler in one language. Its times are medians of the rounds in µs.
type part struct {
	language, handler          string
	v8                         float64
	plain, fuel, stack, served []float64
	usage                      sandbox.Usage
	faults                     float64
}

// partHandlers are the handlers, with what they do.
var partHandlers = [][2]string{
	{"nothing", "answers 204"},
	{"read", "reads a parameter, a query and two headers, and answers them"},
	{"parse", "parses 6 KB of JSON"},
	{"answer", "answers 100 rows, 6 KB of JSON"},
	{"hundred", "parses 100 rows, writes a number into each, and answers them"},
	{"match", "finds the matches of a regular expression in 3.5 KB"},
	{"text", "builds a string of 78 KB in 1,000 steps"},
	{"sort", "sorts 1,000 numbers"},
	{"markdown", "renders 3.5 KB of Markdown (marked, goldmark)"},
	{"digest", "SHA-256 of 4 KiB, in the guest"},
}

// measureParts measures the handlers in both languages.
func measureParts(rounds int) (all []*part, err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "runner-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	modules := [][2]string{{"TypeScript", ""}, {"Go", filepath.Join(partsDir, "go")}}
	if modules[0][1], err = scriptParts(dir); err != nil {
		return nil, err
	}
	for _, m := range modules {
		wasm, err := buildParts(ctx, m[1])
		if err != nil {
			return nil, err
		}
		measured, err := measureModule(ctx, m[0], wasm, rounds, dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m[0], err)
		}
		all = append(all, measured...)
	}
	return all, nil
}

// scriptParts copies the app in TypeScript to a directory with the packages of npm.
func scriptParts(dir string) (string, error) {
	packages, err := npmPackages()
	if err != nil {
		return "", err
	}
	app := filepath.Join(dir, "ts")
	return app, errors.Join(
		os.CopyFS(app, os.DirFS(filepath.Join(partsDir, "ts"))),
		os.Symlink(packages, filepath.Join(app, "node_modules")),
	)
}

// buildParts builds the app's module as `runner build` does.
func buildParts(ctx context.Context, dir string) ([]byte, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	options := toolchain.Options{Dir: dir, Name: "parts", CacheDir: filepath.Join(cache, "runner", "engine")}
	for _, h := range partHandlers {
		options.Handlers = append(options.Handlers, h[0])
	}
	modules, _, err := toolchain.Build(ctx, options)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, modules[0].File))
}

// variants are the ways in which a module is rewritten.
var variants = []wasm.Options{
	{Prefix: "\x00"},
	{Prefix: "\x00", Fuel: &wasm.FuelImport{Module: "host", Name: "fuel"}},
	{Prefix: "\x00", Fuel: &wasm.FuelImport{Module: "host", Name: "fuel"}, MaxStack: 4 << 20, Stack: &wasm.StackImport{Module: "host", Name: "stack"}},
}

func measureModule(ctx context.Context, language string, module []byte, rounds int, dir string) (all []*part, err error) {
	parsed, err := wasm.Parse(module, wasm.DefaultLimits())
	if err != nil {
		return nil, err
	}
	var guests []*plainGuest
	for i, options := range variants {
		rewritten, done, err := parsed.Rewrite(options)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			if err := os.WriteFile(filepath.Join(dir, "plain.wasm"), rewritten, 0o644); err != nil {
				return nil, err
			}
		}
		g, err := newPlainGuest(ctx, rewritten, done)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, g.runtime.Close(ctx)) }()
		guests = append(guests, g)
	}
	engine, err := sandbox.New(ctx, sandbox.Options{NoBreaker: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close(ctx)) }()
	served, err := engine.Load(ctx, "parts.wasm", module)
	if err != nil {
		return nil, err
	}
	for _, h := range partHandlers {
		p := &part{language: language, handler: h[0]}
		call := partCall(ctx)
		if err := p.account(served, call); err != nil {
			return nil, err
		}
		for range rounds {
			for i, times := range []*[]float64{&p.plain, &p.fuel, &p.stack} {
				took, err := timed(func() (time.Duration, error) { return guests[i].run(ctx, h[0]) })
				if err != nil {
					return nil, fmt.Errorf("%s: %w", h[0], err)
				}
				*times = append(*times, took)
			}
			took, err := timed(func() (time.Duration, error) {
				began := time.Now()
				err := served.Run(call, h[0])
				return time.Since(began), err
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", h[0], err)
			}
			p.served = append(p.served, took)
		}
		all = append(all, p)
	}
	return all, v8Times(filepath.Join(dir, "plain.wasm"), all)
}

// partCall is the request that every handler gets.
func partCall(ctx context.Context) *hostabi.Call {
	pair := func(name, value string) abi.Pair { return abi.Pair{Name: []byte(name), Value: []byte(value)} }
	return &hostabi.Call{Input: hostabi.Input{
		Context: ctx,
		Host:    hostabi.NewHost(hostabi.Host{Logger: slog.New(slog.DiscardHandler), Limits: hostabi.Limits{CPU: time.Hour}}),
		Request: &abi.Request{
			ID: "01request", Route: "/:what", Method: []byte("POST"), Path: []byte("/parts"),
			Params:  []abi.Pair{pair("what", "parts")},
			Query:   []abi.Pair{pair("page", "2")},
			Headers: []abi.Pair{pair("host", "127.0.0.1:8080"), pair("user-agent", "curl/8.5.0"), pair("accept", "*/*"), pair("content-type", "application/json")},
			Body:    []byte(hundredRows()),
		},
		Caller: caller.Caller{Kind: caller.Anonymous}, Attempt: 1,
	}}
}

// account runs the handler in the sandbox and keeps what it used.
func (p *part) account(m *sandbox.Module, call *hostabi.Call) (err error) {
	var restores []time.Duration
	for range 20 {
		if p.usage, err = m.Measure(call, p.handler); err != nil {
			return fmt.Errorf("%s: %w", p.handler, err)
		}
		if call.Response.Status/100 != 2 {
			return fmt.Errorf("%s answers %d", p.handler, call.Response.Status)
		}
		restores = append(restores, p.usage.Restore)
	}
	slices.Sort(restores)
	p.usage.Restore = restores[len(restores)/2]
	const runs = 50
	var before, after unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &before); err != nil {
		return err
	}
	for range runs {
		if err := m.Run(call, p.handler); err != nil {
			return err
		}
	}
	err = unix.Getrusage(unix.RUSAGE_SELF, &after)
	p.faults = float64(after.Minflt-before.Minflt) / runs
	return err
}

// timed returns the median time of the runs of one lap, in µs.
func timed(run func() (time.Duration, error)) (float64, error) {
	var times []float64
	for began := time.Now(); time.Since(began) < lap || len(times) < 5; {
		took, err := run()
		if err != nil {
			return 0, err
		}
		times = append(times, took.Seconds()*1e6)
	}
	return median(times), nil
}

// plainGuest is an instance of a module with small host functions.
type plainGuest struct {
	runtime wazero.Runtime
	module  api.Module
	globals []api.MutableGlobal
	values  []uint64
	image   []byte
	changed map[string]map[int]bool // pages that runs of a handler have changed
	runs    map[string]int          // of a handler
	depth   api.MutableGlobal
	body    []byte
	status  uint32
}

const pageBytes = 4 << 10

// The first runs of a handler find the pages that it changes.
const firstRuns = 20

func newPlainGuest(ctx context.Context, module []byte, done *wasm.Rewritten) (*plainGuest, error) {
	g := &plainGuest{runtime: wazero.NewRuntime(ctx), changed: map[string]map[int]bool{}, runs: map[string]int{}, body: []byte(hundredRows())}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, g.runtime); err != nil {
		return nil, err
	}
	constant := func(n uint64) api.GoModuleFunc {
		return func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = n }
	}
	one := []api.ValueType{api.ValueTypeI32}
	_, err := g.runtime.NewHostModuleBuilder("host").
		NewFunctionBuilder().WithGoModuleFunction(constant(1<<15), one, one).Export("fuel").
		NewFunctionBuilder().WithGoModuleFunction(constant(0), nil, one).Export("stack").Instantiate(ctx)
	if err != nil {
		return nil, err
	}
	host := g.runtime.NewHostModuleBuilder("runner")
	for _, f := range abi.Functions() {
		do := constant(0)
		switch f.Name {
		case "request_body":
			do = g.giveBody
		case "response_send", "response_error":
			do = func(_ context.Context, _ api.Module, stack []uint64) { g.status, stack[0] = uint32(stack[0]), 0 }
		case "keep_writes", "log":
			do = func(context.Context, api.Module, []uint64) {}
		}
		results := one
		if !f.Result {
			results = nil
		}
		host.NewFunctionBuilder().WithGoModuleFunction(do, slices.Repeat(one, f.Words()), results).Export(f.Name)
	}
	if _, err := host.Instantiate(ctx); err != nil {
		return nil, err
	}
	if g.module, err = g.runtime.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithStartFunctions("_initialize", "runner_warm")); err != nil {
		return nil, err
	}
	for _, x := range done.Globals {
		global := g.module.ExportedGlobal(x.Name).(api.MutableGlobal)
		g.globals, g.values = append(g.globals, global), append(g.values, global.Get())
	}
	if done.Depth != "" {
		g.depth = g.module.ExportedGlobal(done.Depth).(api.MutableGlobal)
	}
	memory, _ := g.module.Memory().Read(0, g.module.Memory().Size())
	g.image = bytes.Clone(memory)
	return g, nil
}

func (g *plainGuest) giveBody(_ context.Context, m api.Module, stack []uint64) {
	offset, at, room := min(uint32(stack[0]), uint32(len(g.body))), uint32(stack[1]), uint32(stack[2])
	rest := g.body[offset:]
	stack[0] = uint64(len(rest))
	m.Memory().Write(at, rest[:min(len(rest), int(room))])
}

// run runs a handler and returns its time. Afterwards it restores the instance.
func (g *plainGuest) run(ctx context.Context, handler string) (time.Duration, error) {
	f := g.module.ExportedFunction(handler)
	g.status = 0
	began := time.Now()
	_, err := f.Call(ctx)
	took := time.Since(began)
	if err == nil && g.status/100 != 2 {
		err = fmt.Errorf("answers %d", g.status)
	}
	memory, _ := g.module.Memory().Read(0, uint32(len(g.image)))
	changed := g.changed[handler]
	if changed == nil {
		changed = map[int]bool{}
		g.changed[handler] = changed
	}
	if g.runs[handler]++; g.runs[handler] <= firstRuns {
		for at := 0; at < len(g.image); at += pageBytes {
			if !bytes.Equal(memory[at:at+pageBytes], g.image[at:at+pageBytes]) {
				changed[at] = true
			}
		}
	}
	for at := range changed {
		copy(memory[at:at+pageBytes], g.image[at:])
	}
	for i, global := range g.globals {
		global.Set(g.values[i])
	}
	if g.depth != nil {
		g.depth.Set(0)
	}
	return took, err
}

//go:embed parts/v8.mjs
var v8Script []byte

// v8Times runs the handlers of a module in the engine of Node.js.
func v8Times(module string, all []*part) error {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.handler
	}
	given, err := json.Marshal(map[string]any{"module": module, "handlers": names, "body": hundredRows()})
	if err != nil {
		return err
	}
	cmd := exec.Command("node", "--no-warnings", "--input-type=module", "-e", string(v8Script), "--", string(given))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("run the module in Node.js: %w", err)
	}
	var times map[string]float64
	if err := json.Unmarshal(out, &times); err != nil {
		return err
	}
	for _, p := range all {
		p.v8 = times[p.handler]
	}
	return nil
}

const partsText = `Handlers that each do one kind of work (tests/bench/parts), in µs. They run in turns in one process;
of the medians of the rounds the smallest counts, which other processes disturbed least. *V8* and *compiled* are the module without instrumentation, in the engine of Node.js and in
ours; what its host functions do is left out. *Fuel* and *stack* are what the instrumentation adds.
*Host* is what the sandbox adds without restoring: the host's functions, and taking a sandbox.
*Restore* restores it. Pages have 4 KiB.

`

// partsTable has the parts of each handler.
func partsTable(all []*part) string {
	var b strings.Builder
	b.WriteString("| handler | V8 | compiled | fuel | stack | host | restore | total | changed pages | page faults | host calls |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, p := range all {
		plain, fuel, stack, served := slices.Min(p.plain), slices.Min(p.fuel), slices.Min(p.stack), slices.Min(p.served)
		restore := p.usage.Restore.Seconds() * 1e6
		fmt.Fprintf(&b, "| %s, %s | %.1f | %.1f | %+.1f | %+.1f | %+.1f | %.1f | %.1f | %d | %.1f | %d |\n", p.language, p.handler,
			p.v8, plain, fuel-plain, stack-fuel, served-stack-restore, restore, served, p.usage.ChangedPages, p.faults, p.usage.HostCalls)
	}
	b.WriteString("\n")
	for _, h := range partHandlers {
		fmt.Fprintf(&b, "- *%s* %s\n", h[0], h[1])
	}
	return b.String()
}

// printParts measures the parts alone.
func printParts(rounds int) error {
	all, err := measureParts(rounds)
	if err != nil {
		return err
	}
	fmt.Print(partsTable(all))
	return nil
}
