package toolchain_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/toolchaintest"
)

// fakeCargo puts a cargo and a compiler in the path that have the libraries of these targets. The
// cargo writes its arguments to the returned file, and makes an empty module.
func fakeCargo(t *testing.T, targets ...string) (arguments string) {
	t.Helper()
	dir := t.TempDir()
	arguments = filepath.Join(dir, "arguments")
	for _, target := range targets {
		library := filepath.Join(dir, "lib", target)
		if err := os.MkdirAll(filepath.Join(library, "self-contained"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(library, "libstd-1.rlib"), "", 0o644)
		if target != "wasm32-unknown-unknown" {
			write(t, filepath.Join(library, "self-contained", "crt1-reactor.o"), "object", 0o644)
		}
	}
	// rustc --print target-libdir --target <target>
	write(t, filepath.Join(dir, "rustc"), "#!/bin/sh\n"+
		"case $4 in wasm32-wasip1|wasm32-wasi|wasm32-unknown-unknown) echo \""+dir+"/lib/$4\";; *) exit 1;; esac\n", 0o755)
	write(t, filepath.Join(dir, "cargo"), "#!/bin/sh\n"+
		"echo \"$@\" >\""+arguments+"\"\n"+
		// a module that exports its memory and a function
		"printf '\\000asm\\001\\000\\000\\000\\001\\004\\001\\140\\000\\000\\003\\002\\001\\000\\005\\003\\001\\000\\001\\007\\022\\002\\006memory\\002\\000\\005guest\\000\\000\\012\\004\\001\\002\\000\\013' >\""+dir+"/made.wasm\"\n"+
		"echo '{\"reason\":\"compiler-artifact\",\"manifest_path\":\"'$PWD'/Cargo.toml\",\"filenames\":[\""+dir+"/made.wasm\"]}'\n", 0o755)
	t.Setenv("PATH", dir)
	t.Setenv("HOME", dir)
	t.Setenv("RUSTC", "")
	t.Setenv("CARGO_BUILD_TARGET", "")
	t.Setenv("CARGO_TARGET_DIR", filepath.Join(dir, "target"))
	return arguments
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// builtFor builds a crate with these files beside it. It returns the target that cargo got, its other
// arguments, and the messages.
func builtFor(t *testing.T, arguments string, files map[string]string) (target, others string, messages []string) {
	t.Helper()
	all := map[string]string{"handlers/guest/Cargo.toml": "[package]\nname = \"guest\"\n"}
	for file, text := range files {
		all[file] = text
	}
	if err := os.Remove(arguments); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	_, messages = reported(t, toolchaintest.App(t, all))
	text, err := os.ReadFile(arguments)
	if errors.Is(err, os.ErrNotExist) {
		return "", "", messages
	}
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "--target ")
	target, _, _ = strings.Cut(after, " ")
	return target, string(text), messages
}

func TestRustIsBuiltForWASIWhereItIsInstalled(t *testing.T) {
	const wasip1, wasi, unknown = "wasm32-wasip1", "wasm32-wasi", "wasm32-unknown-unknown"
	notice := "handlers/guest: warning: built for wasm32-unknown-unknown, because wasm32-wasip1 is not installed: println! writes nothing, and SystemTime::now and crates that draw random numbers fail; run `rustup target add wasm32-wasip1`"
	for _, row := range []struct {
		installed []string
		want      string
		messages  []string
	}{
		{[]string{wasip1, wasi, unknown}, wasip1, nil},
		{[]string{wasip1}, wasip1, nil},
		{[]string{wasi, unknown}, wasi, nil},
		{[]string{unknown}, unknown, []string{notice}},
	} {
		t.Run(strings.Join(row.installed, " "), func(t *testing.T) {
			target, arguments, messages := builtFor(t, fakeCargo(t, row.installed...), nil)
			if target != row.want || !slices.Equal(messages, row.messages) {
				t.Errorf("built for %q, reported %q, want %q and %q", target, messages, row.want, row.messages)
			}
			if reactor := strings.Contains(arguments, "link-arg=--export=_initialize"); reactor != (row.want != unknown) {
				t.Errorf("for %s cargo gets %s", row.want, arguments)
			}
			for _, option := range []string{"link-arg=-zstack-size=262144", "link-arg=--stack-first"} {
				if !strings.Contains(arguments, option) {
					t.Errorf("cargo gets %s, without %s", arguments, option)
				}
			}
		})
	}
}

func TestATargetThatACrateNamesIsUsedOrRefused(t *testing.T) {
	const wasip1, wasi, unknown = "wasm32-wasip1", "wasm32-wasi", "wasm32-unknown-unknown"
	refused := func(file string, line, col int, target string) []string {
		return []string{fmt.Sprintf("%s:%d:%d: error: build.target is %s, but handlers are built for wasm32-wasip1 or wasm32-unknown-unknown: remove it, or name one of these", file, line, col, target)}
	}
	const own, ofApp = "handlers/guest/.cargo/config.toml", ".cargo/config.toml"
	arguments := fakeCargo(t, wasi, unknown)
	for _, row := range []struct {
		name     string
		files    map[string]string
		want     string
		messages []string
	}{
		{"unknown-unknown", map[string]string{own: "[build]\ntarget = \"wasm32-unknown-unknown\"\n"}, unknown, nil},
		{"the newer name", map[string]string{own: "[build]\nrustflags = []\ntarget = 'wasm32-wasip1' # new\n"}, wasi, nil},
		{"a key with a dot", map[string]string{own: "build.target = \"wasm32-unknown-unknown\"\n"}, unknown, nil},
		{"an inline table", map[string]string{own: "build = { jobs = 1, target = \"wasm32-unknown-unknown\" }\n"}, unknown, nil},
		{"of the app", map[string]string{ofApp: "[build]\ntarget = \"wasm32-unknown-unknown\"\n"}, unknown, nil},
		{"the nearest", map[string]string{own: "[build]\ntarget = \"wasm32-wasi\"\n", ofApp: "[build]\ntarget = \"wasm32-unknown-unknown\"\n"}, wasi, nil},
		{"without a suffix", map[string]string{"handlers/guest/.cargo/config": "[build]\ntarget = \"wasm32-unknown-unknown\"\n"}, unknown, nil},
		{"of another table", map[string]string{own: "[target.wasm32-wasi]\nrustflags = []\n[env]\ntarget = \"x86_64-unknown-linux-gnu\"\n# target = \"none\"\n"}, wasi, nil},
		{"a component", map[string]string{own: "[build]\ntarget = \"wasm32-wasip2\"\n"}, "", refused(own, 2, 10, "wasm32-wasip2")},
		{"another machine", map[string]string{own: "[build]\njobs = 1\n  target = \"x86_64-unknown-linux-gnu\"\n"}, "", refused(own, 3, 12, "x86_64-unknown-linux-gnu")},
		{"several", map[string]string{ofApp: "[build]\ntarget = [\"wasm32-wasip1\", \"wasm32-unknown-unknown\"]\n"}, "", refused(ofApp, 2, 10, `["wasm32-wasip1", "wasm32-unknown-unknown"]`)},
	} {
		t.Run(row.name, func(t *testing.T) {
			if target, _, messages := builtFor(t, arguments, row.files); target != row.want || !slices.Equal(messages, row.messages) {
				t.Errorf("built for %q, reported %q, want %q and %q", target, messages, row.want, row.messages)
			}
		})
	}

	t.Setenv("CARGO_BUILD_TARGET", unknown)
	if target, _, messages := builtFor(t, arguments, map[string]string{own: "[build]\ntarget = \"wasm32-wasi\"\n"}); target != unknown || len(messages) > 0 {
		t.Errorf("with the variable: built for %q, reported %q", target, messages)
	}
	t.Setenv("CARGO_BUILD_TARGET", "x86_64-unknown-linux-gnu")
	if target, _, messages := builtFor(t, arguments, nil); target != wasi || len(messages) > 0 {
		t.Errorf("with a variable for other programs: built for %q, reported %q", target, messages)
	}
}

func TestANamedTargetThatIsNotInstalledIsAnError(t *testing.T) {
	fakeCargo(t, "wasm32-unknown-unknown")
	dir := toolchaintest.App(t, map[string]string{
		"handlers/guest/Cargo.toml":         "[package]\nname = \"guest\"\n",
		"handlers/guest/.cargo/config.toml": "[build]\ntarget = \"wasm32-wasip1\"\n",
	})
	_, _, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "app"})
	if err == nil || !strings.Contains(err.Error(), "handlers/guest is written in Rust, and the compiler of ") ||
		!strings.Contains(err.Error(), "does not support WebAssembly (wasm32-wasip1, wasm32-wasi): run `rustup target add wasm32-wasip1`") {
		t.Errorf("got %v", err)
	}
}

// With WASI, constructors run once, in _initialize, and a crate may have its own.
func TestARustModuleForWASIIsAReactor(t *testing.T) {
	const hello = "#[no_mangle]\npub extern \"C\" fn hello() { println!(\"hello\") }\n"
	for name, source := range map[string]string{
		"reactor":     hello,
		"own-reactor": hello + "#[no_mangle]\npub extern \"C\" fn _initialize() {}\n",
	} {
		dir := crate(t, name, cdylib, map[string]string{"handlers/" + name + "/src/lib.rs": source})
		modules, lines := reported(t, dir)
		if len(modules) != 1 || len(lines) > 0 {
			t.Fatalf("%s: built %v, reported %q", name, modules, lines)
		}
		module, err := os.ReadFile(filepath.Join(dir, modules[0].File))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(module), "\x0b_initialize") || !strings.Contains(string(module), "fd_write") {
			t.Errorf("%s: the module has no _initialize, or writes nothing", name)
		}
		// Without a reactor the linker wraps each export in a function that runs the constructors.
		if name == "reactor" && strings.Contains(string(module), "command_export") {
			t.Error("every export runs the constructors")
		}
	}
}
