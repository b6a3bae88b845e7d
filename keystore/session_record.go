package keystore

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"runner.example/state/store"
)

// sessionRecord is a session as the store holds it. Times are ms since 1970, 0:
// not set. The time that it was last seen is stored like the last use of a key.
type sessionRecord struct {
	ID      string   `json:"id"`
	UserID  string   `json:"userId"`
	Tenant  string   `json:"tenant,omitempty"`
	Roles   []string `json:"roles,omitempty"`
	Created int64    `json:"created"`
	Expires int64    `json:"expires"`
	// Idle is the time without use, in ms, after which it ends.
	Idle    int64 `json:"idle"`
	Revoked int64 `json:"revoked,omitempty"`
	// Indexed says that the session has an entry in the index by user.
	Indexed bool `json:"indexed,omitempty"`
	// MAC is the HMAC of the cookie's value under a key derived from the pepper.
	MAC []byte `json:"mac"`
}

func decodeSession(value []byte) (*sessionRecord, error) {
	r := &sessionRecord{}
	if err := json.Unmarshal(value, r); err != nil {
		return nil, err
	}
	if r.ID == "" || r.UserID == "" || r.Expires == 0 || r.Idle == 0 {
		return nil, errors.New("it has no id, user or end")
	}
	if len(r.MAC) != sha256.Size {
		return nil, fmt.Errorf("its HMAC has %d bytes", len(r.MAC))
	}
	return r, nil
}

// readSession returns the session with that id; store.ErrNotFound if there is none.
func readSession(tx *store.Tx, id string) (*sessionRecord, error) {
	value, err := tx.Get(sessionKeyOf(id))
	if err != nil {
		return nil, err
	}
	r, err := decodeSession(value)
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", id, err)
	}
	return r, nil
}

// end returns the end of the session, in ms, if used was its last use.
func (r *sessionRecord) end(used int64) int64 {
	if r.Revoked != 0 {
		return r.Revoked
	}
	return min(r.Expires, max(r.Created, used)+r.Idle)
}

// write writes the session and its entry in the index by user.
func (r *sessionRecord) write(tx *store.Tx) error {
	r.Indexed = true
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode session %s: %w", r.ID, err)
	}
	if err := tx.Set(sessionKeyOf(r.ID), value); err != nil {
		return err
	}
	if r.Revoked == 0 {
		return tx.Set(r.indexKey(liveState), nil)
	}
	if err := tx.Delete(r.indexKey(liveState)); err != nil {
		return err
	}
	return tx.Set(r.indexKey(revokedState), nil)
}

func sessionKeyOf(id string) []byte { return []byte(prefixSession + id) }
