package docs_test

import (
	"errors"
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

// brokenSave matches an error on the page about `runner dev`: its place, and the line that
// was saved.
var brokenSave = regexp.MustCompile(`(?m)^([^\s:]+):(\d+):\d+: error: .*\n +\d+ \| (.*)$`)

// The test follows the page: it runs the commands while the app is served, and waits for
// every line that the page shows. It makes the error that the page shows, and undoes it.
func TestTheStepsOfTheDevPageWork(t *testing.T) {
	sh := newShell(t)
	sh.env = append(sh.env, "PATH="+filepath.Dir(harness.Binary)+":"+os.Getenv("PATH"))
	var screen harness.LockedBuffer
	ended := make(chan error, 1)
	shown, seen := 0, 0 // shown: lines that were compared; seen: length of the output before the last step
	for _, f := range fencesOf(t, harness.RepoFile("docs/dev.md")) {
		text := sh.read(f.text)
		if f.info != "text" {
			seen = len(screen.String())
		}
		switch {
		case f.info == "sh":
			sh.run(text)
		case f.info == "sh serve":
			cmd := exec.Command("bash", "-c", "exec "+text)
			cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = sh.dir, sh.env, &screen, &screen
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Signal(syscall.SIGTERM)
				if err := <-ended; err != nil {
					t.Errorf("%s: %v\n%s", text, err, screen.String())
				}
			})
			go func() { ended <- cmd.Wait() }()
			for end := time.Now().Add(harness.BuildTimeout); !sh.listens(screen.String()); <-time.After(5 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%s does not listen:\n%s", text, screen.String())
				}
			}
		case f.file != "":
			if err := os.WriteFile(filepath.Join(sh.dir, f.file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		case f.info == "text":
			mend := func() error { return nil }
			if m := brokenSave.FindStringSubmatch(text); m != nil && strings.Contains(text, "cannot be built") {
				seen = len(screen.String())
				mend = breakLine(t, filepath.Join(sh.dir, m[1]), m[2], m[3])
			}
			for line := range strings.Lines(text) {
				// The width of the columns depends on the address.
				form := regexp.MustCompile(`\\? {2,}`).ReplaceAllString(regexp.QuoteMeta(strings.TrimRight(line, "\n")), ` +`)
				form = strings.NewReplacer("…ms", `[0-9.]+(?:µs|ms|s)`, "…", ".*").Replace(form) // seconds, on a busy machine
				want := regexp.MustCompile("(?m)^" + form + "$")
				for end := time.Now().Add(harness.Timeout); !want.MatchString(screen.String()[seen:]); <-time.After(5 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("the page shows\n%sbut the output is:\n%s", line, screen.String()[seen:])
					}
				}
				shown++
			}
			if err := mend(); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("a block of %q has no file name before it:\n%s", f.info, f.text)
		}
	}
	if shown < 15 {
		t.Errorf("only %d lines were compared", shown)
	}
}

// breakLine replaces a line of a file, and returns a function that restores it.
func breakLine(t *testing.T, path, number, line string) (mend func() error) {
	t.Helper()
	right, err := os.ReadFile(path)
	n, err2 := strconv.Atoi(number)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(right), "\n")
	lines[n-1] = line
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return func() error { return os.WriteFile(path, right, 0o644) }
}
