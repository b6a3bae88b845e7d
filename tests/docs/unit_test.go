package docs_test

import (
	"strings"
	"testing"

	"runner.example/tests/harness"
)

func TestTheDocumentedSystemdUnitIsThatOfTheTarballs(t *testing.T) {
	unit := harness.MustRead(t, harness.RepoFile("tools/dist/runner.service"))
	if !strings.Contains(harness.MustRead(t, harness.RepoFile("docs/install.md")), "```ini\n"+unit+"```\n") {
		t.Error("docs/install.md has another unit than tools/dist/runner.service")
	}
}
