package wasm_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"runner.example/internal/wasm"
)

// ReadFile does not block on a file that is not regular, and reads at most as many bytes
// as a module may have.
func TestOnlyRegularFilesWithinTheLimitAreRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(at("plain"), []byte("12345678"), 0o600),
		os.WriteFile(at("empty"), nil, 0o600),
		os.Symlink("plain", at("link")),
		os.WriteFile(at("long"), []byte("\x00asm\x01\x00\x00\x00\x00"), 0o600),
		os.WriteFile(at("huge"), []byte("\x00asm\x01\x00\x00\x00"), 0o600),
		os.Truncate(at("huge"), 1<<40),
		os.WriteFile(at("large page"), []byte("<html></html>"), 0o600),
		syscall.Mkfifo(at("pipe"), 0o600),
		os.Symlink("/dev/zero", at("zeros")),
		os.Symlink("/dev/tty", at("terminal")),
		os.Mkdir(at("directory"), 0o700),
		os.Symlink("nowhere", at("dangling")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct{ name, want, refused string }{
		{"plain", "12345678", ""},
		{"link", "12345678", ""},
		{"empty", "", ""},
		{"long", "", "is 9 bytes large, and a module may have 8"},
		{"huge", "", "is 1099511627776 bytes large, and a module may have 8"},
		{"large page", "", "is not a WebAssembly module"},
		{"pipe", "", "is a pipe, not a file"},
		{"zeros", "", "is a device, not a file"},
		{"terminal", "", "terminal"}, // without one it cannot even be opened
		{"directory", "", "is a directory, not a file"},
		{"dangling", "", "no such file"},
		{"nothing", "", "no such file"},
	} {
		file, err := wasm.ReadFile(at(row.name), 8)
		switch {
		case row.refused == "" && (err != nil || !bytes.Equal(file, []byte(row.want))):
			t.Errorf("%s: %q, %v", row.name, file, err)
		case row.refused != "" && (err == nil || !strings.Contains(err.Error(), row.refused) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %q, %v; want %q", row.name, file, err, row.refused)
		}
	}
}
