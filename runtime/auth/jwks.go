package auth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"

	"runner.example/internal/clock"
	"runner.example/internal/wait"
)

const (
	refreshEvery = 15 * time.Minute // of a provider's keys
	firstPause   = time.Second      // after an attempt to fetch them that brought nothing new; doubled each time
	longestPause = time.Minute
	keepKeys     = 24 * time.Hour // without a successful refresh
	fetchTime    = 10 * time.Second
	requestWaits = 2 * time.Second // at most, for keys
	maxSetBytes  = 1 << 20
	maxSetKeys   = 100
	minRSABits   = 2048
	maxRSABits   = 8192 // as in TLS: the time of a verification grows with its square
)

// keySet has the keys that a provider published at one time. Only its cache of tokens
// changes.
type keySet struct {
	keys    []publicKey
	fetched time.Time

	// known has the contents of tokens that were verified with these keys, by the SHA-256
	// of the token, so that each is verified once. It has at most maxKnown entries.
	known sync.Map
	count atomic.Int64
}

// publicKey is a key that verifies signatures.
type publicKey struct {
	id         string
	key        any      // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
	algorithms []string // that it may be used with
}

// find returns the key for a token. A token without a key id matches only if the set has
// exactly one key of its algorithm.
func (s *keySet) find(id string, named bool, algorithm string) (found *publicKey) {
	for i := range s.keys {
		k := &s.keys[i]
		switch {
		case !slices.Contains(k.algorithms, algorithm) || named && k.id != id:
		case found != nil:
			return nil
		default:
			found = k
		}
	}
	return found
}

// has reports whether the set has a key with that id.
func (s *keySet) has(id string) bool {
	return slices.ContainsFunc(s.keys, func(k publicKey) bool { return k.id == id })
}

// keySource fetches a provider's keys (JWKS, RFC 7517) and refreshes them.
type keySource struct {
	place  string // a URL, or a file
	client *http.Client
	logger *slog.Logger

	set   atomic.Pointer[keySet]
	fixed *keySet // of TokenOptions.Keys; nil: they are fetched

	ended    context.Context // run has ended: no attempt may begin
	end      context.CancelFunc
	attempts sync.WaitGroup // in progress; one at a time

	mu      sync.Mutex
	tried   time.Time     // the last attempt that brought no other keys
	pause   time.Duration // after tried until the next attempt
	pending chan struct{} // closed when the current attempt has ended
}

func newKeySource(place string, client *http.Client, logger *slog.Logger) *keySource {
	own := *client
	own.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != via[0].URL.Scheme || len(via) > 3 {
			return errors.New("redirected away from https, or too often")
		}
		return nil
	}
	own.Timeout = fetchTime
	s := &keySource{place: place, client: &own, logger: logger}
	s.ended, s.end = context.WithCancel(context.Background())
	return s
}

// isFile reports whether the keys are read from a file.
func (s *keySource) isFile() bool { return !strings.Contains(s.place, "://") }

// run refreshes the keys until ctx ends. After that they are not fetched.
func (s *keySource) run(ctx context.Context) {
	defer s.attempts.Wait()
	defer s.stop()
	for {
		next := refreshEvery
		if !s.refresh(ctx, clock.Mark(), fetchTime, true) {
			next = longestPause
		}
		if wait.For(ctx, next) != nil {
			return
		}
	}
}

// stop cancels the current attempt and prevents new ones.
func (s *keySource) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

// current returns the last valid set, nil if it is too old.
func (s *keySource) current(now time.Time) *keySet {
	if s.fixed != nil {
		return s.fixed
	}
	set := s.set.Load()
	if set == nil || now.Sub(set.fetched) > keepKeys {
		return nil
	}
	return set
}

// refresh fetches the keys, unless the pause after the last attempt lasts, and waits at most
// limit. The fetch continues when the caller goes away. An attempt that is not periodic is
// for a token whose key is not in the set. refresh reports whether the set is now up to date.
func (s *keySource) refresh(ctx context.Context, now time.Time, limit time.Duration, periodic bool) bool {
	if s.fixed != nil {
		return true
	}
	s.mu.Lock()
	if s.pending == nil && s.retryIn(now) <= 0 && s.ended.Err() == nil {
		done := make(chan struct{})
		s.pending = done
		s.attempts.Go(func() { s.attempt(now, done, periodic) })
	}
	pending := s.pending
	s.mu.Unlock()
	if pending != nil {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		select {
		case <-pending:
		case <-ctx.Done():
		}
	}
	return s.isFresh(now)
}

// attempt fetches the keys, and closes done at its end.
func (s *keySource) attempt(now time.Time, done chan struct{}, periodic bool) {
	ctx, cancel := context.WithTimeout(s.ended, fetchTime)
	defer cancel()
	before := s.set.Load()
	err := s.fetch(ctx, now)
	if err != nil && s.ended.Err() == nil {
		s.logger.Warn("jwks refresh failed", "jwks", s.place, "cause", err)
	}
	s.mu.Lock()
	switch {
	case err == nil && !s.set.Load().hasKeysOf(before): // the provider has other keys
		s.pause = 0
	case err != nil || !periodic:
		if now.Sub(s.tried) > 2*longestPause {
			s.pause = 0
		}
		s.tried, s.pause = now, min(max(firstPause, 2*s.pause), longestPause)
	}
	s.pending = nil
	s.mu.Unlock()
	close(done)
}

// hasKeysOf reports whether the sets have the same keys, in any order.
func (s *keySet) hasKeysOf(other *keySet) bool {
	if other == nil || len(s.keys) != len(other.keys) {
		return false
	}
	for _, k := range other.keys {
		if !slices.ContainsFunc(s.keys, k.isSame) {
			return false
		}
	}
	return true
}

// retryIn returns the time until the keys may be fetched again, zero or less if they may
// now. s.mu is held, or nothing else uses s.
func (s *keySource) retryIn(now time.Time) time.Duration {
	if s.tried.IsZero() {
		return 0
	}
	return s.pause - now.Sub(s.tried)
}

// wait returns the number of seconds for Retry-After while the keys are unavailable.
func (s *keySource) wait(now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(1, int((s.retryIn(now)+time.Second-1)/time.Second))
}

func (s *keySource) isFresh(now time.Time) bool {
	set := s.set.Load()
	return set != nil && now.Sub(set.fetched) < longestPause
}

// fetch replaces the keys by what the provider publishes now.
func (s *keySource) fetch(ctx context.Context, now time.Time) error {
	text, err := s.read(ctx)
	if err != nil {
		return err
	}
	keys, err := readKeys(text)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		s.logger.Warn("jwks without usable keys; all tokens are rejected", "jwks", s.place)
	}
	s.set.Store(&keySet{keys: keys, fetched: now})
	return nil
}

// readKeys returns the keys of a JWKS that can verify signatures. Keys that cannot be read
// or are of an unknown kind are skipped (RFC 7517, section 5).
func readKeys(text []byte) ([]publicKey, error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	switch err := json.Unmarshal(text, &document); {
	case err != nil:
		return nil, fmt.Errorf("invalid JWKS: %w", err)
	case document.Keys == nil:
		return nil, errors.New("invalid JWKS: no member keys")
	case len(document.Keys) > maxSetKeys:
		return nil, fmt.Errorf("more than %d keys", maxSetKeys)
	}
	var keys []publicKey
	for _, raw := range document.Keys {
		var jwk jwkset.JWKMarshal
		if json.Unmarshal(raw, &jwk) != nil {
			continue
		}
		if key, ok := usable(jwk); ok && !slices.ContainsFunc(keys, key.isSame) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// isSame reports whether the keys are equal.
func (k publicKey) isSame(other publicKey) bool {
	key, ok := k.key.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.id == other.id && key.Equal(other.key) && slices.Equal(k.algorithms, other.algorithms)
}

func (s *keySource) read(ctx context.Context) ([]byte, error) {
	if s.isFile() {
		return readKeyFile(s.place)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.place, nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the response has status %d", answer.StatusCode)
	}
	return readBounded(answer.Body)
}

func readKeyFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readBounded(file)
}

func readBounded(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSetBytes+1))
	if err == nil && len(text) > maxSetBytes {
		err = fmt.Errorf("more than %d bytes", maxSetBytes)
	}
	return text, err
}

// usable returns a key for signatures of a safe kind and size. A set may have keys for
// other purposes.
func usable(jwk jwkset.JWKMarshal) (publicKey, bool) {
	if jwk.USE != "" && jwk.USE != jwkset.UseSig ||
		len(jwk.KEYOPS) > 0 && !slices.Contains(jwk.KEYOPS, jwkset.KeyOpsVerify) {
		return publicKey{}, false
	}
	// A certificate beside the key is neither required nor fetched.
	jwk.X5C, jwk.X5T, jwk.X5TS256, jwk.X5U = nil, "", "", ""
	parsed, err := jwkset.NewJWKFromMarshal(jwk, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{
		SkipKeyOps: true, SkipUse: true,
	})
	if err != nil {
		return publicKey{}, false
	}
	key := publicKey{id: jwk.KID, key: parsed.Key()}
	switch k := key.key.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits >= minRSABits && bits <= maxRSABits {
			key.algorithms = []string{"RS256", "PS256"}
		}
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			key.algorithms = []string{"ES256"}
		}
	case ed25519.PublicKey:
		key.algorithms = []string{"EdDSA"}
	}
	if alg := string(jwk.ALG); alg != "" {
		if !slices.Contains(key.algorithms, alg) {
			return publicKey{}, false
		}
		key.algorithms = []string{alg}
	}
	return key, len(key.algorithms) > 0
}
