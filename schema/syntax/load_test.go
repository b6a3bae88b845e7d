package syntax_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/schema/syntax"
)

func TestLoadReadsTheSchemaFilesInNameOrder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b.schema": "app b", "a.schema": "app a", "notes.txt": "no", ".schema": "app c"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "c.schema"), 0o700); err != nil {
		t.Fatal(err)
	}
	sources, err := syntax.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, src := range sources {
		got = append(got, src.Name+": "+string(src.Text))
	}
	if want := "a.schema: app a, b.schema: app b"; strings.Join(got, ", ") != want {
		t.Errorf("loaded %q, want %q", strings.Join(got, ", "), want)
	}
}

func TestLoadFailsWithoutSchemaFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := syntax.Load(dir); err == nil || !strings.Contains(err.Error(), "has no *.schema file") {
		t.Errorf("err = %v", err)
	}
	if _, err := syntax.Load(filepath.Join(dir, "gone")); err == nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v", err)
	}
}

func TestLoadReadsOnlyTheBeginningOfAHugeFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.schema"), bytes.Repeat([]byte(" "), 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	sources, err := syntax.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(sources[0].Text); n > 1<<20+1 {
		t.Errorf("read %d bytes", n)
	}
	if _, found := syntax.Parse(sources[0]); len(found) != 1 || found[0].Code != "E007" {
		t.Errorf("found %v, want E007", found)
	}
}

func TestLineEndsDoNotChangeTheText(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.schema")
	for text, want := range map[string]string{
		"entity A {\r\n  id: id // \r x\r\n}\r\n": "entity A {\n  id: id // \r x\n}\n",
		"entity A {\n  id: id\n}\n":               "entity A {\n  id: id\n}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		sources, err := syntax.Load(dir)
		if err != nil || string(sources[0].Text) != want {
			t.Errorf("%q: %q, %v", text, sources, err)
		}
	}
	// A file that is too large does not become short enough without its carriage returns.
	if err := os.WriteFile(path, bytes.Repeat([]byte("\r\n"), syntax.MaxFileBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	sources, err := syntax.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, found := syntax.Parse(sources[0]); len(found) != 1 || found[0].Code != "E007" {
		t.Errorf("found %v, want E007", found)
	}
}
