package docs_test

import (
	"bufio"
	"net"
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

// fence is a fenced block of a page. file is the name in backquotes, followed by a colon, on
// the line before the block.
type fence struct{ info, file, text string }

var fenceForm = regexp.MustCompile("(?ms)^(?:`([^`\n]+)`:\n\n)?```([a-z ]*)\n(.*?)^```$")

func fencesOf(t *testing.T, path string) []fence {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []fence
	for _, m := range fenceForm.FindAllStringSubmatch(string(page), -1) {
		all = append(all, fence{info: m[2], file: m[1], text: m[3]})
	}
	return all
}

// shell runs the commands of a reader who has a checkout.
type shell struct {
	t       *testing.T
	env     []string
	dir     string
	address string // of the server, once there is one
	admin   string // of its admin listener
}

// newShell starts in an empty directory; its servers listen on a free port.
func newShell(t *testing.T) *shell {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { endProcesses(t, dir) })
	return &shell{t: t, admin: freeAddress(t), dir: dir, env: append(os.Environ(),
		"CHECKOUT="+harness.RepoFile("."), "RUNNER_FRONT_LISTEN=127.0.0.1:0", "READER_ENV="+filepath.Join(t.TempDir(), "env"))}
}

// freeAddress returns an address that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// endProcesses ends what a page has started in the background: files *.pid in the directory, or one below it, have
// their ids.
func endProcesses(t *testing.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.pid"))
	if err != nil {
		t.Error(err)
	}
	for _, file := range files {
		if pid, err := strconv.Atoi(strings.TrimSpace(harness.MustRead(t, file))); err == nil && pid > 1 {
			harness.KillProcess(pid)
		}
	}
}

// read replaces the checkout and the server's addresses in a block of a page.
func (s *shell) read(text string) string {
	s.t.Helper()
	const printed = "127.0.0.1:8080"
	if s.address == "" && strings.Contains(text, printed) {
		s.t.Fatalf("the page uses %s before a server runs:\n%s", printed, text)
	}
	return strings.NewReplacer("$HOME/runner", "$CHECKOUT", printed, s.address, "127.0.0.1:9443", s.admin).Replace(text)
}

// listens reads the address from a server's output, and reports whether it is there.
func (s *shell) listens(printed string) bool {
	match := listeningLine.FindStringSubmatch(printed)
	if match != nil {
		s.address = match[1]
	}
	return match != nil
}

var listeningLine = regexp.MustCompile(`(?m)^listening on http://(127\.0\.0\.1:\d+)\n`)

const endMark = "-- the directory now: "

// run runs a block in the directory and environment that the last one left, and returns
// its output.
func (s *shell) run(text string) string {
	s.t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", text+"\nprintf '\\n%s%s' '"+endMark+"' \"$PWD\"; env -0 > \"$READER_ENV\"")
	cmd.Dir, cmd.Env = s.dir, s.env
	stuck := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s\n%v\n%s", text, err, out)
	}
	printed, dir, _ := strings.Cut(string(out), endMark)
	s.dir = dir
	for _, entry := range s.env {
		if file, ok := strings.CutPrefix(entry, "READER_ENV="); ok {
			kept, err := os.ReadFile(file)
			if err != nil {
				s.t.Fatal(err)
			}
			s.env = strings.Split(strings.TrimSuffix(string(kept), "\x00"), "\x00")
		}
	}
	return printed
}

// serve starts a server that runs until the test ends, and returns its first line.
func (s *shell) serve(text string) string {
	s.t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", "exec "+text)
	cmd.Dir, cmd.Env = s.dir, s.env
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	var stderr harness.LockedBuffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("%s: %v\n%s", text, err, stderr.String())
		}
	})
	stuck := time.AfterFunc(harness.BuildTimeout, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !s.listens(line) {
		s.t.Fatalf("%s: %q, %v\n%s", text, line, err, stderr.String())
	}
	return line
}

func TestTheStepsOfTheQuickstartWork(t *testing.T) { follow(t, 7, "docs/quickstart.md") }

func TestTheStepsOfTheTypeScriptPagesWork(t *testing.T) {
	follow(t, 5, "docs/typescript/README.md", "docs/typescript/types.md", "docs/typescript/rows.md", "docs/typescript/globals.md")
}

func TestTheStepsOfTheClientsPageWork(t *testing.T) { follow(t, 9, "docs/clients.md") }

func TestTheStepsOfTheProgramsPageWork(t *testing.T) { follow(t, 6, "docs/programs.md") }

func TestTheHandlersWithoutAnSDKWork(t *testing.T) { follow(t, 8, "docs/abi/handler.md") }

func TestTheStepsOfTheComponentsPageWork(t *testing.T) { follow(t, 2, "docs/components.md") }

func TestTheStepsOfTheWITPageWork(t *testing.T) { follow(t, 6, "docs/wit.md") }

func TestTheStepsOfThePythonPageWork(t *testing.T) {
	harness.NeedPatches(t)
	follow(t, 5, "docs/python.md")
}

func TestTheStepsOfThePageAboutDeploymentsWithHTTPWork(t *testing.T) {
	follow(t, 13, "docs/deploy-http.md")
}

// TestTheDrillOfTheOperatorsWorks is what make drill runs.
func TestTheDrillOfTheOperatorsWorks(t *testing.T) { follow(t, 31, "docs/operate.md") }

func TestTheStepsOfTheTestingPageWork(t *testing.T) { follow(t, 3, "docs/testing.md") }

func TestTheStepsOfTheRecordingsPageWork(t *testing.T) { follow(t, 5, "docs/recordings.md") }

func TestTheStepsOfTheLivePageWork(t *testing.T) { follow(t, 5, "docs/live.md") }

func TestTheStepsOfTheAssetsPageWork(t *testing.T) { follow(t, 10, "docs/assets.md") }

func TestTheStepsOfTheJobsPageWork(t *testing.T) { follow(t, 7, "docs/jobs.md") }

func TestTheStepsOfTheSchemaTutorialWork(t *testing.T) { follow(t, 12, "docs/schema/tutorial.md") }

func TestTheRecipesOfTheMigrationsPageWork(t *testing.T) { follow(t, 20, "docs/migrations.md") }

// follow does what pages say, one after the other: it writes the files, runs the commands in order, and checks
// that every line a page shows is printed, where … stands for any text. Only the checkout
// and the port differ. At least so many lines must be compared. Handlers of the page must pass
// the type checker of their language.
func follow(t *testing.T, least int, pages ...string) {
	t.Helper()
	sh := newShell(t)
	home := sh.dir
	var printed string
	shown := 0
	var fences []fence
	for _, page := range pages {
		fences = append(fences, fencesOf(t, harness.RepoFile(page))...)
	}
	for _, f := range fences {
		text := sh.read(f.text)
		switch {
		case f.file != "":
			if err := os.WriteFile(filepath.Join(sh.dir, f.file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		case f.info == "sh":
			printed = sh.run(text)
		case f.info == "sh serve":
			printed = sh.serve(text)
		case f.info == "text":
			for line := range strings.Lines(text) {
				form := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, "\n")), "…", ".*")
				if shown++; !regexp.MustCompile("(?:^|\n|})" + form).MatchString(printed) {
					t.Errorf("the page shows\n%sbut this is printed:\n%s", line, printed)
				}
			}
		case f.info != "":
			t.Errorf("a block of %q has no file name before it:\n%s", f.info, f.text)
		}
	}
	written := &harness.App{T: t, Dir: filepath.Join(home, "hello")}
	if _, err := os.Stat(written.Path("handlers")); err == nil {
		written.Must("generate", "types")
		var said map[string]string
		if _, err := os.Stat(written.Path("pyrightconfig.json")); err == nil {
			said = harness.CheckPython(t, written, "pyrightconfig.json")
		} else {
			said = harness.CheckTypes(t, written)
		}
		for at, text := range said {
			t.Errorf("%s: %s", at, text)
		}
	}
	if shown < least {
		t.Errorf("only %d lines were compared", shown)
	}
}
