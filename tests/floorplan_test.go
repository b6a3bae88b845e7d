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

// room is one package of the house: the floor it stands on and the outside
// modules that no other room may use.
type room struct {
	floor int
	sole  []string
}

// plan is the whole house. A package imports only from lower floors; rooms on
// one floor never import each other. Rooms come into being with the work that
// fills them; one that is not in the plan fails the test.
var plan = map[string]room{
	"internal/fault":     {0, nil},
	"internal/cost":      {0, nil},
	"internal/diag":      {0, nil},
	"internal/caller":    {0, nil},
	"internal/secret":    {0, nil},
	"internal/telemetry": {0, []string{"github.com/prometheus", "go.opentelemetry.io/otel"}},
	"internal/outbound":  {0, nil},
	"internal/wasm":      {0, nil},
	"hostabi/abi":        {0, nil},
	"store/space":        {0, []string{"github.com/dgraph-io/badger"}},
	"store/files":        {0, []string{"github.com/dgraph-io/badger"}},
	"sdk/c":              {0, nil}, // what build compiles with
	"sdk/go":             {0, nil}, // laid beside an app; a module of its own
	"sdk/typescript":     {0, nil}, // its sources are embedded: they are part of what build makes
	"sdk/assemblyscript": {0, nil}, // laid beside an app
	"sdk/rust":           {0, nil}, // laid beside an app
	"store":              {1, []string{"github.com/dgraph-io/badger", "github.com/nats-io"}},
	"schema":             {1, nil},
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

// outside are the parts of the tree that are no rooms: tests, examples, SDKs,
// the tools that check and measure, each bound by what a user could import, and
// changed copies of others' modules.
var outside = []string{"tests", "plugins", "sdk", "tools", "third_party"}

func TestEveryImportGoesDown(t *testing.T) {
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
		if own, ok := strings.CutSuffix(pkg, "/gen"); ok { // a room's generator stands in the room
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
		t.Errorf("only %d rooms found below %s: is the walk broken?", len(seen), root)
	}
	for pkg := range seen {
		if _, err := os.Stat(filepath.Join(root, pkg, "doc.go")); err != nil {
			t.Errorf("package %s has no doc.go", pkg)
		}
	}
}

func checkImport(t *testing.T, file, pkg string, here room, imported string) {
	if own, ok := strings.CutPrefix(imported, modulePath+"/"); ok {
		there, known := plan[own]
		switch {
		case own == pkg:
		case !known:
			t.Errorf("%s imports %s, which is not in the plan", file, imported)
		case there.floor >= here.floor:
			t.Errorf("%s (floor %d) imports %s (floor %d): only lower floors may be imported", file, here.floor, own, there.floor)
		}
		return
	}
	for other, r := range plan {
		for _, module := range r.sole {
			if other != pkg && under(imported, module) && !slices.ContainsFunc(here.sole, func(m string) bool { return under(imported, m) }) {
				t.Errorf("%s imports %s, which only %s may use", file, imported, other)
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
