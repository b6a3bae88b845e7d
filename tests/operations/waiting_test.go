package operations_test

import (
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// A server that waits for its first release has no app whose errors would refuse the reload.
func TestAWaitingServerRefusesInvalidSettings(t *testing.T) {
	e := startEdge(t)
	e.app.Write("runner.toml", "[telemetry]\nlevel = \"loud\"\n")
	if got := e.app.Run("reload", "--data", e.data); got.Status != 3 || !strings.Contains(got.Stderr, "runner.toml:2:9") || !strings.Contains(got.Stderr, "previous release kept") {
		t.Errorf("%d %s", got.Status, got.Stderr)
	}
	e.app.Write("runner.toml", "[telemetry]\nlevel = \"debug\"\n")
	if out := e.app.Must("reload", "--json", "--data", e.data); !strings.Contains(out, "[telemetry] level") {
		t.Error(out)
	}
	e.must(harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile"), "deploy", "--yes")
	e.Want(200, nil, "GET", "/hello", "")
}
