package operations_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

func TestADirectoryThatCannotBeReadIsReportedByEachCommand(t *testing.T) {
	a := treeApp(t, 1)
	if err := os.RemoveAll(a.Path("lib")); err != nil {
		t.Fatal(err)
	}
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
	if err := os.RemoveAll(a.Path("lib")); err != nil {
		t.Fatal(err)
	}
	s.WaitForOutput(`error\[E559\]: files of module little: directory lib does not exist`)
	a.Write("lib/b.txt", "d")
	s.WaitForOutput(`lib/b\.txt changed: serving 3 routes`)
	a.Write("app.schema", harness.DevSchema)
	s.WaitForOutput(`runner: app\.schema changed: serving 3 routes`)
	if text := s.Stderr.String(); strings.Count(text, "built build") != 1 {
		t.Error(text)
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
