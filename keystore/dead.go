package keystore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"runner.example/internal/caller"
	"runner.example/keystore/tokenindex"
	"runner.example/state/audit"
	"runner.example/state/store"
)

// deadPerWrite is the number of keys that one transaction of the background task reads.
const deadPerWrite = 200

// deadKey is what stays in memory of a revoked or expired key, so that the log can say
// why its token is refused.
type deadKey struct {
	id      ulid.ULID
	ended   int64 // ms
	revoked bool
}

// deadIdentity returns the identity of a token that is not in the index of live keys.
func deadIdentity(dead *tokenindex.Index[deadKey], mac [sha256.Size]byte) Identity {
	n := dead.Find(mac)
	switch {
	case n == nil:
		return Identity{Refused: Unknown}
	case n.Of.revoked:
		return Identity{ID: n.Of.keyID(), Refused: KeyRevoked}
	}
	return Identity{ID: n.Of.keyID(), Refused: KeyExpired}
}

func (d *deadKey) keyID() string { return keyIDs + strings.ToLower(d.id.String()) }

// loadKey loads one key at startup, a dead one into the index of dead keys.
func (k *Keystore) loadKey(item store.Item, now int64) error {
	r, err := decodeRecord(item.Value)
	if err != nil || !r.dead(now) {
		return k.follow(item.Version, item.Key, item.Value)
	}
	macs := make([][sha256.Size]byte, len(r.Tokens))
	for i, t := range r.Tokens {
		macs[i] = [sha256.Size]byte(t.MAC)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return addDead(k.dead, r.ID, r.end(), r.Revoked != 0, macs)
}

// addDead adds the tokens of a key to the index of dead ones. The caller holds the lock.
func addDead(dead *tokenindex.Index[deadKey], id string, ended int64, revoked bool, macs [][sha256.Size]byte) error {
	number, err := ulid.ParseStrict(strings.TrimPrefix(id, keyIDs))
	if err != nil {
		return fmt.Errorf("read id of key %s: %w", id, err)
	}
	d := &deadKey{number, ended, revoked}
	for _, mac := range macs {
		dead.Put(mac, 0, d)
	}
	return nil
}

// dropDead removes the keys that ended since the last call from memory and from the lists
// of live keys. Last uses must be written before.
func (k *Keystore) dropDead(ctx context.Context) error {
	k.upkeep.mu.Lock()
	defer k.upkeep.mu.Unlock()
	now := k.clock.Now()
	dead, expired := k.deadAt(now)
	if err := k.moveExpired(ctx, expired, now); err != nil { // Revoke has moved the others
		return err
	}
	return k.dropKeys(dead)
}

// moveExpired moves keys that have expired since the last call to the lists of dead ones. On a node
// that is not the owner of its cluster it does nothing: when the node becomes the owner, it finds
// them in the lists.
func (k *Keystore) moveExpired(ctx context.Context, expired []string, now int64) error {
	u := &k.upkeep
	if !k.store.IsOwner() {
		u.unmoved, u.listed = nil, false
		return nil
	}
	u.unmoved = append(u.unmoved, expired...)
	if !u.listed {
		all, err := expiredInLists(ctx, k.store, now)
		if err != nil {
			return err
		}
		u.unmoved, u.listed = all, true
	}
	for len(u.unmoved) > 0 {
		n := min(len(u.unmoved), deadPerWrite)
		_, err := k.store.UpdateAsOwner(ctx, func(tx *store.Tx) error { return moveDead(tx, u.unmoved[:n], now) })
		if errors.Is(err, store.ErrNotOwner) {
			u.unmoved, u.listed = nil, false
			return nil
		}
		if err != nil {
			return err
		}
		u.unmoved = u.unmoved[n:]
	}
	u.unmoved = nil
	return nil
}

// expiredInLists returns the ids of the keys in the lists of live ones that ended up to now, in ms.
func expiredInLists(ctx context.Context, st *store.Store, now int64) (ids []string, err error) {
	err = st.View(ctx, func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte(prefixTenant), nil, false) {
			if err != nil {
				return fmt.Errorf("read lists of keys: %w", err)
			}
			end, err := decodeTime(item.Value)
			if err != nil {
				return fmt.Errorf("read list of keys: %w", err)
			}
			if now >= end {
				ids = append(ids, string(item.Key[max(0, len(item.Key)-len(keyIDs)-ulid.EncodedSize):]))
			}
		}
		return nil
	})
	return ids, err
}

// deadAt returns the ids of the keys in memory that are dead at now, in ms, and those of
// them that expired without being revoked.
func (k *Keystore) deadAt(now int64) (all, expired []string) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for id, known := range k.keys {
		e := known.entry
		if e == nil || e.revoked == 0 && now < e.expires {
			continue
		}
		all = append(all, id)
		if e.revoked == 0 {
			expired = append(expired, id)
		}
	}
	return all, expired
}

// moveDead moves keys that are dead at now to the lists of their tenants' dead keys.
func moveDead(tx *store.Tx, ids []string, now int64) error {
	for _, id := range ids {
		value, err := tx.Get(keyOf(id))
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		r, err := decodeRecord(value)
		if err != nil || !r.dead(now) { // a damaged one was logged at startup
			continue
		}
		if err := r.moveToDead(tx); err != nil {
			return err
		}
	}
	return nil
}

// dropKeys removes keys from memory, except the reason to refuse their tokens.
func (k *Keystore) dropKeys(ids []string) error {
	for some := range slices.Chunk(ids, deadPerWrite) { // so that the lock is released in between
		if err := k.dropSome(some); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keystore) dropSome(ids []string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		known := k.keys[id]
		e := known.entry
		if e == nil { // it cannot be read
			continue
		}
		ended := e.expires
		if e.revoked != 0 {
			ended = e.revoked
		}
		if err := addDead(k.dead, id, ended, e.revoked != 0, known.macs); err != nil {
			return err
		}
		for _, mac := range known.macs { // after it is in the index of dead keys
			k.index.Remove(mac)
		}
		delete(k.keys, id)
		delete(k.useOf, id)
		delete(k.unlisted, id)
	}
	return nil
}

// sweep deletes keys, sessions and platform keys that ended long ago. Last uses are written first, so
// that none is written for a deleted one. It is for one goroutine at a time.
func (k *Keystore) sweep(ctx context.Context) error {
	if err := k.writePending(ctx); err != nil {
		return err
	}
	if err := k.dropDead(ctx); err != nil {
		return err
	}
	if !k.clock.Settled() {
		return nil
	}
	now := k.clock.Now()
	before := now - k.upkeep.keepDead.Milliseconds()
	var errs error
	if k.store.IsOwner() {
		for _, err := range []error{
			k.sweepKeys(ctx, before), k.Platform.sweep(ctx, before), k.sweepSessions(ctx, now-keptAfterEnd.Milliseconds()),
		} {
			if !errors.Is(err, store.ErrNotOwner) { // the next owner continues
				errs = errors.Join(errs, err)
			}
		}
	}
	return errors.Join(errs, k.dropDeleted(ctx, before))
}

// sweepKeys deletes the keys that ended before a time, in ms. Each transaction writes an
// audit record.
func (k *Keystore) sweepKeys(ctx context.Context, before int64) error {
	for some := range slices.Chunk(k.keysEndedBefore(before), deadPerWrite) {
		_, err := k.store.UpdateAsOwner(ctx, func(tx *store.Tx) error { return deleteKeys(tx, some, before) })
		if err != nil {
			return fmt.Errorf("delete keys: %w", err)
		}
	}
	return nil
}

// dropDeleted removes dead keys from memory that were deleted, and that ended before a time, in ms.
func (k *Keystore) dropDeleted(ctx context.Context, before int64) error {
	deleted := map[string]bool{}
	err := k.store.View(ctx, func(tx *store.Tx) error {
		for _, id := range k.keysEndedBefore(before) {
			if _, err := tx.Get(keyOf(id)); errors.Is(err, store.ErrNotFound) {
				deleted[id] = true
			} else if err != nil {
				return fmt.Errorf("find deleted keys: %w", err)
			}
		}
		return nil
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead.RemoveIf(func(d *deadKey) bool { return d.ended < before && deleted[d.keyID()] })
	return err
}

func (k *Keystore) keysEndedBefore(before int64) (ids []string) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	seen := map[*deadKey]bool{}
	k.dead.Each(func(d *deadKey) {
		if d.ended < before && !seen[d] {
			seen[d] = true
			ids = append(ids, d.keyID())
		}
	})
	return ids
}

func deleteKeys(tx *store.Tx, ids []string, before int64) error {
	deleted := 0
	for _, id := range ids {
		r, err := read(tx, id)
		if errors.Is(err, store.ErrNotFound) || err == nil && r.end() >= before { // revoked after it expired
			continue
		}
		if err == nil {
			err = r.delete(tx)
		}
		if err != nil {
			return err
		}
		deleted++
	}
	return recordSweep(tx, "apiKeys.sweep", before, deleted)
}

// recordSweep writes the audit record of a sweep, unless it has deleted nothing.
func recordSweep(tx *store.Tx, action string, before int64, deleted int) error {
	if deleted == 0 {
		return nil
	}
	return audit.Append(tx, audit.Record{
		Actor: audit.ActorOf(caller.Caller{Kind: caller.System}), Action: action, Result: audit.OK,
		Reason: "ended before " + timeOf(before).Format(timeLayout), Count: deleted,
	})
}
