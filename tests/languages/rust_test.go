package languages_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runner.example/develop/toolchain"
	"runner.example/sdk/rust/rusttest"
	"runner.example/tests/harness"
)

// standardRust builds the crate that uses the standard library and other crates, for WASI, and
// serves it.
func standardRust(t *testing.T) *harness.Server {
	t.Helper()
	rusttest.Setenv(t)
	source := &harness.App{T: t, Dir: harness.RepoFile("tests/languages/testdata/rust")}
	if _, messages, err := toolchain.Build(t.Context(), toolchain.Options{Dir: source.Dir, Name: "standard"}); err != nil || messages != nil {
		t.Fatalf("%v\n%v", err, messages)
	}
	schema, err := os.ReadFile(filepath.Join(source.Dir, "app.schema"))
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(filepath.Join(source.Dir, "build/standard.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewApp(t, string(schema), "")
	a.Write("build/standard.wasm", string(module))
	return a.Serve()
}

func TestTheStandardLibraryOfRustAndItsCratesWork(t *testing.T) {
	s := standardRust(t)
	t.Run("println", func(t *testing.T) {
		s.WantBody("/v1/prints", "printed")
		s.WaitForOutput(`"level":"INFO","msg":"a line of println","source":"guest","requestId":"[^"]+","route":"/v1/prints"`)
		s.WaitForOutput(`"level":"WARN","msg":"a line of eprintln","source":"guest"`)
		s.WaitForOutput(`"level":"INFO","msg":"two parts of one line","source":"guest"`)
	})
	t.Run("time", func(t *testing.T) {
		var times map[string]int64 // ms after the clock of the host
		s.Want(200, &times, "GET", "/v1/tells", "")
		if len(times) != 4 || times["offset of Local"] != 0 {
			t.Errorf("the times are %v", times)
		}
		for clock, after := range times {
			if after < 0 || after > time.Minute.Milliseconds() {
				t.Errorf("%s is %d ms after the time of the host", clock, after)
			}
		}
	})
	t.Run("sleep", func(t *testing.T) {
		began := time.Now()
		s.Matches(200, "true", "GET", "/v1/sleeps?ms=40", "", "")
		if took := time.Since(began); took < 39*time.Millisecond {
			t.Errorf("a sleep of 40 ms took %s", took)
		}
	})
	t.Run("what is not there", func(t *testing.T) {
		var failed map[string]bool
		s.Want(200, &failed, "GET", "/v1/lacks", "")
		if len(failed) != 11 {
			t.Errorf("the answer is %v", failed)
		}
		for what, ok := range failed {
			if !ok {
				t.Errorf("%s: the guest got something of the server", what)
			}
		}
	})
	fails := func(path, pattern string) {
		t.Helper()
		if got := s.Do("GET", path, ""); got.Status != 500 || got.Problem(t).Code != "handler_failed" {
			t.Errorf("%s answers %d %s", path, got.Status, got.Body)
		}
		s.WaitForOutput(pattern)
	}
	t.Run("exit", func(t *testing.T) {
		fails("/v1/exits?status=3", `"msg":"handler failed".*"handler":"exits".*exited with status 3`)
		s.WaitForOutput(`"level":"INFO","msg":"before the exit","source":"guest"`)
		fails("/v1/exits?status=0", `"msg":"handler failed".*"handler":"exits".*exited with status 0`)
	})
	t.Run("panic", func(t *testing.T) {
		fails("/v1/panics", `there is an argument`)
	})
	t.Run("stack overflow", func(t *testing.T) {
		for range 3 { // the data is intact
			s.Matches(200, "3584", "GET", "/v1/sums", "", "")
			fails("/v1/recurses", `"msg":"handler failed".*"handler":"recurses"`)
		}
	})
}

// The values are drawn in each request. A generator that was seeded before the first one is reported.
func TestRandomCratesOfRustDrawInEachRequest(t *testing.T) {
	s := standardRust(t)
	drawn := draws{values: map[string]map[string]int{}}
	for range 200 {
		if err := drawn.add(s, "/v1/draws"); err != nil {
			t.Fatal(err)
		}
	}
	drawn.check(t)
	if len(drawn.values) != 7 {
		t.Errorf("the sources are %v", drawn.values)
	}
}

// The generator of a thread is part of the image if the handler was warmed.
func TestAGeneratorOfRustThatWasWarmedIsReported(t *testing.T) {
	rusttest.Setenv(t)
	const dir = "tests/languages/testdata/rust-warmed"
	source := &harness.App{T: t, Dir: harness.RepoFile(dir)}
	built := source.Run("build")
	if built.Status != 0 {
		t.Fatal(built.Stderr)
	}
	reported := strings.Contains(built.Stderr, "[W554]: every request gets the same random bytes, drawn before the first request by ") &&
		strings.Contains(built.Stderr, "write `module warmed { fresh: true }` in the schema")
	if !reported || strings.Contains(built.Stderr, "RandomState") {
		t.Errorf("the build reports %s", built.Stderr)
	}
}
