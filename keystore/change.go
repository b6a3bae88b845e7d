package keystore

import (
	"encoding/json"
	"errors"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/internal/secret"
	"runner.example/schema"
	"runner.example/state/store"
)

const (
	// maxLiveTokens bounds how many tokens of one key are valid at a time.
	maxLiveTokens = 5
	// longestGrace is the limit even if a schema allows more.
	longestGrace = 30 * 24 * time.Hour
)

// CreateRequest describes a new key.
type CreateRequest struct {
	// Scope is the name of a declared scope.
	Scope string
	// Name is a label of at most 120 characters; empty: none.
	Name string
	// ExpiresIn is the key's lifetime, exact to a millisecond. nil: the schema's
	// defaultLifetime, else its maxLifetime, else no end.
	ExpiresIn *time.Duration
	// Metadata is a JSON object of at most 16 KiB; nil or null: none.
	Metadata json.RawMessage
	// Tenant is the key's tenant; empty: none. Only an operator may set it.
	Tenant string
}

// Create creates a key in tx and returns it with its token, which is not stored and
// cannot be read again. A handler's key belongs to its caller's tenant and to the caller. Faults:
// Invalid (the request is not valid), Denied (the caller may not issue keys of this scope),
// Conflict (the tenant is at its limit of keys), Unavailable (the time is not known).
func (k *Keystore) Create(tx *store.Tx, a Authority, req CreateRequest) (Key, error) {
	now, err := k.clock.ForNew()
	if err != nil {
		return Key{}, err
	}
	r, err := a.newRecord(req, now)
	if err != nil {
		k.logNoIssueRule(a, req.Scope, err)
		return Key{}, err
	}
	if err := countNew(tx, a, r, now); err != nil {
		return Key{}, err
	}
	r.ID = newID(keyIDs, now)
	token := NewToken(a.Schema.APIKeys.Prefix)
	r.Tokens = []tokenRecord{k.macs.record(token)}
	return k.commit(tx, a, "apiKeys.create", r, now, token)
}

// Check reports why Create would refuse a request, as far as that does not depend on other
// keys. The faults are those of Create.
func (a Authority) Check(req CreateRequest) error {
	_, err := a.newRecord(req, 0)
	return err
}

// newRecord returns the record of a key created now, without id and token.
func (a Authority) newRecord(req CreateRequest, now int64) (*record, error) {
	scope, err := a.scope(req.Scope)
	if err != nil {
		return nil, err
	}
	if err := a.checkIssue(scope.Name, scope); err != nil {
		return nil, err
	}
	r := &record{Scope: scope.Name, Capability: scope.System, Name: req.Name, Created: now}
	r.OwnerKind, r.Owner = a.owner()
	if r.Tenant, err = a.tenant(req.Tenant, scope); err != nil {
		return nil, err
	}
	if err := CheckLine("name", req.Name); err != nil {
		return nil, err
	}
	if r.Metadata, err = checkMetadata(req.Metadata); err != nil {
		return nil, err
	}
	if r.Expires, err = expiry(now, req.ExpiresIn, a.Schema.APIKeys); err != nil {
		return nil, err
	}
	return r, nil
}

// logNoIssueRule logs, once for each scope and schema, that a caller was refused because the
// scope has no @issue.
func (k *Keystore) logNoIssueRule(a Authority, scope string, err error) {
	if !errors.Is(err, errNoIssueRule) {
		return
	}
	if last, _ := k.warnedScopes.Swap(scope, a.Schema); last != a.Schema {
		k.logger.Warn("key not issued: its scope has no @issue", "scope", scope, "line", a.issueLine(),
			"requestId", a.RequestID)
	}
}

// Rotate gives the key a new token in tx and returns it with the key. With a grace of 0
// every older token ends at once. Otherwise each older token ends after the grace, or at its own
// end or the key's if that is sooner. Faults: NotFound (the caller reaches no such key), Denied
// (the caller may not issue keys of its scope), Conflict (the key is dead, disabled, or has too
// many live tokens), Invalid (the grace), Unavailable (the time is not known).
func (k *Keystore) Rotate(tx *store.Tx, a Authority, id string, grace time.Duration) (Key, error) {
	now, err := k.clock.ForNew()
	if err != nil {
		return Key{}, err
	}
	r, err := k.reach(tx, a, id)
	if err != nil {
		return Key{}, err
	}
	if a.Schema == nil {
		return Key{}, fault.New(fault.Invalid, "no schema is active: activate one before keys are rotated")
	}
	if err := a.checkIssue(r.Scope, a.Schema.ScopeOf(r.Scope, r.Capability)); err != nil {
		k.logNoIssueRule(a, r.Scope, err)
		return Key{}, err
	}
	if err := checkGrace(grace, a.Schema.APIKeys.MaxGrace); err != nil {
		return Key{}, err
	}
	if status := r.status(now); status == Disabled {
		return Key{}, fault.New(fault.Conflict, "the key is disabled: enable it, then rotate it")
	} else if status == Revoked || status == Expired {
		return Key{}, errCannotRotate(status)
	}
	token := NewToken(a.Schema.APIKeys.Prefix)
	kept, err := inGrace(r.Tokens, r.Expires, now, grace)
	if err != nil {
		return Key{}, err
	}
	r.Tokens = append([]tokenRecord{k.macs.record(token)}, kept...)
	r.Rotated = now
	return k.commit(tx, a, "apiKeys.rotate", r, now, token)
}

// Revoke ends the key and all its tokens permanently, and returns it. Revoking a revoked
// key changes nothing. The fault is NotFound.
func (k *Keystore) Revoke(tx *store.Tx, a Authority, id string) (Key, error) {
	now := k.clock.Now()
	r, err := k.reach(tx, a, id)
	if err != nil {
		return Key{}, err
	}
	if r.Revoked != 0 {
		return k.keyAt(tx, r, now)
	}
	r.Revoked = now
	return k.commit(tx, a, "apiKeys.revoke", r, now, secret.Token{})
}

// Disable makes the key invalid until Enable, and returns it. Only an operator may call it.
// Disabling a disabled key changes nothing. Faults: Denied, NotFound,
// Conflict (the key is dead).
func (k *Keystore) Disable(tx *store.Tx, a Authority, id string) (Key, error) {
	return k.setDisabled(tx, a, id, true, "apiKeys.disable")
}

// Enable undoes Disable, and returns the key. Only an operator may call it. Enabling a
// key that is not disabled changes nothing. Faults: Denied, NotFound, Conflict
// (the key is dead).
func (k *Keystore) Enable(tx *store.Tx, a Authority, id string) (Key, error) {
	return k.setDisabled(tx, a, id, false, "apiKeys.enable")
}

func (k *Keystore) setDisabled(tx *store.Tx, a Authority, id string, disabled bool, action string) (Key, error) {
	if a.Caller.Kind != caller.System {
		return Key{}, fault.New(fault.Denied, "only an operator may disable or enable a key")
	}
	now := k.clock.Latest()
	r, err := k.reach(tx, a, id)
	if err != nil {
		return Key{}, err
	}
	if status := r.status(now); status == Revoked || status == Expired {
		return Key{}, fault.New(fault.Conflict, "the key is %s and cannot be disabled or enabled: create a new one", status)
	}
	if r.Disabled == disabled {
		return k.keyAt(tx, r, now)
	}
	r.Disabled = disabled
	return k.commit(tx, a, action, r, now, secret.Token{})
}

// reach returns the key with that id if the caller reaches it.
func (k *Keystore) reach(tx *store.Tx, a Authority, id string) (*record, error) {
	if !validID(keyIDs, id) {
		return nil, errNoKey
	}
	r, err := read(tx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, errNoKey
	}
	if err != nil {
		return nil, err
	}
	if !a.reaches(r) {
		return nil, errNoKey
	}
	return r, nil
}

// commit writes the changed key and its audit record to tx.
func (k *Keystore) commit(tx *store.Tx, a Authority, action string, r *record, now int64,
	token secret.Token) (Key, error) {
	if err := r.write(tx); err != nil {
		return Key{}, err
	}
	if err := a.record(tx, action, r.ID); err != nil {
		return Key{}, err
	}
	key, err := k.keyAt(tx, r, now)
	key.Token = token
	return key, err
}

// record returns the record of a new token.
func (m *macs) record(token secret.Token) tokenRecord {
	mac := m.of([]byte(token.Reveal()))
	return tokenRecord{MAC: mac[:], Hint: token.Hint()}
}

func newID(prefix string, now int64) string { return prefix + ids.New(time.UnixMilli(now)) }

// expiry returns the end of a key created now, in ms; 0: none.
func expiry(now int64, asked *time.Duration, rules schema.APIKeys) (int64, error) {
	lifetime := rules.DefaultLifetime
	if lifetime == 0 {
		lifetime = rules.MaxLifetime
	}
	if asked != nil {
		lifetime = *asked
		switch {
		case lifetime < time.Millisecond:
			return 0, invalid(lifetime, "expiresIn must be positive: leave it out for the default of the schema")
		case rules.MaxLifetime != 0 && lifetime > rules.MaxLifetime:
			return 0, invalid(lifetime, "expiresIn is longer than maxLifetime, %s", duration(rules.MaxLifetime))
		}
	}
	if lifetime == 0 {
		return 0, nil
	}
	return now + lifetime.Milliseconds(), nil
}

func checkGrace(grace, allowed time.Duration) error {
	if allowed == 0 || allowed > longestGrace {
		allowed = longestGrace
	}
	switch {
	case grace < 0:
		return invalid(grace, "gracePeriod must not be negative")
	case grace > allowed:
		return invalid(grace, "gracePeriod is longer than the limit, %s", duration(allowed))
	}
	return nil
}

// errCannotRotate is the answer to a rotation of a key that has ended.
func errCannotRotate(status Status) error {
	return fault.New(fault.Conflict, "the key is %s and cannot be rotated: create a new one", status)
}

// inGrace returns those of the tokens that stay valid besides a new one, of a key that ends at expires.
func inGrace(tokens []tokenRecord, expires, now int64, grace time.Duration) ([]tokenRecord, error) {
	if grace.Milliseconds() == 0 {
		return nil, nil
	}
	kept := live(tokens, now)
	if len(kept)+1 > maxLiveTokens {
		return nil, fault.New(fault.Conflict,
			"the key has %d live tokens, which is the limit: wait until the grace of one ends, or rotate without a grace period",
			len(kept))
	}
	for i, t := range kept {
		kept[i].Until = min(orEndless(t.Until), now+grace.Milliseconds(), orEndless(expires))
	}
	return kept, nil
}
