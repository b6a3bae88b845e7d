package keystore

import (
	"encoding/json"
	"fmt"

	"runner.example/internal/fault"
	"runner.example/store"
)

// SessionFilter says which sessions to list.
type SessionFilter struct {
	// UserID and Tenant are those of the sessions; empty: any.
	UserID, Tenant string
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

// MarshalJSON encodes the page; a page without sessions has an empty list.
func (p SessionPage) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Sessions   []Session `json:"sessions"`
		NextCursor *string   `json:"nextCursor"`
	}{append([]Session{}, p.Sessions...), orNull(p.NextCursor)})
}

// ListSessions returns sessions without their cookies. Faults: Denied (only an
// operator may), Invalid.
func (k *Keystore) ListSessions(tx *store.Tx, a Authority, f SessionFilter) (SessionPage, error) {
	if f.Limit == 0 {
		f.Limit = defaultLimit
	}
	switch {
	case !a.isOperator():
		return SessionPage{}, fault.New(fault.Denied, "only an operator may list sessions")
	case f.Limit < 0 || f.Limit > maxLimit:
		return SessionPage{}, fault.New(fault.Invalid, "limit must be between 1 and %d", maxLimit)
	case f.Cursor != "" && !validID(sessionIDs, f.Cursor):
		return SessionPage{}, fault.New(fault.Invalid, "the cursor is not a nextCursor of a list")
	}
	var from []byte
	if f.Cursor != "" {
		from = append(sessionKeyOf(f.Cursor), 0)
	}
	now := k.clock.Latest()
	var page SessionPage
	for item, err := range tx.Scan([]byte(prefixSession), from, false) {
		if err != nil {
			return SessionPage{}, err
		}
		r, err := decodeSession(item.Value)
		if err != nil {
			return SessionPage{}, fmt.Errorf("read session %s: %w", item.Key[len(prefixSession):], err)
		}
		s, err := k.sessionAt(tx, r, now)
		if err != nil {
			return SessionPage{}, err
		}
		if !f.takes(s) {
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

func (f SessionFilter) takes(s Session) bool {
	return (f.All || s.Status == Active) && (f.UserID == "" || f.UserID == s.UserID) && (f.Tenant == "" || f.Tenant == s.Tenant)
}
