package schema_test

import (
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/compiler"
)

// mustCompile compiles a text that may get warnings but no errors.
func mustCompile(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
	if s == nil {
		t.Fatalf("does not compile: %v", found)
	}
	return s
}

// compileAll compiles one file and returns all diagnostics.
func compileAll(text string) (*schema.Schema, diag.List) {
	return compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
}
