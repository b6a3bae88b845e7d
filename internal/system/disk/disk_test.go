package disk_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"runner.example/internal/system/disk"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func open(t *testing.T, path string, flag int) *os.File {
	t.Helper()
	f, err := disk.Open(path, flag, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestAnOpenFileCanBeReplaced(t *testing.T) {
	notInWine(t, "replaces no open file")
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "file"), "old")
	old := open(t, path, os.O_RDONLY)
	if err := disk.Rename(write(t, filepath.Join(dir, "next"), "new"), path); err != nil {
		t.Fatal(err)
	}
	if text := read(t, path); text != "new" {
		t.Errorf("the name has %q", text)
	}
	if text, err := io.ReadAll(old); err != nil || string(text) != "old" {
		t.Errorf("the open file has %q: %v", text, err)
	}
}

func TestAFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "file"), "old")
	if err := disk.Rename(write(t, filepath.Join(dir, "next"), "new"), path); err != nil {
		t.Fatal(err)
	}
	if text := read(t, path); text != "new" {
		t.Errorf("the name has %q", text)
	}
	if err := disk.Rename(filepath.Join(dir, "missing"), path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := disk.Rename(path, filepath.Join(dir, "missing", "file")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a missing directory: %v", err)
	}
}

func TestAnOpenFileCanBeRenamedAndRemoved(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "file"), "text")
	moved := open(t, path, os.O_RDWR)
	if err := disk.Rename(path, filepath.Join(dir, "moved")); err != nil {
		t.Fatalf("rename an open file: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "moved")); err != nil {
		t.Fatalf("remove an open file: %v", err)
	}
	if _, err := moved.WriteAt([]byte("more"), 3); err != nil {
		t.Errorf("write to a removed file: %v", err)
	}
	if err := moved.Close(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestOpenCreatesAsPackageOSDoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := disk.Open(path, os.O_RDWR, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	f := open(t, path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if _, err := f.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
	if text, err := io.ReadAll(open(t, path, os.O_RDWR|os.O_CREATE)); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestALinkIsNotFollowed(t *testing.T) {
	notInWine(t, "opens no symbolic link")
	dir := t.TempDir()
	file, link := write(t, filepath.Join(dir, "file"), "text"), filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err) // Windows needs a right for that
	}
	open(t, file, os.O_RDONLY|disk.NoFollow)
	if f, err := disk.Open(link, os.O_RDONLY|disk.NoFollow, 0); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("%v, %v", f, err)
	}
}

func TestAFileIsSynced(t *testing.T) {
	dir := t.TempDir()
	f := open(t, filepath.Join(dir, "file"), os.O_RDWR|os.O_CREATE)
	if _, err := f.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(disk.SyncData(f), disk.SyncDir(dir)); err != nil {
		t.Error(err)
	}
	if err := disk.SyncDir(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
	f.Close()
	if err := disk.SyncData(f); err == nil {
		t.Error("a closed file is synced")
	}
}

func TestAReservedFileKeepsItsContent(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "file"), os.O_RDWR|os.O_CREATE)
	if _, err := f.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(4 << 20); err != nil {
		t.Fatal(err)
	}
	hole, size, err := disk.Hole(f)
	if err != nil || size != 4<<20 || hole < 4 || hole > size {
		t.Errorf("the first hole is at %d: %v", hole, err)
	}
	for _, at := range []int64{1 << 20, 4 << 20, 8 << 20} {
		if err := disk.Reserve(f, at, 1<<20); err != nil {
			t.Errorf("at %d: %v", at, err)
		}
	}
	info, err := f.Stat()
	if err != nil || info.Size() != 4<<20 {
		t.Errorf("%v, %v", info, err)
	}
	begin := make([]byte, 4)
	if _, err := f.ReadAt(begin, 0); err != nil || string(begin) != "text" {
		t.Errorf("%q, %v", begin, err)
	}
}

func TestAFileSystemHasSpace(t *testing.T) {
	free, total, err := disk.Space(t.TempDir())
	if err != nil || free <= 0 || total != 0 && free > total {
		t.Errorf("%d of %d bytes are free: %v", free, total, err)
	}
	if _, _, err := disk.Space(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}

func TestAFullDiskIsFound(t *testing.T) {
	if !disk.IsFull(fmt.Errorf("write: %w", syscall.ENOSPC)) || disk.IsFull(io.ErrUnexpectedEOF) || disk.IsFull(nil) {
		t.Error("IsFull is wrong")
	}
}

func TestRenameNewReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	from, to := write(t, filepath.Join(dir, "from"), "new"), write(t, filepath.Join(dir, "to"), "old")
	held := open(t, from, os.O_RDWR)
	if err := disk.RenameNew(from, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("to a file: %v", err)
	}
	if read(t, from) != "new" || read(t, to) != "old" {
		t.Error("a file was changed")
	}
	if err := disk.RenameNew(from, to+"2"); err != nil || read(t, to+"2") != "new" {
		t.Errorf("to a new name: %v", err)
	}
	if _, err := held.Stat(); err != nil {
		t.Error(err)
	}
}

func TestADirectoryReplacesOnlyAnEmptyOne(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"from", "empty", "full"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	from := filepath.Join(dir, "from")
	write(t, filepath.Join(from, "file"), "text")
	write(t, filepath.Join(dir, "full", "file"), "kept")
	if err := disk.RenameDir(from, filepath.Join(dir, "full")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("to a full directory: %v", err)
	}
	for _, name := range []string{"empty", "new"} {
		if err := disk.RenameDir(from, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		from = filepath.Join(dir, name)
		if text := read(t, filepath.Join(from, "file")); text != "text" {
			t.Errorf("%s has %q", name, text)
		}
	}
	if text := read(t, filepath.Join(dir, "full", "file")); text != "kept" {
		t.Errorf("the full directory has %q", text)
	}
}

func TestADirectoryIsNotAMountPoint(t *testing.T) {
	dir := t.TempDir()
	if mounted, err := disk.IsMountPoint(dir); mounted || err != nil {
		t.Errorf("%v, %v", mounted, err)
	}
}

func TestPrivateFilesAreForTheirOwner(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(below, "file"), "text")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := disk.MakeTreePrivate(dir); err != nil {
		t.Fatal(err)
	}
	if read(t, file) != "text" {
		t.Error("the owner cannot read the file")
	}
	if err := disk.CheckOwner(dir); err != nil {
		t.Error(err)
	}
	single := write(t, filepath.Join(t.TempDir(), "single"), "text")
	if err := disk.MakePrivate(single); err != nil {
		t.Fatal(err)
	}
	created := filepath.Join(t.TempDir(), "created")
	f, err := disk.CreatePrivate(created)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("text"); err != nil || f.Close() != nil || read(t, created) != "text" {
		t.Errorf("the owner cannot write the file: %v", err)
	}
	if _, err := disk.CreatePrivate(created); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
	notInWine(t, "does not keep access control lists")
	for _, path := range []string{file, below, dir, single, created} {
		if err := disk.CheckPrivate(path); err != nil {
			t.Errorf("%s %v", path, err)
		}
	}
}
