package languages_test

import (
	"strings"
	"testing"
)

const errorsSchema = `app errors
entity Order { id: id, number: int, @@allow all to anonymous }
routes("/", auth: none, rateLimit: none) {
  GET /returns/:what -> returns
  GET /decorated     -> decorated
  GET /waits         -> waits
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
