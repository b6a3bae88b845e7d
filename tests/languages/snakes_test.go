package languages_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const snakesSchema = `app snakes

routes("/v1", auth: none, rateLimit: none) {
  GET /greet/:name -> greet
  GET /place       -> place
}
`

const snakes = `import os
from runner import handler
from words import greeting

count = 0


@handler
def greet(req):
    global count
    count += 1
    return f"{greeting} {req.params['name']}, {count}"


@handler
def place(req):
    return f"{os.environ.get('LANG')} {os.environ['PYTHONUTF8']} {os.path.exists('/app/handlers/snakes.py')}"
`

// snakesApp has handlers in Python.
func snakesApp(t *testing.T, schema string) *harness.App {
	t.Helper()
	harness.NeedPatches(t)
	a := harness.NewApp(t, schema, "")
	a.Write("handlers/snakes.py", snakes)
	a.Write("python_packages/words.py", "greeting = \"hello\"\n")
	return a
}

func TestAnAppInPythonIsBuiltServedAndReloaded(t *testing.T) {
	t.Parallel()
	a := snakesApp(t, snakesSchema)
	var built []struct {
		Module   string
		Handlers []string
	}
	if err := json.Unmarshal([]byte(a.Must("build", "--json")), &built); err != nil || len(built) != 1 ||
		built[0].Module != "build/python.wasm" || strings.Join(built[0].Handlers, " ") != "greet place" {
		t.Errorf("%+v, %v", built, err)
	}
	a.Must("check", "--strict", "--modules")
	if r := a.Run("bench-handler", "build/python.wasm", "greet", "--param", "name=ada", "-n", "20"); r.Status != 0 || !strings.Contains(r.Stderr, "each answering 200") {
		t.Errorf("bench-handler: %d %s", r.Status, r.Stderr)
	}
	s := a.Serve()
	for range 20 { // each request begins with the memory of the start
		s.WantBody("/v1/greet/ada", "hello ada, 1")
	}
	s.WantBody("/v1/place", "None 1 True")

	a.Write("python_packages/words.py", "greeting = \"good morning\"\n")
	a.Write("app.schema", snakesSchema+"\npython { env: { LANG: \"de\", PYTHONUTF8: \"0\" } }\n")
	a.Must("build")
	a.Must("fmt", "--check")
	a.Must("reload")
	s.WantBody("/v1/greet/ada", "good morning ada, 1")
	s.WantBody("/v1/place", "de 0 True")

	// An error in a start is one of the build, and what was built is kept.
	a.Write("handlers/snakes.py", "import absent\n"+snakes)
	if r := a.Run("build"); r.Status != 3 || !strings.Contains(r.Stderr, "handlers/snakes.py:1:1: error: ModuleNotFoundError: No module named 'absent'") {
		t.Errorf("build: %d %s", r.Status, r.Stderr)
	}
	a.Must("reload")
	s.WantBody("/v1/greet/ada", "good morning ada, 1")

	// The schema names a handler that the module does not have.
	a.Write("handlers/snakes.py", strings.ReplaceAll(snakes, "def place", "def places"))
	if r := a.Run("build"); r.Status != 3 || !strings.Contains(r.Stderr, `no handler named "place"`) {
		t.Errorf("build: %d %s", r.Status, r.Stderr)
	}
	a.Write("app.schema", snakesSchema+"module python { args: [\"/app\"], files: \"build/python\" }\n")
	if r := a.Run("build"); r.Status != 3 || !strings.Contains(r.Stderr, "error[E560]") {
		t.Errorf("build: %d %s", r.Status, r.Stderr)
	}
}

// The SDK renews the generators of Python's library. One that the app makes in its start is the same in each request.
func TestAGeneratorThatPythonMakesInItsStartIsReported(t *testing.T) {
	t.Parallel()
	a := snakesApp(t, snakesSchema)
	a.Write("handlers/snakes.py", "import random\nDICE, FIXED, SAFE = random.Random(), random.Random(7), random.SystemRandom()\n"+
		strings.ReplaceAll(snakes, "{count}", "{DICE.random()} {random.Random() is DICE}"))
	built := a.Run("build")
	const warning = "random.Random() gives every request the same numbers: make it in the handler"
	if built.Status != 0 || strings.Count(built.Stderr, warning) != 1 || !strings.Contains(built.Stderr, warning+" (handlers/snakes.py:2)") {
		t.Errorf("build: %d %s", built.Status, built.Stderr)
	}
	s := a.Serve()
	if first, second := s.Get("/v1/greet/ada", "").Body, s.Get("/v1/greet/ada", "").Body; first != second || !strings.HasSuffix(first, " False\"") {
		t.Errorf("%s, then %s", first, second)
	}
	s.Stop()
	if n := strings.Count(s.Stderr.String(), warning); n != 1 {
		t.Errorf("the server warns %d times:\n%s", n, s.Stderr.String())
	}
	a.Write("handlers/snakes.py", strings.ReplaceAll(snakes, "{count}", "{__import__('random').Random().random() < 1}"))
	a.Must("build")
	s = a.Serve()
	s.WantBody("/v1/greet/ada", "hello ada, True")
	s.Stop()
	if strings.Contains(s.Stderr.String(), warning) {
		t.Errorf("a generator of a request is reported:\n%s", s.Stderr.String())
	}
}

func TestPythonIsDevelopedBesideTypeScript(t *testing.T) {
	t.Parallel()
	a := snakesApp(t, snakesSchema+"routes(\"/v1/ts\", auth: none, rateLimit: none) { GET / -> hello }\n")
	a.Write("handlers/hello.ts", harness.HelloSource("one"))
	s := a.Start("dev")
	s.WaitForBody("/v1/greet/ada", "hello ada, 1")
	s.WaitForBody("/v1/ts", "one")
	a.Write("handlers/snakes.py", strings.ReplaceAll(snakes, ", {count}", "; {count}"))
	s.WaitForBody("/v1/greet/ada", "hello ada; 1")
	a.Write("python_packages/words.py", "greeting = \"good morning\"\n")
	s.WaitForBody("/v1/greet/ada", "good morning ada; 1")
	a.Write("handlers/hello.ts", harness.HelloSource("two"))
	s.WaitForBody("/v1/ts", "two")

	// The release before an error keeps serving.
	a.Write("handlers/snakes.py", "def greet(:\n")
	s.WaitForOutput(`handlers/snakes\.py:1:11: error: invalid syntax`)
	a.Write("handlers/snakes.py", "import absent\n")
	s.WaitForOutput(`handlers/snakes\.py:1:1: error: ModuleNotFoundError: No module named 'absent'`)
	s.WantBody("/v1/greet/ada", "good morning ada; 1")
	if err := os.Remove(a.Path("handlers/hello.ts")); err != nil {
		t.Fatal(err)
	}
	a.Write("app.schema", snakesSchema)
	a.Write("handlers/snakes.py", snakes)
	s.WaitForBody("/v1/greet/ada", "good morning ada, 1")
}
