package atomicio_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"runner.example/internal/atomicio"
)

func TestAFileIsReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path+".new", []byte("left by a crash"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"first", "", "a longer second"} {
		if err := atomicio.WriteFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != content {
			t.Errorf("read %q, %v; want %q", text, err, content)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("the file has mode %v, %v", info.Mode(), err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("the directory has %v, %v", entries, err)
		}
	}
	if runtime.GOOS == "windows" {
		return // a file that package os has opened is not replaced there
	}
	before, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	if err := atomicio.WriteFile(path, []byte("third")); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 100)
	if n, _ := before.Read(text); string(text[:n]) != "a longer second" { // it is another file
		t.Errorf("a reader of the file before finds %q", text[:n])
	}
}

func TestAFileThatCannotBeWrittenLeavesTheOneBefore(t *testing.T) {
	dir := t.TempDir()
	if err := atomicio.WriteFile(filepath.Join(dir, "missing", "file"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a directory that is not there: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "file.new", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := atomicio.WriteFile(path, []byte("after")); err == nil {
		t.Error("written over a directory")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "before" {
		t.Errorf("the file is %q, %v", text, err)
	}
}
