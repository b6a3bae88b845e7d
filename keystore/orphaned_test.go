package keystore_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/diag"
	"runner.example/keystore"
)

func TestOrphanedKeysAreNamedInAWarning(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	var ids []string
	for range 12 {
		ids = append(ids, w.must(w.create(op, keystore.CreateRequest{Scope: "minter"})).ID)
	}
	slices.Sort(ids) // ids of one millisecond have no order of creation
	other := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_write"}))
	w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	warnings := func(schema string) string {
		t.Helper()
		list, err := w.keys.OrphanedKeys(context.Background(), compile(t, schema), diag.Span{File: "app.schema"})
		if err != nil || list.HasErrors() {
			t.Fatal(err, list)
		}
		var lines []string
		for _, d := range list {
			lines = append(lines, d.String())
		}
		return strings.Join(lines, "\n")
	}
	if got := warnings(typed); got != "" {
		t.Errorf("a schema that has every scope: %s", got)
	}
	// Renamed, but with the capability of before.
	if got := warnings(strings.ReplaceAll(typed, "orders_write", "orders_change")); got != "" {
		t.Errorf("a scope that was renamed: %s", got)
	}
	const says = " is not in the schema, so its live keys are refused: revoke them or declare the scope again: "
	want := `app.schema: warning[W600]: scope "minter"` + says + strings.Join(ids[:10], ", ") + " and 2 more\n" +
		`app.schema: warning[W600]: scope "orders_write"` + says + other.ID
	if got := warnings(untyped); got != want {
		t.Errorf("a schema without them:\n%s\nwant\n%s", got, want)
	}
}
