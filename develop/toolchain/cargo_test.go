package toolchain_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
	"runner.example/sdk/rust/rusttest"
)

// crate creates an app whose directory handlers/<name> has a manifest and these files.
func crate(t *testing.T, name, manifest string, files map[string]string) (dir string) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles Rust: left out by -short")
	}
	rusttest.Setenv(t)
	t.Setenv("CARGO_PROFILE_RELEASE_LTO", "off") // of the standard library, which takes seconds
	all := map[string]string{"handlers/" + name + "/Cargo.toml": "[package]\nname = \"" + name + "\"\nversion = \"0.1.0\"\nedition = \"2021\"\n" + manifest}
	for file, text := range files {
		all[file] = text
	}
	return toolchaintest.App(t, all)
}

const cdylib = "[lib]\ncrate-type = [\"cdylib\"]\n"

// reported builds an app and returns the modules, and the errors and warnings, one per line.
func reported(t *testing.T, dir string) (modules []*toolchain.Module, lines []string) {
	t.Helper()
	modules, warnings, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "app"})
	if problems, ok := errors.AsType[*toolchain.DiagnosticsError](err); ok {
		warnings = problems
	} else if err != nil {
		t.Fatal(err)
	}
	if warnings != nil {
		for _, d := range warnings.List.Sorted() {
			lines = append(lines, d.String())
		}
	}
	return modules, lines
}

func TestRustErrorsHavePlaces(t *testing.T) {
	rows := []struct {
		name, manifest, source string
		want                   []string // patterns, one for each line
	}{
		{"mistaken-types", cdylib, "#[no_mangle]\npub extern \"C\" fn hello() {\n    let n: u32 = \"é\";\n    let _ = nn;\n    drop(n);\n}\n", []string{
			`handlers/mistaken-types/src/lib.rs:3:18: error\[E0308\]: mismatched types: expected .u32., found .&str.`,
			`handlers/mistaken-types/src/lib.rs:4:13: error\[E0425\]: cannot find value .nn. in this scope.*`,
		}},
		{"mistaken-syntax", cdylib, "fn hello() { let = 1; }\n", []string{`handlers/mistaken-syntax/src/lib.rs:1:18: error: expected pattern, found .=.`}},
		{"doubtful", cdylib, "#[no_mangle]\npub extern \"C\" fn hello() {\n    let n = 1;\n}\n", []string{
			`handlers/doubtful/src/lib.rs:3:9: warning\[unused_variables\]: unused variable: .n.; help: .*: _n`,
		}},
		{"linked", cdylib, "#[link(wasm_import_module = \"runner\")]\nextern \"C\" {}\n#[no_mangle]\npub extern \"C\" fn hello() {}\n#[export_name = \"hello\"]\npub extern \"C\" fn again() {}\n", []string{
			`.*error.*hello.*`,
		}},
		{"no-module", "", "pub fn hello() {}\n", []string{`handlers/no-module/Cargo.toml: error: the crate makes no module: add crate-type = \["cdylib"\] under \[lib\]`}},
		{"no-manifest", "[lib\n", "", []string{`handlers/no-manifest/Cargo.toml: error: .*`}},
		{"no-crate", cdylib + "[dependencies]\nthere-is-no-such-crate = \"1\"\n", "", []string{`handlers/no-crate/Cargo.toml: error: .*there-is-no-such-crate.*`}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir := crate(t, row.name, row.manifest, map[string]string{"handlers/" + row.name + "/src/lib.rs": row.source})
			modules, lines := reported(t, dir)
			fits := len(lines) == len(row.want)
			for i := range min(len(lines), len(row.want)) {
				fits = fits && regexp.MustCompile("^"+row.want[i]+"$").MatchString(lines[i])
			}
			if !fits {
				t.Errorf("reported\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(row.want, "\n"))
			}
			if built := row.name == "doubtful"; built != (len(modules) == 1) {
				t.Errorf("%d modules", len(modules))
			}
		})
	}
}

func TestARustBinaryWithoutALibraryIsRefused(t *testing.T) {
	dir := crate(t, "a-binary", "", map[string]string{"handlers/a-binary/src/main.rs": "fn main() {}\n"})
	_, lines := reported(t, dir)
	if want := []string{`handlers/a-binary/Cargo.toml: error: the crate has no library: write src/lib.rs, and add crate-type = ["cdylib"] under [lib]`}; !slices.Equal(lines, want) {
		t.Errorf("reported %q, want %q", lines, want)
	}
}

func TestAnErrorInAWorkspaceHasItsPlaceInTheApp(t *testing.T) {
	dir := crate(t, "of-a-workspace", cdylib, map[string]string{
		"Cargo.toml":                         "[workspace]\nmembers = [\"handlers/*\"]\n",
		"handlers/of-a-workspace/src/lib.rs": "mod inner;\n", "handlers/of-a-workspace/src/inner.rs": "\nfn f() -> u8 { 256 }\n",
	})
	_, lines := reported(t, dir)
	if !slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "handlers/of-a-workspace/src/inner.rs:2:16: error")
	}) {
		t.Errorf("reported %q", lines)
	}
}

func TestARustCompilerWithoutTheTargetIsAnError(t *testing.T) {
	dir := crate(t, "without-target", cdylib, map[string]string{"rustc": "#!/bin/sh\necho /nowhere\n"})
	rustc := filepath.Join(dir, "rustc")
	if err := os.Chmod(rustc, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RUSTC", rustc)
	_, _, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "app"})
	if err == nil || !strings.Contains(err.Error(), "handlers/without-target is written in Rust, and the compiler of ") ||
		!strings.Contains(err.Error(), "rustup target add wasm32-wasip1") {
		t.Errorf("got %v", err)
	}
}

// A crate with the SDK, in the sandbox.
func TestARustPanicFailsOneRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Rust: left out by -short")
	}
	rusttest.Setenv(t)
	const dir = "testdata/rust" // a fixed directory is compiled only once
	modules, lines := reported(t, dir)
	if len(modules) != 1 || len(lines) > 0 {
		t.Fatalf("built %v, reported %q", modules, lines)
	}
	m := toolchaintest.Load(t, toolchaintest.Engine(t), filepath.Join(dir, modules[0].File))
	if got := toolchaintest.Ask(t, m, "panics", abi.Request{}); got.Err == nil || !strings.Contains(got.Log, "panic: there is a row\n    at src/lib.rs:7:15") {
		t.Errorf("a panic: %v, log %s", got.Err, got.Log)
	}
	for _, handler := range []string{"recurses", "hoards"} {
		if got := toolchaintest.Ask(t, m, handler, abi.Request{}); got.Err == nil {
			t.Errorf("%s answers %d %s", handler, got.Status, got.Body)
		}
	}
	first, second := toolchaintest.Ask(t, m, "draws", abi.Request{}), toolchaintest.Ask(t, m, "draws", abi.Request{})
	if first.Status != 200 || second.Status != 200 {
		t.Fatalf("draws answers %v and %v", first, second)
	}
	a, b := strings.Split(first.Body, `"`), strings.Split(second.Body, `"`)
	if a[0] == b[0] || a[1] == b[1] || a[3] == b[3] {
		t.Errorf("two requests draw alike: %s and %s", first.Body, second.Body)
	}
	if got := toolchaintest.Ask(t, m, "tells_the_time", abi.Request{}); got.Status != 200 || got.Body < `"2026` {
		t.Errorf("the time: %d %s %v", got.Status, got.Body, got.Err)
	}
}

func TestEqualRustSourcesMakeEqualModules(t *testing.T) {
	dir := crate(t, "repeatable", cdylib, map[string]string{"handlers/repeatable/src/lib.rs": "#[no_mangle]\npub extern \"C\" fn hello() {}\n"})
	t.Setenv("CARGO_PROFILE_RELEASE_LTO", "") // as users build
	var made [2][]byte
	for i := range made {
		t.Setenv("CARGO_TARGET_DIR", t.TempDir())
		modules, lines := reported(t, dir)
		if len(modules) != 1 || len(lines) > 0 {
			t.Fatalf("built %v, reported %q", modules, lines)
		}
		var err error
		if made[i], err = os.ReadFile(filepath.Join(dir, modules[0].File)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(made[0], made[1]) {
		t.Errorf("two builds differ: %d and %d bytes", len(made[0]), len(made[1]))
	}
}

// Without a cache directory, cargo's output is in the app's directory build, and never
// beside the sources.
func TestCargoWritesOnlyItsLockIntoTheSources(t *testing.T) {
	for _, cache := range []string{"", filepath.Join(t.TempDir(), "cache")} {
		dir := crate(t, "tidy", cdylib, map[string]string{"handlers/tidy/src/lib.rs": "#[no_mangle]\npub extern \"C\" fn hello() {}\n"})
		t.Setenv("CARGO_TARGET_DIR", "")
		if _, _, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "app", CacheDir: cache}); err != nil {
			t.Fatal(err)
		}
		for in, want := range map[string][]string{"handlers/tidy": {"Cargo.lock", "Cargo.toml", "src"}, "build": {".built", ".cargo", "tidy.debug", "tidy.wasm"}} {
			entries, err := os.ReadDir(filepath.Join(dir, in))
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			if cache != "" {
				want = slices.DeleteFunc(want, func(name string) bool { return name == ".cargo" })
			}
			if !slices.Equal(names, want) {
				t.Errorf("%s holds %q, want %q", in, names, want)
			}
		}
	}
}

func TestCratesWithTheSameNameKeepTheirHandlers(t *testing.T) {
	var dirs [2]string
	for i, handler := range []string{"first", "second"} {
		dirs[i] = crate(t, "of-one-name", cdylib, map[string]string{
			"handlers/of-one-name/src/lib.rs": "#[no_mangle]\npub extern \"C\" fn " + handler + "() {}\n",
		})
	}
	t.Setenv("CARGO_TARGET_DIR", t.TempDir())
	for i, want := range []string{"first", "second", "first"} {
		dir := dirs[i%2]
		if modules, lines := reported(t, dir); len(modules) != 1 || len(lines) > 0 {
			t.Fatalf("built %v, reported %q", modules, lines)
		}
		if names, err := toolchain.Exports(dir); err != nil || !slices.Equal(names, []string{want}) {
			t.Errorf("build %d exports %q, want %q (%v)", i, names, want, err)
		}
	}
}
