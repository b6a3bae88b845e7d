package auth_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/runtime/auth"
	"runner.example/state/store"
)

// exhaust uses up the guesses of the address.
func (w *world) exhaust(check func() error) {
	w.Helper()
	for range 20 {
		if err := check(); fault.CodeOf(err) != fault.InvalidToken {
			w.Fatalf("a guess: %v", err)
		}
	}
	if err := check(); fault.CodeOf(err) != fault.RateLimited {
		w.Fatalf("a guess too many: %v", err)
	}
}

// otherEnd replaces the last character of a token.
func otherEnd(token string) string {
	if before, ok := strings.CutSuffix(token, "x"); ok {
		return before + "y"
	}
	return token[:len(token)-1] + "x"
}

// TestExpiredCredentialsAreNotGuesses: pages that sign in again after a 401 share an address.
func TestExpiredCredentialsAreNotGuesses(t *testing.T) {
	w := newPortal(t)
	life := 10 * time.Minute
	expired := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "expired", ExpiresIn: &life})
	rotated := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "rotated"})
	w.change(func(tx *store.Tx, a keystore.Authority) (keystore.Key, error) {
		return w.keys.Rotate(tx, a, rotated.ID, time.Minute)
	})
	revoked := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "revoked"})
	w.revoke(revoked.ID)
	off := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "off"})
	w.change(func(tx *store.Tx, a keystore.Authority) (keystore.Key, error) { return w.keys.Disable(tx, a, off.ID) })
	_, idle := w.session()
	ended, endedCookie := w.session()
	w.revokeSession(ended.ID)
	w.now = w.now.Add(time.Hour)

	overTime := map[string]auth.Presented{
		"an expired key": header(expired.Token.Reveal()), "an old token after its grace period": header(rotated.Token.Reveal()),
		"an idle session": idle,
	}
	path := func(p auth.Presented) string {
		if p.Cookies > 0 {
			return "me"
		}
		return "read"
	}
	for name, p := range overTime {
		for i := range 30 {
			if _, err := w.check(path(p), p); fault.CodeOf(err) != fault.InvalidToken {
				t.Fatalf("%s, time %d: %v", name, i+1, err)
			}
		}
	}
	w.exhaust(func() error { _, err := w.check("read", header(goodToken)); return err })
	for name, p := range overTime {
		if _, err := w.check(path(p), p); fault.CodeOf(err) != fault.InvalidToken {
			t.Errorf("%s after the last guess: %v", name, err)
		}
	}
	for name, p := range map[string]auth.Presented{
		"a revoked key": header(revoked.Token.Reveal()), "a disabled key": header(off.Token.Reveal()), "a revoked session": endedCookie,
		"an expired key with another end": header(otherEnd(expired.Token.Reveal())), "an expired key as a cookie": cookie(expired.Token.Reveal()),
	} {
		if _, err := w.check(path(p), p); fault.CodeOf(err) != fault.RateLimited {
			t.Errorf("%s after the last guess: %v", name, err)
		}
	}
}

// TestOnlyTokensOfTheProviderAreNoGuesses: an expired token counts as a guess unless nothing but its time
// is wrong. The attacker can read and replay tokens, and cannot sign.
func TestOnlyTokensOfTheProviderAreNoGuesses(t *testing.T) {
	p, other := newProvider(t), newProvider(t)
	synctest.Test(t, func(t *testing.T) {
		w := newTokenWorld(t, p)
		past, future := time.Now().Add(-time.Hour).Unix(), time.Now().Add(time.Hour).Unix()
		known := sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "exp", time.Now().Add(time.Minute).Unix()), "kid", "ec")
		if _, err := w.with("me", known); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		overTime := map[string]string{
			"a token that was accepted": known,
			"a token that never was":    sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "exp", past), "kid", "ec"),
			"a token of later":          sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "nbf", future), "kid", "ec"),
			"an expired RSA token":      sign(t, jwt.SigningMethodRS256, p.rsa, claims(time.Now(), "exp", past), "kid", "rsa"),
		}
		for name, token := range overTime {
			for i := range 30 {
				if _, err := w.with("me", token); fault.CodeOf(err) != fault.InvalidToken {
					t.Fatalf("%s, time %d: %v", name, i+1, err)
				}
			}
		}
		w.exhaust(func() error { _, err := w.with("me", "e30.e30.e30"); return err })
		for name, token := range overTime {
			if _, err := w.with("me", token); fault.CodeOf(err) != fault.InvalidToken {
				t.Errorf("%s after the last guess: %v", name, err)
			}
		}
		for name, token := range map[string]string{
			"another's signature": sign(t, jwt.SigningMethodES256, other.ec, claims(time.Now(), "exp", past), "kid", "ec"),
			"a changed signature": known[:len(known)-4] + "AAAA",
			"no signature":        known[:len(known)-86],
			"another audience":    sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "exp", past, "aud", "https://other.example"), "kid", "ec"),
			"no audience":         sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "exp", past, "aud", nil), "kid", "ec"),
			"another issuer":      sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "exp", past, "iss", "https://other.example"), "kid", "ec"),
			"no issuer":           sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "exp", past, "iss", nil), "kid", "ec"),
			"no end":              sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "exp", nil), "kid", "ec"),
		} {
			if _, err := w.with("me", token); fault.CodeOf(err) != fault.RateLimited {
				t.Errorf("an expired token with %s: %v", name, err)
			}
		}
	})
}

// TestExpiredCredentialsHaveFewLogLines: they are unlimited, and their lines are not.
func TestExpiredCredentialsHaveFewLogLines(t *testing.T) {
	w := newWorld(t)
	life := time.Minute
	expired := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n", ExpiresIn: &life})
	w.now = w.now.Add(time.Hour)
	for range 1000 {
		if _, err := w.check("read", header(expired.Token.Reveal())); fault.CodeOf(err) != fault.InvalidToken {
			t.Fatal(err)
		}
	}
	if n := strings.Count(w.log.String(), "\n"); n != 12 { // 5, then 8, 16 … 512
		t.Errorf("%d log lines, want 12", n)
	}
}
