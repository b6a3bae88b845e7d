package tree_test

import (
	"errors"
	"maps"
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

func TestPublicFilesHaveNoDotNamesAndOneCase(t *testing.T) {
	app := t.TempDir()
	write(t, app, map[string]string{
		"good/index.html": "i", "good/a/b.js": "b", "good/.env": "x", "good/.git/config": "x", "good/a/.DS_Store": "x",
		"good/.well-known/security.txt": "s", "good/a/.well-known/x": "x", "good/.well-known/.x": "x", "good/a b": "space",
		"bad/Readme": "1", "bad/README": "2", "bad/Dir/a": "a", "bad/dir/b": "b", "bad/\xff": "x", "bad/new\nline": "x", `bad/back\slash`: "x",
		"hidden/.env": "x", "outside": "x",
	})
	link(t, "../outside", filepath.Join(app, "bad", "leaves"))
	link(t, "index.html", filepath.Join(app, "good", "home"))
	made, omitted, err := tree.OpenPublic(app, "good")
	if err != nil {
		t.Fatal(err)
	}
	got := contentsOf(t, made)
	want := map[string]string{"index.html": "i", "home": "i", "a/b.js": "b", ".well-known/security.txt": "s", "a b": "space"}
	if !maps.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	if want := []string{".env", ".git", ".well-known/.x", "a/.DS_Store", "a/.well-known"}; !slices.Equal(omitted, want) {
		t.Errorf("omitted %q, want %q", omitted, want)
	}
	_, _, err = tree.OpenPublic(app, "bad")
	invalid, ok := errors.AsType[*tree.InvalidError](err)
	if !ok || len(invalid.Problems) != 6 {
		t.Fatalf("got %v", err)
	}
	for i, want := range []string{
		`"bad/\xff" has a control character, or is not UTF-8: give it another name`,
		`"bad/new\nline" has a control character, or is not UTF-8: give it another name`,
		`bad/README differs only in the case of letters from bad/Readme: give one of them another name`,
		`bad/back\slash has a backslash: give it another name`,
		`bad/dir differs only in the case of letters from bad/Dir: give one of them another name`,
		`bad/leaves is a symbolic link that leaves the directory: copy its target into it`,
	} {
		// Which of two names is read first depends on the file system.
		other := strings.NewReplacer("README", "Readme", "Readme", "README", "bad/dir", "bad/Dir", "bad/Dir", "bad/dir").Replace(want)
		if !slices.Contains(invalid.Problems, want) && !slices.Contains(invalid.Problems, other) {
			t.Errorf("problem %d: %q is not among\n%s", i, want, strings.Join(invalid.Problems, "\n"))
		}
	}
	if _, _, err := tree.OpenPublic(app, "hidden"); err == nil || err.Error() != "directory hidden has no files: add some, or name another one" {
		t.Errorf("got %v", err)
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
