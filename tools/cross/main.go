// Cross checks the types of all packages and their tests for other systems, without generating code:
//
//	bin/cross -tags=patched darwin/arm64 windows/amd64
//
// The linter checks the code that all systems share. Only the declarations of dependencies are checked.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	failed := false
	targets := slices.IndexFunc(os.Args[1:], func(arg string) bool { return !strings.HasPrefix(arg, "-") }) + 1
	for _, target := range os.Args[targets:] {
		errs, err := check(target, os.Args[1:targets])
		if err != nil {
			fmt.Fprintln(os.Stderr, "cross:", err)
			os.Exit(1)
		}
		for _, e := range errs {
			failed = true
			fmt.Fprintf(os.Stderr, "%s: %s\n", target, e)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check returns the errors in the module's own packages for a system and an architecture, "darwin/arm64", with these
// flags of the go command.
func check(target string, flags []string) (errs []string, err error) {
	system, arch, ok := strings.Cut(target, "/")
	if !ok {
		return nil, fmt.Errorf("%q is not a system and an architecture: write darwin/arm64", target)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	list, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes,
		Tests:      true,
		BuildFlags: flags,
		Env:        append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0"),
		ParseFile: func(set *token.FileSet, name string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(set, name, text, parser.AllErrors|parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, root+string(filepath.Separator)) {
				withoutBodies(file)
			}
			return file, err
		},
	}, "./...")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("found no packages: run it in the root of the module")
	}
	seen := map[string]bool{}
	for _, p := range list {
		if strings.HasSuffix(p.PkgPath, ".test") {
			continue // the go command writes it
		}
		for _, e := range p.Errors {
			if text := e.Error(); !seen[text] {
				seen[text] = true
				errs = append(errs, text)
			}
		}
	}
	return errs, nil
}

// withoutBodies removes the bodies of functions.
func withoutBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
