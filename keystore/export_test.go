package keystore

import "context"

// DropDead does what the background task does once a minute.
func (k *Keystore) DropDead(ctx context.Context) error { return k.dropDead(ctx) }
