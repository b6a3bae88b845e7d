package secret_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"runner.example/internal/secret"
)

func TestAWrittenSecretIsReadAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	f, err := secret.CreateFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Write(token); err != nil {
		t.Fatal(err)
	}
	f.Close(true)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	values, err := secret.Resolve([]string{"TOKEN"}, func(name string) (string, bool) {
		return path, name == "RUNNER_SECRETS_TOKEN_FILE"
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := values.Get("TOKEN"); got.Reveal() != token {
		t.Errorf("read %q", got.Reveal())
	}
	if _, err := secret.CreateFile(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second file of that name: %v", err)
	}
}

func TestASecretFileThatIsNotKeptIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	f, err := secret.CreateFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Close(false)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file: %v", err)
	}
	(*secret.File)(nil).Close(true)
}
