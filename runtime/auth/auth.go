package auth

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/internal/telemetry"
	"runner.example/keystore"
	"runner.example/schema"
	"runner.example/state/store"
)

// Options configure an Authenticator.
type Options struct {
	// Logger logs each refused credential; nil: nothing is logged.
	Logger *slog.Logger
	// Metrics counts refused credentials; nil: nothing is counted.
	Metrics *telemetry.Metrics
	// MaxStaleness is how far the store may lag behind the other nodes of its cluster while API keys,
	// platform keys and sessions in cookies are accepted: later ones may have been revoked. Beyond that
	// they are refused with the code KeyStoreStale. 0: they are accepted in any case.
	MaxStaleness time.Duration
}

// Presented is what a request says about its sender. Check keeps none of it.
type Presented struct {
	// Authorization and APIKey are header values, used if the count of their lines is 1.
	Authorization, APIKey           []byte
	AuthorizationLines, APIKeyLines int
	// Address is the client's.
	Address netip.Addr
	// Request is named in the log. Its headers are not looked at for credentials.
	Request *abi.Request

	// The fields below matter only where sessions are accepted or opened.

	// Cookie is the value of the cookie that the schema names, used if there is exactly
	// one.
	Cookie  []byte
	Cookies int
	// Method and Host are the request's. Origin and FetchSite are the values of Origin and
	// Sec-Fetch-Site, used if the count of their lines is 1.
	Method, Host                []byte
	Origin, FetchSite           []byte
	OriginLines, FetchSiteLines int
}

// Refusal is a fault with values for the headers of its answer.
type Refusal struct {
	Fault *fault.Fault
	// Scopes are the accepted scopes, separated by spaces: set with InsufficientScope.
	Scopes string
	// RetryAfter is in seconds: set with RateLimited and Unavailable.
	RetryAfter int
}

// Error gives the fault's text.
func (r *Refusal) Error() string { return r.Fault.Error() }

// Unwrap gives the fault.
func (r *Refusal) Unwrap() error { return r.Fault }

// WrongKind is the reason to refuse a credential of a kind that the route does
// not accept.
const WrongKind keystore.Reason = "wrong_kind"

// The refusals that are the same for every request.
var (
	errTwoCredentials = fault.New(fault.InvalidRequest,
		"send one credential: Authorization and X-API-Key are both present, or one of them twice")
	errNoKey = fault.New(fault.MissingCredentials,
		"this route needs an API key: send it as Authorization: Bearer or as X-API-Key")
	errNoKeyOrSession = fault.New(fault.MissingCredentials,
		"this route needs a signed-in user, or an API key: send a key as Authorization: Bearer or as X-API-Key")
	errScheme = fault.New(fault.InvalidToken,
		"the Authorization header has another scheme: send the credential as Authorization: Bearer <credential>")
	errNoSession  = fault.New(fault.MissingCredentials, "this route needs a signed-in user")
	errTwoCookies = fault.New(fault.InvalidRequest, "the session cookie is present more than once")
	errRole       = fault.New(fault.InsufficientRole,
		"the session is valid, but its user has none of the roles that this route requires")
	errCrossOrigin = fault.New(fault.CrossOrigin,
		"a page of another origin may not do this with its user's session (auth.origins lists those that may)")
	errForeignSignIn = fault.New(fault.CrossOrigin,
		"a page of another origin may not sign its user in or out here (auth.origins lists those that may)")
	errScope = fault.New(fault.InsufficientScope,
		"the API key is valid, but does not have a scope that this route requires")
	errNoKeys = fault.New(fault.Unavailable, "JWKS unavailable: retry after the time in Retry-After")
	errStale  = fault.New(fault.KeyStoreStale,
		"this server has had no connection to its cluster for too long to know whether the credential is still valid: retry after the time in Retry-After")
	errTooMany = fault.New(fault.RateLimited,
		"too many credentials from this address were refused: retry after the time in Retry-After")
)

// Authenticator checks credentials.
type Authenticator struct {
	keys     *keystore.Keystore
	store    *store.Store
	logger   *slog.Logger
	refused  telemetry.Counters // by reason
	failures failures           // guesses
	// noGuesses counts the other refused credentials, for the log alone.
	noGuesses failures
	tally     tally
	fresh     freshness
}

// New returns an authenticator of the keys. Run writes its counts to the audit in st.
func New(st *store.Store, keys *keystore.Keystore, opt Options) *Authenticator {
	a := &Authenticator{
		keys: keys, store: st,
		logger:  cmp.Or(opt.Logger, slog.New(slog.DiscardHandler)),
		refused: opt.Metrics.Counters("refused_credentials_total", "Credentials that were refused, by reason.", "reason"),
	}
	a.fresh.limit = opt.MaxStaleness
	a.fresh.read(st)
	return a
}

// Check returns the caller of the route under the schema s. The error is a *fault.Fault or,
// if headers need more values, a *Refusal. A valid key or session costs no allocation.
//
// tokens are those of the schema, nil if it has no session jwt. For a JWT signed with an
// unknown key, Check waits a short time for the provider's keys; without any keys the
// refusal is temporary.
//
// If a header has a credential, it decides, and no cookie is examined. On a route with none and other modes, a
// caller without a credential or with an invalid cookie is anonymous. So if the caller is anonymous and the request
// has a cookie, the cookie is invalid. Other invalid credentials are refused there too. A route that opens
// sessions refuses pages of other origins for every caller: such a page could sign
// its user in as another user.
//
// The result is valid as long as the keystore's epoch, read before, stays the same. If it
// has changed before the request is admitted, check again.
func (a *Authenticator) Check(ctx context.Context, s *schema.Schema, tokens *Tokens, route *schema.Route, p Presented,
	now time.Time) (caller.Caller, error) {
	who, err := a.identify(ctx, s, tokens, route, p, now)
	if err == nil && route.CreatesSession && !route.CSRFOff && crossOrigin(s, &p) {
		return caller.Caller{}, errForeignSignIn
	}
	return who, err
}

// identify is Check without the check of the origin on routes that open sessions.
func (a *Authenticator) identify(ctx context.Context, s *schema.Schema, tokens *Tokens, route *schema.Route,
	p Presented, now time.Time) (caller.Caller, error) {
	if !route.Auth.ChecksCredentials() {
		return anonymous(s, route), nil
	}
	switch lines := p.AuthorizationLines + p.APIKeyLines; {
	case lines > 1:
		return caller.Caller{}, errTwoCredentials
	case lines == 1 && tokens != nil && route.Auth.Session && p.isJWT():
		return a.checkJWT(ctx, tokens, route, p, now)
	case lines == 1:
		return a.checkKey(s, &route.Auth, p, now)
	case route.Auth.Session && p.Cookies > 0:
		who, err := a.checkSession(s, route, p, now)
		if route.Auth.None && err == keystore.ErrInvalidToken {
			return anonymous(s, route), nil
		}
		return who, err
	case route.Auth.None:
		return anonymous(s, route), nil
	case len(route.Auth.Scopes) == 0:
		return caller.Caller{}, errNoSession
	case route.Auth.Session:
		return caller.Caller{}, errNoKeyOrSession
	}
	return caller.Caller{}, errNoKey
}

// SessionOf returns the id of the session of the request's cookie, empty if it is not
// valid: for a route that opens sessions and requires none.
func (a *Authenticator) SessionOf(s *schema.Schema, p Presented) string {
	if p.Cookies != 1 {
		return ""
	}
	session, err := a.keys.VerifySession(s, p.Cookie)
	if err != nil {
		return ""
	}
	return session.ID
}

// anonymous returns the caller of a request without credentials. It has the grants of the
// scope that the route names, if any.
func anonymous(s *schema.Schema, route *schema.Route) caller.Caller {
	if scope := s.Scope(route.As); scope != nil {
		return caller.Caller{As: scope.Name, Capability: scope.System}
	}
	return caller.Caller{}
}

// checkSession returns the user of the request's cookie.
func (a *Authenticator) checkSession(s *schema.Schema, route *schema.Route, p Presented,
	now time.Time) (caller.Caller, error) {
	if p.Cookies > 1 {
		return caller.Caller{}, errTwoCookies
	}
	if a.fresh.over(a.store, now) {
		return caller.Caller{}, refusedStale()
	}
	session, err := a.keys.VerifySession(s, p.Cookie)
	if err != nil {
		return caller.Caller{}, a.refuse(p, p.Cookie, session.ID, session.Refused, now)
	}
	if !hasOneOf(session.Roles, route.Auth.Roles) {
		return caller.Caller{}, errRole
	}
	if !route.CSRFOff && crossOrigin(s, &p) {
		return caller.Caller{}, errCrossOrigin
	}
	a.keys.SawSession(session)
	return caller.Caller{
		Kind: caller.Session, UserID: session.UserID, Tenant: session.Tenant, Roles: session.Roles, SessionID: session.ID,
	}, nil
}

// checkJWT returns the user of the bearer's JWT. A page of another origin cannot send this
// header by itself, so origins are not checked.
func (a *Authenticator) checkJWT(ctx context.Context, tokens *Tokens, route *schema.Route, p Presented,
	now time.Time) (caller.Caller, error) {
	token, _ := p.credential()
	who, reason := tokens.verify(ctx, token, now)
	switch reason {
	case "":
	case noKeys: // it is unknown whether the token is valid
		return caller.Caller{}, &Refusal{Fault: errNoKeys, RetryAfter: tokens.source.wait(now)}
	default:
		return caller.Caller{}, a.refuse(p, nil, "", reason, now)
	}
	if !hasOneOf(who.Roles, route.Auth.Roles) {
		return caller.Caller{}, errRole
	}
	return who, nil
}

// isJWT reports whether the credential is a bearer token with two dots.
func (p *Presented) isJWT() bool {
	token, reason := p.credential()
	return reason == WrongKind && token != nil
}

// hasOneOf reports whether roles has one of needed, or needed is empty.
func hasOneOf(roles, needed []string) bool {
	for _, role := range needed {
		if slices.Contains(roles, role) {
			return true
		}
	}
	return len(needed) == 0
}

// checkKey returns the API key of the token in the only header.
func (a *Authenticator) checkKey(s *schema.Schema, route *schema.Auth, p Presented,
	now time.Time) (caller.Caller, error) {
	token, reason := p.credential()
	if reason == "" && len(route.Scopes) == 0 {
		reason = WrongKind
	}
	if reason != "" {
		err := a.refuse(p, token, "", reason, now)
		if token == nil && (len(route.Scopes) > 0 || route.Session && s.Auth.JWT != nil) {
			err = otherScheme(err)
		}
		return caller.Caller{}, err
	}
	if a.fresh.over(a.store, now) {
		return caller.Caller{}, refusedStale()
	}
	key, err := a.keys.Verify(token)
	if err != nil {
		return caller.Caller{}, a.refuse(p, token, key.ID, key.Refused, now)
	}
	scope := s.ScopeOf(key.Scope, key.Capability)
	if scope == nil || !slices.Contains(route.Scopes, scope.Name) {
		return caller.Caller{}, &Refusal{Fault: errScope, Scopes: strings.Join(route.Scopes, " ")}
	}
	return caller.Caller{
		Kind: caller.APIKey, Tenant: key.Tenant, KeyID: key.ID,
		Scope: scope.Name, Capability: scope.System, Metadata: key.Metadata,
	}, nil
}

// credential returns the token of the only header line. A reason means that it cannot be an
// API key: it is not a bearer token, or a JWT (with two dots).
func (p *Presented) credential() (token []byte, reason keystore.Reason) {
	if p.APIKeyLines > 0 {
		return p.APIKey, ""
	}
	scheme, rest, _ := bytes.Cut(p.Authorization, []byte(" "))
	if !bytes.EqualFold(scheme, []byte("Bearer")) {
		return nil, WrongKind
	}
	token = bytes.TrimLeft(rest, " ")
	if bytes.Count(token, []byte(".")) == 2 {
		return token, WrongKind
	}
	return token, ""
}

// otherScheme is the refusal err of a header that has no bearer token. The client knows what it sent, so the message
// may say so.
func otherScheme(err error) error {
	if err == keystore.ErrInvalidToken {
		return errScheme
	}
	return err // too many guesses
}

// isGuess reports whether a credential that was refused for this reason counts towards the limit of its
// address. Many users share an address, so these do not count: a credential that was genuine, and whose
// time alone is over, because its page signs in again after a 401; and a JWT with an unknown key, which the
// provider may have published since the last fetch. Nobody can make a credential of the first kind.
func isGuess(reason keystore.Reason) bool {
	switch reason {
	case keystore.KeyExpired, keystore.GraceOver, keystore.Idle, NotYet, UnknownKey:
		return false
	}
	return true
}

// refuse records a credential that is not valid, with the id of its key or session if
// known, and returns the refusal: the same for all, until the address has had too many guesses.
func (a *Authenticator) refuse(p Presented, token []byte, id string, reason keystore.Reason, now time.Time) error {
	network := networkOf(p.Address)
	counted, guess := &a.noGuesses, isGuess(reason)
	if guess {
		counted = &a.failures
	}
	wait, repeated := counted.add(network, now)
	a.refused.With(string(reason)).Inc()
	a.tally.add(source{network, reason}, a.keys.Now())
	if isLogged(repeated) {
		a.log(p, token, id, reason, repeated)
	}
	if wait > 0 && guess {
		return &Refusal{Fault: errTooMany, RetryAfter: wait}
	}
	return keystore.ErrInvalidToken
}

// isLogged reports whether the nth refusal of one network in a minute is logged: the first
// ones, then ever fewer.
func isLogged(n int) bool { return n <= loggedEach || n&(n-1) == 0 }

// log logs a refused credential.
func (a *Authenticator) log(p Presented, token []byte, id string, reason keystore.Reason, repeated int) {
	attrs := []slog.Attr{
		p.Request.LogID(),
		slog.String("reason", string(reason)),
		slog.String("address", text(p.Address)),
	}
	if prefix := prefixOf(token); prefix != "" {
		attrs = append(attrs, slog.String("prefix", prefix))
	}
	switch {
	case id == "":
	case strings.HasPrefix(id, "ses_"):
		attrs = append(attrs, slog.String("sessionId", id))
	default:
		attrs = append(attrs, slog.String("keyId", id))
	}
	if repeated > loggedEach {
		attrs = append(attrs, slog.Int("repeated", repeated))
	}
	a.logger.LogAttrs(context.Background(), slog.LevelInfo, "credential refused", attrs...)
}

// prefixOf returns the text before the underscore of what looks like a token, such as
// "rnk".
func prefixOf(token []byte) string {
	prefix, _, found := bytes.Cut(token, []byte("_"))
	if !found || len(prefix) < 2 || len(prefix) > 8 {
		return ""
	}
	for _, c := range prefix {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return ""
		}
	}
	return string(prefix)
}

// networkOf returns the network that failures are counted for: the address, or the /64 of
// IPv6, which one customer has.
func networkOf(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if !address.Is6() {
		return address
	}
	prefix, _ := address.Prefix(64) // fails only for too many bits
	return prefix.Addr()
}

// text returns the address as text, "" if there is none.
func text(address netip.Addr) string {
	if !address.IsValid() {
		return ""
	}
	return address.String()
}
