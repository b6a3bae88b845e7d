package operations_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// commandApp is an app whose build command is a line of sh.
func commandApp(t *testing.T, line string) *harness.App {
	t.Helper()
	a := harness.NewApp(t, harness.DevSchema, "[build]\ncommand = '''"+line+"'''\n")
	a.Write("handlers/hello.ts", harness.HelloSource("one"))
	return a
}

// generate is a build command that writes a handler from the file words.txt.
const generate = `echo generating; printf 'export const word = "%s";\n' "$(cat words.txt)" > handlers/word.js`

func helloOf(a *harness.App) {
	a.Write("handlers/hello.ts", strings.Replace(harness.HelloSource("the word is ${word}"), "\n", "\nimport { word } from \"./word\";\n", 1))
}

func TestTheBuildCommandRunsBeforeHandlersAreBuilt(t *testing.T) {
	a := commandApp(t, generate)
	helloOf(a)
	a.Write("words.txt", "early")
	got := a.Run("build")
	if got.Status != 0 || !strings.Contains(got.Stderr, "runner: running echo generating") ||
		!strings.Contains(got.Stderr, "\ngenerating\n") || strings.Contains(got.Stdout, "generating") {
		t.Fatalf("%d\n%s\n%s", got.Status, got.Stdout, got.Stderr)
	}
	if text := harness.MustRead(t, a.Path("handlers/word.js")); !strings.Contains(text, `"early"`) {
		t.Errorf("it wrote %q", text)
	}
}

func TestAFailedBuildCommandBuildsNothing(t *testing.T) {
	a := commandApp(t, "echo broken >&2; exit 9")
	for _, args := range [][]string{{"build"}, {"deploy", "--yes"}} {
		got := a.Run(args...)
		if got.Status != 3 || !strings.Contains(got.Stderr, "broken\nrunner: error: build command \"echo broken >&2; exit 9\": exit status 9\n") {
			t.Errorf("%q: %d\n%s", args, got.Status, got.Stderr)
		}
	}
	if _, err := os.Stat(a.Path("build")); err == nil {
		t.Error("modules were built")
	}
}

func TestTheBuildCommandHasNoSecrets(t *testing.T) {
	a := commandApp(t, "env")
	a.Env = append(a.Env, "RUNNER_SECRETS_WORD=swordfish", "OTHER=shown")
	if got := a.Run("build"); got.Status != 0 || !strings.Contains(got.Stderr, "OTHER=shown") || strings.Contains(got.Stderr, "swordfish") {
		t.Errorf("%d\n%s", got.Status, got.Stderr)
	}
}

func TestAnInterruptEndsTheBuildCommand(t *testing.T) {
	a := commandApp(t, "trap 'echo ended > ended; exit' TERM; echo begun; while :; do sleep 1; done")
	for _, stop := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		a.Remove("ended")
		cmd := exec.Command(harness.Binary, "build")
		cmd.Dir = a.Dir
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stuck := time.AfterFunc(harness.Timeout, func() { _ = cmd.Process.Kill() })
		lines := bufio.NewScanner(stderr)
		for lines.Scan() && lines.Text() != "begun" {
		}
		if err := cmd.Process.Signal(stop); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			t.Log(lines.Text())
		}
		if err := cmd.Wait(); err == nil || !stuck.Stop() {
			t.Errorf("%v: it ended with %v", stop, err)
		}
		if _, err := os.Stat(a.Path("ended")); err != nil {
			t.Errorf("%v: the command was not asked to end", stop)
		}
	}
}

func TestDeployRunsTheBuildCommand(t *testing.T) {
	a := commandApp(t, generate)
	helloOf(a)
	a.Write("words.txt", "served")
	a.Must("build")
	s := a.Serve()
	s.WantBody("/v1/hello", "the word is served")
	a.Write("words.txt", "deployed")
	a.Must("deploy", "--yes", "--no-build")
	s.WantBody("/v1/hello", "the word is served")
	a.Must("deploy", "--yes")
	s.WantBody("/v1/hello", "the word is deployed")
}

func TestDevRunsTheBuildCommandAfterChangesOfItsInput(t *testing.T) {
	a := commandApp(t, "echo run >> runs.tmp; "+generate)
	helloOf(a)
	a.Write("words.txt", "one")
	s := a.Start("dev")
	s.WaitForBody("/v1/hello", "the word is one")
	runs := func() int { return strings.Count(harness.MustRead(t, a.Path("runs.tmp")), "run") }
	if n := runs(); n != 1 {
		t.Errorf("it ran %d times at startup", n)
	}
	s.WaitUntil("it says what it serves", func() bool { return strings.Contains(s.Stderr.String(), "serving ") })
	if strings.Contains(s.Stderr.String(), "changed: serving") {
		t.Errorf("what the command has written is a change at startup:\n%s", s.Stderr.String())
	}
	a.Write("words.txt", "two")
	s.WaitForBody("/v1/hello", "the word is two")
	if n := runs(); n != 2 {
		t.Errorf("it ran %d times after one change", n)
	}
	a.Write("handlers/hello.ts", harness.HelloSource("without it"))
	s.WaitForBody("/v1/hello", "without it")
	if n := runs(); n != 2 {
		t.Errorf("it ran %d times: a change of a handler runs it too", n)
	}
}

func TestTheOutputOfTheBuildCommandDoesNotStartIt(t *testing.T) {
	a := commandApp(t, "echo run >> runs.tmp; date +%N%s > stamp.txt; cp stamp.txt copy-$(cat stamp.txt).txt; cat words.txt > said.txt")
	a.Write("stamp.txt", "none")
	a.Write("words.txt", "one")
	s := a.Start("dev")
	s.WaitForBody("/v1/hello", "one")
	a.Write("words.txt", "two")
	s.WaitUntil("the command has run", func() bool { return harness.MustRead(t, a.Path("said.txt")) == "two" })
	a.Write("handlers/hello.ts", harness.HelloSource("after it")) // it is seen after what the command has written
	s.WaitForBody("/v1/hello", "after it")
	runs := strings.Count(harness.MustRead(t, a.Path("runs.tmp")), "run")
	if runs < 2 || runs > 5 { // each of the two changes, and once more for what each run changes for the first time
		t.Errorf("it ran %d times", runs)
	}
	a.Write("handlers/hello.ts", harness.HelloSource("later"))
	s.WaitForBody("/v1/hello", "later")
	if n := strings.Count(harness.MustRead(t, a.Path("runs.tmp")), "run"); n != runs {
		t.Errorf("it ran %d times, and then %d times without a change", runs, n)
	}
}

func TestAFailedBuildCommandKeepsTheReleaseInDev(t *testing.T) {
	a := commandApp(t, "cat status.txt; exit $(cat status.txt)")
	a.Write("status.txt", "0")
	s := a.Start("dev")
	s.WaitForBody("/v1/hello", "one")
	a.Write("status.txt", "4")
	s.WaitForOutput(`runner: error: build command "cat status\.txt; exit \$\(cat status\.txt\)": exit status 4`)
	a.Write("handlers/hello.ts", harness.HelloSource("two"))
	s.WaitForOutput(`exit status 4(?s:.*)exit status 4`) // it runs again until it succeeds
	s.WantBody("/v1/hello", "one")
	a.Write("status.txt", "0")
	s.WaitForBody("/v1/hello", "two")
}
