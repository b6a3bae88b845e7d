package hostabi_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/files"
)

// Errnos of WASI that only files have.
const (
	wasiExists     = 20
	wasiIO         = 29
	wasiIsDir      = 31
	wasiTooMany    = 33
	wasiTooLong    = 37
	wasiNoFile     = 44
	wasiNotDir     = 54
	wasiReadOnly   = 69
	wasiSeekPipe   = 70
	wasiNotCapable = 76
)

// rootFile is the descriptor of the root. Paths are written to pathAt, results to resultAt.
const (
	rootFile = 3
	pathAt   = 1024
	resultAt = 8192
)

// someFiles has files and directories, one file of which cannot be read.
func someFiles(t testing.TB) *files.Root {
	t.Helper()
	root := hostabi.NewRoot()
	for path, text := range map[string]string{
		"app/main.py": "print('hello')\n", "app/lib/a.txt": "0123456789", "app/lib/b.txt": "", "app/lib/deep/c": "c", "etc/x": "x",
	} {
		read := func() ([]byte, error) { return []byte(text), nil }
		if err := root.Add(files.File{Path: path, Size: int64(len(text)), Read: read}); err != nil {
			t.Fatal(err)
		}
	}
	broken := func() ([]byte, error) { return nil, errors.New("the disk is broken") }
	if err := root.Add(files.File{Path: "app/broken", Size: 7, Read: broken}); err != nil {
		t.Fatal(err)
	}
	return root
}

// withFiles makes the guest a program that has someFiles.
func withFiles(t testing.TB) *guest {
	t.Helper()
	g := newGuest(t, hostabi.Limits{HostCalls: 1 << 20, MovedBytes: 1 << 30})
	g.call.BeginProgram(&hostabi.Program{Args: []string{"program"}, Root: someFiles(t)})
	return g
}

// path writes a path to memory, and returns where it is and its length.
func (g *guest) path(text string) (at, length uint64) {
	g.module.Memory().Write(pathAt, []byte(text))
	return pathAt, uint64(len(text))
}

// open opens a path below a directory.
func (g *guest) open(directory uint64, path string, flags uint64) (fd uint64, errno uint32) {
	at, length := g.path(path)
	errno = g.system("path_open", directory, 0, at, length, flags, 0, 0, 0, resultAt)
	n, _ := g.module.Memory().ReadUint32Le(resultAt)
	return uint64(n), errno
}

// list returns the entries of a directory, read with room for so many bytes at a time.
func (g *guest) list(t testing.TB, fd uint64, room uint64) (names []string) {
	t.Helper()
	cookie := uint64(0)
	for {
		if errno := g.system("fd_readdir", fd, resultAt, room, cookie, pathAt); errno != wasiOK {
			t.Fatalf("fd_readdir: %d", errno)
		}
		used, _ := g.module.Memory().ReadUint32Le(pathAt)
		all := g.at(resultAt, used)
		for len(all) >= 24 {
			n := binary.LittleEndian.Uint32(all[16:])
			if len(all) < 24+int(n) {
				break
			}
			names = append(names, fmt.Sprintf("%s %d", all[24:24+n], all[20]))
			cookie = binary.LittleEndian.Uint64(all)
			all = all[24+n:]
		}
		if uint64(used) < room {
			return names
		}
	}
}

func TestAProgramReadsItsFiles(t *testing.T) {
	g := withFiles(t)
	fd, errno := g.open(rootFile, "app/./lib/../lib//a.txt", 0)
	if errno != wasiOK || fd <= rootFile {
		t.Fatalf("path_open: %d, descriptor %d", errno, fd)
	}
	const part = 4096
	read := func(room, want string) {
		t.Helper()
		g.module.Memory().WriteUint64Le(part, uint64(len(room))<<32|resultAt)
		if errno := g.system("fd_read", fd, part, 1, pathAt); errno != wasiOK {
			t.Fatalf("fd_read: %d", errno)
		}
		if n, _ := g.module.Memory().ReadUint32Le(pathAt); string(g.at(resultAt, n)) != want {
			t.Errorf("read %q, want %q", g.at(resultAt, n), want)
		}
	}
	read("....", "0123")
	if errno := g.system("fd_seek", fd, 2, 1, resultAt); errno != wasiOK {
		t.Fatalf("fd_seek: %d", errno)
	}
	read("..", "67")
	if errno := g.system("fd_tell", fd, resultAt); errno != wasiOK || g.at(resultAt, 1)[0] != 8 {
		t.Errorf("fd_tell: %d, %v", errno, g.at(resultAt, 8))
	}
	read("......", "89")
	read("......", "")
	minus := func(n int64) uint64 { return uint64(-n) }
	if errno := g.system("fd_seek", fd, minus(3), 2, resultAt); errno != wasiOK {
		t.Fatalf("fd_seek: %d", errno)
	}
	read("......", "789")
	if errno := g.system("fd_pread", fd, part, 1, 5, pathAt); errno != wasiOK || string(g.at(resultAt, 5)) != "56789" {
		t.Errorf("fd_pread: %d, %q", errno, g.at(resultAt, 5))
	}
	if errno := g.system("fd_seek", fd, minus(1), 0, resultAt); errno != wasiInval {
		t.Errorf("an offset below zero: %d", errno)
	}
	at, length := g.path("app/lib/a.txt")
	if errno := g.system("path_filestat_get", rootFile, 0, at, length, resultAt); errno != wasiOK ||
		g.at(resultAt, 64)[16] != 4 || g.at(resultAt, 64)[32] != 10 {
		t.Errorf("path_filestat_get: %d, %v", errno, g.at(resultAt, 64))
	}
	if errno := g.system("fd_close", fd); errno != wasiOK {
		t.Errorf("fd_close: %d", errno)
	}
	if errno := g.system("fd_tell", fd, resultAt); errno != wasiBadFD {
		t.Errorf("a closed file: %d", errno)
	}
}

func TestDirectoriesAreListed(t *testing.T) {
	g := withFiles(t)
	lib, errno := g.open(rootFile, "app/lib", 2)
	if errno != wasiOK {
		t.Fatalf("path_open: %d", errno)
	}
	want := []string{". 3", ".. 3", "a.txt 4", "b.txt 4", "deep 3"}
	for _, room := range []uint64{30, 40, 100, 1000} {
		if got := g.list(t, lib, room); !slices.Equal(got, want) {
			t.Errorf("with room for %d bytes: %q, want %q", room, got, want)
		}
	}
	if got := g.list(t, rootFile, 500); !slices.Equal(got, []string{". 3", ".. 3", "app 3", "etc 3", "runner 3", "usr 3"}) {
		t.Errorf("the root has %q", got)
	}
	if fd, errno := g.open(lib, "deep/../a.txt", 0); errno != wasiOK || fd != lib+1 {
		t.Errorf("a path of a directory: %d", errno)
	}
}

func TestNoPathLeavesItsDirectoryAndNothingIsWritten(t *testing.T) {
	g := withFiles(t)
	lib, _ := g.open(rootFile, "app/lib", 0)
	file, _ := g.open(rootFile, "etc/x", 0)
	const create, mustBeDirectory, exclusive, truncate = 1, 2, 4, 8
	for _, row := range []struct {
		directory uint64
		path      string
		flags     uint64
		want      uint32
	}{
		{rootFile, "..", 0, wasiNotCapable}, {rootFile, "app/../../etc/x", 0, wasiNotCapable},
		{lib, "../main.py", 0, wasiNotCapable}, {lib, "deep/../../main.py", 0, wasiNotCapable},
		{lib, "/etc/x", 0, wasiNotCapable}, {lib, "", 0, wasiNoFile}, {lib, "nothing", 0, wasiNoFile},
		{lib, "nothing/../a.txt", 0, wasiNoFile}, {lib, "a.txt/../b.txt", 0, wasiNotDir}, {lib, "a.txt/", 0, wasiNotDir},
		{lib, "a.txt", mustBeDirectory, wasiNotDir}, {lib, "new", create, wasiReadOnly}, {lib, "a.txt", create, wasiOK},
		{lib, "a.txt", create | exclusive, wasiExists}, {lib, "a.txt", truncate, wasiReadOnly},
		{file, "x", 0, wasiNotDir}, {99, "x", 0, wasiBadFD}, {0, "x", 0, 52}, {lib, strings.Repeat("a/", 2049), 0, wasiTooLong},
	} {
		if _, errno := g.open(row.directory, row.path, row.flags); errno != row.want {
			t.Errorf("open %q of %d with flags %d: %d, want %d", row.path, row.directory, row.flags, errno, row.want)
		}
	}
	at, length := g.path("a.txt")
	for name, words := range map[string][]uint64{
		"path_unlink_file": {lib, at, length}, "path_remove_directory": {lib, at, length},
		"path_create_directory": {lib, at, length}, "path_rename": {lib, at, length, lib, at, 1},
		"path_link": {lib, 0, at, length, lib, at, 1}, "path_filestat_set_times": {lib, 0, at, length, 0, 0, 0},
		"path_symlink": {at, length, lib, at, 1}, "fd_allocate": {file, 0, 1}, "fd_filestat_set_size": {file, 0},
		"fd_filestat_set_times": {file, 0, 0, 0},
	} {
		if errno := g.system(name, words...); errno != wasiReadOnly {
			t.Errorf("%s: %d, want %d", name, errno, wasiReadOnly)
		}
	}
	g.module.Memory().WriteUint64Le(resultAt, 1<<32)
	for _, name := range []string{"fd_write", "fd_read"} {
		if errno := g.system(name, lib, resultAt, 1, pathAt); errno != map[string]uint32{"fd_write": wasiBadFD, "fd_read": wasiIsDir}[name] {
			t.Errorf("%s of a directory: %d", name, errno)
		}
	}
	broken, _ := g.open(rootFile, "app/broken", 0)
	if errno := g.system("fd_read", broken, resultAt, 1, pathAt); errno != wasiIO {
		t.Errorf("a file that cannot be read: %d", errno)
	}
	for range 300 {
		if _, errno := g.open(lib, "a.txt", 0); errno == wasiTooMany {
			return
		}
	}
	t.Error("more than 256 files can be open")
}

func TestDescriptorsAreUsedAgainAndMoved(t *testing.T) {
	g := withFiles(t)
	a, _ := g.open(rootFile, "etc/x", 0)
	b, _ := g.open(rootFile, "app/main.py", 0)
	if errno := g.system("fd_renumber", b, a); errno != wasiOK {
		t.Fatalf("fd_renumber: %d", errno)
	}
	if errno := g.system("fd_filestat_get", a, resultAt); errno != wasiOK || g.at(resultAt, 64)[32] != 15 {
		t.Errorf("the moved file: %d, %v", errno, g.at(resultAt, 64))
	}
	if c, errno := g.open(rootFile, "etc/x", 0); errno != wasiOK || c != b {
		t.Errorf("the next file has descriptor %d, want %d", c, b)
	}
}

// TestAnOpenFileIsFlushedAndKeepsItsFlags: Ruby clears O_NONBLOCK of a file that it loads.
func TestAnOpenFileIsFlushedAndKeepsItsFlags(t *testing.T) {
	g := withFiles(t)
	fd, _ := g.open(rootFile, "app/main.py", 0)
	for name, words := range map[string][]uint64{
		"fd_fdstat_set_flags": {fd, 0}, "fd_fdstat_set_rights": {fd, 2, 2}, "fd_sync": {fd}, "fd_datasync": {fd},
	} {
		if errno := g.system(name, words...); errno != wasiOK {
			t.Errorf("%s%v: %d", name, words, errno)
		}
		words[0] = fd + 1
		if errno := g.system(name, words...); errno != wasiBadFD {
			t.Errorf("%s%v of a closed file: %d, want %d", name, words, errno, wasiBadFD)
		}
	}
}

func TestPointersOfFilesOutsideOfMemoryAreFaults(t *testing.T) {
	g := withFiles(t)
	at, length := g.path("app/main.py")
	file, _ := g.open(rootFile, "app/main.py", 0)
	for name, words := range map[string][]uint64{
		"fd_prestat_get": {rootFile, memoryBytes}, "fd_prestat_dir_name": {rootFile, memoryBytes, 1},
		"fd_filestat_get": {file, memoryBytes - 63}, "fd_readdir": {rootFile, memoryBytes, 1, 0, resultAt},
		"path_open": {rootFile, 0, at, length, 0, 0, 0, 0, memoryBytes}, "path_filestat_get": {rootFile, 0, at, length, memoryBytes},
		"fd_seek": {file, 0, 0, memoryBytes}, "fd_tell": {file, memoryBytes}, "fd_read": {file, memoryBytes, 1, resultAt},
	} {
		if errno := g.system(name, words...); errno != wasiFault {
			t.Errorf("%s%v: %d, want %d", name, words, errno, wasiFault)
		}
	}
	if next, errno := g.open(rootFile, "etc/x", 0); errno != wasiOK || next != file+1 {
		t.Errorf("after a fault the next descriptor is %d (%d), want %d", next, errno, file+1)
	}
}

// Its root has no other files than the time zones.
func TestAHandlerThatIsNotAProgramHasOnlyTheTimeZones(t *testing.T) {
	g := withFiles(t)
	for range 2 {
		g.call.Begin()
		for _, path := range []string{"app/main.py", "etc/x", "runner/host", "usr/share/zoneinfo/Mars/Base"} {
			if _, errno := g.open(rootFile, path, 0); errno != wasiNoFile {
				t.Errorf("%s: %d, want %d", path, errno, wasiNoFile)
			}
		}
		want, err := os.ReadFile("/usr/share/zoneinfo/Europe/Berlin")
		if fd, errno := g.open(rootFile, "usr/share/zoneinfo/Europe/Berlin", 0); err == nil && (errno != wasiOK || fd != rootFile+1 || g.readFrom(t, fd, 1000) != string(want)) {
			t.Errorf("a zone: descriptor %d, %d", fd, errno)
		}
	}
	if errno := g.system("fd_prestat_get", rootFile+1, resultAt); errno != wasiBadFD {
		t.Errorf("a second root: %d", errno)
	}
}

func TestPathsOfFilesThatDoNotFitAreRefused(t *testing.T) {
	root := files.NewRoot()
	for _, row := range []struct {
		path string
		ok   bool
	}{
		{"a/b", true}, {"a/c", true}, {"a", false}, {"a/b", false}, {"a/b/c", false}, {"", false}, {"/a", false}, {"x/../y", false},
		{"x//y", false}, {"x/\x00", false}, {"x/.", false}, {"x", true},
	} {
		if err := root.Add(files.File{Path: row.path}); (err == nil) != row.ok {
			t.Errorf("%q: %v", row.path, err)
		}
	}
	if n := root.Child("a"); n == nil || len(n.Children()) != 2 || !bytes.Equal([]byte(n.Children()[1].Name), []byte("c")) {
		t.Errorf("the directory a has %v", n)
	}
}

// The time zones of the machine are files of each program.
func TestProgramsReadTheTimeZonesOfTheMachine(t *testing.T) {
	want, err := os.ReadFile("/usr/share/zoneinfo/Europe/Berlin")
	if err != nil {
		t.Skipf("this machine has no time zones: %v", err)
	}
	g := withFiles(t)
	fd, errno := g.open(rootFile, "usr/share/zoneinfo/Europe/Berlin", 0)
	if errno != wasiOK {
		t.Fatalf("path_open: %d", errno)
	}
	if got := g.readFrom(t, fd, 1000); got != string(want) {
		t.Errorf("the zone has %d bytes, want %d", len(got), len(want))
	}
	const zones, name = rootFile + 1, "/usr/share/zoneinfo"
	if errno := g.system("fd_prestat_get", zones, resultAt); errno != wasiOK || g.at(resultAt, 8)[4] != byte(len(name)) {
		t.Errorf("the directory: %d, %v", errno, g.at(resultAt, 8))
	}
	if errno := g.system("fd_prestat_dir_name", zones, resultAt, uint64(len(name))); errno != wasiOK || string(g.at(resultAt, uint32(len(name)))) != name {
		t.Errorf("its path: %d, %s", errno, g.at(resultAt, uint32(len(name))))
	}
	if errno := g.system("fd_prestat_dir_name", zones, resultAt, uint64(len(name))-1); errno != wasiInval {
		t.Errorf("its path in too little room: %d", errno)
	}
	if fd, errno = g.open(zones, "Europe/Berlin", 0); errno != wasiOK || g.readFrom(t, fd, 1000) != string(want) {
		t.Errorf("the zone below it: %d", errno)
	}
	if _, errno := g.open(zones, "../zoneinfo/UTC", 0); errno == wasiOK {
		t.Error("a path leaves the directory")
	}
	g.system("fd_close", zones)
	if _, errno := g.open(rootFile, "app", 0); errno != wasiOK {
		t.Fatal(errno)
	}
	if errno := g.system("fd_prestat_get", zones, resultAt); errno != wasiBadFD {
		t.Errorf("another directory has its descriptor: %d", errno)
	}
}
