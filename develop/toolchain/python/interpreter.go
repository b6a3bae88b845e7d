package python

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/files"
	"runner.example/runtime"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
)

// Interpreter runs CPython in a sandbox, for builds. It starts when a build first needs it, and is kept for later ones.
// Close it.
type Interpreter struct {
	options sandbox.Options
	engine  *sandbox.Engine
	log     *lines
	// compiler compiles sources; nil: it is not loaded. It is the interpreter with the digest of.
	compiler *sandbox.Module
	of       [sha256.Size]byte
}

// The limits of what runs in a build. A source of a megabyte needs some hundred to be compiled.
const (
	memoryBytes  = 512 << 20
	compileTime  = 5 * time.Minute
	answerBytes  = 256 << 20
	startTimeout = time.Minute
)

// NewInterpreter returns an Interpreter whose sandbox has these options. Its cache of compiled code should be one that
// other commands use too. slow gets a text for the user when CPython itself must be compiled, which takes many seconds;
// nil: the user is not told.
func NewInterpreter(o sandbox.Options, slow func(text string)) *Interpreter {
	log := &lines{}
	if slow != nil {
		o.OnCompiler = func() { slow("compiling CPython for this machine, once; this takes some ten seconds") }
	}
	o.MemoryBytes, o.TotalMemoryBytes = max(o.MemoryBytes, memoryBytes), 0
	o.NoBreaker, o.QueueWait, o.Logger = true, compileTime, slog.New(log)
	return &Interpreter{options: o, log: log}
}

// Close ends the interpreter.
func (p *Interpreter) Close(ctx context.Context) error {
	if p.engine == nil {
		return nil
	}
	return p.engine.Close(ctx)
}

// open starts the sandbox.
func (p *Interpreter) open(ctx context.Context) (err error) {
	if p.engine == nil {
		p.engine, err = sandbox.New(ctx, p.options)
	}
	return err
}

// start starts the module, and returns the names of its handlers. The log has the lines that it wrote.
func (p *Interpreter) start(ctx context.Context, m runtime.ModuleFile, s *schema.Schema) (handlers []string, log []Line, err error) {
	if err := p.open(ctx); err != nil {
		return nil, nil, err
	}
	p.log.all = nil
	handlers, err = p.engine.Start(ctx, m.Name, m.Wasm, runtime.ModuleSettings(s, m))
	return handlers, p.log.all, err
}

//go:embed compile.py
var compileSource []byte

// source is a file to compile: its path in the module, and its text.
type source struct {
	path string
	text []byte
}

// compiled is the result for a source.
type compiled struct {
	bytecode []byte // nil after an error
	wrong    *mistake
	warnings []mistake
}

// mistake is an error or a warning in a source.
type mistake struct {
	line, col int
	message   string
}

// load starts the program that compiles, in the interpreter with these bytes.
func (p *Interpreter) load(ctx context.Context, wasm []byte) error {
	sum := sha256.Sum256(wasm)
	if p.compiler != nil && p.of == sum {
		return nil
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	if p.compiler != nil {
		if err := p.compiler.Close(ctx); err != nil {
			return err
		}
		p.compiler = nil
	}
	program := &sandbox.Program{
		Args: []string{"/app"}, Env: []string{"PYTHONDONTWRITEBYTECODE=1"}, Timeout: startTimeout,
		Tree: fmt.Sprintf("%x", sha256.Sum256(compileSource)),
		Files: []files.File{{
			Path: "__main__.py", Size: int64(len(compileSource)), Read: func() ([]byte, error) { return compileSource, nil },
		}},
	}
	m, err := p.engine.LoadAs(ctx, "python.wasm", wasm, sandbox.Settings{Program: program})
	if err != nil {
		return fmt.Errorf("start CPython: %w", err)
	}
	p.compiler, p.of = m, sum
	return nil
}

// compile compiles sources in one request. load must have been called. It may be called from several goroutines.
func (p *Interpreter) compile(ctx context.Context, batch []source) ([]compiled, error) {
	head := make([][2]any, len(batch))
	for i, s := range batch {
		head[i] = [2]any{s.path, len(s.text)}
	}
	body, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	body = append(body, '\n')
	for _, s := range batch {
		body = append(body, s.text...)
	}
	ctx, cancel := context.WithTimeout(ctx, compileTime)
	defer cancel()
	log := &lines{}
	call := &hostabi.Call{Input: hostabi.Input{
		Context: ctx, Attempt: 1, Request: &abi.Request{Method: []byte("POST"), Path: []byte("/"), Route: "/", Body: body},
		Host: hostabi.NewHost(hostabi.Host{Logger: slog.New(log), Limits: hostabi.Limits{
			CPU: compileTime, MovedBytes: 1 << 30, ResponseBytes: answerBytes,
		}}),
	}}
	if err := p.compiler.Run(call, p.compiler.Handlers()[0]); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("compile %s: %w%s", batch[0].path, err, log.last())
	}
	return readCompiled(call.Response.Body, len(batch))
}

// readCompiled reads the answer of compile.py.
func readCompiled(answer []byte, n int) ([]compiled, error) {
	head, rest, _ := bytes.Cut(answer, []byte("\n"))
	var results [][3]json.RawMessage
	if err := json.Unmarshal(head, &results); err != nil || len(results) != n {
		return nil, errors.New("compile: the interpreter's answer is not that of compile.py")
	}
	all := make([]compiled, n)
	for i, r := range results {
		var size int
		var wrong []any
		var warned [][2]any
		err := errors.Join(json.Unmarshal(r[0], &size), json.Unmarshal(r[1], &wrong), json.Unmarshal(r[2], &warned))
		if err != nil || size > len(rest) {
			return nil, errors.New("compile: the interpreter's answer is not that of compile.py")
		}
		if len(wrong) == 3 {
			all[i].wrong = &mistake{number(wrong[0]), number(wrong[1]), fmt.Sprint(wrong[2])}
			continue
		}
		for _, w := range warned {
			all[i].warnings = append(all[i].warnings, mistake{number(w[0]), 1, fmt.Sprint(w[1])})
		}
		all[i].bytecode, rest = bytes.Clone(rest[:size]), rest[size:]
	}
	return all, nil
}

func number(v any) int {
	n, _ := v.(float64)
	return max(1, int(n))
}

// Line is a line that a program has written.
type Line struct {
	Level slog.Level
	Text  string
}

// lines keeps the lines of programs. Only one program at a time writes to it.
type lines struct{ all []Line }

// Enabled implements slog.Handler.
func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.all = append(l.all, Line{r.Level, r.Message})
	return nil
}

// WithAttrs implements slog.Handler.
func (l *lines) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *lines) WithGroup(string) slog.Handler { return l }

// last returns the last line, to append to an error.
func (l *lines) last() string {
	if len(l.all) == 0 {
		return ""
	}
	return ": " + strings.TrimSpace(l.all[len(l.all)-1].Text)
}
