package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// recordName is a file in the folder build that tells which modules there a build
// has made, and of what.
const recordName = ".built"

// record is what that file says, by the names of modules in the folder.
type record map[string]making

// making is how a module came to be. A file of other content is not that module: who
// has put it there keeps it.
type making struct {
	Source string `json:"source"` // "handlers", or the folder handlers/<name>
	SHA256 string `json:"sha256"` // hexadecimal
}

// readRecord reads the record of an app. One that is not there or that is damaged
// says nothing: then no module is known to be a build's own.
func readRecord(dir string) record {
	r := record{}
	text, err := os.ReadFile(filepath.Join(dir, "build", recordName))
	if err != nil || json.Unmarshal(text, &r) != nil || r == nil {
		return record{}
	}
	for name := range r {
		if filepath.Base(name) != name || filepath.Ext(name) != ".wasm" {
			delete(r, name) // no build has written that
		}
	}
	return r
}

func (r record) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ") // keys are sorted: equal records are equal bytes
	if err == nil {
		err = replaceFile(filepath.Join(dir, "build", recordName), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("note what was built: %w", err)
	}
	return nil
}

// recordModule takes a module into the record of an app, and removes what the same source
// was before, under another name. It gives what was removed.
func recordModule(dir, source string, m *Module) (removed []string, err error) {
	sum, err := sumOf(filepath.Join(dir, m.File))
	if err != nil {
		return nil, fmt.Errorf("note what was built: %w", err)
	}
	r := readRecord(dir)
	name := filepath.Base(m.File)
	r[name] = making{source, sum}
	removed, err = r.sweep(dir, func(other string) bool { return other != name && r[other].Source == source })
	return removed, errors.Join(err, r.write(dir))
}

// Clean removes the modules in the folder build of an app that Build has made of
// sources that are gone, and gives their files, relative to the app's folder. A
// module that anybody else has put there stays; and all stay without a folder
// handlers, as where an app was copied to be served.
func Clean(dir string) (removed []string, err error) {
	r := readRecord(dir)
	if len(r) == 0 || !isFolder(filepath.Join(dir, "handlers")) {
		return nil, nil
	}
	all, err := Sources(dir)
	if err != nil {
		return nil, err
	}
	before := len(r)
	removed, err = r.sweep(dir, func(name string) bool { return !slices.Contains(all, r[name].Source) })
	if len(r) != before {
		err = errors.Join(err, r.write(dir))
	}
	return removed, err
}

// sweep forgets modules, and removes those that are still as they were made.
func (r record) sweep(dir string, stale func(name string) bool) (removed []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if !stale(name) {
			continue
		}
		file := filepath.Join("build", name)
		sum, failed := sumOf(filepath.Join(dir, file))
		if failed == nil && sum == r[name].SHA256 {
			failed = os.Remove(filepath.Join(dir, file))
			if failed == nil {
				removed = append(removed, file)
			}
		}
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove a module of sources that are gone: %w", failed))
			continue
		}
		delete(r, name)
	}
	return removed, err
}

func sumOf(path string) (string, error) {
	file, err := os.ReadFile(path)
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:]), err
}

// replaceFile writes a file, whole or not at all.
func replaceFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".building-*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
