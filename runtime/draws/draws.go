package draws

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/clock"
	"runner.example/internal/settings"
	"runner.example/internal/symbols"
	"runner.example/internal/wasm"
	_ "runner.example/internal/wazerofix"
)

// Options of Find.
type Options struct {
	// MemoryBytes limits the module's memory; Time limits each of the two runs.
	MemoryBytes int64
	Time        time.Duration `default:"10s"`
	// Stub are modules whose functions the module may import. A call of one traps.
	Stub []string
	// Program is what a program finds when it starts. Without it only a module that is not a program is run.
	Program *hostabi.Program
	// Start says that a program is started even if it does not import request_next, MustWait that it is
	// not a CGI program.
	Start, MustWait bool
}

// Kind is what was drawn.
type Kind int

const (
	// Random: random bytes of the host.
	Random Kind = iota
	// Number: a number of the generator that the language has.
	Number
	// Clock: the clock as the seed of a generator.
	Clock
)

// String says what was drawn, for messages.
func (k Kind) String() string {
	return []string{"random bytes", "random number", "random sequence"}[k]
}

// Act says how it was drawn, for messages.
func (k Kind) Act() string {
	return []string{"drawn", "drawn", "seeded from the clock"}[k]
}

// Draw is a random value that is drawn before the first request.
type Draw struct {
	Kind Kind
	// Chain has the functions on the call stack, the outermost first. Without names in the module,
	// all but the exported function are given by number.
	Chain []string
}

// Found is what Find found.
type Found struct {
	// Draws are the places in the order in which they drew first, each once, and at most maxDraws.
	Draws []Draw
	// Named says that the module has the names of its functions.
	Named bool
	// Waits says that the module is a program that waits for requests, and Handlers are those that it has;
	// nil: it is one itself.
	Waits    bool
	Handlers []string
}

// Find runs the initialization of a module, or the start of a program that waits for requests, and returns
// its draws. A module without an initialization has none, and neither has a CGI program, which starts in each
// request. If the run fails or takes too long, Find returns the draws up to that moment. An error is about
// a module that cannot be loaded.
func Find(ctx context.Context, module []byte, o Options) (found Found, err error) {
	parsed, err := wasm.Parse(module, wasm.DefaultLimits())
	if err != nil {
		return found, err
	}
	imports := importsNext(parsed)
	first := initializers(parsed)
	starts := o.Program != nil && exports(parsed, startFunction) && (o.Start || imports)
	if len(first) == 0 && !parsed.HasStart() && !starts {
		return found, nil
	}
	settings.FillZero(&o)
	w := newWatcher(parsed, o.MemoryBytes)
	if starts {
		first = append(first, startFunction)
		w.program, w.waits, w.drawsSeed = o.Program, imports || o.MustWait, drawsPythonSeed(module, o.Program)
	}
	config := wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features).WithCloseOnContextDone(true)
	if pages := o.MemoryBytes / wasm.PageBytes; pages > 0 {
		config = config.WithMemoryLimitPages(uint32(min(pages, 1<<16)))
	}
	r := wazero.NewRuntimeWithConfig(ctx, config)
	defer func() { err = errors.Join(err, r.Close(context.WithoutCancel(ctx))) }()
	watched := experimental.WithFunctionListenerFactory(ctx, w)
	if err := w.instantiateHost(watched, r, stubsOf(parsed, o.Stub)); err != nil {
		return found, err
	}
	compiled, err := r.CompileModule(watched, parsed.Interruptible())
	if err != nil {
		return found, err
	}
	events := w.run(ctx, r, compiled, first, o.Time)
	var again []event
	if slices.ContainsFunc(events, func(e event) bool { return e.kind == Clock }) {
		w.offset = clockOffset
		again = w.run(ctx, r, compiled, first, o.Time)
	}
	if starts && !w.waits {
		return found, ctx.Err() // it is a CGI program
	}
	return Found{Draws: w.draws(events, again), Named: w.named, Waits: starts, Handlers: w.handlers}, ctx.Err()
}

// features are all that package wasm accepts.
const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesThreads |
	experimental.CoreFeaturesExtendedConst

// clockOffset is the difference between the clocks of the two runs. With it, the time has different
// digits in both runs, in every unit.
const clockOffset = 1_234_567_890_123_456_789 * time.Nanosecond / 7

// initializers are the exported functions that run before the first request, in order.
func initializers(m *wasm.Module) (names []string) {
	for _, name := range []string{"_initialize", "runner_warm", "runner_prepare"} {
		if exports(m, name) {
			names = append(names, name)
		}
	}
	return names
}

// startFunction makes a module a program.
const startFunction = "_start"

func exports(m *wasm.Module, function string) bool {
	return slices.ContainsFunc(m.Exports(), func(x wasm.Export) bool {
		return x.Kind == wasm.FunctionKind && x.Name == function
	})
}

func importsNext(m *wasm.Module) bool {
	return slices.ContainsFunc(m.Imports(), func(i wasm.Import) bool {
		return i.Module == abi.Module && i.Name == "request_next"
	})
}

// stubsOf returns the functions that a module imports from the modules of stub. They trap.
func stubsOf(m *wasm.Module, stub []string) map[string][]hostabi.Function {
	all := map[string][]hostabi.Function{}
	for _, i := range m.Imports() {
		if !slices.Contains(stub, i.Module) {
			continue
		}
		f := hostabi.Function{Name: i.Name, Fn: func(context.Context, api.Module, []uint64) { panic(errStub) }}
		for _, t := range i.Type.Params {
			f.Params = append(f.Params, api.ValueType(t))
		}
		for _, t := range i.Type.Results {
			f.Results = append(f.Results, api.ValueType(t))
		}
		all[i.Module] = append(all[i.Module], f)
	}
	return all
}

var errStub = errors.New("a function of a stub was called")

// maxFrames limits what is kept of a run, and maxDraws what is returned: a module may draw as often as it likes.
const (
	maxFrames = 1 << 19
	maxDraws  = 1000
)

// event is a call of a function that is watched.
type event struct {
	kind   Kind
	frames []string // the active functions, the innermost first
	args   string   // of a function that seeds a generator
}

// watcher runs a module and records the calls of watched functions. One goroutine may use it.
type watcher struct {
	rules
	names map[uint32]string // of functions by index; nil: those of the name section
	named bool

	program  *hostabi.Program // that is started; nil: the module is initialized
	waits    bool             // the program is not a CGI program
	handlers []string         // of the program

	drawsSeed, drewSeed bool // of the hashes of CPython

	events []event
	frames int             // of events
	places map[string]bool // of events other than Clock
	random *rand.ChaCha8
	offset time.Duration
}

func newWatcher(m *wasm.Module, memoryBytes int64) *watcher {
	w := &watcher{rules: rulesOfOthers, names: goNames(m, memoryBytes)}
	if w.names != nil {
		w.rules, w.named = rulesOfGo, true
	}
	return w
}

// name is the name of a function in messages.
func (w *watcher) name(f api.FunctionDefinition) string {
	switch exports := f.ExportNames(); {
	case w.names[f.Index()] != "" && f.GoFunction() == nil:
		return w.names[f.Index()]
	case f.Name() != "":
		return symbols.PlainName(f.Name())
	case len(exports) > 0:
		return exports[0]
	}
	return fmt.Sprintf("function %d", f.Index())
}

// NewFunctionListener implements experimental.FunctionListenerFactory.
func (w *watcher) NewFunctionListener(f api.FunctionDefinition) experimental.FunctionListener {
	var kind Kind
	watched := false
	if f.GoFunction() != nil {
		watched = f.Name() == randomFunction
	} else {
		w.named = w.named || f.Name() != ""
		kind, watched = w.watch(w.name(f))
	}
	if !watched {
		return nil
	}
	return experimental.FunctionListenerFunc(func(_ context.Context, m api.Module, f api.FunctionDefinition,
		params []uint64, stack experimental.StackIterator) {
		if w.frames >= maxFrames {
			return
		}
		if kind == Random && w.drawsSeed && !w.drewSeed && params[1] == pythonSeedBytes {
			w.drewSeed = true
			return
		}
		var active []api.FunctionDefinition
		var place []byte
		for stack.Next() {
			if of := stack.Function().Definition(); of.GoFunction() == nil {
				active = append(active, of)
				place = binary.LittleEndian.AppendUint32(place, of.Index())
			}
		}
		if kind != Clock {
			if place = append(place, byte(kind)); w.places[string(place)] {
				return // as before
			}
			w.places[string(place)] = true
		}
		e := event{kind: kind}
		for _, of := range active {
			e.frames = append(e.frames, w.name(of))
		}
		w.frames += len(e.frames)
		if kind == Clock {
			var ok bool
			if e.args, ok = w.arguments(e.frames[0], m, params); !ok {
				return
			}
		}
		w.events = append(w.events, e)
	})
}

// randomFunction and clockFunction are the host's functions that give other results in each run of Find.
const (
	randomFunction = "random_get"
	clockFunction  = "clock_time_get"
)

// instantiateHost makes the host's functions available, and those of other modules. Random bytes and the time
// are the watcher's.
func (w *watcher) instantiateHost(ctx context.Context, r wazero.Runtime, all map[string][]hostabi.Function) error {
	all[abi.Module], all[hostabi.WASIModule] = hostabi.Functions(), hostabi.WASI()
	for module, functions := range all {
		b := r.NewHostModuleBuilder(module)
		for _, f := range functions {
			switch {
			case module != hostabi.WASIModule:
			case f.Name == randomFunction:
				f.Fn = w.randomGet
			case f.Name == clockFunction:
				f.Fn = w.shiftedClock(f.Fn)
			}
			b.NewFunctionBuilder().WithGoModuleFunction(f.Fn, f.Params, f.Results).WithName(f.Name).Export(f.Name)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("make host module %q: %w", module, err)
		}
	}
	return nil
}

// randomGet is random_get(address, length) -> errno.
func (w *watcher) randomGet(_ context.Context, m api.Module, stack []uint64) {
	const fault = 21
	into, ok := m.Memory().Read(api.DecodeU32(stack[0]), api.DecodeU32(stack[1]))
	stack[0] = fault
	if ok {
		_, _ = w.random.Read(into) // never fails
		stack[0] = 0
	}
}

// shiftedClock returns clock_time_get(clock, precision, address) -> errno with the watcher's time.
func (w *watcher) shiftedClock(now api.GoModuleFunc) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		at := api.DecodeU32(stack[2])
		now(ctx, m, stack)
		if t, ok := m.Memory().ReadUint64Le(at); ok && stack[0] == 0 {
			m.Memory().WriteUint64Le(at, t+uint64(w.offset))
		}
	}
}

// run runs the initialization or the start once, and returns the events up to its end or its failure. The
// sandbox reports a failure when it loads the module.
func (w *watcher) run(ctx context.Context, r wazero.Runtime, module wazero.CompiledModule, first []string,
	limit time.Duration) []event {
	w.events, w.frames, w.places, w.random = nil, 0, map[string]bool{}, rand.NewChaCha8([32]byte{})
	w.drewSeed = false
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	call := &hostabi.Call{Input: hostabi.Input{Context: ctx, Host: hostabi.NewHost(hostabi.Host{
		Logger: slog.New(slog.DiscardHandler), Limits: hostabi.StartLimits(limit),
	})}}
	call.Begin()
	defer func() { w.waits = w.waits || call.OpenedHostFile(); call.End() }()
	if w.program == nil {
		call.Initializing(true)
	} else {
		input := hostabi.NewStartInput([32]byte{}, clock.System())
		call.BeginStart(w.program, &hostabi.Start{StartInput: input, Waits: func(at *hostabi.Waiting) error {
			w.waits, w.handlers = true, at.Handlers
			return nil
		}})
	}
	guest := &hostabi.Guest{Context: ctx}
	guest.Bind(call)
	m, err := r.InstantiateModule(guest, module, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return w.events
	}
	defer m.Close(context.WithoutCancel(ctx))
	for _, name := range first {
		f := m.ExportedFunction(name)
		if f == nil || len(f.Definition().ParamTypes()) > 0 {
			break
		}
		if _, err := f.Call(guest); err != nil {
			break
		}
	}
	return w.events
}

// draws returns the draws of the events. again are the events of a run with another clock.
func (w *watcher) draws(events, again []event) (draws []Draw) {
	seen := map[string]bool{}
	seeds := map[string][]string{} // arguments in the other run, by frames
	for _, e := range again {
		if e.kind == Clock {
			at := strings.Join(e.frames, "\n")
			seeds[at] = append(seeds[at], e.args)
		}
	}
	for _, e := range events {
		if e.kind == Clock {
			at := strings.Join(e.frames, "\n")
			others := seeds[at]
			if len(others) == 0 {
				continue
			}
			seeds[at] = others[1:]
			if others[0] == e.args {
				continue
			}
		}
		d := w.draw(e.kind, e.frames)
		if id := fmt.Sprint(d); len(d.Chain) > 0 && !seen[id] && len(draws) < maxDraws {
			seen[id] = true
			draws = append(draws, d)
		}
	}
	return draws
}
