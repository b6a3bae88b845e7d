package apptest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"runner.example/schema"
)

// issuer signs tokens in place of the app's identity provider.
type issuer struct {
	method jwt.SigningMethod
	key    crypto.Signer
	jwks   []byte
}

const (
	tokenLifetime = time.Hour
	issuerKeyID   = "test"
)

// newIssuer returns an issuer whose tokens the session accepts. Nil, if the schema has no session jwt.
func newIssuer(ctx context.Context, session *schema.JWTSession) (*issuer, error) {
	if session == nil {
		return nil, nil
	}
	algorithm := "EdDSA"
	if len(session.Algorithms) > 0 {
		algorithm = session.Algorithms[0]
	}
	i := &issuer{method: jwt.GetSigningMethod(algorithm)}
	var err error
	switch algorithm {
	case "EdDSA":
		_, i.key, err = ed25519.GenerateKey(rand.Reader)
	case "ES256":
		i.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		i.key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		return nil, fmt.Errorf("make the key of the test's issuer: %w", err)
	}
	jwk, err := jwkset.NewJWKFromKey(i.key.Public(), jwkset.JWKOptions{
		Metadata: jwkset.JWKMetadataOptions{KID: issuerKeyID, ALG: jwkset.ALG(algorithm), USE: jwkset.UseSig},
	})
	if err == nil {
		i.jwks, err = json.Marshal(jwkset.JWKSMarshal{Keys: []jwkset.JWKMarshal{jwk.Marshal()}})
	}
	return i, err
}

// keys returns the JWKS of the issuer; nil without one.
func (i *issuer) keys() []byte {
	if i == nil {
		return nil
	}
	return i.jwks
}

// sign returns a token with the claims, and with those that the session requires and claims does not have.
func (i *issuer) sign(session *schema.JWTSession, claims map[string]any, now time.Time) (string, error) {
	all := jwt.MapClaims{
		"iss": session.Issuer, "aud": session.Audience, "iat": now.Unix(), "exp": now.Add(tokenLifetime).Unix(),
	}
	maps.Copy(all, claims)
	token := jwt.NewWithClaims(i.method, all)
	token.Header["kid"] = issuerKeyID
	return token.SignedString(i.key)
}
