package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	wasm "github.com/tetratelabs/wazero"

	"runner.example/internal/patches"
)

// Code that was compiled with other patches, or without, must not be taken from a cache.
func TestPatchesHaveAVersion(t *testing.T) {
	dir := t.TempDir()
	cache, err := wasm.NewCompilationCacheWithDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := cache.Close(t.Context()); err != nil {
		t.Error(err)
	}
	of, err := filepath.Glob(filepath.Join(dir, "wazero-*"))
	if err != nil || len(of) != 1 {
		t.Fatalf("the cache has the directories %q: %v", of, err)
	}
	patched := regexp.MustCompile(`^wazero-v[0-9.]+-[0-9a-f]{8}-`).MatchString(filepath.Base(of[0]))
	if patched != patches.Applied {
		t.Errorf("patches are applied: %v, and the cache's directory is %s", patches.Applied, of[0])
	}
}

func TestPatchesThatDoNotFitAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("copies modules")
	}
	const series = "third_party/wazero/series"
	for name, row := range map[string]struct{ file, from, to, want string }{
		"another version": {series, " v1.12.0", " v1.0.0",
			series + " is for github.com/tetratelabs/wazero v1.0.0, and go.mod has another version"},
		"another text": {"third_party/wazero/version.patch", "-var version string", "-var version int",
			"cannot apply third_party/wazero/version.patch to github.com/tetratelabs/wazero v1.12.0"},
	} {
		dir := t.TempDir()
		for _, part := range []string{"third_party", "internal/patches"} {
			if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(repoRoot(t), part))); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range []string{"go.mod", "go.sum", "tools/go.sh", "tools/get.sh"} {
			copyTo(t, dir, file, func(s string) string { return s })
		}
		copyTo(t, dir, row.file, func(s string) string { return strings.Replace(s, row.from, row.to, 1) })
		out, err := exec.Command(filepath.Join(dir, "tools/go.sh"), "list", "./internal/patches").CombinedOutput()
		if err == nil || !strings.Contains(string(out), row.want) {
			t.Errorf("%s: %v, %s, want %s", name, err, out, row.want)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "bin/*")); len(left) != 0 {
			t.Errorf("%s: %q are left", name, left)
		}
	}
}

// copyTo copies a file of the repository, changed.
func copyTo(t *testing.T, dir, file string, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot(t), file))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(text))), 0o755); err != nil {
		t.Fatal(err)
	}
}
