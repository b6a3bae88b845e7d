package atomicio_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"runner.example/internal/atomicio"
	"runner.example/tests/harness"
)

func TestAPowerCutLosesNoFileThatWasWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the file system of the test")
	}
	disk := harness.NewForgetfulDisk(t)
	path := filepath.Join(disk.Dir, "file")
	for _, content := range []string{"first", "second"} {
		if err := atomicio.WriteFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		disk.Cut()
		disk.Mount(0)
		if text, err := os.ReadFile(path); err != nil || string(text) != content {
			t.Errorf("after a power cut: %q, %v; want %q", text, err, content)
		}
	}
}

func TestAFileGetsItsNameWhenItIsComplete(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	names := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	for _, finish := range []func(*atomicio.File, string) error{(*atomicio.File).Rename, (*atomicio.File).Commit} {
		text := fmt.Sprintf("%p", finish)
		f, err := atomicio.Create(dir, ".being-made-", 0o666)
		if err != nil {
			t.Fatal(err)
		}
		other, err := atomicio.Create(dir, ".being-made-", 0o666)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if found := names(); !strings.HasPrefix(found[0], ".being-made-") || !strings.HasPrefix(found[1], ".being-made-") {
			t.Errorf("before the name: %q", found)
		}
		if err := finish(f, path); err != nil {
			t.Fatal(err)
		}
		f.Discard()
		if err := finish(other, filepath.Join(dir, "missing", "file")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("into a directory that is not there: %v", err)
		}
		other.Discard()
		if found := names(); len(found) != 1 {
			t.Errorf("after all: %q", found)
		}
		if found, err := os.ReadFile(path); err != nil || string(found) != text {
			t.Errorf("read %q, %v; want %q", found, err, text)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
			t.Errorf("the file has mode %v, %v", info.Mode(), err)
		}
	}
}
