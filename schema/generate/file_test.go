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

func TestARouteThatSendsAFileIsInOpenAPIAlone(t *testing.T) {
	s := compile(t, `entity Post {
  id: id
  photo: file?
  @@allow read to anonymous
}
routes("/v1", auth: none, rateLimit: none) {
  GET /posts/:id/photo -> file(Post.photo)
  GET /posts -> posts
}`)
	document := string(generate.OpenAPI(s, generate.OpenAPIOptions{}))
	for _, want := range []string{
		`"operationId": "getV1PostsIdPhoto"`, `"summary": "file(Post.photo)"`, `"206"`, `"304"`, `"#/components/responses/RangeNotSatisfiable"`,
		`"#/components/responses/PreconditionFailed"`, `"#/components/responses/NotFound"`,
	} {
		if !strings.Contains(document, want) {
			t.Errorf("OpenAPI lacks %s:\n%s", want, document)
		}
	}
	if client := string(generate.Client(s)); strings.Contains(client, "IdPhoto") || strings.Contains(client, "/photo") || !strings.Contains(client, "/posts") {
		t.Errorf("the client has the route:\n%s", client)
	}
	if _, functions := generate.Python(s); strings.Contains(string(functions), `""`+":") {
		t.Errorf("Python has a handler without a name:\n%s", functions)
	}
}
