package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"

	"runner.example/node/config"
)

// modulePath is the prefix of the import paths of this module's packages.
const modulePath = "runner.example/"

// runnerTOML returns the runner.toml of the repository, whose comments are those of the
// fields of the option structs.
func runnerTOML(root string) ([]byte, error) {
	comments := map[string]map[string]string{} // by directory, then by "Type.Field"
	var failed error
	text := config.Template(func(parent reflect.Type, field string) string {
		dir := filepath.Join(root, strings.TrimPrefix(parent.PkgPath(), modulePath))
		if comments[dir] == nil {
			all, err := fieldComments(dir)
			if err != nil {
				failed = err
				return ""
			}
			comments[dir] = all
		}
		return comments[dir][parent.Name()+"."+field]
	})
	return text, failed
}

// fieldComments returns the comments of the fields of all structs in a directory.
func fieldComments(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no Go files in %s: %v", dir, err)
	}
	all := map[string]string{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if st, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					for _, name := range f.Names {
						all[spec.Name.Name+"."+name.Name] = f.Doc.Text()
					}
				}
			}
			return true
		})
	}
	return all, nil
}
