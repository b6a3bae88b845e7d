package sessions_test

import (
	"testing"
	"time"

	"runner.example/tests/harness"
)

// Pages refresh their token on 401, and many of them share the address of a network. Guesses from there
// get 429, and do not keep them from it.
func TestExpiredTokensAndSessionsAreAlways401(t *testing.T) {
	a, key, other := harness.NewApp(t, plansSchema, "", "echo"), newEdKey(t, "k1"), newEdKey(t, "k1")
	a.Write("keys.json", key.set())
	s := a.Serve()
	status := func(header string) int { return s.Do("GET", "/dump", "", header).Status }
	session := "Cookie: " + a.Session("ada", "--ttl", "1s").Cookie
	s.WaitUntil("the session to end", func() bool { return status(session) == 401 })
	past := time.Now().Add(-time.Hour)
	expired := []string{key.bearerUntil(past, `"sub":"ada"`), session}
	for i := range 25 {
		for _, header := range expired {
			if got := status(header); got != 401 {
				t.Fatalf("time %d: %d", i+1, got)
			}
		}
	}
	// Whoever cannot sign cannot make a token that is not counted.
	forged := other.bearerUntil(past, `"sub":"ada"`)
	for i := range 22 {
		want := 401
		if i >= 20 {
			want = 429
		}
		if got := status(forged); got != want {
			t.Fatalf("guess %d: %d, want %d", i+1, got, want)
		}
	}
	for _, header := range expired {
		if got := status(header); got != 401 {
			t.Errorf("after the guesses: %d", got)
		}
	}
	if got := status(key.bearer(`"sub":"ada"`)); got != 200 {
		t.Errorf("the new token: %d", got)
	}
}
