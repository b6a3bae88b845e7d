package hostabi

import (
	"io/fs"
	"os"
	"strings"
	"sync"

	"runner.example/hostabi/files"
)

// zonesAt is the directory of time zones, of the machine and of programs.
const zonesAt = "usr/share/zoneinfo"

// zonesNode is the directory of time zones, which a program has open from the beginning; nil: the machine has none.
// Programs find it in the root directory too. But those that bring files of their own, such as CPython's in /usr, look
// only into the open directory that has the longest part of a path.
func zonesNode() *files.Node {
	if z := zones(); z != nil {
		return &z.Node
	}
	return nil
}

// zones has the time zones of the machine, which all programs share; nil: it has none. They are found once, and
// the content of each is read when a program first reads it.
var zones = sync.OnceValue(func() *files.Root {
	machine := os.DirFS("/" + zonesAt)
	root := files.NewRoot()
	_ = fs.WalkDir(machine, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // it is left out
		case d.IsDir():
			if path == "posix" || path == "right" { // the same zones again, and those with leap seconds
				return fs.SkipDir
			}
		case !strings.HasPrefix(d.Name(), "."):
			if info, err := fs.Stat(machine, path); err == nil && info.Mode().IsRegular() {
				read := func() ([]byte, error) { return fs.ReadFile(machine, path) }
				_ = root.Add(files.File{Path: path, Size: info.Size(), Read: read}) // a walk has no path twice
			}
		}
		return nil
	})
	if len(root.Children()) == 0 {
		return nil
	}
	return root
})
