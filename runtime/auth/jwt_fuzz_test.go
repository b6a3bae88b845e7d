package auth_test

import (
	"context"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"runner.example/internal/fault"
)

// FuzzToken finds a token that is taken and was not signed as it stands: of those that
// the provider made, no byte can be another. (Of ECDSA another signature of the same
// claims can be made without the key, so only the others are among them.)
func FuzzToken(f *testing.F) {
	p := newProvider(f)
	w := newTokenWorld(f, p)
	made := map[string]bool{}
	for _, token := range []string{
		sign(f, jwt.SigningMethodEdDSA, p.ed, claims(time.Now()), "kid", "ed"),
		sign(f, jwt.SigningMethodRS256, p.rsa, claims(time.Now(), "aud", []string{"x", audience}), "kid", "rsa"),
		sign(f, jwt.SigningMethodPS256, p.rsa, claims(time.Now(), "nbf", time.Now().Unix()), "kid", "rsa"),
	} {
		if _, err := w.with("me", token); err != nil {
			f.Fatal(err)
		}
		made[token] = true
		f.Add([]byte(token))
	}
	route := w.route("me")
	f.Add([]byte("eyJhbGciOiJub25lIn0.e30."))
	f.Add([]byte("e30.e30.e30"))
	f.Add([]byte(".."))
	f.Fuzz(func(t *testing.T, token []byte) {
		_, err := w.auth.Check(context.Background(), w.schema, w.tokens, route, bearer("Bearer "+string(token)), time.Now())
		switch code := fault.CodeOf(err); {
		case err == nil && !made[string(token)]:
			t.Errorf("a token without a valid signature is accepted: %q", token)
		case err != nil && code != fault.InvalidToken && code != fault.InvalidRequest && code != fault.MissingCredentials && code != fault.RateLimited:
			t.Errorf("%q is refused with %q: %v", token, code, err)
		}
	})
}
