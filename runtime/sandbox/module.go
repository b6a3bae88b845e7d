package sandbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"runner.example/hostabi"
	"runner.example/hostabi/files"
	"runner.example/hostabi/recording"
	"runner.example/hostabi/wasi"
	"runner.example/internal/fault"
	"runner.example/runtime/compile"
	"runner.example/runtime/cpuqueue"
)

// Module is one compiled module. It is safe for concurrent use.
type Module struct {
	name     string
	fresh    bool
	sum      [sha256.Size]byte // of the file
	settings string            // the key
	uses     int               // each of which Close ends; guarded by Engine.mu
	engine   *Engine
	program  *program
	code     *compile.Code
	stub     []string // as Settings has it
	stubs    []string // the host modules of its stubs
	handlers []string // the program's, then the command, if it is one
	byName   map[string]int
	states   []handlerState // as handlers
	// handles are those that a component holds after its initialization.
	handles *wasi.Handles
	// initializing is the CPU queue of what runs before the first request.
	initializing cpuqueue.Handler

	// image, values and random are the memory, the globals and the regions of random state after
	// the initialization, or before it if the module is fresh. Without an image each request has a
	// new sandbox.
	image  *image
	values []uint64
	random []region
	// waiting is where a program waits for requests; nil: the module is another one.
	waiting *waiting
	// start is what a command finds when it starts, and fileBytes the size of its files that are in memory.
	start     *hostabi.Program
	fileBytes atomic.Int64
	// repeats is what the initialization or the start draws; nil: anything. drawn is what it has drawn.
	repeats *recording.Drawn
	drawn   recording.Drawn

	golang  goTables
	pool    pool
	closing sync.Once
}

// Settings are what a schema says of a module.
type Settings struct {
	// Fresh: each request initializes the module as part of its run. Loading initializes it too, to find
	// errors.
	Fresh bool
	// Stub are modules whose functions the module may import. A call of one traps.
	Stub []string
	// Program: the module is a program, which is started to find out whether it waits for requests. Without
	// it only a program that imports request_next is.
	Program *Program
	// Draws are what the initialization or the start draws, as Module.Drawn returned it for equal bytes and settings: the
	// image is the same then. nil: new random bytes, and the time.
	Draws *recording.Drawn
}

// Program is what a program finds when it starts. The zero value is a program with nothing.
type Program struct {
	// Args follow the program's name, which is that of the module.
	Args []string
	// Env are variables: "NAME=value".
	Env []string
	// Files, sorted by path, are below /app. They differ if Tree does.
	Files []files.File
	Tree  string
	// Timeout is how long a start may take; 0: InitTime. With it, a program that does not wait is refused.
	Timeout time.Duration
}

// key differs for settings with which a module does something else.
func (s *Settings) key() string {
	key := fmt.Sprintf("%v %q", s.Fresh, s.Stub)
	if s.Program != nil {
		key = fmt.Sprintf("%v %q %q %q %q %s", s.Fresh, s.Stub, s.Program.Args, s.Program.Env, s.Program.Tree, s.Program.Timeout)
	}
	if s.Draws != nil { // never one that serves requests
		key += fmt.Sprintf(" %x %v", s.Draws.Seed, s.Draws.Readings)
	}
	return key
}

// Load is LoadAs for a module that the schema does not mention.
func (e *Engine) Load(ctx context.Context, name string, wasm []byte) (*Module, error) {
	return e.LoadAs(ctx, name, wasm, Settings{})
}

// LoadAs checks and compiles a module, initializes or starts it, and keeps the image. name is its file,
// for messages. A module that is loaded already, with the same name, bytes and settings, is shared:
// its sandboxes are warm. Each call needs a Close. Every error is one line that begins with name
// and says what to do.
func (e *Engine) LoadAs(ctx context.Context, name string, wasm []byte, settings Settings) (*Module, error) {
	sum, key := sha256.Sum256(wasm), settings.key()
	if m := e.share(name, sum, key); m != nil {
		return m, nil
	}
	m, err := e.load(ctx, name, wasm, sum, &settings)
	if err != nil {
		return nil, about(name, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	m.settings = key
	e.modules[m] = struct{}{}
	return m, nil
}

// Start starts a program that waits for requests as LoadAs does, but once, and returns its handlers. It keeps nothing. So it
// takes half the time, and what two starts do differently is found by LoadAs. Settings must have a Program.
func (e *Engine) Start(ctx context.Context, name string, wasm []byte, settings Settings) (handlers []string, err error) {
	m, err := e.open(ctx, name, wasm, sha256.Sum256(wasm), &settings)
	if err != nil {
		return nil, about(name, err)
	}
	defer func() { err = errors.Join(err, m.free(ctx)) }()
	if err := m.cannotWait(); err != nil {
		return nil, about(name, err)
	}
	timeout := cmp.Or(settings.Program.Timeout, e.options.InitTime)
	s, err := m.startOnce(ctx, newStartInput(), timeout, e.options.Logger)
	if err != nil {
		return nil, about(name, err)
	}
	s.sandbox.discard()
	return s.waiting.Handlers, nil
}

// about names the module in an error.
func about(name string, err error) error {
	f := fault.Of(err)
	return fault.Wrap(f.Cause, f.Code, "%s: %s", name, f.Detail)
}

// share returns a loaded module with one more use; nil: there is none.
func (e *Engine) share(name string, sum [sha256.Size]byte, settings string) *Module {
	e.mu.Lock()
	defer e.mu.Unlock()
	for m := range e.modules {
		if m.name == name && m.sum == sum && m.settings == settings {
			m.uses++
			return m
		}
	}
	return nil
}

func (e *Engine) load(
	ctx context.Context, name string, wasm []byte, sum [sha256.Size]byte, settings *Settings) (_ *Module, err error) {
	m, err := e.open(ctx, name, wasm, sum, settings)
	if err != nil {
		return nil, err
	}
	if err = m.prepareImage(ctx, settings); err != nil {
		return nil, errors.Join(err, m.free(ctx))
	}
	m.states = make([]handlerState, len(m.handlers))
	m.byName = make(map[string]int, len(m.handlers))
	for i, h := range m.handlers {
		m.byName[h] = i
		m.states[i].name, m.states[i].longSlots, m.states[i].in = name+" "+h, longPerCPU*cpuSlots(), e.slots
	}
	return m, nil
}

// open checks and compiles a module. Free it.
func (e *Engine) open(
	ctx context.Context, name string, wasm []byte, sum [sha256.Size]byte, settings *Settings) (_ *Module, err error) {
	fresh := settings.Fresh
	wasm, isComponent, err := link(wasm)
	if err != nil {
		return nil, err
	}
	p, code := e.prepared(wasm, sum, fresh, settings.Stub)
	if p == nil {
		if p, code, err = e.prepare(ctx, wasm, isComponent, settings.Stub); err != nil {
			return nil, err
		}
	}
	p.Source = compile.Source{} // the compiler has it now
	if fresh {                  // its image is taken before the initialization, so runner_prepare has no use
		p.First = slices.DeleteFunc(p.First, func(name string) bool { return name == exportPrepare })
	}
	m := &Module{name: name, fresh: fresh, sum: sum, stub: settings.Stub, uses: 1, engine: e, program: p, code: code, handlers: p.Handlers, repeats: settings.Draws}
	if err = m.useStubs(ctx); err != nil {
		return nil, errors.Join(err, m.free(ctx))
	}
	command := commandName(name)
	if (p.Command || p.Requests) && !slices.Contains(p.Handlers, command) {
		m.handlers = append(slices.Clip(p.Handlers), command)
	}
	if p.Command || p.Component {
		if m.start, err = settings.Program.counted(m).ForHost(name); err != nil {
			return nil, errors.Join(err, m.free(ctx))
		}
	}
	return m, nil
}

// prepareImage starts the module if it may wait for requests, else it initializes it.
func (m *Module) prepareImage(ctx context.Context, settings *Settings) error {
	if m.program.Waits || m.program.Command && settings.Program != nil {
		waits, err := m.startProgram(ctx, settings.Program)
		if waits || err != nil {
			return err
		}
	}
	return m.initialize(ctx)
}

// initialize runs the module's initialization, keeps the image, and makes the first sandbox.
func (m *Module) initialize(load context.Context) error {
	e := m.engine
	ctx, cancel := context.WithTimeout(load, e.options.InitTime)
	defer cancel()
	last := &lastLines{Handler: e.options.Logger.Handler()}
	call := &hostabi.Call{Input: hostabi.Input{Context: ctx, Host: hostabi.NewHost(hostabi.Host{
		Logger: slog.New(last),
		Limits: hostabi.Limits{CPU: e.options.InitTime},
	}), Draws: &recording.Draws{}}}
	call.Begin()
	if m.repeats != nil {
		call.Draws = recording.Repeat(m.repeats)
	}
	s, err := m.boot(call)
	if err == nil {
		s.begin(claim{call: call}, &m.initializing)
		if err = s.initialize(call); err == nil && m.program.Component {
			m.handles, err = wasi.HandlesOf(call)
		}
		if err != nil {
			s.discard()
		} else {
			s.end()
		}
	}
	crash, crashed := call.Crash()
	call.End()
	if m.drawn = call.Draws.Drawn(); m.repeats != nil {
		m.drawn = *m.repeats
	}
	switch {
	case errors.Is(err, errNoMemory):
		return noMemory()
	case err != nil && load.Err() != nil:
		return compile.Cancelled(load)
	case errors.Is(err, hostabi.ErrTimeOver), errors.Is(err, hostabi.ErrCPUSpent):
		return refuse(
			"takes longer than %s before its first request: move work from _initialize and runner_warm into the handlers%s",
			e.options.InitTime, last.suffix())
	case err != nil && crashed:
		return refuse("fails before its first request: %s", compile.Quote(crash.String(), 500))
	case err != nil:
		return refuse("fails before its first request: %s%s", compile.Quote(compile.FirstLine(err), 500), last.suffix())
	}
	if len(m.program.Unrestorable) > 0 || !e.optimizations.snapshot {
		if e.optimizations.snapshot {
			e.options.Logger.Warn("module cannot be restored",
				"module", m.name, "because", strings.Join(m.program.Unrestorable, "; "))
		}
		s.discard()
		return nil
	}
	if m.fresh { // the image is that before the initialization
		s.discard()
		if s, err = m.boot(call); errors.Is(err, errNoMemory) {
			return noMemory()
		} else if err != nil {
			return err
		}
	}
	if err := m.keep(s); err != nil {
		s.discard()
		if errors.Is(err, errNoMemory) {
			return noMemory()
		}
		return err
	}
	m.pool.add(s)
	m.program.dropData() // it is in the image
	return nil
}

func noMemory() error {
	return fault.Wrap(errNoMemory, fault.Overloaded,
		"no memory is left for it: raise [sandbox] total_memory in runner.toml")
}

// lastLines keeps the last lines that are logged: a guest that fails often writes why.
type lastLines struct {
	slog.Handler
	lines []string
}

// Enabled implements slog.Handler.
func (l *lastLines) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *lastLines) Handle(ctx context.Context, r slog.Record) error {
	const most, bytes = 8, 300
	text := strings.TrimSpace(r.Message)
	if strings.ContainsFunc(text, unicode.IsLetter) && r.Level >= slog.LevelInfo { // others underline, or are empty
		l.lines = append(l.lines[max(0, len(l.lines)+1-most):], compile.Quote(text, bytes))
	}
	if !l.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// suffix is what is added to the reason.
func (l *lastLines) suffix() string {
	if len(l.lines) == 0 {
		return ""
	}
	return "; its last log lines: " + strings.Join(l.lines, " / ")
}

// keep makes the image from s, and attaches it to s.
func (m *Module) keep(s *sandbox) (err error) {
	s.owed = 0 // no request pays for it
	m.random = s.random.regions
	m.values = make([]uint64, len(s.globals))
	for i, g := range s.globals {
		m.values[i] = g.Get()
	}
	if m.image, err = newImage(m.engine.pages, s.memory.Bytes()[:s.memory.Size()], &m.engine.memory); err != nil {
		return err
	}
	return s.memory.Attach(m.image.Image)
}

func (m *Module) free(ctx context.Context) error {
	if m.image != nil {
		m.image.close()
	}
	m.engine.memory.give(m.fileBytes.Swap(0))
	return errors.Join(m.releaseStubs(ctx), m.engine.compiler.Release(ctx, m.code))
}

// SetBackground says that a handler runs beside requests: it waits for an instance slot as long as its
// time lasts, and all such handlers together have few. It is called before the first Run.
func (m *Module) SetBackground(handler string) {
	if i, ok := m.byName[handler]; ok {
		m.states[i].background = true
	}
}

// Name is the module's file as it was given to Load.
func (m *Module) Name() string { return m.name }

// Sum is the SHA-256 of the module's file.
func (m *Module) Sum() [sha256.Size]byte { return m.sum }

// Drawn is what the module's initialization or start has drawn. The caller must not change it.
func (m *Module) Drawn() recording.Drawn { return m.drawn }

// Features are the parts of WebAssembly that the module uses and that its first version did not have. The caller must not
// change the slice.
func (m *Module) Features() []string { return m.program.Features }

// Initializes reports whether the module runs code before a request.
func (m *Module) Initializes() bool { return len(m.program.First) > 0 }

// Handlers returns the names of the functions that can be handlers: exports, sorted, or what a
// program that waits for requests has named. The caller must not change the slice.
func (m *Module) Handlers() []string {
	if m.waiting != nil {
		return m.handlers
	}
	return m.program.Handlers
}

// Close ends one use of the module. The last one releases it: it waits for runs in progress and
// refuses later ones.
func (m *Module) Close(ctx context.Context) error {
	m.engine.mu.Lock()
	m.uses--
	last := m.uses == 0
	if last {
		delete(m.engine.modules, m)
	}
	m.engine.mu.Unlock()
	if !last {
		return nil
	}
	return m.release(ctx)
}

// release releases the module, even if it is in use.
func (m *Module) release(ctx context.Context) (err error) {
	m.closing.Do(func() {
		for _, s := range m.pool.close() {
			s.discard()
		}
		if err = m.free(ctx); err != nil {
			err = fmt.Errorf("close module %s: %w", m.name, err)
		}
	})
	return err
}

func refuse(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }
