package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestADefaultIsWrittenOnce looks for the default of an option beside its tag: settings.FillZero fills it from
// there when a part is made, and nothing else does.
func TestADefaultIsWrittenOnce(t *testing.T) {
	files := map[string]*ast.File{}
	eachGoFile(t, outside, func(path, rel string) error {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		files[filepath.ToSlash(rel)] = file
		return err
	})
	tagged, keys := map[string]string{}, map[string]int{} // the zero of a field with a default; how many defaults a key has
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			field, ok := n.(*ast.Field)
			if !ok || field.Tag == nil {
				return true
			}
			tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
			if _, ok := tag.Lookup("default"); !ok {
				return true
			}
			for _, name := range field.Names {
				tagged[name.Name] = "0"
				if types.ExprString(field.Type) == "string" {
					tagged[name.Name] = `""`
				}
			}
			if key := tag.Get("toml"); key != "" {
				keys[key]++
			}
			return true
		})
	}
	if len(keys) < 40 {
		t.Errorf("only %d settings have a default: the test reads them wrongly", len(keys))
	}
	for key, n := range keys {
		if n > 1 {
			t.Errorf("%s has a default in %d option structs: leave it in the first", key, n)
		}
	}
	for rel, file := range files {
		for _, problem := range secondDefaults(file, tagged, filepath.ToSlash(filepath.Dir(rel))) {
			t.Errorf("%s: %s: write the default into the tag, and call settings.FillZero where the part is made", rel, problem)
		}
	}
}

// TestSecondDefaultsAreFound tests secondDefaults with what the code had once.
func TestSecondDefaultsAreFound(t *testing.T) {
	for source, found := range map[string]bool{
		"const DefaultKeep = 9":                                                  true,
		"const defaultMaxKeep = 9":                                               true,
		"func f(o Options) { if o.Keep == 0 { o.Keep = 9 } }":                    true,
		"func f(o Options) int { if o.Keep <= 0 { return 9 }; return o.Keep }":   false, // another meaning of zero
		"func f(o Options) { o.Keep = cmp.Or(o.Keep, 9) }":                       true,
		"func f(o Options) { size := o.Keep; if o.Keep == 0 { size = 9 } }":      true,
		"func f(o Options) { settings.SetDefaults(&o) }":                         true,
		"func f(o Options) { settings.FillZero(&o) }":                            false,
		"var h = &hostabi.Host{}":                                                true,
		"var h = hostabi.NewHost(hostabi.Host{})":                                false,
		"func f(o Options) { o.Name = cmp.Or(o.Name, \"x\") }":                   false,
		"func f(o Options) { if o.Logger == nil { o.Logger = discard } }":        false,
		"func f(r *route, o Options) { r.time = cmp.Or(r.Keep, o.Keep) }":        false, // of a route, or else of all
		"func f(o Options) { if o.Keep == 0 { o.Keep = 2 * runtime.NumCPU() } }": true,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := secondDefaults(file, map[string]string{"Keep": "0"}, "x"); len(got) > 0 != found {
			t.Errorf("%s: %q", source, got)
		}
	}
}

// secondDefaults returns what gives one of the tagged fields a default in a file of a package.
func secondDefaults(file *ast.File, tagged map[string]string, pkg string) (problems []string) {
	mayReset := []string{"internal/settings", "node/config"} // the owners of values without a file
	fieldOf := func(x ast.Expr) string {
		if sel, ok := x.(*ast.SelectorExpr); ok && tagged[sel.Sel.Name] != "" {
			return sel.Sel.Name
		}
		return ""
	}
	var made []ast.Expr // arguments of NewHost
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for _, name := range n.Names {
				rest, ok := strings.CutPrefix(strings.ToLower(name.Name), "default")
				for field := range tagged {
					if field = strings.ToLower(field); ok && (rest == field || rest == "max"+field) {
						problems = append(problems, name.Name+" is the default of an option")
					}
				}
			}
		case *ast.CompositeLit:
			if types.ExprString(n.Type) == "hostabi.Host" && !slices.Contains(made, ast.Expr(n)) {
				problems = append(problems, "makes a Host without NewHost, whose limits may be zero")
			}
		case *ast.IfStmt:
			test, ok := n.Cond.(*ast.BinaryExpr)
			if !ok || !slices.Contains([]token.Token{token.EQL, token.LEQ}, test.Op) {
				break
			}
			if field := fieldOf(test.X); field != "" && types.ExprString(test.Y) == tagged[field] && len(n.Body.List) == 1 {
				if _, ok := n.Body.List[0].(*ast.AssignStmt); ok {
					problems = append(problems, "gives "+field+" a value if it is zero")
				}
			}
		case *ast.CallExpr:
			switch called := types.ExprString(n.Fun); {
			case called == "hostabi.NewHost":
				made = append(made, n.Args[0])
			case called == "settings.SetDefaults" && !slices.Contains(mayReset, pkg):
				problems = append(problems, "calls settings.SetDefaults")
			case called == "cmp.Or" && fieldOf(n.Args[0]) != "" && fieldOf(n.Args[len(n.Args)-1]) == "":
				problems = append(problems, "gives "+fieldOf(n.Args[0])+" a value if it is zero")
			}
		}
		return true
	})
	return problems
}
