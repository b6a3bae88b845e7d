package harness

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/internal/patches"
	"runner.example/internal/system/filelock"
)

var (
	// Binary is the path of the runner that the tests start.
	Binary string
	// Scratch is a directory of this test process. It is removed when the tests end.
	Scratch string
	// compiledCode is the directory of compiled modules that all apps share.
	compiledCode string
	repository   = findRepository()
)

// RepoFile returns the path of a file in the repository.
func RepoFile(name string) string { return filepath.Join(repository, name) }

// Testdata returns the path of a file that tests of several packages use.
func Testdata(name string) string { return RepoFile(filepath.Join("tests/testdata", name)) }

func findRepository() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.Contains("\n"+string(text), "\nmodule runner.example\n") {
			return dir
		}
		if dir == filepath.Dir(dir) {
			panic("the tests run outside the repository: no directory above has its go.mod")
		}
	}
}

// BuildModule writes the files of an app to a directory of Scratch, builds its handlers, and returns
// the module of that name.
func BuildModule(name string, files map[string]string) ([]byte, error) {
	build := (&App{Dir: filepath.Join(Scratch, name)}).command(context.Background(), "build")
	for file, text := range files {
		path := filepath.Join(build.Dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("runner build: %w\n%s", err, out)
	}
	return os.ReadFile(filepath.Join(build.Dir, "build", name+".wasm"))
}

// Main is the TestMain of every package of black-box tests. It builds the runner and
// the guests, and runs the tests.
func Main(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "runner-tests-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	Binary, Scratch = filepath.Join(dir, "runner"), dir
	if err := build(); err != nil {
		return 0, err
	}
	status := m.Run()
	now := time.Now()
	return status, os.Chtimes(lockFile(), now, now) // see uncached
}

// uncached keeps the go command from caching the result of a test. It would, as it does not
// see which programs a test runs. It caches no result that depends on a file which was
// changed just now, and Main changes this one at the end.
func uncached() { _, _ = os.Stat(lockFile()) }

// sharedDir has what the packages of tests share: the runner, and the modules compiled
// for it. One process at a time builds there; what is up to date is not built again.
func sharedDir() string { return RepoFile("bin/test") }

func lockFile() string { return filepath.Join(sharedDir(), "lock") }

// lockShared waits until no other test process builds in sharedDir.
func lockShared() (unlock func(), err error) { return lock(lockFile()) }

// lock waits until no other test process has this lock in sharedDir.
func lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(sharedDir(), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := filelock.Wait(context.Background(), file); err != nil {
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil
}

func build() error {
	unlock, err := lockShared()
	if err != nil {
		return err
	}
	defer unlock()
	built, err := buildRunner("runner")
	if err != nil {
		return err
	}
	// A copy, since a later build replaces the file. All copies have the same time: with it a runner tells
	// its compiled modules from those of other versions, which it removes from the shared directory.
	if err := errors.Join(copyBinary(built, Binary), os.Chtimes(Binary, copied, copied)); err != nil {
		return err
	}
	if err := makeCodeDir(); err != nil {
		return err
	}
	guests, err := filepath.Glob(Testdata("guests/*.wat"))
	if err != nil || len(guests) == 0 {
		return fmt.Errorf("find guests: %d found, %v", len(guests), err)
	}
	for _, wat := range guests {
		out, err := exec.Command("wat2wasm", wat, "-o", GuestFile(strings.TrimSuffix(filepath.Base(wat), ".wat"))).CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			return errors.New("wat2wasm is missing: apt-get install wabt (make test does it)")
		}
		if err != nil {
			return fmt.Errorf("assemble %s: %w\n%s", wat, err, out)
		}
	}
	return nil
}

// windows reports whether the runner under test is the one for Windows.
var windows = os.Getenv("RUNNER_TEST_GOOS") == "windows"

// buildRunner builds the runner in sharedDir, for the system and the architecture under test, and returns its path.
func buildRunner(name string, flags ...string) (path string, err error) {
	path = filepath.Join(sharedDir(), name)
	args := append([]string{"build"}, flags...)
	if os.Getenv("RUNNER_TEST_RACE") != "" {
		path, args = path+"-race", append(args, "-race")
	}
	var env []string
	if arch := os.Getenv("RUNNER_TEST_GOARCH"); arch != "" {
		path, env = path+"-"+arch, []string{"GOARCH=" + arch, "CGO_ENABLED=0"}
	}
	if windows {
		path, env = path+".exe", []string{"GOOS=windows", "CGO_ENABLED=0"}
	}
	return path, goCommand(env, append(args, "-o", path, "./cmd/runner")...)
}

// OtherBuild builds a runner that differs from the one that the tests start, as another release does,
// and returns its path: it has no symbols and no revision.
func OtherBuild(t testing.TB) string {
	t.Helper()
	return buildOther(t, "runner-other", 1, "-buildvcs=false", "-ldflags=-s -w")
}

// NextLevelBuild builds a runner that knows one level of the data more than the one that the tests start,
// as a later release does, and returns its path.
func NextLevelBuild(t testing.TB) string {
	t.Helper()
	tags := "level_next"
	if patches.Applied {
		tags += ",patched"
	}
	return buildOther(t, "runner-next-level", 2, "-tags="+tags)
}

// HostRunner builds the runner for this machine, also if the tests start another one, and returns its path.
// An App runs it as its Binary, with Native.
func HostRunner(t testing.TB) string {
	t.Helper()
	unlock, err := lockShared()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	built, host := filepath.Join(sharedDir(), "runner"), filepath.Join(t.TempDir(), "runner")
	err = goCommand(nil, "build", "-o", built, "./cmd/runner")
	if err := errors.Join(err, copyBinary(built, host), os.Chtimes(host, copied, copied)); err != nil {
		t.Fatal(err)
	}
	return host
}

// NeedWindows skips a test of the runner for Windows, unless the tests run that.
func NeedWindows(t testing.TB) {
	t.Helper()
	if !windows {
		t.Skip("RUNNER_TEST_GOOS is not windows: make test-windows runs this test")
	}
}

// buildOther builds a runner in sharedDir with flags, and returns the path of a copy. With a time of its
// own, which the number gives, it shares no compiled modules with other runners.
func buildOther(t testing.TB, name string, number int, flags ...string) string {
	t.Helper()
	unlock, err := lockShared()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	built, err := buildRunner(name, flags...)
	if err != nil {
		t.Fatal(err)
	}
	other, at := filepath.Join(t.TempDir(), "runner"), copied.Add(time.Duration(number)*time.Hour)
	if err := errors.Join(copyBinary(built, other), os.Chtimes(other, at, at)); err != nil {
		t.Fatal(err)
	}
	return other
}

// copied is the time of all copies.
var copied = time.Unix(1_000_000_000, 0)

func copyBinary(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// makeCodeDir makes the directory of compiled modules for this binary. It removes those
// of other binaries that are older than a day.
func makeCodeDir() error {
	binary, err := os.Open(Binary)
	if err != nil {
		return err
	}
	defer binary.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, binary); err != nil {
		return err
	}
	compiledCode = filepath.Join(sharedDir(), fmt.Sprintf("code-%x", sum.Sum(nil)[:8]))
	if err := os.MkdirAll(compiledCode, 0o700); err != nil {
		return err
	}
	others, err := filepath.Glob(filepath.Join(sharedDir(), "code-*"))
	if err != nil {
		return err
	}
	for _, other := range others {
		if info, err := os.Stat(other); err == nil && other != compiledCode && time.Since(info.ModTime()) > 24*time.Hour {
			if err := os.RemoveAll(other); err != nil {
				return err
			}
		}
	}
	return nil
}

// Go runs the go command in the repository, with the patches of dependencies if the tests have them.
func Go(args ...string) error { return goCommand(nil, args...) }

func goCommand(env []string, args ...string) error {
	program := "go"
	if patches.Applied {
		program = RepoFile("tools/go.sh")
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = repository, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// GuestFile returns the path of the module that is assembled from a file in
// testdata/guests.
func GuestFile(name string) string { return filepath.Join(Scratch, name+".wasm") }

var compiledModules sync.Map // path of the sources -> func() ([]byte, error)

// GoModule compiles the handlers in a directory, once for all tests, and returns the
// module.
func GoModule(t testing.TB, dir string) string {
	t.Helper()
	return compiled(t, dir, func(file string) *exec.Cmd {
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", file, ".")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		return cmd
	})
}

// CProgram compiles a WASI program of one file, once for all tests, and returns the module.
func CProgram(t testing.TB, source string) string {
	t.Helper()
	return compiled(t, source, func(file string) *exec.Cmd {
		return exec.Command("clang-22", "--target=wasm32-wasi", "-Wno-deprecated", "-O1", "-o", file, source)
	})
}

// compiled runs a compiler once for all tests. It writes the module to a file.
func compiled(t testing.TB, source string, compiler func(file string) *exec.Cmd) string {
	t.Helper()
	once, _ := compiledModules.LoadOrStore(source, sync.OnceValues(func() ([]byte, error) {
		unlock, err := lockShared()
		if err != nil {
			return nil, err
		}
		defer unlock()
		name, err := filepath.Rel(repository, source)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(sharedDir(), strings.ReplaceAll(name, "/", "_")+".wasm")
		if out, err := compiler(file).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile %s (tools/setup.sh installs the compilers): %w\n%s", source, err, out)
		}
		return os.ReadFile(file)
	}))
	module, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return string(module)
}

// NeedPatches skips a test of programs that wait, if the runner cannot continue them.
func NeedPatches(t testing.TB) {
	t.Helper()
	if !patches.Applied {
		t.Skip("built without the patches of third_party: use tools/go.sh")
	}
}
