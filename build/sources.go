package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runner.example/internal/diag"
)

// contents are what the folder handlers of an app holds.
type contents struct {
	// files are those of TypeScript and JavaScript in it, folders those that a
	// toolchain builds.
	files, folders []string
	// odd are the files that cannot be read.
	odd diag.List
	// libraries are folders with files of TypeScript and JavaScript, for others to
	// import; strays are sources that nothing builds as they lie.
	libraries, strays []string
}

// scripts are the endings of files that become part of the app's own module.
var scripts = []string{".ts", ".js", ".mts", ".mjs", ".cts", ".cjs", ".tsx", ".jsx"}

// isScript reports whether a file, by its name, is of TypeScript or JavaScript.
// Declarations and tests are not.
func isScript(name string) bool {
	kind := filepath.Ext(name)
	stem := strings.TrimSuffix(name, kind)
	if stem == "" || strings.HasPrefix(name, ".") || !slices.Contains(scripts, kind) {
		return false
	}
	switch filepath.Ext(stem) {
	case ".d", ".test", ".spec":
		return false
	}
	return true
}

// native are the endings of sources that a toolchain builds, and what the folder
// must hold beside them.
var native = map[string]string{".go": "go.mod", ".rs": "Cargo.toml", ".c": "", ".cc": "", ".cpp": "", ".cxx": ""}

// Sources are what an app's modules are made of: "handlers" for all files of
// TypeScript and JavaScript together, handlers/<name> for each folder of another
// language.
func Sources(dir string) ([]string, error) {
	found, err := find(dir)
	if err != nil && !errors.Is(err, ErrNothing) {
		return nil, err
	}
	var all []string
	if len(found.files) > 0 {
		all = append(all, "handlers")
	}
	for _, folder := range found.folders {
		all = append(all, "handlers/"+folder)
	}
	return all, nil
}

// find looks through the folder handlers of an app. The error matches ErrNothing if
// nothing in it can be built.
func find(dir string) (found contents, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, "handlers"))
	if errors.Is(err, fs.ErrNotExist) {
		return found, ErrNothing
	}
	if err != nil {
		return found, fmt.Errorf("read the handlers: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			found.add(dir, entry.Name())
		}
	}
	switch {
	case len(found.files)+len(found.folders) > 0:
		return found, nil
	case len(found.strays) > 0:
		return found, fmt.Errorf("%w: %s is in no such folder", ErrNothing, found.strays[0])
	case len(found.libraries) > 0:
		return found, fmt.Errorf("%w: files in %s are for others to import", ErrNothing, found.libraries[0])
	}
	return found, ErrNothing
}

// add takes one entry of the folder handlers.
func (c *contents) add(dir, name string) {
	source := "handlers/" + name
	path := filepath.Join(dir, source)
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir() && toolchainOf(path) != nil:
		c.folders = append(c.folders, name)
	case err == nil && info.IsDir():
		c.addFolder(path, name)
	case isScript(name):
		c.files = append(c.files, source)
		if why := unreadable(path, info, err); why != "" {
			c.odd.Errorf("", diag.Span{File: source}, "%s", why)
		}
	default:
		if _, ok := native[filepath.Ext(name)]; ok && err == nil {
			c.strays = append(c.strays, source)
		}
	}
}

// addFolder takes a folder that no toolchain builds.
func (c *contents) addFolder(path, name string) {
	switch name {
	case "node_modules", "test", "tests", "__tests__", "testdata", "types":
		return
	}
	library, stray := false, ""
	_ = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // what cannot be read, an import tells
			return nil
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.IsDir():
			library = library || isScript(d.Name())
			if native[filepath.Ext(d.Name())] != "" && stray == "" {
				stray = filepath.Join("handlers", name, d.Name())
			}
		}
		return nil
	})
	if library {
		c.libraries = append(c.libraries, "handlers/"+name)
	} else if stray != "" {
		c.strays = append(c.strays, stray)
	}
}

// unreadable says what keeps a file, or what a link leads to, from being read to its
// end; empty when nothing does.
func unreadable(path string, info fs.FileInfo, err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		if to, err := os.Readlink(path); err == nil {
			return fmt.Sprintf("it is a link to %s, which is not there: mend the link, or remove it", to)
		}
	}
	switch {
	case err != nil:
		return fmt.Sprintf("it cannot be read: %v", errors.Unwrap(err))
	case info.Mode()&fs.ModeNamedPipe != 0:
		return "it is a named pipe, not a file: remove it"
	case !info.Mode().IsRegular():
		return "it is a device or a socket, not a file: remove it"
	}
	return ""
}

// doubtStrays warns of sources that nobody builds: of folders from which none of the
// files comes that a module is made of, and of what lies where no toolchain looks.
func (b *builder) doubtStrays(found contents, used []string) {
	for _, folder := range found.libraries {
		if !slices.ContainsFunc(used, func(file string) bool { return strings.HasPrefix(file, folder+"/") }) {
			b.found.Warnf("", diag.Span{File: folder}, "no handler imports its files, so they are left out: files in handlers/ itself are handlers, those in folders are for them to import")
		}
	}
	for _, file := range found.strays {
		text := "it is left out: a handler in this language has a folder of its own, handlers/<name>"
		if sign := native[filepath.Ext(file)]; sign != "" {
			text += ", with a " + sign
		}
		b.found.Warnf("", diag.Span{File: filepath.ToSlash(file)}, "%s", text)
	}
}
