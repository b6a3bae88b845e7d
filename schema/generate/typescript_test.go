package generate_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/schema/generate"
)

var update = flag.Bool("update", false, "write the golden files")

func compile(t *testing.T, text string) *schema.Schema {
	t.Helper()
	s, found := compiler.Compile([]diag.Source{{Name: "a.schema", Text: []byte(text)}}, compiler.Options{MaxBody: 1 << 20, MaxTimeout: time.Minute})
	if s == nil {
		t.Fatal(found)
	}
	return s
}

// The black-box tests run the type checker with the SDK's declarations.
func TestEachKindOfFieldHasItsType(t *testing.T) {
	const golden = "testdata/shop.d.ts"
	text, err := os.ReadFile("../../tests/testdata/types/shop.schema")
	if err != nil {
		t.Fatal(err)
	}
	got := generate.TypeScript(compile(t, string(text)))
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if again := generate.TypeScript(compile(t, string(text))); string(again) != string(got) {
		t.Error("the second declarations of the same schema differ")
	}
}

// A handler reads a query and a body with their defaults. Where it writes values of the type, it may omit them.
func TestAFieldWithADefaultIsPresentInWhatAHandlerReads(t *testing.T) {
	s := compile(t, `type Page { limit: int = 20 tags: string[] = [] from: time = now after: string? }
type Both { limit: int = 20 }
type Inner { limit: int = 20 }
type Outer { inner: Inner }
routes("/", auth: none, rateLimit: none) {
  GET /a -> a (query: Page)
  GET /b -> b (query: Both)
  POST /b -> b (input: Both)
  GET /c -> c: Outer (query: Inner)
}`)
	types, client := string(generate.TypeScript(s)), string(generate.Client(s))
	for _, tt := range []struct{ name, types, client string }{
		{"Page", "limit: number;\n tags: string[];\n", "limit?: number;\n tags?: string[];\n"},
		{"Both", "limit: number;\n", "limit?: number;\n"},
		{"Inner", "limit?: number;\n", "limit?: number;\n"},
	} {
		for text, want := range map[string]string{types: tt.types, client: tt.client} {
			_, text, _ = strings.Cut(text, "export interface "+tt.name+" {\n")
			fields := strings.Join(strings.Fields(text), " ")
			if want := strings.Join(strings.Fields(want), " "); !strings.HasPrefix(fields, want) {
				t.Errorf("%s is %.80q, want %q", tt.name, fields, want)
			}
		}
	}
}

func TestAbsentDeclarationsHaveNoNames(t *testing.T) {
	got := string(generate.TypeScript(compile(t, `routes("/", auth: none, rateLimit: none) { GET /x -> x }`)))
	for part, there := range map[string]bool{"interface Entities": false, "import ": false, "scope: never;": true, "secret: never;": true, "role:": false} {
		if strings.Contains(got, part) != there {
			t.Errorf("%q is present: %t\n%s", part, !there, got)
		}
	}
}

func TestNamesAndCommentsOfASchemaCannotBreakTheTypes(t *testing.T) {
	got := string(generate.TypeScript(compile(t, `
/// One. */ export const x = 1;
/// Two.
type class { delete: int default: class2? }
type class2 { a: int }
routes("/", auth: none, rateLimit: none) { POST /x -> x (input: class) }
`)))
	for _, part := range []string{"   * One. *\\/ export const x = 1;\n   * Two.\n   */\n  export interface class_ {\n    delete: number;\n    default?: class2 | null;\n  }\n"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in\n%s", part, got)
		}
	}
}
