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
		"link": text, "second": text,
	} {
		if got, err := os.ReadFile(path(name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, want %d, or they differ: %v", name, len(got), len(want), err)
		}
	}
	for _, name := range []string{"before", "unsynced", "removed", "replacing"} {
		if _, err := os.Stat(path(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
}

// A power cut with a seed leaves some of the pages that were not synced.
func TestAPowerCutMayKeepSomePages(t *testing.T) {
	d := harness.NewForgetfulDisk(t)
	d.Cut()
	d.Mount(1)
	name := filepath.Join(d.Dir, "file")
	const pages = 64
	if err := os.WriteFile(name, bytes.Repeat([]byte("x"), pages*4096), 0o600); err != nil {
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
