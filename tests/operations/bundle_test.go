package operations_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

func TestAPageIsBundled(t *testing.T) {
	a := harness.NewApp(t, harness.DevSchema, "[build]\ncommand = \"runner bundle web/page.ts --out public/page.js\"\n")
	a.Write("handlers/hello.ts", harness.HelloSource("one"))
	a.Write("web/page.ts", "import \"./page.css\";\nimport { word } from \"./word\";\nconst said: string = word as string;\nconsole.log(said, \"café\");\n")
	a.Write("web/word.ts", "export const unused: number = 1;\nexport const word: string = \"bundled\";\n")
	a.Write("web/page.css", "body { color: #336699; }\n")
	got := a.Run("build")
	if got.Status != 0 || !strings.Contains(got.Stderr, "public/page.js\npublic/page.css\n") {
		t.Fatalf("%d\n%s", got.Status, got.Stderr)
	}
	out, err := exec.Command("node", "--input-type=module", "--eval", harness.MustRead(t, a.Path("public/page.js"))).CombinedOutput()
	if err != nil || string(out) != "bundled café\n" {
		t.Errorf("the script prints %q, %v", out, err)
	}
	if css := harness.MustRead(t, a.Path("public/page.css")); css != "body{color:#369}\n" {
		t.Errorf("the style sheet is %q", css)
	}

	a.Remove("public")
	a.Write("web/page.ts", "import { word } from \"./absent\";\nconst = 1;\n")
	got = a.Run("bundle", "web/page.ts", "--out", "public/page.js")
	if got.Status != 3 || !strings.Contains(got.Stderr, "web/page.ts:2:7: error: expected identifier but found \"=\"\n    2 | const = 1;\n") ||
		!strings.Contains(got.Stderr, "runner: error: the page cannot be built: 1 error") {
		t.Errorf("%d\n%s", got.Status, got.Stderr)
	}
	a.Write("web/page.ts", "import { word } from \"./absent\";\nconsole.log(word);\n")
	got = a.Run("bundle", "--json", "web/page.ts", "--out", "public/page.js")
	if got.Status != 3 || !strings.Contains(got.Stdout, `"file": "web/page.ts"`) {
		t.Errorf("%d\n%s\n%s", got.Status, got.Stdout, got.Stderr)
	}
	if _, err := os.Stat(a.Path("public")); err == nil {
		t.Error("a bundle with errors was written")
	}
	if got := a.Run("bundle", "web/page.ts"); got.Status != 2 || !strings.Contains(got.Stderr, "--out is required") {
		t.Errorf("%d\n%s", got.Status, got.Stderr)
	}
}
