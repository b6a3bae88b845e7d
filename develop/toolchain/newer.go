package toolchain

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"runner.example/schema"
)

// NewerSource is a source of an app that was changed after its module was built.
type NewerSource struct {
	// File is a file or directory of the source with a later time than the module. Module is the module. Both are
	// relative to the app directory.
	File, Module string
	// Missing: there is no module.
	Missing bool
}

// String says it in one line.
func (n NewerSource) String() string {
	if n.Missing {
		return fmt.Sprintf("%s is not built yet: %s does not exist", n.File, n.Module)
	}
	return fmt.Sprintf("%s is newer than %s", n.File, n.Module)
}

// Newer returns the sources of an app that are newer than their modules: those that a build would change. It compares the
// times of files and directories, and not those that toolchains write. name is the name of the app. An app without sources
// has none.
func Newer(dir, name string) ([]NewerSource, error) {
	found, err := find(dir)
	if errors.Is(err, ErrNothing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var newer []NewerSource
	add := func(source, root, module string, without map[string]bool) error {
		module = "build/" + module + ".wasm"
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(module)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			newer = append(newer, NewerSource{File: source, Module: module, Missing: true})
			return nil
		case err != nil:
			return err
		}
		file, err := newerThan(dir, info.ModTime(), root, without)
		if file != "" {
			newer = append(newer, NewerSource{File: file, Module: module})
		}
		return err
	}
	own := map[string]bool{} // directories with modules of their own
	for _, s := range found.directories {
		own[s.path] = true
		err = errors.Join(err, add(s.path, s.path, s.name, nil))
	}
	if len(found.files) > 0 {
		err = errors.Join(err, add(found.files[0], "handlers", name, own))
	}
	if len(found.python) > 0 {
		err = errors.Join(err, add(found.python[0], "handlers", schema.PythonModule, own))
	}
	return newer, err
}

// newerThan returns the first file in root that was changed after the time, or else the first directory, from which a
// file was removed; empty: none was. It skips some directories.
func newerThan(dir string, built time.Time, root string, without map[string]bool) (newer string, err error) {
	err = filepath.WalkDir(filepath.Join(dir, root), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case name != root && (IsWritten(d.Name()) || strings.HasPrefix(d.Name(), ".")) || without[name]:
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := os.Stat(path) // of a link, the time of its target
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !info.ModTime().After(built) {
			return err
		}
		if d.IsDir() {
			newer = cmp.Or(newer, name)
			return nil
		}
		newer = name
		return fs.SkipAll
	})
	return newer, err
}

// IsWritten reports whether toolchains write files or directories of this name, so that they are not sources.
func IsWritten(name string) bool { return written[name] }

var written = map[string]bool{
	"node_modules": true, "target": true, "build": true, "dist": true, "__pycache__": true,
	"Cargo.lock": true, "go.sum": true, "package-lock.json": true,
}
