package operations_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runner.example/internal/patches"
	"runner.example/tests/harness"
)

// treeApp is an app whose module has a directory of n files.
func treeApp(t *testing.T, n int) *harness.App {
	t.Helper()
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	a.Write("files.schema", "module echo { files: \"lib\", args: [\"-m\", \"app\"], env: { LANG: \"C\" } }\n")
	for i := range n {
		a.Write(treeFile(i), fmt.Sprintf("content %d %s", i, strings.Repeat("x", i%5000)))
	}
	return a
}

func treeFile(i int) string { return fmt.Sprintf("lib/d%d/file%d.txt", i%7, i) }

// sentContents returns how many contents of trees were sent.
func (d deployed) sentContents() (n int) {
	for _, f := range d.Send {
		if strings.HasSuffix(f.Name, " of build/echo.tree") {
			n++
		}
	}
	return n
}

// blobs returns how many blobs a data directory has.
func blobs(t *testing.T, data string) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(data, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestADirectoryIsDeployedWithItsModule(t *testing.T) {
	e := startEdge(t)
	a := treeApp(t, 300)
	first := e.must(a, "deploy", "--yes")
	if first.sentContents() != 300 || !first.Activated || !strings.Contains(first.changes(), "added module build/echo.wasm") {
		t.Errorf("%d contents, %s", first.sentContents(), first.changes())
	}
	e.Want(200, nil, "GET", "/hello", "")
	stored := blobs(t, e.data)

	// A change of one file sends it and the listing.
	a.Write(treeFile(7), "changed")
	if err := os.Remove(a.Path(treeFile(8))); err != nil {
		t.Fatal(err)
	}
	a.Write("lib/new.txt", "content 9 "+strings.Repeat("x", 9)) // the node has it
	dry := e.must(a, "deploy", "--dry-run")
	if dry.sent() != "build/echo.tree d0/file7.txt of build/echo.tree" {
		t.Errorf("sent %s", dry.sent())
	}
	got := e.run(a, "deploy", "--yes")
	for _, want := range []string{
		"files: 300 files, ", "file\n", "  ~ build/echo.wasm d0/file7.txt  size: 17 bytes → 7 bytes\n",
		"  - build/echo.wasm d1/file8.txt  size: 18 bytes\n", "  + build/echo.wasm new.txt  size: 19 bytes\n",
	} {
		if got.Status != 0 || !strings.Contains(got.Stdout, want) {
			t.Errorf("no %q: %d %s%s", want, got.Status, got.Stdout, got.Stderr)
		}
	}
	if n := blobs(t, e.data); n != stored+2 {
		t.Errorf("%d blobs after %d", n, stored)
	}
	if list := a.Must(append([]string{"releases"}, e.flags...)...); strings.Count(list, "  2        300    ") != 2 {
		t.Error(list)
	}
	if d := e.must(a, "diff"); d.Before != first.After || strings.Count(d.changes(), " file build/echo.wasm ") != 3 {
		t.Errorf("%+v", d.Changes)
	}

	// A rollback and a restart need no client.
	a.Must(append([]string{"rollback", "--yes"}, e.flags...)...)
	e.Want(200, nil, "GET", "/hello", "")
	e.Stop()
	e.start()
	e.Want(200, nil, "GET", "/hello", "")
	if d := e.must(a, "diff"); d.After != first.After {
		t.Errorf("active is %s, not %s", d.After, first.After)
	}

	// Damage: a content is missing.
	e.Stop()
	second := e.data + "/blobs"
	entries, err := os.ReadDir(second)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		path := filepath.Join(second, entry.Name())
		if text, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(text), "content 42 ") {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.start()
	e.Want(503, nil, "GET", "/hello", "")
	if text := e.Stderr.String(); !strings.Contains(text, "d0/file42.txt of build/echo.tree") {
		t.Error(text)
	}
	a.Write(treeFile(42), "content 42 "+strings.Repeat("x", 42))
	repaired := e.must(a, "deploy", "--yes")
	if repaired.sent() != "d0/file42.txt of build/echo.tree" {
		t.Errorf("sent %s", repaired.sent())
	}
	e.Want(200, nil, "GET", "/hello", "")
}

// waitingTree is an app whose program waits for requests and has a directory of n files. It answers with the mark.
func waitingTree(t *testing.T, mark string, n int) *harness.App {
	t.Helper()
	harness.NeedPatches(t)
	a := markedApp(t, mark, "")
	makeWait(t, a, mark)
	for i := range n {
		a.Write(treeFile(i), fmt.Sprint("content ", i))
	}
	a.Write("lib/only.txt", "only "+mark)
	return a
}

// wantMark checks which release is served.
func wantMark(s *harness.Server, want string) {
	s.T.Helper()
	got := s.Do("GET", "/release/x", "")
	if mark, err := markOf([]byte(got.Body)); got.Status != 200 || err != nil || mark != want {
		s.T.Errorf("%d %s, %v; want %s", got.Status, mark, err, want)
	}
}

// contents returns the paths of the blobs that begin with a text.
func contents(t *testing.T, data, text string) (paths []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(data, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		path := filepath.Join(data, "blobs", entry.Name())
		content, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it is deleted meanwhile
			t.Fatal(err)
		}
		if err == nil && strings.HasPrefix(string(content), text) {
			paths = append(paths, path)
		}
	}
	return paths
}

// Every blob of a release is damaged, or only one content. A deployment with --send-all repairs them.
func TestSendAllRepairsDamagedFilesOfAModule(t *testing.T) {
	e := startEdge(t)
	a := waitingTree(t, "1001", 30)
	e.must(a, "deploy", "--yes")
	wantMark(e.Server, "1001")
	for _, damaged := range [][]string{contents(t, e.data, "1001"), contents(t, e.data, "")} {
		for _, path := range damaged {
			text := []byte(harness.MustRead(t, path))
			text[len(text)/2] ^= 1
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		e.Stop()
		e.start()
		e.Want(503, nil, "GET", "/release/x", "")
		if log := e.Stderr.String(); !strings.Contains(log, `"msg":"active release cannot be read"`) || !strings.Contains(log, "runner deploy --send-all") {
			t.Error(log)
		}
		if done := e.must(a, "deploy", "--yes", "--send-all"); done.sentContents() != 0 || len(done.Send) != blobs(t, e.data) {
			t.Errorf("%d of %d blobs were sent", len(done.Send), blobs(t, e.data))
		}
		wantMark(e.Server, "1001")
	}
}

// The listing of the active release is damaged: another release can be deployed, and so can the same one again.
func TestADamagedListingStopsNoDeployment(t *testing.T) {
	e := startEdge(t)
	first := waitingTree(t, "1001", 5)
	e.must(first, "deploy", "--yes")
	for _, path := range contents(t, e.data, "") {
		if text := harness.MustRead(t, path); strings.Contains(text, "d0/file0.txt") {
			if err := os.WriteFile(path, []byte(strings.Replace(text, "d0/file0.txt", "d0/file9.txt", 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if dry := e.must(first, "deploy", "--dry-run"); dry.sent() != "build/release.tree" {
		t.Errorf("the same release sends %s", dry.sent())
	}
	got := e.run(waitingTree(t, "1002", 5), "deploy", "--yes")
	if got.Status != 0 || !strings.Contains(got.Stdout+got.Stderr, "the files of build/release.tree were not compared: ") {
		t.Errorf("%d %s%s", got.Status, got.Stdout, got.Stderr)
	}
	wantMark(e.Server, "1002")
	if got := e.run(first, "rollback", "--yes"); got.Status == 0 || !strings.Contains(got.Stderr, "runner deploy --send-all") {
		t.Errorf("a rollback: %d %s", got.Status, got.Stderr)
	}
	wantMark(e.Server, "1002")
	e.must(first, "deploy", "--yes")
	wantMark(e.Server, "1001")
}

// A backup has the files of the modules: a program that waits starts from a restored data directory.
func TestABackupHasTheFilesOfModules(t *testing.T) {
	e := startEdge(t)
	for _, mark := range []string{"1001", "1002"} {
		e.must(waitingTree(t, mark, 30), "deploy", "--yes")
	}
	file, restored := e.app.Path("edge.backup"), filepath.Join(t.TempDir(), "restored")
	e.app.Must("backup", file, "--data", e.data)
	e.app.Must("backup", "--check", file)
	e.Stop()
	e.app.Must("restore", file, "--data", restored, "--pepper", filepath.Join(e.data, "pepper"))
	if want, got := blobs(t, e.data), blobs(t, restored); got != want {
		t.Errorf("%d blobs are restored, want %d", got, want)
	}
	s := e.app.Serve("--data", restored)
	wantMark(s, "1002")
	e.app.Must("rollback", "--yes", "--data", restored)
	wantMark(s, "1001")
}

// With a release the node deletes the contents that no other release lists.
func TestContentsAreDeletedWithTheLastReleaseThatListsThem(t *testing.T) {
	d := &disturbed{edge: startEdge(t, "RUNNER_RELEASE_KEEP=1"), t: t}
	deploy := func(mark string) string { return d.must(waitingTree(t, mark, 30), "deploy", "--yes").After }
	first := deploy("1001")
	deploy("1002")
	d.ageBlobs()
	deploy("1003")
	d.WaitForOutput(`"msg":"release deleted","release":"` + first + `"`)
	d.WaitUntil("the files of the first release are deleted", func() bool { return len(contents(t, d.data, "only 1001")) == 0 })
	for text, want := range map[string]int{"only 1002": 1, "only 1003": 1, "content ": 30} {
		if got := len(contents(t, d.data, text)); got != want {
			t.Errorf("%d contents begin with %q, want %d", got, text, want)
		}
	}
	d.app.Must("rollback", "--yes", "--data", d.data)
	wantMark(d.Server, "1002")
}

func TestADirectoryThatCannotBeReadIsReportedByEachCommand(t *testing.T) {
	a := treeApp(t, 1)
	a.Remove("lib")
	const want = "error[E559]: files of module echo: directory lib does not exist: create it, or name another directory"
	built := harness.NewApp(t, "app echo\nmodule echo { files: \"lib\" }\nroutes(\"/\", auth: none) { GET /hello -> hello }\n", "")
	built.Write("handlers/hello.ts", harness.HelloSource("hello"))
	for _, args := range [][]string{{"check"}, {"check", "--modules"}, {"build"}, {"serve"}, {"deploy", "--yes"}} {
		app := a
		if args[0] == "build" {
			app = built
		}
		if got := app.Run(args...); got.Status != 3 || strings.Count(got.Stdout+got.Stderr, want) != 1 {
			t.Errorf("%s: %d %s%s", args, got.Status, got.Stdout, got.Stderr)
		}
	}
	a.Write("lib/a", "a")
	if got := a.Run("check", "--modules"); got.Status != 0 {
		t.Errorf("with the directory: %d %s%s", got.Status, got.Stdout, got.Stderr)
	}
	s := a.Serve()
	active := releasesOf(t, a).Active.ID
	if err := os.Symlink("/etc/passwd", a.Path("lib/link")); err != nil {
		t.Fatal(err)
	}
	if got := a.Run("reload"); got.Status != 3 || !strings.Contains(got.Stderr, "lib/link is a symbolic link that leaves the directory") {
		t.Errorf("a reload: %d %s", got.Status, got.Stderr)
	}
	if err := os.Remove(a.Path("lib/link")); err != nil {
		t.Fatal(err)
	}
	a.Write("lib/a", "b")
	if got := a.Must("reload", "--json"); !strings.Contains(got, `"build/echo.tree"`) {
		t.Errorf("a reload says %s", got)
	}
	if now := releasesOf(t, a); now.Active.ID == active || now.Active.Previous != active {
		t.Errorf("%+v", now.Active)
	}
	s.Want(200, nil, "GET", "/hello", "")
}

// A saved file of a module reloads the app, and builds nothing.
func TestDevServesTheFilesOfAModuleAfterASave(t *testing.T) {
	a := harness.NewApp(t, harness.DevSchema+"module little { files: \"lib\" }\n", "")
	a.Write("handlers/hello.ts", harness.HelloSource("one"))
	a.Write("lib/sub/a.txt", "a")
	s := a.Start("dev")
	s.WantBody("/v1/hello", "one")
	a.Write("lib/sub/a.txt", "b")
	s.WaitForOutput(`lib/sub/a\.txt changed: serving 3 routes`)
	a.Write("lib/new.txt", "c")
	s.WaitForOutput(`lib/new\.txt changed: serving 3 routes`)
	a.Remove("lib")
	s.WaitForOutput(`error\[E559\]: files of module little: directory lib does not exist`)
	a.Write("lib/b.txt", "d")
	s.WaitForOutput(`lib/b\.txt changed: serving 3 routes`)
	a.Write("app.schema", harness.DevSchema)
	s.WaitForOutput(`runner: app\.schema changed: serving 3 routes`)
	if text := s.Stderr.String(); strings.Count(text, "built build") != 1 {
		t.Error(text)
	}
}

// A save of one file among thousands is served within a second.
func TestDevServesASavedFileAmongThousands(t *testing.T) {
	files, saves := 2000, 2
	if harness.Soak {
		files, saves = 20_000, 15
	}
	a := waitingTree(t, "1001", files-2)
	s := a.Start("dev")
	s.WaitUntil("the program", func() bool { return s.Get("/release/x", "").Status == 200 })
	var took []float64
	for i := range saves {
		mark := fmt.Sprint(2000 + i)
		began := time.Now()
		a.Write("lib/mark.txt", mark)
		s.WaitUntil(mark, func() bool { return strings.HasPrefix(s.Get("/release/x", "").Body, `["1001","`+mark+`",`) })
		took = append(took, time.Since(began).Seconds())
	}
	t.Logf("a saved file of %d was served after %.2f s (median)", files, median(took))
	if harness.Soak && median(took) > 1 {
		t.Error("more than a second")
	}
}

func TestThousandsOfFilesAreDeployedInSeconds(t *testing.T) {
	e := startEdge(t)
	a := treeApp(t, 2000)
	began := time.Now()
	done := e.must(a, "deploy", "--yes")
	took := time.Since(began)
	began = time.Now()
	again := e.must(a, "deploy", "--yes")
	t.Logf("%d contents in %v; again in %v", done.sentContents(), took, time.Since(began))
	if done.sentContents() != 2000 || len(again.Send) != 0 {
		t.Errorf("sent %d contents, then %s", done.sentContents(), again.sent())
	}
}

func TestAnAppInPythonIsDeployed(t *testing.T) {
	if !patches.Applied {
		t.Skip("built without the patches of third_party: use tools/go.sh")
	}
	e := startEdge(t)
	a := harness.NewApp(t, `app edge
routes("/", auth: none, rateLimit: none) { GET /hello -> hello }
`, "")
	source := func(text string) {
		a.Write("handlers/a.py", "from runner import handler\n\n@handler\ndef hello(req):\n    return \""+text+"\"\n")
		a.Must("build")
	}
	source("one")
	e.must(a, "deploy", "--yes")
	e.WantBody("/hello", "one")
	source("two")
	second := e.must(a, "deploy", "--yes")
	if sent := second.sent(); !strings.Contains(sent, "handlers/a.py of build/python.tree") || strings.Contains(sent, "build/python.wasm") {
		t.Errorf("sent %s", sent)
	}
	e.WantBody("/hello", "two")
	a.Must(append([]string{"rollback", "--yes"}, e.flags...)...)
	e.WantBody("/hello", "one")
	e.Stop()
	e.start()
	e.WantBody("/hello", "one")

	// The block of the schema is a part of the release.
	a.Write("python.schema", "python { startTimeout: 2m }\n")
	if got := e.must(a, "deploy", "--yes"); !strings.Contains(got.changes(), "changed module build/python.wasm") {
		t.Errorf("changed %s", got.changes())
	}
	e.WantBody("/hello", "two")
}
