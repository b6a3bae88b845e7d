package toolchain_test

import (
	"context"
	"fmt"
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
		block            int // of those in the language
		file             string
		more             map[string]string
		handlers         string
	}{
		{"../../sdk/typescript/README.md", "ts", 0, "handlers/orders.ts", nil, "createOrder listOrders"},
		{"../../README.md", "ts", 0, "handlers/orders.ts", nil, "listOrders"},
		{"../../sdk/go/README.md", "go", 0, "handlers/orders/main.go", map[string]string{"handlers/orders/go.mod": goModule + strconv.Quote(sdk("go")) + "\n"}, "createOrder listOrders"},
		{"../../sdk/rust/README.md", "rust", 0, "handlers/orders/src/lib.rs", map[string]string{
			"handlers/orders/Cargo.toml": strings.ReplaceAll(shown(t, "../../sdk/rust/README.md", "toml", 0), "../../sdk/rust", sdk("rust")),
		}, "createOrder listOrders"},
		{"../../sdk/go/README.md", "go", 1, "handlers/countdown/main.go", map[string]string{"handlers/countdown/go.mod": goModule + strconv.Quote(sdk("go")) + "\n"}, "countdown"},
		{"../../sdk/rust/README.md", "rust", 1, "handlers/orders/src/lib.rs", map[string]string{
			"handlers/orders/Cargo.toml": strings.ReplaceAll(shown(t, "../../sdk/rust/README.md", "toml", 0), "../../sdk/rust", sdk("rust")),
		}, "countdown"},
		{"../../sdk/c/README.md", "c", 1, "handlers/posts/posts.c", nil, "createPost photo"},
		{"../../sdk/c/README.md", "cpp", 1, "handlers/pictures/pictures.cc", nil, "createPicture picture"},
		{"../../sdk/c/README.md", "c", 2, "handlers/countdown/countdown.c", nil, "countdown"},
		{"../../sdk/c/README.md", "cpp", 2, "handlers/report/report.cc", nil, "report"},
	} {
		t.Run(fmt.Sprintf("%s/%s/%d", strings.TrimPrefix(filepath.Dir(row.readme), ".."), row.language, row.block), func(t *testing.T) {
			if row.language == "rust" {
				rusttest.Setenv(t)
			}
			source := shown(t, row.readme, row.language, row.block)
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

// shown returns a code block of a language on a page, by its number.
func shown(t *testing.T, page, language string, block int) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllSubmatch(text, -1)
	if block >= len(m) {
		t.Fatalf("%s shows %d blocks in %s", page, len(m), language)
	}
	return string(m[block][1])
}
