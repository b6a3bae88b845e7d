package main_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"runner.example/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// A power cut leaves what was synced, by each of the ways to write, and forgets the rest.
func TestAPowerCutForgetsWhatWasNotSynced(t *testing.T) {
	d := harness.NewForgetfulDisk(t)
	const size = 3 * 4096
	text := bytes.Repeat([]byte("x"), size)
	path := func(name string) string { return filepath.Join(d.Dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	open := func(name string) *os.File {
		t.Helper()
		file, err := os.OpenFile(path(name), os.O_CREATE|os.O_RDWR, 0o600)
		must(err)
		t.Cleanup(func() { file.Close() })
		return file
	}
	written := func(name string, sync func(*os.File) error) *os.File {
		t.Helper()
		file := open(name)
		_, err := file.Write(text)
		must(errors.Join(err, sync(file)))
		return file
	}
	no := func(*os.File) error { return nil }
	fdatasync := func(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
	mapped := func(name string, sync bool) {
		t.Helper()
		file := open(name)
		must(file.Truncate(size))
		memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		must(err)
		copy(memory, text)
		if sync {
			must(unix.Msync(memory, unix.MS_SYNC))
		}
		must(unix.Munmap(memory))
		must(file.Close())
	}

	syncDir := func(name string) {
		t.Helper()
		dir, err := os.Open(path(name))
		must(err)
		must(errors.Join(dir.Sync(), dir.Close()))
	}

	must(os.Mkdir(path("dir"), 0o700))
	written("synced", (*os.File).Sync)
	written("dir/fdatasynced", fdatasync)
	written("forgotten", no)
	mapped("msynced", true)
	mapped("mapped", false)
	written("before", (*os.File).Sync)
	must(os.Rename(path("before"), path("renamed")))
	written("unsynced", no)
	must(os.Rename(path("unsynced"), path("dir/renamed")))
	written("replacing", (*os.File).Sync)
	must(os.Rename(path("replacing"), path("synced")))
	written("removed", (*os.File).Sync)
	must(os.Remove(path("removed")))
	_, err := written("longer", (*os.File).Sync).Write(text)
	must(err)
	_, err = written("changed", (*os.File).Sync).WriteAt([]byte("y"), 4096)
	must(err)
	again := written("again", (*os.File).Sync)
	_, err = again.WriteAt([]byte("y"), 4096)
	must(errors.Join(err, fdatasync(again)))
	must(written("shorter", (*os.File).Sync).Truncate(4096))
	must(unix.Fallocate(int(open("allocated").Fd()), 0, 0, size))
	must(os.Symlink("synced", path("link")))
	must(os.Link(path("synced"), path("second")))
	for _, name := range []string{"moved", "kept", "replaced", "target"} {
		must(os.WriteFile(path(name), text, 0o600))
		must(open(name).Sync())
	}
	must(os.Mkdir(path("empty"), 0o700))
	syncDir(".")
	written("own sync", (*os.File).Sync) // is enough for a new file
	must(os.Mkdir(path("new"), 0o700))
	syncDir("new") // and for a new directory

	// No sync follows these.
	must(os.Rename(path("moved"), path("moved away")))
	must(os.Remove(path("kept")))
	must(os.Remove(path("empty")))
	must(os.WriteFile(path("replacement"), text[:4096], 0o600))
	must(os.Rename(path("replacement"), path("replaced")))
	must(os.Rename(path("target"), path("dir/target")))
	must(os.Link(path("synced"), path("third")))
	must(os.Symlink("synced", path("new link")))
	must(os.Mkdir(path("unsynced dir"), 0o700))
	written("unsynced dir/file", no)
	if _, err := written("new/a name alone", no).WriteAt([]byte("y"), 0); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path("replaced")); err != nil || !bytes.Equal(got, text[:4096]) {
		t.Errorf("before the power cut: %q, %v", got, err)
	}
	if got, err := os.ReadFile(path("forgotten")); err != nil || !bytes.Equal(got, text) {
		t.Errorf("before the power cut: %q, %v", got, err)
	}
	d.Cut()
	d.Mount(0)

	changed := bytes.Clone(text)
	changed[4096] = 'y'
	for name, want := range map[string][]byte{
		"synced": text, "dir/fdatasynced": text, "forgotten": {}, "msynced": text, "mapped": make([]byte, size), "renamed": text,
		"dir/renamed": {}, "longer": text, "changed": text, "again": changed, "shorter": text[:4096], "allocated": make([]byte, size),
		"link": text, "second": text, "own sync": text, "moved": text, "kept": text, "replaced": text, "target": text,
	} {
		if got, err := os.ReadFile(path(name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, want %d, or they differ: %v", name, len(got), len(want), err)
		}
	}
	for _, name := range []string{
		"before", "unsynced", "removed", "replacing", "moved away", "replacement", "dir/target", "third", "new link", "unsynced dir",
		"new/a name alone",
	} {
		if _, err := os.Lstat(path(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
	for _, name := range []string{"empty", "new"} {
		if info, err := os.Stat(path(name)); err != nil || !info.IsDir() {
			t.Errorf("the directory %s: %v", name, err)
		}
	}
	// What is written after a power cut is there after the next one.
	must(os.Rename(path("moved"), path("moved away")))
	syncDir(".")
	d.Cut()
	d.Mount(0)
	if got, err := os.ReadFile(path("moved away")); err != nil || !bytes.Equal(got, text) {
		t.Errorf("after the second power cut: %d bytes, %v", len(got), err)
	}
}

// A power cut with a seed leaves some of the pages that were not synced.
func TestAPowerCutMayKeepSomePages(t *testing.T) {
	d := harness.NewForgetfulDisk(t)
	d.Cut()
	d.Mount(1)
	name := filepath.Join(d.Dir, "file")
	const pages = 64
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Sync(); err != nil { // without it, the name may be forgotten too
		t.Fatal(err)
	}
	if _, err := file.Write(bytes.Repeat([]byte("x"), pages*4096)); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	d.Cut()
	if _, err := os.Stat(name); err != nil && !errors.Is(err, syscall.ENOENT) {
		t.Errorf("after the power cut: %v", err)
	}
	d.Mount(0)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if kept := bytes.Count(text, []byte("x")) / 4096; kept < pages/4 || kept > pages*3/4 {
		t.Errorf("%d of %d pages were kept", kept, pages)
	}
}
