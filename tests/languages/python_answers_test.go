package languages_test

import (
	"regexp"
	"strings"
	"testing"
)

const answersSchema = `app answers
entity Order {
  id: id
  number: int
  @@allow all to anonymous, session
}
entity Secret {
  id: id
  @@allow all to session
}
auth { session cookie { } }
apiKeys {
  scopes: { reader: @system("reader") { @grant read on Order @issue when auth.kind == "session" } }
}
jobs { work() }
routes("/", auth: none, rateLimit: none) {
  GET  /headers/:what -> headers
  GET  /leaves        -> leaves
  GET  /texts/:what   -> texts
  POST /texts/:what   -> texts
  GET  /connects      -> connects
  GET  /streams/:what -> streams
  POST /records       -> records (auth: session, csrf: off)
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

// A task that ignores its cancellation does not hold the request to its limit, and one that cleans up can end.
func TestPythonEndsTheTasksThatAHandlerLeaves(t *testing.T) {
	t.Parallel()
	s := pythonApp(t, "answers", answersSchema, "").Serve()
	s.Matches(200, "2", "GET", "/leaves", "", "")
	s.WaitForOutput(`"msg":"cleaned up"`)
	s.WaitForOutput(`"level":"WARN","msg":"the task Task-\d+ of <coroutine object leaves.<locals>.goes_on at [^"]*> did not end 1s after it was cancelled, and was left"`)
}

func TestTextsOfErrorsInPythonAreWhatTheySay(t *testing.T) {
	t.Parallel()
	s := pythonApp(t, "answers", answersSchema, "").Serve()
	for _, what := range []string{"frames", "detail", "long", "exits", "type", "print"} {
		s.Want(500, nil, "GET", "/texts/"+what, "")
	}
	s.Matches(200, `\["a handler has no sockets: .*runner.aio.fetch","a handler cannot start processes: .*jobs.enqueue"\]`, "GET", "/connects", "", "")
	form := "--b\r\nContent-Disposition: form-data; name=\"" + strings.Repeat("n", 10_000) + "\"\r\n\r\n\xff\r\n--b--\r\n"
	if got := s.Do("POST", "/texts/field", form, "Content-Type: multipart/form-data; boundary=b"); got.Status != 400 {
		t.Errorf("a form whose field has a long name: %+v", got)
	}
	for _, what := range []string{"none", "closed", "other"} {
		s.Matches(200, "1", "GET", "/streams/"+what, "", "")
	}
	s.Stop() // then the log is complete
	log := s.Stderr.String()
	for _, want := range []string{
		`"cause":"ValueError: no\\n|     at false (handlers/false.py:1:1)\\n| at /etc/passwd:7\\nend","frames":["texts (handlers/answers.py:`,
		`answer with an error of status 400 and a message of 10000 bytes, of which 8 KiB are allowed: too_large`,
		`xxx…","frames":["texts (handlers/answers.py:`, `"cause":"answers.ExitError: its text cannot be made"`, `"cause":"ValueError: printed"`,
		`"cause":"TypeError: the message of an error of status 400 is text, and not a ValueError: write str(…)"`, `"msg":"surrogate \\ud800"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s\n%s", want, log)
		}
	}
	if n := strings.Count(log, `"msg":"kept"`); n != 3 {
		t.Errorf("what was printed before is %d times in the log, want 3", n)
	}
}

// What the SDK has made is an object in JSON, with the names that other languages have.
func TestValuesOfThePythonSDKAreObjectsInJSON(t *testing.T) {
	t.Parallel()
	a := pythonApp(t, "answers", answersSchema, "")
	cookie := a.Session("ada").Cookie
	s := a.Serve()
	form := "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\nhello\r\n--b--\r\n"
	got := s.Do("POST", "/records", form, "Cookie: "+cookie, "Content-Type: multipart/form-data; boundary=b")
	want := `\{"key":\{"id":"key_[^"]*","scope":"reader","capability":"reader","name":"n","status":"active","hint":"[^"]*","tenant":null,"owner":"ada",` +
		`"ownerKind":"user","metadata":null,"createdAt":"[^"]*Z","expiresAt":"[^"]*Z","rotatedAt":null,"previousTokenExpiresAt":null,"revokedAt":null,` +
		`"lastUsedAt":null,"token":"[^"]*"\},"page":\{"keys":\[\],"nextCursor":null\},` +
		`"auth":\{"kind":"session","userId":"ada","tenant":null,"roles":\[\],"keyId":null,"scope":null,"capability":null,"metadata":null,"claims":null\},` +
		`"check":\{"valid":false,"rehash":false\},"rows":\{"rows":\[\],"nextCursor":null\},"job":\{"id":"[^"]*","created":true\},` +
		`"file":\{"name":"f","filename":"a.txt","contentType":"application/octet-stream","data":"aGVsbG8="\},"own":\[\[1,2\]\],"equal":false\}`
	if !regexp.MustCompile("^"+want+"$").MatchString(got.Body) || got.Status != 200 {
		t.Errorf("got\n%d %s, want\n%s", got.Status, got.Body, want)
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
