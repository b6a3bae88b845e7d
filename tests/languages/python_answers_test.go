package languages_test

import (
	"testing"
)

const answersSchema = `app answers
entity Order {
  id: id
  number: int
  @@allow all to anonymous
}
entity Secret {
  id: id
  @@allow all to session
}
auth { session cookie { } }
routes("/", auth: none, rateLimit: none) {
  GET /headers/:what -> headers
}
`

// The headers of an answer are not on the answer to the error that replaces it.
func TestErrorsInPythonHaveNoHeadersOfAnotherAnswer(t *testing.T) {
	t.Parallel()
	s := pythonApp(t, "answers", answersSchema, "").Serve()
	for what, status := range map[string]int{"refused": 500, "body": 500, "denied": 403, "absent": 404, "first": 404, "rows": 200} {
		got := s.Want(status, nil, "GET", "/headers/"+what, "")
		cached := got.Header.Get("Cache-Control") == "public, max-age=3600"
		if cached != (status == 200) {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// What a handler answers to a refused operation, and abort, is the same in a view of a framework.
func TestRefusalsInPythonFrameworksAreThoseOfHandlers(t *testing.T) {
	t.Parallel()
	s := pythonApp(t, "refusals", `app refusals
entity Order { id: id, number: int @unique, @@allow all to anonymous }
entity Secret { id: id, @@allow all to session }
auth { session cookie { } }
routes("/", auth: none, rateLimit: none) {
  GET /flask/*     -> in_flask
  GET /bottle/*    -> in_bottle
  GET /starlette/* -> in_starlette
  GET /handled/*   -> in_handled
  GET /group/:what -> in_a_group
}
`, "", append([]string{"bottle.py", "starlette", "anyio", "sniffio", "idna", "typing_extensions.py"}, flaskPackages...)...).Serve()
	const denied, absent = `.*"status":403,"detail":"query: no @@allow of Secret .*`, `.*"status":404,"detail":"no such order".*`
	for _, framework := range []string{"flask", "bottle", "starlette", "group"} {
		s.Matches(403, denied, "GET", "/"+framework+"/denied", "", "")
		s.Matches(404, absent, "GET", "/"+framework+"/abort", "", "")
		s.Matches(409, `.*"code":"conflict".*`, "GET", "/"+framework+"/conflict", "", "")
		if framework == "group" {
			continue
		}
		s.Matches(200, "ok", "GET", "/"+framework+"/ok", "", "")
		s.Matches(500, "own page", "GET", "/"+framework+"/own", "", "")
		for _, failed := range []string{"secret", "another"} { // pages of the frameworks
			s.Matches(500, `(?s)[^{]*Internal Server Error.*`, "GET", "/"+framework+"/"+failed, "", "")
		}
	}
	s.Matches(422, "refused: denied", "GET", "/handled/denied", "", "")
}
