package keystore

import "context"

// DropDead does what the background task does once a minute.
func (k *Keystore) DropDead(ctx context.Context) error { return k.dropDead(ctx) }

// AddToOwnerLists is one run of the background task that completes the lists of owners.
func (k *Keystore) AddToOwnerLists(ctx context.Context) error { return k.addToOwnerLists(ctx) }

// Unlisted is the number of keys that may be missing in the list of their owner.
func (k *Keystore) Unlisted() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.unlisted)
}
