package generate_test

import (
	"strings"
	"testing"

	"runner.example/schema/generate"
)

func TestAFileIsAnObjectInAllGeneratedFiles(t *testing.T) {
	s := compile(t, `auth { session cookie { idle: 30m } }
entity Post {
  id: id
  photo: file(5mb, "image/*")
  scan: file? @hidden
  @@allow all to session
}
routes("/", auth: session) { GET /posts -> posts: Post[] }`)
	python, functions := generate.Python(s)
	for name, tt := range map[string]struct {
		text []byte
		want []string
	}{
		"TypeScript": {generate.TypeScript(s), []string{
			`photo: import("@runner/sdk").StoredFile;`, `scan?: import("@runner/sdk").StoredFile | null;`,
			"where: {\n        id: string;\n        photo: null;\n        scan: null;\n",
			"insert: {\n        photo: import(\"@runner/sdk\").StoredFile;\n        scan?: import(\"@runner/sdk\").StoredFile | null;\n",
		}},
		"Python": {python, []string{
			"import runner\n", "    photo: runner.StoredFile\n", "    scan: typing.NotRequired[runner.StoredFile | None]\n",
		}},
		"the functions of Python": {functions, []string{`typing.Literal["scan"]`}},
		"the client":              {generate.Client(s), []string{`photo: { id: string; name: string; type: string; size: number; sha256: string };`}},
		"OpenAPI":                 {generate.OpenAPI(s, generate.OpenAPIOptions{}), []string{`"sha256": {`, `"pattern": "^[0-9a-f]{64}$"`}},
	} {
		for _, want := range tt.want {
			if !strings.Contains(string(tt.text), want) {
				t.Errorf("%s lacks %s:\n%s", name, want, tt.text)
			}
		}
	}
}
