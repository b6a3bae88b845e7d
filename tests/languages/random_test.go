package languages_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/sdk/rust/rusttest"
	"runner.example/tests/harness"
)

// draws are the answers of a handler that draws from its language's random sources, by source.
type draws struct {
	mu      sync.Mutex
	answers int
	values  map[string]map[string]int
}

// add counts an answer of the server.
func (d *draws) add(s *harness.Server, path string) error {
	answer, err := s.Try("GET", path, "")
	if err != nil {
		return err
	}
	var drawn map[string]string
	if err := json.Unmarshal([]byte(answer.Body), &drawn); err != nil || answer.Status != 200 || len(drawn) == 0 {
		return errors.New(answer.Body)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers++
	for source, value := range drawn {
		if d.values[source] == nil {
			d.values[source] = map[string]int{}
		}
		d.values[source][value]++
	}
	return nil
}

// check reports values that were drawn twice. A value has 60 bits or more, so that any two of 1,000
// are equal by chance has a probability below 2^-40. The first key of a map is one of 1,000: of n
// requests that each start at a random place of the map, fewer than a tenth never have different ones.
func (d *draws) check(t *testing.T) {
	t.Helper()
	for source, values := range d.values {
		n := 0
		for value, times := range values {
			n += times
			if times > 1 && !strings.HasPrefix(source, "first key") {
				t.Errorf("%s: %d of %d requests drew %s", source, times, d.answers, value)
			}
		}
		if n != d.answers {
			t.Errorf("%s: it is in %d of %d answers", source, n, d.answers)
		}
		if len(values) < d.answers/10 {
			t.Errorf("%s: %d requests drew %d different values", source, d.answers, len(values))
		}
	}
}

// randomApp builds the handlers that draw, and returns an app with their modules. They are built in their
// own directory, where the compilers find what they have compiled before.
func randomApp(t *testing.T) *harness.App {
	t.Helper()
	rusttest.Setenv(t)
	source := &harness.App{T: t, Dir: harness.RepoFile("tests/languages/testdata/random")}
	if _, messages, err := toolchain.Build(t.Context(), toolchain.Options{Dir: source.Dir, Name: "random"}); err != nil {
		t.Fatalf("%v\n%v", err, messages)
	}
	schema, err := os.ReadFile(source.Path("app.schema"))
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewApp(t, string(schema)+"\nroutes(\"/v1\", auth: none, rateLimit: none) { GET /wasi -> drawWASI }\n", "", "random")
	a.ShareCode()
	modules, err := filepath.Glob(source.Path("build/*.wasm"))
	if err != nil || len(modules) != 6 {
		t.Fatalf("%d modules are built, %v", len(modules), err)
	}
	for _, path := range modules {
		module, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		a.Write(filepath.Join("build", "draw-"+filepath.Base(path)), string(module))
	}
	return a
}

// No two requests draw the same from any random source of any language: one after the other and at
// the same time, and of two starts of the server. The initialization of each module has drawn from the same
// sources.
func TestEveryRandomSourceIsNewInEveryRequest(t *testing.T) {
	a := randomApp(t)
	paths := []string{"ts", "go", "goplain", "rust", "c", "cpp", "as", "as/bare", "wasi"}
	const parallel = 4
	n := 250 // of each kind and start
	if harness.Soak {
		n = 2500
	}
	drawn := map[string]*draws{}
	for _, path := range paths {
		drawn[path] = &draws{values: map[string]map[string]int{}}
	}
	for range 2 {
		s := a.Serve()
		for _, path := range paths {
			for range n {
				if err := drawn[path].add(s, "/v1/"+path); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
			}
			var workers sync.WaitGroup
			for worker := range parallel {
				workers.Go(func() {
					for range (n + worker) / parallel {
						if err := drawn[path].add(s, "/v1/"+path); err != nil {
							t.Errorf("%s: %v", path, err)
							return
						}
					}
				})
			}
			workers.Wait()
		}
		for range 3 { // srand in a request makes the sequence that the seed has in wasi-libc
			s.Matches(200, `\{"rand":"311430560 131117839","random":"1105844101 1165395678","drand48":"0x1\.7d32617ca202p-1"\}`, "GET", "/v1/c/seeded", "", "")
		}
		s.Stop()
	}
	for _, path := range paths {
		t.Run(path, drawn[path].check)
	}
}
