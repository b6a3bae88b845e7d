package keystore

import (
	"encoding/json"
	"fmt"
	"time"

	"runner.example/internal/secret"
	"runner.example/state/store"
)

// sessionPrefix begins the value of every session's cookie; its form is that of
// a token.
const sessionPrefix = "rns"

// Session is a signed-in user as an operator may see it. It ends at ExpiresAt, when it was
// not used for Idle, or when it is revoked; the end is final. In JSON, times are RFC 3339
// in UTC with milliseconds, idle is in seconds, and fields that are not set are null;
// cookie is left out except in the result of CreateSession.
type Session struct {
	ID     string
	UserID string
	// Tenant is empty if the user has none.
	Tenant string
	// Roles are those that the session was created with, in that order.
	Roles []string
	// Status is Active, Expired or Revoked.
	Status Status

	CreatedAt time.Time
	// LastSeenAt is exact to about a second. After a kill of the server it may lack the
	// last minute.
	LastSeenAt time.Time
	ExpiresAt  time.Time
	Idle       time.Duration
	// RevokedAt is zero unless the session is revoked.
	RevokedAt time.Time
	// Cookie is what a browser sends: the cookie's name, "=" and its value.
	Cookie secret.Text
}

// sessionJSON is a Session's JSON form.
type sessionJSON struct {
	ID         string    `json:"id"`
	UserID     string    `json:"userId"`
	Tenant     *string   `json:"tenant"`
	Roles      []string  `json:"roles"`
	Status     Status    `json:"status"`
	CreatedAt  jsonTime  `json:"createdAt"`
	LastSeenAt jsonTime  `json:"lastSeenAt"`
	ExpiresAt  jsonTime  `json:"expiresAt"`
	Idle       int64     `json:"idle"`
	RevokedAt  *jsonTime `json:"revokedAt"`
	Cookie     string    `json:"cookie,omitempty"`
}

// MarshalJSON encodes the session and, if it is set, its cookie: only the caller that
// created the session may get it.
func (s Session) MarshalJSON() ([]byte, error) {
	return json.Marshal(sessionJSON{
		s.ID, s.UserID, orNull(s.Tenant), append([]string{}, s.Roles...), s.Status,
		jsonTime(s.CreatedAt), jsonTime(s.LastSeenAt), jsonTime(s.ExpiresAt), int64(s.Idle / time.Second), timeOrNull(s.RevokedAt),
		s.Cookie.Reveal(),
	})
}

// JSONForm returns the zero value of what MarshalJSON encodes.
func (Session) JSONForm() []any { return []any{sessionJSON{}} }

// UnmarshalJSON decodes what MarshalJSON encoded.
func (s *Session) UnmarshalJSON(data []byte) error {
	var j sessionJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*s = Session{
		ID: j.ID, UserID: j.UserID, Tenant: orEmpty(j.Tenant), Status: j.Status,
		CreatedAt: time.Time(j.CreatedAt), LastSeenAt: time.Time(j.LastSeenAt), ExpiresAt: time.Time(j.ExpiresAt),
		Idle: time.Duration(j.Idle) * time.Second, RevokedAt: time.Time(orEmpty(j.RevokedAt)),
	}
	if len(j.Roles) > 0 {
		s.Roles = j.Roles
	}
	if j.Cookie != "" {
		s.Cookie = secret.New(j.Cookie)
	}
	return nil
}

// sessionAt returns the session of a record as of now, without a cookie.
func (k *Keystore) sessionAt(tx *store.Tx, r *sessionRecord, now int64) (Session, error) {
	used, err := k.lastUse(tx, r.ID)
	if err != nil {
		return Session{}, fmt.Errorf("read last use of %s: %w", r.ID, err)
	}
	seen := max(r.Created, used)
	s := Session{
		ID: r.ID, UserID: r.UserID, Tenant: r.Tenant, Roles: r.Roles, Status: Active,
		CreatedAt: timeOf(r.Created), LastSeenAt: timeOf(seen), ExpiresAt: timeOf(r.Expires),
		Idle: time.Duration(r.Idle) * time.Millisecond, RevokedAt: timeOf(r.Revoked),
	}
	switch {
	case r.Revoked != 0:
		s.Status = Revoked
	case now >= min(r.Expires, seen+r.Idle):
		s.Status = Expired
	}
	return s, nil
}
