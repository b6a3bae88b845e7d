package typescript

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"runner.example/hostabi/abi"
	"runner.example/internal/diag"
)

// Options are the input of Build.
type Options struct {
	// Dir is the app directory. Files are the handlers' files, at least one, relative to it.
	Dir   string
	Files []string
	// Handlers are the names that the schema's routes call. A module exports every function
	// that its files export, but each of these names must be exported only once.
	Handlers []string
	// CacheDir stores the compiled JavaScript engine between builds. No other user may write to
	// it, because code there is executed unchecked. Empty: the engine is interpreted.
	CacheDir string
	// Log receives the lines that the handlers' files log while they are evaluated.
	Log func(text string)
}

// Module is a module that was built.
type Module struct {
	Wasm []byte
	// Sources are the app's own files in the module, relative to the app directory. Handlers
	// are its exported handlers.
	Sources, Handlers []string
}

// Build builds the module of the files and what they import. The list has errors and warnings;
// if it has an error, the module is nil.
func Build(ctx context.Context, o Options) (*Module, diag.List, error) {
	return build(ctx, o, handlersEntry(o.Files), false)
}

// TestHandler is the handler of a module with tests.
const TestHandler = "test"

// BuildTests builds one module of the test files and what they import, which may be @runner/test and the files of
// handlers. Its handler TestHandler runs the tests of one file. It needs a host with hostabi.Host.Test, which says
// what file that is; sdk/typescript/test/PROTOCOL.md has the arguments and results. Files are the test files;
// Handlers is not used.
func BuildTests(ctx context.Context, o Options) (*Module, diag.List, error) {
	o.Handlers = nil
	return build(ctx, o, testsEntry(o.Files), true)
}

func build(ctx context.Context, o Options, entry string, tests bool) (*Module, diag.List, error) {
	bundled, found, err := bundleFiles(o.Dir, entry, tests)
	if err != nil || found.HasErrors() {
		return nil, found, err
	}
	b := &builder{options: o, found: found}
	wasm, handlers, err := b.evaluate(ctx, bundled)
	if err != nil || wasm == nil {
		return nil, b.found, err
	}
	return &Module{Wasm: wasm, Sources: bundled.files, Handlers: handlers}, b.found, nil
}

type builder struct {
	options Options
	found   diag.List
}

// export is a function that a handlers' file exports.
type export struct {
	Name string `json:"name"`
	File string `json:"file"`
	// Kind is empty, "class" or "generator"; the latter two cannot be handlers.
	Kind string `json:"kind"`
}

// evaluate runs the scripts once and builds a module from the resulting memory.
func (b *builder) evaluate(ctx context.Context, bundled *bundle) (_ []byte, handlers []string, err error) {
	scripts, err := bundled.scripts()
	if err != nil {
		return nil, nil, err
	}
	e, err := startEngine(ctx, b.options.CacheDir, func(text string) { b.options.Log(escaped(text)) })
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	runner := e.newRunner(bundled)
	for _, script := range scripts {
		if _, err := e.run(script.name, script.text); err != nil {
			return nil, nil, fmt.Errorf("evaluate the SDK: %w", err)
		}
	}
	e.fillHoles()
	// From here on the handlers' code runs. Starting the engine does not count.
	ctx, cancel := context.WithTimeout(ctx, evaluationTime)
	defer cancel()
	e.ctx = ctx
	e.evaluating = true
	_, err = e.run(bundleFile, bundled.script)
	e.evaluating = false
	if err != nil {
		return nil, nil, b.notEvaluated(ctx, bundled, err)
	}
	if err := b.warnEvaluation(e, bundled); err != nil {
		return nil, nil, err
	}
	var exports []export
	if err := json.Unmarshal([]byte(e.text(e.property(runner, "names"))), &exports); err != nil && e.failed == nil {
		return nil, nil, fmt.Errorf("read the exports of the handlers' files: %w", err)
	}
	var defaults []export
	if err := json.Unmarshal([]byte(e.text(e.property(runner, "defaults"))), &defaults); err != nil && e.failed == nil {
		return nil, nil, fmt.Errorf("read the exports of the handlers' files: %w", err)
	}
	chosen := b.choose(exports)
	b.hint(exports, defaults)
	if e.failed != nil || b.found.HasErrors() {
		return nil, nil, e.failed
	}
	wasm, err := e.link(runner, exports, chosen, bundled.flow)
	return wasm, chosen, err
}

// warnEvaluation adds warnings to the list: about operations at the top level that belong
// in a request, values that will be the same in every request, and unhandled rejections.
func (b *builder) warnEvaluation(e *engine, bundled *bundle) error {
	if value := e.property(e.runner, "violation"); e.do("qjs_is_object", value) != 0 {
		b.addThrown(bundled, e.thrown(value), diag.Error)
		return e.failed // later failures are consequences of this one
	}
	frozen := e.property(e.runner, "frozen")
	for i := range uint64(e.number(e.property(frozen, "length"))) {
		b.addThrown(bundled, e.thrown(e.do("qjs_get_prop_uint32", frozen, i)), diag.Warning)
	}
	lost, err := e.call(e.runner, "lost")
	if err != nil {
		return err
	}
	for i := range uint64(e.number(e.property(lost, "length"))) {
		b.addThrown(bundled, e.thrown(e.do("qjs_get_prop_uint32", lost, i)), diag.Error)
	}
	return e.failed
}

// newRunner creates globalThis.__runner, which the SDK's host.ts describes.
func (e *engine) newRunner(bundled *bundle) uint64 {
	errnos := map[string]string{}
	for _, errno := range abi.Errnos() {
		errnos[strconv.Itoa(int(errno.Errno))] = errno.Name
	}
	facts, _ := json.Marshal(map[string]any{ // only strings
		"errnos": errnos, "sources": bundled.sourceMap.Sources, "mappings": bundled.standing(), "calls": bundled.calls,
		"renamed": renamed(bundled.script, &bundled.sourceMap),
	})
	runner, err := e.run(runtimeFile, "(globalThis.__runner = "+string(facts)+")")
	if err != nil {
		e.failed = err
		return 0
	}
	host := e.do("qjs_new_object")
	for i, binding := range bindings() {
		letter := e.place([]byte{firstBinding + byte(i)})
		e.setProperty(host, binding.name, e.do("qjs_new_host_function", letter, 1, 0))
		e.do("wasm_free", letter)
	}
	e.setProperty(runner, "host", host)
	e.runner = runner
	return runner
}

// link ends the evaluation and builds the module.
func (e *engine) link(runner uint64, exports []export, handlers []string, flow bool) ([]byte, error) {
	p := &program{scratch: e.scratch, context: uint32(e.do("qjs_get_context_ptr")), flow: flow, entries: e.parsed.Tables()[0].Min}
	for _, x := range exports { // dispatch counts all of them
		name := x.Name
		if !slices.Contains(handlers, name) {
			name = ""
		}
		p.handlers = append(p.handlers, name)
	}
	e.bind(runner)
	if _, err := e.call(runner, "seal"); err != nil {
		return nil, err
	}
	var functions []byte
	for _, name := range []string{"dispatch", "finish", "rejected", "interrupted", "stopped", "threw"} {
		functions = binary.LittleEndian.AppendUint64(functions, e.value(e.property(runner, name)))
	}
	var state uint64
	if flow {
		state = e.value(e.property(runner, "flow"))
	}
	content, stackPointer, err := e.memory()
	if err != nil {
		return nil, err
	}
	copy(content[e.scratch+functionsAt:], functions)
	if flow {
		binary.LittleEndian.PutUint32(content[e.scratch+flowAt:], uint32(state))
	}
	l, err := p.link()
	if err != nil {
		return nil, err
	}
	l.Memory, l.Globals = content, []uint32{stackPointer}
	wasm, err := e.parsed.Link(l)
	if err != nil {
		return nil, fmt.Errorf("the JavaScript engine %w", err)
	}
	return wasm, nil
}

// bind replaces the host functions of the build with the bindings, which follow the
// engine's own entries in the module's table.
func (e *engine) bind(runner uint64) {
	host, context := e.property(runner, "host"), e.do("qjs_get_context_ptr")
	for i, b := range bindings() {
		name := e.place([]byte(b.name))
		entry := e.parsed.Tables()[0].Min + uint32(i)
		function := e.handle(e.invoke("JS_NewCFunction2", context, uint64(entry), name, uint64(b.given()), 0, 0))
		e.do("wasm_free", name)
		e.setProperty(host, b.name, function)
		e.do("qjs_free_value", function)
	}
}

// The names of handlers that a schema can call; names that begin with an underscore or
// runner_ cannot be called by routes.
var handlerName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// choose selects the exports of the module. A name that several files export is not
// exported; it is an error if a route calls it.
func (b *builder) choose(exports []export) (names []string) {
	files := map[string][]string{}
	for _, x := range exports {
		files[x.Name] = append(files[x.Name], x.File)
	}
	for _, x := range exports {
		switch {
		case x.Kind != "":
			if slices.Contains(b.options.Handlers, x.Name) {
				b.found.Errorf("", b.declared(x), "%s is a %s, and a handler must be a function: export function %[1]s(req) or export async function %[1]s(req)", x.Name, x.Kind)
			}
		case !handlerName.MatchString(x.Name) || strings.HasPrefix(x.Name, "runner_") || x.Name == "memory":
		case len(files[x.Name]) == 1:
			names = append(names, x.Name)
		case slices.Contains(b.options.Handlers, x.Name) && files[x.Name][0] == x.File:
			b.found.Errorf("", diag.Span{File: x.File}, "%s is exported by %s too: keep one of them, and rename the others", x.Name, strings.Join(files[x.Name][1:], " and "))
		}
	}
	return names
}

// hint reports handlers that exist only as a default export, which has no name.
func (b *builder) hint(exports, defaults []export) {
	for _, x := range defaults {
		named := slices.ContainsFunc(exports, func(other export) bool { return other.Name == x.Name })
		if !named && slices.Contains(b.options.Handlers, x.Name) {
			b.found.Errorf("", b.declared(x), "%s is a default export, and a handler is exported by its name: remove the word default", x.Name)
		}
	}
}

// declared returns the place of an export's name in its file, or only the file.
func (b *builder) declared(x export) diag.Span {
	span := diag.Span{File: x.File}
	text, err := os.ReadFile(filepath.Join(b.options.Dir, x.File))
	if err != nil {
		return span
	}
	line := regexp.MustCompile(`(?m)^([^\n]*\bexport\b[^\n]*?[ *])` + regexp.QuoteMeta(x.Name) + `\b`)
	if at := line.FindSubmatchIndex(text); at != nil {
		name := utf8.RuneCount(text[at[2]:at[3]]) + 1
		span = diag.At(x.File, bytes.Count(text[:at[2]], []byte("\n"))+1, name, utf8.RuneCountInString(x.Name))
	}
	return span
}

// escaped returns text on one line, without terminal control characters.
func escaped(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			code := strconv.QuoteRuneToASCII(r)
			out.WriteString(code[1 : len(code)-1])
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

// notEvaluated adds the failure of an evaluation to the list if the handlers' code caused
// it.
func (b *builder) notEvaluated(ctx context.Context, bundled *bundle, err error) error {
	t, ok := errors.AsType[*thrown](err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		b.found.Errorf("", diag.Span{File: bundled.files[0]}, "the handlers' files ran for %s without ending: code outside functions must be short", evaluationTime)
		return nil
	case !ok:
		return err
	}
	b.addThrown(bundled, t, diag.Error)
	return nil
}

// frame matches a line of a stack trace with a place.
var frame = regexp.MustCompile(`(?m)^ +at (?:.* \()?(.+):(\d+):(\d+)\)?$`)

// addThrown adds an exception to the list, with the innermost place in a file of the app.
func (b *builder) addThrown(bundled *bundle, t *thrown, severity diag.Severity) {
	span := diag.Span{File: bundled.files[0]}
	placed, native := false, ""
	for _, at := range frame.FindAllStringSubmatch(t.stack, -1) {
		line, _ := strconv.Atoi(at[2])
		col, _ := strconv.Atoi(at[3])
		if !slices.Contains(bundled.files, at[1]) {
			continue
		}
		if !placed {
			span, placed = diag.At(at[1], line, col, 1), true
		}
		if native == "" {
			native = nativePackage(filepath.Join(b.options.Dir, at[1]))
		}
	}
	text := t.message
	if t.name != "" && t.name != "Error" {
		text = t.Error()
	}
	if native != "" {
		first, _, _ := strings.Cut(text, "\n")
		text = fmt.Sprintf("the package %q has native code, which handlers cannot run: %s", native, first)
	}
	if severity == diag.Error {
		b.found.Errorf("", span, "%s", text)
	} else {
		b.found.Warnf("", span, "%s", text)
	}
}
