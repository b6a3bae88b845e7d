package languageserver

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// handler is a handler in a source file.
type handler struct {
	name string
	// start and end are the offsets of the name in the file; first and last are those of the lines that
	// declare the handler.
	start, end, first, last int
}

// source is a file with handlers.
type source struct {
	*text
	handlers []handler
}

// sourceCache has the sources by path, as long as they do not change.
type sourceCache map[string]cachedSource

type cachedSource struct {
	source
	// modified and size are those of the file; document is the text of an open document instead.
	modified time.Time
	size     int64
	document *text
}

// A sourceLanguage finds handlers in the sources of a language: each group of a pattern is a name.
type sourceLanguage struct {
	extensions []string
	patterns   []*regexp.Regexp
}

const identifier = `([A-Za-z_$][A-Za-z0-9_$]*)`

var sourceLanguages = []sourceLanguage{
	{scriptExtensions, []*regexp.Regexp{
		regexp.MustCompile(`(?m)^[ \t]*export\s+(?:default\s+)?(?:async\s+)?function\s*` + identifier + `[^\n]*`),
		regexp.MustCompile(`(?m)^[ \t]*export\s+(?:const|let|var)\s+` + identifier + `[^\n]*`),
		regexp.MustCompile(`(?:^|[{,\n])[ \t]*(?:[A-Za-z_$][\w$]*\s+as\s+)?` + identifier + `\s*(?:[,}])`), // inside of exportList
	}},
	{[]string{".py"}, []*regexp.Regexp{
		regexp.MustCompile(`(?m)^@(?:runner\.)?handler\(\s*["']` + identifier + `["']\s*\)[^\n]*\n(?:@[^\n]*\n)*(?:async\s+)?def\s[^\n]*`),
		regexp.MustCompile(`(?m)^@(?:runner\.)?handler[ \t]*\n(?:@[^\n]*\n)*(?:async\s+)?def\s+` + identifier + `[^\n]*`),
	}},
	{[]string{".go"}, []*regexp.Regexp{
		regexp.MustCompile(`(?m)^//go:wasmexport[ \t]+` + identifier + `[^\n]*\n[^\n]*`),
		regexp.MustCompile(`(?m)^[^\n]*\brunner\.Handle\(\s*"` + identifier + `"[^\n]*`),
	}},
	{[]string{".rs"}, []*regexp.Regexp{
		regexp.MustCompile(`(?m)^[ \t]*(?:[\w:]+::)?handler!\s*\(\s*` + identifier + `[^\n]*`),
		regexp.MustCompile(`(?m)^[ \t]*#\[(?:unsafe\()?export_name\s*=\s*"` + identifier + `"[^\n]*\n(?:[ \t]*#\[[^\n]*\n)*[^\n]*`),
		regexp.MustCompile(`(?m)^[ \t]*#\[(?:unsafe\()?no_mangle[^\n]*\n(?:[ \t]*#\[[^\n]*\n)*[^\n]*\bfn\s+` + identifier + `[^\n]*`),
	}},
	{[]string{".c", ".cc", ".cpp", ".cxx", ".h"}, []*regexp.Regexp{
		regexp.MustCompile(`(?m)^[ \t]*RUNNER_HANDLER\(\s*` + identifier + `[^\n]*`),
		regexp.MustCompile(`(?m)^[^\n]*(?:RUNNER_EXPORT|export_name)\(\s*"` + identifier + `"[^\n]*`),
	}},
}

// scriptExtensions are those of TypeScript, JavaScript and AssemblyScript.
var scriptExtensions = []string{".ts", ".js", ".mts", ".mjs", ".cts", ".cjs", ".tsx", ".jsx"}

var exportList = regexp.MustCompile(`(?m)^[ \t]*export\s*\{[^}]*\}`)

func isScript(path string) bool { return slices.Contains(scriptExtensions, filepath.Ext(path)) }
func isPython(path string) bool { return filepath.Ext(path) == ".py" }

func languageOf(path string) *sourceLanguage {
	for i, l := range sourceLanguages {
		if slices.Contains(l.extensions, filepath.Ext(path)) {
			return &sourceLanguages[i]
		}
	}
	return nil
}

// handlersIn finds the handlers of a source.
func handlersIn(t *text) (found []handler) {
	l := languageOf(t.path)
	if l == nil {
		return nil
	}
	add := func(pattern *regexp.Regexp, from, to int) {
		for _, m := range pattern.FindAllSubmatchIndex(t.src[from:to], -1) {
			h := handler{name: string(t.src[from+m[2] : from+m[3]]), start: from + m[2], end: from + m[3], first: from + m[0], last: from + m[1]}
			found = append(found, h)
		}
	}
	for i, pattern := range l.patterns {
		if isScript(t.path) && i == 2 {
			for _, m := range exportList.FindAllIndex(t.src, -1) {
				add(pattern, m[0]+strings.IndexByte(string(t.src[m[0]:m[1]]), '{'), m[1])
			}
			continue
		}
		add(pattern, 0, len(t.src))
	}
	return found
}

// notSources are directories without sources of the app.
var notSources = []string{"node_modules", "target", "build", "dist", "__pycache__", "python_packages"}

// sourceFiles returns the paths of the files below handlers that may have handlers, in order.
func sourceFiles(dir string) (paths []string) {
	root := filepath.Join(dir, "handlers")
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what cannot be read has no handlers
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains(notSources, d.Name())):
			return fs.SkipDir
		case !d.IsDir() && languageOf(path) != nil && hasHandlers(root, path):
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}

// hasHandlers reports whether the build looks for handlers in a file: declarations, tests and what scripts
// import have none.
func hasHandlers(root, path string) bool {
	stem := strings.TrimSuffix(path, filepath.Ext(path))
	switch {
	case !isScript(path):
		return true
	case slices.Contains([]string{".d", ".test", ".spec"}, filepath.Ext(stem)):
		return false
	case filepath.Dir(path) == root:
		return true
	}
	rel, _ := filepath.Rel(root, path)
	project, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	_, err := os.Stat(filepath.Join(root, project, "package.json")) // AssemblyScript
	return err == nil
}

// sourcesOf returns the sources of the handlers of an app.
func (s *Server) sourcesOf(dir string) (all []source) {
	paths := sourceFiles(dir)
	for path := range s.documents {
		if filepath.Dir(path) == filepath.Join(dir, "handlers") && languageOf(path) != nil && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		if src, ok := s.sourceAt(path); ok {
			all = append(all, src)
		}
	}
	return all
}

func (s *Server) sourceAt(path string) (source, bool) {
	known, cached := s.sources[path]
	document := s.documents[path]
	now := cachedSource{document: document}
	if document == nil {
		info, err := os.Stat(path)
		if err != nil {
			return source{}, false
		}
		now.modified, now.size = info.ModTime(), info.Size()
	}
	if cached && known.document == document && known.modified.Equal(now.modified) && known.size == now.size {
		return known.source, true
	}
	t := s.read(path)
	if t == nil {
		return source{}, false
	}
	now.source = source{t, handlersIn(t)}
	s.sources[path] = now
	return now.source, true
}

// isNamed reports whether a handler of the schema is the one of a source: in Python, list_orders is
// listOrders too.
func (src source) isNamed(h handler, name string) bool {
	return h.name == name || isPython(src.path) && camel(h.name) == name
}

func camel(name string) string {
	first, rest, _ := strings.Cut(name, "_")
	for part := range strings.SplitSeq(rest, "_") {
		if part != "" {
			first += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return first
}

// handlerNames are the names of all handlers in sources.
func handlerNames(sources []source) (names []string) {
	for _, src := range sources {
		for _, h := range src.handlers {
			if isPython(src.path) {
				names = append(names, camel(h.name))
			} else {
				names = append(names, h.name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
