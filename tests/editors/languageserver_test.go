package editors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const shop = `auth {
  session cookie { idle: 30m, absolute: 12h }
}

enum Status { open, paid }

/// An order of a user.
entity Order {
  id: id
  status: Status = open
  note: text?
  @@allow read, write to session
}

apiKeys {
  scopes: {
    orders_read: @system("orders.read") { @grant read on Order }
  }
}

routes("/v1", auth: apiKey(order_read), rateLimit: 600/minute) {
  GET /orders -> listOrders
  POST /orders -> createOrder (auth: session)
}
`

const script = `import { ok, query, type RouteRequest } from "@runner/sdk";

export async function listOrders(req: RouteRequest) {
  return ok(await query("Order").where("status", "=", "open").rows());
}
`

// results are what client.lua writes.
type results struct {
	Error       string
	Diagnostics []struct {
		Line, Col     int
		Message, Code string
	}
	Completion, Symbols, Hints                      []string
	Hover, Definition, Back                         string
	References, Highlight, Workspace, Folds, Tokens int
	Asked, Fixed, Renamed, Script, Formatted        string
	Stub, Created                                   string
	Stopped                                         bool
}

// TestNeovimUsesTheLanguageServer runs Neovim without a screen, with its own client and the real server.
func TestNeovimUsesTheLanguageServer(t *testing.T) {
	nvim, err := exec.LookPath("nvim")
	if err != nil {
		t.Skip("nvim is missing: tools/setup.sh installs it")
	}
	dir := t.TempDir()
	app := &harness.App{T: t, Dir: dir}
	for name, text := range map[string]string{"shop.schema": shop, "handlers/orders.ts": script, "data/store/present": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	checked := app.Run("check", "--json")
	client, err := filepath.Abs("testdata/client.lua")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*harness.Timeout)
	defer cancel()
	written := filepath.Join(t.TempDir(), "results.json")
	cmd := exec.CommandContext(ctx, nvim, "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", "luafile "+client)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "RUNNER="+harness.Binary, "RESULTS="+written, "HOME="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir(), "XDG_CACHE_HOME="+t.TempDir())
	output, runErr := cmd.CombinedOutput()
	text, err := os.ReadFile(written)
	if err != nil {
		t.Fatalf("no results: %v\n%s", runErr, output)
	}
	var got results
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if got.Error != "" {
		t.Fatalf("%s\n%s", got.Error, output)
	}
	compareDiagnostics(t, checked.Stdout, got)

	has := func(what string, list []string, wanted ...string) {
		t.Helper()
		for _, w := range wanted {
			if !slices.Contains(list, w) {
				t.Errorf("%s: no %q in %q", what, w, list)
			}
		}
	}
	contains := func(what, text string, wanted ...string) {
		t.Helper()
		for _, w := range wanted {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in\n%s", what, w, text)
			}
		}
	}
	has("completion", got.Completion, "listOrders", "createOrder")
	has("symbols", got.Symbols, "auth", "Status", "Order", "apiKeys", `routes "/v1"`)
	has("hints", got.Hints, "auth apiKey(order_read) · 600/minute", "600/minute")
	contains("hover", got.Hover, "GET /v1/orders -> listOrders", "600/minute", "handlers/orders.ts:3")
	for what, pair := range map[string][2]string{
		"definition": {got.Definition, "orders.ts:3"}, "back": {got.Back, "shop.schema:22"},
		"stub": {got.Stub, "Create the handler createOrder in handlers/orders.ts"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
		}
	}
	if got.References != 2 || got.Highlight != 2 || got.Workspace != 4 || got.Folds < 5 || got.Tokens < 100 || got.Tokens%5 != 0 || !got.Stopped {
		t.Errorf("results %+v", got)
	}
	contains("fix", got.Fixed, "auth: apiKey(orders_read)")
	contains("question", got.Asked, "Rows may have the name")
	contains("rename", got.Renamed, `remark: text? @was("note")`, `entity Purchase @was("Order") {`, "@grant read on Purchase")
	contains("rename in TypeScript", got.Script, `query("Purchase")`)
	contains("formatting", got.Formatted, "enum Last { a, b }\n")
	contains("stub", got.Created, "export async function createOrder(req: RouteRequest) {")
}

// compareDiagnostics compares what the editor shows with `runner check --json`.
func compareDiagnostics(t *testing.T, printed string, got results) {
	t.Helper()
	var document struct {
		Findings []struct {
			Code, Message string
			Line, Col     int
		}
	}
	if err := json.Unmarshal([]byte(printed), &document); err != nil {
		t.Fatalf("check: %v in %s", err, printed)
	}
	var want, shown []string
	for _, f := range document.Findings {
		want = append(want, fmt.Sprintf("%d:%d %s %s", f.Line, f.Col, f.Code, f.Message))
	}
	for _, d := range got.Diagnostics {
		shown = append(shown, fmt.Sprintf("%d:%d %s %s", d.Line, d.Col, d.Code, d.Message))
	}
	slices.Sort(want)
	slices.Sort(shown)
	if len(want) == 0 || !slices.Equal(want, shown) {
		t.Errorf("the editor shows\n%s\nand check prints\n%s", strings.Join(shown, "\n"), strings.Join(want, "\n"))
	}
}
