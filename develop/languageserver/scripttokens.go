package languageserver

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.lsp.dev/protocol"
)

// word is a name or a string in a source in TypeScript or Python.
type word struct {
	// text is the name, or what is between the quotes, and start its offset.
	text  string
	start int
	// quoted reports a string; mark is the text between it and the word before, without blanks.
	quoted bool
	mark   string
}

// scanWords returns the names and strings of a source in order, without those in comments. It does not know
// regular expressions: one with a quote hides the rest of its line.
func scanWords(src []byte, python bool) (words []word) {
	var mark []byte
	for i := 0; i < len(src); {
		b := src[i]
		rest := src[i:]
		switch {
		case python && b == '#', !python && bytes.HasPrefix(rest, []byte("//")):
			i += until(rest, "\n")
		case !python && bytes.HasPrefix(rest, []byte("/*")):
			i += until(rest, "*/")
		case python && (bytes.HasPrefix(rest, []byte(`"""`)) || bytes.HasPrefix(rest, []byte("'''"))):
			i += 3 + until(rest[3:], string(rest[:3]))
			mark = nil
		case b == '"', b == '\'', b == '`':
			end := closing(rest, b)
			words = append(words, word{string(rest[1:end]), i + 1, true, string(mark)})
			mark = nil
			i += min(end+1, len(rest))
		case isNameByte(b) && (b < '0' || b > '9'):
			end := 0
			for end < len(rest) && isNameByte(rest[end]) {
				end++
			}
			words = append(words, word{string(rest[:end]), i, false, string(mark)})
			mark = nil
			i += end
		default:
			if b > ' ' {
				mark = append(mark, b)
			}
			i++
		}
	}
	return words
}

func isNameByte(b byte) bool { return isWordByte(b) || b == '$' || b >= 0x80 }

// until returns the length of text up to the end of mark, or all of it.
func until(text []byte, mark string) int {
	if n := bytes.Index(text, []byte(mark)); n >= 0 {
		return n + len(mark)
	}
	return len(text)
}

// closing returns the place of the quote that ends a string, or of the end of its line or the text.
func closing(text []byte, quote byte) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == quote, text[i] == '\n' && quote != '`':
			return i
		}
	}
	return len(text)
}

var (
	// entityCalls are the functions of the SDK whose first argument is an entity.
	entityCalls = []string{"query", "aggregate", "get", "insert", "update", "remove", "from"}
	// entityTypes are the types of the SDK whose argument is an entity.
	entityTypes = []string{"Row", "Insert", "Update"}
	// schemaImports are the imports of types that are generated from the schema.
	scriptImport = regexp.MustCompile(`import\s+(?:type\s+)?\{([^}]*)\}\s*from\s*["']([^"']+)["']`)
	pythonImport = regexp.MustCompile(`(?m)^from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n]*)`)
)

// renamed returns the edits that replace the name of an entity, an enum or a type in a source: in imports of the
// generated types and where they are used, and as the argument of an operation.
func renamed(t *text, old, name string) (edits []protocol.TextEdit) {
	if !bytes.Contains(t.src, []byte(old)) {
		return nil
	}
	python := isPython(t.path)
	imported, used := importsOf(t.src, python, old)
	words := scanWords(t.src, python)
	for i, w := range words {
		at := func() { edits = append(edits, t.edit(w.start, w.start+len(old), name)) }
		switch {
		case w.text != old:
		case w.quoted && i > 0 && namesEntity(words, i):
			at()
		case !w.quoted && imported[0] <= w.start && w.start < imported[1]:
			at()
		case !w.quoted && used && !strings.HasSuffix(w.mark, "."):
			at()
		}
	}
	return edits
}

// importsOf returns the range of the list of names in which a name is imported from the generated types, and
// whether it is used without another name.
func importsOf(src []byte, python bool, name string) (list [2]int, used bool) {
	pattern, names, module := scriptImport, 2, 4
	if python {
		pattern, names, module = pythonImport, 4, 2
	}
	named := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b(\s+as\s)?`)
	for _, m := range pattern.FindAllSubmatchIndex(src, -1) {
		from := string(src[m[module]:m[module+1]])
		if from != "@runner/schema" && from != "runner.schema" {
			continue
		}
		if found := named.FindSubmatchIndex(src[m[names]:m[names+1]]); found != nil {
			return [2]int{m[names], m[names+1]}, found[2] < 0
		}
	}
	return list, false
}

// namesEntity reports whether a string is the entity of an operation or of a type of the SDK.
func namesEntity(words []word, i int) bool {
	before, w := words[i-1], words[i]
	switch {
	case before.quoted:
		return false
	case w.mark == "(":
		return slices.Contains(entityCalls, before.text) && (before.text == "from" || !strings.HasSuffix(before.mark, ".") || i > 1 && words[i-2].text == "runner")
	case w.mark == "<":
		return slices.Contains(entityTypes, before.text)
	case strings.HasSuffix(w.mark, ">("): // query<Order>("Order")
		for j := i - 1; j >= 0 && i-j < 8; j-- {
			if slices.Contains(entityCalls, words[j].text) {
				return true
			}
		}
	}
	return false
}

// scriptFiles returns the paths of all sources of an app in TypeScript, JavaScript and Python, in order.
func scriptFiles(dir string) (paths []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && path != dir && (strings.HasPrefix(d.Name(), ".") || slices.Contains(notSources, d.Name()) || d.Name() == "data"):
			return fs.SkipDir
		case !d.IsDir() && (isScript(path) && !strings.HasSuffix(path, ".d.ts") || isPython(path)):
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}
