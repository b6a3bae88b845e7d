package tests

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "runner.example"

// A layeredPackage has a layer, and may be the only importer of some modules.
type layeredPackage struct {
	layer        int
	onlyImporter []string // prefixes of the import paths that no other package may import
}

// plan has every package. A package imports only from lower layers; packages of one
// layer never import each other. A package that is not in the plan fails the test.
var plan = map[string]layeredPackage{
	"internal/fault":     {0, nil},
	"internal/cost":      {0, nil},
	"internal/diag":      {0, nil},
	"internal/caller":    {0, nil},
	"internal/secret":    {0, nil},
	"internal/telemetry": {0, []string{"github.com/prometheus", "go.opentelemetry.io/otel"}},
	"internal/fairqueue": {0, nil},
	"internal/cpuqueue":  {0, nil},
	"internal/outbound":  {1, nil},
	"internal/wasm":      {0, nil},
	"hostabi/abi":        {0, nil},
	"store/space":        {0, []string{"github.com/dgraph-io/badger"}},
	"store/files":        {0, []string{"github.com/dgraph-io/badger"}},
	"sdk/c":              {0, nil}, // headers, embedded for build
	"sdk/go":             {0, nil}, // a separate Go module, placed beside an app
	"sdk/typescript":     {0, nil}, // sources, embedded for build
	"sdk/assemblyscript": {0, nil}, // placed beside an app
	"sdk/rust":           {0, nil}, // placed beside an app
	"store":              {1, []string{"github.com/dgraph-io/badger", "github.com/nats-io"}},
	"schema":             {1, nil},
	"schema/syntax":      {1, nil},
	"schema/compiler":    {2, nil},
	"audit":              {2, nil},
	"generate":           {2, nil},
	"entity":             {3, nil},
	"keystore":           {3, nil},
	"release":            {3, nil},
	"webhook":            {3, nil},
	"hostabi":            {4, []string{"github.com/tetratelabs/wazero/api"}},
	"runtime/front":      {5, []string{"github.com/valyala/fasthttp"}},
	"runtime/router":     {5, nil},
	"runtime/auth":       {5, []string{"github.com/golang-jwt", "github.com/MicahParks", "github.com/lestrrat-go/jwx"}},
	"runtime/limit":      {5, nil},
	"runtime/sandbox":    {5, []string{"github.com/tetratelabs/wazero"}},
	"runtime":            {6, nil},
	"admin":              {7, nil},
	"build":              {7, []string{"github.com/evanw/esbuild", "github.com/tetratelabs/wazero"}},
	"cmd/runner":         {8, []string{"github.com/BurntSushi/toml", "github.com/fsnotify/fsnotify", "github.com/spf13/cobra"}},
}

// outside are directories that have no layer: tests, examples, SDKs, the tools that
// check and measure, and changed copies of third-party modules.
var outside = []string{"tests", "plugins", "sdk", "tools", "third_party"}

func TestPackagesImportOnlyFromLowerLayers(t *testing.T) {
	root := repoRoot(t)
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if name := d.Name(); rel != "." && (strings.HasPrefix(name, ".") || name == "testdata" || slices.Contains(outside, rel)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		pkg := filepath.ToSlash(filepath.Dir(rel))
		if own, ok := strings.CutSuffix(pkg, "/gen"); ok { // a generator belongs to the package that it generates for
			pkg = own
		}
		here, ok := plan[pkg]
		if !ok {
			t.Errorf("%s: package %s is not in the plan", rel, pkg)
			return nil
		}
		seen[pkg] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			checkImport(t, rel, pkg, here, imported)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) < 10 {
		t.Errorf("only %d packages found below %s: is the walk broken?", len(seen), root)
	}
	for pkg := range seen {
		if _, err := os.Stat(filepath.Join(root, pkg, "doc.go")); err != nil {
			t.Errorf("package %s has no doc.go", pkg)
		}
	}
}

func checkImport(t *testing.T, file, pkg string, here layeredPackage, imported string) {
	if own, ok := strings.CutPrefix(imported, modulePath+"/"); ok {
		there, known := plan[own]
		switch {
		case own == pkg:
		case !known:
			t.Errorf("%s imports %s, which is not in the plan", file, imported)
		case there.layer >= here.layer:
			t.Errorf("%s (layer %d) imports %s (layer %d): a package imports only from lower layers", file, here.layer, own, there.layer)
		}
		return
	}
	for other, r := range plan {
		for _, module := range r.onlyImporter {
			if other != pkg && under(imported, module) && !slices.ContainsFunc(here.onlyImporter, func(m string) bool { return under(imported, m) }) {
				t.Errorf("%s imports %s, which only %s may import", file, imported, other)
			}
		}
	}
}

// under reports whether path is module or a package of it, "/v4" suffixes
// included.
func under(path, module string) bool {
	return path == module || strings.HasPrefix(path, module+"/")
}

func repoRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(dir)
}
