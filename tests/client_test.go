package tests

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// What a careful project asks of its files.
const clientConfig = `{
  "compilerOptions": {
    "target": "es2022", "module": "esnext", "moduleResolution": "bundler", "lib": ["es2022", "dom"], "types": [],
    "strict": true, "noUncheckedIndexedAccess": true, "exactOptionalPropertyTypes": true, "noImplicitOverride": true,
    "noPropertyAccessFromIndexSignature": true, "noUnusedLocals": true, "noUnusedParameters": true, "noImplicitReturns": true,
    "verbatimModuleSyntax": true, "isolatedModules": true, "erasableSyntaxOnly": true,
    "allowImportingTsExtensions": true, "rewriteRelativeImportExtensions": true, "outDir": "out"
  },
  "include": ["*.ts"]
}`

// newClientApp is the app of the folder client, with its client.
func newClientApp(t *testing.T) *app {
	t.Helper()
	a := newApp(t, mustRead(t, "client/client.schema"), "")
	a.write("handlers/desk.ts", mustRead(t, "client/handlers/desk.ts"))
	a.write("web/package.json", `{"type": "module"}`)
	a.write("web/tsconfig.json", clientConfig)
	a.must("generate", "client", "--out", "web/client.ts")
	return a
}

// compileTypeScript checks the files of a folder and writes them as JavaScript to its
// folder out. It gives what is wrong.
func compileTypeScript(t *testing.T, dir string) string {
	t.Helper()
	tsc, err := typeChecker()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tsc, "-p", ".", "--pretty", "false")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() < 0) {
		t.Fatal(err)
	}
	return string(out)
}

func TestAGeneratedClientReachesTheServer(t *testing.T) {
	t.Parallel()
	a := newClientApp(t)
	a.write("web/use.ts", mustRead(t, "client/use.ts"))
	if wrong := compileTypeScript(t, a.path("web")); wrong != "" {
		t.Fatal(wrong)
	}
	a.must("build")
	s := a.serve()
	var session signedIn
	if err := json.Unmarshal([]byte(a.must("sessions", "create", "--user", "ann", "--role", "admin", "--json")), &session); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", a.path("web/out/use.js"))
	cmd.Env = append(os.Environ(), "URL="+s.url, "KEY="+a.token("desk"), "OTHER="+a.token("other"), "COOKIE="+session.Cookie)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestATypeCheckerFindsMistakesInCalls(t *testing.T) {
	a := newClientApp(t)
	wrong := mustRead(t, "client/wrong.ts")
	a.write("web/wrong.ts", wrong)
	said := map[string]string{}
	place := regexp.MustCompile(`^([^ (]+)\((\d+),\d+\): error TS\d+: `)
	at := ""
	for line := range strings.Lines(compileTypeScript(t, a.path("web"))) {
		if m := place.FindStringSubmatch(line); m != nil {
			at = m[1] + ":" + m[2]
		}
		said[at] += line
	}
	mistakes := 0
	for i, line := range strings.Split(wrong, "\n") {
		if _, want, ok := strings.Cut(line, " //! "); ok {
			mistakes++
			at := "wrong.ts:" + strconv.Itoa(i+1)
			if !strings.Contains(said[at], want) {
				t.Errorf("%s: the type checker says %q, want %s", at, said[at], want)
			}
			delete(said, at)
		}
	}
	for at, text := range said {
		t.Errorf("%s is a mistake to the type checker: %s", at, text)
	}
	if mistakes < 20 {
		t.Errorf("only %d mistakes were looked for", mistakes)
	}
}

func TestClientsOfAllSchemasAreTypeScript(t *testing.T) {
	schemas, err := filepath.Glob("../plugins/examples/*/*.schema")
	if err != nil || len(schemas) < 4 {
		t.Fatalf("examples: %q, %v", schemas, err)
	}
	// Names that a client's own parts have as well, and those of the language.
	names := "Client ClientOptions CallOptions RouteOptions Credential Param Query QueryValue FieldError ProblemError Sent Send Result Promise Response Request RequestInit BodyInit Record Array Error Date Blob Headers AbortSignal ReadableStream Object String"
	var text strings.Builder
	for i, name := range strings.Fields(names) {
		text.WriteString("type " + name + " { a: int b: string" + strconv.Itoa(i) + "? c: " + name + "[]? }\n")
	}
	clash := regexp.MustCompile(`string\d+`).ReplaceAllString(text.String(), "string")
	functions := "functions(auth: none, rateLimit: none) {\n@expose new() -> Result?\n"
	for _, name := range strings.Fields("createClient connect send fetch then then_ constructor toString delete function class default async get set") {
		functions += "@expose " + name + "(args: Promise, " + name + ": int?) -> Response[]?\n"
	}
	clashing := newApp(t, clash+functions+"}\nroutes(\"/\", auth: none, rateLimit: none) { POST /:new/:class -> connect (input: Promise) GET /a -> then GET /b -> call GET /d -> call_ GET /e -> call__ GET /c -> new GET /*default -> constructor }", "")
	empty := newApp(t, "type Nothing { a: int? }", "")
	schemas = append(schemas, "../generate/testdata/everything.schema", "types/shop.schema", "typescript/shop.schema", clashing.path("app.schema"), empty.path("app.schema"))

	all := newApp(t, "", "")
	all.write("tsconfig.json", clientConfig)
	for i, file := range schemas {
		a := newApp(t, mustRead(t, file), "")
		a.must("generate", "client", "--out", all.path("client"+strconv.Itoa(i)+".ts"))
		if stdout := a.must("generate", "client"); stdout != mustRead(t, all.path("client"+strconv.Itoa(i)+".ts")) {
			t.Errorf("%s: the second client is another one", file)
		}
	}
	if wrong := compileTypeScript(t, all.dir); wrong != "" {
		t.Error(wrong)
	}
}
