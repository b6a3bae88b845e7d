package languages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const packageSchema = `app packages
functions(auth: none, rateLimit: none) { use() -> json }
`

const packageHandler = `import { ok } from "@runner/sdk";
import { run } from "./run.js";
export const use = async () => ok({ result: await run() });
`

// Packages of npm give in a handler what they give in Node.js. docs/typescript/packages.md lists them. The short
// form runs a third of them.
func TestPackagesRunAsInNode(t *testing.T) {
	dir := harness.Testdata("packages")
	list, err := os.ReadFile(filepath.Join(dir, "packages.txt"))
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile(harness.RepoFile("docs/typescript/packages.md"))
	if err != nil {
		t.Fatal(err)
	}
	fetched, err := exec.Command(harness.RepoFile("tools/fetch-packages.sh")).Output()
	if err != nil {
		t.Fatalf("tools/fetch-packages.sh: %v", err)
	}
	modules := strings.TrimSpace(string(fetched))
	packages := strings.Fields(string(list))
	if sources, err := filepath.Glob(filepath.Join(dir, "*.js")); err != nil || len(sources) != len(packages) {
		t.Errorf("%d packages are listed, and %d have a file (%v)", len(packages), len(sources), err)
	}
	for i, pinned := range packages {
		at := strings.LastIndex(pinned, "@")
		name, version := pinned[:at], pinned[at+1:]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if row := "| `" + name + "` | " + version + " |"; !strings.Contains(string(docs), row) {
				t.Errorf("docs/typescript/packages.md has no row %s", row)
			}
			if i%3 != 0 && !harness.Soak {
				return
			}
			source, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(name, "/", "__")+".js"))
			if err != nil {
				t.Fatal(err)
			}
			a := harness.NewApp(t, packageSchema, "[sandbox]\ncpu = \"30s\"\n[runtime]\ntimeout = \"60s\"\n")
			a.Write("handlers/run.js", string(source))
			a.Write("handlers/app.ts", packageHandler)
			a.Write("handlers/package.json", `{"type":"module"}`)
			if err := os.Symlink(modules, a.Path("node_modules")); err != nil {
				t.Fatal(err)
			}
			node := exec.Command("node", "--input-type=module", "--eval", `import { run } from "./handlers/run.js"; console.log(JSON.stringify({ result: await run() }))`)
			node.Dir = a.Dir
			want, err := node.Output()
			if err != nil {
				t.Fatalf("node: %v", err)
			}
			a.Must("build")
			if got := a.Must("call", "use"); got != string(want) {
				t.Errorf("answers %.500s\nNode.js %.500s", got, want)
			}
		})
	}
}
