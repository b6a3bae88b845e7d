package operations_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// wantAsset requests a file and compares its content.
func wantAsset(t *testing.T, s *harness.Server, path, want string) {
	t.Helper()
	if got := s.Do("GET", path, ""); got.Status != 200 || got.Body != want {
		t.Errorf("%s is %d %.100q, want %q", path, got.Status, got.Body, want)
	}
}

func TestAssetsAreDeployedAsDifferencesAndRolledBack(t *testing.T) {
	e := startEdge(t)
	a := harness.NewApp(t, "app site\nassets(\"/\", dir: \"public\", spa: \"index.html\")\n", "")
	a.Write("public/index.html", "one")
	a.Write("public/.env", "SECRET")
	for i := range 300 {
		a.Write(fmt.Sprintf("public/files/%03d.txt", i), fmt.Sprint("file ", i))
	}
	got := e.run(a, "deploy", "--yes")
	if got.Status != 0 || !strings.Contains(got.Stderr, "W576") || !strings.Contains(got.Stderr, "not served: .env") || !strings.Contains(got.Stderr, "sent 303 files") {
		t.Fatalf("%d %s%s", got.Status, got.Stdout, got.Stderr)
	}
	e.Want(404, nil, "GET", "/.env", "")
	wantAsset(t, e.Server, "/", "one")
	wantAsset(t, e.Server, "/files/299.txt", "file 299")

	a.Write("public/index.html", "two")
	a.Write("public/new.txt", "new")
	a.Remove("public/files/000.txt")
	second := e.must(a, "deploy", "--yes")
	if second.sent() != "assets/public.tree index.html of assets/public.tree new.txt of assets/public.tree" {
		t.Errorf("sent %s", second.sent())
	}
	const changes = "changed assets /, changed file public/index.html, added file public/new.txt, removed file public/files/000.txt"
	for change := range strings.SplitSeq(changes, ", ") {
		if !strings.Contains(second.changes(), change) {
			t.Errorf("changes %s, want %s", second.changes(), change)
		}
	}
	wantAsset(t, e.Server, "/", "two")
	e.Want(404, nil, "GET", "/files/000.txt", "")
	if again := e.run(a, "deploy", "--yes"); again.Status != 0 || !strings.Contains(again.Stderr, "is active already") {
		t.Errorf("again: %d %s", again.Status, again.Stderr)
	}

	a.Must(append([]string{"rollback", "--yes"}, e.flags...)...)
	wantAsset(t, e.Server, "/", "one")
	wantAsset(t, e.Server, "/files/000.txt", "file 0")
	e.Want(404, nil, "GET", "/new.txt", "")

	// After a crash, the release that is active is served.
	e.Kill()
	e.start()
	wantAsset(t, e.Server, "/", "one")
}

func TestADirectoryOfAssetsThatCannotBeDeployedIsRefusedWithAllProblems(t *testing.T) {
	a := harness.NewApp(t, "app site\nassets(\"/\", dir: \"public\", spa: \"app.html\")\nassets(\"/none\", dir: \"none\")\n", "")
	for name, content := range map[string]string{
		"public/index.html": "x", "public/Readme.txt": "1", "public/README.txt": "2", "public/a\nb": "x", `public/a\b`: "x", "secret": "s",
	} {
		a.Write(name, content)
	}
	if err := os.Symlink("../secret", a.Path("public/leak.txt")); err != nil {
		t.Fatal(err)
	}
	large, err := os.Create(a.Path("public/large.bin"))
	if err != nil {
		t.Fatal(err)
	}
	if err := large.Truncate(1 << 30); err != nil { // no blocks of the disk
		t.Fatal(err)
	}
	if err := large.Close(); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"check"}, {"serve", "--listen", "127.0.0.1:0"}} {
		got := a.Run(command...)
		out := got.Stdout + got.Stderr
		if got.Status == 0 {
			t.Errorf("%s: %s", command[0], out)
		}
		for _, want := range []string{
			"public/leak.txt is a symbolic link that leaves the directory: copy its target into it",
			"public/large.bin has more than 33554432 bytes, which is the limit of a file",
			`"public/a\nb" has a control character, or is not UTF-8: give it another name`,
			`public/a\b has a backslash: give it another name`,
			"differs only in the case of letters from public/R",
			"directory none does not exist: create it, or name another directory",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%s does not say %q:\n%s", command[0], want, out)
			}
		}
	}
	a.Remove("public/leak.txt", "public/large.bin", "public/a\nb", `public/a\b`, "public/README.txt")
	a.Write("none/x", "x")
	if got := a.Run("check"); got.Status == 0 || !strings.Contains(got.Stdout, "spa: directory public has no file app.html: name one of its files") {
		t.Errorf("without the file of spa: %d %s", got.Status, got.Stdout)
	}
}

// A reload of a site with 20,000 files does not wait for their compressed forms.
func TestTwentyThousandAssetsAreServed(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 20,000 files")
	}
	a := harness.NewApp(t, "app site\nassets(\"/\", dir: \"public\")\n", "")
	for i := range 20_000 { // the limit
		a.Write(fmt.Sprintf("public/%02d/%05d.js", i%100, i), fmt.Sprintf("%s // %d\n", strings.Repeat("export const a = 1;\n", 40), i))
	}
	s := a.Serve()
	last := s.Do("GET", "/99/19999.js", "")
	if last.Status != 200 || !strings.HasSuffix(last.Body, "// 19999\n") {
		t.Errorf("the last file: %d %.40q", last.Status, last.Body)
	}
	a.Write("public/99/19999.js", "changed")
	a.Must("reload")
	wantAsset(t, s, "/99/19999.js", "changed")
	a.Write("public/one.js", "too many")
	if got := a.Run("reload"); got.Status == 0 || !strings.Contains(got.Stderr, "there are more than 20000 files") {
		t.Errorf("one more file: %d %s", got.Status, got.Stderr)
	}
	wantAsset(t, s, "/99/19999.js", "changed")
}
