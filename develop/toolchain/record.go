package toolchain

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

	"runner.example/develop/toolchain/python"
	"runner.example/internal/atomicio"
	"runner.example/internal/tree"
	"runner.example/schema"
)

// recordName is the file in build/ that lists the modules, debug files and trees that builds have made, with
// their sources.
const recordName = ".built"

// record is the content of that file, by file name.
type record map[string]origin

// origin is the source of a built file. A file with another digest was not built from it,
// and is kept.
type origin struct {
	Source string `json:"source"` // "handlers", PythonSource, or the directory handlers/<name>
	SHA256 string `json:"sha256"` // hexadecimal; of a directory, that of its tree
	// Handlers are the handlers of a module in Python that was started with Env; nil: it was not.
	Handlers []string        `json:"handlers,omitempty"`
	Env      []schema.EnvVar `json:"env,omitempty"`
}

// readRecord reads the record of an app. If it is missing or damaged, the record is empty,
// and no module counts as built.
func readRecord(dir string) record {
	r := record{}
	text, err := os.ReadFile(filepath.Join(dir, "build", recordName))
	if err != nil || json.Unmarshal(text, &r) != nil || r == nil {
		return record{}
	}
	for name := range r {
		if ext := filepath.Ext(name); filepath.Base(name) != name || ext != ".wasm" && ext != ".debug" && name != schema.PythonModule {
			delete(r, name) // not written by a build
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
		return fmt.Errorf("write the record of built modules: %w", err)
	}
	return nil
}

// recordModule adds a module and its debug file to the record of an app, and removes the files that the same
// source was built into before, under other names. It returns the removed files. python has the settings of a module in Python.
func recordModule(dir, source string, python *schema.Python, m *Module) (removed []string, err error) {
	r := readRecord(dir)
	var names []string
	files := []string{m.File, m.Debug}
	if m.tree != nil {
		files = append(files, schema.PythonFiles)
	}
	for _, file := range files {
		if file == "" {
			continue
		}
		sum, err := sumOf(filepath.Join(dir, file))
		if err != nil {
			return nil, fmt.Errorf("write the record of built modules: %w", err)
		}
		name := filepath.Base(file)
		names = append(names, name)
		r[name] = origin{Source: source, SHA256: sum}
	}
	if m.tree != nil {
		module := r[names[0]]
		module.Handlers, module.Env = m.Handlers, python.Module().Env
		r[names[0]] = module
	}
	removed, err = r.sweep(dir, func(other string) bool { return !slices.Contains(names, other) && r[other].Source == source })
	return removed, errors.Join(err, r.write(dir))
}

// Clean removes the modules in build/ that Build has made from deleted sources, with their debug files,
// and returns the files, relative to the app directory. Files from elsewhere are kept. All
// are kept when there is no directory handlers, as in a deployed app.
func Clean(dir string) (removed []string, err error) {
	r := readRecord(dir)
	if len(r) == 0 || !isDir(filepath.Join(dir, "handlers")) {
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

// sweep removes stale files from the record, and deletes those that are unchanged.
func (r record) sweep(dir string, stale func(name string) bool) (removed []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if !stale(name) {
			continue
		}
		file := "build/" + name
		sum, failed := sumOf(filepath.Join(dir, file))
		if failed == nil && sum == r[name].SHA256 {
			failed = os.RemoveAll(filepath.Join(dir, file))
			if failed == nil {
				removed = append(removed, file)
			}
		}
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove a module of deleted sources: %w", failed))
			continue
		}
		delete(r, name)
	}
	return removed, err
}

// knownHandlers returns the handlers of the module in Python; nil: it was not started with these settings, or is not the
// one that was built.
func knownHandlers(dir string, python *schema.Python) []string {
	name := schema.PythonModule + ".wasm"
	made := readRecord(dir)[name]
	if sum, err := sumOf(filepath.Join(dir, "build", name)); err != nil || sum != made.SHA256 || !slices.Equal(made.Env, python.Module().Env) {
		return nil
	}
	return made.Handlers
}

// replaceTree writes the files of a module in Python that differ, and removes others.
func replaceTree(dir string, m *python.Module) error {
	there := map[string][sha256.Size]byte{}
	if before, err := tree.OpenDir(dir, schema.PythonFiles); err == nil {
		for _, f := range before.List() {
			there[f.Path] = f.SHA256
		}
	} else if err := os.RemoveAll(filepath.Join(dir, schema.PythonFiles)); err != nil { // it is not one of a build
		return err
	}
	for _, f := range m.Files.List() {
		if there[f.Path] != f.SHA256 {
			path := filepath.Join(dir, schema.PythonFiles, filepath.FromSlash(f.Path))
			// A file that is written in part has another digest, and is written again.
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, m.Content[f.Path], 0o644)); err != nil {
				return err
			}
		}
		delete(there, f.Path)
	}
	for path := range there {
		path = filepath.Join(dir, schema.PythonFiles, filepath.FromSlash(path))
		if err := os.Remove(path); err != nil {
			return err
		}
		for parent := filepath.Dir(path); os.Remove(parent) == nil; parent = filepath.Dir(parent) { // if it is empty
		}
	}
	return nil
}

// sumOf returns the digest of a file, or of the tree that a directory has.
func sumOf(path string) (string, error) {
	if isDir(path) {
		t, err := tree.OpenDir(filepath.Dir(path), filepath.Base(path))
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%x", t.Digest()), nil
	}
	file, err := os.ReadFile(path)
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:]), err
}

// replaceFile writes a file as a whole or not at all.
func replaceFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := atomicio.Create(filepath.Dir(path), ".building-", 0o644)
	if err != nil {
		return err
	}
	defer file.Discard()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(0o644)); err != nil { // whatever the umask
		return err
	}
	return file.Rename(path)
}
