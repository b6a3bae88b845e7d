package toolchain

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

// contents is the content of the directory handlers of an app.
type contents struct {
	// files are TypeScript and JavaScript files, python those in Python, directories are in other languages.
	files       []string
	python      []string
	directories []source
	// unreadable has the files that cannot be read.
	unreadable diag.List
	// libraries are directories with TypeScript and JavaScript files to import. strays are
	// sources that nothing builds.
	libraries, strays []string
}

// PythonSource is the name of all that the module of handlers in Python is built from, in Sources and Options.Only.
const PythonSource = "handlers/*.py"

// isPython reports whether a file is a source in Python, by its name.
func isPython(name string) bool {
	return filepath.Ext(name) == ".py" && !strings.HasPrefix(name, ".") && name != ".py"
}

// isOtherThanPython reports whether an entry of the directory handlers belongs to another language. Directories with
// scripts and without Python are what TypeScript imports; without TypeScript they are data.
func (c *contents) isOtherThanPython(dir, name string) bool {
	path := filepath.Join(dir, "handlers", name)
	if !isDir(path) {
		_, other := native[filepath.Ext(name)]
		return other || isScript(name) || strings.HasSuffix(name, ".d.ts") || slices.Contains(scriptSettings, name)
	}
	return languageOf(path) != nil || len(c.files) > 0 && firstFile(path, isScript) != "" && firstFile(path, isPython) == ""
}

// scriptSettings are files that editors and tools of TypeScript read.
var scriptSettings = []string{"package.json", "package-lock.json", "tsconfig.json", "jsconfig.json"}

// firstFile returns the first file below a directory with such a name, without packages of npm and hidden directories;
// empty: there is none.
func firstFile(dir string, is func(name string) bool) (found string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // reported when a file imports it
			return nil
		case d.IsDir() && path != dir && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.IsDir() && is(d.Name()):
			found = path
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// scripts are the extensions of files that are built into the app's own module.
var scripts = []string{".ts", ".js", ".mts", ".mjs", ".cts", ".cjs", ".tsx", ".jsx"}

// isScript reports whether a file is TypeScript or JavaScript, by its name. Declarations
// and tests are not.
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

// native maps extensions of sources in other languages to the file that their directory must
// contain.
var native = map[string]string{".go": "go.mod", ".rs": "Cargo.toml", ".c": "", ".cc": "", ".cpp": "", ".cxx": ""}

// others maps file extensions to languages that need a build.sh.
var others = map[string]string{
	".wat": "WebAssembly text", ".zig": "Zig", ".nim": "Nim", ".kt": "Kotlin", ".swift": "Swift", ".d": "D", ".odin": "Odin",
	".hs": "Haskell", ".ml": "OCaml", ".cs": "C#", ".fs": "F#", ".java": "Java", ".scala": "Scala", ".rb": "Ruby", ".php": "PHP",
	".lua": "Lua", ".pl": "Perl", ".jl": "Julia", ".v": "V", ".cr": "Crystal", ".dart": "Dart", ".pas": "Pascal", ".f90": "Fortran",
	".adb": "Ada", ".ex": "Elixir", ".erl": "Erlang", ".gleam": "Gleam", ".gr": "Grain", ".mbt": "MoonBit", ".c3": "C3",
	".ha": "Hare", ".vala": "Vala", ".rkt": "Racket", ".scm": "Scheme", ".clj": "Clojure", ".vb": "Visual Basic",
}

// isStray reports whether a file is a source that must be in a directory of its own, by its name.
func isStray(name string) bool {
	_, other := others[filepath.Ext(name)]
	_, known := native[filepath.Ext(name)]
	return (other || known) && !strings.HasPrefix(name, ".")
}

// Sources lists the sources of an app's modules: "handlers" for all TypeScript and
// JavaScript files together, PythonSource for those in Python, handlers/<name> for each directory of another language.
func Sources(dir string) ([]string, error) {
	found, err := find(dir)
	if err != nil && !errors.Is(err, ErrNothing) {
		return nil, err
	}
	var all []string
	if len(found.files) > 0 {
		all = append(all, "handlers")
	}
	if len(found.python) > 0 {
		all = append(all, PythonSource)
	}
	for _, s := range found.directories {
		all = append(all, s.path)
	}
	return all, nil
}

// find reads the directory handlers of an app. The error matches ErrNothing if there is
// nothing to build.
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
	case len(found.files)+len(found.python)+len(found.directories) > 0:
		return found, nil
	case len(found.strays) > 0:
		return found, fmt.Errorf("%w: %s: %s", ErrNothing, filepath.ToSlash(found.strays[0]), strayText(found.strays[0]))
	case len(found.libraries) > 0:
		return found, fmt.Errorf("%w: files in %s can only be imported", ErrNothing, found.libraries[0])
	}
	return found, ErrNothing
}

// add adds one entry of the directory handlers.
func (c *contents) add(dir, name string) {
	file := "handlers/" + name
	path := filepath.Join(dir, file)
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		c.addDirectory(path, name)
	case isPython(name): // the build reports one that cannot be read
		c.python = append(c.python, file)
	case isScript(name):
		c.files = append(c.files, file)
		if why := whyUnreadable(path, info, err); why != "" {
			c.unreadable.Errorf("", diag.Span{File: file}, "%s", why)
		}
	default:
		if isStray(name) && err == nil {
			c.strays = append(c.strays, file)
		}
	}
}

// addDirectory adds a directory: a source if it is in one of the languages.
func (c *contents) addDirectory(path, name string) {
	if l := languageOf(path); l != nil {
		c.directories = append(c.directories, source{language: l, name: name, path: "handlers/" + name})
		return
	}
	switch name {
	case "node_modules", "test", "tests", "__tests__", "testdata", "types":
		return
	}
	stray := firstFile(path, isStray)
	switch {
	case firstFile(path, isPython) != "": // a package
	case firstFile(path, isScript) != "":
		c.libraries = append(c.libraries, "handlers/"+name)
	case stray != "":
		if file, err := filepath.Rel(path, stray); err == nil {
			c.strays = append(c.strays, filepath.Join("handlers", name, file))
		}
	}
}

// whyUnreadable says why a file, or the target of a link, cannot be read as a whole; empty
// when it can.
func whyUnreadable(path string, info fs.FileInfo, err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		if to, err := os.Readlink(path); err == nil {
			return fmt.Sprintf("the link's target %s does not exist: correct the link, or remove it", to)
		}
	}
	switch {
	case err != nil:
		return fmt.Sprintf("the file cannot be read: %v", errors.Unwrap(err))
	case info.Mode()&fs.ModeNamedPipe != 0:
		return "a named pipe is not a source file: remove it"
	case !info.Mode().IsRegular():
		return "a device or a socket is not a source file: remove it"
	}
	return ""
}

// warnUnused warns about sources that are not built: directories whose files no module
// imports, and files that belong in a directory.
func (b *builder) warnUnused(found contents) {
	var used []string
	for _, m := range b.modules {
		used = append(used, m.Sources...)
	}
	for _, directory := range found.libraries {
		if len(found.files) > 0 && !slices.ContainsFunc(used, func(file string) bool { return strings.HasPrefix(file, directory+"/") }) {
			b.found.Warnf("", diag.Span{File: directory}, "no handler imports these files, so they are not built: only files in handlers/ itself are handlers, and those in subdirectories must be imported")
		}
	}
	for _, file := range found.strays {
		b.found.Warnf("", diag.Span{File: filepath.ToSlash(file)}, "%s", strayText(file))
	}
}

// strayText says what to do with a source that is not built.
func strayText(file string) string {
	const text = "this file is not built: "
	extension := filepath.Ext(file)
	language, other := others[extension]
	switch {
	case extension == ".wat":
		return text + "a handler in WebAssembly text needs its own directory, handlers/<name>, with this file alone"
	case other:
		return text + "a directory with a handler in " + language + " needs a " + buildScript +
			" that writes the module to \"$OUT\" (docs/languages.md)"
	case native[extension] != "":
		return text + "a handler in this language needs its own directory, handlers/<name>, with a " + native[extension]
	}
	return text + "a handler in this language needs its own directory, handlers/<name>"
}
