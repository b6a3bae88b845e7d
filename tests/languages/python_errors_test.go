package languages_test

import (
	"regexp"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const errorsSchema = `app errors
entity Order { id: id, number: int, @@allow all to anonymous }
routes("/", auth: none, rateLimit: none) {
  GET /returns/:what -> returns
  GET /decorated     -> decorated
  GET /waits         -> waits
  GET /queries       -> queries
}
`

// What a handler in Python returns and cannot be sent is an error that names the handler with its line, and says what to return.
func TestAWrongAnswerInPythonNamesTheHandler(t *testing.T) {
	t.Parallel()
	s := pythonApp(t, "errors", errorsSchema, "").Serve()
	const of = "TypeError: the answer of handler returns (handlers/answers.py:12) cannot be sent: body"
	wants := map[string]string{
		"returns/none":   "TypeError: handler returns (handlers/answers.py:12) returned None: return ok(…), no_content() or another answer",
		"returns/tuple":  "TypeError: handler returns (handlers/answers.py:12) returned a tuple: return created(…), error(422, …) or another answer for a status, or a list",
		"returns/object": of + " is a Thing, which has no form in JSON: use a dict, a list, text, a number or a dataclass",
		"returns/field":  of + ".orders[0].thing is a Thing, which has no form in JSON",
		"returns/query":  of + ".orders is a query, which has not run: end it with .rows(), .first() or .count()",
		"returns/get":    of + ".order is a get, which has not run: end it with .row()",
		"returns/update": of + " is an update, which has not run: end it with .run() or .rows()",
		"returns/helper": of + " is a function: call it",
		"returns/answer": of + " is an answer: return it as it is",
		"returns/abort":  "TypeError: the answer cannot be sent: body is a Thing",
		"decorated":      "TypeError: handler decorated (handlers/answers.py:43) returned None",
		"waits":          "TypeError: handler waits (handlers/answers.py:49) returned a tuple",
	}
	for path := range wants {
		s.Want(500, nil, "GET", "/"+path, "")
	}
	s.Stop() // then the log is complete
	for path, want := range wants {
		if !strings.Contains(s.Stderr.String(), `"cause":"`+want) {
			t.Errorf("%s: the log has no %s", path, want)
		}
	}
}

// A query that is written as in another library is an error that shows the right form.
func TestAWrongQueryInPythonShowsTheRightForm(t *testing.T) {
	t.Parallel()
	s := pythonApp(t, "errors", errorsSchema, "").Serve()
	const takes = "takes a field's name, an operator and a value: write "
	const query = "this is a query, which has not run: end it with .rows(), .first() or .count()"
	number := "TypeError: .where " + takes + `.where("number", "=", value)`
	var got map[string]string
	s.Want(200, &got, "GET", "/queries", "")
	for name, want := range map[string]string{
		"keyword": number, "one": number, "two": number, "four": number,
		"dict":      "TypeError: .where " + takes + `.where("total", ">", 10)`,
		"bool":      "TypeError: .where " + takes + `.where("total", ">", 10)`,
		"condition": "TypeError: .where " + takes + ".match(…) for a condition of field, and_, or_ or not_",
		"field":     "TypeError: field " + takes + `field("number", "=", value)`,
		"match":     `TypeError: a condition is made by field, and_, or_ or not_, and is not a str: write field("total", ">", 10)`,
		"and":       `TypeError: a condition is made by field, and_, or_ or not_, and is not a str: write field("total", ">", 10)`,
		"or":        `TypeError: a condition is made by field, and_, or_ or not_, and is not a tuple: write field("total", ">", 10)`,
		"not":       `TypeError: a condition is made by field, and_, or_ or not_, and is not a bool: write field("total", ">", 10)`,
		"for":       "TypeError: cannot iterate: " + query,
		"list":      "TypeError: cannot iterate: this is a get, which has not run: end it with .row()",
		"groups":    "TypeError: cannot iterate: this is an aggregate, which has not run: end it with .groups()",
		"changed":   "TypeError: cannot iterate: this is an update, which has not run: end it with .run() or .rows()",
		"first":     "TypeError: cannot index: " + query,
		"member":    "TypeError: cannot index: this is a get, which has not run: end it with .row()",
		"all":       "AttributeError: there is no .all: " + query,
		"execute":   "AttributeError: there is no .execute: this is a removal, which has not run: end it with .run()",
		"names":     "[]",
		"copied":    "True",
	} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
}

// runner dev prints what runner build prints: at its start, and after each save.
func TestTheDevelopmentServerReportsAStartOfPythonAsABuildDoes(t *testing.T) {
	t.Parallel()
	harness.NeedPatches(t)
	a := harness.NewApp(t, "app n\nroutes(\"/\", auth: none, rateLimit: none) { GET /a -> list_orders }\n", "")
	const serves = "from runner import handler\n@handler\ndef list_orders(req): return \"one\"\n"
	a.Write("handlers/a.py", "import random\nrandom.Random()\n"+serves)
	a.Write("python_packages/quick.py", "")
	a.Write("python_packages/quick.so", "")
	const slower = `python_packages/quick\.so: warning: package quick runs without its machine code`
	s := a.Start("dev")
	s.WaitForOutput(`(?s)` + slower + `.*log: RuntimeWarning: random\.Random\(\) .*serving 1 route`)
	for _, save := range []struct{ source, says string }{
		{"from runner import query\n\nquery(\"Order\").rows()\n", `(?s)log:  *query\("Order"\)\.rows\(\).*handlers/a\.py:3:1: error: runner\.HostError: denied: query is not available ` +
			`while the program starts[^\n]*\n +3 \| query\("Order"\)\.rows\(\)\n[^\n]*\n[^\n]*error: the handlers cannot be built: 1 error`},
		{"import absent\n", `handlers/a\.py:1:1: error: ModuleNotFoundError: No module named 'absent': name its package in handlers/requirements\.txt`},
		{"from runner import handler\n@handler\ndef other(req): return 1\n\ndef list_orders(req): return 1\n",
			`app\.schema:2:\d+: error\[E419\]: no handler named "list_orders": handlers/a\.py:5: list_orders has no @handler: add it above the function`},
		{"def list_orders(req): return 1\n", `handlers: error: ImportError: handlers/a\.py:1: list_orders has no @handler: add it above the function`},
		{"import re\nre.compile(\"\\d\")\n" + serves, `handlers/a\.py:2:1: warning: invalid escape sequence '\\d'`},
	} {
		before := len(s.Stderr.String())
		a.Write("handlers/a.py", save.source)
		said := regexp.MustCompile(save.says)
		s.WaitUntil(save.says, func() bool { return said.MatchString(s.Stderr.String()[before:]) })
		if log := s.Stderr.String()[before:]; !regexp.MustCompile(slower).MatchString(log) || strings.Contains(log, "its last log lines") {
			t.Errorf("%q: the log is %s", save.source, log)
		}
	}
	s.WaitForBody("/a", "one")
}

// A function that the schema names and that has no @handler is named by each command.
func TestAFunctionOfPythonWithoutHandlerIsNamed(t *testing.T) {
	t.Parallel()
	harness.NeedPatches(t)
	a := harness.NewApp(t, "app n\njobs { sendReceipt() }\nroutes(\"/\", auth: none, rateLimit: none) {\n  GET /a -> listOrders\n  GET /b -> absent\n}\n", "")
	a.Write("handlers/shop.py", "from runner import handler\n@handler\ndef other(req): return 1\n\n\nasync def list_orders(req):\n  return 1\n\ndef send_receipt (req): pass\n")
	for _, command := range [][]string{{"build"}, {"check", "--modules"}} {
		got := a.Run(command...)
		for _, want := range []string{
			`error[E419]: no handler named "listOrders": handlers/shop.py:6: list_orders has no @handler: add it above the function`,
			`error[E419]: no job named "sendReceipt": handlers/shop.py:9: send_receipt has no @handler: add it above the function`,
			`error[E419]: no handler named "absent": export a function of that name from handlers/`,
		} {
			if said := got.Stdout + got.Stderr; got.Status != 3 || !strings.Contains(said, want) {
				t.Errorf("%v: %d %s, want %s", command, got.Status, said, want)
			}
		}
	}
}
