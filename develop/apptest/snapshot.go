package apptest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"runner.example/internal/atomicio"
)

// Snapshots of a test file are in __snapshots__/<file>.snap beside it, in the form that Jest writes.

func (r *fileRun) snapshotFile() string {
	dir, name := path.Split(r.file)
	return filepath.Join(r.app.App.Dir, filepath.FromSlash(dir), "__snapshots__", name+".snap")
}

// keepSnapshots writes new snapshots, with Update also those that differ, and removes those that no test has used.
func (r *fileRun) keepSnapshots(write map[string]string, unused []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := maps.Clone(r.snapshots)
	for name, text := range write {
		if _, there := all[name]; !there || r.app.Update {
			all[name] = text
			r.written++
		}
	}
	if r.app.Update && r.app.Filter == nil && r.rest == nil {
		for _, name := range unused {
			delete(all, name)
			r.written++
		}
	}
	if r.written > 0 {
		r.snapshotErr = writeSnapshots(r.snapshotFile(), r.file, all)
	}
}

const snapshotEnd = "\n`;\n"

func writeSnapshots(file, of string, all map[string]string) error {
	if len(all) == 0 {
		return os.Remove(file)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "// Snapshots of %s. `runner test --update` writes them.\n", of)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "\nexports[`%s`] = `\n%s%s", escape(name), escape(all[name]), snapshotEnd)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return fmt.Errorf("write snapshots: %w", err)
	}
	if err := atomicio.WriteFile(file, []byte(text.String())); err != nil {
		return fmt.Errorf("write snapshots: %w", err)
	}
	return nil
}

// readSnapshots reads a file of snapshots, which need not exist.
func readSnapshots(file string) (map[string]string, error) {
	all := map[string]string{}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read snapshots: %w", err)
	}
	rest := strings.ReplaceAll(string(text), "\r\n", "\n")
	for {
		_, after, found := strings.Cut(rest, "\nexports[`")
		if !found {
			return all, nil
		}
		name, after, found1 := strings.Cut(after, "`] = `\n")
		value, after, found2 := strings.Cut(after, snapshotEnd)
		if !found1 || !found2 {
			return nil, fmt.Errorf("read snapshots: %s: a snapshot does not end: restore the file, or delete it and run the tests with --update", file)
		}
		all[unescape(name)], rest = unescape(value), "\n"+after
	}
}

var (
	escaping   = strings.NewReplacer("\\", "\\\\", "`", "\\`", "${", "\\${", "\r", "\\r")
	unescaping = strings.NewReplacer("\\\\", "\\", "\\`", "`", "\\${", "${", "\\r", "\r")
)

func escape(text string) string   { return escaping.Replace(text) }
func unescape(text string) string { return unescaping.Replace(text) }
