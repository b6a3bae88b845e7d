package sessions_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"runner.example/tests/harness"
)

func TestAMemberOfTheTrackerSignsInWithAPassword(t *testing.T) {
	t.Parallel()
	a := harness.ExampleApp(t, "tracker")
	text := harness.MustRead(t, a.Path("app.schema"))
	for _, limit := range []string{"10/minute by ip", "5/minute by ip", "5/minute by user"} {
		text = strings.Replace(text, "rateLimit: "+limit, "rateLimit: none, timeout: 60s", 1) // hashing takes long on a loaded machine
	}
	a.Write("app.schema", text)
	s := a.Serve()
	signUp := `{"slug":"red","org":"Red","email":"ann@example.com","name":"Ann","password":%q}`
	s.Want(400, nil, "POST", "/signup", fmt.Sprintf(signUp, "short"))
	var made struct{ Org, User string }
	session := "Cookie: " + s.Want(201, &made, "POST", "/signup", fmt.Sprintf(signUp, "correct horse")).Cookie(t)
	signIn := func(status int, slug, email, password string) harness.Answer {
		t.Helper()
		got := s.Want(status, nil, "POST", "/signin/password", fmt.Sprintf(`{"slug":%q,"email":%q,"password":%q}`, slug, email, password))
		if status != 200 && got.Header.Get("Set-Cookie") != "" {
			t.Errorf("%d %s signs in", got.Status, got.Body)
		}
		return got
	}
	stored := func() string { return a.Must("data", "list", "Credential", "--json") }
	isNew := regexp.MustCompile(`"hash": ?"\$argon2id\$v=19\$m=19456,t=2,p=1\$`)

	t.Run("the right password signs in", func(t *testing.T) {
		s.Want(204, nil, "POST", "/signout", "", session)
		s.Want(401, nil, "POST", "/_call/listKeys", "", session)
		got := signIn(200, "red", "ann@example.com", "correct horse")
		if !strings.Contains(got.Body, made.User) || !strings.Contains(got.Body, made.Org) {
			t.Errorf("%s", got.Body)
		}
		session = "Cookie: " + got.Cookie(t)
		s.Want(200, nil, "POST", "/_call/listKeys", "", session)
	})
	t.Run("whatever is wrong answers the same", func(t *testing.T) {
		reference := regexp.MustCompile(`"(requestId|instance)":"[^"]*"`)
		want := reference.ReplaceAllString(signIn(401, "red", "ann@example.com", "incorrect horse").Body, "")
		for _, wrong := range [][3]string{
			{"red", "bob@example.com", "correct horse"}, {"blue", "ann@example.com", "correct horse"}, {"red", "ann@example.com", "Correct horse"},
		} {
			if got := reference.ReplaceAllString(signIn(401, wrong[0], wrong[1], wrong[2]).Body, ""); got != want {
				t.Errorf("%v: %s, want %s", wrong, got, want)
			}
		}
	})
	t.Run("only a hash is stored", func(t *testing.T) {
		if rows := stored(); !isNew.MatchString(rows) || strings.Contains(rows, "correct horse") {
			t.Errorf("the store has %s", rows)
		}
		if log := s.Stderr.String(); strings.Contains(log, "correct horse") {
			t.Errorf("the log has a password: %s", log)
		}
	})
	t.Run("the hash of another program is replaced at the next sign-in", func(t *testing.T) {
		a.Must("data", "update", "Credential", "--all", "--set", "hash=$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW") // of "secret", by bcryptjs
		signIn(401, "red", "ann@example.com", "correct horse")
		if isNew.MatchString(stored()) {
			t.Error("a wrong password replaces the hash")
		}
		signIn(200, "red", "ann@example.com", "secret")
		if !isNew.MatchString(stored()) {
			t.Errorf("the store has %s", stored())
		}
		signIn(200, "red", "ann@example.com", "secret")
	})
	t.Run("a member sets a new password", func(t *testing.T) {
		s.Want(401, nil, "POST", "/_call/setPassword", `{"password":"battery staple"}`)
		s.Want(400, nil, "POST", "/_call/setPassword", `{"password":"short"}`, session)
		s.Want(204, nil, "POST", "/_call/setPassword", `{"password":"battery staple"}`, session)
		signIn(401, "red", "ann@example.com", "secret")
		signIn(200, "red", "ann@example.com", "battery staple")
	})
	t.Run("a new password ends the other sessions", func(t *testing.T) {
		other := "Cookie: " + signIn(200, "red", "ann@example.com", "battery staple").Cookie(t)
		elsewhere := a.Session(made.User, "--tenant", "01arz3ndektsv4rrffq69g5fav", "--role", "owner") // of another organisation
		s.Want(200, nil, "POST", "/_call/listKeys", "", other)
		s.Want(204, nil, "POST", "/_call/setPassword", `{"password":"a second staple"}`, session)
		s.Want(401, nil, "POST", "/_call/listKeys", "", other)
		s.Want(401, nil, "POST", "/_call/listKeys", "", "Cookie: "+elsewhere.Cookie)
		s.Want(200, nil, "POST", "/_call/listKeys", "", session)
		s.Want(204, nil, "POST", "/_call/setPassword", `{"password":"battery staple"}`, session)
	})
	t.Run("a member without a password sets one after a link", func(t *testing.T) {
		s.Want(201, nil, "POST", "/signup", `{"slug":"blue","org":"Blue","email":"bob@example.com","name":"Bob"}`)
		signIn(401, "blue", "bob@example.com", "battery staple")
		link := mailerOf(s)("blue", "bob@example.com")
		cookie := s.Want(200, nil, "POST", "/signin", fmt.Sprintf(`{"token":%q}`, link)).Cookie(t)
		s.Want(204, nil, "POST", "/_call/setPassword", `{"password":"a third one"}`, "Cookie: "+cookie)
		signIn(200, "blue", "bob@example.com", "a third one")
		signIn(401, "red", "bob@example.com", "a third one")
		signIn(200, "red", "ann@example.com", "battery staple")
	})
}

// A flood of sign-ins waits for its slot. Requests to other handlers do not.
func TestSignInsDoNotDelayOtherRequests(t *testing.T) {
	t.Parallel()
	a := harness.ExampleApp(t, "tracker")
	a.Write("app.schema", strings.Replace(harness.MustRead(t, a.Path("app.schema")), "rateLimit: 10/minute by ip", "rateLimit: none", 1))
	a.Env = append(a.Env, "RUNNER_PASSWORD_PARALLEL=1", "RUNNER_PASSWORD_PASSES=20", "RUNNER_PASSWORD_QUEUE_WAIT=1m", "RUNNER_SANDBOX_CPU=1m", "RUNNER_RUNTIME_TIMEOUT=60s")
	s := a.Serve()
	const flood = 12
	var done atomic.Int32
	var clients sync.WaitGroup
	for range flood {
		clients.Go(func() {
			got, err := s.Try("POST", "/signin/password", `{"slug":"red","email":"ann@example.com","password":"secret"}`)
			if err != nil || got.Status != 401 {
				t.Errorf("%d %s %v", got.Status, got.Body, err)
			}
			done.Add(1)
		})
	}
	for done.Load() == 0 { // until hashing is under way
		s.Want(200, nil, "GET", "/api/v1/health", "")
	}
	for range 20 {
		s.Want(200, nil, "GET", "/api/v1/health", "")
	}
	if n := done.Load(); n == flood {
		t.Errorf("20 requests took as long as %d hashes", n)
	}
	clients.Wait()
}
