package operations_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// typedApp is a small app with a tsconfig.json and the type checker.
func typedApp(t *testing.T) *harness.App {
	t.Helper()
	tsc, err := harness.TypeChecker()
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewApp(t, harness.DevSchema, "")
	a.Write("handlers/hello.ts", harness.HelloSource("one"))
	a.Write("tsconfig.json", harness.MustRead(t, harness.RepoFile("develop/scaffold/template/ts/tsconfig.json")))
	if err := os.Symlink(filepath.Dir(filepath.Dir(tsc)), a.Path("node_modules")); err != nil {
		t.Fatal(err)
	}
	return a
}

// wronglyTyped is a file with a type error in its second line, which its build does not notice.
const wronglyTyped = "export const two = 2;\nexport const three: string = two;\n"

const typeError = "handlers/wrong.ts:2:14: error[TS2322]: Type 'number' is not assignable to type 'string'\n    2 | export const three: string = two;"

func TestBuildAndCheckReportTypeErrors(t *testing.T) {
	a := typedApp(t)
	if got := a.Run("check"); got.Status != 0 || !strings.Contains(got.Stderr, "types are not checked: the files in types are not those of the schema") {
		t.Errorf("check before the first build: %d\n%s%s", got.Status, got.Stdout, got.Stderr)
	}
	if got := a.Run("build"); got.Status != 0 || strings.Contains(got.Stderr, "types") {
		t.Errorf("build without type errors: %d\n%s", got.Status, got.Stderr)
	}
	if got := a.Run("check"); got.Status != 0 || strings.Contains(got.Stderr, "types") {
		t.Errorf("check without type errors: %d\n%s%s", got.Status, got.Stdout, got.Stderr)
	}
	a.Write("handlers/wrong.ts", wronglyTyped)
	got := a.Run("build")
	if got.Status != 3 || !strings.Contains(got.Stderr, typeError) || !strings.Contains(got.Stderr, "error: the handlers have type errors: 1 error") ||
		!strings.Contains(got.Stdout, "build/little.wasm") {
		t.Errorf("build: %d\n%s%s", got.Status, got.Stdout, got.Stderr)
	}
	if got := a.Run("check"); got.Status != 3 || !strings.Contains(got.Stdout, typeError) {
		t.Errorf("check: %d\n%s%s", got.Status, got.Stdout, got.Stderr)
	}
	for _, command := range []string{"build", "check"} {
		got := a.Run(command, "--json")
		var printed struct{ Findings []struct{ Code, File string } }
		err := json.Unmarshal([]byte(got.Stdout), &printed)
		if n := len(printed.Findings); err != nil || got.Status != 3 || n == 0 ||
			printed.Findings[n-1].Code != "TS2322" || printed.Findings[n-1].File != "handlers/wrong.ts" {
			t.Errorf("%s --json: %d, %v\n%s", command, got.Status, err, got.Stdout)
		}
	}
	if err := os.Remove(a.Path("node_modules")); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"build", "check"} {
		if got := a.Run(command); got.Status != 0 || strings.Count(got.Stderr, "runner: types are not checked: install typescript") != 1 {
			t.Errorf("%s without the type checker: %d\n%s%s", command, got.Status, got.Stdout, got.Stderr)
		}
	}
}

func TestDevServesWhileItReportsTypeErrors(t *testing.T) {
	a := typedApp(t)
	a.Write("handlers/wrong.ts", wronglyTyped)
	s := a.Start("dev")
	s.WaitForBody("/v1/hello", "one")
	s.WaitForOutput(`handlers/wrong\.ts:2:14: error\[TS2322\]: (?s:.*)runner: error: the handlers have type errors: 1 error`)
	a.Write("handlers/wrong.ts", strings.Replace(wronglyTyped, "string", "number", 1))
	s.WaitForOutput(`runner: the handlers have no type errors`)
	s.WantBody("/v1/hello", "one")
}

func TestDevSaysThatTypesAreNotChecked(t *testing.T) {
	s := harness.Develop(t)
	s.WaitForOutput(`runner: types are not checked: install typescript`)
}
