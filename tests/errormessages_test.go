package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// messageArguments are the functions that make the errors of clients, handlers and users, with the argument that
// is the text: faults, errors of operations, and diagnostics.
var messageArguments = map[string]int{
	"fault.New": 1, "fault.Wrap": 2, "Invalidf": 0, "query.Invalidf": 0, "invalid": 0, "wrong": 0, "unknownName": 2, "invalidValue": 3,
	"Errorf": 2, "Warnf": 2, "errorIfNew": 2, "errorIfTyped": 2, "Missing": 3, "note": 2, "fail": 2,
}

// The list is for review: whoever changes a message reads it beside its neighbours. Its format is the package and
// the text, as in the source.
func TestErrorMessagesAreListed(t *testing.T) {
	const list = "testdata/error-messages.txt"
	var lines []string
	eachGoFile(t, outside, func(path, rel string) error {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(rel))
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if text := errorMessage(call); text != "" {
					lines = append(lines, pkg+": "+text+"\n")
				}
			}
			return true
		})
		return nil
	})
	slices.Sort(lines)
	got := strings.Join(slices.Compact(lines), "")
	if *update {
		if err := os.WriteFile(list, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("read the changed messages, and write the list with go test ./tests -run TestErrorMessages -update (-listed +now):\n%s", diff)
	}
}

// errorMessage is the constant text of the error that a call makes; "" if it makes none.
func errorMessage(call *ast.CallExpr) string {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
		if x, ok := f.X.(*ast.Ident); ok && messageArguments[x.Name+"."+name] > 0 {
			name = x.Name + "." + name
		}
	}
	at, ok := messageArguments[name]
	if !ok || len(call.Args) <= at {
		return ""
	}
	text, ok := call.Args[at].(*ast.BasicLit)
	if !ok || text.Kind != token.STRING {
		return ""
	}
	message, err := strconv.Unquote(text.Value)
	if err != nil || !strings.Contains(message, " ") { // a bare %s
		return ""
	}
	return strings.ReplaceAll(message, "\n", `\n`)
}
