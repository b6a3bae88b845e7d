package auth

import (
	"context"
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
	place  string // an https URL, or a file
	client *http.Client
	logger *slog.Logger

	set atomic.Pointer[keySet]

	mu      sync.Mutex
	tried   time.Time
	pending chan struct{} // closed when the attempt under way has ended
}

func newKeySource(place string, client *http.Client, logger *slog.Logger) *keySource {
	own := *client
	own.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != via[0].URL.Scheme || len(via) > 3 {
			return errors.New("the redirect leads away from https, or to no end")
		}
		return nil
	}
	own.Timeout = fetchTime
	return &keySource{place: place, client: &own, logger: logger}
}

// run keeps the keys fresh until ctx ends.
func (s *keySource) run(ctx context.Context) {
	for {
		wait := refreshEvery
		if !s.refresh(ctx, time.Now()) {
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

// current gives the last good set, nil when that is too old.
func (s *keySource) current(now time.Time) *keySet {
	set := s.set.Load()
	if set == nil || now.Sub(set.fetched) > keepKeys {
		return nil
	}
	return set
}

// refresh gets the keys anew, at most once in retryAfter for all who ask; who comes
// while that is being done waits for its end. It reports whether the set is as fresh
// as that now.
func (s *keySource) refresh(ctx context.Context, now time.Time) bool {
	s.mu.Lock()
	if pending := s.pending; pending != nil {
		s.mu.Unlock()
		select {
		case <-pending:
		case <-ctx.Done():
		}
		return s.isFresh(now)
	}
	if !s.tried.IsZero() && now.Sub(s.tried) < retryAfter {
		s.mu.Unlock()
		return s.isFresh(now)
	}
	done := make(chan struct{})
	s.tried, s.pending = now, done
	s.mu.Unlock()

	// The request that asked may go away; the others that wait must not suffer.
	fetching, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime)
	defer cancel()
	set, err := s.fetch(fetching, now)
	if err == nil {
		s.set.Store(set)
	} else {
		s.logger.Warn("get the keys of the identity provider", "jwks", s.place, "cause", err)
	}
	s.mu.Lock()
	s.pending = nil
	s.mu.Unlock()
	close(done)
	return err == nil
}

func (s *keySource) isFresh(now time.Time) bool {
	set := s.set.Load()
	return set != nil && now.Sub(set.fetched) < retryAfter
}

func (s *keySource) fetch(ctx context.Context, now time.Time) (*keySet, error) {
	text, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	var document jwkset.JWKSMarshal
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("it is no JWKS: %w", err)
	}
	if len(document.Keys) > maxSetKeys {
		return nil, fmt.Errorf("it has more than %d keys", maxSetKeys)
	}
	set := &keySet{fetched: now}
	for _, jwk := range document.Keys {
		if key, ok := usable(jwk); ok {
			set.keys = append(set.keys, key)
		}
	}
	if len(set.keys) == 0 {
		return nil, errors.New("it has no key that could verify a signature")
	}
	return set, nil
}

func (s *keySource) read(ctx context.Context) ([]byte, error) {
	if !strings.Contains(s.place, "://") {
		return os.ReadFile(s.place)
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
		return nil, fmt.Errorf("the answer has status %d", answer.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxSetBytes+1))
	if err == nil && len(text) > maxSetBytes {
		err = fmt.Errorf("it has more than %d bytes", maxSetBytes)
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
