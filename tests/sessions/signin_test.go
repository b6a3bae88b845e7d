package sessions_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"runner.example/tests/harness"
)

// mailerOf returns a function that creates a sign-in link for a member of an organization,
// as the mail service does, and returns the link's token.
func mailerOf(s *harness.Server) func(slug, email string) string {
	s.T.Helper()
	key := "X-API-Key: " + s.App.Token("mailer")
	return func(slug, email string) string {
		s.T.Helper()
		var link struct{ Token string }
		s.Want(201, &link, "POST", "/signin-links", fmt.Sprintf(`{"slug":%q,"email":%q}`, slug, email), key)
		return link.Token
	}
}

func TestAMemberOfTheTrackerSignsInAgainByALink(t *testing.T) {
	t.Parallel()
	a := harness.ExampleApp(t, "tracker")
	a.Write("app.schema", strings.Replace(harness.MustRead(t, a.Path("app.schema")), "rateLimit: 10/minute by ip", "rateLimit: none", 1))
	s := a.Serve()
	var made struct{ Org, User string }
	s.Want(201, &made, "POST", "/signup", `{"slug":"red","org":"Red","email":"ann@example.com","name":"Ann"}`)
	link := mailerOf(s)
	signIn := func(status int, token string) harness.Answer {
		t.Helper()
		got := s.Want(status, nil, "POST", "/signin", fmt.Sprintf(`{"token":%q}`, token))
		if status != 200 && got.Header.Get("Set-Cookie") != "" {
			t.Errorf("%d %s signs in", got.Status, got.Body)
		}
		return got
	}

	t.Run("a link works once", func(t *testing.T) {
		token := link("red", "ann@example.com")
		got := signIn(200, token)
		if !strings.Contains(got.Body, made.User) || !strings.Contains(got.Body, made.Org) {
			t.Errorf("%s", got.Body)
		}
		s.Want(200, nil, "POST", "/_call/listKeys", "", "Cookie: "+got.Cookie(t))
		signIn(401, token)
	})
	t.Run("one of many requests at once uses the link", func(t *testing.T) {
		token := link("red", "ann@example.com")
		var in atomic.Int32
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				got, err := s.Try("POST", "/signin", fmt.Sprintf(`{"token":%q}`, token))
				if err != nil || got.Status != 200 && got.Status != 401 && got.Status != 409 {
					t.Errorf("%d %s %v", got.Status, got.Body, err)
				}
				if got.Status == 200 {
					in.Add(1)
				}
			})
		}
		callers.Wait()
		if n := in.Load(); n != 1 {
			t.Errorf("one link opens %d sessions", n)
		}
	})
	t.Run("only the newest link of a member is valid", func(t *testing.T) {
		older := link("red", "ann@example.com")
		newer := link("red", "ann@example.com")
		signIn(401, older)
		signIn(200, newer)
	})
	t.Run("an invalid or expired link is refused", func(t *testing.T) {
		token := link("red", "ann@example.com")
		rows := a.Must("data", "list", "SignInLink", "--json")
		var stored []struct{ ID, Digest string }
		if err := json.Unmarshal([]byte(rows), &stored); err != nil || len(stored) != 1 || strings.Contains(rows, token) {
			t.Fatalf("the store has %s, %v", strings.ReplaceAll(rows, token, "TOKEN"), err)
		}
		for _, wrong := range []string{"x", stored[0].Digest, stored[0].ID, strings.ToLower(token)} {
			signIn(401, wrong)
		}
		a.Must("data", "update", "SignInLink", "--all", "--set", "expiresAt=2026-01-01T00:00:00.000Z")
		signIn(401, token)
	})
	t.Run("the session has the member's present role", func(t *testing.T) {
		token := link("red", "ann@example.com")
		a.Must("data", "update", "Membership", "--all", "--set", "role=viewer")
		s.Want(403, nil, "POST", "/_call/listKeys", "", "Cookie: "+signIn(200, token).Cookie(t))
		token = link("red", "ann@example.com")
		a.Must("data", "delete", "Membership", "--all")
		signIn(401, token)
	})
	t.Run("only the mailer creates links, and only for members", func(t *testing.T) {
		const ann = `{"slug":"red","email":"ann@example.com"}`
		s.Want(401, nil, "POST", "/signin-links", ann)
		s.Want(403, nil, "POST", "/signin-links", ann, "X-API-Key: "+a.Token("signup"))
		mailer := "X-API-Key: " + a.Token("mailer")
		s.Want(404, nil, "POST", "/signin-links", ann, mailer) // not a member any more
		s.Want(404, nil, "POST", "/signin-links", `{"slug":"blue","email":"ann@example.com"}`, mailer)
		s.Want(404, nil, "POST", "/signin-links", `{"slug":"red","email":"bob@example.com"}`, mailer)
	})
}
