package languages_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"runner.example/tests/harness"
)

const programsSchema = `app programs

apiKeys { scopes: { callers: @system("programs.callers") {} } }

routes("/c", auth: none, rateLimit: none, timeout: 60s) {
  GET  /:what -> all
  POST /:what -> all
}
routes("/short", auth: none, rateLimit: none, timeout: 1s) { GET /:what -> all }
routes("/p", auth: none, rateLimit: none) {
  POST /upper -> upper
  POST /sum   -> sum
}
routes("/k", auth: apiKey(callers), rateLimit: none) {
  GET /:what/*rest -> all
}
`

// programs is an app with programs in C, Go and Rust.
func programs(t *testing.T) *harness.App {
	t.Helper()
	a := harness.NewApp(t, programsSchema, "")
	if err := os.MkdirAll(a.Path("build"), 0o755); err != nil {
		t.Fatal(err)
	}
	compileProgram(a, "all", "clang-22", "--target=wasm32-wasi", "-Wno-deprecated", "-O1", "-o", a.Path("build/all.wasm"), "testdata/programs/all.c")
	compileProgram(a, "upper", "env", "GOOS=wasip1", "GOARCH=wasm", "go", "build", "-C", "testdata/programs/upper", "-o", a.Path("build/upper.wasm"), ".")
	compileProgram(a, "sum", "/usr/bin/rustc", "--target", "wasm32-wasi", "-C", "linker=wasm-ld-14", "-o", a.Path("build/sum.wasm"), "testdata/programs/sum.rs")
	return a
}

// compileProgram runs a compiler that tools/setup.sh installs.
func compileProgram(a *harness.App, what string, command ...string) {
	a.T.Helper()
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		a.T.Fatalf("compile %s with %s: %v (tools/setup.sh installs the compilers)\n%s", what, command[0], err, out)
	}
}

func TestProgramsInAnyLanguageAreHandlers(t *testing.T) {
	t.Parallel()
	a := programs(t)
	a.Must("check", "--modules")
	s := a.Serve()
	plain := func(status int, want, method, path, body string) {
		t.Helper()
		got := s.Do(method, path, body)
		if got.Status != status || got.Body != want || !strings.HasPrefix(got.Header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s %s answers %d %q, want %d %q", method, path, got.Status, got.Body, status, want)
		}
	}
	plain(200, "HELLO\nWORLD", "POST", "/p/upper", "hello\nworld")
	plain(200, "42\n", "POST", "/p/sum", "40\n2\n")
	plain(422, "invalid digit found in string\n", "POST", "/p/sum", "40\ntwo\n")
	plain(410, "it is gone\n", "GET", "/c/gone", "")
	plain(200, "none 0 0 -1", "GET", "/c/files", "")
	for range 20 {
		plain(200, "1 run as all of 1", "GET", "/c/runs", "")
	}

	large := strings.Repeat("0123456789abcdef\r\n\x00", 40_000)
	if got := s.Do("POST", "/c/echo", large); got.Status != 200 || got.Body != large {
		t.Errorf("a body of %d bytes is returned with status %d and %d bytes", len(large), got.Status, len(got.Body))
	}
	if got := s.Do("GET", "/c/context", ""); got.Status != 200 || !strings.Contains(got.Body, `"auth":{"kind":"anonymous"}`) ||
		!strings.Contains(got.Body, got.Header.Get("X-Request-Id")) {
		t.Errorf("the context of the guest ABI: %d %s", got.Status, got.Body)
	}
	if got := s.Do("GET", "/c/moved", ""); got.Status != 302 || got.Header.Get("Location") != "/c/env" || got.Body != "" {
		t.Errorf("a redirect: %d, %q, %q", got.Status, got.Header.Get("Location"), got.Body)
	}
	for what, cause := range map[string]string{
		"words": `not a header: begin with header lines`,
		"fail":  "handler exited with status 3",
		"abort": "unreachable",
		"flood": "a body of more than 8388608 bytes",
		"quiet": "wrote nothing to standard output",
	} {
		if got := s.Do("GET", "/c/"+what, ""); got.Status != 500 || got.Problem(t).Code != "handler_failed" {
			t.Errorf("%s answers %d %s", what, got.Status, got.Body)
		}
		s.WaitForOutput(regexp.QuoteMeta(cause))
	}
	s.WaitForOutput("this went wrong")
	if got := s.Do("GET", "/short/loop", ""); got.Status != 504 {
		t.Errorf("an endless loop answers %d %s", got.Status, got.Body)
	}
	plain(200, "1 run as all of 1", "GET", "/c/runs", "")
}

func TestAProgramSeesTheRequestAndNoCredential(t *testing.T) {
	a := harness.NewApp(t, programsSchema, "")
	if err := os.MkdirAll(a.Path("build"), 0o755); err != nil {
		t.Fatal(err)
	}
	compileProgram(a, "all", "clang-22", "--target=wasm32-wasi", "-Wno-deprecated", "-O1", "-o", a.Path("build/all.wasm"), "testdata/programs/all.c")
	for _, name := range []string{"upper", "sum"} { // the C program, under all three names
		if err := os.Link(a.Path("build/all.wasm"), a.Path("build/"+name+".wasm")); err != nil {
			t.Fatal(err)
		}
	}
	token := a.Token("callers")
	s := a.Serve()
	got := s.Do("GET", "/k/env/a%20b?x=%41+1&y", "",
		"Authorization: Bearer "+token, "Proxy: http://evil.example", "X-Trace: t1", "X_Trace: t2", "Cookie: a=b")
	if got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	env := map[string]string{}
	for line := range strings.Lines(got.Body) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		env[name] = value
	}
	for name, want := range map[string]string{
		"REQUEST_METHOD": "GET", "SCRIPT_NAME": "/k", "PATH_INFO": "/env/a b", "QUERY_STRING": "x=%41+1&y",
		"RUNNER_PARAM_what": "env", "RUNNER_PARAM_rest": "a b", "AUTH_TYPE": "apiKey", "SERVER_PROTOCOL": "HTTP/1.1",
		"HTTP_X_TRACE": "t1", "HTTP_COOKIE": "a=b", "REMOTE_ADDR": "127.0.0.1", "SERVER_NAME": "127.0.0.1",
		"SERVER_PORT": s.Addr[strings.LastIndexByte(s.Addr, ':')+1:], "GATEWAY_INTERFACE": "CGI/1.1",
	} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
	if env["REMOTE_USER"] == "" {
		t.Error("the program did not get the key's id")
	}
	for _, name := range []string{"HTTP_PROXY", "HTTP_AUTHORIZATION", "HTTP_X_API_KEY", "CONTENT_LENGTH", "PATH", "HOME"} {
		if value, ok := env[name]; ok {
			t.Errorf("%s is %q", name, value)
		}
	}
	for _, open := range []string{"Authorization: Bearer " + token, "X-API-Key: " + token, "Proxy-Authorization: " + token} {
		if got := s.Do("GET", "/c/env", "", open); got.Status != 200 || strings.Contains(got.Body, token) {
			t.Errorf("a route without authentication shows the token of %.10s", open)
		}
	}
}

// Many requests run at once, each with a different body.
func TestRequestsOfOneProgramAreIsolated(t *testing.T) {
	s := programs(t).Serve()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			own := bytes.Repeat([]byte{byte('a' + i)}, 100_000)
			for range 20 {
				if got, err := s.Try("POST", "/c/echo", string(own)); err != nil || got.Status != 200 || got.Body != string(own) {
					t.Errorf("%v, %d, %d bytes", err, got.Status, len(got.Body))
				}
				if got, err := s.Try("GET", "/c/runs", ""); err != nil || got.Body != "1 run as all of 1" {
					t.Errorf("%v, %q", err, got.Body)
				}
			}
		})
	}
	all.Wait()
}

// pythonScript is a CGI script that an interpreter reads from the request's body.
const pythonScript = `import json, os, sys
print("Content-Type: application/json")
print()
print(json.dumps({"version": list(sys.version_info[:2]), "path": os.environ["SCRIPT_NAME"]}))
`

// interpreters is an app of third-party interpreters.
func interpreters(t *testing.T, routes, modules string, files map[string]string) *harness.Server {
	t.Helper()
	a := harness.NewApp(t, "app programs\nroutes(\"/run\", auth: none, rateLimit: none, timeout: 30s) {"+routes+"}\n",
		"[sandbox]\nmemory = \"256mb\"\ncpu = \"20s\"\n")
	for name, file := range files {
		module, err := os.ReadFile(filepath.Join(modules, file+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		a.Write("build/"+name+".wasm", string(module))
	}
	return a.Serve()
}

func TestAThirdPartyPythonIsAHandler(t *testing.T) {
	t.Parallel()
	s := interpreters(t, "POST /python -> python", fetchModules(t), map[string]string{"python": "python-3.12"})
	for range 3 {
		got := s.Do("POST", "/run/python", pythonScript)
		if got.Status != 200 || got.Body != `{"version": [3, 12], "path": "/run/python"}`+"\n" || got.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %s", got.Status, got.Body)
		}
	}
	if got := s.Do("POST", "/run/python", "raise RuntimeError('this went wrong')"); got.Status != 500 {
		t.Errorf("a script that fails answers %d %s", got.Status, got.Body)
	}
	s.WaitForOutput("RuntimeError: this went wrong")
	s.WaitForOutput("handler exited with status 1")
}

func TestThirdPartyInterpretersAreHandlers(t *testing.T) {
	if os.Getenv("RUNNER_SOAK") == "" {
		t.Skip("they are large: RUNNER_SOAK=1 (make soak) fetches and runs them")
	}
	modules := fetchModules(t, "all")
	for _, row := range []struct{ file, program, want string }{
		{"python-3.11", pythonScript, `{"version": [3, 11], "path": "/run/it"}` + "\n"},
		{"ruby", "puts 'Content-Type: text/plain', '', (1..10).sum", "55\n"},
		{"php-cgi", "<?php", ""}, // reads its script only from a file, and there is none
	} {
		t.Run(row.file, func(t *testing.T) { // not parallel: each takes long to compile
			s := interpreters(t, "POST /it -> it", modules, map[string]string{"it": row.file})
			for range 3 {
				got := s.Do("POST", "/run/it", row.program)
				switch {
				case row.want == "" && got.Status == 500:
					s.WaitForOutput("No input file specified.")
				case got.Status != 200 || got.Body != row.want:
					t.Errorf("it answers %d %s, want %s\n%s", got.Status, got.Body, row.want, s.Stderr.String())
				}
			}
		})
	}
}
