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
