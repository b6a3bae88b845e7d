package tests

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// usedByAll are subjects that the picture in ARCHITECTURE.md leaves out.
var usedByAll = []string{"internal", "sdk"}

// TestArchitectureShowsTheSubjects compares the picture with the imports in the code.
func TestArchitectureShowsTheSubjects(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repoRoot(t), "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	var shown [][]string // the name of a subject, and those that it imports from
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(strings.TrimSpace(line), "│"); len(cells) == 5 {
			shown = append(shown, append([]string{strings.TrimSpace(cells[1])}, strings.Fields(cells[3])...))
		}
	}
	imports := map[string]map[string]bool{}
	eachGoFile(t, outside, func(path, rel string) error {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		from, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		if imports[from] == nil {
			imports[from] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if own, ok := strings.CutPrefix(imported, modulePath+"/"); ok {
				to, _, _ := strings.Cut(own, "/")
				imports[from][to] = true
			}
		}
		return nil
	})
	var want [][]string
	for _, s := range slices.Backward(subjects) {
		if slices.Contains(usedByAll, s.name) {
			continue
		}
		row := []string{s.name}
		for _, other := range slices.Backward(subjects) {
			if other.name != s.name && imports[s.name][other.name] && !slices.Contains(usedByAll, other.name) {
				row = append(row, other.name)
			}
		}
		want = append(want, row)
	}
	if diff := gocmp.Diff(want, shown); diff != "" {
		t.Errorf("ARCHITECTURE.md shows other imports (-code +picture):\n%s", diff)
	}
}

// TestPackagesAreListed compares docs/packages.md with the first sentences of the packages' doc.go.
func TestPackagesAreListed(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Packages\n\nWritten by `go test ./tests -run TestPackagesAreListed -update`, from the `doc.go` of each package.\n" +
		"Subjects and rows come in the order in which they may import: from above, never from below.\n")
	for _, s := range subjects {
		fmt.Fprintf(&b, "\n## %s\n\n| package | what it is for |\n|---|---|\n", s.name)
		for _, row := range s.rows {
			for name := range strings.FieldsSeq(row) {
				folder := path.Join(s.name, name)
				fmt.Fprintf(&b, "| [`%s`](../%s) | %s |\n", folder, folder, cmp.Or(synopsis(t, folder), "a module of its own"))
			}
		}
	}
	file := filepath.Join(repoRoot(t), "docs/packages.md")
	written, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if string(written) == b.String() {
		return
	}
	if !*update {
		t.Fatal("docs/packages.md has another list of packages: run\n\n    go test ./tests -run TestPackagesAreListed -update")
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// synopsis returns the first sentence of a package's comment, without "Package name", or "" for a folder that
// is a module of its own.
func synopsis(t *testing.T, folder string) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(repoRoot(t), folder, "go.mod")); err == nil {
		return ""
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repoRoot(t), folder, "doc.go"), nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSuffix(new(doc.Package).Synopsis(file.Doc.Text()), ".")
	for _, kind := range []string{"Package ", "Command "} {
		if rest, ok := strings.CutPrefix(text, kind); ok {
			_, text, _ = strings.Cut(rest, " ")
		}
	}
	return strings.ReplaceAll(text, "|", `\|`)
}

// namedFunctions matches functions with the file that has them: `A`, `T.b` in [file](file).
var namedFunctions = regexp.MustCompile("((?:`[A-Za-z.]+`,\\s+)*`[A-Za-z.]+`)\\s+in\\s+\\[([^]]+)\\]\\(([^)]+)\\)")

var journeyStep = regexp.MustCompile(`(?m)^\d+\. `)

// TestArchitectureNamesFunctionsThatExist looks in each linked file for the functions that are named beside it.
func TestArchitectureNamesFunctionsThatExist(t *testing.T) {
	root := repoRoot(t)
	read, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(read)
	if limit := 20_000; len(page) > limit {
		t.Errorf("ARCHITECTURE.md has %d bytes; the limit is %d", len(page), limit)
	}
	functions := map[string]map[string]bool{}
	for _, named := range namedFunctions.FindAllStringSubmatch(page, -1) {
		text, file := named[2], named[3]
		if text != file {
			t.Errorf("the link to %s says %s", file, text)
		}
		if functions[file] == nil {
			functions[file] = functionsIn(t, filepath.Join(root, file))
		}
		for _, name := range strings.Split(named[1], ",") {
			if name = strings.Trim(name, "` \n"); !functions[file][name] {
				t.Errorf("%s has no function %s", file, name)
			}
		}
	}
	steps := 0
	for journey := range strings.SplitSeq(page, "\n### ") {
		for _, step := range journeyStep.Split(journey, -1)[1:] {
			if steps++; !namedFunctions.MatchString(step) {
				t.Errorf("a step names no function: %s", step)
			}
		}
	}
	if steps < 40 {
		t.Errorf("only %d steps found", steps)
	}
}

// functionsIn returns the functions of a file. The name of a method is that of its type, a point, and its own.
func functionsIn(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	names := map[string]bool{}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			receiver := f.Recv.List[0].Type
			if pointer, ok := receiver.(*ast.StarExpr); ok {
				receiver = pointer.X
			}
			if generic, ok := receiver.(*ast.IndexExpr); ok {
				receiver = generic.X
			}
			if of, ok := receiver.(*ast.Ident); ok {
				name = of.Name + "." + name
			}
		}
		names[name] = true
	}
	return names
}
