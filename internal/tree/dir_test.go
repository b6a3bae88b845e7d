package tree_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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

func TestADirectoryThatCannotBeATreeIsRefusedWithAllProblems(t *testing.T) {
	app := t.TempDir()
	write(t, app, map[string]string{"outside.txt": "x", "file": "x", "lib/a": "a", "lib/sub/b": "b", "data/db": "x", "with/data/db": "x"})
	lib := filepath.Join(app, "lib")
	link(t, "../outside.txt", filepath.Join(lib, "leaves"))
	link(t, filepath.Join(lib, "a"), filepath.Join(lib, "absolute"))
	link(t, "absent", filepath.Join(lib, "dangling"))
	link(t, "loop", filepath.Join(lib, "loop"))
	link(t, "..", filepath.Join(lib, "sub", "cycle"))
	link(t, t.TempDir(), filepath.Join(app, "away"))
	link(t, "data", filepath.Join(app, "indirect"))
	if err := errors.Join(syscall.Mkfifo(filepath.Join(lib, "pipe"), 0o600), syscall.Mkfifo(filepath.Join(app, "fifo"), 0o600),
		os.Mkdir(filepath.Join(app, "void"), 0o755)); err != nil {
		t.Fatal(err)
	}
	link(t, "pipe", filepath.Join(lib, "to-pipe"))
	for dir, want := range map[string][]string{
		"lib": {
			"lib/absolute is a symbolic link that leaves the directory: copy its target into it",
			"lib/dangling is a symbolic link whose target does not exist: remove it",
			"lib/leaves is a symbolic link that leaves the directory: copy its target into it",
			"lib/loop is a symbolic link that leads to itself, or over too many others: remove it",
			"lib/pipe is neither a file nor a directory: remove it",
			"lib/sub/cycle is a link to a directory that it is in: remove it",
			"lib/to-pipe is neither a file nor a directory: remove it",
		},
		"absent":   {"directory absent does not exist: create it, or name another directory"},
		"file":     {"directory file is not a directory: name a directory"},
		"fifo":     {"directory fifo is not a directory: name a directory"},
		"away":     {"directory away is a symbolic link that leaves the directory: copy its target into it"},
		"void":     {"directory void has no files: add some, or name another one"},
		"data":     {"directory data is in the data directory of the server: name another one"},
		"indirect": {"directory indirect is in the data directory of the server: name another one"},
		"with":     {"with/data is the data directory of the server: move it, or name another directory"},
		"../x":     {`directory ../x has the element ".."`},
		".":        {`directory . has the element "."`},
		"/etc":     {"directory /etc is absolute"},
	} {
		_, err := tree.OpenDir(app, dir, filepath.Join(app, "data"), filepath.Join(app, "with", "data"), filepath.Join(app, "nowhere"))
		invalid, ok := errors.AsType[*tree.InvalidError](err)
		if !ok || !slices.Equal(invalid.Problems, want) {
			t.Errorf("%s:\n%v\nwant\n%s", dir, err, strings.Join(want, "\n"))
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

func TestAFileThatIsChangedAfterwardsIsNotRead(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"changed": func(path string) error { return os.WriteFile(path, []byte("c0ntent"), 0o600) },
		"longer":  func(path string) error { return os.WriteFile(path, []byte("content."), 0o600) },
		"shorter": func(path string) error { return os.Truncate(path, 3) },
		"removed": os.Remove,
		"a pipe":  func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
		"a link outside": func(path string) error {
			return errors.Join(os.WriteFile(filepath.Join(path, "../../outside"), []byte("content"), 0o600), os.Remove(path), os.Symlink("../outside", path))
		},
	} {
		app := t.TempDir()
		write(t, app, map[string]string{"lib/a": "content", "lib/b": "b"})
		made, err := tree.OpenDir(app, "lib")
		if err != nil {
			t.Fatal(err)
		}
		if err := change(filepath.Join(app, "lib", "a")); err != nil {
			t.Fatal(err)
		}
		if content, err := made.ReadFile("a"); err == nil {
			t.Errorf("%s: read %q", name, content)
		}
		if content, err := made.ReadFile("b"); err != nil || string(content) != "b" {
			t.Errorf("%s: another file: %q, %v", name, content, err)
		}
	}
}
