package keystore

import (
	"encoding/json"

	"runner.example/internal/fault"
	"runner.example/state/store"
)

// SessionFilter says which sessions to list.
type SessionFilter struct {
	// UserID is the id of the user; empty: the calling user, for an operator any user.
	UserID string
	// Tenant is the tenant of the user, "" for a user without one. nil: the caller's tenant, for
	// an operator without a tenant any tenant.
	Tenant *string
	// AllTenants selects the user's sessions in every tenant. Tenant must be nil then.
	AllTenants bool
	// All includes expired and revoked sessions that are not deleted yet.
	All bool
	// Limit is 1-1000; 0: 100.
	Limit int
	// Cursor is the NextCursor of the previous page; empty: from the start.
	Cursor string
}

// SessionPage is a part of a list, oldest session first.
type SessionPage struct {
	Sessions []Session `json:"sessions"`
	// NextCursor is empty, null in JSON, on the last page.
	NextCursor string `json:"nextCursor"`
}

// sessionPageJSON is the JSON form of a SessionPage.
type sessionPageJSON struct {
	Sessions   []Session `json:"sessions"`
	NextCursor *string   `json:"nextCursor"`
}

// MarshalJSON encodes the page; a page without sessions has an empty list.
func (p SessionPage) MarshalJSON() ([]byte, error) {
	return json.Marshal(sessionPageJSON{append([]Session{}, p.Sessions...), orNull(p.NextCursor)})
}

// JSONForm returns the zero value of what MarshalJSON encodes.
func (SessionPage) JSONForm() []any { return []any{sessionPageJSON{}} }

// ListSessions returns the sessions that the caller reaches, without their cookies: see Authority.
// Faults: Denied, Invalid, Deadline.
func (k *Keystore) ListSessions(tx *store.Tx, a Authority, f SessionFilter) (SessionPage, error) {
	if f.Limit == 0 {
		f.Limit = defaultLimit
	}
	owner, err := a.sessionOwner(f)
	switch {
	case err != nil:
		return SessionPage{}, err
	case f.Limit < 0 || f.Limit > maxLimit:
		return SessionPage{}, fault.New(fault.Invalid, "limit must be between 1 and %d", maxLimit)
	case f.Cursor != "" && !validID(sessionIDs, f.Cursor):
		return SessionPage{}, fault.New(fault.Invalid, "the cursor is not a nextCursor of a list")
	}
	now := k.clock.Latest()
	var page SessionPage
	for r, err := range k.sessionsOf(tx, a, owner, f.All, f.Cursor) {
		if err != nil {
			return SessionPage{}, err
		}
		s, err := k.sessionAt(tx, r, now)
		if err != nil {
			return SessionPage{}, err
		}
		if !f.All && s.Status != Active {
			continue
		}
		if len(page.Sessions) == f.Limit {
			page.NextCursor = page.Sessions[f.Limit-1].ID
			return page, nil
		}
		page.Sessions = append(page.Sessions, s)
	}
	return page, nil
}
