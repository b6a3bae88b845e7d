package keystore

import (
	"encoding/json"
	"fmt"

	"runner.example/internal/secret"
	"runner.example/state/store"
)

// Status is the state of a key. Only Disabled and Revoked are stored, the others follow
// from the clock. Expired and Revoked are final.
type Status string

// The states of a key.
const (
	Active   Status = "active"
	Rotating Status = "rotating" // active, and an old token is in grace
	Disabled Status = "disabled"
	Expired  Status = "expired"
	Revoked  Status = "revoked"
)

// OwnerKind says whether the owner of a key is a user or another key.
type OwnerKind string

// The kinds of owners. A user's id may equal the id of a key: only the kind tells them apart.
const (
	OwnerUser OwnerKind = "user"
	OwnerKey  OwnerKind = "key"
)

// Key is an API key as its owner or an operator may see it. In JSON, times are
// RFC 3339 in UTC with milliseconds, and fields that are not set are null. Exceptions: name
// is "", and token is left out except in the results of Create and Rotate.
type Key struct {
	ID         string
	Scope      string
	Capability string
	Name       string
	Status     Status
	// Hint is the newest token's prefix and last four characters.
	Hint string
	// Tenant and Owner are empty if the key has none. The owner is the user or the API key that
	// created the key, by its id; keys of operators have none. OwnerKind is empty without one.
	Tenant, Owner string
	OwnerKind     OwnerKind
	// Metadata is a JSON object, nil without one. It must not be changed.
	Metadata json.RawMessage

	Times
	Token secret.Token
}

// keyJSON is a Key's JSON form.
type keyJSON struct {
	ID         string          `json:"id"`
	Scope      string          `json:"scope"`
	Capability string          `json:"capability"`
	Name       string          `json:"name"`
	Status     Status          `json:"status"`
	Hint       string          `json:"hint"`
	Tenant     *string         `json:"tenant"`
	Owner      *string         `json:"owner"`
	OwnerKind  *OwnerKind      `json:"ownerKind"`
	Metadata   json.RawMessage `json:"metadata"`
	timesJSON
	Token string `json:"token,omitempty"`
}

// MarshalJSON encodes the key and, if it is set, its token: only the caller that created
// or rotated the key may get it.
func (k Key) MarshalJSON() ([]byte, error) {
	return json.Marshal(keyJSON{
		k.ID, k.Scope, k.Capability, k.Name, k.Status, k.Hint, orNull(k.Tenant), orNull(k.Owner), orNull(k.OwnerKind), k.Metadata,
		k.Times.toJSON(), k.Token.Reveal(),
	})
}

// JSONForm returns the zero value of what MarshalJSON encodes: documents describe the JSON by it.
func (Key) JSONForm() []any { return []any{keyJSON{}} }

// UnmarshalJSON decodes what MarshalJSON encoded.
func (k *Key) UnmarshalJSON(data []byte) error {
	var j keyJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*k = Key{
		ID: j.ID, Scope: j.Scope, Capability: j.Capability, Name: j.Name, Status: j.Status, Hint: j.Hint,
		Tenant: orEmpty(j.Tenant), Owner: orEmpty(j.Owner), OwnerKind: orEmpty(j.OwnerKind), Metadata: j.Metadata,
		Times: j.times(),
	}
	if string(j.Metadata) == "null" {
		k.Metadata = nil
	}
	if j.Token != "" {
		k.Token = secret.NewToken(j.Token)
	}
	return nil
}

func orNull[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}

// orEmpty returns the zero value for null.
func orEmpty[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}

// keyAt returns the key of a record as of now, without a token.
func (k *Keystore) keyAt(tx *store.Tx, r *record, now int64) (Key, error) {
	used, err := k.lastUse(tx, r.ID)
	if err != nil {
		return Key{}, fmt.Errorf("read last use of %s: %w", r.ID, err)
	}
	return Key{
		ID: r.ID, Scope: r.Scope, Capability: r.Capability, Name: r.Name, Status: r.status(now), Hint: r.Tokens[0].Hint,
		Tenant: r.Tenant, Owner: r.Owner, OwnerKind: r.OwnerKind, Metadata: r.Metadata,
		Times: Times{
			CreatedAt: timeOf(r.Created), ExpiresAt: timeOf(r.Expires), RotatedAt: timeOf(r.Rotated),
			PreviousTokenExpiresAt: timeOf(graceShown(r, now)), RevokedAt: timeOf(r.Revoked), LastUsedAt: timeOf(used),
		},
	}, nil
}

// graceShown returns the end of the grace of a key that is not dead at now.
func graceShown(r *record, now int64) int64 {
	if r.dead(now) {
		return 0
	}
	return graceEnd(r.Tokens[1:], now)
}
