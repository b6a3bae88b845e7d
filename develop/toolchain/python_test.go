package toolchain_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/python"
	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
	"runner.example/internal/diag"
	"runner.example/internal/patches"
	"runner.example/internal/tree"
	"runner.example/runtime"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
	"runner.example/schema/compiler"
)

// pythonApp builds apps in Python.
type pythonApp struct {
	*testing.T
	dir         string
	schema      string
	interpreter *python.Interpreter
	log         []string
	removed     []string
}

const pythonSchema = `app n
entity Order { id: id, total: decimal(12, 2)?, tags: string[], placedAt: time @created, lines: Line[] @inverse(order), of: Customer? }
entity Line { id: id, order: Order }
entity Customer { id: id, name: string }
var LIMIT: int = 3
jobs { closeMonth(month: date) }
routes("/v1", auth: none, rateLimit: none) { GET /hello/:name -> sayHello }
`

func newPythonApp(t *testing.T, files map[string]string) *pythonApp {
	t.Helper()
	if !patches.Applied {
		t.Skip("built without the patches of third_party: use tools/go.sh")
	}
	if testing.Short() {
		t.Skip("compiles CPython: left out by -short")
	}
	return &pythonApp{T: t, dir: toolchaintest.App(t, files), schema: pythonSchema, interpreter: toolchaintest.Interpreter(t)}
}

func (a *pythonApp) options() toolchain.Options {
	a.Helper()
	s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(a.schema)}}, compiler.Options{})
	if s == nil {
		a.Fatal(found)
	}
	return toolchain.Options{
		Dir: a.dir, Name: "n", Schema: s, Interpreter: a.interpreter, CacheDir: toolchaintest.EngineCache(a),
		Log:     func(text string) { a.log = append(a.log, text) },
		Removed: func(file string) { a.removed = append(a.removed, filepath.ToSlash(file)) },
	}
}

// build builds the app, and returns its only module.
func (a *pythonApp) build() *toolchain.Module {
	a.Helper()
	modules, warnings, err := toolchain.Build(context.Background(), a.options())
	if err != nil || warnings != nil || len(modules) != 1 {
		a.Fatalf("built %v, %v, %v, %s", modules, warnings, err, a.log)
	}
	return modules[0]
}

// refused builds the app, and returns the diagnostics in their order.
func (a *pythonApp) refused() (all []string) {
	a.Helper()
	_, _, err := toolchain.Build(context.Background(), a.options())
	wrong, ok := errors.AsType[*toolchain.DiagnosticsError](err)
	if !ok {
		a.Fatalf("got %v", err)
	}
	for _, d := range wrong.List.Sorted() {
		all = append(all, d.String())
	}
	return all
}

func (a *pythonApp) write(name, text string) {
	a.Helper()
	path := filepath.Join(a.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		a.Fatal(err)
	}
}

func (a *pythonApp) remove(name string) {
	a.Helper()
	if err := os.RemoveAll(filepath.Join(a.dir, name)); err != nil {
		a.Fatal(err)
	}
}

// files returns the tree of the module.
func (a *pythonApp) files() *tree.Tree {
	a.Helper()
	files, err := tree.OpenDir(a.dir, schema.PythonFiles)
	if err != nil {
		a.Fatal(err)
	}
	return files
}

// ask calls a handler of the module.
func (a *pythonApp) ask(handler string) toolchaintest.Answer {
	a.Helper()
	wasm, err := os.ReadFile(filepath.Join(a.dir, "build", "python.wasm"))
	if err != nil {
		a.Fatal(err)
	}
	file := runtime.ModuleFile{Name: "build/python.wasm", Wasm: wasm, Files: a.files()}
	m, err := pythonEngine(a).LoadAs(context.Background(), file.Name, file.Wasm, runtime.ModuleSettings(a.options().Schema, file))
	if err != nil {
		a.Fatal(err)
	}
	defer m.Close(context.Background())
	return toolchaintest.Ask(a, m, handler, abi.Request{Params: []abi.Pair{{Name: []byte("name"), Value: []byte("ada")}}})
}

const greeting = `from runner import handler
from texts.words import word
import there

@handler
def say_hello(req):
    with open("/app/handlers/texts/end.txt") as end:
        return {"text": f"{word()} {req.params['name']}{end.read()}", "from": there.name}

@handler
def close_month(req):
    pass
`

var pythonFiles = map[string]string{
	"handlers/greeting.py":    greeting,
	"handlers/texts/words.py": "def word():\n    return \"hello\"\n", "handlers/texts/end.txt": "!",
	"handlers/.hidden.py": "(", "handlers/texts/.hidden": "x", "handlers/__pycache__/x.pyc": "x", "handlers/node_modules/x.py": "(",
	"handlers/tsconfig.json": "{}", "handlers/static/a.js": "", "handlers/c/x.c": "", "handlers/c/data.py": "(",
	"python_packages/there.py": "name = \"there\"\n", "python_packages/bin/script.py": "(", "python_packages/.lock": "x",
	"python_packages/there-1.0.dist-info/RECORD": "there.py,,\n",
	"python_packages/old/for_python_2.py":        "print 1\n",
}

func TestPythonIsBuiltWithItsPackagesAndBytecode(t *testing.T) {
	a := newPythonApp(t, pythonFiles)
	a.remove("handlers/c") // a directory in C is a module of its own
	m := a.build()
	if m.File != "build/python.wasm" || !slices.Equal(m.Handlers, []string{"sayHello", "closeMonth"}) ||
		!slices.Equal(m.Sources, []string{"handlers/greeting.py"}) || m.Source != toolchain.PythonSource {
		t.Errorf("built %+v", m)
	}
	var own []string
	for _, f := range a.files().List() {
		if !strings.HasPrefix(f.Path, "runner/") {
			own = append(own, f.Path)
		}
	}
	if got, want := strings.Join(own, " "), "LICENSE __main__.py __pycache__/__main__.cpython-313.pyc "+
		"handlers/__pycache__/greeting.cpython-313.pyc handlers/greeting.py handlers/static/a.js handlers/texts/__pycache__/words.cpython-313.pyc "+
		"handlers/texts/end.txt handlers/texts/words.py packages/__pycache__/there.cpython-313.pyc packages/old/for_python_2.py "+
		"packages/there-1.0.dist-info/RECORD packages/there.py schema.json"; got != want {
		t.Errorf("the module has\n%s, want\n%s", got, want)
	}
	bytecode, err := a.files().ReadFile("handlers/__pycache__/greeting.cpython-313.pyc")
	if err != nil || !bytes.HasPrefix(bytecode, []byte("\xf3\x0d\x0d\x0a\x01\x00\x00\x00")) || !bytes.Contains(bytecode, []byte("/app/handlers/greeting.py")) {
		t.Errorf("the bytecode is %.40q, %v", bytecode, err) // of Python 3.13, not compared with its source
	}
	if got := a.ask("sayHello"); got.Body != `{"text":"hello ada!","from":"there"}` {
		t.Errorf("answers %+v", got)
	}
	if exports, err := toolchain.Exports(a.dir, "sayHello"); err != nil || !slices.Equal(exports, []string{"sayHello", "closeMonth"}) {
		t.Errorf("exports %v, %v", exports, err)
	}
}

func TestPythonKnowsTheSchema(t *testing.T) {
	a := newPythonApp(t, map[string]string{"handlers/a.py": "from runner import handler\n@handler\ndef a(req): pass\n"})
	a.build()
	got, err := a.files().ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.Join(strings.Fields(string(got)), "")
	if want := `{"handlers":["sayHello","closeMonth"],"entities":{"Customer":{"id":"id","name":"string"},` +
		`"Line":{"id":"id","order":{"one":"Order"}},` +
		`"Order":{"id":"id","lines":{"many":"Line"},"of":{"one":"Customer"},"placedAt":"time","tags":"listofstring","total":"decimal"}},` +
		`"vars":{"LIMIT":"int"},"jobs":{"closeMonth":{"month":"date"}}}`; plain != want {
		t.Errorf("schema.json is\n%s, want\n%s", plain, want)
	}
}

func TestPythonIsBuiltAgainOnlyAsFarAsItChanged(t *testing.T) {
	a := newPythonApp(t, pythonFiles)
	a.remove("handlers/c")
	a.build()
	before := a.files().Digest()
	file := func(name string) os.FileInfo {
		info, err := os.Stat(filepath.Join(a.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	names := []string{"build/python.wasm", "build/python/handlers/greeting.py", "build/python/runner/__init__.py"}
	var files []os.FileInfo
	for _, name := range names {
		files = append(files, file(name))
	}
	a.log = nil
	a.write("handlers/texts/words.py", "print(\"started\")\ndef word():\n    return \"good morning\"\n")
	a.write("handlers/more.py", "")
	a.remove("handlers/texts/end.txt")
	a.build()
	for i, name := range names {
		// A module that is not written gets the time of the build.
		if now := file(name); !os.SameFile(now, files[i]) || i > 0 && !now.ModTime().Equal(files[i].ModTime()) {
			t.Errorf("%s was written again", name)
		}
	}
	if !slices.Equal(a.log, []string{"started"}) {
		t.Errorf("logged %q", a.log)
	}
	if _, there := a.files().Lookup("handlers/texts/end.txt"); there {
		t.Error("a deleted file is still there")
	}
	a.write("handlers/texts/end.txt", "!")
	a.build()
	if got := a.ask("sayHello"); got.Body != `{"text":"good morning ada!","from":"there"}` {
		t.Errorf("answers %+v", got)
	}
	for name, text := range pythonFiles {
		if strings.HasPrefix(name, "handlers/texts") {
			a.write(name, text)
		}
	}
	a.remove("handlers/more.py")
	a.build()
	if a.files().Digest() != before {
		t.Error("equal sources have made other files")
	}
	a.log = nil
	a.build() // the module is not started again
	if a.log != nil {
		t.Errorf("logged %q", a.log)
	}
}

func TestPythonErrorsHavePlaces(t *testing.T) {
	a := newPythonApp(t, map[string]string{
		"handlers/a.py": "def f(:\n    pass\n", "handlers/b.py": "x = 1\n  y = 2\n", "handlers/deep/c.py": "s = 'a\n",
	})
	if got, want := strings.Join(a.refused(), "\n"), "handlers/a.py:1:7: error: invalid syntax\n"+
		"handlers/b.py:2:2: error: unexpected indent\n"+
		"handlers/deep/c.py:1:5: error: unterminated string literal (detected at line 1)"; got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	a.remove("handlers/b.py")
	a.write("handlers/deep/c.py", "def fails():\n    return {}[\"key\"]\n")
	for source, want := range map[string]string{
		"import flask\n":                        "handlers/a.py:1:1: error: ModuleNotFoundError: No module named 'flask': name its package in handlers/requirements.txt, or add handlers/flask.py",
		"import tkinter\n":                      "handlers/a.py:1:1: error: ModuleNotFoundError: No module named 'tkinter': a handler has no display",
		"from deep.c import fails\n\nfails()\n": "handlers/deep/c.py:2:12: error: KeyError: 'key'",
		"x = 1\n":                               "handlers: error: ImportError: no file in handlers/ has a handler: write @handler above a function, or shop = wsgi(app)",
		"from runner import handler\n@handler\ndef a(): pass\n": "handlers/a.py:2:2: error: TypeError: handler a in handlers/a.py:2 takes no parameter: " +
			"it is called with the request, as in def a(req)",
		"import sys\nsys.exit(3)\n": "handlers: error: the app calls sys.exit(3) in its start",
		"import os\nos._exit(3)\n":  "handlers: error: build/python.wasm: exits with status 3 before it waits for a request",
	} {
		a.write("handlers/a.py", source)
		if got := a.refused(); len(got) != 1 || got[0] != want {
			t.Errorf("%q: got %q, want %q", source, got, want)
		}
		if _, err := os.Stat(filepath.Join(a.dir, "build", "python.wasm")); err == nil {
			t.Errorf("%q: there is a module", source)
		}
	}
	a.write("handlers/a.py", "x = 1\n")
	const two = "from runner import handler\n@handler\ndef say_hello(req): return 1\n@handler\ndef say__hello(req): return 2\n"
	for file, want := range map[string]string{
		"json.py":            "handlers/json.py hides the module json of Python: rename it",
		"json/__init__.py":   "handlers/json hides the module json of Python: rename it",
		"runner/__init__.py": "handlers/runner hides the module runner: rename it",
		"a/__init__.py":      "handlers/a/ hides handlers/a.py: rename one of them",
		"a.b.py":             "handlers/a.b.py is not the name of a module: remove the dots before .py",
		"two.py":             "handler sayHello is defined twice: as say_hello in handlers/two.py:2 and as say__hello in handlers/two.py:4",
	} {
		a.write("handlers/"+file, two)
		if got := a.refused(); len(got) != 1 || !strings.HasSuffix(got[0], "Error: "+want) {
			t.Errorf("%s: got %q, want %s", file, got, want)
		}
		top, _, _ := strings.Cut(file, "/")
		a.remove("handlers/" + top)
	}
	a.write("handlers/a.py", "import re\nfrom runner import handler\n@handler\ndef a(req): re.match(\"\\d\", \"1\")\n")
	_, warnings, err := toolchain.Build(context.Background(), a.options())
	if err != nil || warnings == nil || warnings.Error() != `handlers/a.py:4:1: warning: invalid escape sequence '\d'` {
		t.Errorf("warned %v, %v", warnings, err)
	}
	a.schema += "module python { args: [\"/app\"] }\n"
	if got := a.refused(); len(got) != 1 || !strings.Contains(got[0], "error[E560]: module python is the one of handlers in Python, handlers/*.py") {
		t.Errorf("got %q", got)
	}
}

// The host denies what needs a request. The error names the line of the author, also of a function with @warm.
func TestOperationsInTheStartOfPythonAreErrorsThatSayWhatToDo(t *testing.T) {
	a := newPythonApp(t, map[string]string{})
	const early = " is not available while the program starts, at module level or in @warm: call it in the handler (handlers/a.py:"
	for source, want := range map[string]string{
		"from runner import query\nrows = query(\"Order\").rows()\n":                        "handlers/a.py:2:8: error: runner.HostError: denied: query" + early + "2)",
		"from runner import fetch, warm\n@warm\ndef w():\n  fetch(\"https://a.example\")\n": "handlers/a.py:4:3: error: runner.HostError: denied: fetch" + early + "4)",
		"from runner import context\nme = context().auth\n":                                 "handlers/a.py:2:1: error: runner.HostError: denied: context" + early + "2)",
	} {
		a.write("handlers/a.py", source+"from runner import handler\n@handler\ndef a(req): return 1\n")
		if got := a.refused(); len(got) != 1 || got[0] != want {
			t.Errorf("%q: got %q, want %q", source, got, want)
		}
	}
	a.log = nil
	a.write("handlers/a.py", "import urllib.request\nfrom runner import handler\n@handler\ndef a(req): return 1\n"+
		"try:\n  urllib.request.urlopen(\"https://a.example\")\nexcept OSError as error:\n  print(error)\n")
	a.build()
	if want := "GET https://a.example/: fetch" + early + "6)"; len(a.log) != 1 || !strings.Contains(a.log[0], want) {
		t.Errorf("logged %q, want %q", a.log, want)
	}
}

// A path of warm that fails in the start is refused or a warning, with the path, the error and its lines.
func TestWhatWarmNamesAndFailsIsTold(t *testing.T) {
	const apps = `from runner import asgi, query, wsgi

def app(environ, start_response):
    if environ["PATH_INFO"] == "/raises":
        raise KeyError("no")
    try:
        query("Order").rows()
    except Exception:
        start_response("503 Service Unavailable", [])
    else:
        start_response("200 OK", [])
    return []

async def later(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 500})
        await send({"type": "http.response.body"})

`
	a := newPythonApp(t, map[string]string{"handlers/a.py": apps + "say_hello = wsgi(app, warm=(\"/a\", \"/rows?x=1\"))\nclose_month = asgi(later, warm=\"/b\")\n"})
	a.build()
	got := strings.Join(a.log, "\n")
	for _, want := range []string{
		"GET /a, which warm names, answers 503 in the start, so what it prepares is missing: runner.HostError: denied: query is not available while the program starts",
		"GET /rows?x=1, which warm names, answers 503 in the start", "    at app (handlers/a.py:7:9)",
		"GET /b, which warm names, answers 500 in the start",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("logged %s, want %s", got, want)
		}
	}
	a.write("handlers/a.py", apps+"say_hello = wsgi(app, warm=\"/raises\")\n")
	if got, want := a.refused(), "handlers/a.py:5:9: error: RuntimeError: GET /raises, which warm names, fails in the start: KeyError: 'no'"; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

// The event loop of an app without async handlers is that of the host too.
func TestAPlainHandlerOfPythonRunsCoroutines(t *testing.T) {
	a := newPythonApp(t, map[string]string{"handlers/a.py": `import asyncio
from runner import handler

async def double(n):
    await asyncio.sleep(0.001)
    return 2 * n

async def both():
    return await asyncio.gather(double(1), double(2))

@handler
def say_hello(req):
    return [asyncio.run(both()), asyncio.run(double(3))]
`})
	a.build()
	if got := a.ask("sayHello"); got.Body != "[[2,4],6]" {
		t.Errorf("answers %+v", got)
	}
}

func TestPythonIsRemovedWithItsSources(t *testing.T) {
	a := newPythonApp(t, map[string]string{
		"handlers/a.py": "from runner import handler\n@handler\ndef a(req): return 1\n",
		"handlers/b.ts": "import { two } from \"./lib/two\";\nexport const b = () => two;\n", "handlers/lib/two.ts": "export const two = 2;\n",
	})
	modules, warnings, err := toolchain.Build(context.Background(), a.options())
	if err != nil || warnings != nil || len(modules) != 2 || modules[0].File != "build/n.wasm" || modules[1].File != "build/python.wasm" {
		t.Fatal(modules, warnings, err)
	}
	for _, file := range []string{"handlers/b.ts", "handlers/lib/two.ts"} {
		if _, there := a.files().Lookup(file); there {
			t.Errorf("the module has %s", file)
		}
	}
	a.remove("handlers/a.py")
	a.build()
	if !slices.Equal(a.removed, []string{"build/python", "build/python.wasm"}) {
		t.Errorf("removed %v", a.removed)
	}
	a.write("handlers/a.py", "from runner import handler\n@handler\ndef a(req): return 1\n")
	a.remove("handlers/b.ts")
	a.build()
	a.write("build/python/mine.txt", "put there by hand")
	a.remove("handlers/a.py")
	a.removed = nil
	if removed, err := toolchain.Clean(a.dir); err != nil || !slices.Equal(removed, []string{"build/python.wasm"}) {
		t.Errorf("removed %v, %v", removed, err)
	}
}

func TestAPackageWithMachineCodeIsRefusedUnlessItWorksWithout(t *testing.T) {
	a := newPythonApp(t, map[string]string{
		"handlers/a.py":                                 "import yaml, quick\nfrom runner import handler\n@handler\ndef a(req): return [yaml.name, quick.name]\n",
		"python_packages/yaml/__init__.py":              "try:\n    from . import _yaml\nexcept ImportError:\n    name = \"pure\"\n",
		"python_packages/yaml/_yaml.cpython-313-x86.so": "\x7fELF", "python_packages/PyYAML-6.0.dist-info/RECORD": "yaml/__init__.py,,\nyaml/_yaml.cpython-313-x86.so,,\n",
		"python_packages/quick.py": "name = \"quick\"\n", "python_packages/quick.cpython-313-x86.so": "\x7fELF",
	})
	_, warnings, err := toolchain.Build(context.Background(), a.options())
	if err != nil || warnings == nil || len(warnings.List) != 2 ||
		!strings.Contains(warnings.List[1].Message, "package PyYAML runs without its machine code") {
		t.Fatal(warnings, err)
	}
	if got := a.ask("a"); got.Body != `["pure","quick"]` {
		t.Errorf("answers %+v", got)
	}
	a.write("python_packages/numpy/core.pyd", "MZ")
	if got, want := a.refused()[0], "python_packages/numpy/core.pyd: error: package numpy has machine code, which a sandbox cannot run: use the modules math, statistics and array"; got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// Packages of Debian have no list of their files. What is not known to need its machine code is left to the start.
func TestMachineCodeThatNothingNeedsIsLeftOutWithOneWarning(t *testing.T) {
	const handler = "from runner import handler\n@handler\ndef a(req):\n  return [yaml.name, pyrsistent.name, odd.name]\n@handler\ndef late(req):\n  import odd._fast\n"
	a := newPythonApp(t, map[string]string{
		"handlers/a.py":                    "import yaml, pyrsistent, odd\n" + handler,
		"python_packages/yaml/__init__.py": "try:\n    from . import _yaml\nexcept ImportError:\n    name = \"pure\"\n", "python_packages/yaml/_yaml.cpython-312-x86_64-linux-gnu.so": "\x7fELF",
		"python_packages/pyrsistent/__init__.py": "try:\n    import pvectorc\nexcept ImportError:\n    name = \"pure\"\n", "python_packages/pvectorc.cpython-312-x86_64-linux-gnu.so": "\x7fELF",
		"python_packages/odd/__init__.py": "name = \"odd\"\n", "python_packages/odd/_fast.abi3.so": "\x7fELF", "python_packages/odd/_more.so": "\x7fELF", "python_packages/odd.libs/libx.so.1": "\x7fELF",
	})
	_, warnings, err := toolchain.Build(context.Background(), a.options())
	if err != nil || warnings == nil {
		t.Fatal(warnings, err)
	}
	var got []string
	for _, d := range warnings.List.Sorted() {
		got = append(got, d.String())
	}
	if want := []string{
		"python_packages/odd.libs/libx.so.1: warning: package odd is built without its machine code, which a sandbox cannot run: what needs it is an error when it is imported",
		"python_packages/pvectorc.cpython-312-x86_64-linux-gnu.so: warning: package pvectorc runs without its machine code, which a sandbox cannot run: it is slower",
		"python_packages/yaml/_yaml.cpython-312-x86_64-linux-gnu.so: warning: package yaml runs without its machine code, which a sandbox cannot run: it is slower",
	}; !slices.Equal(got, want) {
		t.Errorf("warned\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := a.ask("a"); got.Body != `["pure","pure","odd"]` {
		t.Errorf("answers %+v", got)
	}
	const needs = ": it is machine code of the package odd, which a sandbox cannot run: use a package of Python alone"
	if got := a.ask("late"); !strings.Contains(got.Log, "ModuleNotFoundError: No module named 'odd._fast'"+needs) {
		t.Errorf("logs %+v", got)
	}
	for source, want := range map[string]string{
		"import odd._fast\n":        "handlers/a.py:1:1: error: ModuleNotFoundError: No module named 'odd._fast'" + needs,
		"from odd import _more\n":   "handlers/a.py:1:1: error: ImportError: cannot import name '_more' from 'odd' (/app/packages/odd/__init__.py)" + needs,
		"from odd import nothing\n": "handlers/a.py:1:1: error: ImportError: cannot import name 'nothing' from 'odd' (/app/packages/odd/__init__.py)",
		"import odd._other\n":       "handlers/a.py:1:1: error: ModuleNotFoundError: No module named 'odd._other'",
	} {
		a.write("handlers/a.py", source+handler)
		if got := a.refused(); got[0] != want {
			t.Errorf("%q: got %q, want %q", source, got[0], want)
		}
	}
}

// wheel writes a package of Python alone to the app's directory wheels.
func (a *pythonApp) wheel(name, version, source string) {
	a.Helper()
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	info := name + "-" + version + ".dist-info/"
	for file, text := range map[string]string{
		name + ".py":      source,
		info + "METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n",
		info + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD":   "",
	} {
		w, err := z.Create(file)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			a.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		a.Fatal(err)
	}
	a.write("wheels/"+name+"-"+version+"-py3-none-any.whl", packed.String())
}

func TestPackagesAreInstalledWhenTheirListChanges(t *testing.T) {
	a := newPythonApp(t, map[string]string{
		"handlers/a.py": "import there\nfrom runner import handler\n@handler\ndef a(req): return there.version\n",
	})
	if exec.Command("pip3", "--version").Run() != nil {
		t.Fatal("pip3 is missing: tools/setup.sh installs it")
	}
	a.wheel("there", "1.0", "version = 1\n")
	a.wheel("there", "2.0", "version = 2\n")
	for _, version := range []string{"1", "2"} {
		a.write("handlers/requirements.txt", "--no-index\n--find-links "+filepath.Join(a.dir, "wheels")+"\nthere=="+version+".0\n")
		a.build()
		if got := a.ask("a"); got.Body != version {
			t.Errorf("answers %+v", got)
		}
	}
	t.Setenv("PATH", t.TempDir()) // nothing is installed again
	a.build()
	a.write("handlers/requirements.txt", "there")
	if got := a.refused(); len(got) != 1 || !strings.HasPrefix(got[0], "handlers/requirements.txt: error: neither uv nor pip is installed") {
		t.Errorf("got %q", got)
	}
	a.remove("python_packages/.runner-requirements")
	if got := a.refused(); len(got) != 1 || !strings.HasPrefix(got[0], "python_packages: error: it has packages that runner build did not install") {
		t.Errorf("got %q", got)
	}
}

// fakeUV is a program that takes the arguments of uv, records them, and installs with pip.
const fakeUV = `#!/bin/sh
printf '%s\n' "$@" > "$UV_RECORD"
[ "$1 $2" = "pip install" ] || exit 2
shift 2
exec pip3 install --disable-pip-version-check --quiet "$@"
`

// The tests cannot get uv itself.
func TestPackagesAreInstalledByUVIfItIsThere(t *testing.T) {
	a := newPythonApp(t, map[string]string{
		"handlers/a.py": "import there\nfrom runner import handler\n@handler\ndef a(req): return there.version\n",
	})
	if exec.Command("pip3", "--version").Run() != nil {
		t.Fatal("pip3 is missing: tools/setup.sh installs it")
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "uv"), []byte(fakeUV), 0o755); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(bin, "record")
	t.Setenv("UV_RECORD", record)
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	a.wheel("there", "1.0", "version = 1\n")
	a.write("handlers/requirements.txt", "--no-index\n--find-links "+filepath.Join(a.dir, "wheels")+"\nthere==1.0\n")
	a.build()
	if got := a.ask("a"); got.Body != "1" {
		t.Errorf("answers %+v", got)
	}
	text, err := os.ReadFile(record)
	args := strings.Fields(string(text))
	if err != nil || len(args) != 9 {
		t.Fatalf("uv got %q, %v", args, err)
	}
	args[3] = filepath.Base(args[3])[:len(".python_packages-")] // a new directory
	if got, want := strings.Join(args, " "), "pip install --target .python_packages- --python-version 3.13 --only-binary=:all: -r handlers/requirements.txt"; got != want {
		t.Errorf("uv got %s, want %s", got, want)
	}
	if len(a.log) == 0 || a.log[0] != "installing the packages of handlers/requirements.txt with uv pip install" {
		t.Errorf("logged %q", a.log)
	}
}

func TestAPackageThatCannotBeInstalledIsNamed(t *testing.T) {
	a := newPythonApp(t, map[string]string{
		"handlers/a.py": "", "handlers/requirements.txt": "--no-index\nabsent==1.0\n", "python_packages/.runner-requirements": "of others",
	})
	if exec.Command("pip3", "--version").Run() != nil {
		t.Fatal("pip3 is missing: tools/setup.sh installs it")
	}
	if got := a.refused(); len(got) != 1 || !strings.Contains(got[0], "the packages cannot be installed: ") || !strings.Contains(got[0], "absent==1.0") {
		t.Errorf("got %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(a.dir, ".python_packages-*")); left != nil {
		t.Errorf("left %v", left)
	}
}

func TestTheSchemaNamesAnotherInterpreter(t *testing.T) {
	a := newPythonApp(t, map[string]string{"handlers/a.py": "from runner import handler\nimport os\n@handler\ndef a(req): return os.environ[\"LANG\"]\n"})
	a.build()
	wasm, err := os.ReadFile(filepath.Join(a.dir, "build", "python.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	other := append(wasm, "\x00\x02\x01x"...) // a section that says nothing
	a.write("other/python.wasm", string(other))
	a.schema += "python { wasm: \"other/python.wasm\", env: { LANG: \"de\" } }\n"
	a.build()
	if got, err := os.ReadFile(filepath.Join(a.dir, "build", "python.wasm")); err != nil || !bytes.Equal(got, other) {
		t.Errorf("the module has %d bytes, %v", len(got), err)
	}
	if got := a.ask("a"); got.Body != `"de"` {
		t.Errorf("answers %+v", got)
	}
	a.remove("other")
	if got := a.refused(); len(got) != 1 || !strings.HasPrefix(got[0], "app.schema:8:16: error: the interpreter other/python.wasm: ") {
		t.Errorf("got %q", got)
	}
}

// pythonEngine returns an engine for one test, whose handlers have the memory that CPython needs.
func pythonEngine(a *pythonApp) *sandbox.Engine {
	a.Helper()
	return toolchaintest.NewEngine(a, sandbox.Options{})
}

// A build starts the module again if the schema gives it other environment variables.
func TestPythonIsStartedWithItsEnvironment(t *testing.T) {
	a := newPythonApp(t, map[string]string{
		"handlers/a.py": "import os\nfrom runner import handler\nrate = float(os.environ.get('RATE', '1'))\n\n@handler\ndef say_hello(req):\n    return rate\n",
	})
	a.build()
	a.schema = strings.Replace(pythonSchema, "app n", `app n
python { env: { RATE: "much" } }`, 1)
	if got := strings.Join(a.refused(), "\n"); !strings.Contains(got, "could not convert string to float: 'much'") {
		t.Errorf("got %s", got)
	}
}
