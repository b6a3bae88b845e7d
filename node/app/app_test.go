package app

import (
	"strings"
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema"
)

func TestAPanicOfTheCompilerIsAnErrorOfTheSchema(t *testing.T) {
	sources := []diag.Source{{Name: "app.schema"}}
	s, found := withoutPanic(sources, func() (*schema.Schema, diag.List) { panic("index out of range") })
	if s != nil || !found.HasErrors() || !strings.Contains(found[0].String(), "app.schema") || !strings.Contains(found[0].String(), "index out of range") {
		t.Errorf("%v, %v", s, found)
	}
	want := &schema.Schema{}
	if s, found := withoutPanic(sources, func() (*schema.Schema, diag.List) { return want, nil }); s != want || len(found) != 0 {
		t.Errorf("without a panic: %v, %v", s, found)
	}
}
