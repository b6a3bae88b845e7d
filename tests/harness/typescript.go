package harness

import (
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// ClientConfig is the tsconfig.json of a strict project.
const ClientConfig = `{
  "compilerOptions": {
    "target": "es2022", "module": "esnext", "moduleResolution": "bundler", "lib": ["es2022", "dom"], "types": [],
    "strict": true, "noUncheckedIndexedAccess": true, "exactOptionalPropertyTypes": true, "noImplicitOverride": true,
    "noPropertyAccessFromIndexSignature": true, "noUnusedLocals": true, "noUnusedParameters": true, "noImplicitReturns": true,
    "verbatimModuleSyntax": true, "isolatedModules": true, "erasableSyntaxOnly": true,
    "allowImportingTsExtensions": true, "rewriteRelativeImportExtensions": true, "outDir": "out"
  },
  "include": ["*.ts"]
}`

// NewClientApp is the app in testdata/client with its generated client.
func NewClientApp(t *testing.T) *App {
	t.Helper()
	a := NewApp(t, MustRead(t, Testdata("client/client.schema")), "")
	a.Write("handlers/desk.ts", MustRead(t, Testdata("client/handlers/desk.ts")))
	a.Write("web/package.json", `{"type": "module"}`)
	a.Write("web/tsconfig.json", ClientConfig)
	a.Must("generate", "client", "--out", "web/client.ts")
	return a
}

// CompileTypeScript checks the files of a directory and writes JavaScript to its directory
// out. It returns the compiler's errors.
func CompileTypeScript(t *testing.T, dir string) string {
	t.Helper()
	tsc, err := TypeChecker()
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

// TypeChecker returns the path of the TypeScript compiler.
var TypeChecker = sync.OnceValues(func() (string, error) {
	out, err := exec.Command(RepoFile("tools/fetch-typescript.sh")).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", errors.New(string(exit.Stderr))
	}
	return strings.TrimSpace(string(out)), err
})

// CheckTypes runs the type checker on an app, and returns its messages by file:line.
func CheckTypes(t *testing.T, a *App) map[string]string {
	t.Helper()
	tsc, err := TypeChecker()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tsc, "-p", ".", "--pretty", "false")
	cmd.Dir = a.Dir
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() < 0) {
		t.Fatal(err)
	}
	said := map[string]string{}
	place := regexp.MustCompile(`^([^ (]+)\((\d+),\d+\): error TS\d+: `)
	at := ""
	for line := range strings.Lines(string(out)) {
		if m := place.FindStringSubmatch(line); m != nil {
			at = m[1] + ":" + m[2]
		} else if !strings.HasPrefix(line, " ") {
			t.Fatalf("the type checker printed %s", out)
		}
		said[at] += line
	}
	if err != nil && len(said) == 0 {
		t.Fatalf("the type checker failed without a message: %v", err)
	}
	return said
}
