package operations_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// Packages of Go that draw when their module is initialized: rs/xid, MongoDB's bson and oklog/ulid.
const drawingSchema = `routes("/", auth: none, rateLimit: none) {
  GET /ids -> ids
}
`

const freshBlock = "module drawing { fresh: true }\n"

// drawn are the chains of functions of testdata/handlers/drawing that draw before the first request, and
// what each draws.
var drawn = []string{
	"random bytes, drawn before the first request by github.com/rs/xid.init → github.com/rs/xid.randInt → crypto/rand.Read",
	"random bytes, drawn before the first request by go.mongodb.org/mongo-driver/v2/bson.init → go.mongodb.org/mongo-driver/v2/bson.processUniqueBytes → io.ReadAtLeast → crypto/rand.Read",
	"random bytes, drawn before the first request by go.mongodb.org/mongo-driver/v2/bson.init → go.mongodb.org/mongo-driver/v2/bson.readRandomUint32 → io.ReadAtLeast → crypto/rand.Read",
	"random number, drawn before the first request by main.init → hash/maphash.MakeSeed",
	"random number, drawn before the first request by main.init → math/rand/v2.Int",
	"random number, drawn before the first request by main.init → math/rand/v2.Uint64",
	"random sequence, seeded from the clock before the first request by github.com/oklog/ulid/v2.init → math/rand.(*rngSource).Seed",
	"random sequence, seeded from the clock before the first request by main.init → math/rand.(*rngSource).Seed",
	"random sequence, seeded from the clock before the first request by main.init → math/rand/v2.NewPCG",
}

// checkDrawn compares the warnings W554 in an output with drawn.
func checkDrawn(t *testing.T, command, output string, want []string) {
	t.Helper()
	var found []string
	for line := range strings.Lines(output) {
		const begin = "build/drawing.wasm: warning[W554]: every request gets the same "
		if text, ok := strings.CutPrefix(line, begin); ok {
			chain, rest, _ := strings.Cut(text, " (")
			found = append(found, chain)
			if rest = strings.TrimSpace(rest); rest != "handler ids): write `module drawing { fresh: true }` in the schema, or draw in the handler or in runner_reseed" {
				t.Errorf("%s: the warning goes on with %q", command, rest)
			}
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, want) {
		t.Errorf("%s warns of\n%s\nwant\n%s", command, strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
}

// drawingApp is an app with the handlers of testdata/handlers/drawing as sources.
func drawingApp(t *testing.T) *harness.App {
	t.Helper()
	a := harness.NewApp(t, drawingSchema, "")
	from := harness.Testdata("handlers/drawing")
	for _, name := range []string{"main.go", "go.mod", "go.sum"} {
		text := harness.MustRead(t, filepath.Join(from, name))
		a.Write("handlers/drawing/"+name, strings.ReplaceAll(text, "../../../../sdk/go", harness.RepoFile("sdk/go")))
	}
	return a
}

func TestWhatAPackageDrawsBeforeTheFirstRequestIsReportedAndAFreshModuleDrawsInEach(t *testing.T) {
	a := drawingApp(t)
	built := a.Run("build")
	checkDrawn(t, "build", built.Stderr, drawn)
	e := startEdge(t)
	deployed := e.run(a, "deploy", "--yes")
	checkDrawn(t, "deploy", deployed.Stderr, drawn)
	requests := 60
	if harness.Soak {
		requests = 1000
	}
	repeats := func(s *harness.Server) (least int) {
		t.Helper()
		seen := map[string]bool{}
		for range requests {
			var ids map[string]string
			s.Want(200, &ids, "GET", "/ids", "")
			for kind, id := range ids {
				if kind != "ulid" { // its time alone makes it another one
					seen[id] = true
				}
			}
		}
		return 2*requests - len(seen)
	}
	if repeats(e.Server) < requests/2 {
		t.Error("without fresh, the ids of two requests differ: the test tests nothing")
	}

	a.Write("fresh.schema", freshBlock)
	again := e.run(a, "deploy", "--yes")
	if !strings.Contains(again.Stdout, "~ build/drawing.wasm  fresh: not set → yes\n") {
		t.Errorf("the plan is %s%s", again.Stdout, again.Stderr)
	}
	checkDrawn(t, "deploy of a fresh module", again.Stderr, nil)
	if n := repeats(e.Server); n != 0 {
		t.Errorf("with fresh, %d of %d ids repeat", n, 2*requests)
	}
	// The block is part of the release.
	if r := e.run(a, "rollback", "--yes"); r.Status != 0 {
		t.Fatalf("rollback: %s", r.Stderr)
	}
	if repeats(e.Server) < requests/2 {
		t.Error("after a rollback the module is fresh still")
	}
	if r := e.run(a, "rollback", "--yes"); r.Status != 0 {
		t.Fatalf("rollback: %s", r.Stderr)
	}
	e.Stop()
	e.start()
	if n := repeats(e.Server); n != 0 {
		t.Errorf("after a rollback and a restart, %d of %d ids repeat", n, 2*requests)
	}
}

// A module without names is reported too, and says so.
func TestCheckReportsWhatAModuleDrawsBeforeTheFirstRequest(t *testing.T) {
	a := harness.NewApp(t, "routes(\"/\", auth: none, rateLimit: none) {\n  GET / -> draw\n}\n", "", "drawing")
	var printed struct {
		Findings []struct{ Code, Severity, File, Message string }
	}
	if err := json.Unmarshal([]byte(a.Must("check", "--modules", "--json")), &printed); err != nil || len(printed.Findings) != 1 {
		t.Fatalf("%v %+v", err, printed)
	}
	found := printed.Findings
	const want = "every request gets the same random bytes, drawn before the first request by _initialize (handler draw) (the module has no function names: " +
		"build it without stripping to see which package drew): write `module drawing { fresh: true }` in the schema, or draw in the handler or in runner_reseed"
	if d := found[0]; d.Code != "W554" || d.Severity != "warning" || d.File != "build/drawing.wasm" || d.Message != want {
		t.Errorf("%+v", d)
	}
	if r := a.Run("check", "--modules", "--strict"); r.Status != 3 {
		t.Errorf("check --modules --strict exits with %d", r.Status)
	}
	s := a.Serve()
	if one, two := s.Do("GET", "/", ""), s.Do("GET", "/", ""); one.Body != two.Body {
		t.Error("two requests of a restored module have other bytes")
	}
	a.Write("fresh.schema", freshBlock)
	a.Must("reload")
	if one, two := s.Do("GET", "/", ""), s.Do("GET", "/", ""); one.Body == two.Body {
		t.Error("two requests of a fresh module have the same bytes")
	}
	if out := a.Must("check", "--modules"); strings.Contains(out, "W554") {
		t.Errorf("a fresh module is reported: %s", out)
	}
}

func TestAModuleBlockNamesAModuleThatHasAnInitialization(t *testing.T) {
	a := harness.NewApp(t, "routes(\"/\", auth: none, rateLimit: none) {\n  GET /a -> a\n}\n", "")
	a.Write("handlers/a.ts", "export const a = () => 1;\n")
	for _, row := range []struct{ block, code, message string }{
		{"module pags { fresh: true }\n", "E552", "build/ has no module pags.wasm"},
		{"module pages { fresh: true }\n", "E553", "module pages runs no code before a request"},
	} {
		a.Write("module.schema", "app pages\n"+row.block)
		r := a.Run("build")
		if row.code == "E552" && (r.Status != 3 || !strings.Contains(r.Stderr, row.message)) {
			t.Errorf("build: %d %s", r.Status, r.Stderr)
		}
		want := fmt.Sprintf("module.schema:2:8: error[%s]: %s", row.code, row.message)
		if r := a.Run("check", "--modules"); r.Status != 3 || !strings.Contains(r.Stdout, want) {
			t.Errorf("check --modules: %d %s, want %s", r.Status, r.Stdout, want)
		}
		if r := a.Run("serve"); r.Status != 3 || !strings.Contains(r.Stderr, want) {
			t.Errorf("serve: %d %s, want %s", r.Status, r.Stderr, want)
		}
	}
}
