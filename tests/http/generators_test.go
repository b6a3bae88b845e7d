package http_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// generators returns the directory of third-party generators of clients.
func generators(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(harness.RepoFile("tools/fetch-openapi-generators.sh"))
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tools/fetch-openapi-generators.sh: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// run runs a command in a directory and returns its output.
func run(t *testing.T, dir string, env []string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), env...), t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

// everything is the document of a schema with all features.
var everything = harness.RepoFile("schema/generate/testdata/everything.openapi.json")

// called is what each client prints.
const called = `"added" 201 201
"items" [["ink","12.50","paid",{"a":1},null,null],["pen","1.50","open",[1,"a"],"c2Vh","2026-01-31"]]
"listed" ["pen"]
"sum" 200 "3.25"
"echo" {"deep":[null]}
"removed" 204
"redirected" 303
"refused" "invalid_input" ["price","site"]
`

func newGeneratorsApp(t *testing.T) (a *harness.App, env []string) {
	t.Helper()
	const files = "testdata/generators/"
	a = harness.NewApp(t, harness.MustRead(t, files+"shop.schema"), "")
	a.Write("handlers/shop.ts", harness.MustRead(t, files+"handlers/shop.ts"))
	a.Write("web/main.ts", harness.MustRead(t, files+"main.ts"))
	a.Write("go/main.go", harness.MustRead(t, files+"go/main.go"))
	a.Must("build")
	s := a.Serve()
	a.Must("generate", "openapi", "--server", s.URL, "--out", "openapi.json")
	return a, []string{"URL=" + s.URL, "TOKEN=" + a.Token("shop")}
}

func TestAClientByOrvalCallsTheServer(t *testing.T) {
	t.Parallel()
	tools := generators(t)
	a, env := newGeneratorsApp(t)
	a.Write("orval.config.cjs", `module.exports = { shop: { input: "openapi.json", output: { target: "web/api.ts", client: "fetch", baseUrl: { getBaseUrlFromSpecification: true } } },
		all: { input: "`+everything+`", output: { target: "web/all.ts", client: "fetch" } } };`)
	run(t, a.Dir, nil, filepath.Join(tools, "node_modules/.bin/orval"), "--config", "orval.config.cjs")
	a.Write("web/package.json", `{"type": "module"}`)
	a.Write("web/tsconfig.json", `{"compilerOptions": {"target": "es2022", "module": "nodenext", "lib": ["es2022", "dom", "dom.iterable"], "types": [], "strict": true, "outDir": "out"}, "include": ["*.ts"]}`)
	if errs := harness.CompileTypeScript(t, a.Path("web")); errs != "" {
		t.Fatal(errs)
	}
	if got := run(t, a.Path("web"), env, "node", "out/main.js"); got != called {
		t.Errorf("got\n%s\nwant\n%s", got, called)
	}
}

func TestAClientByOAPICodegenCallsTheServer(t *testing.T) {
	t.Parallel()
	module := filepath.Join(generators(t), "go")
	a, env := newGeneratorsApp(t)
	for _, name := range []string{"go.mod", "go.sum"} {
		a.Write("go/"+name, harness.MustRead(t, filepath.Join(module, name)))
	}
	a.Write("go/api/doc.go", "// Package api is the client.\npackage api\n")
	run(t, a.Dir, nil, filepath.Join(module, "oapi-codegen"), "-generate", "types,client", "-package", "api", "-o", "go/api/api.go", "openapi.json")
	a.Write("go/all/doc.go", "// Package all is the client of a schema with all features.\npackage all\n")
	run(t, a.Dir, nil, filepath.Join(module, "oapi-codegen"), "-generate", "types,client", "-package", "all", "-o", "go/all/all.go", everything)
	env = append(env, "GOFLAGS=-mod=readonly", "GOWORK=off")
	run(t, a.Path("go"), env, "go", "build", "./...")
	if got := run(t, a.Path("go"), env, "go", "run", "."); got != called {
		t.Errorf("got\n%s\nwant\n%s", got, called)
	}
}
