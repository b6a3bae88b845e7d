package languages_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// pythonTyped is an app with a schema, and with these of the handlers of testdata, and its types.
func pythonTyped(t *testing.T, schema string, handlers ...string) *harness.App {
	t.Helper()
	a := harness.NewApp(t, "", "")
	if err := os.Remove(a.Path("app.schema")); err != nil {
		t.Fatal(err)
	}
	a.Write("desk.schema", schema)
	a.Write("pyrightconfig.json", harness.MustRead(t, harness.Testdata("python/types/pyrightconfig.json")))
	a.Write("types.json", `{"include": ["types"], "pythonVersion": "3.13", "typeCheckingMode": "standard", "reportMissingModuleSource": false}`)
	for _, name := range handlers {
		a.Write("handlers/"+name, harness.MustRead(t, harness.Testdata("python/types/handlers/"+name)))
	}
	a.Must("generate", "types")
	return a
}

func TestTheTypesOfPythonReportExactlyTheErrors(t *testing.T) {
	a := pythonTyped(t, harness.MustRead(t, harness.Testdata("python/types/desk.schema")), "right.py", "wrong.py")
	said := harness.CheckPython(t, a, "pyrightconfig.json")
	expected := 0
	for i, line := range strings.Split(harness.MustRead(t, harness.Testdata("python/types/handlers/wrong.py")), "\n") {
		_, want, ok := strings.Cut(line, "  #! ")
		if !ok {
			continue
		}
		expected++
		at := "handlers/wrong.py:" + strconv.Itoa(i+1)
		if !strings.Contains(said[at], want) {
			t.Errorf("%s: the type checker reports %q, want %s", at, said[at], want)
		}
		delete(said, at)
	}
	for at, text := range said {
		t.Errorf("%s: unexpected error of the type checker: %s", at, text)
	}
	if expected < 80 {
		t.Errorf("the test expects only %d errors", expected)
	}
	if _, err := os.Stat(a.Path("types/schema.d.ts")); err == nil {
		t.Error("an app with handlers in Python alone has types of TypeScript")
	}
	for at, text := range harness.CheckPython(t, a, "types.json") {
		t.Errorf("the SDK and its types: %s: %s", at, text)
	}
}

// The types are valid for every kind of field, for names that Python reserves, and for a schema
// without entities, where every name is accepted.
func TestTheTypesOfPythonAreValidForEverySchema(t *testing.T) {
	for name, schema := range map[string]string{
		"everything": harness.MustRead(t, harness.RepoFile("schema/generate/testdata/everything.schema")),
		"kinds":      harness.MustRead(t, harness.Testdata("types/shop.schema")),
		"names": `/// It "ends" with \
entity Selection { id: id literal: string(1..8) list: int? class: Page? @@allow all to anonymous }
entity Page { id: id selections: Selection[] @inverse(class) @@allow all to anonymous }
type SelectionInsert { from: string }
type T { typing: int str: string }
enum State { a }
routes("/", auth: none, rateLimit: none) { POST /free -> free: T (input: SelectionInsert) }
`,
		"without entities": `type str { class: int }
routes("/", auth: none, rateLimit: none) { GET /free -> free: str }
`,
	} {
		a := pythonTyped(t, schema)
		a.Write("stubs.json", `{"include": ["handlers", "types/runner/*.pyi"], "extraPaths": ["types"], "pythonVersion": "3.13", "typeCheckingMode": "standard"}`)
		if name == "without entities" {
			a.Write("handlers/free.py", `from runner import Request, handler, insert, ok, query, update
from runner.schema import str_


@handler("free")
def free(req: Request):
    row = insert("Anything", {"n": 1})
    rows = query("Anything").select("a").where("b", "=", 1).include("c").rows()
    update("Anything", {"n": row["n"]}).where("id", "=", rows[0]["id"]).run()
    answer: str_ = {"class": 1}
    return ok(answer)
`)
		}
		a.Must("generate", "types", "--lang", "python")
		for at, text := range harness.CheckPython(t, a, "stubs.json") {
			t.Errorf("%s: %s: %s", name, at, text)
		}
	}
}

func TestTheLanguageOfTypesIsThatOfTheHandlersOrGiven(t *testing.T) {
	exists := func(a *harness.App, name string) bool {
		_, err := os.Stat(a.Path(name))
		return err == nil
	}
	schema := harness.MustRead(t, harness.Testdata("python/types/desk.schema"))
	for _, tt := range []struct {
		files              []string
		arguments          []string
		typeScript, python bool
	}{
		{nil, nil, true, false},
		{[]string{"handlers/a.py"}, nil, false, true},
		{[]string{"handlers/a.py", "handlers/b.ts"}, nil, true, true},
		{[]string{"handlers/a.py"}, []string{"--lang", "ts"}, true, false},
		{[]string{"handlers/b.ts"}, []string{"--lang", "python"}, false, true},
	} {
		a := harness.NewApp(t, schema, "")
		for _, file := range tt.files {
			a.Write(file, "")
		}
		a.Must(append([]string{"generate", "types"}, tt.arguments...)...)
		if got := exists(a, "types/schema.d.ts"); got != tt.typeScript {
			t.Errorf("%v %v: types of TypeScript: %t", tt.files, tt.arguments, got)
		}
		if got := exists(a, "types/runner/schema.pyi"); got != tt.python {
			t.Errorf("%v %v: types of Python: %t", tt.files, tt.arguments, got)
		}
	}
}

func TestABuildWritesTheTypesOfPython(t *testing.T) {
	a := harness.NewApp(t, `routes("/", auth: none, rateLimit: none) { GET /x -> x }`, "")
	a.Write("handlers/x.ts", "export const x = () => 1;")
	a.Write("pyrightconfig.json", "{}")
	a.Must("build")
	for _, name := range []string{"types/schema.d.ts", "types/runner/_typed.pyi", "types/runner/__init__.py"} {
		if _, err := os.Stat(a.Path(name)); err != nil {
			t.Error(err)
		}
	}
}
