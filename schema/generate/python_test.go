package generate_test

import (
	"os"
	"strings"
	"testing"

	"runner.example/schema/generate"
)

// The black-box tests run the type checker with the SDK.
func TestEachKindOfFieldHasItsTypeInPython(t *testing.T) {
	text, err := os.ReadFile("../../tests/testdata/types/shop.schema")
	if err != nil {
		t.Fatal(err)
	}
	types, functions := generate.Python(compile(t, string(text)))
	golden(t, "testdata/shop.schema.pyi", string(types))
	golden(t, "testdata/shop._typed.pyi", string(functions))
	if again, more := generate.Python(compile(t, string(text))); string(again) != string(types) || string(more) != string(functions) {
		t.Error("the second types of the same schema differ")
	}
}

func TestNamesAndCommentsOfASchemaCannotBreakTheTypesOfPython(t *testing.T) {
	types, functions := generate.Python(compile(t, `
/// One """ and \.
/// Two "
type list { from: int str: string }
type SendArgs { a: int }
jobs { send(a: SendArgs) }
routes("/", auth: none, rateLimit: none) { POST /x -> x (input: list) }
`))
	for part, text := range map[string][]byte{
		"list_ = typing_extensions.TypedDict(\"list_\", {\n    \"from\": int,\n    \"str\": str,\n}, closed=True)\n\"\"\"One \\\"\\\"\\\" and \\\\.\nTwo \\\"\"\"\"\n": types,
		"class SendArgs_(typing_extensions.TypedDict):\n": types,
		"params: schema.SendArgs_,":                       functions,
		"[_request.Request[schema.list_]]":                functions,
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

// A handler of several routes with different types reads any of them.
func TestAHandlerReadsAndAnswersWhatItsRoutesDeclare(t *testing.T) {
	_, functions := generate.Python(compile(t, `
type A { a: int }
type B { b: int }
routes("/", auth: none, rateLimit: none) {
  POST /one -> one: B[]? (input: A)
  GET /one -> one: B[]? (query: A)
  POST /two -> two (input: A)
  PUT /two -> two: int (input: B)
  GET /three -> three
}`))
	for _, part := range []string{
		`[[_request.Request[schema.A]], _response.Answer[typing.Sequence[schema.BValues] | None]]](name: typing.Literal["one"], /)`,
		`handler[H: typing.Callable[..., typing.Any]](name: typing.Literal["two", "three"], /)`,
	} {
		if !strings.Contains(string(functions), part) {
			t.Errorf("%q is missing in\n%s", part, functions)
		}
	}
}
