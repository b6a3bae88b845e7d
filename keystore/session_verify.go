package keystore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"runner.example/schema"
	"runner.example/state/store"
)

// SessionIdentity is the session that a cookie belongs to.
type SessionIdentity struct {
	ID     string
	UserID string
	Tenant string
	// Roles are those that the schema has. They are shared and must not be changed.
	Roles []string
	// Refused is empty for a valid cookie. For another it is the reason, and of the
	// fields above only ID may be set.
	Refused Reason

	seen *use
}

// knownSession is one session in the index.
type knownSession struct {
	version store.Seq
	mac     [sha256.Size]byte
	entry   *sessionEntry // nil if the record cannot be read
}

// sessionEntry is what VerifySession needs of a session. It is immutable.
type sessionEntry struct {
	identity SessionIdentity
	expires  int64 // ms
	idle     int64 // ms
	revoked  int64 // ms, 0: it is not
	seen     *use
}

// VerifySession returns the session that the value of a cookie belongs to, under
// the schema s, or ErrInvalidToken with the reason in the identity. It neither
// keeps nor changes value, reads only memory and takes no lock. It allocates only if a role
// of the session is no longer in the schema.
func (k *Keystore) VerifySession(s *schema.Schema, value []byte) (SessionIdentity, error) {
	if len(value) > maxTokenLen {
		return SessionIdentity{Refused: Malformed}, ErrInvalidToken
	}
	n := k.sessionIndex.Find(k.sessionMACs.of(value))
	if n == nil {
		if !ValidToken(value) { // no session has such a value, so it is checked last
			return SessionIdentity{Refused: Malformed}, ErrInvalidToken
		}
		return SessionIdentity{Refused: Unknown}, ErrInvalidToken
	}
	if reason := n.Of.refusedAt(k.clock.Latest()); reason != "" {
		return SessionIdentity{ID: n.Of.identity.ID, Refused: reason}, ErrInvalidToken
	}
	identity := n.Of.identity
	identity.seen = n.Of.seen
	identity.Roles = rolesUnder(s, identity.Roles)
	return identity, nil
}

// SawSession records the use of a session by an admitted request, so that it does not
// become idle. The identity must be valid. It allocates nothing.
func (k *Keystore) SawSession(session SessionIdentity) { k.uses.touch(session.seen, k.clock.Now()) }

func (e *sessionEntry) refusedAt(now int64) Reason {
	switch {
	case e.revoked != 0:
		return KeyRevoked
	case now >= e.expires:
		return KeyExpired
	case now >= e.seen.last.Load()+e.idle:
		return Idle
	}
	return ""
}

// end returns the end of the session, in ms, if it is not used again.
func (e *sessionEntry) end() int64 {
	if e.revoked != 0 {
		return e.revoked
	}
	return min(e.expires, e.seen.last.Load()+e.idle)
}

// rolesUnder returns the roles that the schema has.
func rolesUnder(s *schema.Schema, all []string) []string {
	removed := func(role string) bool { return !s.HasRole(role) }
	if !slices.ContainsFunc(all, removed) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), removed)
}

func (k *Keystore) followSession(version store.Seq, id string, value []byte) error {
	r, err := decodeSession(value)
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.epoch.Add(1)
	old := k.sessions[id]
	if old != nil && version < old.version {
		return nil
	}
	next := &knownSession{version: version}
	if err == nil {
		next.mac, next.entry = [sha256.Size]byte(r.MAC), k.sessionEntryLocked(r)
		k.sessionIndex.Put(next.mac, r.Expires, next.entry)
		k.noteIndexLocked(r)
	}
	if old != nil && old.entry != nil && old.mac != next.mac {
		k.sessionIndex.Remove(old.mac)
	}
	k.sessions[id] = next
	if err != nil {
		return fmt.Errorf("read session %s: %w", id, err)
	}
	return nil
}

func (k *Keystore) sessionEntryLocked(r *sessionRecord) *sessionEntry {
	e := &sessionEntry{
		identity: SessionIdentity{ID: r.ID, UserID: r.UserID, Tenant: r.Tenant, Roles: r.Roles},
		expires:  r.Expires, idle: r.Idle, revoked: r.Revoked, seen: k.useLocked(r.ID),
	}
	e.seen.atLeast(r.Created)
	return e
}

// removeSession removes a session whose record was deleted.
func (k *Keystore) removeSession(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.sessions[id]; old != nil && old.entry != nil {
		k.sessionIndex.Remove(old.mac)
		k.dropUnindexedLocked(old.entry.identity.UserID, id)
	}
	delete(k.sessions, id)
	delete(k.useOf, id)
}

const (
	sweepEvery = time.Hour
	// keptAfterEnd is how long a dead session can still be listed, and is named in the log
	// when its cookie is refused.
	keptAfterEnd  = 24 * time.Hour
	sweptPerWrite = 1000 // sessions in one transaction
)

// sweepSessions deletes the sessions that ended before a time, in ms.
func (k *Keystore) sweepSessions(ctx context.Context, before int64) error {
	for some := range slices.Chunk(k.sessionsEndedBefore(before), sweptPerWrite) {
		_, err := k.store.UpdateAsOwner(ctx, func(tx *store.Tx) error { return deleteSessions(tx, some, before) })
		if err != nil {
			return fmt.Errorf("delete sessions: %w", err)
		}
	}
	return nil
}

// deleteSessions deletes those of the sessions that ended before a time, in ms. It reads them and
// their last uses again: another node may have written a use since.
func deleteSessions(tx *store.Tx, ids []string, before int64) error {
	for _, id := range ids {
		r, err := readSession(tx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		used, err := storedUse(tx, id)
		if err != nil {
			return err
		}
		if r.end(used) >= before {
			continue
		}
		for _, key := range [][]byte{sessionKeyOf(id), useKeyOf(id), r.indexKey(liveState), r.indexKey(revokedState)} {
			if err := tx.Delete(key); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *Keystore) sessionsEndedBefore(ms int64) (ids []string) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for id, known := range k.sessions {
		if known.entry != nil && known.entry.end() < ms {
			ids = append(ids, id)
		}
	}
	return ids
}
