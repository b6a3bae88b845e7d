package store_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"runner.example/state/store"
)

func TestADirectoryOfAnotherUserIsRefusedAndNotChanged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the owner of a directory")
	}
	dir := t.TempDir()
	switch err := os.Chown(dir, 12345, 12345); {
	case errors.Is(err, syscall.EINVAL):
		t.Skip("root is the only user here")
	case err != nil:
		t.Fatal(err)
	}
	_, err := store.Open(store.Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "user 12345") || !strings.Contains(err.Error(), "chown") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v was made in it", err, left)
	}
}
