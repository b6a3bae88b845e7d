package toolchain_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/tests/harness"
)

const tsconfig = `{"compilerOptions": {"target": "es2023", "module": "esnext", "moduleResolution": "bundler", "types": [],
  "strict": true, "noEmit": true}, "include": ["handlers"]}`

// typedApp writes an app with the TypeScript compiler that the tests use.
func typedApp(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// installTypeScript links the compiler into a directory of an app.
func installTypeScript(t *testing.T, dir string) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil && testing.Short() {
		t.Skip("node is missing: tools/setup.sh installs it")
	}
	tsc, err := harness.TypeChecker()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(filepath.Dir(tsc)), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
}

func TestTypeErrorsHaveTheirPlaces(t *testing.T) {
	dir := typedApp(t, map[string]string{
		"tsconfig.json": tsconfig,
		"handlers/a.ts": "interface Order { lines: { count: number }[] }\n" +
			"const s = \"𝒳é\", n: number = \"x\";\n" +
			"export const order: Order = { lines: [{ count: \"1\" }].map((l) => ({ ...l })) };\n",
		"handlers/b.mts":   "import \"./nowhere.js\";\n",
		"handlers/fine.ts": "export const one: number = 1;\n",
	})
	installTypeScript(t, dir)
	found, missing, err := toolchain.CheckTypes(context.Background(), dir)
	if err != nil || missing != "" || found == nil {
		t.Fatalf("%v, %q, %v", found, missing, err)
	}
	var got []string
	for _, d := range found.List.Sorted() {
		got = append(got, d.String())
	}
	if len(got) != 3 || len(found.Sources) != 2 {
		t.Fatalf("%d sources, and the errors\n%s", len(found.Sources), strings.Join(got, "\n"))
	}
	for i, want := range []string{
		"handlers/a.ts:2:17: error[TS2322]: Type 'string' is not assignable to type 'number'",
		"handlers/a.ts:3:31: error[TS2322]: Type '{ count: string; }[]' is not assignable to type '{ count: number; }[]': Type",
		"handlers/b.mts:1:8: error[TS",
	} {
		if !strings.HasPrefix(got[i], want) || strings.HasSuffix(got[i], ".") || strings.Contains(got[i], "\n") {
			t.Errorf("%s, want %s", got[i], want)
		}
	}
}

func TestTypesThatCannotBeCheckedAreSaid(t *testing.T) {
	const script = "export const one: number = 'x';\n"
	for _, row := range []struct {
		what      string
		files     map[string]string
		installed string // the directory with the compiler; empty: there is none
		want      string
	}{
		{"no compiler", map[string]string{"handlers/a.ts": script, "tsconfig.json": tsconfig}, "", "install typescript"},
		{"no configuration", map[string]string{"handlers/a.ts": script}, ".", "write a tsconfig.json"},
		{"JavaScript", map[string]string{"handlers/a.js": "export const one = 1;\n"}, "", ""},
		{"no handlers", map[string]string{"tsconfig.json": tsconfig}, "", ""},
		{"AssemblyScript", map[string]string{"handlers/as/package.json": `{"devDependencies": {"assemblyscript": "1"}}`, "handlers/as/index.ts": script}, "", ""},
		{"all in handlers", map[string]string{"handlers/a.ts": "export const one = 1;\n", "handlers/tsconfig.json": `{"compilerOptions": {"types": []}}`}, "handlers", ""},
	} {
		dir := typedApp(t, row.files)
		if row.installed != "" {
			installTypeScript(t, filepath.Join(dir, row.installed))
		}
		found, missing, err := toolchain.CheckTypes(context.Background(), dir)
		if err != nil || found != nil || (row.want == "") != (missing == "") || !strings.Contains(missing, row.want) {
			t.Errorf("%s: %v, %q, %v; want %q", row.what, found, missing, err, row.want)
		}
	}
}

func TestAnInvalidConfigurationOfTypesIsReported(t *testing.T) {
	dir := typedApp(t, map[string]string{
		"handlers/a.ts": "export const one = 1;\n", "tsconfig.json": "{\n  \"compilerOptions\": {\"wrong\": 1}\n}\n",
	})
	installTypeScript(t, dir)
	found, _, err := toolchain.CheckTypes(context.Background(), dir)
	if err != nil || found == nil || !strings.HasPrefix(found.Error(), "tsconfig.json:2:23: error[TS5023]: ") {
		t.Errorf("%v, %v", found, err)
	}
}

func TestACheckOfTypesEndsWithItsContext(t *testing.T) {
	dir := typedApp(t, map[string]string{"handlers/a.ts": "export const one = 1;\n", "tsconfig.json": tsconfig})
	installTypeScript(t, dir)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if found, missing, err := toolchain.CheckTypes(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %q, %v", found, missing, err)
	}
}
