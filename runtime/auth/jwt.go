package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"runner.example/internal/caller"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/schema"
)

const (
	maxTokenBytes = 8 << 10
	maxUserBytes  = 255
	leeway        = time.Minute
	maxKnown      = 10_000
)

// Reasons to refuse a JWT, beside those for keys and sessions.
const (
	NotSigned   keystore.Reason = "signature"   // or with an algorithm or a key that is not accepted
	UnknownKey  keystore.Reason = "unknown_key" // its kid is not in the provider's set
	NotForUs    keystore.Reason = "audience"
	NotFromThem keystore.Reason = "issuer"
	NotYet      keystore.Reason = "not_yet"
)

// noKeys: it is unknown whether a JWT is valid, because the provider's keys are missing or
// too old.
const noKeys keystore.Reason = "no_keys"

// Tokens verifies the JWTs (RFC 7519) of an app's identity provider, by the rules of
// RFC 8725. Any number of goroutines may use it.
type Tokens struct {
	session *schema.JWTSession
	counts  func(role string) bool
	source  *keySource
	parser  *jwt.Parser
	allowed []string
}

// TokenOptions configure Tokens.
type TokenOptions struct {
	// Client fetches the provider's keys; nil: http.DefaultClient.
	Client *http.Client
	// Logger logs failed refreshes.
	Logger *slog.Logger
	// Keys is a JWKS (RFC 7517) that takes the place of the provider's, which is not asked; nil: there is none.
	Keys []byte
	// Calendar is the time that tokens are compared with; nil: the machine's.
	Calendar clock.Calendar
	// Before are the Tokens of the previous release, nil if there are none: keys of the
	// same source are reused.
	Before *Tokens
}

// defaultAlgorithms are accepted if the schema names none.
var defaultAlgorithms = []string{"EdDSA", "ES256", "RS256", "PS256"}

// NewTokens returns the Tokens of the schema's auth block, nil if it has no session jwt.
// Run fetches the provider's keys; keys of a file are read here. The error is a fault with
// the code Invalid.
func NewTokens(s *schema.Schema, opt TokenOptions) (*Tokens, error) {
	session := s.Auth.JWT
	if session == nil {
		return nil, nil
	}
	if session.Issuer == "" || session.Audience == "" || session.JWKS == "" {
		return nil, fault.New(fault.Invalid, "session jwt needs issuer, audience and jwks")
	}
	source := newKeySource(session.JWKS, cmp.Or(opt.Client, http.DefaultClient),
		cmp.Or(opt.Logger, slog.New(slog.DiscardHandler)))
	if opt.Keys != nil {
		keys, err := readKeys(opt.Keys)
		if err != nil {
			return nil, fault.New(fault.Invalid, "session jwt: %v", err)
		}
		source.fixed = &keySet{keys: keys}
	} else if source.isFile() {
		if err := source.fetch(context.Background(), clock.Mark()); err != nil {
			return nil, fault.New(fault.Invalid, "session jwt: jwks %q: %v", session.JWKS, err)
		}
	} else if opt.Before != nil && opt.Before.source.place == source.place {
		if old := opt.Before.source.set.Load(); old != nil {
			source.set.Store(&keySet{keys: old.keys, fetched: old.fetched})
		}
	}
	allowed := session.Algorithms
	if len(allowed) == 0 {
		allowed = defaultAlgorithms
	}
	return &Tokens{
		session: session, counts: s.HasRole, source: source, allowed: allowed,
		parser: jwt.NewParser(
			jwt.WithValidMethods(allowed), jwt.WithIssuer(session.Issuer), jwt.WithAudience(session.Audience),
			jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithStrictDecoding(),
			jwt.WithTimeFunc(opt.Calendar.Or()),
		),
	}, nil
}

// Run refreshes the provider's keys until ctx ends.
func (t *Tokens) Run(ctx context.Context) { t.source.run(ctx) }

// known is the content of a verified token.
type known struct {
	caller              caller.Caller
	notBefore, notAfter time.Time
}

// verify returns the user of the token, or the reason to refuse it. The token is not kept.
func (t *Tokens) verify(ctx context.Context, token []byte, now time.Time) (caller.Caller, keystore.Reason) {
	if len(token) > maxTokenBytes {
		return caller.Caller{}, keystore.Malformed
	}
	sum := sha256.Sum256(token)
	set := t.source.current(now)
	if set != nil {
		if v, ok := set.known.Load(sum); ok {
			k := v.(*known)
			switch {
			case now.After(k.notAfter):
				return caller.Caller{}, keystore.KeyExpired
			case now.Before(k.notBefore):
				return caller.Caller{}, NotYet
			}
			return k.caller, ""
		}
	}
	text := string(token)
	header, reason := t.header(text)
	if reason != "" {
		return caller.Caller{}, reason
	}
	var key *publicKey
	if set != nil {
		key = set.find(header.KeyID, header.named, header.Algorithm)
	}
	if key == nil {
		t.source.refresh(ctx, now, requestWaits, false)
		if set = t.source.current(now); set == nil {
			return caller.Caller{}, noKeys
		}
		if key = set.find(header.KeyID, header.named, header.Algorithm); key == nil {
			if header.named && !set.has(header.KeyID) {
				return caller.Caller{}, UnknownKey
			}
			return caller.Caller{}, NotSigned
		}
	}
	k, reason := t.check(text, key)
	if reason == "" && set.count.Add(1) <= maxKnown {
		set.known.Store(sum, k)
	}
	if reason != "" {
		return caller.Caller{}, reason
	}
	return k.caller, ""
}

// tokenHeader is what matters of a token's JOSE header. Other members that lead to a key
// (jku, jwk, x5u, x5c) are ignored.
type tokenHeader struct {
	Algorithm, KeyID string
	named            bool // it has a KeyID
}

func (t *Tokens) header(token string) (h tokenHeader, reason keystore.Reason) {
	first, _, _ := strings.Cut(token, ".")
	var members map[string]json.RawMessage // a struct would accept "ALG" for "alg"
	text, err := base64.RawURLEncoding.Strict().DecodeString(first)
	if err == nil {
		err = schema.CheckJSON(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	// Critical extensions are not supported (RFC 7515, section 4.1.11).
	if _, critical := members["crit"]; err != nil || critical {
		return h, keystore.Malformed
	}
	member := func(name string) (value string, there, ok bool) {
		raw, there := members[name]
		return value, there, !there || string(raw) != "null" && json.Unmarshal(raw, &value) == nil
	}
	kind, typed, ok1 := member("typ")
	algorithm, _, ok2 := member("alg")
	keyID, named, ok3 := member("kid")
	switch {
	case !ok1 || !ok2 || !ok3:
		return h, keystore.Malformed
	case typed && !isAccessToken(kind):
		return h, WrongKind
	case !slices.Contains(t.allowed, algorithm):
		return h, NotSigned
	}
	return tokenHeader{algorithm, keyID, named}, ""
}

// isAccessToken reports whether typ is that of a token which identifies a caller (RFC 7519,
// section 5.1; RFC 9068, section 2.1), and not, for example, of a logout token.
func isAccessToken(typ string) bool {
	const media = "application/"
	if len(typ) > len(media) && strings.EqualFold(typ[:len(media)], media) {
		typ = typ[len(media):]
	}
	return strings.EqualFold(typ, "JWT") || strings.EqualFold(typ, "at+jwt")
}

// check verifies the signature and the claims.
func (t *Tokens) check(token string, key *publicKey) (*known, keystore.Reason) {
	middle := strings.SplitN(token, ".", 3)[1]
	text, err := base64.RawURLEncoding.Strict().DecodeString(middle)
	if err != nil {
		return nil, keystore.Malformed
	}
	claimed, err := schema.ReadClaims(text)
	if err != nil {
		return nil, keystore.Malformed
	}
	claims := jwt.MapClaims{}
	parsed, err := t.parser.ParseWithClaims(token, claims, func(parsed *jwt.Token) (any, error) {
		if !slices.Contains(key.algorithms, parsed.Method.Alg()) {
			return nil, jwt.ErrTokenSignatureInvalid
		}
		return key.key, nil
	})
	if err != nil {
		return nil, reasonOf(err)
	}
	who, ok := t.callerOf(claims)
	if !ok {
		return nil, keystore.Malformed
	}
	who.Claims, who.Claimed = text, claimed
	k := &known{caller: who}
	expires, err := parsed.Claims.GetExpirationTime() // present: it was checked
	if err != nil {
		return nil, keystore.Malformed
	}
	k.notAfter = expires.Add(leeway)
	if begins, err := parsed.Claims.GetNotBefore(); err == nil && begins != nil {
		k.notBefore = begins.Add(-leeway)
	}
	return k, ""
}

// callerOf returns the caller of the claims.
func (t *Tokens) callerOf(claims jwt.MapClaims) (caller.Caller, bool) {
	who := caller.Caller{Kind: caller.Session}
	var ok bool
	if who.UserID, ok = claims["sub"].(string); !ok || !isName(who.UserID) {
		return who, false
	}
	if t.session.Tenant != nil {
		switch tenant := claimAt(claims, t.session.Tenant).(type) {
		case nil: // a user without a tenant
		case string:
			if who.Tenant = tenant; tenant != "" && !isName(tenant) {
				return who, false
			}
		default:
			return who, false
		}
	}
	if t.session.Roles == nil {
		return who, true
	}
	switch roles := claimAt(claims, t.session.Roles).(type) {
	case nil:
	case string:
		who.Roles = t.known(who.Roles, roles)
	case []any:
		for _, role := range roles {
			name, ok := role.(string)
			if !ok {
				return who, false
			}
			who.Roles = t.known(who.Roles, name)
		}
	case map[string]any: // the roles are the names of its members
		for _, role := range slices.Sorted(maps.Keys(roles)) {
			who.Roles = t.known(who.Roles, role)
		}
	default:
		return who, false
	}
	return who, true
}

// known appends a role if the schema declares it.
func (t *Tokens) known(roles []string, role string) []string {
	if role == "" || slices.Contains(roles, role) || !t.counts(role) {
		return roles
	}
	return append(roles, role)
}

// claimAt returns the claim at a path of the schema, nil if there is none.
func claimAt(claims map[string]any, path []string) any {
	if len(path) == 1 {
		return dottedClaim(claims, path[0])
	}
	inner, _ := claims[path[0]].(map[string]any)
	for _, name := range path[1 : len(path)-1] {
		inner, _ = inner[name].(map[string]any)
	}
	return inner[path[len(path)-1]]
}

// dottedClaim returns the claim of that name. If there is none, the dots of the name are steps
// into objects.
func dottedClaim(claims map[string]any, name string) any {
	if value, ok := claims[name]; ok {
		return value
	}
	first, rest, dotted := strings.Cut(name, ".")
	inner, ok := claims[first].(map[string]any)
	if !dotted || !ok {
		return nil
	}
	return dottedClaim(inner, rest)
}

// isName reports whether s is valid as the name of a user or tenant.
func isName(s string) bool {
	return s != "" && len(s) <= maxUserBytes && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// reasonOf returns the reason of an error of the parser. The last ones mean that nothing but the time is
// wrong: see isGuess.
func reasonOf(err error) keystore.Reason {
	for _, r := range []struct {
		err    error
		reason keystore.Reason
	}{
		{jwt.ErrTokenMalformed, keystore.Malformed},
		{jwt.ErrTokenUnverifiable, NotSigned},
		{jwt.ErrTokenSignatureInvalid, NotSigned},
		{jwt.ErrTokenRequiredClaimMissing, keystore.Malformed},
		{jwt.ErrInvalidType, keystore.Malformed},
		{jwt.ErrTokenInvalidIssuer, NotFromThem},
		{jwt.ErrTokenInvalidAudience, NotForUs},
		{jwt.ErrTokenExpired, keystore.KeyExpired},
		{jwt.ErrTokenNotValidYet, NotYet},
	} {
		if errors.Is(err, r.err) {
			return r.reason
		}
	}
	return keystore.Malformed
}
