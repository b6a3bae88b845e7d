package auth

import "runner.example/state/store"

// WriteTo has the counts written to another store.
func (a *Authenticator) WriteTo(st *store.Store) { a.store = st }
