package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// otherFormats are files whose structs have the JSON of other programs.
var otherFormats = map[string]bool{
	"develop/toolchain/cargo.go": true, // messages of cargo
	"hostabi/webcrypto/jwk.go":   true, // JSON Web Keys (RFC 7517)
}

var lowerCamel = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

// TestJSONIsInLowerCamelCase looks at every struct with a name for JSON: all of its exported fields have one, in lower
// camel case. The types of the admin listener are also walked by TestMembersAreInLowerCamelCase.
func TestJSONIsInLowerCamelCase(t *testing.T) {
	fields := 0
	eachGoFile(t, outside, func(path, rel string) error {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil || otherFormats[filepath.ToSlash(rel)] {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok || !hasJSON(s) {
				return true
			}
			for _, field := range s.Fields.List {
				name, tagged := jsonName(field)
				for _, ident := range field.Names {
					fields++
					if ident.IsExported() && !tagged || tagged && name != "-" && !lowerCamel.MatchString(name) {
						t.Errorf("%v: the JSON of %s is %q", set.Position(ident.Pos()), ident.Name, name)
					}
				}
			}
			return true
		})
		return nil
	})
	if fields < 500 {
		t.Errorf("only %d fields were found: the test reads them wrongly", fields)
	}
}

// hasJSON reports whether a field has a name for JSON.
func hasJSON(s *ast.StructType) bool {
	for _, field := range s.Fields.List {
		if name, ok := jsonName(field); ok && name != "-" {
			return true
		}
	}
	return false
}

// jsonName returns the name of a field in JSON; ok is false if its tag has none.
func jsonName(field *ast.Field) (name string, ok bool) {
	if field.Tag == nil {
		return "", false
	}
	text, ok := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Lookup("json")
	name, _, _ = strings.Cut(text, ",")
	return name, ok && name != ""
}
