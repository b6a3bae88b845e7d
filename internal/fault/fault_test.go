package fault_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"runner.example/internal/fault"
)

var update = flag.Bool("update", false, "rewrite docs/fault-codes.md")

func TestTheTableHasEveryCodeInTheOrderOfDeclaration(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "fault.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []fault.Code
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == "Code" {
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, fault.Code(text))
		}
		return true
	})
	if got := fault.All(); len(declared) == 0 || !slices.Equal(got, declared) {
		t.Errorf("the table has\n%v\nthe declared codes are\n%v", got, declared)
	}
}

func TestEveryRowIsComplete(t *testing.T) {
	for _, code := range fault.All() {
		o, known := fault.OutcomeOf(code)
		if !known || o.Code != code {
			t.Errorf("%s has the row of %s", code, o.Code)
		}
		for column, status := range map[string]int{"HTTP": o.HTTP, "Admin": o.Admin} {
			if status < 400 || http.StatusText(status) == "" {
				t.Errorf("%s: %s is %d", code, column, status)
			}
		}
		if errno, _ := fault.OutcomeOf(o.Errno); errno.Code != o.Errno || errno.Errno != o.Errno {
			t.Errorf("%s: errno %s is not one of its own name", code, o.Errno)
		}
		if o.Detail == "" || strings.HasSuffix(o.Detail, ".") {
			t.Errorf("%s: detail %q", code, o.Detail)
		}
	}
}

func TestAnUnknownCodeIsInternal(t *testing.T) {
	if o, known := fault.OutcomeOf("out_of_tea"); known || o.Code != fault.Internal {
		t.Errorf("%+v, %v", o, known)
	}
}

func TestAHintIsOfTheCopyAlone(t *testing.T) {
	plain := fault.New(fault.NotFound, "there is no such key")
	hinted := plain.WithHint("runner keys list")
	if plain.Hint != "" || hinted.Hint != "runner keys list" || hinted.Code != plain.Code || hinted.Error() != plain.Error() {
		t.Errorf("%+v, %+v", plain, hinted)
	}
}

const heading = `# Fault codes

What others see of an error with a code. Generated from the table in
[internal/fault/outcome.go](../internal/fault/outcome.go) (` + "`go test ./internal/fault -run Page -update`" + `).

- **HTTP**: the status of the answer, if the runner itself refuses a request or a handler fails. The
  body is ` + "`application/problem+json`" + ` with the code.
- **admin**: the status on the admin listener and the admin socket.
- **errno**: what a handler gets from a call to the host, by its name in the [ABI](abi/functions.md#conventions).
- **exit**: the exit status of a command, as in [cli/](cli/README.md#exit-statuses).

| code | HTTP | admin | errno | exit | the text if there is none of its own |
|---|---|---|---|---|---|
`

func TestThePageOfCodesIsTheTable(t *testing.T) {
	var page strings.Builder
	page.WriteString(heading)
	for _, code := range fault.All() {
		o, _ := fault.OutcomeOf(code)
		fmt.Fprintf(&page, "| `%s` | %d | %d | `%s` | %d | %s |\n", code, o.HTTP, o.Admin, o.Errno, o.Exit,
			strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(o.Detail))
	}
	const path = "../../docs/fault-codes.md"
	if *update {
		if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || string(have) != page.String() {
		t.Errorf("docs/fault-codes.md is not the table (%v): run go test ./internal/fault -run Page -update", err)
	}
}
