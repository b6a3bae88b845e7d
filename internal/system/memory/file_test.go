package memory_test

import (
	"os"
	"path/filepath"
	"testing"

	"runner.example/internal/system/memory"
)

func TestAMappedFileHasItsBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := memory.Map(path)
	if err != nil || string(b) != "content" {
		t.Fatalf("the file has %q: %v", b, err)
	}
	if err := os.Remove(path); err != nil {
		t.Errorf("the file cannot be removed while it is used: %v", err)
	}
	if string(b) != "content" {
		t.Errorf("after the file was removed its bytes are %q", b)
	}
	if err := memory.Unmap(b); err != nil {
		t.Error(err)
	}
	if _, err := memory.Map(path); !os.IsNotExist(err) {
		t.Errorf("a file that is missing: %v", err)
	}
}
