package languageserver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

// file is a parsed schema file. It is immutable.
type file struct {
	*text
	tree *syntax.File
}

func (f *file) name() string { return filepath.Base(f.path) }

// snapshot is the schema of one app at one moment. It is immutable.
type snapshot struct {
	dir string
	// files are in name order.
	files []*file
	index *index
}

func (s *snapshot) file(path string) *file {
	for _, f := range s.files {
		if f.path == path {
			return f
		}
	}
	return nil
}

// named returns the file that a span is in.
func (s *snapshot) named(name string) *file {
	for _, f := range s.files {
		if f.name() == name {
			return f
		}
	}
	return nil
}

func (s *snapshot) sources() []diag.Source {
	all := make([]diag.Source, len(s.files))
	for i, f := range s.files {
		all[i] = diag.Source{Name: f.name(), Text: f.src}
	}
	return all
}

// app is an app directory that the client has a file of.
type app struct {
	dir string
	// files are parsed, by their paths.
	files map[string]*file
	// snapshot is nil after a change.
	snapshot *snapshot
	checking
}

// appOf returns the app of a file, or nil: that of its directory if it is a schema file, else the nearest
// directory above it with schema files.
func (s *Server) appOf(path string) *app {
	dir := filepath.Dir(path)
	for !isSchema(path) {
		if _, err := syntax.Files(dir); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil
		}
		dir = parent
	}
	if s.apps[dir] == nil {
		s.apps[dir] = &app{dir: dir, files: map[string]*file{}}
	}
	return s.apps[dir]
}

func isSchema(path string) bool {
	return filepath.Ext(path) == ".schema" && !strings.HasPrefix(filepath.Base(path), ".")
}

// snapshotOf returns the present snapshot of an app. The text of open documents counts, not that of
// their files.
func (s *Server) snapshotOf(a *app) *snapshot {
	if a.snapshot != nil {
		return a.snapshot
	}
	paths, _ := syntax.Files(a.dir) // without files, open documents may be the first
	for path := range s.documents {
		if isSchema(path) && filepath.Dir(path) == a.dir && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	snap := &snapshot{dir: a.dir}
	for _, path := range paths {
		if f := s.parsed(a, path); f != nil {
			snap.files = append(snap.files, f)
		}
	}
	clear(a.files)
	for _, f := range snap.files {
		a.files[f.path] = f
	}
	snap.index = newIndex(snap.files)
	a.snapshot = snap
	return snap
}

// parsed returns the tree of a file. It parses only what has changed.
func (s *Server) parsed(a *app, path string) *file {
	t := s.documents[path]
	if t == nil {
		src, err := syntax.ReadFile(path)
		if err != nil {
			return nil // it was removed meanwhile, or the check reports it
		}
		t = newText(path, src, s.utf8)
	}
	if f := a.files[path]; f != nil && (f.text == t || slices.Equal(f.src, t.src) && f.crlf == t.crlf) {
		return f
	}
	tree, _ := syntax.Parse(diag.Source{Name: filepath.Base(path), Text: t.src})
	return &file{t, tree}
}

// read returns the text of any file of the app: of the open document, or of the file.
func (s *Server) read(path string) *text {
	if t := s.documents[path]; t != nil {
		return t
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxSourceBytes {
		return nil
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return newText(path, src, s.utf8)
}

// maxSourceBytes is the size of the largest file of handlers that is read.
const maxSourceBytes = 4 << 20
