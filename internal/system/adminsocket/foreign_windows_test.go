package adminsocket_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"

	"runner.example/internal/system/adminsocket"
	"runner.example/internal/system/process"
)

func TestTheNameOfAPipeIsChecked(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{`\\.\pipe\other`, `\\.\pipe\runner-A\..\..\C:\file`, `\\.\pipe\runner-`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := adminsocket.Dial(t.Context(), dir, name); err == nil || errors.Is(err, adminsocket.ErrNone) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAPipeOfAnotherUserIsRefused(t *testing.T) {
	// Administrators may give a pipe to their group. It stands for another user.
	descriptor, err := windows.SecurityDescriptorFromString("O:BAD:(A;;GA;;;WD)")
	if err != nil {
		t.Fatal(err)
	}
	rights := &windows.SecurityAttributes{SecurityDescriptor: descriptor}
	rights.Length = uint32(unsafe.Sizeof(*rights))
	pipe := `\\.\pipe\runner-` + rand.Text()
	at, err := windows.UTF16PtrFromString(pipe)
	if err != nil {
		t.Fatal(err)
	}
	handle, err := windows.CreateNamedPipe(at, windows.PIPE_ACCESS_DUPLEX, windows.PIPE_TYPE_BYTE, 1, 4096, 4096, 0, rights)
	if errors.Is(err, windows.ERROR_INVALID_OWNER) {
		t.Skip("this user is no administrator")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer windows.CloseHandle(handle)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(pipe), 0o600); err != nil {
		t.Fatal(err)
	}
	if conn, err := adminsocket.Dial(t.Context(), dir, name); err == nil || !strings.Contains(err.Error(), "another user answers") {
		t.Errorf("%v, %v", conn, err)
	}
}

// A loss of power may leave a file without its content.
func TestAnEmptyNameIsReplaced(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "\x00\x00\x00"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := adminsocket.Dial(t.Context(), dir, name); !errors.Is(err, adminsocket.ErrNone) {
			t.Errorf("%q: %v", text, err)
		}
		ln := listen(t, dir)
		echo(ln)
		if got, want := ask(t, dir, name), process.User()+" hello"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		_ = ln.Close()
	}
}
