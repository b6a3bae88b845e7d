package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
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

// A subject is a folder at the root. Each row has packages, as folders below it ("." is its own): they import
// from rows above, and never each other.
type subject struct {
	name string
	rows []string
}

// subjects are all packages. A package imports only from subjects above its own, and from rows above in its own.
// One that is not here fails the test.
var subjects = []subject{
	{"sdk", []string{ // sources, embedded for toolchain and scaffold
		"assemblyscript c go python rust typescript",
	}},
	{"internal", []string{ // what several subjects use
		"netaddr system system/clock system/disk system/memory system/process system/socket",
		"atomicio caller casefold clock cost deadline diag fairqueue fault ids patches secret sourcemap telemetry tree wait wasm/opcode wazerofix",
		"charset collation connlimit console idn level settings system/adminsocket system/filelock timezone wasm",
		"component level/leveltest schedule symbols version",
		"component/canon",
		"component/canon/canontest",
	}},
	{"schema", []string{ // the language
		". syntax",
		"format generate model report",
		"changes vars",
		"compiler",
	}},
	{"state", []string{ // what is stored, in one transaction
		"entity/query store/commitlog store/datadir store/files store/frame store/lag store/retry store/space",
		"store/watch",
		"store store/etcdlog",
		"audit entity/layout jobs store/storetest webhook",
		"entity/catalog",
		"entity",
		"salvage",
	}},
	{"keystore", []string{ // who may call
		"credtime tokenindex",
		".",
		"filelink",
	}},
	{"hostabi", []string{ // what a guest can call
		"abi compression fileinfo files longwork octets outbound pbkdf2",
		"password recording sentvalue webcrypto",
		".",
		"wasi",
	}},
	{"runtime", []string{ // the way of a request
		"content",
		"auth capture cpuqueue draws front guard limit live recorded router upload",
		"assets compile pages",
		"sandbox",
		".",
	}},
	{"node", []string{ // a running server and its operators
		"backup gcpace release",
		"cluster",
		"admin",
		"admin/server",
		"config",
		"app",
		". deploy",
	}},
	{"develop", []string{ // the author of handlers
		"handlerbench scaffold toolchain/python toolchain/typescript",
		"toolchain",
		"apptest dev languageserver toolchain/toolchaintest",
	}},
	{"cmd", []string{ // the command line
		"runner/cli runner/data/rowfile",
		"runner/data runner/jobs runner/nodes",
		"runner",
	}},
}

// onlyImporters are the packages that may import a module, by a prefix of its import paths.
var onlyImporters = map[string][]string{
	"github.com/BurntSushi/toml":            {"internal/settings"},
	"github.com/KimMachineGun/automemlimit": {"node/config"},
	"github.com/MicahParks":                 {"develop/apptest", "runtime/auth"},
	"github.com/andybalholm/brotli":         {"hostabi/compression", "runtime/assets"},
	"github.com/dgraph-io/badger":           {"state/store", "state/store/files", "state/store/space"},
	"github.com/evanw/esbuild":              {"develop/toolchain/typescript"},
	"github.com/fsnotify/fsnotify":          {"develop/dev"},
	"github.com/gabriel-vasile/mimetype":    {"hostabi/fileinfo"},
	"github.com/golang-jwt":                 {"develop/apptest", "runtime/auth"},
	"github.com/ianlancetaylor/demangle":    {"internal/symbols"},
	"github.com/klauspost/compress":         {"runtime/assets"},
	"github.com/lestrrat-go/jwx":            {"runtime/auth"},
	"github.com/prometheus":                 {"internal/telemetry"},
	"github.com/oklog/ulid":                 {"internal/ids", "keystore", "runtime/front", "state/audit"},
	"github.com/robfig/cron":                {"internal/schedule"},
	"github.com/spf13/cobra":                {"cmd/runner", "cmd/runner/cli", "cmd/runner/data", "cmd/runner/jobs", "cmd/runner/nodes"},
	"github.com/tidwall/btree":              {"state/store"},
	"github.com/valyala/fasthttp":           {"runtime/front"},
	"go.etcd.io/etcd":                       {"state/store/etcdlog"},
	"go.lsp.dev":                            {"develop/languageserver"},
	"go.opentelemetry.io/otel":              {"internal/telemetry"},
	"go.uber.org/zap":                       {"state/store/etcdlog"},
	"golang.org/x/crypto/argon2":            {"hostabi/password"},
	"golang.org/x/crypto/bcrypt":            {"hostabi/password"},
	"golang.org/x/crypto/scrypt":            {"hostabi/password"},
	"golang.org/x/net/idna":                 {"internal/idn"},
	"golang.org/x/text/cases":               {"internal/casefold"},
	"time/tzdata":                           {"internal/timezone"},
	wazero:                                  {"develop/toolchain/typescript", "internal/wazerofix", "runtime/capture", "runtime/compile", "runtime/guard", "runtime/draws", "runtime/sandbox"},
	wazero + "/api":                         {"develop/toolchain/typescript", "hostabi", "hostabi/wasi", "runtime/capture", "runtime/compile", "runtime/draws", "runtime/sandbox"},
}

// place is where a package is in the order of subjects.
type place struct{ subject, row int }

func (p place) below(q place) bool {
	return p.subject > q.subject || p.subject == q.subject && p.row > q.row
}

// places returns that of each package, by its folder.
func places() map[string]place {
	all := map[string]place{}
	for i, s := range subjects {
		for row, packages := range s.rows {
			for name := range strings.FieldsSeq(packages) {
				all[path.Join(s.name, name)] = place{i, row}
			}
		}
	}
	return all
}

// outside are directories that have no layer: tests, examples, SDKs, and the tools that
// check and measure.
var outside = []string{"tests", "plugins", "sdk", "tools"}

// eachGoFile calls do for the Go files of the repository that are not tests. It leaves out
// hidden directories, testdata, what is built, the dependencies of other languages, and the
// directories without.
func eachGoFile(t *testing.T, without []string, do func(path, rel string) error) {
	t.Helper()
	root := repoRoot(t)
	skipped := []string{"testdata", "node_modules", "target", "bin"}
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

func TestPackagesImportOnlyFromLowerSubjects(t *testing.T) {
	root, all := repoRoot(t), places()
	seen := map[string]bool{}
	eachGoFile(t, outside, func(path, rel string) error {
		pkg := filepath.ToSlash(filepath.Dir(rel))
		if own, ok := strings.CutSuffix(pkg, "/gen"); ok { // a generator belongs to the package that it generates for
			pkg = own
		}
		if _, ok := all[pkg]; !ok {
			t.Errorf("%s: package %s has no place in subjects", rel, pkg)
			return nil
		}
		seen[pkg] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			checkImport(t, all, rel, pkg, imported)
		}
		return nil
	})
	for pkg, place := range all {
		if !seen[pkg] && subjects[place.subject].name != "sdk" {
			t.Errorf("subjects has %s, which is no package", pkg)
		}
	}
	for pkg := range seen {
		if _, err := os.Stat(filepath.Join(root, pkg, "doc.go")); err != nil {
			t.Errorf("package %s has no doc.go", pkg)
		}
	}
}

func checkImport(t *testing.T, all map[string]place, file, pkg, imported string) {
	if own, ok := strings.CutPrefix(imported, modulePath+"/"); ok {
		there, known := all[own]
		switch {
		case own == pkg:
		case !known:
			t.Errorf("%s imports %s, which has no place in subjects", file, imported)
		case !all[pkg].below(there):
			t.Errorf("%s imports %s: a package imports only from subjects and rows above its own", file, own)
		}
		return
	}
	most := "" // the longest prefix
	for module := range onlyImporters {
		if under(imported, module) && len(module) > len(most) {
			most = module
		}
	}
	if most != "" && !slices.Contains(onlyImporters[most], pkg) {
		t.Errorf("%s imports %s, which only %s may import", file, imported, strings.Join(onlyImporters[most], ", "))
	}
}

// Two clocks are passed to what reads them: see package clock.
func TestOnlyTheClocksReadTheTime(t *testing.T) {
	read := 0
	eachGoFile(t, append([]string{"internal/clock"}, outside...), func(path, rel string) error {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		read++
		ast.Inspect(file, func(n ast.Node) bool {
			if use, ok := n.(*ast.SelectorExpr); ok && use.Sel.Name == "Now" {
				if pkg, ok := use.X.(*ast.Ident); ok && pkg.Name == "time" {
					t.Errorf("%s: time.Now: use the calendar that the part has, or clock.Mark for measurements", set.Position(n.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if read < 100 {
		t.Errorf("only %d files were read: is the walk broken?", read)
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
	{"sdk/typescript", ".ts", regexp.MustCompile(`\bfrom "(\.\.?/[^"]+?)(?:\.ts)?"`)},
	{"sdk/assemblyscript/assembly", ".ts", regexp.MustCompile(`\bfrom "(\./[^"]+)"`)},
}

func TestFilesOfAnSDKImportEachOtherWithoutCycles(t *testing.T) {
	for _, sdk := range sdkSources {
		imports, edges := map[string][]string{}, 0
		root := os.DirFS(filepath.Join(repoRoot(t), sdk.dir))
		err := fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(file) != sdk.ext || path.Base(file) == "lib.rs" { // which names all modules of a crate
				return err
			}
			text, err := fs.ReadFile(root, file)
			if err != nil {
				return err
			}
			name := strings.TrimSuffix(file, sdk.ext)
			for line := range strings.Lines(string(text)) {
				code, _, _ := strings.Cut(line, "//")
				for _, m := range sdk.imports.FindAllStringSubmatch(code, -1) {
					imported := path.Join(path.Dir(file), m[1])
					if imported != name && !slices.Contains(imports[name], imported) {
						imports[name] = append(imports[name], imported)
						edges++
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
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

// Packages that may ask which system they run on, besides those in internal/system: they are what the runner is for.
var ofSystems = []string{"runtime/guard", "runtime/pages"}

// What differs between systems is in few packages, so that a reader finds it, and each has a contract.
func TestOnlyPackagesOfSystemsKnowTheSystem(t *testing.T) {
	systems := regexp.MustCompile(`_(linux|darwin|windows|unix)(_[a-z0-9]+)?\.go$`)
	constraint := regexp.MustCompile(`(?m)^//go:build .*\b(linux|darwin|windows|unix)\b`)
	uses := regexp.MustCompile(`"golang\.org/x/sys/|\bruntime\.GOOS\b`)
	names := []string{"internal/version/version.go", "runtime/compile/cache.go"} // these print or compare the name
	eachGoFile(t, outside, func(path, rel string) error {
		rel = filepath.ToSlash(rel)
		if strings.HasPrefix(rel, "internal/system/") || slices.Contains(ofSystems, filepath.ToSlash(filepath.Dir(rel))) || slices.Contains(names, rel) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if systems.MatchString(rel) || constraint.Match(text) || uses.Match(text) {
			t.Errorf("%s depends on the system: move that to a package in internal/system", rel)
		}
		return nil
	})
}
