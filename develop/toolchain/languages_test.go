package toolchain_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/develop/toolchain"
)

func TestToolchainsDoNotGetTheAppsSecrets(t *testing.T) {
	reported := filepath.Join(t.TempDir(), "environments")
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "libstd-1.rlib"), nil, 0o644); err != nil { // the file that the search asks rustc for
		t.Fatal(err)
	}
	for name, then := range map[string]string{"go": "exit 1", "cargo": "exit 1", "rustc": "echo " + tools, "clang": "exit 1"} {
		script := "#!/bin/sh\n{ echo \"tool=" + name + "\"; /usr/bin/env; } >> " + reported + "\n" + then + "\n"
		if err := os.WriteFile(filepath.Join(tools, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", tools)
	t.Setenv("RUSTC", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("WASI_SDK_PATH", "")
	t.Setenv("RUNNER_SECRETS_STRIPE", "c4n4ry")
	t.Setenv("RUNNER_SECRETS_OTHER_FILE", "/c4n4ry")
	t.Setenv("OF_THE_USER", "kept")
	for directory, file := range map[string]string{"go": "go.mod", "rust": "Cargo.toml", "c": "hello.c"} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "handlers", directory), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "handlers", directory, file), []byte("module x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "app"}); err == nil {
			t.Fatalf("%s: a tool that fails made a module", directory)
		}
	}
	all, err := os.ReadFile(reported)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tool=go\n", "tool=rustc\n", "tool=cargo\n", "tool=clang\n", "OF_THE_USER=kept\n"} {
		if !strings.Contains(string(all), want) {
			t.Errorf("no %q in what the tools were given", want)
		}
	}
	if strings.Contains(string(all), "c4n4ry") {
		t.Errorf("a tool was given a secret:\n%s", all)
	}
}
