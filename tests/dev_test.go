package tests

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

	"golang.org/x/sys/unix"
)

const devSchema = `app little

apiKeys { scopes: { say: @system("little.say") {} } }

routes("/v1", auth: none, rateLimit: none) {
  GET /hello -> hello
  GET /boom/:what -> boom
  GET /secret -> hello (auth: apiKey(say))
}
`

// helloText is a file of handlers whose hello says text.
func helloText(text string) string {
	return `import { ok, type RouteRequest } from "@runner/sdk";
export const hello = () => ok(` + "`" + text + "`" + `);
export function boom(req: RouteRequest) {
  console.warn("before it " + req.params.what);
  throw new Error("it was " + req.params.what);
}
`
}

// develop starts `runner dev` on a little app of TypeScript that says "one".
func develop(t *testing.T) *server {
	t.Helper()
	a := newApp(t, devSchema, "")
	a.write("handlers/hello.ts", helloText("one"))
	return a.start("dev")
}

// until waits until something holds, and fails with what the terminal shows.
func (s *server) until(what string, holds func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patient); !holds(); <-time.After(5 * time.Millisecond) {
		select {
		case <-s.ended:
			s.t.Fatalf("%s: the process has ended: %v\n%s", what, s.err, s.stderr.String())
		default:
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s: not within %s\n%s", what, patient, ofTheTest.ReplaceAllString(s.stderr.String(), ""))
		}
	}
}

// ofTheTest are what the terminal shows of a test that waits.
var ofTheTest = regexp.MustCompile(`(?m)^.* GET .* (200|404 route_not_found|503 not_ready) .*\n(.*│ .*\n)?`)

// shows waits until the terminal shows a pattern.
func (s *server) shows(pattern string) {
	s.t.Helper()
	form := regexp.MustCompile(pattern)
	s.until("shown: "+pattern, func() bool { return form.MatchString(s.stderr.String()) })
}

// says waits until a path answers with a text.
func (s *server) says(path, want string) {
	s.t.Helper()
	s.until(fmt.Sprintf("%s says %q", path, want), func() bool {
		got, err := s.try("GET", path, "")
		return err == nil && got.status == 200 && got.body == `"`+want+`"`
	})
}

// still checks that a path answers with a text now.
func (s *server) still(path, want string) {
	s.t.Helper()
	if got := s.get(path, ""); got.status != 200 || got.body != `"`+want+`"` {
		s.t.Errorf("%s answers %d %s, want %q", path, got.status, got.body, want)
	}
}

func TestWhatIsSavedIsServed(t *testing.T) {
	s := develop(t)
	s.still("/v1/hello", "one")
	file := s.app.path("handlers/hello.ts")
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
		if err := save(helloText(text)); err != nil {
			t.Fatal(err)
		}
		s.says("/v1/hello", text)
		t.Logf("%s: served %d ms after the save", way, time.Since(saved).Milliseconds())
	}
}

func TestABrokenSaveIsToldAndWhatWasServedStays(t *testing.T) {
	s := develop(t)
	s.app.write("handlers/hello.ts", strings.Replace(helloText("two"), "`);", "`;", 1))
	s.shows(`handlers/hello\.ts:2:\d+: error: expected "\)" but found ";"\n +2 \| export const hello`)
	s.still("/v1/hello", "one")
	s.app.write("handlers/hello.ts", "import { ok } from '@runner/sdk'; throw new TypeError('not today');")
	s.shows(`handlers/hello\.ts:1:\d+: error: TypeError: not today`)
	s.still("/v1/hello", "one")
	s.app.write("handlers/hello.ts", helloText("three"))
	s.says("/v1/hello", "three")
}

func TestASavedSchemaIsServed(t *testing.T) {
	s := develop(t)
	more := strings.Replace(devSchema, "GET /hello -> hello", "GET /hello -> hello\n  GET /more -> hello", 1)
	s.app.write("app.schema", more)
	s.says("/v1/more", "one")
	s.app.write("app.schema", strings.Replace(more, "-> boom", "=> boom", 1))
	s.shows(`app\.schema:\d+:\d+: error\[E\d+\]: (?s:.*)GET /boom`)
	s.still("/v1/more", "one")
	s.app.write("app.schema", strings.Replace(more, "-> boom", "-> bom", 1))
	s.shows(`app\.schema:8:\d+: error\[E419\]: handler "bom" is exported by no loaded module \(did you mean "boom"\?\)`)
	s.still("/v1/more", "one")
	s.app.write("app.schema", devSchema)
	s.until("/v1/more is gone", func() bool { return s.get("/v1/more", "").status == 404 })
}

func TestAnAppCanBeRenamedWhileItIsServed(t *testing.T) {
	s := develop(t)
	s.app.write("app.schema", strings.Replace(devSchema, "app little", "app large", 1))
	s.shows(`serving 3 routes(?s:.*)serving 3 routes`)
	if _, err := os.Stat(s.app.path("build/little.wasm")); err == nil {
		t.Error("build/little.wasm is still there: nothing is made of it any more")
	}
	s.still("/v1/hello", "one")
}

func TestADeletedHandlerIsToldAndWhatWasServedStays(t *testing.T) {
	s := develop(t)
	s.app.write("handlers/other.ts", `export const other = () => { throw new Error("never"); };`)
	s.shows(`handlers/other\.ts changed: serving 3 routes`)
	if err := os.Remove(s.app.path("handlers/hello.ts")); err != nil {
		t.Fatal(err)
	}
	s.shows(`error\[E419\]: handler "hello" is exported by no loaded module`)
	s.still("/v1/hello", "one")
	if err := os.RemoveAll(s.app.path("handlers")); err != nil {
		t.Fatal(err)
	}
	s.shows(`no module in build/`)
	s.still("/v1/hello", "one")
	s.app.write("handlers/again.ts", helloText("again"))
	s.says("/v1/hello", "again")
}

func TestTheLastOfManySavesIsServed(t *testing.T) {
	s := develop(t)
	last := ""
	for i := range 60 { // some come while the one before is built or swapped in
		last = fmt.Sprintf("save %d", i)
		s.app.write("handlers/hello.ts", helloText(last))
		<-time.After(time.Duration(i%7) * 5 * time.Millisecond)
	}
	s.says("/v1/hello", last)
}

func TestAStartWaitsForTheFirstVersionThatCanBeServed(t *testing.T) {
	a := newApp(t, strings.Replace(devSchema, "auth: none", "auth: nine", 1), "[sandbox]\ninstances = 4\n")
	a.write("handlers/hello.ts", helloText("one"))
	s := a.start("dev")
	s.shows(`app\.schema:5:\d+: error\[E\d+\]`)
	if got := s.get("/v1/hello", ""); got.status != 503 || got.problem(t).Code != "not_ready" {
		t.Errorf("with a broken schema: %d %s", got.status, got.body)
	}
	s.shows(`GET +/v1/hello 503 not_ready`)
	a.write("app.schema", devSchema)
	s.says("/v1/hello", "one")
}

func TestSavedSettingsTakeEffect(t *testing.T) {
	s := develop(t)
	s.app.write("runner.toml", "[front]\nbody = \"many\"\n")
	s.shows(`runner\.toml:2:8: error: \[front\] body: "many" is not a size`)
	s.still("/v1/hello", "one")
	s.app.write("runner.toml", "[front]\ntarget_bytes = \"64b\"\n")
	s.until("long targets are refused", func() bool {
		got, err := s.try("GET", "/v1/hello?"+strings.Repeat("a", 80), "")
		return err == nil && got.status == 414
	})
	s.says("/v1/hello", "one")
}

func TestAModuleThatIsPutThereByHandIsServed(t *testing.T) {
	a := newApp(t, "routes(\"/v1\", auth: none, rateLimit: none) {\n  GET /hello -> hello\n}\n", "")
	s := a.start("dev")
	s.shows("no module in build/")
	for _, text := range []string{"by hand", "by foot"} {
		a.write("hello.wat", fmt.Sprintf(`(module
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\22%s\22")
  (func (export "hello") (drop (call $send (i32.const 200) (i32.const 0) (i32.const %d)))))`, text, len(text)+2))
		if err := os.MkdirAll(a.path("build"), 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("wat2wasm", a.path("hello.wat"), "-o", a.path("build/hello.wasm")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		s.says("/v1/hello", text)
	}
	if err := os.Remove(a.path("build/hello.wasm")); err != nil {
		t.Fatal(err)
	}
	s.shows("no module in build/(?s:.*)no module in build/")
	s.still("/v1/hello", "by foot")
}

func TestEachRequestIsShownWithWhatItsHandlerSaid(t *testing.T) {
	s := develop(t)
	got := s.get("/v1/boom/thunder", "")
	if got.status != 500 || strings.Contains(got.body, "thunder") || strings.Contains(got.body, "hello.ts") {
		t.Errorf("the answer is %d %s, want a 500 that tells nothing", got.status, got.body)
	}
	id := regexp.QuoteMeta(got.header.Get("X-Request-Id"))
	s.shows(`\d\d:\d\d:\d\d GET +/v1/boom/thunder 500 handler_failed \S+ ` + id + `\n` +
		`.*│ warn before it thunder\n` +
		`.*│ handlers/hello\.ts:5:\d+: error: handler boom: Error: it was thunder at boom \(handlers/hello\.ts:5:\d+\)\n` +
		`.*│ +5 \|   throw new Error\(.*\n` +
		`.*│ +\| +\^\n`)
	secret := "rnk_" + strings.Repeat("a1B2c3", 6)
	if got := s.get("/v1/boom/"+secret, ""); got.status != 500 {
		t.Errorf("it answers %d", got.status)
	}
	if got := s.get("/v1/secret", ""); got.status != 401 {
		t.Errorf("without a key: %d", got.status)
	}
	s.shows(`GET +/v1/secret 401 missing_credentials`)
	if log := s.stderr.String(); strings.Contains(log, secret) || strings.Contains(log, "\x1b") {
		t.Errorf("a token, or a colour without a terminal:\n%s", log)
	}
	if got := s.get("/v1/secret", s.app.token("say")); got.status != 200 {
		t.Errorf("with a key that was made beside it: %d", got.status)
	}
}

func TestWhatASlowHandlerSaysIsShownBeforeItEnds(t *testing.T) {
	s := develop(t)
	s.app.write("handlers/nap.ts", `import { ok } from "@runner/sdk";
export async function nap() {
  console.info("good night");
  await new Promise((wake) => setTimeout(wake, 4000));
  console.info("good morning");
  return ok("rested");
}
`)
	s.app.write("app.schema", strings.Replace(devSchema, "GET /hello -> hello", "GET /hello -> hello\n  GET /nap/:name -> nap", 1))
	s.until("/v1/nap is there", func() bool {
		return s.get("/v1/nap", "").status == 404 && strings.Contains(s.stderr.String(), "/v1/nap/:name ")
	})
	answered := make(chan answer, 1)
	go func() {
		got, _ := s.try("GET", "/v1/nap/ada", "")
		answered <- got
	}()
	if got := <-answered; got.status != 200 || got.body != `"rested"` {
		t.Errorf("it answers %d %s", got.status, got.body)
	}
	s.shows(`… +/v1/nap/:name still being served [0-9a-z]{26}\n.*│ good night\n(?s:.*)GET +/v1/nap/ada 200 .*\n.*│ good morning\n`)
}

func TestColoursAreForTerminalsAlone(t *testing.T) {
	a := newApp(t, devSchema, "")
	a.write("handlers/hello.ts", "export const hello = 1 +;")
	for _, row := range []struct {
		env  string
		want bool
	}{{"NO_COLOR=", true}, {"NO_COLOR=1", false}} {
		ours, theirs := terminal(t)
		cmd := exec.Command(runnerBinary, "dev", "--listen", "127.0.0.1:0")
		cmd.Dir, cmd.Env = a.dir, append(os.Environ(), row.env)
		cmd.Stdout, cmd.Stderr = theirs, theirs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stuck := time.AfterFunc(patientWithCompilers, func() { _ = cmd.Process.Kill() })
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

// terminal opens one: what is written to theirs is read from ours.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

func TestItSaysWhoHasThePortOrTheData(t *testing.T) {
	s := develop(t)
	if got := s.app.run("dev", "--listen", "127.0.0.1:0"); got.status != 1 || !strings.Contains(got.stderr, "is served already, by pid "+fmt.Sprint(s.cmd.Process.Pid)) {
		t.Errorf("a second one on the same data: status %d\n%s", got.status, got.stderr)
	}
	if got := s.app.run("dev", "--listen", s.addr, "--data", "elsewhere"); got.status != 1 || !strings.Contains(got.stderr, "listen on "+s.addr+": the port is in use") {
		t.Errorf("a second one on the same port: status %d\n%s", got.status, got.stderr)
	}
	empty := &app{t: t, dir: t.TempDir()}
	if got := empty.run("dev"); got.status != 3 || !strings.Contains(got.stderr, "schema") {
		t.Errorf("in a folder without an app: status %d\n%s", got.status, got.stderr)
	}
	if left, err := os.ReadDir(empty.dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v there, %v", left, err)
	}
	s.still("/v1/hello", "one")
}

func TestAnInterruptEndsItInGoodOrder(t *testing.T) {
	s := develop(t)
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(patient):
		t.Fatalf("it runs on\n%s", s.stderr.String())
	}
	if s.err != nil {
		t.Errorf("it ended with %v\n%s", s.err, s.stderr.String())
	}
	if _, err := os.Stat(s.app.path("data/runner.sock")); err == nil {
		t.Error("the socket is still there")
	}
}

func TestEveryLineIsAnObjectWhenAsked(t *testing.T) {
	a := newApp(t, devSchema, "")
	a.write("handlers/hello.ts", helloText("one"))
	cmd := exec.Command(runnerBinary, "dev", "--json", "--listen", "127.0.0.1:0")
	cmd.Dir = a.dir
	var stderr lockedBuffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(patientWithCompilers, func() { _ = cmd.Process.Kill() })
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
			t.Errorf("%q is no event: %v", lines.Text(), err)
		}
		seen[e.Event]++
		switch e.Event {
		case "listening":
			url = e.URL
		case "serving":
			s := &server{t: t, app: a, url: url}
			s.get("/v1/boom/x", "")
		case "request":
			if r := e.Request; r.Method != "GET" || r.Path != "/v1/boom/x" || r.Status != 500 || r.Code != "handler_failed" ||
				len(r.Log) < 2 || r.Log[0].Level != "warn" || r.Log[0].Text != "before it x" || len(r.RequestID) != 26 {
				t.Errorf("a request is told as %s", lines.Text())
			}
			a.write("handlers/hello.ts", "nonsense(")
		case "mistakes":
			if len(e.List) != 1 || e.List[0].File != "handlers/hello.ts" || e.Message == "" {
				t.Errorf("mistakes are told as %s", lines.Text())
			}
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	if err := cmd.Wait(); err != nil || stderr.String() != "" {
		t.Errorf("it ended with %v, and said on stderr:\n%s", err, stderr.String())
	}
	for _, kind := range []string{"listening", "built", "serving", "request", "mistakes"} {
		if seen[kind] != 1 {
			t.Errorf("%d events are %q, want 1", seen[kind], kind)
		}
	}
}

func TestOnlyTheFolderThatChangedIsBuilt(t *testing.T) {
	a := newApp(t, devSchema+"routes(\"/go\", auth: none, rateLimit: none) {\n  GET /hello -> goHello\n}\n", "")
	a.write("handlers/hello.ts", helloText("one"))
	sdk, err := filepath.Abs("../sdk/go")
	if err != nil {
		t.Fatal(err)
	}
	source := "package main\n\nimport \"runner.example/sdk/go\"\n\n//go:wasmexport goHello\nfunc goHello() {\n\trunner.Handle(func(*runner.Context, *runner.Request) (runner.Response, error) { return runner.OK(\"go\"), nil })\n}\n\nfunc main() {}\n"
	a.write("handlers/gopher/go.mod", "module gopher\n\ngo 1.24\n\nrequire runner.example/sdk/go v0.0.0\n\nreplace runner.example/sdk/go => "+strconv.Quote(sdk)+"\n")
	a.write("handlers/gopher/main.go", source)
	s := a.start("dev")
	s.still("/go/hello", "go")
	s.still("/v1/hello", "one")
	built := func(module string) int { return strings.Count(s.stderr.String(), "built build/"+module+" in") }

	a.write("handlers/hello.ts", helloText("two"))
	s.says("/v1/hello", "two")
	a.write("handlers/gopher/main.go", strings.Replace(source, `OK("go")`, `OK("going")`, 1))
	s.says("/go/hello", "going")
	if built("little.wasm") != 2 || built("gopher.wasm") != 2 {
		t.Errorf("the modules were built %d and %d times, want twice each\n%s", built("little.wasm"), built("gopher.wasm"), s.stderr.String())
	}
	a.write("handlers/gopher/main.go", strings.Replace(source, `OK("go")`, `OK(gone)`, 1))
	s.shows(`handlers/gopher/main\.go:7:\d+: error: undefined: gone`)
	s.still("/go/hello", "going")
	if err := os.RemoveAll(a.path("handlers/gopher")); err != nil {
		t.Fatal(err)
	}
	s.shows(`removed build/gopher\.wasm`)
	s.still("/go/hello", "going")
	a.write("app.schema", devSchema)
	s.until("/go/hello is gone", func() bool { return s.get("/go/hello", "").status == 404 })
	s.still("/v1/hello", "two")
}

func TestWhatWasRemovedIsBuiltAgain(t *testing.T) {
	s := develop(t)
	for _, folder := range []string{"build", "types"} { // at one stroke, before anything is made again
		if err := os.Rename(s.app.path(folder), filepath.Join(t.TempDir(), folder)); err != nil {
			t.Fatal(err)
		}
	}
	s.until("build and types are there again", func() bool {
		_, module := os.Stat(s.app.path("build/little.wasm"))
		_, types := os.Stat(s.app.path("types/schema.d.ts"))
		return module == nil && types == nil
	})
	s.app.write("app.schema", strings.Replace(devSchema, "GET /hello", "GET /more -> hello\n  GET /hello", 1))
	s.says("/v1/more", "one")
}

func TestAModuleOfAnEarlierRunGoesWithItsSource(t *testing.T) {
	a := newApp(t, devSchema, "")
	a.write("handlers/hello.ts", helloText("one"))
	a.must("build")
	a.write("app.schema", strings.Replace(devSchema, "app little", "app large", 1))
	s := a.start("dev")
	s.says("/v1/hello", "one")
	if _, err := os.Stat(a.path("build/little.wasm")); err == nil {
		t.Error("build/little.wasm is still there: nothing is made of it any more")
	}
}
