package python

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/tree"
	"runner.example/internal/wasm"
	"runner.example/runtime"
	"runner.example/schema"
)

// Options are the input of Build.
type Options struct {
	// Dir is the app directory, Schema its schema.
	Dir    string
	Schema *schema.Schema
	// Other reports whether an entry of the directory handlers is a source of another language, by its name.
	Other func(name string) bool
	// Interpreter runs CPython.
	Interpreter *Interpreter
	// CacheDir has the bytecode of sources between builds. No other user may write to it, because it is not checked.
	// Empty: each build compiles all sources.
	CacheDir string
	// Known are the handlers of the module in build/ if an earlier build has started it; nil: none has.
	Known []string
	// NoStart: the module is not started. Its handlers are unknown, and an error in an import is found later.
	NoStart bool
	// Log receives the lines that the module writes in its start.
	Log func(text string)
}

// Module is a module that was built.
type Module struct {
	Wasm []byte
	// Files are those of the module, and Content has their bytes by their paths.
	Files   *tree.Tree
	Content map[string][]byte
	// HasWasm and HasFiles say that build/ has the interpreter and the files already.
	HasWasm, HasFiles bool
	// Handlers are the names of its handlers; nil: it was not started.
	Handlers []string
}

type builder struct {
	options Options
	found   diag.List
	wasm    []byte
	sum     [sha256.Size]byte // of wasm
	files   map[string][]byte // of the module, by their paths
}

// Build makes the module of handlers/*.py. It writes nothing into build/. The list has errors and warnings; if it has an
// error, the module is nil.
func Build(ctx context.Context, o Options) (*Module, diag.List, error) {
	b := &builder{options: o, files: map[string][]byte{}}
	if m := o.Schema.Module(schema.PythonModule); m != nil {
		b.found.Errorf("E560", m.Span,
			"module %s is the one of handlers in Python, handlers/*.py, which has the settings of the block python: "+
				"rename build/%[1]s.wasm and this block", m.Name)
		return nil, b.found, nil
	}
	m, err := b.build(ctx)
	if err != nil || b.found.HasErrors() {
		return nil, b.found, err
	}
	return m, b.found, nil
}

func (b *builder) build(ctx context.Context) (*Module, error) {
	built, err := b.interpreter()
	if err != nil || b.found.HasErrors() {
		return nil, err
	}
	if err := b.collect(ctx); err != nil || b.found.HasErrors() {
		return nil, err
	}
	if err := b.bytecode(ctx); err != nil || b.found.HasErrors() {
		return nil, err
	}
	m := &Module{Wasm: b.wasm, Content: b.files, HasWasm: built}
	if m.Files, err = b.tree(); err != nil || m.Files == nil {
		return nil, err
	}
	if there, err := tree.OpenDir(b.options.Dir, schema.PythonFiles); err == nil {
		m.HasFiles = there.Digest() == m.Files.Digest()
	}
	switch {
	case m.HasWasm && m.HasFiles && b.options.Known != nil:
		m.Handlers = b.options.Known
	case !b.options.NoStart:
		err = b.start(ctx, m)
	}
	return m, err
}

// interpreter reads the interpreter. built says that build/ has it already.
func (b *builder) interpreter() (built bool, err error) {
	before, _ := os.ReadFile(filepath.Join(b.options.Dir, "build", schema.PythonModule+".wasm")) // if there is one
	if p := b.options.Schema.Python; p != nil && p.Wasm != "" {
		b.wasm, err = wasm.ReadFile(filepath.Join(b.options.Dir, filepath.FromSlash(p.Wasm)), wasm.DefaultLimits().ModuleBytes)
		if err != nil {
			b.found.Errorf("", p.WasmSpan, "the interpreter %s: %v", p.Wasm, err)
			return false, nil
		}
	} else if b.wasm, err = engineFile(before); err != nil {
		return false, err
	}
	b.sum = sha256.Sum256(b.wasm)
	return b.sum == sha256.Sum256(before), nil
}

// tree makes the tree of the files; nil: they are not a valid tree, and the list says why.
func (b *builder) tree() (*tree.Tree, error) {
	var files []tree.File
	for _, path := range slices.Sorted(maps.Keys(b.files)) {
		content := b.files[path]
		files = append(files, tree.File{Path: path, Size: int64(len(content)), SHA256: sha256.Sum256(content)})
	}
	t, err := tree.New(files, func(f tree.File) ([]byte, error) { return slices.Clone(b.files[f.Path]), nil })
	if invalid, ok := errors.AsType[*tree.InvalidError](err); ok {
		for _, problem := range invalid.Problems {
			b.found.Errorf("", diag.Span{File: schema.PythonFiles}, "%s", problem)
		}
		return nil, nil
	}
	return t, err
}

// start starts the module, as its activation will. An error in the code of the app is added to the list.
func (b *builder) start(ctx context.Context, m *Module) error {
	file := runtime.ModuleFile{Name: "build/" + schema.PythonModule + ".wasm", Wasm: m.Wasm, Files: m.Files}
	handlers, log, err := b.options.Interpreter.start(ctx, file, b.options.Schema)
	shown, wrong := Started(log, err)
	for _, line := range shown {
		b.options.Log(line.Text)
	}
	if err == nil {
		m.Handlers = handlers
		return nil
	}
	if ctx.Err() != nil || wrong == nil {
		return err
	}
	b.found.Append(wrong)
	return nil
}

// Started returns the lines of a start that its developer needs, and the error in the app's code that has ended it. err
// is that of the start, or nil. If the app's code is not its cause, the list is nil.
func Started(log []Line, err error) (shown []Line, wrong diag.List) {
	for _, line := range ownLines(log) {
		if line.Level < slog.LevelError || err == nil { // an error is in the list
			for _, text := range strings.Split(line.Text, `\n`) { // as a record has the ends of lines
				shown = append(shown, Line{line.Level, text})
			}
		}
	}
	if err != nil && fault.CodeOf(err) == fault.Invalid {
		wrong = notStarted(log, err)
	}
	return shown, wrong
}

// ownLines returns the lines without frames of a traceback that are not in the app or its packages.
func ownLines(log []Line) (own []Line) {
	skip := false
	for _, line := range log {
		if at := frameLine.FindStringSubmatch(line.Text); at != nil {
			skip = !strings.HasPrefix(at[1], appDir+"handlers/") && !strings.HasPrefix(at[1], appDir+"packages/")
		} else if !strings.HasPrefix(line.Text, " ") {
			skip = false
		}
		if !skip {
			own = append(own, line)
		}
	}
	return own
}

// The lines of a traceback, and the report of the SDK: "exception: ValueError: no at f (handlers/a.py:3:1)".
var (
	frameLine  = regexp.MustCompile(`^ +File "([^"]+)", line \d+`)
	traceLine  = regexp.MustCompile(`^ +File "/app/(handlers/[^"]+)", line (\d+)`)
	reportLine = regexp.MustCompile(`^exception: (.*?)(?: at [^()]+ \(([^()]+?):(\d+)(?::(\d+))?\))?$`)
	noModule   = regexp.MustCompile(`No module named '([^'.]+)'$`) // not one in a package; the SDK explains some
)

// notStarted returns the error of a start, with the last place in the app's own files.
func notStarted(log []Line, err error) (found diag.List) {
	span, message := diag.Span{File: "handlers"}, ""
	for _, line := range log {
		if at := traceLine.FindStringSubmatch(line.Text); at != nil {
			row, _ := strconv.Atoi(at[2])
			span = diag.At(at[1], row, 1, 1)
		}
		if line.Level >= slog.LevelError {
			message = line.Text
		}
	}
	report := reportLine.FindStringSubmatch(message)
	switch {
	case report != nil:
		message = report[1]
		if row, _ := strconv.Atoi(report[3]); report[2] == span.File && row == span.Start.Line {
			col, _ := strconv.Atoi(report[4])
			span = diag.At(span.File, row, max(1, col), 1)
		}
	case message == "":
		message = fault.Of(err).Detail
	}
	if m := noModule.FindStringSubmatch(message); m != nil {
		message += remedyOf(m[1])
	}
	found.Errorf("", span, "%s", strings.TrimSpace(message))
	return found
}

// remedyOf says what to do about a module that cannot be imported, to append to the error.
func remedyOf(module string) string {
	if strings.HasPrefix(module, "_") {
		return fmt.Sprintf(": CPython for WebAssembly does not have the module %s", module)
	}
	return fmt.Sprintf(": name its package in handlers/requirements.txt, or add handlers/%s.py", module)
}
