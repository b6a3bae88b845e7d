package operations_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"runner.example/tests/harness"
)

func TestASavedFileIsServed(t *testing.T) {
	s := harness.Develop(t)
	s.WantBody("/v1/hello", "one")
	file := s.App.Path("handlers/hello.ts")
	ways := map[string]func(text string) error{
		"written over": func(text string) error { return os.WriteFile(file, []byte(text), 0o644) },
		"written beside it and renamed": func(text string) error {
			if err := os.WriteFile(file+".tmp", []byte(text), 0o644); err != nil {
				return err
			}
			return os.Rename(file+".tmp", file)
		},
		"moved away and written anew": func(text string) error {
			if err := os.Rename(file, file+"~"); err != nil {
				return err
			}
			return os.WriteFile(file, []byte(text), 0o644)
		},
	}
	for way, save := range ways {
		text := fmt.Sprintf("%s at %d", way, time.Now().UnixNano())
		saved := time.Now()
		if err := save(harness.HelloSource(text)); err != nil {
			t.Fatal(err)
		}
		s.WaitForBody("/v1/hello", text)
		t.Logf("%s: served %d ms after the save", way, time.Since(saved).Milliseconds())
	}
}

// A file is another one when it has another inode: tools may keep the size and the time.
func TestAFileOfTheSameSizeAndTimeIsServed(t *testing.T) {
	s := harness.Develop(t)
	s.WantBody("/v1/hello", "one")
	file := s.App.Path("handlers/hello.ts")
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(t.TempDir(), "hello.ts") // a file in the app would be a change too
	if err := os.WriteFile(next, []byte(harness.HelloSource("two")), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(next, before.ModTime(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(next); err != nil || after.Size() != before.Size() || after.ModTime() != before.ModTime() {
		t.Fatalf("the new file has another size or time: %v", err)
	}
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
	s.WaitForBody("/v1/hello", "two")
}

func TestABrokenSaveIsReportedAndTheOldVersionServed(t *testing.T) {
	s := harness.Develop(t)
	s.App.Write("handlers/hello.ts", strings.Replace(harness.HelloSource("two"), "`);", "`;", 1))
	s.WaitForOutput(`handlers/hello\.ts:2:\d+: error: expected "\)" but found ";"\n +2 \| export const hello`)
	s.WantBody("/v1/hello", "one")
	s.App.Write("handlers/hello.ts", "import { ok } from '@runner/sdk'; throw new TypeError('not today');")
	s.WaitForOutput(`handlers/hello\.ts:1:\d+: error: TypeError: not today`)
	s.WantBody("/v1/hello", "one")
	s.App.Write("handlers/hello.ts", harness.HelloSource("three"))
	s.WaitForBody("/v1/hello", "three")
}

func TestASavedSchemaIsServed(t *testing.T) {
	s := harness.Develop(t)
	more := strings.Replace(harness.DevSchema, "GET /hello -> hello", "GET /hello -> hello\n  GET /more -> hello", 1)
	s.App.Write("app.schema", more)
	s.WaitForBody("/v1/more", "one")
	s.App.Write("app.schema", strings.Replace(more, "-> boom", "=> boom", 1))
	s.WaitForOutput(`app\.schema:\d+:\d+: error\[E\d+\]: (?s:.*)GET /boom`)
	s.WantBody("/v1/more", "one")
	s.App.Write("app.schema", strings.Replace(more, "-> boom", "-> bom", 1))
	s.WaitForOutput(`app\.schema:8:\d+: error\[E419\]: no handler named "bom": export a function of that name from handlers/ \(did you mean "boom"\?\)`)
	s.WantBody("/v1/more", "one")
	s.App.Write("app.schema", harness.DevSchema)
	s.WaitUntil("/v1/more is gone", func() bool { return s.Get("/v1/more", "").Status == 404 })
}

func TestAnAppCanBeRenamedWhileItIsServed(t *testing.T) {
	s := harness.Develop(t)
	s.App.Write("app.schema", strings.Replace(harness.DevSchema, "app little", "app large", 1))
	s.WaitForOutput(`serving 3 routes(?s:.*)serving 3 routes`)
	if _, err := os.Stat(s.App.Path("build/little.wasm")); err == nil {
		t.Error("build/little.wasm was not removed, although its source is gone")
	}
	s.WantBody("/v1/hello", "one")
}

func TestADeletedHandlerIsReportedAndTheOldVersionServed(t *testing.T) {
	s := harness.Develop(t)
	s.App.Write("handlers/other.ts", `export const other = () => { throw new Error("never"); };`)
	s.WaitForOutput(`handlers/other\.ts changed: serving 3 routes`)
	if err := os.Remove(s.App.Path("handlers/hello.ts")); err != nil {
		t.Fatal(err)
	}
	s.WaitForOutput(`error\[E419\]: no handler named "hello": export a function of that name from handlers/`)
	s.WantBody("/v1/hello", "one")
	s.App.Remove("handlers")
	s.WaitForOutput(`no module in build/`)
	s.WantBody("/v1/hello", "one")
	s.App.Write("handlers/again.ts", harness.HelloSource("again"))
	s.WaitForBody("/v1/hello", "again")
}

func TestTheLastOfManySavesIsServed(t *testing.T) {
	s := harness.Develop(t)
	last := ""
	for i := range 60 { // some files are saved while the version before is built or activated
		last = fmt.Sprintf("save %d", i)
		s.App.Write("handlers/hello.ts", harness.HelloSource(last))
		<-time.After(time.Duration(i%7) * 5 * time.Millisecond)
	}
	s.WaitForBody("/v1/hello", last)
}

func TestDevWaitsForTheFirstValidVersion(t *testing.T) {
	a := harness.NewApp(t, strings.Replace(harness.DevSchema, "auth: none", "auth: nine", 1), "[sandbox]\ninstances = 4\n")
	a.Write("handlers/hello.ts", harness.HelloSource("one"))
	s := a.Start("dev")
	s.WaitForOutput(`app\.schema:5:\d+: error\[E\d+\]`)
	if got := s.Get("/v1/hello", ""); got.Status != 503 || got.Problem(t).Code != "not_ready" {
		t.Errorf("with a broken schema: %d %s", got.Status, got.Body)
	}
	s.WaitForOutput(`GET +/v1/hello 503 not_ready`)
	a.Write("app.schema", harness.DevSchema)
	s.WaitForBody("/v1/hello", "one")
}

func TestSavedSettingsTakeEffect(t *testing.T) {
	s := harness.Develop(t)
	s.App.Write("runner.toml", "[front]\nbody = \"many\"\n")
	s.WaitForOutput(`runner\.toml:2:8: error: \[front\] body: "many" is not a size`)
	s.WantBody("/v1/hello", "one")
	s.App.Write("runner.toml", "[front]\ntarget_bytes = \"64b\"\n")
	s.WaitUntil("long targets are refused", func() bool {
		got, err := s.Try("GET", "/v1/hello?"+strings.Repeat("a", 80), "")
		return err == nil && got.Status == 414
	})
	s.WaitForBody("/v1/hello", "one")
}

func TestAModuleCopiedIntoBuildIsServed(t *testing.T) {
	a := harness.NewApp(t, "routes(\"/v1\", auth: none, rateLimit: none) {\n  GET /hello -> hello\n}\n", "")
	s := a.Start("dev")
	s.WaitForOutput("no module in build/")
	for _, text := range []string{"by hand", "by foot"} {
		a.Write("hello.wat", fmt.Sprintf(`(module
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\22%s\22")
  (func (export "hello") (drop (call $send (i32.const 200) (i32.const 0) (i32.const %d)))))`, text, len(text)+2))
		if err := os.MkdirAll(a.Path("build"), 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("wat2wasm", a.Path("hello.wat"), "-o", a.Path("build/hello.wasm")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		s.WaitForBody("/v1/hello", text)
	}
	if err := os.Remove(a.Path("build/hello.wasm")); err != nil {
		t.Fatal(err)
	}
	s.WaitForOutput("no module in build/(?s:.*)no module in build/")
	s.WantBody("/v1/hello", "by foot")
}

func TestEachRequestIsShownWithItsLogLines(t *testing.T) {
	s := harness.Develop(t)
	s.WaitForOutput(`GET +http://\S+/v1/secret +hello`) // the end of what it shows at the start
	got := s.Get("/v1/boom/thunder", "")
	if got.Status != 500 || strings.Contains(got.Body, "thunder") || strings.Contains(got.Body, "hello.ts") {
		t.Errorf("the answer is %d %s, want a 500 without details", got.Status, got.Body)
	}
	id := regexp.QuoteMeta(got.Header.Get("X-Request-Id"))
	s.WaitForOutput(`\d\d:\d\d:\d\d GET +/v1/boom/thunder 500 handler_failed \S+ ` + id + `\n` +
		`.*│ warn before it thunder\n` +
		`.*│ handlers/hello\.ts:5:\d+: error: exception: Error: it was thunder\n` +
		`.*│ +5 \|   throw new Error\(.*\n` +
		`.*│ +\| +\^\n` +
		`.*│     at boom \(handlers/hello\.ts:5:\d+\)\n`)
	secret := "rnk_" + strings.Repeat("a1B2c3", 6)
	if got := s.Get("/v1/boom/"+secret, ""); got.Status != 500 {
		t.Errorf("it answers %d", got.Status)
	}
	if got := s.Get("/v1/secret", ""); got.Status != 401 {
		t.Errorf("without a key: %d", got.Status)
	}
	s.WaitForOutput(`GET +/v1/secret 401 missing_credentials`)
	if log := s.Stderr.String(); strings.Contains(log, secret) || strings.Contains(log, "\x1b") {
		t.Errorf("a token, or a colour without a terminal:\n%s", log)
	}
	if got := s.Get("/v1/secret", s.App.Token("say")); got.Status != 200 {
		t.Errorf("with a key that was created meanwhile: %d", got.Status)
	}
}

func TestLogLinesOfASlowHandlerAreShownBeforeItEnds(t *testing.T) {
	s := harness.Develop(t)
	s.App.Write("handlers/nap.ts", `import { ok } from "@runner/sdk";
export async function nap() {
  console.info("good night");
  await new Promise((wake) => setTimeout(wake, 4000));
  console.info("good morning");
  return ok("rested");
}
`)
	s.App.Write("app.schema", strings.Replace(harness.DevSchema, "GET /hello -> hello", "GET /hello -> hello\n  GET /nap/:name -> nap", 1))
	s.WaitUntil("/v1/nap is there", func() bool {
		return s.Get("/v1/nap", "").Status == 404 && strings.Contains(s.Stderr.String(), "/v1/nap/:name ")
	})
	answered := make(chan harness.Answer, 1)
	go func() {
		got, _ := s.Try("GET", "/v1/nap/ada", "")
		answered <- got
	}()
	if got := <-answered; got.Status != 200 || got.Body != `"rested"` {
		t.Errorf("it answers %d %s", got.Status, got.Body)
	}
	s.WaitForOutput(`… +/v1/nap/:name still running [0-9a-z]{26}\n.*│ good night\n(?s:.*)GET +/v1/nap/ada 200 .*\n.*│ good morning\n`)
}

func TestColorsAreUsedOnlyOnTerminals(t *testing.T) {
	a := harness.NewApp(t, harness.DevSchema, "")
	a.Write("handlers/hello.ts", "export const hello = 1 +;")
	for _, row := range []struct {
		env  string
		want bool
	}{{"NO_COLOR=", true}, {"NO_COLOR=1", false}} {
		ours, theirs := harness.Terminal(t)
		cmd := exec.Command(harness.Binary, "dev", "--listen", "127.0.0.1:0")
		cmd.Dir, cmd.Env = a.Dir, append(os.Environ(), row.env)
		cmd.Stdout, cmd.Stderr = theirs, theirs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stuck := time.AfterFunc(harness.BuildTimeout, func() { _ = cmd.Process.Kill() })
		var shown strings.Builder
		lines := bufio.NewScanner(ours)
		for lines.Scan() && !strings.Contains(lines.Text(), "cannot be built") {
			fmt.Fprintln(&shown, lines.Text())
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ended with %v", err)
		}
		stuck.Stop()
		if colored := strings.Contains(shown.String(), "\x1b[1;31merror"); colored != row.want {
			t.Errorf("with %s colours are %t:\n%q", row.env, colored, shown.String())
		}
	}
}

func TestDevNamesTheProcessThatHasThePortOrTheData(t *testing.T) {
	s := harness.Develop(t)
	if got := s.App.Run("dev", "--listen", "127.0.0.1:0"); got.Status != 1 || !strings.Contains(got.Stderr, "is in use by the server with pid "+fmt.Sprint(s.Cmd.Process.Pid)) {
		t.Errorf("a second one on the same data: status %d\n%s", got.Status, got.Stderr)
	}
	if got := s.App.Run("dev", "--listen", s.Addr, "--data", "elsewhere"); got.Status != 1 || !strings.Contains(got.Stderr, "listen on "+s.Addr+": the port is in use") {
		t.Errorf("a second one on the same port: status %d\n%s", got.Status, got.Stderr)
	}
	empty := &harness.App{T: t, Dir: t.TempDir()}
	if got := empty.Run("dev"); got.Status != 3 || !strings.Contains(got.Stderr, "schema") {
		t.Errorf("in a directory without an app: status %d\n%s", got.Status, got.Stderr)
	}
	if left, err := os.ReadDir(empty.Dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v there, %v", left, err)
	}
	s.WantBody("/v1/hello", "one")
}

func TestAnInterruptEndsDevCleanly(t *testing.T) {
	s := harness.Develop(t)
	if err := s.Cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Ended:
	case <-time.After(harness.Timeout):
		t.Fatalf("it runs on\n%s", s.Stderr.String())
	}
	if s.Err != nil {
		t.Errorf("it ended with %v\n%s", s.Err, s.Stderr.String())
	}
	if _, err := os.Stat(s.App.Path("data/runner.sock")); err == nil {
		t.Error("the socket is still there")
	}
}

func TestJSONOutputHasOneObjectPerLine(t *testing.T) {
	a := harness.NewApp(t, harness.DevSchema, "")
	a.Write("handlers/hello.ts", harness.HelloSource("one"))
	cmd := exec.Command(harness.Binary, "dev", "--json", "--listen", "127.0.0.1:0")
	cmd.Dir = a.Dir
	var stderr harness.LockedBuffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(harness.BuildTimeout, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	type event struct {
		Time, Event, URL, Module, Message string
		Seconds                           float64
		List                              []struct{ File, Message string }
		Request                           *struct {
			Method, Path, Code, RequestID string
			Status                        int
			Log                           []struct{ Level, Text string }
		}
	}
	var url string
	seen := map[string]int{}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Time == "" || e.Event == "" {
			t.Errorf("%q is not an event: %v", lines.Text(), err)
		}
		seen[e.Event]++
		switch e.Event {
		case "listening":
			url = e.URL
		case "serving":
			s := &harness.Server{T: t, App: a, URL: url}
			s.Get("/v1/boom/x", "")
		case "request":
			if r := e.Request; r.Method != "GET" || r.Path != "/v1/boom/x" || r.Status != 500 || r.Code != "handler_failed" ||
				len(r.Log) < 2 || r.Log[0].Level != "warn" || r.Log[0].Text != "before it x" || len(r.RequestID) != 26 {
				t.Errorf("the event of a request is %s", lines.Text())
			}
			a.Write("handlers/hello.ts", "nonsense(")
		case "mistakes":
			if len(e.List) != 1 || e.List[0].File != "handlers/hello.ts" || e.Message == "" {
				t.Errorf("the event of the errors is %s", lines.Text())
			}
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	if err := cmd.Wait(); err != nil || stderr.String() != "" {
		t.Errorf("it ended with %v, and printed on stderr:\n%s", err, stderr.String())
	}
	for _, kind := range []string{"listening", "built", "serving", "request", "mistakes"} {
		if seen[kind] != 1 {
			t.Errorf("%d events are %q, want 1", seen[kind], kind)
		}
	}
}

func TestOnlyTheChangedDirectoryIsBuilt(t *testing.T) {
	a := harness.NewApp(t, harness.DevSchema+"routes(\"/go\", auth: none, rateLimit: none) {\n  GET /hello -> goHello\n}\n", "")
	a.Write("handlers/hello.ts", harness.HelloSource("one"))
	sdk := harness.RepoFile("sdk/go")
	source := "package main\n\nimport \"runner.example/sdk/go\"\n\n//go:wasmexport goHello\nfunc goHello() {\n\trunner.Handle(func(*runner.Context, *runner.Request) (runner.Response, error) { return runner.OK(\"go\"), nil })\n}\n\nfunc main() {}\n"
	a.Write("handlers/gopher/go.mod", "module gopher\n\ngo 1.24\n\nrequire runner.example/sdk/go v0.0.0\n\nreplace runner.example/sdk/go => "+strconv.Quote(sdk)+"\n")
	a.Write("handlers/gopher/main.go", source)
	s := a.Start("dev")
	s.WantBody("/go/hello", "go")
	s.WantBody("/v1/hello", "one")
	built := func(module string) int { return strings.Count(s.Stderr.String(), "built build/"+module+" in") }

	a.Write("handlers/hello.ts", harness.HelloSource("two"))
	s.WaitForBody("/v1/hello", "two")
	a.Write("handlers/gopher/main.go", strings.Replace(source, `OK("go")`, `OK("going")`, 1))
	s.WaitForBody("/go/hello", "going")
	if built("little.wasm") != 2 || built("gopher.wasm") != 2 {
		t.Errorf("the modules were built %d and %d times, want twice each\n%s", built("little.wasm"), built("gopher.wasm"), s.Stderr.String())
	}
	a.Write("handlers/gopher/main.go", strings.Replace(source, `OK("go")`, `OK(gone)`, 1))
	s.WaitForOutput(`handlers/gopher/main\.go:7:\d+: error: undefined: gone`)
	s.WantBody("/go/hello", "going")
	a.Remove("handlers/gopher")
	s.WaitForOutput(`removed build/gopher\.wasm`)
	s.WantBody("/go/hello", "going")
	a.Write("app.schema", harness.DevSchema)
	s.WaitUntil("/go/hello is gone", func() bool { return s.Get("/go/hello", "").Status == 404 })
	s.WantBody("/v1/hello", "two")
}

func TestRemovedOutputIsBuiltAgain(t *testing.T) {
	s := harness.Develop(t)
	for _, directory := range []string{"build", "types"} { // renamed at once, before either is built again
		if err := os.Rename(s.App.Path(directory), filepath.Join(t.TempDir(), directory)); err != nil {
			t.Fatal(err)
		}
	}
	s.WaitUntil("build and types are there again", func() bool {
		_, module := os.Stat(s.App.Path("build/little.wasm"))
		_, types := os.Stat(s.App.Path("types/schema.d.ts"))
		return module == nil && types == nil
	})
	s.App.Write("app.schema", strings.Replace(harness.DevSchema, "GET /hello", "GET /more -> hello\n  GET /hello", 1))
	s.WaitForBody("/v1/more", "one")
}

func TestRemovedTypesOfPythonAreWrittenAgain(t *testing.T) {
	s := harness.Develop(t)
	types := func() bool {
		_, err := os.Stat(s.App.Path("types/runner/schema.pyi"))
		return err == nil
	}
	s.App.Write("pyrightconfig.json", "{}")
	s.App.Write("app.schema", strings.Replace(harness.DevSchema, "GET /hello", "GET /more -> hello\n  GET /hello", 1))
	s.WaitForBody("/v1/more", "one")
	if !types() {
		t.Fatal("a build with a configuration of pyright has not written its types")
	}
	if err := os.Remove(s.App.Path("types/runner/schema.pyi")); err != nil {
		t.Fatal(err)
	}
	s.WaitUntil("the types are there again", types)
}

func TestAModuleOfAnEarlierRunIsRemovedWithItsSource(t *testing.T) {
	a := harness.NewApp(t, harness.DevSchema, "")
	a.Write("handlers/hello.ts", harness.HelloSource("one"))
	a.Must("build")
	a.Write("app.schema", strings.Replace(harness.DevSchema, "app little", "app large", 1))
	s := a.Start("dev")
	s.WaitForBody("/v1/hello", "one")
	if _, err := os.Stat(a.Path("build/little.wasm")); err == nil {
		t.Error("build/little.wasm was not removed, although its source is gone")
	}
}

func TestDevNamesTheTenantInTheCommandsForCredentials(t *testing.T) {
	a := harness.NewApp(t, `app teams
auth { session cookie { idle: 30m } tenant: Team }
entity Team { id: id }
entity Note { id: id team: Team @tenant }
apiKeys { scopes: { s: @system("s") { @grant read on Note }, t: @system("t") { @grant read on Team } } }
routes("/v1", rateLimit: none) { GET /notes -> notes (auth: anyOf(apiKey(s, t), session)) }
`, "")
	a.Write("handlers/notes.ts", "export const notes = () => 1;\n")
	s := a.Start("dev")
	s.WaitForOutput(`hint: a key: runner api-keys create --scope s --name dev --tenant <tenant>`)
	s.WaitForOutput(`hint: a key: runner api-keys create --scope t --name dev\s`)
	s.WaitForOutput(`hint: a session: runner sessions create --user me --tenant <tenant>`)
}

func TestDevShowsAMissingIndex(t *testing.T) {
	a := harness.NewApp(t, `app sales
entity Sale { id: id total: int }
apiKeys { scopes: { s: @system("s") { @grant read on Sale } } }
routes("/v1", auth: apiKey(s), rateLimit: none) { GET /sales -> listSales }
`, "")
	a.Write("handlers/sales.ts", `import { ok, query } from "@runner/sdk";
export const listSales = () => ok(query("Sale").orderBy("total", "desc").limit(2));
`)
	var rows strings.Builder
	for i := range 1100 {
		fmt.Fprintf(&rows, "{\"total\":%d}\n", i)
	}
	a.Write("sales.jsonl", rows.String())
	a.Must("data", "import", "Sale", "sales.jsonl")
	token := a.Token("s")
	s := a.Start("dev")
	s.Want(200, nil, "GET", "/v1/sales", "", "X-API-Key: "+token)
	s.WaitForOutput(`warning: index missing; rows are scanned: a query scanned 1100 rows of Sale; add @@index\(total desc\) to it`)
}
