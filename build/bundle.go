package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"

	"runner.example/internal/diag"
	"runner.example/sdk/typescript"
)

// The names that stack traces have for the two scripts, and source maps for what
// puts the handlers' files together.
const (
	runtimeFile = "runtime.js"
	bundleFile  = "handlers.js"
	entryFile   = "runner-entry.js"
)

// sdkName is what handlers import; sdkFolder is what its files are called in
// source maps, where they stand in no folder of the app.
const (
	sdkName   = "@runner/sdk"
	sdkFolder = "runner-sdk"
)

// bundle is the handlers' sources as one script.
type bundle struct {
	script string
	// sourceMap tells which places of which files the script's own are.
	sourceMap sourceMap
	// files are the app's own files that it is made of, relative to its folder.
	files []string
}

type sourceMap struct {
	Sources  []string `json:"sources"`
	Mappings string   `json:"mappings"`
}

// bundleRuntime makes the script that is evaluated before the handlers: it gives
// the engine what people expect of JavaScript beside the language.
func bundleRuntime() (string, error) {
	result := api.Build(options(api.BuildOptions{
		EntryPointsAdvanced: []api.EntryPoint{{InputPath: sdkName + "/runtime.ts", OutputPath: runtimeFile}},
		Plugins:             []api.Plugin{sdkPlugin()},
		MinifyIdentifiers:   true, // it is sooner read, and no trace leads there
		MinifySyntax:        true,
		MinifyWhitespace:    true,
	}))
	if len(result.Errors) > 0 {
		return "", fmt.Errorf("bundle the SDK: %s", result.Errors[0].Text)
	}
	return string(result.OutputFiles[0].Contents), nil
}

// bundleHandlers makes one script of the files, which are relative to dir, and of
// everything that they import. The list tells mistakes and doubts with their
// places; with an error in it there is no bundle.
func bundleHandlers(dir string, files []string) (*bundle, diag.List, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	var entry strings.Builder
	fmt.Fprintf(&entry, "import { serve } from %q;\n", sdkName+"/serve.ts")
	for i, file := range files {
		fmt.Fprintf(&entry, "import * as file%d from %s;\n", i, quoted("./"+file))
	}
	entry.WriteString("serve([\n")
	for i, file := range files {
		fmt.Fprintf(&entry, "  [%s, file%d],\n", quoted(file), i)
	}
	entry.WriteString("]);\n")
	result := api.Build(options(api.BuildOptions{
		AbsWorkingDir: root,
		Stdin:         &api.StdinOptions{Contents: entry.String(), ResolveDir: root, Sourcefile: entryFile},
		Outfile:       filepath.Join(root, bundleFile),
		Sourcemap:     api.SourceMapExternal,
		// Where the content of a source is needed it is read again.
		SourcesContent: api.SourcesContentExclude,
		Metafile:       true,
		Plugins:        []api.Plugin{sdkPlugin(), textPlugin(root)},
	}))
	var found diag.List
	note(&found, result.Errors, diag.Error)
	note(&found, result.Warnings, diag.Warning)
	if len(result.Errors) > 0 {
		return nil, found, nil
	}
	b := &bundle{}
	for _, out := range result.OutputFiles {
		if strings.HasSuffix(out.Path, ".map") {
			if err := json.Unmarshal(out.Contents, &b.sourceMap); err != nil {
				return nil, nil, fmt.Errorf("read the source map: %w", err)
			}
			continue
		}
		b.script = string(out.Contents)
	}
	b.files, err = inputs(result.Metafile)
	return b, found, err
}

func options(o api.BuildOptions) api.BuildOptions {
	o.Bundle = true
	o.Write = false
	o.Format = api.FormatIIFE
	o.Target = api.ES2023
	o.Platform = api.PlatformNeutral
	// Of a package that has several forms, the one that needs no Node.js.
	o.MainFields = []string{"browser", "module", "main"}
	o.Conditions = []string{"runner", "worker", "browser", "module"}
	o.Define = map[string]string{"process.env.NODE_ENV": `"production"`}
	o.Charset = api.CharsetUTF8
	o.LogLevel = api.LogLevelSilent
	// To find a place in a line, a stack trace reads the line's part of the source map.
	o.LineLimit = 500
	// What is only known when it runs cannot be bundled before.
	o.LogOverride = map[string]api.LogLevel{"unsupported-dynamic-import": api.LogLevelError}
	// A style has no place in a handler.
	o.Loader = map[string]api.Loader{".css": api.LoaderNone, ".module.css": api.LoaderNone}
	o.LegalComments = api.LegalCommentsNone
	return o
}

// sdkPlugin gives the SDK's files, which are part of this program.
func sdkPlugin() api.Plugin {
	const namespace = sdkFolder
	return api.Plugin{Name: sdkFolder, Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: `^@runner/sdk(/|$)`}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			file := strings.TrimPrefix(strings.TrimPrefix(args.Path, sdkName), "/")
			if file == "" {
				file = "index.ts"
			}
			return api.OnResolveResult{Path: file, Namespace: namespace}, nil
		})
		b.OnResolve(api.OnResolveOptions{Filter: `^\./`, Namespace: namespace}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: path.Clean(args.Path), Namespace: namespace}, nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: namespace}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
			text, err := typescript.Sources.ReadFile("src/" + args.Path)
			if err != nil {
				return api.OnLoadResult{}, fmt.Errorf("%s has no %s", sdkName, args.Path)
			}
			content := string(text)
			return api.OnLoadResult{Contents: &content, Loader: api.LoaderTS}, nil
		})
	}}
}

// textPlugin refuses files of the app that are not UTF-8, of which something else
// would be made. In packages it is not the app's to mend.
func textPlugin(root string) api.Plugin {
	return api.Plugin{Name: "text", Setup: func(b api.PluginBuild) {
		b.OnLoad(api.OnLoadOptions{Filter: `\.([cm]?[jt]sx?|json|txt)$`, Namespace: "file"}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
			if strings.Contains(filepath.ToSlash(args.Path), "/node_modules/") {
				return api.OnLoadResult{}, nil
			}
			text, err := os.ReadFile(args.Path)
			if err != nil || utf8.Valid(text) {
				return api.OnLoadResult{}, nil // what cannot be read, esbuild tells
			}
			file, err := filepath.Rel(root, args.Path)
			if err != nil {
				file = args.Path
			}
			at := &api.Location{File: filepath.ToSlash(file), Line: 1}
			for line := range bytes.Lines(text) {
				if !utf8.Valid(line) {
					at.LineText = string(line)
					break
				}
				at.Line++
			}
			for at.Column < len(at.LineText) {
				r, size := utf8.DecodeRuneInString(at.LineText[at.Column:])
				if r == utf8.RuneError && size == 1 {
					break
				}
				at.Column += size
			}
			return api.OnLoadResult{Errors: []api.Message{{Text: "the file is not UTF-8: save it as such", Location: at}}}, nil
		})
	}}
}

// inputs are the files of the app that a bundle is made of.
func inputs(metafile string) ([]string, error) {
	var meta struct {
		Inputs map[string]struct{} `json:"inputs"`
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, fmt.Errorf("read what the bundle is made of: %w", err)
	}
	var files []string
	for name := range meta.Inputs {
		if !isOurs(name) {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return files, nil
}

// note adds esbuild's messages to the list.
func note(found *diag.List, messages []api.Message, severity diag.Severity) {
	for _, m := range messages {
		span := diag.Span{}
		if at := m.Location; at != nil && at.File != entryFile {
			col := utf8.RuneCountInString(at.LineText[:min(at.Column, len(at.LineText))]) + 1
			width := utf8.RuneCountInString(at.LineText[min(at.Column, len(at.LineText)):min(at.Column+at.Length, len(at.LineText))])
			span = place(at.File, at.Line, col, max(1, width))
		}
		if severity == diag.Error {
			found.Errorf("", span, "%s", message(m))
		} else {
			found.Warnf("", span, "%s", message(m))
		}
	}
}

// nodeModules are those of Node.js that packages still ask for by their bare names.
var nodeModules = []string{
	"assert", "async_hooks", "buffer", "child_process", "cluster", "crypto", "dgram", "dns", "events", "fs", "fs/promises", "http",
	"http2", "https", "module", "net", "os", "path", "perf_hooks", "process", "querystring", "readline", "stream", "string_decoder",
	"timers", "tls", "tty", "url", "util", "v8", "vm", "worker_threads", "zlib",
}

// message is a message in our words: one line, lower case where it is prose.
func message(m api.Message) string {
	text := strings.ReplaceAll(m.Text, "\n", " ")
	switch {
	case strings.HasPrefix(text, "Top-level await"):
		return "await stands outside of a function: handlers' modules are evaluated once, when they are built, and cannot wait; await inside of a handler"
	case strings.HasPrefix(text, "Could not resolve \""):
		name := strings.Trim(strings.TrimPrefix(text, "Could not resolve "), `"`)
		if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") {
			return fmt.Sprintf("there is no file %q", name)
		}
		if strings.HasPrefix(name, "node:") || slices.Contains(nodeModules, name) {
			return fmt.Sprintf("%q is a part of Node.js, and handlers run without it: use what the SDK and the language have, or another package", name)
		}
		return fmt.Sprintf("there is no module %q: install it in the app's folder (npm install), if it is one that runs without Node.js", name)
	case strings.HasPrefix(text, "No loader is configured for \""):
		kind, _, _ := strings.Cut(strings.TrimPrefix(text, "No loader is configured for \""), `"`)
		return fmt.Sprintf("a file %s cannot be imported: handlers are made of TypeScript, JavaScript, JSON and text", kind)
	case strings.HasPrefix(text, `This "import" expression`):
		return "what is imported must be known when the module is built: import a name in quotes"
	}
	return strings.ToLower(text[:1]) + text[1:]
}

func place(file string, line, col, width int) diag.Span {
	return diag.Span{
		File:  file,
		Start: diag.Pos{Line: line, Col: col},
		End:   diag.Pos{Line: line, Col: col + width},
	}
}

// quoted is a JavaScript string.
func quoted(s string) string {
	text, _ := json.Marshal(s) // a string always is JSON, and JSON is JavaScript
	return string(text)
}
