package typescript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// nodeFiles has the modules of Node.js that handlers can import, with or without the prefix node:, each with the
// expression that becomes its module.exports. The files are in the SDK's src/node.
var nodeFiles = map[string]string{
	"assert":              `require("assert.ts").default`,
	"assert/strict":       `require("assert.ts").default.strict`,
	"async_hooks":         `require("async_hooks.ts").default`,
	"buffer":              `require("buffer.ts").default`,
	"console":             `globalThis.console`,
	"crypto":              `require("crypto.ts").default`,
	"diagnostics_channel": `require("diagnostics_channel.ts").default`,
	"events":              `require("events.ts").default`,
	"os":                  `require("os.ts").default`,
	"path":                `require("path.ts").default`,
	"path/posix":          `require("path.ts").default`,
	"perf_hooks":          `require("perf_hooks.ts").default`,
	"process":             `require("process.ts").default`,
	"querystring":         `require("querystring.ts").default`,
	"stream":              `require("stream.ts").default`,
	"stream/consumers":    `require("streamweb.ts").consumers`,
	"stream/promises":     `require("stream.ts").default.promises`,
	"stream/web":          `require("streamweb.ts").default`,
	"string_decoder":      `require("string_decoder.ts").default`,
	"sys":                 `require("util.ts").default`,
	"timers":              `require("timers.ts").default`,
	"timers/promises":     `require("timers.ts").default.promises`,
	"tty":                 `{ isatty: () => false }`,
	"url":                 `require("url.ts").default`,
	"util":                `require("util.ts").default`,
	"util/types":          `require("util.ts").default.types`,
	"zlib":                `require("zlib.ts").default`,
}

// missingNodeFiles are the other modules of Node.js, each with what a handler uses instead. Only packages may import
// them, and their functions throw when they are called.
var missingNodeFiles = map[string]string{
	"child_process": useJobs, "cluster": useJobs, "worker_threads": useJobs,
	"dgram": useFetch, "dns": useFetch, "dns/promises": useFetch, "http": useFetch, "http2": useFetch, "https": useFetch, "net": useFetch, "tls": useFetch,
	"fs": useEntities, "fs/promises": useEntities, "sqlite": useEntities,
	"test":      "use \"@runner/test\" in a file of the directory test",
	"constants": useOthers, "domain": useOthers, "inspector": useOthers, "module": useOthers, "path/win32": useOthers, "punycode": useOthers, "readline": useOthers,
	"readline/promises": useOthers, "repl": useOthers, "sea": useOthers, "trace_events": useOthers, "v8": useOthers, "vm": useOthers, "wasi": useOthers,
}

// What a handler uses instead of a module of Node.js.
const (
	useEntities = "keep data in entities, and import files of text or JSON at build time"
	useFetch    = "call other servers with fetch"
	useJobs     = "a handler has one thread; work after the answer is a job"
	useOthers   = "use what the SDK and the language have, or another package"
)

// insteadOf returns what a handler uses instead of a module of Node.js that it does not have, or "" for other names.
func insteadOf(name string) string {
	plain, prefixed := strings.CutPrefix(name, "node:")
	instead := missingNodeFiles[plain]
	switch {
	case prefixed && instead == "":
		return useOthers
	case !prefixed && (plain == "sea" || plain == "sqlite" || plain == "test"): // these have the prefix always
		return ""
	}
	return instead
}

const (
	nodeFolder = "src/node/"                 // the modules, in the SDK
	nodeInject = sdkName + "/node/inject.ts" // exports the globals of Node.js
	// flowFile is the file with AsyncLocalStorage, as esbuild's metafile names it.
	flowFile = sdkDirectory + ":" + nodeFolder + "async_hooks.ts"
)

// Namespaces of esbuild: modules of Node.js, those that are missing, and packages that are not installed.
const (
	nodeNamespace    = sdkDirectory + "-node"
	missingNamespace = sdkDirectory + "-missing"
	absentNamespace  = sdkDirectory + "-absent"
)

// nodePlugin provides the modules of Node.js that the SDK has. If the map "browser" in the package.json of a package
// replaces a module, esbuild follows the map. A package may require a package that is not installed, which is often
// optional: require then throws at runtime.
func nodePlugin() api.Plugin {
	return api.Plugin{Name: nodeNamespace, Setup: func(b api.PluginBuild) {
		maps := browserMaps{}
		b.OnResolve(api.OnResolveOptions{Filter: `^(node:)?[a-z0-9_]+(/[a-z0-9_]+)?$`}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			name := strings.TrimPrefix(args.Path, "node:")
			_, have := nodeFiles[name]
			switch {
			case args.Namespace == sdkDirectory || !have && missingNodeFiles[name] == "", maps.has(args.ResolveDir, args.Path):
				return api.OnResolveResult{}, nil
			case have:
				return api.OnResolveResult{Path: name, Namespace: nodeNamespace}, nil
			case inPackage(args.Importer) && (args.Path != name || !installed(args.ResolveDir, name)):
				return api.OnResolveResult{Path: name, Namespace: missingNamespace}, nil
			}
			return api.OnResolveResult{}, nil
		})
		b.OnResolve(api.OnResolveOptions{Filter: `\.ts$`, Namespace: nodeNamespace}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			return sdkFile(nodeFolder + args.Path), nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: nodeNamespace}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
			text := "module.exports = " + nodeFiles[args.Path]
			return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: missingNamespace}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
			text := fmt.Sprintf("module.exports = require(%q).missing(%q)", sdkName+"/node/missing.ts", args.Path)
			if args.Path == "module" {
				text = fmt.Sprintf("module.exports = require(%q).nodeModule", sdkName+"/node/missing.ts")
			}
			return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
		})
		b.OnResolve(api.OnResolveOptions{Filter: `^[@\w]`, Namespace: "file"}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			if args.Kind != api.ResolveJSRequireCall || args.PluginData != nil || !inPackage(args.Importer) {
				return api.OnResolveResult{}, nil
			}
			found := b.Resolve(args.Path, api.ResolveOptions{
				Importer: args.Importer, Namespace: args.Namespace, ResolveDir: args.ResolveDir, Kind: args.Kind, PluginData: absentNamespace,
			})
			if len(found.Errors) == 0 {
				return api.OnResolveResult{}, nil
			}
			return api.OnResolveResult{Path: args.Path, Namespace: absentNamespace}, nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: absentNamespace}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
			text := fmt.Sprintf("throw Object.assign(new Error(%s), { code: \"MODULE_NOT_FOUND\" })",
				quoted("Cannot find module '"+args.Path+"': install it in the app directory (npm install) if it runs without Node.js"))
			return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: `\.browser\.m?js$`, Namespace: "file"}, withoutDOM)
	}}
}

// withoutDOM loads x.browser.js of a package. If that needs the DOM to parse XML, it loads x.js instead, which packages
// have for Node.js.
func withoutDOM(args api.OnLoadArgs) (api.OnLoadResult, error) {
	text, err := os.ReadFile(args.Path)
	if err != nil || !bytes.Contains(text, []byte("DOMParser")) || !inPackage(args.Path) {
		return api.OnLoadResult{}, nil // esbuild reports unreadable files
	}
	at := strings.LastIndex(args.Path, ".browser.")
	if text, err = os.ReadFile(args.Path[:at] + args.Path[at+len(".browser"):]); err != nil {
		return api.OnLoadResult{}, nil
	}
	content := string(text)
	return api.OnLoadResult{Contents: &content, Loader: api.LoaderJS}, nil
}

// browserMaps are the maps "browser" of packages, by directory.
type browserMaps map[string]map[string]json.RawMessage

// has reports whether the map of the package that contains the directory replaces the module.
func (m browserMaps) has(dir, name string) bool {
	found, known := m[dir]
	if !known {
		var description struct {
			Browser json.RawMessage `json:"browser"`
		}
		text, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err == nil && json.Unmarshal(text, &description) == nil {
			_ = json.Unmarshal(description.Browser, &found) // it may be a string, too
		} else if above := filepath.Dir(dir); above != dir && inPackage(above) {
			return m.has(above, name)
		}
		m[dir] = found
	}
	_, replaced := found[name]
	return replaced
}

// installed reports whether a package with the name of a module of Node.js is installed.
func installed(dir, name string) bool {
	for {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", filepath.FromSlash(name), "package.json")); err == nil {
			return true
		}
		above := filepath.Dir(dir)
		if above == dir {
			return false
		}
		dir = above
	}
}

// nativeParts are packages that others use to build or to load native code.
var nativeParts = []string{"@mapbox/node-pre-gyp", "bindings", "nan", "node-addon-api", "node-gyp-build", "prebuild-install"}

// nativePackage returns the name of the package of a file if it has native code, or "".
func nativePackage(file string) string {
	for dir := filepath.Dir(file); inPackage(dir); dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err != nil {
			continue
		}
		var p struct {
			Name                 string          `json:"name"`
			Gypfile              json.RawMessage `json:"gypfile"`
			Dependencies         map[string]any  `json:"dependencies"`
			OptionalDependencies map[string]any  `json:"optionalDependencies"`
		}
		if json.Unmarshal(text, &p) != nil || p.Name == "" {
			continue // a package.json in a package may only have its type
		}
		native := p.Gypfile != nil
		for name := range p.Dependencies {
			native = native || slices.Contains(nativeParts, name)
		}
		for name := range p.OptionalDependencies {
			native = native || strings.Contains(name, "-linux-x64") // a binary for each platform
		}
		if native {
			return p.Name
		}
		return ""
	}
	return ""
}
