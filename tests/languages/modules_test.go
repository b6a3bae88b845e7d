package languages_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// fetchModules returns a directory with third-party modules.
func fetchModules(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(harness.RepoFile("tools/fetch-modules.sh"), args...)
	cmd.Stderr = os.Stderr
	dir, err := cmd.Output()
	if err != nil {
		t.Fatalf("tools/fetch-modules.sh: %v", err)
	}
	return strings.TrimSpace(string(dir))
}

const modulesSchema = `app modules
routes("/v1", auth: none, rateLimit: none) {
  GET /run -> hello
}
`

const (
	notAModule = "is not a WebAssembly module: build it for wasm32-wasip1, or copy the right file"
	emscripten = "which guest ABI 1 does not have: it was made for JavaScript (Emscripten): build it with clang for wasm32-wasip1, as runner build does: Emscripten's functions are in its JavaScript"
	otherHost  = "which guest ABI 1 does not have: it was made for another host; a handler imports only from runner and wasi_snapshot_preview1"
)

func TestThirdPartyModulesLoadOrAreRefusedWithAReason(t *testing.T) {
	t.Parallel()
	rows := []struct{ file, want string }{ // empty: the module loads
		{"hash-wasm-md5", ""},
		{"hash-wasm-sha256", ""},
		{"dprint-json", ""},
		{"xxhash", `does not export its memory: export it as "memory"`},
		{"blake3", "imports …" + emscripten},
		{"oniguruma", "imports …" + emscripten},
		{"brotli", "imports wbg.…which guest ABI 1 does not have: it was made for JavaScript (wasm-bindgen: browsers, Node.js, Cloudflare Workers): build it for wasm32-wasip1 without the crate wasm-bindgen, which features such as js of getrandom and wasmbind of chrono need"},
		{"as-sha256", "imports env.abort, which guest ABI 1 does not have: AssemblyScript adds these imports by default: add the SDK to its package.json, or build it with --use abort= and without seed and trace"},
		{"source-map", "imports env.mapping_callback, " + otherHost},
		{"llhttp", "imports env.wasm_on_headers_complete, env.wasm_on_message_begin, env.wasm_on_url, env.wasm_on_status, env.wasm_on_header_field, env.wasm_on_header_value and 2 others, " + otherHost},
		{"quickjs", "imports env.host_get_timezone_offset, env.host_interrupt, env.host_promise_rejection, env.host_module_normalize, env.host_module_load, env.host_call, " + otherHost},
		{"esbuild", "imports gojs.…which guest ABI 1 does not have: it was made for JavaScript (Go with GOOS=js): build it with GOOS=wasip1, or by runner build"},
	}
	var args []string
	if os.Getenv("RUNNER_SOAK") != "" {
		args = []string{"all"}
		rows = append(rows, []struct{ file, want string }{
			{"python-3.12", ""}, // slow to load; another test calls it
			{"python-3.11", ""},
			{"php-cgi", ""},
			{"ruby", ""},
			{"sql.js", "imports …" + emscripten},
			{"sqlite", "imports wasi_unstable.…which guest ABI 1 does not have: it was made for WASI before preview 1: build it for wasm32-wasip1 with a newer toolchain"},
			{"wasmedge-quickjs", "imports wasi_snapshot_preview1.sock_accept as (i32, i32) -> (i32), which is (i32, i32, i32) -> (i32) in guest ABI 1: build it for wasm32-wasip1, without extensions of another host"},
		}...)
	}
	dir := fetchModules(t, args...)
	for _, row := range rows {
		t.Run(row.file, func(t *testing.T) {
			module, err := os.ReadFile(filepath.Join(dir, row.file+".wasm"))
			if err != nil {
				t.Fatal(err)
			}
			a := harness.NewApp(t, modulesSchema, "", "small")
			a.Write("build/other.wasm", string(module))
			r := a.Run("check", "--modules")
			switch {
			case row.want == "" && strings.Contains(r.Stderr, "build/other.wasm"):
				t.Errorf("it does not load: %s", r.Stderr)
			case row.want != "" && !isLine(r.Stderr, "runner: error: build/other.wasm: "+row.want):
				t.Errorf("check prints\n%s, want\n%s", r.Stderr, row.want)
			}
		})
	}
}

// The function knows nothing of requests, so it returns without a response, and the log
// says so.
func TestAFunctionOfAThirdPartyModuleRuns(t *testing.T) {
	a := harness.NewApp(t, strings.Replace(modulesSchema, "hello", "Hash_Final", 1), "")
	module, err := os.ReadFile(filepath.Join(fetchModules(t), "hash-wasm-md5.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	a.Write("build/md5.wasm", string(module))
	s := a.Serve()
	for range 5 {
		if got := s.Do("GET", "/v1/run", ""); got.Status != 500 || got.Problem(t).Code != "handler_failed" {
			t.Errorf("%d %s", got.Status, got.Body)
		}
	}
	s.WaitForOutput("handler returned without an answer")
}

// check, build, serve and a reload report it.
func TestAFileThatIsNotAModuleIsReportedInOneLine(t *testing.T) {
	t.Parallel()
	small, err := os.ReadFile(harness.GuestFile("small"))
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(small); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile(harness.Binary)
	if err != nil {
		t.Fatal(err)
	}
	reloading := harness.NewApp(t, modulesSchema, "", "small")
	server := reloading.Serve()
	for _, row := range []struct{ name, file, want string }{
		{"a component", "\x00asm\x0d\x00\x01\x00", "is a component that does not export wasi:http/incoming-handler@0.2, wasi:http/handler@0.3 or wasi:cli/run, and no handlers of runner:app"},
		{"half a module", string(small[:len(small)/2]), "is cut off or damaged: the … at byte … ends outside the file"},
		{"a header", "\x00asm", "is cut off or damaged: it has 4 bytes"},
		{"nothing", "", "is empty: build it again"},
		{"text of a module", "(module)", notAModule},
		{"an error page", "<html><body>404", notAModule},
		{"a module in gzip", zipped.String(), notAModule},
		{"the runner", string(self), notAModule},
		{"64 bits", "\x00asm\x01\x00\x00\x00\x05\x03\x01\x04\x01", "has a 64-bit memory…"},
		{"threads", "\x00asm\x01\x00\x00\x00\x05\x04\x01\x03\x01\x01", "has a shared memory…"},
		{"exceptions", "\x00asm\x01\x00\x00\x00\x0d\x01\x00", "uses exception handling, which cannot be run: build it without WebAssembly exceptions (-fno-exceptions, -sSUPPORT_LONGJMP=0, panic=abort)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := harness.NewApp(t, modulesSchema, "", "small")
			a.ShareCode() // each build of TypeScript compiles the engine otherwise
			a.Write("build/other.wasm", row.file)
			for _, command := range [][]string{{"check", "--modules"}, {"serve", "--listen", "127.0.0.1:0"}} {
				r := a.Run(command...)
				if r.Status == 0 || !isLine(withoutLog(r.Stderr), "runner: error: build/other.wasm: "+row.want) {
					t.Errorf("%s ends with %d; it prints\n%s, want\n%s", command[0], r.Status, r.Stderr, row.want)
				}
			}
			a.Write("handlers/hello.ts", "import { ok } from '@runner/sdk';\nexport const hello = () => ok(1);\n")
			begin, _, _ := strings.Cut(row.want, "…")
			if r := a.Run("build"); r.Status == 0 || !strings.Contains(r.Stderr, "module build/other.wasm "+begin) {
				t.Errorf("build ends with %d; it prints\n%s, want\n%s", r.Status, r.Stderr, row.want)
			}
		})
		reloading.Write("build/other.wasm", row.file)
		before := len(server.Stderr.String())
		if err := server.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		refused := func() bool {
			begin, _, _ := strings.Cut(row.want, "…")
			return strings.Contains(server.Stderr.String()[before:], "build/other.wasm: "+begin)
		}
		for end := time.Now().Add(harness.Timeout); !refused(); {
			if got := server.Do("GET", "/v1/run", ""); got.Status != 200 || time.Now().After(end) {
				t.Fatalf("%s is added while the server runs: %d; the log:\n%s", row.name, got.Status, server.Stderr.String()[before:])
			}
		}
	}
	if got := server.Do("GET", "/v1/run", ""); got.Status != 200 {
		t.Errorf("after all that: %d %s", got.Status, got.Body)
	}
}

// withoutLog removes the log lines.
func withoutLog(text string) string {
	var rest strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "{") {
			rest.WriteString(line)
		}
	}
	return rest.String()
}

// isLine reports whether text is one line of the form, in which … stands for any text.
func isLine(text, form string) bool {
	if strings.Count(text, "\n") != 1 {
		return false
	}
	for i, part := range strings.Split(form, "…") {
		at := strings.Index(text, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return text == "\n" || strings.HasSuffix(form, "…")
}

// No process ever writes to the pipe.
func TestAPipeInPlaceOfAModuleIsRefused(t *testing.T) {
	a := harness.NewApp(t, modulesSchema, "", "small")
	server := a.Serve()
	harness.NamedPipe(t, a.Path("build/other.wasm"))
	const want = "build/other.wasm: is a pipe, not a file: remove it, and build the module again"
	for _, command := range [][]string{{"check", "--modules"}, {"serve", "--listen", "127.0.0.1:0", "--data", "other"}} {
		if r := a.Run(command...); r.Status == 0 || !isLine(withoutLog(r.Stderr), "runner: error: "+want) {
			t.Errorf("%s ends with %d; it prints\n%s, want\n%s", command[0], r.Status, r.Stderr, want)
		}
	}
	if err := server.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(harness.Timeout); !strings.Contains(server.Stderr.String(), want); {
		if got := server.Do("GET", "/v1/run", ""); got.Status != 200 || time.Now().After(end) {
			t.Fatalf("a pipe is added while the server runs: %d; the log:\n%s", got.Status, server.Stderr.String())
		}
	}
	server.Stop()
}
