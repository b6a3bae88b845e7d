package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra/doc"

	"runner.example/cmd/runner/cli"
)

var (
	manDir  = flag.String("man", "", "directory for the man pages")
	manDate = flag.Int64("date", 0, "their date, in seconds since 1970")
)

// tools/dist.sh writes the man pages with this test.
func TestManPages(t *testing.T) {
	dir := *manDir
	if dir == "" {
		dir = t.TempDir()
	}
	date := time.Unix(*manDate, 0).UTC()
	root := (&program{&cli.CLI{}}).root()
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, &doc.GenManHeader{Title: "RUNNER", Section: "1", Source: "runner", Manual: "Commands", Date: &date}, dir); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"runner.1": "serve HTTP handlers", "runner-serve.1": "SIGTERM", "runner-api-keys-create.1": "scope"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s, %v: %.200s", file, err, text)
		}
	}
}
