package disk_test

import (
	"testing"

	"golang.org/x/sys/windows"
)

// notInWine skips a test of something that Wine does not do as Windows does.
func notInWine(t *testing.T, what string) {
	t.Helper()
	if windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil {
		t.Skipf("Wine %s", what)
	}
}
