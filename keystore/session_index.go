package keystore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/oklog/ulid/v2"

	"runner.example/state/store"
)

// Each session has an entry in the index by user, which is written with its record. The key has
// the state before the id, so the live sessions of a user in a tenant are adjacent, in the order
// of their ids.
const (
	revokedState = '0'
	liveState    = '1'
)

// sessionIDLen is the length of a session's id, which ends each key of the index.
const sessionIDLen = len(sessionIDs) + ulid.EncodedSize

// sessionOwner selects sessions by user and tenant.
type sessionOwner struct {
	user       string // empty: any
	tenant     string // empty: those of users without a tenant
	allTenants bool   // tenant does not matter
}

func (o sessionOwner) has(r *sessionRecord) bool {
	return (o.user == "" || r.UserID == o.user) && (o.allTenants || r.Tenant == o.tenant)
}

// prefix is the prefix of the index entries of the owner's sessions.
func (o sessionOwner) prefix() []byte {
	out := listPrefix(prefixUser, o.user)
	if o.allTenants {
		return out
	}
	out = binary.BigEndian.AppendUint16(out, uint16(len(o.tenant)))
	return append(out, o.tenant...)
}

// indexKey is the entry of the session in that state.
func (r *sessionRecord) indexKey(state byte) []byte {
	return append(append(sessionOwner{user: r.UserID, tenant: r.Tenant}.prefix(), state), r.ID...)
}

// sessionsOf yields the owner's sessions that come after the cursor, in the order of their
// ids. If revoked is set, it also yields revoked sessions that are not deleted yet.
func (k *Keystore) sessionsOf(tx *store.Tx, a Authority, o sessionOwner, revoked bool,
	cursor string) iter.Seq2[*sessionRecord, error] {
	if o.user == "" {
		return allSessions(tx, a, o, cursor)
	}
	return func(yield func(*sessionRecord, error) bool) {
		for id, err := range k.sessionIDsOf(tx, a, o, revoked, cursor) {
			if err == nil {
				err = a.readsKey()
			}
			var r *sessionRecord
			if err == nil {
				r, err = readSession(tx, id)
			}
			if errors.Is(err, store.ErrNotFound) || err == nil && !o.has(r) {
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// allSessions yields the sessions of all users that come after the cursor.
func allSessions(tx *store.Tx, a Authority, o sessionOwner, cursor string) iter.Seq2[*sessionRecord, error] {
	return func(yield func(*sessionRecord, error) bool) {
		for item, err := range tx.Scan([]byte(prefixSession), after([]byte(prefixSession), cursor), false) {
			if err == nil {
				err = a.readsKey()
			}
			var r *sessionRecord
			if err == nil {
				if r, err = decodeSession(item.Value); err != nil {
					err = fmt.Errorf("read session %s: %w", item.Key[len(prefixSession):], err)
				}
			}
			if err == nil && !o.has(r) {
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// sessionIDsOf yields the ids of a user's sessions. Some may be of another tenant, or deleted.
func (k *Keystore) sessionIDsOf(tx *store.Tx, a Authority, o sessionOwner, revoked bool,
	cursor string) iter.Seq2[string, error] {
	unindexed := k.unindexedOf(o.user)
	if !o.allTenants && !revoked && len(unindexed) == 0 {
		prefix := append(o.prefix(), liveState)
		return indexEntries(tx, a, prefix, after(prefix, cursor), false)
	}
	return func(yield func(string, error) bool) {
		ids := unindexed
		for id, err := range indexEntries(tx, a, o.prefix(), nil, revoked) {
			if err != nil {
				yield("", err)
				return
			}
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			if id > cursor && !yield(id, nil) {
				return
			}
		}
	}
}

// indexEntries yields the ids of the entries under the prefix, from a key on.
func indexEntries(tx *store.Tx, a Authority, prefix, from []byte, revoked bool) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for item, err := range tx.Scan(prefix, from, false) {
			if err == nil {
				err = a.readsKey()
			}
			if err != nil {
				yield("", fmt.Errorf("read sessions by user: %w", err))
				return
			}
			id := len(item.Key) - sessionIDLen
			if item.Key[id-1] == revokedState && !revoked {
				continue
			}
			if !yield(string(item.Key[id:]), nil) {
				return
			}
		}
	}
}

// after returns the key at which a scan of the prefix continues after the cursor's entry; nil: at
// the start.
func after(prefix []byte, cursor string) []byte {
	if cursor == "" {
		return nil
	}
	return append(append(slices.Clone(prefix), cursor...), 0)
}

// unindexedOf returns the ids of the user's sessions that have no entry in the index, because an
// older version of the runner, without the index, created them. When the longest lifetime of a
// session has passed since the upgrade, there are none.
func (k *Keystore) unindexedOf(user string) (ids []string) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for id := range k.unindexed[user] {
		ids = append(ids, id)
	}
	return ids
}

// noteIndexLocked records whether the session has an entry in the index.
func (k *Keystore) noteIndexLocked(r *sessionRecord) {
	if r.Indexed {
		k.dropUnindexedLocked(r.UserID, r.ID)
		return
	}
	if k.unindexed[r.UserID] == nil {
		k.unindexed[r.UserID] = map[string]bool{}
	}
	k.unindexed[r.UserID][r.ID] = true
}

func (k *Keystore) dropUnindexedLocked(user, id string) {
	delete(k.unindexed[user], id)
	if len(k.unindexed[user]) == 0 {
		delete(k.unindexed, user)
	}
}
