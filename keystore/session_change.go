package keystore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/schema"
	"runner.example/store"
)

// maxRoles bounds the roles of one session.
const maxRoles = 64

// errNoSession is the answer to every id that no session has, or that the caller
// may not know of.
var errNoSession error = fault.New(fault.NotFound, "there is no session with this id")

// CreateSessionRequest says what session to make.
type CreateSessionRequest struct {
	// UserID is who is signed in: a line of at most 120 characters.
	UserID string
	// Tenant is the user's; empty: none.
	Tenant string
	// Roles are declared ones, in untyped mode without auth.roles any.
	Roles []string
	// TTL is how long the session may last, exact to a millisecond. nil: as long
	// as the schema's absolute end allows, which is also the longest.
	TTL *time.Duration
	// Replaces is the id of a session that ends with this one's beginning; empty: none.
	// Whoever asks knows that it is the same client's.
	Replaces string
}

// CreateSession makes a session in tx and returns it with its cookie, which
// cannot be had again. A change of what a user may do needs a new session: none
// is ever changed but by its end. Faults: Denied (neither an operator nor Mints), Invalid
// (what is asked for is wrong, or the schema declares no session cookie),
// Unavailable (the time is not known).
func (k *Keystore) CreateSession(tx *store.Tx, a Authority, req CreateSessionRequest) (Session, error) {
	now, err := k.clock.ForNew()
	if err != nil {
		return Session{}, err
	}
	r, err := a.newSession(req, now)
	if err != nil {
		return Session{}, err
	}
	if r.ID, err = newID(sessionIDs, now); err != nil {
		return Session{}, err
	}
	if req.Replaces != "" {
		if err := k.replaceSession(tx, a, req.Replaces, now); err != nil {
			return Session{}, err
		}
	}
	value := NewToken(sessionPrefix).Reveal()
	mac := k.sessionMACs.of([]byte(value))
	r.MAC = mac[:]
	s, err := k.commitSession(tx, a, "sessions.create", r, now)
	if err != nil {
		return Session{}, err
	}
	s.Cookie = secret.New(a.Schema.Auth.Cookie.Name + "=" + value)
	return s, nil
}

// replaceSession ends a session that another takes the place of, if it is there.
func (k *Keystore) replaceSession(tx *store.Tx, a Authority, id string, now int64) error {
	r, err := readSession(tx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && r.Revoked != 0 {
		return nil
	}
	if err != nil {
		return err
	}
	r.Revoked = now
	_, err = k.commitSession(tx, a, "sessions.revoke", r, now)
	return err
}

// CheckSession tells what is wrong with a request that CreateSession would
// refuse whatever sessions there are. The faults are CreateSession's.
func (a Authority) CheckSession(req CreateSessionRequest) error {
	_, err := a.newSession(req, 0)
	return err
}

// newSession gives the record of a session made now, without id and HMAC.
func (a Authority) newSession(req CreateSessionRequest, now int64) (*sessionRecord, error) {
	switch {
	case !a.isOperator() && !a.Mints:
		return nil, fault.New(fault.Denied, "sessions are opened where the route says `mints: session` alone")
	case a.Schema == nil:
		return nil, fault.New(fault.Invalid, "no schema is active: a session is made under one")
	case a.Schema.Auth.Cookie == nil:
		return nil, fault.New(fault.Invalid, "the schema declares no cookie session: add `auth { session cookie { } }`")
	case req.UserID == "":
		return nil, fault.New(fault.Invalid, "userId is missing: a session is a user's")
	}
	if err := CheckLine("userId", req.UserID); err != nil {
		return nil, err
	}
	if err := CheckLine("tenant", req.Tenant); err != nil {
		return nil, err
	}
	if err := checkRoles(a.Schema, req.Roles); err != nil {
		return nil, err
	}
	rules := a.Schema.Auth.Cookie
	lifetime := rules.Absolute
	if req.TTL != nil {
		lifetime = *req.TTL
		switch {
		case lifetime < time.Millisecond:
			return nil, fault.New(fault.Invalid, "ttl must be positive: leave it out for the longest, %s", duration(rules.Absolute))
		case lifetime > rules.Absolute:
			return nil, fault.New(fault.Invalid, "ttl is longer than a session may last (absolute), %s", duration(rules.Absolute))
		}
	}
	return &sessionRecord{
		UserID: req.UserID, Tenant: req.Tenant, Roles: slices.Clone(req.Roles),
		Created: now, Expires: now + lifetime.Milliseconds(), Idle: max(1, rules.Idle.Milliseconds()),
	}, nil
}

func checkRoles(s *schema.Schema, asked []string) error {
	if len(asked) > maxRoles {
		return fault.New(fault.Invalid, "roles are more than the %d that a session may have", maxRoles)
	}
	for i, role := range asked {
		if slices.Contains(asked[:i], role) {
			return fault.New(fault.Invalid, "roles has %q twice", role)
		}
		if err := CheckLine("roles", role); err != nil {
			return err
		}
		if role == "" || !s.HasRole(role) {
			return fault.New(fault.Invalid, "roles has %q, which is not in auth.roles%s", role, diag.DidYouMean(role, s.Auth.Roles))
		}
	}
	return nil
}

// RevokeSession ends the session for good and returns it. Revoking a revoked one
// changes nothing. An operator may, and where Mints is set a session's own user
// may; to others there is no session. The fault is NotFound.
func (k *Keystore) RevokeSession(tx *store.Tx, a Authority, id string) (Session, error) {
	now := k.clock.Now()
	if !a.isOperator() && !a.Mints || !validID(sessionIDs, id) {
		return Session{}, errNoSession
	}
	r, err := readSession(tx, id)
	if errors.Is(err, store.ErrNotFound) {
		return Session{}, errNoSession
	}
	if err != nil {
		return Session{}, err
	}
	if who := a.Caller; !a.isOperator() && (who.Kind != caller.Session || r.UserID != who.UserID || r.Tenant != who.Tenant) {
		return Session{}, errNoSession
	}
	if r.Revoked != 0 {
		return k.sessionAt(tx, r, now)
	}
	r.Revoked = now
	return k.commitSession(tx, a, "sessions.revoke", r, now)
}

// commitSession writes the changed session and its audit record, which says whose it
// is, into tx.
func (k *Keystore) commitSession(tx *store.Tx, a Authority, action string, r *sessionRecord, now int64) (Session, error) {
	if err := r.write(tx); err != nil {
		return Session{}, err
	}
	whose := fmt.Sprintf("user %q", r.UserID)
	if r.Tenant != "" {
		whose += fmt.Sprintf(", tenant %q", r.Tenant)
	}
	if err := a.recordWith(tx, action, r.ID, whose); err != nil {
		return Session{}, err
	}
	return k.sessionAt(tx, r, now)
}
