// Package rusttest lets tests use Rust: every crate is compiled once for all of them.
package rusttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Setenv makes cargo, and so what builds with it, keep all output in one directory
// of the user's cache; and take crates from Debian's packages where those are, which
// tools/setup.sh installs.
func Setenv(t testing.TB) {
	t.Helper()
	if os.Getenv("CARGO_TARGET_DIR") == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("CARGO_TARGET_DIR", filepath.Join(cache, "runner-tests", "cargo"))
	}
	if hasDebianCrates() {
		t.Setenv("CARGO_NET_OFFLINE", "true")
	}
}

// Test runs the tests of the crate in a directory, natively; those in its documentation,
// each of which is compiled by itself, when RUNNER_SOAK is 1. That there is no cargo is
// a failure.
func Test(t testing.TB, dir string) {
	t.Helper()
	Setenv(t)
	command, args := "cargo", []string{"test", "--quiet"}
	if os.Getenv("RUNNER_SOAK") != "1" {
		args = append(args, "--tests")
	}
	if hasDebianCrates() {
		command = "/usr/bin/cargo"
		t.Setenv("RUSTC", "/usr/bin/rustc")
		t.Setenv("RUSTDOC", "/usr/bin/rustdoc")
		args = append(args, "--config", `source.crates-io.replace-with="debian"`, "--config",
			`source.debian.directory="`+registry+`"`)
	}
	if _, err := exec.LookPath(command); err != nil {
		t.Fatalf("no Rust is installed: run tools/setup.sh (%v)", err)
	}
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the tests of %s: %v\n%s", dir, err, said)
	}
}

const registry = "/usr/share/cargo/registry"

func hasDebianCrates() bool {
	found, _ := filepath.Glob(filepath.Join(registry, "serde_json-*"))
	return len(found) > 0
}
