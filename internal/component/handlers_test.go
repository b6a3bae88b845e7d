package component_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"runner.example/hostabi/wasi"
	"runner.example/internal/component"
	"runner.example/internal/wasm"
)

func TestAFunctionIsAHandlerByTheNamesOfLanguages(t *testing.T) {
	for name, want := range map[string]string{
		"list": "list", "list-orders": "listOrders list_orders", "get-URL": "getURL get_url", "a-b-c": "aBC a_b_c",
		"get-2fa": "get2fa get_2fa", "HTTP-get": "HTTPGet http_get", "x9": "x9",
	} {
		if got := strings.Join(component.HandlerNames(name), " "); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestAHandlerIsNotAFunctionThatTheHostCalls: a name such as runner_warm has a meaning for the host.
func TestAHandlerIsNotAFunctionThatTheHostCalls(t *testing.T) {
	file, err := os.ReadFile("../../runtime/sandbox/testdata/component/handlers.wasm")
	if err != nil {
		t.Fatal(err)
	}
	renamed := bytes.ReplaceAll(file, []byte("digest-body"), []byte("runner-warm"))
	for _, row := range []struct {
		file []byte
		want string
	}{
		{file, "countUses count_uses digest2 digestBody digest_2 digest_body echo late memory outside spin wrong"},
		{renamed, "countUses count_uses digest2 digest_2 echo late memory outside runnerWarm spin wrong"},
	} {
		linked, err := wasi.Link(row.file, wasm.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		m, err := wasm.Parse(linked, wasm.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		var exports []string
		for _, x := range m.Exports() {
			exports = append(exports, x.Name)
		}
		slices.Sort(exports)
		if got := strings.Join(exports, " "); got != row.want {
			t.Errorf("it exports %s, want %s", got, row.want)
		}
	}
}
