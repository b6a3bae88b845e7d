package tree_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/tree"
)

// write writes files below dir.
func write(t *testing.T, dir string, contents map[string]string) {
	t.Helper()
	for path, content := range contents {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// contentsOf reads all files of a tree.
func contentsOf(t *testing.T, made *tree.Tree) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, f := range made.List() {
		content, err := made.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		all[f.Path] = string(content)
	}
	return all
}

func TestADirectoryIsReadWithItsLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no files with such names")
	}
	app := t.TempDir()
	write(t, app, map[string]string{
		"outside.txt": "x", "lib/a.txt": "a", "lib/A.txt": "A", "lib/.hidden": "h", "lib/sub/deep/b": "b", "lib/\xff\n": "odd", "lib/empty": "",
		"lib/.git/config": "x", "lib/sub/.git": "x", "lib/.gitignore": "g",
	})
	if err := os.Mkdir(filepath.Join(app, "lib", "nothing"), 0o755); err != nil {
		t.Fatal(err)
	}
	link(t, "a.txt", filepath.Join(app, "lib", "link"))
	link(t, "../a.txt", filepath.Join(app, "lib", "sub", "up"))
	link(t, "sub/deep", filepath.Join(app, "lib", "dir"))
	link(t, "lib", filepath.Join(app, "other"))
	want := map[string]string{
		"a.txt": "a", "A.txt": "A", ".hidden": "h", "sub/deep/b": "b", "\xff\n": "odd", "empty": "", ".gitignore": "g",
		"link": "a", "sub/up": "a", "dir/b": "b",
	}
	for _, dir := range []string{"lib", "other"} {
		made, err := tree.OpenDir(app, dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := contentsOf(t, made); !maps.Equal(got, want) {
			t.Errorf("%s: read %q, want %q", dir, got, want)
		}
		if parsed, err := tree.Parse(made.Listing()); err != nil || !slices.Equal(parsed, made.List()) {
			t.Errorf("%s: parsed as %v, %v", dir, parsed, err)
		}
	}
}

func TestLimitsOfADirectory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 256 MiB")
	}
	app := t.TempDir()
	deep := "deep/" + strings.Repeat("d/", tree.MaxDepth)
	write(t, app, map[string]string{deep + "file": "x", "large/file": "", "wide/file": ""})
	if err := os.Truncate(filepath.Join(app, "large", "file"), tree.MaxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		path := filepath.Join(app, "wide", fmt.Sprint("f", i))
		write(t, app, map[string]string{"wide/f" + fmt.Sprint(i): ""})
		if err := os.Truncate(path, tree.MaxFileBytes); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 150 { // 22,500 paths lead to directories
		if err := os.MkdirAll(filepath.Join(app, "links", "all", fmt.Sprint(i)), 0o755); err != nil {
			t.Fatal(err)
		}
		link(t, "all", filepath.Join(app, "links", fmt.Sprint("to", i)))
	}
	for dir, want := range map[string]string{
		"deep": "has 33 elements, and the limit is 32", "large": "large/file has more than 33554432 bytes, which is the limit of a file",
		"wide": "directory wide: the files have more than 268435456 bytes together", "links": "directory links: there are more than 20000 directories",
	} {
		if _, err := tree.OpenDir(app, dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
}
