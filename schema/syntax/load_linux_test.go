package syntax_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"runner.example/schema/syntax"
)

func TestLoadRefusesAPipe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.schema")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := syntax.Load(dir); err == nil || !strings.Contains(err.Error(), path+" is not a regular file") {
		t.Errorf("err = %v", err)
	}
}
