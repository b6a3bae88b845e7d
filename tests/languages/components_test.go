package languages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// TestProgramsThatAreComponentsAreHandlers lifts programs for wasm32-wasip1 to components, with jco and the adapter of
// Wasmtime for commands. They answer as the programs do.
func TestProgramsThatAreComponentsAreHandlers(t *testing.T) {
	t.Parallel()
	fetched, err := exec.Command(harness.RepoFile("tools/fetch-jco.sh")).Output()
	if err != nil {
		t.Fatal("tools/fetch-jco.sh: ", err)
	}
	jco := filepath.Join(strings.TrimSpace(string(fetched)), "dist/jco.js")
	a := harness.NewApp(t, `app components

routes("/p", auth: none, rateLimit: none) {
  POST /upper -> upper
  POST /sum   -> sum
  POST /size  -> size
}
`, "")
	if err := os.MkdirAll(a.Path("build"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	compileProgram(a, "size", "clang-22", "--target=wasm32-wasi", "-Wno-deprecated", "-O1", "-o", filepath.Join(dir, "size.wasm"), "testdata/programs/size.c")
	compileProgram(a, "upper", "env", "GOOS=wasip1", "GOARCH=wasm", "go", "build", "-C", "testdata/programs/upper", "-o", filepath.Join(dir, "upper.wasm"), ".")
	compileProgram(a, "sum", "/usr/bin/rustc", "--target", "wasm32-wasi", "-C", "linker=wasm-ld-14", "-o", filepath.Join(dir, "sum.wasm"), "testdata/programs/sum.rs")
	for _, name := range []string{"size", "upper", "sum"} {
		compileProgram(a, name, "node", jco, "new", filepath.Join(dir, name+".wasm"), "--wasi-command", "-o", a.Path("build/"+name+".wasm"))
	}
	a.Must("check", "--modules")
	s := a.Serve()
	for range 3 {
		for _, row := range []struct {
			path, body, want string
			status           int
		}{
			{"/p/upper", "hello\nworld", "HELLO\nWORLD", 200},
			{"/p/sum", "40\n2\n", "42\n", 200},
			{"/p/sum", "40\ntwo\n", "invalid digit found in string\n", 422},
			{"/p/size", strings.Repeat("0123456789", 20_000), "POST has 200000 bytes\n", 200},
		} {
			got := s.Do("POST", row.path, row.body)
			if got.Status != row.status || got.Body != row.want || !strings.HasPrefix(got.Header.Get("Content-Type"), "text/plain") {
				t.Errorf("%s answers %d %q, want %d %q", row.path, got.Status, got.Body, row.status, row.want)
			}
		}
	}
	if got := s.Do("POST", "/p/size", ""); got.Status != 500 || got.Problem(t).Code != "handler_failed" {
		t.Errorf("a program that fails answers %d %s", got.Status, got.Body)
	}
	s.WaitForOutput(regexp.QuoteMeta("no bytes"))
}
