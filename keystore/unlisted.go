package keystore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"runner.example/state/store"
)

// Older versions wrote keys without the kind of the owner, and without an entry in a list of the
// owner. A record without the kind shows this, so the store needs no mark, and a key that an older
// node of the cluster or an older backup adds is found, too. Until these keys are written again,
// the keys of an owner are searched for in the list of the tenant.

// keysPerWrite is the number of keys that one transaction of addToOwnerLists writes.
const keysPerWrite = 500

// hasUnlisted reports whether a live key may be missing in the list of its owner.
func (k *Keystore) hasUnlisted() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.unlisted) > 0
}

// addToOwnerLists writes the keys that are missing in the list of their owner. In a cluster only
// the owner of the store does that. A key that was written stays in unlisted until the next call,
// because transactions that began before the write do not see its entry.
func (k *Keystore) addToOwnerLists(ctx context.Context) error {
	ids, err := k.missing(ctx)
	if err != nil || !k.store.IsOwner() {
		return err
	}
	for n := keysPerWrite; len(ids) > 0; {
		n = min(len(ids), n)
		_, err := k.store.UpdateAsOwner(ctx, func(tx *store.Tx) error {
			for _, id := range ids[:n] {
				if r, err := readUnlisted(tx, id); err != nil {
					return err
				} else if r != nil {
					if err := r.write(tx); err != nil {
						return err
					}
				}
			}
			return nil
		})
		switch {
		case errors.Is(err, store.ErrNotOwner):
			return nil
		case (errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrTooLarge)) && n > 1:
			n /= 2
			continue
		case err != nil:
			return fmt.Errorf("write keys of an older version: %w", err)
		}
		ids = ids[n:]
	}
	return nil
}

// missing returns the keys in unlisted that are still to be written, and removes the others from it.
func (k *Keystore) missing(ctx context.Context) (ids []string, err error) {
	k.mu.RLock()
	all := slices.Sorted(maps.Keys(k.unlisted))
	k.mu.RUnlock()
	if len(all) == 0 {
		return nil, nil
	}
	var listed []string
	err = k.store.View(ctx, func(tx *store.Tx) error {
		for _, id := range all {
			r, err := readUnlisted(tx, id)
			if err != nil {
				return err
			}
			if r == nil {
				listed = append(listed, id)
			} else {
				ids = append(ids, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range listed {
		delete(k.unlisted, id)
	}
	if len(k.unlisted) == 0 {
		k.unlisted = map[string]bool{} // a map keeps the memory of what was deleted
	}
	return ids, nil
}

// readUnlisted returns the key if it may be missing in the list of its owner, else nil.
func readUnlisted(tx *store.Tx, id string) (*record, error) {
	value, err := tx.Get(keyOf(id))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := decodeRecord(value)
	if err != nil || !r.unlisted || r.Revoked != 0 { // a damaged one was logged at startup
		return nil, nil
	}
	return r, nil
}
