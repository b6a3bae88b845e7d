package secret_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"runner.example/internal/secret"
)

func TestASecretFileMustBeARegularFileOfLimitedSize(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(writeFile(t, "linked"), link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, says string }{
		{pipe, "not a regular file"}, {dir, "not a regular file"}, {"/dev/zero", "not a regular file"},
		{writeFile(t, strings.Repeat("x", 64<<10+1)), "64 KiB"},
		{writeFile(t, strings.Repeat("x", 64<<10)), ""}, {link, ""},
	} {
		_, err := secret.Resolve([]string{"A"}, env(map[string]string{"RUNNER_SECRETS_A_FILE": c.path}), nil)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error that says %q", c.path, err, c.says)
		}
	}
}
