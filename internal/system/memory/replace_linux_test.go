package memory_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"runner.example/internal/system/memory"
)

func TestReplacedPagesDoNotFollowTheFile(t *testing.T) {
	page := os.Getpagesize()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	set := func(text string) {
		t.Helper()
		for at := range 2 {
			if _, err := f.WriteAt([]byte(text), int64(at*page)); err != nil {
				t.Fatal(err)
			}
		}
	}
	set("old")
	if err := f.Truncate(int64(2 * page)); err != nil {
		t.Fatal(err)
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, 2*page, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mapped)
	wrong := errors.New("wrong")
	if err := memory.Replace(mapped[page:], func([]byte) error { return wrong }); err != wrong {
		t.Errorf("the error of fill: %v", err)
	}
	set("mid")
	if text := string(mapped[page : page+3]); text != "mid" {
		t.Errorf("pages that were not replaced have %q", text)
	}
	if err := memory.Replace(mapped[page:], func(b []byte) error { copy(b, "new"); return nil }); err != nil {
		t.Fatal(err)
	}
	set("end")
	memory.Release(mapped[:page])
	if first, second := string(mapped[:3]), string(mapped[page:page+3]); first != "end" || second != "new" {
		t.Errorf("the page of the file has %q, the replaced one %q", first, second)
	}
}
