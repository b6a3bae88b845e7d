package toolchain_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"runner.example/develop/toolchain"
)

func TestSourcesThatAreNewerThanTheirModulesAreNamed(t *testing.T) {
	dir := t.TempDir()
	built := time.Now().Add(-time.Hour)
	before, after := built.Add(-time.Minute), built.Add(time.Minute)
	set := func(name string, at time.Time) {
		t.Helper()
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name string, at time.Time) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		set(name, at)
		for parent := filepath.Dir(name); parent != "."; parent = filepath.Dir(parent) {
			set(parent, before)
		}
	}
	want := func(what string, lines ...string) {
		t.Helper()
		found, err := toolchain.Newer(dir, "shop")
		if err != nil || len(found) != len(lines) {
			t.Fatalf("%s: %v, %v", what, found, err)
		}
		for i, line := range lines {
			if found[i].String() != line {
				t.Errorf("%s: %s, want %s", what, found[i], line)
			}
		}
	}
	want("no handlers")
	put("build/other.wasm", before)
	want("only modules")
	put("handlers/hello.ts", before)
	put("handlers/lib/format.ts", before)
	put("handlers/tea/go.mod", before)
	put("handlers/tea/main.go", before)
	put("handlers/jobs.py", before)
	want("nothing was built",
		"handlers/tea is not built yet: build/tea.wasm does not exist",
		"handlers/hello.ts is not built yet: build/shop.wasm does not exist",
		"handlers/jobs.py is not built yet: build/python.wasm does not exist")
	put("build/shop.wasm", built)
	put("build/python.wasm", built)
	put("build/tea.wasm", built)
	want("all is built")

	put("handlers/tea/main.go", after)
	want("a file of a directory", "handlers/tea/main.go is newer than build/tea.wasm")
	set("handlers/tea/main.go", before)
	put("handlers/lib/format.ts", after)
	want("a file that another one may import",
		"handlers/lib/format.ts is newer than build/shop.wasm", "handlers/lib/format.ts is newer than build/python.wasm")
	set("handlers/lib/format.ts", before)

	// A file was deleted.
	set("handlers/tea", after)
	want("a changed directory", "handlers/tea is newer than build/tea.wasm")
	set("handlers/tea", before)

	// Files that tools and editors write are not sources.
	put("handlers/tea/target/debug/out.o", after)
	put("handlers/tea/go.sum", after)
	put("handlers/__pycache__/jobs.pyc", after)
	put("handlers/node_modules/a/index.js", after)
	put("handlers/.hello.ts.swp", after)
	want("files that are not sources")
}
