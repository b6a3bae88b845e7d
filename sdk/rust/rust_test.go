package rust_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"runner.example/sdk/rust"
	"runner.example/sdk/rust/rusttest"
)

func TestTheTestsOfTheCratePass(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Rust: left out by -short")
	}
	rusttest.Test(t, ".")
}

func TestTheWholeCrateIsEmbedded(t *testing.T) {
	for _, pattern := range []string{"Cargo.toml", "README.md", "src/*.rs", "src/*/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := fs.ReadFile(rust.Crate, filepath.ToSlash(file)); err != nil || string(got) != string(want) {
				t.Errorf("%s is not embedded as it is: %v", file, err)
			}
		}
	}
}
