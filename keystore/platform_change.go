package keystore

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/state/store"
)

// The answers to operations on platform keys that cannot be done.
var (
	errNotOperator   error = fault.New(fault.Denied, "only an operator may manage platform keys")
	errNoPlatformKey error = fault.New(fault.NotFound, "there is no platform key with this id").
				WithHint("runner keys list --all shows every platform key")
)

// CreatePlatformKey describes a new platform key.
type CreatePlatformKey struct {
	// Name is a label of 1-120 characters.
	Name string
	Role Role
	// ExpiresIn is the key's lifetime, exact to a millisecond; nil: it has no end.
	ExpiresIn *time.Duration
}

// Check reports why Create would refuse a request. The fault is Invalid.
func (r CreatePlatformKey) Check() error {
	switch {
	case r.Name == "":
		return fault.New(fault.Invalid, "name is missing: it says in lists whose key it is")
	case !slices.Contains(Roles(), r.Role):
		var names []string
		for _, role := range Roles() {
			names = append(names, string(role))
		}
		return fault.New(fault.Invalid, "role must be one of %s, not %q%s", strings.Join(names, ", "), string(r.Role),
			diag.DidYouMean(string(r.Role), names))
	case r.ExpiresIn != nil && *r.ExpiresIn < time.Millisecond:
		return fault.New(fault.Invalid, "expiresIn must be positive: leave it out for a key without an end")
	}
	return CheckLine("name", r.Name)
}

// Create creates a key in tx and returns it with its token, which is not stored and cannot be
// read again. It needs no schema. Faults: Denied (not an operator), Invalid (the request),
// Unavailable (the time is not known).
func (p *PlatformKeys) Create(tx *store.Tx, a Authority, req CreatePlatformKey) (PlatformKey, error) {
	if !a.isOperator() {
		return PlatformKey{}, errNotOperator
	}
	now, err := p.of.clock.ForNew()
	if err != nil {
		return PlatformKey{}, err
	}
	if err := req.Check(); err != nil {
		return PlatformKey{}, err
	}
	token := NewToken(platformPrefix)
	r := &platformRecord{ID: newID(platformIDs, now), Name: req.Name, Role: req.Role, Created: now}
	r.setToken(p.macs.record(token))
	if req.ExpiresIn != nil {
		r.Expires = now + req.ExpiresIn.Milliseconds()
	}
	key, err := p.commit(tx, a, "platformKeys.create", r, now)
	key.Token = token
	return key, err
}

// Rotate gives the key a new token in tx and returns it with the key. With a grace of 0 every older
// token ends at once. Otherwise each older token ends after the grace, or at its own end or the key's
// if that is sooner. Faults: Denied (not an operator), NotFound, Conflict (the key is dead, or has too
// many live tokens), Invalid (the grace), Unavailable (the time is not known).
func (p *PlatformKeys) Rotate(tx *store.Tx, a Authority, id string, grace time.Duration) (PlatformKey, error) {
	if !a.isOperator() {
		return PlatformKey{}, errNotOperator
	}
	now, err := p.of.clock.ForNew()
	if err != nil {
		return PlatformKey{}, err
	}
	r, err := reachPlatform(tx, id)
	if err != nil {
		return PlatformKey{}, err
	}
	if err := checkGrace(grace, longestGrace); err != nil {
		return PlatformKey{}, err
	}
	if status := r.status(now); status == Revoked || status == Expired {
		return PlatformKey{}, errCannotRotate(status)
	}
	if r.Old, err = inGrace(r.tokens(), r.Expires, now, grace); err != nil {
		return PlatformKey{}, err
	}
	token := NewToken(platformPrefix)
	r.setToken(p.macs.record(token))
	r.Rotated = now
	key, err := p.commit(tx, a, "platformKeys.rotate", r, now)
	key.Token = token
	return key, err
}

// Revoke ends the key permanently, and returns it. Revoking a revoked key changes nothing. Faults:
// Denied, NotFound.
func (p *PlatformKeys) Revoke(tx *store.Tx, a Authority, id string) (PlatformKey, error) {
	if !a.isOperator() {
		return PlatformKey{}, errNotOperator
	}
	return p.revokeAt(tx, a, id, p.of.clock.Now())
}

func (p *PlatformKeys) revokeAt(tx *store.Tx, a Authority, id string, now int64) (PlatformKey, error) {
	r, err := reachPlatform(tx, id)
	if err != nil {
		return PlatformKey{}, err
	}
	if r.Revoked != 0 {
		return p.keyAt(tx, r, now)
	}
	r.Revoked = now
	return p.commit(tx, a, "platformKeys.revoke", r, now)
}

// List returns the keys without tokens, the oldest first; with all, also those that have expired
// or were revoked and are not deleted yet. The fault is Denied.
func (p *PlatformKeys) List(tx *store.Tx, a Authority, all bool) ([]PlatformKey, error) {
	if !a.isOperator() {
		return nil, errNotOperator
	}
	now := p.of.clock.Latest()
	var keys []PlatformKey
	for item, err := range tx.Scan([]byte(prefixPlatform), nil, false) {
		if err != nil {
			return nil, err
		}
		r, err := decodePlatform(item.Value)
		if err != nil {
			return nil, fmt.Errorf("read platform key %s: %w", item.Key[len(prefixPlatform):], err)
		}
		key, err := p.keyAt(tx, r, now)
		if err != nil {
			return nil, err
		}
		if all || key.Status == Active || key.Status == Rotating {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// commit writes the changed key and its audit record, which names the role of a new key, to tx.
func (p *PlatformKeys) commit(tx *store.Tx, a Authority, action string, r *platformRecord,
	now int64) (PlatformKey, error) {
	value, err := json.Marshal(r)
	if err != nil {
		return PlatformKey{}, fmt.Errorf("encode platform key %s: %w", r.ID, err)
	}
	if err := tx.Set(platformKeyOf(r.ID), value); err != nil {
		return PlatformKey{}, err
	}
	if err := a.recordWith(tx, action, r.ID, "role "+string(r.Role)); err != nil {
		return PlatformKey{}, err
	}
	return p.keyAt(tx, r, now)
}

// keyAt returns the key of a record as of now, without a token.
func (p *PlatformKeys) keyAt(tx *store.Tx, r *platformRecord, now int64) (PlatformKey, error) {
	used, err := p.of.lastUse(tx, r.ID)
	if err != nil {
		return PlatformKey{}, fmt.Errorf("read last use of %s: %w", r.ID, err)
	}
	key := PlatformKey{
		ID: r.ID, Name: r.Name, Role: r.Role, Status: r.status(now), Hint: r.Hint,
		Times: Times{
			CreatedAt: timeOf(r.Created), ExpiresAt: timeOf(r.Expires), RotatedAt: timeOf(r.Rotated),
			RevokedAt: timeOf(r.Revoked), LastUsedAt: timeOf(used),
		},
	}
	if key.Status == Rotating {
		key.PreviousTokenExpiresAt = timeOf(graceEnd(r.Old, now))
	}
	return key, nil
}

// platformRecord is a platform key as the store holds it. Times are ms since 1970, 0: not set.
type platformRecord struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Role    Role   `json:"role"`
	Created int64  `json:"created"`
	Expires int64  `json:"expires,omitempty"`
	Rotated int64  `json:"rotated,omitempty"`
	Revoked int64  `json:"revoked,omitempty"`
	// MAC is the HMAC of the newest token under a key derived from the pepper.
	MAC  []byte `json:"mac"`
	Hint string `json:"hint"`
	// Old has the older tokens, the newest first. A version that does not know them refuses them.
	Old []tokenRecord `json:"old,omitempty"`
}

func decodePlatform(value []byte) (*platformRecord, error) {
	r := &platformRecord{}
	if err := json.Unmarshal(value, r); err != nil {
		return nil, err
	}
	if r.ID == "" || !slices.Contains(Roles(), r.Role) {
		return nil, errors.New("it has no id or no role")
	}
	for _, t := range r.tokens() {
		if len(t.MAC) != sha256.Size {
			return nil, fmt.Errorf("a token's HMAC has %d bytes", len(t.MAC))
		}
	}
	return r, nil
}

// reachPlatform returns the key with that id. The fault is NotFound.
func reachPlatform(tx *store.Tx, id string) (*platformRecord, error) {
	if !validID(platformIDs, id) {
		return nil, errNoPlatformKey
	}
	r, err := readPlatform(tx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, errNoPlatformKey
	}
	return r, err
}

// readPlatform returns the key with that id; store.ErrNotFound if there is none.
func readPlatform(tx *store.Tx, id string) (*platformRecord, error) {
	value, err := tx.Get(platformKeyOf(id))
	if err != nil {
		return nil, err
	}
	r, err := decodePlatform(value)
	if err != nil {
		return nil, fmt.Errorf("read platform key %s: %w", id, err)
	}
	return r, nil
}

// setToken sets the newest token.
func (r *platformRecord) setToken(t tokenRecord) { r.MAC, r.Hint = t.MAC, t.Hint }

// tokens returns all tokens, the newest first.
func (r *platformRecord) tokens() []tokenRecord {
	return append([]tokenRecord{{MAC: r.MAC, Hint: r.Hint}}, r.Old...)
}

func (r *platformRecord) status(now int64) Status {
	switch {
	case r.Revoked != 0:
		return Revoked
	case now >= orEndless(r.Expires):
		return Expired
	case graceEnd(r.Old, now) != 0:
		return Rotating
	}
	return Active
}

// end returns the end of the key, in ms.
func (r *platformRecord) end() int64 {
	if r.Revoked != 0 {
		return r.Revoked
	}
	return orEndless(r.Expires)
}

func platformKeyOf(id string) []byte { return []byte(prefixPlatform + id) }
