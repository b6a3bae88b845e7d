package keystore

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"runner.example/state/store"
)

const (
	prefixAll      = "keystore/"
	prefixKey      = prefixAll + "key/"
	prefixTenant   = prefixAll + "tenant/"
	prefixDead     = prefixAll + "dead/"
	prefixOwner    = prefixAll + "owner/"
	prefixCount    = prefixAll + "count/"
	prefixSession  = prefixAll + "session/"
	prefixUser     = prefixAll + "user/"
	prefixPlatform = prefixAll + "platform/"
	prefixUse      = prefixAll + "use/"
)

// endless is the end, in ms, of a key or token that has none.
const endless = math.MaxInt64

// record is a key as the store holds it. Times are ms since 1970, 0: not set.
type record struct {
	ID         string          `json:"id"`
	Scope      string          `json:"scope"`
	Capability string          `json:"capability"`
	Name       string          `json:"name,omitempty"`
	Tenant     string          `json:"tenant,omitempty"`
	Owner      string          `json:"owner,omitempty"`
	OwnerKind  OwnerKind       `json:"ownerKind,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Created    int64           `json:"created"`
	Expires    int64           `json:"expires,omitempty"`
	Rotated    int64           `json:"rotated,omitempty"`
	Revoked    int64           `json:"revoked,omitempty"`
	Disabled   bool            `json:"disabled,omitempty"`
	// Tokens has the newest first; only the newest ends with the key. A dead key keeps its
	// last ones, so that the log can say why one was refused.
	Tokens []tokenRecord `json:"tokens"`
	// unlisted says that a version without owner kinds and lists of owners wrote the key.
	unlisted bool
}

type tokenRecord struct {
	MAC   []byte `json:"mac"`
	Hint  string `json:"hint"`
	Until int64  `json:"until,omitempty"`
}

func decodeRecord(value []byte) (*record, error) {
	r := &record{}
	if err := json.Unmarshal(value, r); err != nil {
		return nil, err
	}
	if r.ID == "" || len(r.Tokens) == 0 {
		return nil, errors.New("it has no id or no token")
	}
	for _, t := range r.Tokens {
		if len(t.MAC) != sha256.Size {
			return nil, fmt.Errorf("a token's HMAC has %d bytes", len(t.MAC))
		}
	}
	if r.Owner != "" && r.OwnerKind == "" {
		r.unlisted = true
		if r.OwnerKind = OwnerUser; validID(keyIDs, r.Owner) {
			r.OwnerKind = OwnerKey
		}
	}
	return r, nil
}

// read returns the key with that id; store.ErrNotFound if there is none.
func read(tx *store.Tx, id string) (*record, error) {
	value, err := tx.Get(keyOf(id))
	if err != nil {
		return nil, err
	}
	r, err := decodeRecord(value)
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", id, err)
	}
	return r, nil
}

// write writes the key and its entries in the lists of its tenant and its owner. A revoked key has
// an entry only in the list of dead keys.
func (r *record) write(tx *store.Tx) error {
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode key %s: %w", r.ID, err)
	}
	if err := tx.Set(keyOf(r.ID), value); err != nil {
		return err
	}
	if r.Revoked != 0 {
		return r.moveToDead(tx)
	}
	end := encodeTime(r.end())
	if r.Owner != "" {
		if err := tx.Set(r.ownerKey(), end); err != nil {
			return err
		}
	}
	return tx.Set(listKey(prefixTenant, r.Tenant, r.ID), end)
}

// moveToDead moves a dead key's entry to the list of the tenant's dead keys, and removes it from
// the list of its owner.
func (r *record) moveToDead(tx *store.Tx) error {
	if err := r.countDead(tx); err != nil {
		return err
	}
	if r.Owner != "" {
		if err := tx.Delete(r.ownerKey()); err != nil {
			return err
		}
	}
	if err := tx.Delete(listKey(prefixTenant, r.Tenant, r.ID)); err != nil {
		return err
	}
	return tx.Set(listKey(prefixDead, r.Tenant, r.ID), encodeTime(r.end()))
}

// moveToLive undoes moveToDead.
func (r *record) moveToLive(tx *store.Tx) error {
	if err := tx.Delete(countKeyOf(r.Tenant)); err != nil {
		return err
	}
	if err := tx.Delete(listKey(prefixDead, r.Tenant, r.ID)); err != nil {
		return err
	}
	return r.write(tx)
}

// delete deletes all that the store has of a dead key.
func (r *record) delete(tx *store.Tx) error {
	if err := r.moveToDead(tx); err != nil {
		return err
	}
	for _, key := range [][]byte{keyOf(r.ID), useKeyOf(r.ID), listKey(prefixDead, r.Tenant, r.ID)} {
		if err := tx.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

// end returns the end of the key, in ms.
func (r *record) end() int64 {
	if r.Revoked != 0 {
		return r.Revoked
	}
	return orEndless(r.Expires)
}

// dead reports whether the key is revoked or, at now, expired.
func (r *record) dead(now int64) bool { return r.Revoked != 0 || now >= orEndless(r.Expires) }

// live returns the tokens that are valid at now, provided that the key is.
func live(tokens []tokenRecord, now int64) []tokenRecord {
	var out []tokenRecord
	for _, t := range tokens {
		if now < orEndless(t.Until) {
			out = append(out, t)
		}
	}
	return out
}

// graceEnd returns the end of the last of the old tokens that is in grace at now; 0: none is.
func graceEnd(old []tokenRecord, now int64) (end int64) {
	for _, t := range old {
		if now < t.Until {
			end = max(end, t.Until)
		}
	}
	return end
}

func (r *record) status(now int64) Status {
	switch {
	case r.Revoked != 0:
		return Revoked
	case now >= orEndless(r.Expires):
		return Expired
	case r.Disabled:
		return Disabled
	case graceEnd(r.Tokens[1:], now) != 0:
		return Rotating
	}
	return Active
}

func orEndless(ms int64) int64 {
	if ms == 0 {
		return endless
	}
	return ms
}

func keyOf(id string) []byte { return []byte(prefixKey + id) }

func useKeyOf(id string) []byte { return []byte(prefixUse + id) }

// listKey is the entry of a key in one of its tenant's two lists: prefixTenant and
// prefixDead.
func listKey(list, tenant, id string) []byte { return append(listPrefix(list, tenant), id...) }

// listPrefix begins the entries of one tenant's list. The length keeps them apart from
// those of a tenant whose name has this one as its prefix.
func listPrefix(list, tenant string) []byte {
	out := binary.BigEndian.AppendUint16([]byte(list), uint16(len(tenant)))
	return append(out, tenant...)
}

// ownerKey is the entry of a key in the list of its owner.
func (r *record) ownerKey() []byte {
	return append(ownerPrefix(r.Tenant, r.OwnerKind, r.Owner), r.ID...)
}

// ownerPrefix is the prefix of the entries of the live keys of one owner in one tenant. The
// lengths in it keep owners apart.
func ownerPrefix(tenant string, kind OwnerKind, owner string) []byte {
	out := append(listPrefix(prefixOwner, tenant), kind[0])
	return append(binary.BigEndian.AppendUint16(out, uint16(len(owner))), owner...)
}

func encodeTime(ms int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(ms)) }

func decodeTime(value []byte) (int64, error) {
	if len(value) != 8 {
		return 0, fmt.Errorf("a time of %d bytes", len(value))
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}

// timeOf returns the UTC time of ms since 1970, the zero time for 0.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
