package typescript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"

	"runner.example/internal/diag"
	"runner.example/internal/sourcemap"
	sdk "runner.example/sdk/typescript"
)

// The names of the scripts in stack traces, and of the entry script in source maps.
const (
	runtimeFile = "runtime.js"
	bundleFile  = "handlers.js"
	entryFile   = "runner-entry.js"
)

// sdkName is the module that handlers import, and testName the one of test files. sdkDirectory is
// the directory of their files in source maps; it does not exist in the app.
const (
	sdkName      = "@runner/sdk"
	testName     = "@runner/test"
	sdkDirectory = "runner-sdk"
)

// bundle is the handlers' sources as one script.
type bundle struct {
	script string
	// sourceMap maps places in the script to places in the files.
	sourceMap sourcemap.Map
	// calls names what the script calls: see callSites.
	calls string
	// flow is true if the script has AsyncLocalStorage.
	flow bool
	// files are the app's own files in the bundle, relative to the app directory.
	files []string
}

// bundleSDK builds a script that is evaluated before the handlers from a file of the SDK.
func bundleSDK(file string) (string, error) {
	result := api.Build(options(api.BuildOptions{
		EntryPointsAdvanced: []api.EntryPoint{{InputPath: sdkName + "/" + file, OutputPath: "script.js"}},
		Plugins:             []api.Plugin{sdkPlugin(false)},
		MinifyIdentifiers:   true, // parses faster, and no stack trace refers to it
		MinifySyntax:        true,
		MinifyWhitespace:    true,
	}))
	if len(result.Errors) > 0 {
		return "", fmt.Errorf("bundle the SDK: %s", result.Errors[0].Text)
	}
	return string(result.OutputFiles[0].Contents), nil
}

// handlersEntry returns the script that serves what the files export.
func handlersEntry(files []string) string {
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
	return entry.String()
}

// testsEntry returns the script whose handler runs the tests of one of the files. Each file is evaluated on its
// own, so that what registers a test is known to belong to it.
func testsEntry(files []string) string {
	var entry strings.Builder
	fmt.Fprintf(&entry, "import { serve } from %q;\nimport { load, run } from %q;\nload([\n", sdkName+"/serve.ts", testName+"/run.ts")
	for _, file := range files {
		fmt.Fprintf(&entry, "  [%s, () => require(%s)],\n", quoted(file), quoted("./"+file))
	}
	fmt.Fprintf(&entry, "]);\nserve([[%q, { %s: run }]]);\n", entryFile, TestHandler)
	return entry.String()
}

// bundleFiles bundles an entry script and everything that it imports into one script. Its imports are
// relative to dir. The list has errors and warnings with their places; with an error in it the bundle is nil.
func bundleFiles(dir, entry string, tests bool) (*bundle, diag.List, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	result := api.Build(options(api.BuildOptions{
		AbsWorkingDir: root,
		Stdin:         &api.StdinOptions{Contents: entry, ResolveDir: root, Sourcefile: entryFile},
		Outfile:       filepath.Join(root, bundleFile),
		Sourcemap:     api.SourceMapExternal,
		// Sources are read again when their content is needed.
		SourcesContent: api.SourcesContentExclude,
		Metafile:       true,
		Define:         missingIntl(),
		Inject:         []string{nodeInject},
		Plugins:        []api.Plugin{nodePlugin(), sdkPlugin(tests), textPlugin(root)},
	}))
	var found diag.List
	note(&found, result.Errors, diag.Error)
	note(&found, result.Warnings, diag.Warning)
	if found.HasErrors() {
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
	b.calls = callSites(root, b.script, &b.sourceMap)
	b.checkIntl(&found)
	b.flow = strings.Contains(result.Metafile, flowFile)
	if b.files, err = inputs(result.Metafile); err != nil || found.HasErrors() {
		return nil, found, err
	}
	return b, found, nil
}

func options(o api.BuildOptions) api.BuildOptions {
	o.Bundle = true
	o.Write = false
	o.Format = api.FormatIIFE
	o.Target = api.ES2023
	// If a package has several forms, use the one that does not need Node.js: with this
	// platform also those of the browser map of its package.json.
	o.Platform = api.PlatformBrowser
	o.MainFields = []string{"browser", "module", "main"}
	o.Conditions = []string{"runner", "worker", "browser", "module"}
	if o.Define == nil {
		o.Define = map[string]string{}
	}
	o.Define["process.env.NODE_ENV"] = `"production"`
	o.Define["global"] = "globalThis"
	// Packages make paths of files with these, which they may never read.
	o.Define["__dirname"], o.Define["__filename"], o.Define["import.meta.url"] = `"/"`, `"/index.js"`, `"file:///index.js"`
	o.Charset = api.CharsetUTF8
	o.LogLevel = api.LogLevelSilent
	// To find a place in a line, a stack trace reads the line's part of the source map.
	o.LineLimit = 500
	// A module whose name is only known at runtime cannot be bundled. note turns the warning
	// into an error, except in packages: these test for the platform first, and the import
	// fails at runtime.
	o.LogOverride = map[string]api.LogLevel{dynamicImport: api.LogLevelWarning}
	// Style sheets have no use in a handler.
	o.Loader = map[string]api.Loader{".css": api.LoaderNone, ".module.css": api.LoaderNone}
	for _, kind := range textFiles {
		o.Loader[kind] = api.LoaderText
	}
	o.LegalComments = api.LegalCommentsNone
	return o
}

// dynamicImport is the identifier of esbuild's message on an import() of a module that is not known
// at build time.
const dynamicImport = "unsupported-dynamic-import"

// textFiles are imported as strings. The SDK's globals.d.ts declares them.
var textFiles = []string{".txt", ".md", ".html", ".sql", ".csv", ".xml", ".svg", ".graphql"}

// sdkPlugin provides the SDK's files, which are embedded in this program. Only tests may import those of testName.
func sdkPlugin(tests bool) api.Plugin {
	const namespace = sdkDirectory
	return api.Plugin{Name: sdkDirectory, Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: `^@runner/(sdk|test)(/|$)`}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			folder := "src"
			name, file, _ := strings.Cut(strings.TrimPrefix(args.Path, "@runner/"), "/")
			if name == "test" {
				folder = "test"
				if !tests {
					return api.OnResolveResult{Errors: []api.Message{{Text: testName + " is for the files of tests, test/*.test.ts: a handler cannot import it"}}}, nil
				}
			}
			return sdkFile(path.Join(folder, cmp.Or(file, "index.ts"))), nil
		})
		b.OnResolve(api.OnResolveOptions{Filter: `^\.\.?/`, Namespace: namespace}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			return sdkFile(path.Join(path.Dir(args.Importer), args.Path)), nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: namespace}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
			text, err := sdk.Sources.ReadFile(args.Path)
			if err != nil {
				return api.OnLoadResult{}, fmt.Errorf("the SDK has no %s", args.Path)
			}
			content := string(text)
			return api.OnLoadResult{Contents: &content, Loader: api.LoaderTS}, nil
		})
	}}
}

// sdkFile returns the path of a file of the SDK for esbuild, which leaves out unused files of src/node.
func sdkFile(file string) api.OnResolveResult {
	result := api.OnResolveResult{Path: file, Namespace: sdkDirectory}
	if strings.HasPrefix(file, nodeFolder) {
		result.SideEffects = api.SideEffectsFalse
	}
	return result
}

// textPlugin refuses files of the app that are not UTF-8, because esbuild would change
// them. Files in packages are accepted, because the app's author cannot change them.
func textPlugin(root string) api.Plugin {
	return api.Plugin{Name: "text", Setup: func(b api.PluginBuild) {
		b.OnLoad(api.OnLoadOptions{Filter: `\.([cm]?[jt]sx?|json|txt|md|html|sql|csv|xml|svg|graphql)$`, Namespace: "file"}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
			if inPackage(args.Path) {
				return api.OnLoadResult{}, nil
			}
			text, err := os.ReadFile(args.Path)
			if err != nil || utf8.Valid(text) {
				return api.OnLoadResult{}, nil // esbuild reports unreadable files
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
			return api.OnLoadResult{Errors: []api.Message{{Text: "the file is not valid UTF-8: convert it", Location: at}}}, nil
		})
	}}
}

// inPackage reports whether a file is part of a package of npm.
func inPackage(file string) bool {
	return slices.Contains(strings.Split(filepath.ToSlash(file), "/"), "node_modules")
}

// inputs returns the files of the app that a bundle contains.
func inputs(metafile string) ([]string, error) {
	var meta struct {
		Inputs map[string]struct{} `json:"inputs"`
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, fmt.Errorf("read the inputs of the bundle: %w", err)
	}
	var files []string
	for name := range meta.Inputs {
		if !isOurs(name) && !strings.HasPrefix(name, "(disabled):") { // a module that a browser map replaces by nothing
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return files, nil
}

// note adds esbuild's messages to the list.
func note(found *diag.List, messages []api.Message, severity diag.Severity) {
	for _, m := range messages {
		span := spanOf(m)
		if m.ID == dynamicImport {
			if inPackage(span.File) {
				continue
			}
			severity = diag.Error
		}
		if severity == diag.Error {
			found.Errorf("", span, "%s", message(m))
		} else {
			found.Warnf("", span, "%s", message(m))
		}
	}
}

// spanOf returns the place of a message; the zero Span if it is about no file of the app.
func spanOf(m api.Message) diag.Span {
	at := m.Location
	if at == nil || at.File == entryFile {
		return diag.Span{}
	}
	col := utf8.RuneCountInString(at.LineText[:min(at.Column, len(at.LineText))]) + 1
	width := utf8.RuneCountInString(at.LineText[min(at.Column, len(at.LineText)):min(at.Column+at.Length, len(at.LineText))])
	return diag.At(at.File, at.Line, col, max(1, width))
}

var exposeMark = regexp.MustCompile(`^@expose\b`)

// sdkNames replaces the files of the SDK in a message by what the app imports.
var sdkNames = strings.NewReplacer(sdkDirectory+":src/index.ts", sdkName, sdkDirectory+":test/index.ts", testName)

// message rewrites a message of esbuild's: one line, in lower case.
func message(m api.Message) string {
	text := sdkNames.Replace(strings.ReplaceAll(m.Text, "\n", " "))
	switch {
	case strings.HasPrefix(text, "Top-level await"):
		return "await outside a function: handlers' files are evaluated once, at build time, and cannot wait; await inside a handler"
	case strings.HasPrefix(text, "Could not resolve \""):
		name := strings.Trim(strings.TrimPrefix(text, "Could not resolve "), `"`)
		if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") {
			return fmt.Sprintf("file %q does not exist", name)
		}
		if instead := insteadOf(name); instead != "" {
			return fmt.Sprintf("%q is a part of Node.js that handlers do not have: %s", name, instead)
		}
		if rest, ok := strings.CutPrefix(name, "@runner/"); ok {
			if rest == "client" {
				return fmt.Sprintf("%q is not a package: `runner generate client --out client.mts` "+
					"writes the client of this app, import that file", name)
			}
			return fmt.Sprintf("%q is not a package: handlers import \"@runner/sdk\"", name)
		}
		return fmt.Sprintf("module %q not found: install it in the app directory (npm install) if it runs without Node.js", name)
	case strings.HasPrefix(text, "No loader is configured for \""):
		kind, _, _ := strings.Cut(strings.TrimPrefix(text, "No loader is configured for \""), `"`)
		return fmt.Sprintf("a file %s cannot be imported: only TypeScript, JavaScript, JSON and text can; a file of text with another name can with { type: \"text\" } after its name", kind)
	case strings.HasPrefix(text, "Decorators are not valid here"):
		if m.Location != nil && exposeMark.MatchString(m.Location.LineText[min(m.Location.Column, len(m.Location.LineText)):]) {
			return "@expose belongs in the schema: functions (auth: …) { @expose name() }"
		}
		return "a decorator is allowed only on classes and their members: a function has none"
	case strings.HasPrefix(text, `This "import" expression`):
		return "the imported module must be known at build time: import a name in quotes"
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// quoted returns a JavaScript string literal.
func quoted(s string) string {
	text, _ := json.Marshal(s) // a string is always valid JSON, and JSON is valid JavaScript
	return string(text)
}
