package format_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"runner.example/internal/diag"
	"runner.example/schema/format"
	"runner.example/schema/syntax"
)

// examples are schema files without errors.
func examples(t testing.TB) []diag.Source {
	t.Helper()
	return sources(t, "../syntax/testdata/examples/*.schema")
}

func sources(t testing.TB, pattern string) []diag.Source {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var all []diag.Source
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, diag.Source{Name: filepath.Base(name), Text: text})
	}
	return all
}

// sameMeaning compares trees without positions and comments.
var sameMeaning = []cmp.Option{
	cmpopts.IgnoreTypes(diag.Span{}),
	cmpopts.IgnoreFields(syntax.File{}, "Size", "Comments", "Tokens"),
}

func commentTexts(f *syntax.File) []string {
	var texts []string
	for _, c := range f.Comments {
		texts = append(texts, c.Text)
	}
	return texts
}

// checkFormat formats src, which must have no errors, and checks the guarantees of Format.
func checkFormat(t *testing.T, src diag.Source) string {
	t.Helper()
	once, diags := format.Format(src)
	if len(diags) > 0 {
		t.Fatalf("does not format: %v", diags)
	}
	formatted := diag.Source{Name: src.Name, Text: once}
	before, _ := syntax.Parse(src)
	after, diags := syntax.Parse(formatted)
	if len(diags) > 0 {
		t.Fatalf("formatted text does not parse: %v\n%s", diags, once)
	}
	if d := cmp.Diff(before, after, sameMeaning...); d != "" {
		t.Fatalf("formatting changed the meaning (- before, + after):\n%s\n%s", d, once)
	}
	if d := cmp.Diff(commentTexts(before), commentTexts(after)); d != "" {
		t.Fatalf("formatting changed comments (- before, + after):\n%s\n%s", d, once)
	}
	twice, _ := format.Format(formatted)
	if d := cmp.Diff(string(once), string(twice)); d != "" {
		t.Fatalf("formatting twice is not formatting once (- once, + twice):\n%s", d)
	}
	for line := range strings.Lines(string(once)) {
		if trimmed := strings.TrimSuffix(line, "\n"); strings.TrimRight(trimmed, " ") != trimmed && !strings.Contains(string(src.Text), "/*") {
			t.Fatalf("line ends with spaces: %q", line)
		}
	}
	return string(once)
}

// formatCases are texts that are difficult to format.
var formatCases = []string{
	"",
	"// only a comment\n\n\n// and another",
	"app x // trailing\n/* own */ secret A\nsecret /* inside */ B\n// last\n",
	"enum E { a, b // why\n c }\nenum F {\n\n a\n\n\n b\n}\nenum G { a /* x */ b }",
	"module a{args:[\"-m\" , \"app\"],env:{A:\"b\" // why\n B:\"c\",},files:\"lib\" stub:[]}\nmodule \"b-c\" {env:{} startTimeout:10s\n}",
	"module a { env: {\n /* first */ A: \"b\",\n\n /// doc\n B: \"c\" } }",
	"entity A { id: id /// not a doc\n/// doc\n, /// doc too\nname: string @unique\n  @min(-1) @max(1_000) /* end */ }",
	"entity A { id: id a: text @index( ignoreCase, // why\n) @unique b: text\n @index\n}",
	"entity A{id:id a:B[]@inverse(b) c:Order[\n/// lost\n]\n d: int? = 3}",
	"entity A {\n id: id\n @@allow read, write to session, apiKey(x)\n  // reason\n when (a == 1 || !b) and\n c not in [1, 2] && exists(B where x == outer.id)\n @@unique(a desc, b) global\n global: int\n}",
	"auth { session cookie { @manage when auth.role in [\"a\", // a\n\"b\"] , idle: 5m } }",
	"auth { session cookie { idle: 5m, }, session jwt { roles: claim(\"x\") algorithms: [\nA, // a\nB ] } roles: [a, b], origins: [] }",
	"apiKeys { prefix: \"x\" scopes: { a: @system(\"a\") {}, b: @system(\"b\") { @grant read on A, B fields (x) where x > 1.5 @issue when now < now @manage when now < now @allTenants }, }, }",
	"apiKeys { scopes: {} // none\n }",
	"routes(\"/\", auth: anyOf(session(a), apiKey(b)), rateLimit: [\n1/second,\n2/minute by ip]) { GET //x->y\nDELETE /:id -> d (timeout: 5s, csrf: on, mints: session, cors: [\"a\"], as: b, input: C, verify: webhook(s, S, tolerance: 5m))\n// here\nPUT /*rest -> e (cors: none)\n\nPATCH /a -> b\nGET /l -> l (live:30m , query: C)\nroutes(\"/x\") {} }",
	"functions { @expose f() -> string(1..3)[]? (auth: none) /** x\n y */ g(a: int = -1, b: S = now,) }",
	"type T { a: int(-5 .. 10) b: float( - 10..-5) = -7 } functions { f() -> int(-5..-1)[] g() -> int (auth: none) }",
	"outbound { allow: [\"https://a\",] }\ntype T { a: decimal(12 , 2) b: text, }",
	"enum E { GET // read\n, POST /* write */ }",
	"var A : url=\"https://a\" // why\nvar B:rate = 5 / minute var C: int\n= -1\nvar var: bool\nroutes(\"/\", rateLimit: [B by ip , 1/day], cors: [\"a\", A]) {}\nauth { session jwt { issuer: A }, origins: [A] }\noutbound { allow: [A,\nB] }\nroutes(\"/b\", rateLimit: B) {}",
	"\ufeffapp x\r\n// a\r\n/* b\r\nc */\r\nenum E {\r\n a }",
}

func TestFormatKeepsMeaningAndComments(t *testing.T) {
	for _, src := range examples(t) {
		t.Run(src.Name, func(t *testing.T) { checkFormat(t, src) })
	}
	for i, text := range formatCases {
		t.Run(fmt.Sprint(i), func(t *testing.T) { checkFormat(t, diag.Source{Name: "formatCases.schema", Text: []byte(text)}) })
	}
}

func TestFormatReturnsTheCanonicalForm(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"blocks are indented and arrows aligned": {
			`routes("/v1",auth:apiKey(a),rateLimit:600/minute){GET /orders->list
			DELETE /orders/:id->remove(auth:none)

			POST /x->x
			routes("/me"){GET /->me}}`,
			`routes("/v1", auth: apiKey(a), rateLimit: 600/minute) {
  GET    /orders     -> list
  DELETE /orders/:id -> remove (auth: none)

  POST /x -> x
  routes("/me") {
    GET / -> me
  }
}
`,
		},
		"fields that may be absent, and defaults of lists": {
			"type T{a? :text? b?:int c:string[]=[ \"x\",\"y\" ] d:int[]=[]}",
			"type T { a?: text?, b?: int, c: string[] = [\"x\", \"y\"], d: int[] = [] }\n",
		},
		"variables": {
			"var A : url=\"https://a\"\nvar B:rate=5/minute var C:int\noutbound{allow:[A,]}\nroutes(\"/\",rateLimit:B  by ip,cors:[A]) { }",
			"var A: url = \"https://a\"\nvar B: rate = 5/minute\nvar C: int\noutbound { allow: [A] }\nroutes(\"/\", rateLimit: B by ip, cors: [A]) {}\n",
		},
		"the interpreter of handlers in Python": {
			"python{wasm:\"p/python.wasm\" env:{A:\"1\",} // why\nstartTimeout:1m}\npython{ }",
			"python {\n  wasm: \"p/python.wasm\"\n  env: { A: \"1\" } // why\n  startTimeout: 1m\n}\n\npython {}\n",
		},
		"routes say what they answer": {
			"routes(\"/\") {\nGET /a->a:Order[]?(query:Q)\nPOST /bb -> b :[ ] Order\nPUT /c->c : string(1..8)\n}",
			"routes(\"/\") {\n  GET  /a  -> a: Order[]? (query: Q)\n  POST /bb -> b: []Order\n  PUT  /c  -> c: string(1..8)\n}\n",
		},
		"a comment line separates the columns of routes": {
			"routes(\"/\") {\nGET /a -> a // first\nPOST /bb -> b\n// next\nDELETE /c -> c\n}",
			"routes(\"/\") {\n  GET  /a  -> a // first\n  POST /bb -> b\n  // next\n  DELETE /c -> c\n}\n",
		},
		"comments stay where they are": {
			"// file\n\n\n\n// entity\nentity A { // open\n\n  // first\n\n\n  id: id, /* after */\n  /* before */ n: int\n  // last\n}\n// end",
			"// file\n\n// entity\nentity A { // open\n  // first\n\n  id: id /* after */\n  /* before */ n: int\n  // last\n}\n// end\n",
		},
		"one blank line separates blocks": {
			"enum A { a }\nenum B { b }\nentity C {\nid: id }\nsecret S",
			"enum A { a }\nenum B { b }\nentity C {\n  id: id\n}\n\nsecret S\n",
		},
		"commas and operators have a canonical form": {
			"entity A { id: id, n: int,\n@@allow read when !a && b || c\n@@deny read when not(a) and b == -1}",
			"entity A {\n  id: id\n  n: int\n  @@allow read when not a and b or c\n  @@deny read when not (a) and b == -1\n}\n",
		},
		"lists and blocks broken after the bracket stay broken": {
			"enum A {\na b, c }\nenum B { a b\nc }\nroutes(\n\"/\", auth: none\n) {}",
			"enum A {\n  a,\n  b,\n  c\n}\n\nenum B { a, b, c }\nroutes(\n  \"/\",\n  auth: none\n) {}\n",
		},
		"roles stay names or strings": {
			`routes("/", auth: session("admin","org:admin", "a\\\"b")) { GET /->x }`,
			"routes(\"/\", auth: session(\"admin\", \"org:admin\", \"a\\\\\\\"b\")) {\n  GET / -> x\n}\n",
		},
		"rules broken at keywords stay broken": {
			"entity A { id: id\n@@allow read to session\nwhen a == 1 or\nb == 2 and c ==\n3 }",
			"entity A {\n  id: id\n  @@allow read to session\n    when a == 1\n    or b == 2 and c == 3\n}\n",
		},
		"carriage returns and a byte order mark are removed": {
			"\ufeffapp x\r\n\r\nenum E {\r\n a }\r\n",
			"app x\n\nenum E {\n  a\n}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, checkFormat(t, diag.Source{Name: "a.schema", Text: []byte(c.text)})); d != "" {
				t.Errorf("(- want, + got):\n%s", d)
			}
		})
	}
}

func TestFormatRefusesATextWithErrors(t *testing.T) {
	out, diags := format.Format(diag.Source{Name: "a.schema", Text: []byte("enum E { a\n")})
	if out != nil || !diags.HasErrors() {
		t.Errorf("got %q, %v", out, diags)
	}
}

func TestFormatRefusesAResultThatIsTooLarge(t *testing.T) {
	text := "enum E {\n" + strings.Repeat("a\n", 1<<19-10) + "}"
	out, diags := format.Format(diag.Source{Name: "a.schema", Text: []byte(text)})
	if out != nil || len(diags) != 1 || diags[0].Code != "E007" {
		t.Errorf("got %d bytes, %v", len(out), diags)
	}
}
