package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryCodeOfAnAnswerIsExplained looks for the codes of package fault in docs/troubleshooting.md.
func TestEveryCodeOfAnAnswerIsExplained(t *testing.T) {
	root := repoRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "docs/troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "internal/fault/fault.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Code" {
			return true
		}
		for _, value := range spec.Values {
			codes++
			if code := strings.Trim(value.(*ast.BasicLit).Value, `"`); !strings.Contains(string(page), "`"+code+"`") {
				t.Errorf("docs/troubleshooting.md does not have `%s`", code)
			}
		}
		return true
	})
	if codes < 30 {
		t.Errorf("only %d codes were found", codes)
	}
}
