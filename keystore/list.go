package keystore

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"runner.example/internal/fault"
	"runner.example/store"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// Filter says which keys to list.
type Filter struct {
	// Scope is a scope's name; empty: every scope.
	Scope string
	// All lists expired and revoked keys too.
	All bool
	// Limit is 1-1000; 0: 100.
	Limit int
	// Cursor is the NextCursor of the page before; empty: from the start.
	Cursor string
}

// Page is a part of a list, oldest key first.
type Page struct {
	Keys []Key `json:"keys"`
	// NextCursor is empty, null in JSON, on the last page.
	NextCursor string `json:"nextCursor"`
}

// MarshalJSON encodes the page; a page without keys has an empty list.
func (p Page) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Keys       []Key   `json:"keys"`
		NextCursor *string `json:"nextCursor"`
	}{append([]Key{}, p.Keys...), orNull(p.NextCursor)})
}

// Get returns the key, without a token. The fault is NotFound.
func (k *Keystore) Get(tx *store.Tx, a Authority, id string) (Key, error) {
	r, err := k.reach(tx, a, id)
	if err != nil {
		return Key{}, err
	}
	return k.keyAt(r, k.clock.latest()), nil
}

// List returns the keys that the caller reaches, without tokens: an operator all
// of them, a handler's caller those it could manage. The fault is Invalid.
func (k *Keystore) List(tx *store.Tx, a Authority, f Filter) (Page, error) {
	if f.Limit == 0 {
		f.Limit = defaultLimit
	}
	if f.Limit < 0 || f.Limit > maxLimit {
		return Page{}, fault.New(fault.Invalid, "limit must be between 1 and %d", maxLimit)
	}
	if f.Cursor != "" && !validID(keyIDs, f.Cursor) {
		return Page{}, fault.New(fault.Invalid, "the cursor is not one that a list gave")
	}
	page, err := k.page(tx, a, f, k.clock.latest())
	if err != nil {
		return Page{}, err
	}
	// A scope that the schema has no longer may still have keys; one that never
	// was is a slip of the pen.
	if len(page.Keys) == 0 && f.Scope != "" && f.Cursor == "" {
		if _, err := a.scope(f.Scope); err != nil {
			return Page{}, err
		}
	}
	return page, nil
}

func (k *Keystore) page(tx *store.Tx, a Authority, f Filter, now int64) (Page, error) {
	prefix := []byte(prefixKey)
	ofTenant := !a.isOperator() || a.Caller.Tenant != ""
	if ofTenant {
		prefix = tenantPrefix(a.Caller.Tenant)
	}
	var from []byte
	if f.Cursor != "" {
		from = append([]byte(string(prefix)+f.Cursor), 0)
	}
	var page Page
	for item, err := range tx.Scan(prefix, from, false) {
		if err == nil {
			err = a.readsKey()
		}
		if err != nil {
			return Page{}, err
		}
		if ofTenant && !f.All {
			end, err := decodeTime(item.Value)
			if err != nil {
				return Page{}, fmt.Errorf("read the keys of a tenant: %w", err)
			}
			if now >= end {
				continue // without reading the key: the dead are never deleted
			}
		}
		r, err := k.listed(tx, a, f, strings.TrimPrefix(string(item.Key), string(prefix)), now)
		if err != nil {
			return Page{}, err
		}
		if r == nil {
			continue
		}
		if len(page.Keys) == f.Limit {
			page.NextCursor = page.Keys[f.Limit-1].ID
			return page, nil
		}
		page.Keys = append(page.Keys, k.keyAt(r, now))
	}
	return page, nil
}

// listed returns the key when it belongs on the list, else nil.
func (k *Keystore) listed(tx *store.Tx, a Authority, f Filter, id string, now int64) (*record, error) {
	r, err := k.reach(tx, a, id)
	if errors.Is(err, errNoKey) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !f.All && now >= r.end() || !a.ofScope(r, f.Scope) {
		return nil, nil
	}
	return r, nil
}

// ofScope reports whether the key is of the scope with that name: by the name it
// was made under or, when the scope was renamed since, by today's.
func (a Authority) ofScope(r *record, name string) bool {
	if name == "" || r.Scope == name {
		return true
	}
	if a.Schema == nil {
		return false
	}
	scope := a.Schema.ScopeOf(r.Scope, r.Capability)
	return scope != nil && scope.Name == name
}
