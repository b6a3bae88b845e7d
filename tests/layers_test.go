package tests

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	modulePath = "runner.example"
	wazero     = "github.com/tetratelabs/wazero"
)

// A layeredPackage has a layer, and may be the only importer of some modules.
type layeredPackage struct {
	layer        int
	onlyImporter []string // prefixes of the import paths that no other package may import
}

// plan has every package. A package imports only from lower layers; packages of one
// layer never import each other. A package that is not in the plan fails the test.
var plan = map[string]layeredPackage{
	"internal/fault":       {0, nil},
	"internal/cost":        {0, nil},
	"internal/casefold":    {0, []string{"golang.org/x/text/cases"}},
	"internal/diag":        {0, nil},
	"internal/sourcemap":   {0, nil},
	"internal/gcpace":      {0, nil},
	"internal/caller":      {0, nil},
	"internal/secret":      {0, nil},
	"internal/telemetry":   {0, []string{"github.com/prometheus", "go.opentelemetry.io/otel"}},
	"internal/fairqueue":   {0, nil},
	"internal/cpuqueue":    {0, nil},
	"internal/timezone":    {1, []string{"time/tzdata"}},
	"internal/symbols":     {2, []string{"github.com/ianlancetaylor/demangle"}},
	"internal/schedule":    {2, []string{"github.com/robfig/cron"}},
	"internal/idn":         {1, []string{"golang.org/x/net/idna"}},
	"internal/connlimit":   {1, nil},
	"internal/outbound":    {1, nil},
	"internal/octets":      {1, nil},
	"internal/deadline":    {1, nil},
	"internal/pbkdf2":      {1, nil},
	"internal/longwork":    {2, nil},
	"internal/password":    {2, []string{"golang.org/x/crypto/argon2", "golang.org/x/crypto/bcrypt", "golang.org/x/crypto/scrypt"}},
	"internal/webcrypto":   {2, nil},
	"internal/wasm":        {1, nil},
	"internal/wasm/opcode": {0, nil},
	"internal/wazerofix":   {0, []string{wazero}},
	"hostabi/abi":          {0, nil},
	"internal/atomicio":    {0, nil},
	"store/commitlog":      {0, nil},
	"store/datadir":        {0, nil},
	"store/frame":          {0, nil},
	"store/lag":            {0, nil},
	"store/retry":          {0, nil},
	"store/space":          {0, []string{"github.com/dgraph-io/badger"}},
	"store/files":          {0, []string{"github.com/dgraph-io/badger"}},
	"sdk/c":                {0, nil}, // headers, embedded for build
	"sdk/go":               {0, nil}, // a separate Go module, placed beside an app
	"sdk/typescript":       {0, nil}, // sources, embedded for build
	"sdk/assemblyscript":   {0, nil}, // placed beside an app
	"sdk/rust":             {0, nil}, // placed beside an app
	"store":                {1, []string{"github.com/dgraph-io/badger"}},
	"store/storetest":      {2, nil}, // for tests
	"store/etcdlog":        {1, []string{"go.etcd.io/etcd", "go.uber.org/zap"}},
	"keystore/credtime":    {1, nil},
	"keystore/tokenindex":  {0, nil},
	"internal/settings":    {1, []string{"github.com/BurntSushi/toml"}},
	"internal/console":     {1, nil},
	"schema":               {1, nil},
	"schema/syntax":        {1, nil},
	"schema/changes":       {3, nil},
	"schema/format":        {2, nil},
	"schema/model":         {2, nil},
	"schema/vars":          {3, nil},
	"schema/report":        {2, nil},
	"schema/compiler":      {4, nil},
	"audit":                {2, nil},
	"generate":             {2, nil},
	"entity/layout":        {2, nil},
	"entity/query":         {2, nil},
	"entity/catalog":       {3, nil},
	"entity":               {4, nil},
	"keystore":             {3, nil},
	"release":              {3, nil},
	"webhook":              {3, nil},
	"jobs":                 {3, nil},
	"cluster":              {5, nil},
	"salvage":              {5, nil},
	"hostabi/sentvalue":    {1, nil},
	"hostabi":              {5, []string{"github.com/tetratelabs/wazero/api"}},
	"runtime/compile":      {5, []string{wazero}},
	"runtime/front":        {6, []string{"github.com/valyala/fasthttp"}},
	"runtime/router":       {6, nil},
	"runtime/auth":         {6, []string{"github.com/golang-jwt", "github.com/MicahParks", "github.com/lestrrat-go/jwx"}},
	"runtime/limit":        {6, nil},
	"runtime/draws":        {6, []string{wazero}},
	"runtime/sandbox":      {6, []string{wazero}},
	"runtime":              {7, nil},
	"admin":                {8, nil},
	"build":                {8, []string{"github.com/evanw/esbuild", wazero}},
	"app":                  {9, nil},
	"rowfile":              {9, nil},
	"handlerbench":         {10, nil},
	"deploy":               {10, nil},
	"node":                 {10, nil},
	"dev":                  {11, []string{"github.com/fsnotify/fsnotify"}},
	"cmd/runner/cli":       {12, []string{"github.com/spf13/cobra"}},
	"cmd/runner/data":      {13, []string{"github.com/spf13/cobra"}},
	"cmd/runner/jobs":      {13, []string{"github.com/spf13/cobra"}},
	"cmd/runner/nodes":     {13, []string{"github.com/spf13/cobra"}},
	"cmd/runner":           {14, []string{"github.com/spf13/cobra"}},
	"backup":               {4, nil},
	"internal/version":     {0, nil},
	"scaffold":             {10, nil},
	"config":               {8, []string{"github.com/KimMachineGun/automemlimit"}},
}

// outside are directories that have no layer: tests, examples, SDKs, the tools that
// check and measure, and changed copies of third-party modules.
var outside = []string{"tests", "plugins", "sdk", "tools", "third_party"}

// eachGoFile calls do for the Go files of the repository that are not tests. It leaves out
// hidden directories, testdata, the dependencies of other languages, and the directories
// without.
func eachGoFile(t *testing.T, without []string, do func(path, rel string) error) {
	t.Helper()
	root := repoRoot(t)
	skipped := []string{"testdata", "node_modules", "target"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		name := d.Name()
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(name, ".") || slices.Contains(skipped, name) || slices.Contains(without, rel)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		return do(path, rel)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPackagesImportOnlyFromLowerLayers(t *testing.T) {
	root := repoRoot(t)
	seen := map[string]bool{}
	eachGoFile(t, outside, func(path, rel string) error {
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

// TestPackagesThatImportWazeroCorrectItsCompiler looks for blank imports.
func TestPackagesThatImportWazeroCorrectItsCompiler(t *testing.T) {
	const fix = modulePath + "/internal/wazerofix"
	imports, corrected := map[string]bool{}, map[string]bool{fix: true}
	eachGoFile(t, outside, func(path, rel string) error {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := modulePath + "/" + filepath.ToSlash(filepath.Dir(rel))
		for _, spec := range file.Imports {
			switch imported, _ := strconv.Unquote(spec.Path.Value); imported {
			case wazero:
				imports[pkg] = true
			case fix:
				corrected[pkg] = true
			}
		}
		return nil
	})
	for pkg := range imports {
		if !corrected[pkg] {
			t.Errorf("%s imports %s without %s", pkg, wazero, fix)
		}
	}
	if len(imports) < 4 {
		t.Errorf("only %d packages import %s: is the walk broken?", len(imports), wazero)
	}
}

// sdkSources says how the files of an SDK name the files that they import.
var sdkSources = []struct {
	dir, ext string
	imports  *regexp.Regexp // its group is the file, without its extension
}{
	{"sdk/rust/src", ".rs", regexp.MustCompile(`\bcrate::([a-z_]+)`)},
	{"sdk/typescript/src", ".ts", regexp.MustCompile(`\bfrom "\./([^"]+?)(?:\.ts)?"`)},
	{"sdk/assemblyscript/assembly", ".ts", regexp.MustCompile(`\bfrom "\./([^"]+)"`)},
}

func TestFilesOfAnSDKImportEachOtherWithoutCycles(t *testing.T) {
	for _, sdk := range sdkSources {
		files, err := filepath.Glob(filepath.Join(repoRoot(t), sdk.dir, "*"+sdk.ext))
		if err != nil || len(files) < 5 {
			t.Fatalf("%s: %d files, %v", sdk.dir, len(files), err)
		}
		imports, edges := map[string][]string{}, 0
		for _, path := range files {
			name := strings.TrimSuffix(filepath.Base(path), sdk.ext)
			if name == "lib" { // the root of a crate names all of its modules
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				code, _, _ := strings.Cut(line, "//")
				for _, m := range sdk.imports.FindAllStringSubmatch(code, -1) {
					if m[1] != name && !slices.Contains(imports[name], m[1]) {
						imports[name] = append(imports[name], m[1])
						edges++
					}
				}
			}
		}
		if edges < 10 {
			t.Errorf("%s: only %d imports found: is the pattern wrong?", sdk.dir, edges)
		}
		if cycle := cycleIn(imports); cycle != nil {
			t.Errorf("%s: files import each other in a cycle: %s", sdk.dir, strings.Join(cycle, " → "))
		}
	}
}

// cycleIn returns one cycle of a graph, or nil.
func cycleIn(graph map[string][]string) []string {
	const onPath, done = 1, 2
	state := map[string]int{}
	var path, cycle []string
	var visit func(node string) bool
	visit = func(node string) bool {
		state[node] = onPath
		path = append(path, node)
		for _, next := range graph[node] {
			if state[next] == onPath {
				cycle = append(slices.Clone(path[slices.Index(path, next):]), next)
				return true
			}
			if state[next] == 0 && visit(next) {
				return true
			}
		}
		path = path[:len(path)-1]
		state[node] = done
		return false
	}
	for _, node := range slices.Sorted(maps.Keys(graph)) {
		if state[node] == 0 && visit(node) {
			return cycle
		}
	}
	return nil
}

func repoRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(dir)
}
