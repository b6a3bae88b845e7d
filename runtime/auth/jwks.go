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
)

const (
	refreshEvery = 15 * time.Minute // of a provider's keys
	retryAfter   = time.Minute      // of an attempt to get them, whatever for
	keepKeys     = 24 * time.Hour   // that cannot be refreshed
	fetchTime    = 10 * time.Second
	requestWaits = 2 * time.Second // at most, for keys
	maxSetBytes  = 1 << 20
	maxSetKeys   = 100
	minRSABits   = 2048
)

// keySet is what a provider published at one time. Nothing changes it but what is
// remembered about tokens.
type keySet struct {
	keys    []publicKey
	fetched time.Time

	// known holds what tokens that were verified with these keys say, by the SHA-256
	// of the token, so that each is verified once. There are at most maxKnown.
	known sync.Map
	count atomic.Int64
}

// publicKey is one that verifies signatures.
type publicKey struct {
	id         string
	key        any      // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
	algorithms []string // that it may be used with
}

// find gives the key for a token. One that names none is for a set that has but one
// key of its algorithm.
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

// keySource has a provider's keys (JWKS, RFC 7517) and keeps them fresh.
type keySource struct {
	place  string // a URL, or a file
	client *http.Client
	logger *slog.Logger

	set atomic.Pointer[keySet]

	ended    context.Context // when run has ended: nothing is begun any more
	end      context.CancelFunc
	attempts sync.WaitGroup // under way; one at a time

	mu      sync.Mutex
	tried   time.Time
	pending chan struct{} // closed when the attempt under way has ended
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

// isFile reports that the keys are not fetched.
func (s *keySource) isFile() bool { return !strings.Contains(s.place, "://") }

// run keeps the keys fresh until ctx ends. After that none are got.
func (s *keySource) run(ctx context.Context) {
	defer s.attempts.Wait()
	defer s.stop()
	for {
		wait := refreshEvery
		if !s.refresh(ctx, time.Now(), fetchTime) {
			wait = retryAfter
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// stop ends the attempt under way, and lets none begin.
func (s *keySource) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

// current gives the last good set, nil when that is too old.
func (s *keySource) current(now time.Time) *keySet {
	set := s.set.Load()
	if set == nil || now.Sub(set.fetched) > keepKeys {
		return nil
	}
	return set
}

// refresh gets the keys anew, at most once in retryAfter for all who ask, and waits for
// that no longer than limit; it is not ended by who asked and goes away. It reports
// whether the set is as fresh as that now.
func (s *keySource) refresh(ctx context.Context, now time.Time, limit time.Duration) bool {
	s.mu.Lock()
	if s.pending == nil && s.retryIn(now) <= 0 && s.ended.Err() == nil {
		done := make(chan struct{})
		s.tried, s.pending = now, done
		s.attempts.Go(func() { s.attempt(now, done) })
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

// attempt gets the keys, and closes done when that has ended.
func (s *keySource) attempt(now time.Time, done chan struct{}) {
	ctx, cancel := context.WithTimeout(s.ended, fetchTime)
	defer cancel()
	if err := s.fetch(ctx, now); err != nil && s.ended.Err() == nil {
		s.logger.Warn("jwks refresh failed", "jwks", s.place, "cause", err)
	}
	s.mu.Lock()
	s.pending = nil
	s.mu.Unlock()
	close(done)
}

// retryIn is how long nobody gets the keys anew, not above zero when they may be. s.mu
// is held, or nothing else uses s.
func (s *keySource) retryIn(now time.Time) time.Duration {
	if s.tried.IsZero() {
		return 0
	}
	return retryAfter - now.Sub(s.tried)
}

// wait is in how many seconds who lacks the keys may come again.
func (s *keySource) wait(now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(1, int((s.retryIn(now)+time.Second-1)/time.Second))
}

func (s *keySource) isFresh(now time.Time) bool {
	set := s.set.Load()
	return set != nil && now.Sub(set.fetched) < retryAfter
}

// fetch takes over what the provider publishes now.
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

// readKeys gives the keys of a JWKS that can verify signatures. A key that cannot be
// read, or is of a kind that is not known, is none of them (RFC 7517, section 5).
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

// isSame reports that the keys are one, published twice.
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

// usable gives a key that is for signatures, and of a kind and size that one should
// use. A set may hold others, for other purposes.
func usable(jwk jwkset.JWKMarshal) (publicKey, bool) {
	if jwk.USE != "" && jwk.USE != jwkset.UseSig || len(jwk.KEYOPS) > 0 && !slices.Contains(jwk.KEYOPS, jwkset.KeyOpsVerify) {
		return publicKey{}, false
	}
	// A certificate beside the key is not asked for and not fetched.
	jwk.X5C, jwk.X5T, jwk.X5TS256, jwk.X5U = nil, "", "", ""
	parsed, err := jwkset.NewJWKFromMarshal(jwk, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{SkipKeyOps: true, SkipUse: true})
	if err != nil {
		return publicKey{}, false
	}
	key := publicKey{id: jwk.KID, key: parsed.Key()}
	switch k := key.key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() >= minRSABits {
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
