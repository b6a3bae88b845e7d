package tree_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"runner.example/internal/tree"
)

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
		`lib\sub`:  {`directory lib\sub has a backslash: write a path with /`},
	} {
		_, err := tree.OpenDir(app, dir, filepath.Join(app, "data"), filepath.Join(app, "with", "data"), filepath.Join(app, "nowhere"))
		invalid, ok := errors.AsType[*tree.InvalidError](err)
		if !ok || !slices.Equal(invalid.Problems, want) {
			t.Errorf("%s:\n%v\nwant\n%s", dir, err, strings.Join(want, "\n"))
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
