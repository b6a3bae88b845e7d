package scaffold_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runner.example/develop/scaffold"
)

// A directory with files of an app is refused, whatever their names, and nothing is written to it.
func TestADirectoryWithAnAppIsRefusedUnchanged(t *testing.T) {
	for _, name := range []string{"handlers", "runner.toml", "shop.schema", "other.schema", "types"} {
		dir := filepath.Join(t.TempDir(), "shop")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		done, err := scaffold.Create(dir, "ts")
		if err == nil || !strings.Contains(err.Error(), "already contains "+name) || len(done.Written) > 0 {
			t.Errorf("beside %s: %v, written %q", name, err, done.Written)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("beside %s: the directory has %v, %v", name, entries, err)
		}
	}
}

// Other files are kept as they are, also those that a new app has, and the caller is told of these.
func TestFilesOfTheUserAreKept(t *testing.T) {
	for _, lang := range scaffold.Languages() {
		dir := filepath.Join(t.TempDir(), "my-shop 2")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		mine := []string{".gitignore", "LICENSE", "README.md"}
		for _, name := range mine {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		done, err := scaffold.Create(dir, lang)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range mine {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != "mine" {
				t.Errorf("%s: %s has %q, %v", lang, name, text, err)
			}
			told := slices.ContainsFunc(done.Kept, func(kept string) bool { return strings.HasPrefix(kept, filepath.Join(dir, name)) })
			if told != (name != "LICENSE") {
				t.Errorf("%s: kept %q", lang, done.Kept)
			}
		}
		if !slices.Contains(done.Written, filepath.Join(dir, "my_shop_2.schema")) {
			t.Errorf("%s: written %q", lang, done.Written)
		}
		for _, path := range done.Written {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %v", lang, err)
			}
		}
		if _, err := scaffold.Create(dir, lang); err == nil {
			t.Errorf("%s: created twice", lang)
		}
	}
	dir := filepath.Join(t.TempDir(), "x")
	if _, err := scaffold.Create(dir, "cobol"); err == nil {
		t.Error("an unknown language is known")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory of an unknown language: %v", err)
	}
}
