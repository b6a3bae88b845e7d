package toolchain_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/sdk/rust/rusttest"
)

// Users copy the handlers that the READMEs show, so each of them must build.
func TestTheHandlersInReadmesBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles every language: left out by -short")
	}
	const goModule = "module readme.example\n\ngo 1.24\n\nrequire runner.example/sdk/go v0.0.0\n\nreplace runner.example/sdk/go => "
	sdk := func(name string) string {
		path, err := filepath.Abs("../../sdk/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, row := range []struct {
		readme, language string
		file             string
		more             map[string]string
		handlers         string
	}{
		{"../../sdk/typescript/README.md", "ts", "handlers/orders.ts", nil, "createOrder listOrders"},
		{"../../README.md", "ts", "handlers/orders.ts", nil, "listOrders"},
		{"../../sdk/go/README.md", "go", "handlers/orders/main.go", map[string]string{"handlers/orders/go.mod": goModule + strconv.Quote(sdk("go")) + "\n"}, "createOrder listOrders"},
		{"../../sdk/rust/README.md", "rust", "handlers/orders/src/lib.rs", map[string]string{
			"handlers/orders/Cargo.toml": strings.ReplaceAll(shown(t, "../../sdk/rust/README.md", "toml"), "../../sdk/rust", sdk("rust")),
		}, "createOrder listOrders"},
	} {
		t.Run(strings.TrimPrefix(filepath.Dir(row.readme), "..")+"/"+row.language, func(t *testing.T) {
			if row.language == "rust" {
				rusttest.Setenv(t)
			}
			source := shown(t, row.readme, row.language)
			files := map[string]string{row.file: source}
			for name, text := range row.more {
				files[name] = text
			}
			app := toolchaintest.App
			if row.language == "rust" {
				app = toolchaintest.KeptApp
			}
			dir := app(t, files)
			if _, warnings, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)}); err != nil || warnings != nil {
				t.Fatal(warnings, err)
			}
			exports, err := toolchain.Exports(dir)
			if err != nil {
				t.Fatal(err)
			}
			for want := range strings.FieldsSeq(row.handlers) {
				if !slices.Contains(exports, want) {
					t.Errorf("handler %s is missing among %q", want, exports)
				}
			}
		})
	}
}

// shown returns the first code block of a language on a page.
func shown(t *testing.T, page, language string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$").FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s shows nothing in %s", page, language)
	}
	return string(m[1])
}
