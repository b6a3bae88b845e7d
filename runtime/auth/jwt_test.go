package auth_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/runtime/auth"
	"runner.example/schema"
)

const (
	issuer   = "https://login.example"
	audience = "https://api.example"
)

const tokenApp = `
auth {
  session jwt {
    issuer: "https://login.example"
    audience: "https://api.example"
    jwks: "https://login.example/keys"
    tenant: claim("org.id")
    roles: claim("roles")
  }
  roles: [admin, staff]
}
apiKeys {
  prefix: "ord",
  scopes: { orders_read: @system("orders.read") { @grant read on Order } }
}
routes("/v1", auth: session) {
  GET /me -> a
  POST /me -> a
  GET /admin -> b (auth: session(admin))
  GET /any -> c (auth: anyOf(session(admin), apiKey(orders_read)))
  GET /read -> d (auth: apiKey(orders_read))
}
`

// provider is an identity provider: its keys, and the place they are had from.
type provider struct {
	ec      *ecdsa.PrivateKey
	ed      ed25519.PrivateKey
	rsa     *rsa.PrivateKey
	mu      sync.Mutex
	keys    []map[string]any
	down    bool
	fetches atomic.Int64
}

// rsaKeys are those of providers: making one takes long, so they have them in turns.
var (
	rsaKeys = sync.OnceValue(func() (keys [2]*rsa.PrivateKey) {
		for i := range keys {
			var err error
			if keys[i], err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
				panic(err)
			}
		}
		return keys
	})
	providers atomic.Int64
)

func newProvider(t testing.TB) *provider {
	t.Helper()
	p := &provider{}
	var err error
	if p.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	if _, p.ed, err = ed25519.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	p.rsa = rsaKeys()[int(providers.Add(1))%2]
	p.publish(jwkOf("ec", p.ec.Public()), jwkOf("ed", p.ed.Public()), jwkOf("rsa", p.rsa.Public()))
	return p
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func jwkOf(id string, key any) map[string]any {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		point, err := k.Bytes() // 4, x and y
		if err != nil {
			panic(err)
		}
		size := (len(point) - 1) / 2
		return map[string]any{"kid": id, "kty": "EC", "crv": k.Curve.Params().Name, "x": b64(point[1 : 1+size]), "y": b64(point[1+size:])}
	case *rsa.PublicKey:
		return map[string]any{"kid": id, "kty": "RSA", "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())}
	case ed25519.PublicKey:
		return map[string]any{"kid": id, "kty": "OKP", "crv": "Ed25519", "x": b64(k)}
	}
	panic(fmt.Sprintf("%T", key))
}

func (p *provider) publish(keys ...map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = keys
}

func (p *provider) setDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// RoundTrip answers as the provider's server does.
func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetches.Add(1)
	if p.down || r.URL.String() != issuer+"/keys" {
		return &http.Response{StatusCode: 503, Body: http.NoBody, Request: r}, nil
	}
	text, err := json.Marshal(map[string]any{"keys": p.keys})
	return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
}

// claims are those of a good token, changed as the pairs say; a nil takes one out.
func claims(now time.Time, pairs ...any) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": issuer, "aud": audience, "sub": "ada", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(),
		"roles": []string{"admin", "root"}, "org": map[string]any{"id": "acme"},
	}
	for i := 0; i < len(pairs); i += 2 {
		c[pairs[i].(string)] = pairs[i+1]
		if pairs[i+1] == nil {
			delete(c, pairs[i].(string))
		}
	}
	return c
}

func sign(t testing.TB, method jwt.SigningMethod, key any, c jwt.MapClaims, header ...any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, c)
	for i := 0; i < len(header); i += 2 {
		token.Header[header[i].(string)] = header[i+1]
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func newTokenWorld(t testing.TB, p *provider) *world {
	w := newWorld(t)
	w.schema = compile(t, tokenApp)
	w.useTokens(p, nil)
	return w
}

func (w *world) useTokens(p *provider, before *auth.Tokens) {
	w.Helper()
	var err error
	w.tokens, err = auth.NewTokens(w.schema, auth.TokenOptions{
		Client: &http.Client{Transport: p}, Before: before, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) with(path, token string) (caller.Caller, error) {
	return w.auth.Check(context.Background(), w.schema, w.tokens, w.route(path), bearer("Bearer "+token), time.Now())
}

// Tokens end, and keys are fetched again, after a minute: in a bubble that does not
// come while a slow machine signs.
func TestATokenOfTheProviderAuthenticatesItsUser(t *testing.T) {
	synctest.Test(t, testTokensOfTheProvider)
}

func testTokensOfTheProvider(t *testing.T) {
	p := newProvider(t)
	w := newTokenWorld(t, p)
	for name, token := range map[string]string{
		"EdDSA":                            sign(t, jwt.SigningMethodEdDSA, p.ed, claims(time.Now()), "kid", "ed"),
		"ES256":                            sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ec"),
		"RS256":                            sign(t, jwt.SigningMethodRS256, p.rsa, claims(time.Now()), "kid", "rsa"),
		"PS256":                            sign(t, jwt.SigningMethodPS256, p.rsa, claims(time.Now()), "kid", "rsa"),
		"no kid, one key of the algorithm": sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now())),
		"audience in a list":               sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "aud", []string{"x", audience}), "kid", "ec"),
		"50 s late":                        sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "exp", time.Now().Add(-50*time.Second).Unix()), "kid", "ec"),
		"50 s early":                       sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "nbf", time.Now().Add(50*time.Second).Unix()), "kid", "ec"),
	} {
		for range 2 { // the second time it is known
			who, err := w.with("me", token)
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, w.log.String())
				break
			}
			if who.Kind != caller.Session || who.UserID != "ada" || who.Tenant != "acme" || !slices.Equal(who.Roles, []string{"admin"}) || !strings.Contains(string(who.Claims), `"iss":"https://login.example"`) {
				t.Errorf("%s: %+v", name, who)
			}
		}
	}
	if n := p.fetches.Load(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
	token := sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "roles", "staff", "org", nil), "kid", "ec")
	if who, err := w.with("me", token); err != nil || who.Tenant != "" || !slices.Equal(who.Roles, []string{"staff"}) {
		t.Errorf("one role, no tenant: %+v, %v", who, err)
	}
	if _, err := w.with("admin", token); fault.CodeOf(err) != fault.InsufficientRole {
		t.Errorf("a user without the role: %v", err)
	}
	if _, err := w.with("read", token); fault.CodeOf(err) != fault.InvalidToken {
		t.Errorf("a user at a door for keys: %v", err)
	}
	if _, err := w.with("any", w.create(keystore.CreateRequest{Scope: "orders_read", Name: "a"}).Token.Reveal()); err != nil {
		t.Errorf("a key where both will do: %v", err)
	}
}

// TestJWTAttacks sends tokens that an attacker without the provider's keys could make,
// and tokens for other apps. All are refused in the same way.
func TestJWTAttacks(t *testing.T) { synctest.Test(t, testJWTAttacks) }

func testJWTAttacks(t *testing.T) {
	p := newProvider(t)
	w := newTokenWorld(t, p)
	other := newProvider(t)
	der, err := x509.MarshalPKIXPublicKey(p.rsa.Public())
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	p.publish(append(p.keys, jwkOf("p384", p384.Public()), jwkOf("small", small.Public()),
		with(jwkOf("enc", other.ec.Public()), "use", "enc"), with(jwkOf("wrap", other.ec.Public()), "key_ops", []string{"wrapKey"}),
		with(jwkOf("ps", other.rsa.Public()), "alg", "PS256"), map[string]any{"kid": "oct", "kty": "oct", "k": b64([]byte("0123456789abcdef0123456789abcdef"))},
	)...)
	good := sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ec")
	if _, err := w.with("me", good); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	payload := func(c jwt.MapClaims) string { text, _ := json.Marshal(c); return b64(text) }
	head := func(text string) string { return b64([]byte(text)) }
	es := func(pairs ...any) string {
		return sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), pairs...), "kid", "ec")
	}
	attacks := map[string]string{
		"alg none":                    head(`{"alg":"none","kid":"ec"}`) + "." + parts[1] + ".",
		"alg None":                    head(`{"alg":"None","kid":"ec"}`) + "." + parts[1] + ".",
		"alg nOnE, old signature":     head(`{"alg":"nOnE","kid":"ec"}`) + "." + parts[1] + "." + parts[2],
		"no alg":                      head(`{"kid":"ec"}`) + "." + parts[1] + "." + parts[2],
		"alg is a number":             head(`{"alg":1,"kid":"ec"}`) + "." + parts[1] + "." + parts[2],
		"HS256 with the public key":   sign(t, jwt.SigningMethodHS256, der, claims(time.Now()), "kid", "rsa"),
		"HS256 with the modulus":      sign(t, jwt.SigningMethodHS256, p.rsa.N.Bytes(), claims(time.Now()), "kid", "rsa"),
		"HS256 with a key of the set": sign(t, jwt.SigningMethodHS256, []byte("0123456789abcdef0123456789abcdef"), claims(time.Now()), "kid", "oct"),
		"HS256 with an empty key":     sign(t, jwt.SigningMethodHS256, []byte{}, claims(time.Now()), "kid", "ec"),
		"RS384":                       sign(t, jwt.SigningMethodRS384, p.rsa, claims(time.Now()), "kid", "rsa"),
		"RS512":                       sign(t, jwt.SigningMethodRS512, p.rsa, claims(time.Now()), "kid", "rsa"),
		"ES384 with its key":          sign(t, jwt.SigningMethodES384, p384, claims(time.Now()), "kid", "p384"),
		"a small RSA key":             sign(t, jwt.SigningMethodRS256, small, claims(time.Now()), "kid", "small"),
		"a key for encryption":        sign(t, jwt.SigningMethodES256, other.ec, claims(time.Now()), "kid", "enc"),
		"a key for wrapping":          sign(t, jwt.SigningMethodES256, other.ec, claims(time.Now()), "kid", "wrap"),
		"a key of another algorithm":  sign(t, jwt.SigningMethodRS256, other.rsa, claims(time.Now()), "kid", "ps"),
		"another's key":               sign(t, jwt.SigningMethodES256, other.ec, claims(time.Now()), "kid", "ec"),
		"another's key, no kid":       sign(t, jwt.SigningMethodES256, other.ec, claims(time.Now())),
		"no kid, several keys":        sign(t, jwt.SigningMethodPS256, p.rsa, claims(time.Now())),
		"kid of another kind of key":  sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ed"),
		"kid is a path":               sign(t, jwt.SigningMethodES256, other.ec, claims(time.Now()), "kid", "../../../../dev/null"),
		"kid is a URL":                sign(t, jwt.SigningMethodES256, other.ec, claims(time.Now()), "kid", "https://evil.example/keys"),
		"kid is SQL":                  sign(t, jwt.SigningMethodES256, other.ec, claims(time.Now()), "kid", "ec' OR '1'='1"),
		"kid is empty":                sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", ""),
		"kid is a list":               sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", []string{"ec"}),
		"jwk in the header":           sign(t, jwt.SigningMethodES256, other.ec, claims(time.Now()), "kid", "ec", "jwk", jwkOf("ec", other.ec.Public())),
		"jku in the header":           sign(t, jwt.SigningMethodES256, other.ec, claims(time.Now()), "kid", "x", "jku", "https://evil.example/keys"),
		"x5u in the header":           sign(t, jwt.SigningMethodES256, other.ec, claims(time.Now()), "kid", "x", "x5u", "https://evil.example/cert"),
		"crit":                        sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ec", "crit", []string{"exp"}),
		"unencoded payload":           sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ec", "b64", false, "crit", []string{"b64"}),
		"another payload":             parts[0] + "." + payload(claims(time.Now(), "sub", "root")) + "." + parts[2],
		"no signature":                parts[0] + "." + parts[1] + ".",
		"a signature of zeros":        parts[0] + "." + parts[1] + "." + b64(make([]byte, 64)),
		"a short signature":           parts[0] + "." + parts[1] + "." + parts[2][:40],
		"padding":                     parts[0] + "." + parts[1] + "." + parts[2] + "==",
		"loose last bits":             parts[0] + "." + parts[1] + "." + parts[2][:len(parts[2])-1] + string(parts[2][len(parts[2])-1]+1),
		"another issuer":              es("iss", "https://login.example.evil"),
		"issuer with a slash":         es("iss", issuer+"/"),
		"no issuer":                   es("iss", nil),
		"another audience":            es("aud", "https://other.example"),
		"no audience":                 es("aud", nil),
		"an empty list of audiences":  es("aud", []string{}),
		"expired":                     es("exp", time.Now().Add(-61*time.Second).Unix()),
		"no end":                      es("exp", nil),
		"end is a text":               es("exp", "2099-01-01"),
		"not yet":                     es("nbf", time.Now().Add(90*time.Second).Unix()),
		"no subject":                  es("sub", nil),
		"empty subject":               es("sub", ""),
		"subject is a number":         es("sub", 7),
		"subject with a line break":   es("sub", "ada\nroot"),
		"a long subject":              es("sub", strings.Repeat("a", 256)),
		"tenant is a list":            es("org", map[string]any{"id": []string{"acme"}}),
		"roles hold a number":         es("roles", []any{"admin", 1}),
		"huge":                        es("more", strings.Repeat("a", 9000)),
		"two dots and nothing":        "..",
		"no JSON":                     "AAAA.AAAA.AAAA",
		"header is a list":            head(`["alg","ES256"]`) + "." + parts[1] + "." + parts[2],
	}
	t.Logf("%d tokens", len(attacks))
	for name, token := range attacks {
		who, err := w.with("me", token)
		if fault.CodeOf(err) != fault.InvalidToken && fault.CodeOf(err) != fault.RateLimited || who.Kind != caller.Anonymous || who.UserID != "" {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
	if n := p.fetches.Load(); n != 2 { // at the start, and for the first unknown key
		t.Errorf("the keys were fetched %d times, want 2", n)
	}
	if n := other.fetches.Load(); n != 0 {
		t.Errorf("another's keys were fetched %d times", n)
	}
	if strings.Contains(w.log.String(), parts[2]) || strings.Contains(w.log.String(), "eyJ") {
		t.Error("the log shows a token")
	}
}

func with(m map[string]any, name string, value any) map[string]any {
	m[name] = value
	return m
}

// Each unknown key fetches the keys until a fetch brings nothing new. Then the pauses between
// fetches grow to a minute, whoever asks.
func TestUnknownKeysFetchAtOnceAndThenEverLessOften(t *testing.T) {
	p := newProvider(t)
	synctest.Test(t, func(t *testing.T) {
		w := newTokenWorld(t, p)
		attacker := newProvider(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.tokens.Run(ctx)
		synctest.Wait()
		began, fetches := time.Now(), p.fetches.Load()
		var at []int // seconds of the fetches
		seconds := 300
		if testing.Short() {
			seconds = 130
		}
		for i := range 10 * seconds {
			token := sign(t, jwt.SigningMethodEdDSA, attacker.ed, claims(time.Now()), "kid", fmt.Sprint("k", i))
			if _, err := w.with("me", token); fault.CodeOf(err) != fault.InvalidToken {
				t.Fatalf("a token of another provider, after %d others: %v, want invalid_token", i, err)
			}
			if n := p.fetches.Load(); n != fetches {
				at, fetches = append(at, int(time.Since(began)/time.Second)), n
			}
			time.Sleep(time.Second / 10)
		}
		if want := []int{0, 1, 3, 7, 15, 31, 63, 123, 183, 243}; !slices.Equal(at, want[:len(at)]) || len(at) < 8 {
			t.Errorf("fetches after %v s, want %v", at, want)
		}
		if !strings.Contains(w.log.String(), `"reason":"unknown_key"`) || strings.Count(w.log.String(), `"reason":"unknown_key"`) > 100 {
			t.Errorf("the log has %d lines of unknown keys", strings.Count(w.log.String(), `"reason":"unknown_key"`))
		}

		fresh := newProvider(t) // while others send unknown keys, a new key is known within the pause
		p.publish(jwkOf("new", fresh.ec.Public()))
		time.Sleep(time.Minute)
		if _, err := w.with("me", sign(t, jwt.SigningMethodES256, fresh.ec, claims(time.Now()), "kid", "new")); err != nil {
			t.Errorf("a token of the new key: %v", err)
		}
		cancel()
		synctest.Wait()
	})
}

// A provider publishes a key and signs with it some seconds later, again and again.
func TestAKeyIsAcceptedSecondsAfterItWasPublished(t *testing.T) {
	p := newProvider(t)
	synctest.Test(t, func(t *testing.T) {
		w := newTokenWorld(t, p)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.tokens.Run(ctx)
		synctest.Wait()
		for i := range 40 { // more than the refusals of an address in a minute
			fresh := newProvider(t)
			kid := fmt.Sprint("key", i)
			p.publish(jwkOf("ec", p.ec.Public()), jwkOf(kid, fresh.ec.Public()))
			time.Sleep(time.Second)
			if _, err := w.with("me", sign(t, jwt.SigningMethodES256, fresh.ec, claims(time.Now()), "kid", kid)); err != nil {
				t.Fatalf("rotation %d: %v", i, err)
			}
		}
		cancel()
		synctest.Wait()
	})
}

func TestKeysAreRefreshedAndKeptForADay(t *testing.T) {
	if testing.Short() {
		t.Skip("the store's clocks tick through more than a day: without -short")
	}
	p := newProvider(t)
	synctest.Test(t, func(t *testing.T) {
		w := newTokenWorld(t, p)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.tokens.Run(ctx)
		synctest.Wait()
		token := func() string { return sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ec") }
		kept := token()
		for range 2 {
			if _, err := w.with("me", kept); err != nil {
				t.Fatal(err)
			}
		}

		p.publish(jwkOf("ed", p.ed.Public())) // the key is withdrawn
		time.Sleep(16 * time.Minute)
		if _, err := w.with("me", kept); err == nil {
			t.Error("a token that was known outlives its key")
		}

		fresh := newProvider(t) // a new key counts at once, before the next refresh
		p.publish(jwkOf("ed", p.ed.Public()), jwkOf("new", fresh.ec.Public()))
		time.Sleep(2 * time.Minute)
		if _, err := w.with("me", sign(t, jwt.SigningMethodES256, fresh.ec, claims(time.Now()), "kid", "new")); err != nil {
			t.Errorf("a token of the new key: %v", err)
		}

		p.setDown(true)
		edToken := func() string { return sign(t, jwt.SigningMethodEdDSA, p.ed, claims(time.Now()), "kid", "ed") }
		time.Sleep(23 * time.Hour)
		if _, err := w.with("me", edToken()); err != nil {
			t.Errorf("23 hours without the provider: %v", err)
		}
		w.useTokens(p, w.tokens) // an activation takes the keys over
		if _, err := w.with("me", edToken()); err != nil {
			t.Errorf("after an activation: %v", err)
		}
		time.Sleep(2 * time.Hour)
		if _, err := w.with("me", edToken()); err == nil {
			t.Error("keys of more than a day ago still count")
		}
		cancel()
		synctest.Wait()
	})
}

// A release takes the provider's keys over, and verifies each token again by its own schema.
func TestATokenIsVerifiedAgainForTheNextRelease(t *testing.T) {
	p := newProvider(t)
	w := newTokenWorld(t, p)
	token := sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ec")
	for _, change := range []struct {
		old, new string
		want     string // of the caller; empty: refused
	}{
		{"", "", "acme [admin]"},
		{"roles: [admin, staff]", "roles: [staff]", "acme []"},
		{`claim("org.id")`, `claim("sub")`, "ada [admin]"},
		{`audience: "https://api.example"`, `audience: "https://other.example"`, ""},
		{`issuer: "https://login.example"`, `issuer: "https://login.example/other"`, ""},
		{`roles: claim("roles")`, `roles: claim("roles") algorithms: [EdDSA]`, ""},
		{"", "", "acme [admin]"},
	} {
		w.schema = compile(t, strings.ReplaceAll(strings.Replace(tokenApp, change.old, change.new, 1), "session(admin)", "session"))
		w.useTokens(p, w.tokens)
		for range 2 { // the second time it is known
			got := ""
			who, err := w.with("me", token)
			if err == nil {
				got = fmt.Sprint(who.Tenant, " ", who.Roles)
			}
			if got != change.want || err != nil && fault.CodeOf(err) != fault.InvalidToken {
				t.Errorf("with %q: %q, %v, want %q", change.new, got, err, change.want)
			}
		}
	}
	if n := p.fetches.Load(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

func TestACachedTokenExpires(t *testing.T) {
	p := newProvider(t)
	synctest.Test(t, func(t *testing.T) {
		w := newTokenWorld(t, p)
		token := sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "exp", time.Now().Add(time.Minute).Unix()), "kid", "ec")
		for range 2 {
			if _, err := w.with("me", token); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Minute)
		if _, err := w.with("me", token); fault.CodeOf(err) != fault.InvalidToken {
			t.Errorf("a known token after its end: %v", err)
		}
	})
}

func TestTokensMustHaveTheClaimsOfTheirLimit(t *testing.T) {
	for _, given := range []schema.JWTSession{
		{Audience: audience, JWKS: issuer + "/keys"},
		{Issuer: issuer, JWKS: issuer + "/keys"},
		{Issuer: issuer, Audience: audience},
	} {
		if tokens, err := auth.NewTokens(&schema.Schema{Auth: schema.AuthSettings{JWT: &given}}, auth.TokenOptions{}); fault.CodeOf(err) != fault.Invalid || tokens != nil {
			t.Errorf("%+v: %v", given, err)
		}
	}
}

// signText signs a token of these texts as they stand.
func signText(t testing.TB, p *provider, header, payload string) string {
	t.Helper()
	text := b64([]byte(header)) + "." + b64([]byte(payload))
	signature, err := jwt.SigningMethodES256.Sign(text, p.ec)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + b64(signature)
}

// TestTokensAreReadStrictly: a token that two parsers could read differently is refused.
func TestTokensAreReadStrictly(t *testing.T) {
	p := newProvider(t)
	w := newTokenWorld(t, p)
	const header = `{"alg":"ES256","kid":"ec"}`
	payload := func(members string) string {
		return fmt.Sprintf(`{"iss":%q,"aud":%q,"exp":%d%s}`, issuer, audience, time.Now().Add(time.Hour).Unix(), members)
	}
	typ := func(typ string) string { return `{"alg":"ES256","kid":"ec","typ":` + typ + `}` }
	const ada = `,"sub":"ada"`
	for _, tt := range []struct {
		name, header, payload string
		taken                 bool
	}{
		{"plain", header, payload(ada), true},
		{"a claim of another case beside", header, payload(ada + `,"Sub":"root"`), true},
		{"nothing but another case", header, payload(`,"Sub":"ada"`), false},
		{"a claim twice", header, payload(ada + `,"sub":"root"`), false},
		{"a claim twice deep inside", header, payload(ada + `,"x":[{"a":1,"a":1}]`), false},
		{"an issuer twice", header, payload(ada + `,"iss":"https://evil.example"`), false},
		{"no UTF-8", header, payload(ada + ",\"x\":\"\xff\""), false},
		{"half a surrogate pair", header, payload(ada + `,"x":"\ud800"`), false},
		{"70 deep", header, payload(ada + `,"x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70)), false},
		{"two objects", header, payload(ada) + "{}", false},
		{"a header's member twice", `{"alg":"ES256","kid":"x","kid":"ec"}`, payload(ada), false},
		{"an algorithm twice", `{"alg":"none","alg":"ES256","kid":"ec"}`, payload(ada), false},
		{"an algorithm of another case", `{"ALG":"ES256","kid":"ec"}`, payload(ada), false},
		{"one of another case beside", `{"alg":"ES256","ALG":"none","kid":"ec"}`, payload(ada), true},
		{"what is critical", `{"alg":"ES256","kid":"ec","crit":[]}`, payload(ada), false},
		{"a kid that is not a string", `{"alg":"ES256","kid":null}`, payload(ada), false},
		{"a kid with an escape", `{"alg":"ES256","\u006bid":"x"}`, payload(ada), false},

		{"typ JWT", typ(`"JWT"`), payload(ada), true},
		{"typ jwt", typ(`"jwt"`), payload(ada), true},
		{"typ at+jwt", typ(`"at+jwt"`), payload(ada), true},
		{"typ application/at+jwt", typ(`"Application/AT+JWT"`), payload(ada), true},
		{"typ application/jwt", typ(`"application/jwt"`), payload(ada), true},
		{"typ logout+jwt", typ(`"logout+jwt"`), payload(ada), false},
		{"typ secevent+jwt", typ(`"secevent+jwt"`), payload(ada), false},
		{"typ dpop+jwt", typ(`"dpop+jwt"`), payload(ada), false},
		{"an empty typ", typ(`""`), payload(ada), false},
		{"a typ that is not a string", typ("1"), payload(ada), false},
		{"a typ that is null", typ("null"), payload(ada), false},
	} {
		who, err := w.with("me", signText(t, p, tt.header, tt.payload))
		if (err == nil) != tt.taken || tt.taken && who.UserID != "ada" || err != nil && fault.CodeOf(err) != fault.InvalidToken && fault.CodeOf(err) != fault.RateLimited {
			t.Errorf("%s: %q, %v", tt.name, who.UserID, err)
		}
	}
}

// TestRulesSeeWhatATokenClaims: also of a token that is known.
func TestRulesSeeWhatATokenClaims(t *testing.T) {
	p := newProvider(t)
	w := newTokenWorld(t, p)
	token := sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "plan", "pro", "none", nil), "kid", "ec")
	for range 2 {
		who, err := w.with("me", token)
		if err != nil || who.Claimed["plan"] != schema.TextValue("pro") || who.Claimed["none"] != nil {
			t.Errorf("%v, %v", who.Claimed, err)
		}
	}
}

// TestAnUnavailableKeySetIsNotAFailureOfTheClient: a client whose token cannot be checked
// because the provider is unavailable may try again, and is not counted as guessing.
func TestAnUnavailableKeySetIsNotAFailureOfTheClient(t *testing.T) {
	p := newProvider(t)
	synctest.Test(t, func(t *testing.T) {
		p.setDown(true)
		w := newTokenWorld(t, p)
		good := sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ec")
		for i, want := range []int{1, 2, 1, 4, 3, 2, 1, 8} { // the pause after a failed fetch doubles
			_, err := w.with("me", good)
			refusal, ok := errors.AsType[*auth.Refusal](err)
			if fault.CodeOf(err) != fault.Unavailable || !ok || refusal.RetryAfter != want {
				t.Fatalf("after %d s: %+v, want Retry-After %d", i, err, want)
			}
			time.Sleep(time.Second)
		}
		for range 22 { // more than may be refused
			if _, err := w.with("me", good); fault.CodeOf(err) != fault.Unavailable {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if n := p.fetches.Load(); n != 5 {
			t.Errorf("%d fetches in half a minute, want 5", n)
		}
		if _, err := w.with("me", "e30.e30.e30"); fault.CodeOf(err) != fault.InvalidToken {
			t.Errorf("an invalid token meanwhile: %v", err)
		}
		p.setDown(false)
		time.Sleep(time.Second)
		if _, err := w.with("me", good); err != nil {
			t.Errorf("as soon as it is back: %v", err)
		}
	})
}

// TestRequestsWaitTwoSecondsForKeys: both the request that fetches the keys and those that
// wait for that fetch.
func TestRequestsWaitTwoSecondsForKeys(t *testing.T) {
	p := newProvider(t)
	good := sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ec")
	for _, runs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.schema = compile(t, tokenApp)
			silent := transport(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
			var err error
			w.tokens, err = auth.NewTokens(w.schema, auth.TokenOptions{Client: &http.Client{Transport: silent}})
			if err != nil {
				t.Fatal(err)
			}
			if runs {
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				go w.tokens.Run(ctx)
				synctest.Wait()
			}
			began := time.Now()
			if _, err := w.with("me", good); fault.CodeOf(err) != fault.Unavailable || time.Since(began) != 2*time.Second {
				t.Errorf("with Run %v: %v after %s", runs, err, time.Since(began))
			}
			time.Sleep(10 * time.Second) // Run's own attempt ends
		})
	}
}

// TestKeysOfASlowProviderAreUsed: requests do not wait for the keys, and the fetch still completes.
func TestKeysOfASlowProviderAreUsed(t *testing.T) {
	p := newProvider(t)
	good := sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ec")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.schema = compile(t, tokenApp)
		slow := transport(func(r *http.Request) (*http.Response, error) {
			time.Sleep(5 * time.Second)
			return p.RoundTrip(r)
		})
		var err error
		if w.tokens, err = auth.NewTokens(w.schema, auth.TokenOptions{Client: &http.Client{Transport: slow}}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.with("me", good); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("before they are there: %v", err)
		}
		time.Sleep(4 * time.Second)
		if _, err := w.with("me", good); err != nil {
			t.Errorf("once they are there: %v", err)
		}
	})
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAnUnsupportedKeyDoesNotAffectOthers: RFC 7517, section 5.
func TestAnUnsupportedKeyDoesNotAffectOthers(t *testing.T) {
	p := newProvider(t)
	good := jwkOf("ec", p.ec.Public())
	for name, odd := range map[string]any{
		"of an unknown kind": map[string]any{"kty": "XX"}, "of no kind": map[string]any{}, "a number for an id": map[string]any{"kty": "EC", "kid": 7},
		"operations in a text": map[string]any{"kty": "EC", "key_ops": "verify"}, "an exponent as a number": map[string]any{"kty": "RSA", "n": "AQAB", "e": 65537},
		"null": nil, "a text": "key", "a list": []any{}, "the same once more": good,
	} {
		for _, keys := range [][]any{{good, odd}, {odd, good}} {
			text, err := json.Marshal(map[string]any{"keys": keys})
			if err != nil {
				t.Fatal(err)
			}
			w := worldWithKeys(t, string(text))
			if _, err := w.with("me", sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ec")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, text := range []string{`{}`, `{"keys":null}`, `[]`, `{"keys":{}}`, ``, `<html>`} {
		if _, err := worldWithKeys(t, text).with("me", sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ec")); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// worldWithKeys is one whose provider publishes that text.
func worldWithKeys(t *testing.T, text string) *world {
	t.Helper()
	w := newWorld(t)
	w.schema = compile(t, tokenApp)
	var err error
	w.tokens, err = auth.NewTokens(w.schema, auth.TokenOptions{Client: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestAProviderMayWithdrawAllItsKeys: unlike one that is away, it has said so.
func TestAProviderMayWithdrawAllItsKeys(t *testing.T) {
	p := newProvider(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.schema = compile(t, tokenApp)
		var log bytes.Buffer
		var err error
		w.tokens, err = auth.NewTokens(w.schema, auth.TokenOptions{Client: &http.Client{Transport: p}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.tokens.Run(ctx) }()
		synctest.Wait()
		good := sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ec")
		if _, err := w.with("me", good); err != nil {
			t.Error(err)
		}
		p.publish([]map[string]any{}...)
		time.Sleep(16 * time.Minute)
		if _, err := w.with("me", good); fault.CodeOf(err) != fault.InvalidToken {
			t.Errorf("a quarter of an hour after the keys were withdrawn: %v", err)
		}
		cancel()
		<-done
		if !strings.Contains(log.String(), "level=WARN msg=\"jwks without usable keys") {
			t.Errorf("log: %s", log.String())
		}
	})
}

// TestUndeclaredRolesOfATokenAreIgnoredInTypedMode: as those of a cookie session.
func TestUndeclaredRolesOfATokenAreIgnoredInTypedMode(t *testing.T) {
	p := newProvider(t)
	const entity = "entity Order { id: id  name: string  @@allow read to session }\n"
	for _, tt := range []struct{ roles, entity, want string }{
		{"roles: [admin]", entity, "[admin]"}, {"roles: []", entity, "[]"}, {"", entity, "[]"},
		{"roles: [admin]", "", "[admin]"}, {"", "", "[admin root]"},
	} {
		text := strings.NewReplacer("roles: [admin, staff]", tt.roles, "session(admin)", "session").Replace(tokenApp) + tt.entity
		w := newWorld(t)
		w.schema = compile(t, text)
		w.useTokens(p, nil)
		who, err := w.with("me", sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ec"))
		if err != nil || fmt.Sprint(who.Roles) != tt.want {
			t.Errorf("%q, typed %v: %v, %v, want %s", tt.roles, w.schema.Typed, who.Roles, err, tt.want)
		}
	}
}

func TestRolesOfATokenMayBeNestedAndMembersOfAnObject(t *testing.T) {
	p := newProvider(t)
	type object = map[string]any
	nested := object{"my.client": object{"roles": []string{"org:admin"}}, "my": object{"client": object{"roles": []string{"staff"}}}}
	for _, tt := range []struct {
		path  string
		roles any
		want  string
	}{
		{`"roles"`, object{"staff": object{"2001": "acme.example"}, "other": object{}, "org:admin": true}, "[org:admin staff]"},
		{`"roles"`, object{}, "[]"},
		{`"roles", "my.client", "roles"`, nested, "[org:admin]"},
		{`"roles", "my", "client", "roles"`, nested, "[staff]"},
		{`"roles.my.client.roles"`, nested, "[staff]"},
		{`"roles", "none", "roles"`, nested, "[]"},
		{`"roles", "my.client"`, []string{"staff"}, "[]"},
		{`"none", "my.client"`, "staff", "[]"},
	} {
		text := strings.NewReplacer(`claim("roles")`, "claim("+tt.path+")", "[admin, staff]", `["org:admin", staff]`, "session(admin)", `session("org:admin")`).Replace(tokenApp)
		w := newWorld(t)
		w.schema = compile(t, text)
		w.useTokens(p, nil)
		token := sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now(), "roles", tt.roles), "kid", "ec")
		who, err := w.with("me", token)
		if err != nil || fmt.Sprint(who.Roles) != tt.want {
			t.Errorf("claim(%s) of %v: %v, %v, want %s", tt.path, tt.roles, who.Roles, err, tt.want)
		}
		if _, err := w.with("admin", token); (err == nil) != strings.Contains(tt.want, "org:admin") {
			t.Errorf("claim(%s): session(\"org:admin\"): %v", tt.path, err)
		}
	}
}

// TestAKeySetFileIsReadAtStartup: one that is missing or bad lets no app begin.
func TestAKeySetFileIsReadAtStartup(t *testing.T) {
	p := newProvider(t)
	dir := t.TempDir()
	set := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, err := json.Marshal(map[string]any{"keys": []any{jwkOf("ec", p.ec.Public())}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ path, want string }{
		"good":      {set("good.json", string(key)), ""},
		"missing":   {filepath.Join(dir, "missing.json"), "no such file"},
		"no JSON":   {set("bad.json", "keys"), "invalid JWKS"},
		"no set":    {set("none.json", "{}"), "invalid JWKS"},
		"large":     {set("large.json", strings.Repeat(" ", 1<<20)+string(key)), "more than"},
		"directory": {dir, "not a regular file"},
	} {
		w := newWorld(t)
		w.schema = compile(t, strings.Replace(tokenApp, "https://login.example/keys", tt.path, 1))
		w.tokens, err = auth.NewTokens(w.schema, auth.TokenOptions{})
		switch {
		case tt.want == "" && err == nil:
			if _, err := w.with("me", sign(t, jwt.SigningMethodES256, p.ec, claims(time.Now()), "kid", "ec")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case tt.want == "" || err == nil || fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), tt.want):
			t.Errorf("%s: %v", name, err)
		}
	}
}
