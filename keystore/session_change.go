package keystore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/schema"
	"runner.example/state/store"
)

// maxRoles bounds the roles of one session.
const maxRoles = 64

// errNoSession is the answer for every id that the caller cannot reach, whether or not a
// session has it.
var errNoSession error = fault.New(fault.NotFound, "there is no session with this id").
	WithHint("runner sessions list --all shows every session")

// CreateSessionRequest describes a new session.
type CreateSessionRequest struct {
	// UserID is the signed-in user: a line of at most 120 characters.
	UserID string
	// Tenant is the user's; empty: none.
	Tenant string
	// Roles are declared in the schema; in untyped mode without auth.roles any are valid.
	Roles []string
	// TTL is the longest lifetime of the session, exact to a millisecond. nil: the
	// schema's absolute lifetime, which is also the limit.
	TTL *time.Duration
	// Replaces is the id of a session that ends when this one begins; empty: none. The
	// caller must know that it belongs to the same client.
	Replaces string
}

// CreateSession creates a session in tx and returns it with its cookie, which is not stored
// and cannot be read again. Sessions do not change until they end: other roles need a new
// session. Faults: Denied (neither an operator nor CreatesSession), Invalid (the request is
// not valid, or the schema declares no session cookie), Unavailable (the time is not known).
func (k *Keystore) CreateSession(tx *store.Tx, a Authority, req CreateSessionRequest) (Session, error) {
	now, err := k.clock.ForNew()
	if err != nil {
		return Session{}, err
	}
	r, err := a.newSession(req, now)
	if err != nil {
		return Session{}, err
	}
	r.ID = newID(sessionIDs, now)
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

// replaceSession ends a session that another one replaces, if it exists.
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

// CheckSession reports why CreateSession would refuse a request, as far as that does not
// depend on other sessions. The faults are those of CreateSession.
func (a Authority) CheckSession(req CreateSessionRequest) error {
	_, err := a.newSession(req, 0)
	return err
}

// newSession returns the record of a session created now, without id and HMAC.
func (a Authority) newSession(req CreateSessionRequest, now int64) (*sessionRecord, error) {
	switch {
	case !a.isOperator() && !a.CreatesSession:
		return nil, fault.New(fault.Denied, "only a route with `mints: session` may create sessions")
	case a.isOperator() && a.Caller.Tenant != "" && req.Tenant != a.Caller.Tenant:
		return nil, fault.New(fault.Denied, "the operator reaches only its own tenant")
	case a.Schema == nil:
		return nil, fault.New(fault.Invalid, "no schema is active: activate one before sessions are created")
	case a.Schema.Auth.Cookie == nil:
		return nil, fault.New(fault.Invalid, "the schema declares no cookie session: add `auth { session cookie { } }`")
	case req.UserID == "":
		return nil, fault.New(fault.Invalid, "userId is missing: a session belongs to a user")
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
			return nil, invalid(lifetime, "ttl must be positive: leave it out for the limit, %s", duration(rules.Absolute))
		case lifetime > rules.Absolute:
			return nil, invalid(lifetime, "ttl is longer than the limit (absolute), %s", duration(rules.Absolute))
		}
	}
	return &sessionRecord{
		UserID: req.UserID, Tenant: req.Tenant, Roles: slices.Clone(req.Roles),
		Created: now, Expires: now + lifetime.Milliseconds(), Idle: max(1, rules.Idle.Milliseconds()),
	}, nil
}

func checkRoles(s *schema.Schema, asked []string) error {
	if len(asked) > maxRoles {
		return invalid(asked, "roles has %d entries, the limit is %d", len(asked), maxRoles)
	}
	for i, role := range asked {
		if slices.Contains(asked[:i], role) {
			return invalid(asked, "roles has %q twice", role)
		}
		if err := CheckLine("roles", role); err != nil {
			return err
		}
		if role == "" || !s.HasRole(role) {
			return invalid(role, "roles has %q, which is not in auth.roles%s", role, diag.DidYouMean(role, s.Auth.Roles))
		}
	}
	return nil
}

// RevokeSession ends the session permanently and returns it. Revoking a revoked one changes
// nothing. The fault is NotFound, also if the caller does not reach the session: see Authority.
func (k *Keystore) RevokeSession(tx *store.Tx, a Authority, id string) (Session, error) {
	now := k.clock.Now()
	if !validID(sessionIDs, id) {
		return Session{}, errNoSession
	}
	r, err := readSession(tx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !a.reachesSession(r) {
		return Session{}, errNoSession
	}
	if err != nil {
		return Session{}, err
	}
	if r.Revoked != 0 {
		return k.sessionAt(tx, r, now)
	}
	r.Revoked = now
	return k.commitSession(tx, a, "sessions.revoke", r, now)
}

// maxRevoked is how many sessions one transaction ends.
const maxRevoked = 4000

// revokeUnits is the cost of ending a session that was read.
const revokeUnits = 10 * keyUnits

// RevokeSessions revokes the sessions of a user, idle ones included, except the one with the id
// except, and returns their ids. If f.Limit is set, it revokes at most so many, and reports
// whether there are more. Otherwise it revokes all of them, or none with the fault Limit if a
// transaction cannot hold them. It ignores f.All and f.Cursor. Other faults: Denied, Invalid.
func (k *Keystore) RevokeSessions(tx *store.Tx, a Authority, f SessionFilter,
	except string) (ended []string, more bool, err error) {
	now := k.clock.Now()
	owner, err := a.sessionOwner(f)
	switch {
	case err != nil:
		return nil, false, err
	case owner.user == "":
		return nil, false, errNoUser
	case except != "" && !validID(sessionIDs, except):
		return nil, false, invalid(except, "except is not the id of a session")
	}
	var records []*sessionRecord
	bytes := 0
	for r, err := range k.sessionsOf(tx, a, owner, false, "") {
		if err != nil {
			return nil, false, err
		}
		if r.Revoked != 0 || now >= r.Expires || r.ID == except {
			continue
		}
		if bytes += r.revokedBytes(); len(records) == cmp.Or(f.Limit, maxRevoked) ||
			!tx.Fits(revokedKeys*(len(records)+1), bytes) {
			more = true
			break
		}
		records = append(records, r)
	}
	if more && f.Limit == 0 {
		return nil, false, fault.New(fault.Limit,
			"the user has more than %d sessions, too many for one transaction: `runner sessions revoke --user` ends them",
			len(records))
	}
	for _, r := range records {
		if err := a.spend(revokeUnits); err != nil {
			return nil, false, err
		}
		r.Revoked = now
		if err := writeSession(tx, a, "sessions.revoke", r); err != nil {
			return nil, false, err
		}
		ended = append(ended, r.ID)
	}
	return ended, more, nil
}

// commitSession is writeSession that returns the session as of now.
func (k *Keystore) commitSession(tx *store.Tx, a Authority, action string, r *sessionRecord,
	now int64) (Session, error) {
	if err := writeSession(tx, a, action, r); err != nil {
		return Session{}, err
	}
	return k.sessionAt(tx, r, now)
}

// writeSession writes a changed session, and an audit record that names the user, to tx.
func writeSession(tx *store.Tx, a Authority, action string, r *sessionRecord) error {
	if err := r.write(tx); err != nil {
		return err
	}
	user := fmt.Sprintf("user %q", r.UserID)
	if r.Tenant != "" {
		user += fmt.Sprintf(", tenant %q", r.Tenant)
	}
	return a.recordWith(tx, action, r.ID, user)
}

// revokedKeys is how many keys a revocation writes: the record, two of the index, the audit.
const revokedKeys = 4

// revokedBytes is an upper bound of the bytes that a revocation of the session writes. In JSON a
// character takes up to six bytes, and the record and the audit both have the names.
func (r *sessionRecord) revokedBytes() int {
	n := 1000 + 14*(len(r.UserID)+len(r.Tenant))
	for _, role := range r.Roles {
		n += 6*len(role) + 3
	}
	return n
}
