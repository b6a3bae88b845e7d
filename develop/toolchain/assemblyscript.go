package toolchain

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"runner.example/internal/diag"
)

// scriptPackage is the part of package.json that is used.
type scriptPackage struct {
	Dependencies, DevDependencies map[string]string
}

func (p scriptPackage) needs(name string) bool {
	return p.Dependencies[name] != "" || p.DevDependencies[name] != ""
}

// readScriptPackage reads the package.json of a directory. If it cannot be read, the result
// is empty.
func readScriptPackage(dir string) (p scriptPackage) {
	path := filepath.Join(dir, "package.json")
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return p // reading a pipe could block
	}
	if text, err := os.ReadFile(path); err == nil {
		_ = json.Unmarshal(text, &p)
	}
	return p
}

// isAssemblyScript reports whether a directory is written in AssemblyScript.
func isAssemblyScript(dir string) bool { return readScriptPackage(dir).needs("assemblyscript") }

const assemblyScriptSDK = "@runner/assemblyscript"

// assemblyScript builds a directory of handlers/ with the compiler installed in it. Its
// messages are added to the list.
func (b *builder) assemblyScript(ctx context.Context, s source) (*Module, error) {
	dir := filepath.Join(b.options.Dir, s.path)
	if _, err := exec.LookPath("node"); err != nil {
		return nil, fmt.Errorf("%s is written in AssemblyScript, and the command node is missing:"+
			" install Node.js 20 or later (nodejs.org)", s.path)
	}
	manifest := readScriptPackage(dir)
	for _, name := range []string{"assemblyscript", "json-as", assemblyScriptSDK} {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", name, "package.json")); err != nil && manifest.needs(name) {
			b.found.Errorf("", diag.Span{File: s.path}, "the package %s is missing: run `npm install` in %s", name, s.path)
			return nil, nil
		}
	}
	entries, err := scriptEntries(dir)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.path, err)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%s has a package.json that names assemblyscript, but no *.ts: write the handlers there", s.path)
	}
	return b.fromFile(s, func(building string) (bool, error) {
		args := append([]string{filepath.Join("node_modules", "assemblyscript", "bin", "asc.js")}, entries...)
		args = append(args, scriptOptions(dir, manifest)...)
		output, ok, err := b.run(ctx, s, scriptVariables, "node", append(args, "--outFile", building)...)
		if err == nil {
			b.addScriptMessages(s.path, output, ok)
		}
		return ok, err
	})
}

// scriptEntries returns the files whose exports are handlers: assembly/index.ts if it
// exists, otherwise those of the directory.
func scriptEntries(dir string) (entries []string, err error) {
	index := filepath.Join("assembly", "index.ts")
	if _, err := os.Stat(filepath.Join(dir, index)); err == nil {
		return []string{index}, nil
	}
	files, err := os.ReadDir(dir) // sorted by name
	for _, file := range files {
		name := file.Name()
		if isScript(name) && filepath.Ext(name) == ".ts" && !file.IsDir() {
			entries = append(entries, name)
		}
	}
	return entries, err
}

// scriptVariables reset environment variables that json-as reads, so that equal sources
// make equal bytes. They select its plain code: the code of json-as 1.6.0 that writes eight
// bytes at a time splits surrogate pairs.
var scriptVariables = []string{"JSON_CACHE=", "JSON_DEBUG=", "JSON_FAST_PATH_THROW=", "JSON_MODE=NAIVE", "JSON_STRICT=", "JSON_USE_FAST_PATH=1", "JSON_WRITE=", "NODE_OPTIONS="}

// scriptOptions are the compiler's options. An asconfig.json in the directory can add
// options, and select another runtime than the one that never frees memory: the sandbox
// restores the memory after every request.
func scriptOptions(dir string, manifest scriptPackage) []string {
	options := []string{"--noColors", "--exportStart", "_initialize", "--optimizeLevel", "3", "--shrinkLevel", "0", "--debug", "--sourceMap"}
	if manifest.needs("json-as") {
		options = append(options, "--transform", "json-as")
	}
	if manifest.needs(assemblyScriptSDK) {
		const from = "=~lib/" + assemblyScriptSDK + "/assembly/"
		options = append(options, "--transform", assemblyScriptSDK+"/transform",
			"--use", "abort"+from+"abort/abort", "--use", "seed"+from+"abort/seed", "--use", "trace"+from+"abort/trace",
			"--use", "console"+from+"console/console")
	} else {
		options = append(options, "--use", "abort=")
	}
	var config struct{ Options map[string]any }
	if text, err := os.ReadFile(filepath.Join(dir, "asconfig.json")); err == nil {
		_ = json.Unmarshal(text, &config) // the compiler reports its errors
	}
	if config.Options["runtime"] == nil {
		options = append(options, "--runtime", "stub")
	}
	return options
}

// mappedSource returns the name of a source in a source map, relative to the app directory. Those of libraries
// begin with ~lib.
func mappedSource(dir, source string) string {
	if strings.HasPrefix(source, "~") {
		return source
	}
	return path.Join(dir, strings.TrimPrefix(source, "./"))
}

// Messages of the compiler:
//
//	ERROR TS2304: Cannot find name 'x'.
//	   :
//	 4 │ return x;
//	   │        ~
//	   └─ in orders.ts(4,10)
var (
	scriptMessage = regexp.MustCompile(`^(ERROR|WARNING)(?: [A-Z]+[0-9]+)?:? (.*)$`)
	scriptMark    = regexp.MustCompile(`^ *│ *(~+)$`)
	scriptPlace   = regexp.MustCompile(`└─ in (.+)\(([0-9]+),([0-9]+)\)$`)
	scriptFailure = regexp.MustCompile(`^FAILURE (.*)$`)
	scriptClass   = regexp.MustCompile(`^Class (\w+) is missing an @json or @serializable decorator in (\S+)$`)
	scriptCount   = regexp.MustCompile(`^[0-9]+ (?:parse|compile|afterCompile) error\(s\)$`)
)

// classIn returns the place of a class in a file; the directory of the source, if it is not found.
func (b *builder) classIn(source, file, class string) diag.Span {
	text, err := os.ReadFile(filepath.Join(b.options.Dir, source, file))
	if err != nil {
		return diag.Span{File: source}
	}
	at := regexp.MustCompile(`\bclass\s+` + regexp.QuoteMeta(class) + `\b`).FindIndex(text)
	if at == nil {
		return diag.Span{File: source}
	}
	before := string(text[:at[0]])
	return diag.At(source+"/"+file, strings.Count(before, "\n")+1, at[0]-strings.LastIndex(before, "\n"), at[1]-at[0])
}

// addScriptMessages adds the compiler's messages to the list; warnings only for the app's own
// files.
func (b *builder) addScriptMessages(source, output string, ok bool) {
	var severity, text, failure string
	width, before := 1, len(b.found)
	report := func(span diag.Span, text string) {
		if severity == "WARNING" {
			b.found.Warnf("", span, "%s", text)
		} else {
			b.found.Errorf("", span, "%s", text)
		}
	}
	flush := func() {
		if text != "" && severity == "ERROR" {
			report(diag.Span{File: source}, text)
		}
		text, width = "", 1
	}
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if m := scriptMessage.FindStringSubmatch(line); m != nil {
			flush()
			severity, text = m[1], m[2]
		} else if m := scriptMark.FindStringSubmatch(line); m != nil {
			width = len(m[1])
		} else if m := scriptPlace.FindStringSubmatch(line); m != nil && text != "" {
			row, _ := strconv.Atoi(m[2])
			col, _ := strconv.Atoi(m[3]) // in UTF-16 units, which equal columns in almost all code
			switch {
			case severity == "WARNING" && strings.Contains(text, "#__"): // about a method that json-as has added
			case !strings.HasPrefix(m[1], "~lib/"):
				report(diag.At(source+"/"+m[1], row, col, width), text)
			case severity == "ERROR":
				report(diag.Span{File: source}, fmt.Sprintf("%s (in %s:%d:%d)", text, m[1], row, col))
			}
			text, width = "", 1
		} else if m := scriptFailure.FindStringSubmatch(line); m != nil && !scriptCount.MatchString(m[1]) {
			failure = strings.TrimPrefix(m[1], "Error: ")
		}
	}
	flush()
	switch m := scriptClass.FindStringSubmatch(failure); {
	case ok:
	case m != nil:
		b.found.Errorf("", b.classIn(source, m[2]+".ts", m[1]),
			"class %s is used by a class with @json, but has no @json: write @json above it", m[1])
	case failure != "":
		b.found.Errorf("", diag.Span{File: source}, "%s", failure)
	case !b.found[before:].HasErrors():
		b.found.Errorf("", diag.Span{File: source}, "the compiler failed without a message: run asc there for details")
	}
}
