package languages_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

func TestAGeneratedClientReachesTheServer(t *testing.T) {
	t.Parallel()
	a := harness.NewClientApp(t)
	a.Write("web/use.ts", harness.MustRead(t, harness.Testdata("client/use.ts")))
	if wrong := harness.CompileTypeScript(t, a.Path("web")); wrong != "" {
		t.Fatal(wrong)
	}
	a.Must("build")
	s := a.Serve()
	var session harness.Session
	if err := json.Unmarshal([]byte(a.Must("sessions", "create", "--user", "ann", "--role", "admin", "--json")), &session); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", a.Path("web/out/use.js"))
	cmd.Env = append(os.Environ(), "URL="+s.URL, "KEY="+a.Token("desk"), "OTHER="+a.Token("other"), "COOKIE="+session.Cookie)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// The script is the server too: it has all tests of the connection, of reading its events and of opening it again.
func TestAGeneratedClientWatchesLiveRoutes(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, harness.MustRead(t, harness.Testdata("client/watch.schema")), "")
	a.Write("tsconfig.json", harness.ClientConfig)
	a.Write("package.json", `{"type": "module"}`)
	a.Must("generate", "client", "--out", "client.ts")
	if wrong := harness.CompileTypeScript(t, a.Dir); wrong != "" {
		t.Fatal(wrong)
	}
	a.Write("watch.mjs", harness.MustRead(t, harness.Testdata("client/watch.mjs")))
	ctx, cancel := context.WithTimeout(t.Context(), harness.Timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "node", "--test", "--test-reporter=tap", a.Path("watch.mjs")).CombinedOutput()
	if err != nil || strings.Contains(string(out), "\n# pass 0\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The server is killed and started again, and the key of the watch is revoked at last.
func TestAWatchOfAClientOutlivesItsServer(t *testing.T) {
	t.Parallel()
	a := harness.NewClientApp(t)
	if wrong := harness.CompileTypeScript(t, a.Path("web")); wrong != "" {
		t.Fatal(wrong)
	}
	a.Write("web/heal.mjs", harness.MustRead(t, harness.Testdata("client/heal.mjs")))
	a.Must("build")
	s := a.Serve()
	key, watching := "X-API-Key: "+a.Token("desk"), a.Key("create", "--scope", "desk", "--name", "watching")

	ctx, cancel := context.WithTimeout(t.Context(), 2*harness.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", a.Path("web/heal.mjs"))
	cmd.Env = append(os.Environ(), "URL="+s.URL, "KEY="+watching.Token)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	wants := func(want string) {
		t.Helper()
		if got, err := lines.ReadString('\n'); got != want+"\n" {
			t.Fatalf("the watch prints %q, %v, want %s", got, err, want)
		}
	}
	note := func() { t.Helper(); s.Want(201, nil, "POST", "/v1/notes", `{"text":"a note"}`, key) }
	wants("good 0")
	note()
	wants("good 1")
	s.Kill()
	s = a.Serve("--listen", s.Addr)
	note()
	wants("good 2")
	a.Must("api-keys", "revoke", watching.ID)
	wants("401 true")
	note()
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
		t.Errorf("after the end the watch prints %q, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestTheTypeCheckerFindsErrorsInCalls(t *testing.T) {
	a := harness.NewClientApp(t)
	wrong := harness.MustRead(t, harness.Testdata("client/wrong.ts"))
	a.Write("web/wrong.ts", wrong)
	said := map[string]string{}
	place := regexp.MustCompile(`^([^ (]+)\((\d+),\d+\): error TS\d+: `)
	at := ""
	for line := range strings.Lines(harness.CompileTypeScript(t, a.Path("web"))) {
		if m := place.FindStringSubmatch(line); m != nil {
			at = m[1] + ":" + m[2]
		}
		said[at] += line
	}
	expected := 0
	for i, line := range strings.Split(wrong, "\n") {
		if _, want, ok := strings.Cut(line, " //! "); ok {
			expected++
			at := "wrong.ts:" + strconv.Itoa(i+1)
			if !strings.Contains(said[at], want) {
				t.Errorf("%s: the type checker reports %q, want %s", at, said[at], want)
			}
			delete(said, at)
		}
	}
	for at, text := range said {
		t.Errorf("%s: unexpected error of the type checker: %s", at, text)
	}
	if expected < 20 {
		t.Errorf("the test expects only %d errors", expected)
	}
}

func TestClientsOfAllSchemasAreValidTypeScript(t *testing.T) {
	schemas, err := filepath.Glob(harness.RepoFile("plugins/examples/*/*.schema"))
	if err != nil || len(schemas) < 4 {
		t.Fatalf("examples: %q, %v", schemas, err)
	}
	// Names that the generated client or TypeScript uses itself.
	names := "Client ClientOptions CallOptions RouteOptions Credential Param Query QueryValue FieldError ProblemError Sent Send Result Promise Response Request RequestInit BodyInit Record Array Error Date Blob Headers AbortSignal ReadableStream Object String"
	var text strings.Builder
	for i, name := range strings.Fields(names) {
		text.WriteString("type " + name + " { a: int b: string" + strconv.Itoa(i) + "? c: " + name + "[]? }\n")
	}
	clash := regexp.MustCompile(`string\d+`).ReplaceAllString(text.String(), "string")
	functions := "functions(auth: none, rateLimit: none) {\n@expose new() -> Result?\n"
	for _, name := range strings.Fields("createClient connect sender watcher watch send fetch then then_ constructor toString delete function class default async get set") {
		functions += "@expose " + name + "(args: Promise, " + name + ": int?) -> Response[]?\n"
	}
	clashing := harness.NewApp(t, clash+functions+"}\nroutes(\"/\", auth: none, rateLimit: none) { POST /:new/:class -> connect (input: Promise) GET /a -> then GET /b -> call GET /d -> call_ GET /e -> call__ GET /c -> new (live: 1m) GET /*default -> constructor }", "")
	empty := harness.NewApp(t, "type Nothing { a: int? }", "")
	schemas = append(schemas, harness.RepoFile("schema/generate/testdata/everything.schema"), harness.Testdata("types/shop.schema"), harness.Testdata("typescript/shop.schema"), clashing.Path("app.schema"), empty.Path("app.schema"))

	all := harness.NewApp(t, "", "")
	all.Write("tsconfig.json", harness.ClientConfig)
	for i, file := range schemas {
		a := harness.NewApp(t, harness.MustRead(t, file), "")
		a.Must("generate", "client", "--out", all.Path("client"+strconv.Itoa(i)+".ts"))
		if stdout := a.Must("generate", "client"); stdout != harness.MustRead(t, all.Path("client"+strconv.Itoa(i)+".ts")) {
			t.Errorf("%s: the second client differs", file)
		}
	}
	if wrong := harness.CompileTypeScript(t, all.Dir); wrong != "" {
		t.Error(wrong)
	}
}
