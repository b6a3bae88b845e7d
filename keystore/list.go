package keystore

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"runner.example/internal/fault"
	"runner.example/state/store"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// Filter says which keys to list.
type Filter struct {
	// Scope is the name of a scope; empty: every scope.
	Scope string
	// Owner is the id of a user or a key that created the keys; empty: any.
	Owner string
	// All includes expired and revoked keys. The caller's own keys are then searched for in the
	// list of the tenant.
	All bool
	// Limit is 1-1000; 0: 100.
	Limit int
	// Cursor is the NextCursor of the previous page; empty: from the start.
	Cursor string
}

// Page is a part of a list, oldest key first.
type Page struct {
	Keys []Key `json:"keys"`
	// NextCursor is empty, null in JSON, on the last page.
	NextCursor string `json:"nextCursor"`
}

// pageJSON is the JSON form of a Page.
type pageJSON struct {
	Keys       []Key   `json:"keys"`
	NextCursor *string `json:"nextCursor"`
}

// MarshalJSON encodes the page; a page without keys has an empty list.
func (p Page) MarshalJSON() ([]byte, error) {
	return json.Marshal(pageJSON{append([]Key{}, p.Keys...), orNull(p.NextCursor)})
}

// JSONForm returns the zero value of what MarshalJSON encodes.
func (Page) JSONForm() []any { return []any{pageJSON{}} }

// Get returns the key, without a token. The fault is NotFound.
func (k *Keystore) Get(tx *store.Tx, a Authority, id string) (Key, error) {
	r, err := k.reach(tx, a, id)
	if err != nil {
		return Key{}, err
	}
	return k.keyAt(tx, r, k.clock.Latest())
}

// List returns the keys that the caller reaches, without tokens. If the caller is not an operator
// and no @manage is true for it, List reads only the caller's own keys. The fault is Invalid.
func (k *Keystore) List(tx *store.Tx, a Authority, f Filter) (Page, error) {
	if f.Limit == 0 {
		f.Limit = defaultLimit
	}
	if f.Limit < 0 || f.Limit > maxLimit {
		return Page{}, fault.New(fault.Invalid, "limit must be between 1 and %d", maxLimit)
	}
	if f.Cursor != "" && !validID(keyIDs, f.Cursor) {
		return Page{}, invalid(f.Cursor, "the cursor is not a nextCursor of a list")
	}
	page, err := k.page(tx, a, f, k.clock.Latest())
	if err != nil {
		return Page{}, err
	}
	// A scope that was removed from the schema may still have keys. A scope without keys
	// that is not declared is an error.
	if len(page.Keys) == 0 && f.Scope != "" && f.Cursor == "" {
		if _, err := a.scope(f.Scope); err != nil {
			return Page{}, err
		}
	}
	return page, nil
}

func (k *Keystore) page(tx *store.Tx, a Authority, f Filter, now int64) (Page, error) {
	var page Page
	for id, err := range k.candidates(tx, a, f, now) {
		if err != nil {
			return Page{}, err
		}
		r, err := k.listed(tx, a, f, id, now)
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
		key, err := k.keyAt(tx, r, now)
		if err != nil {
			return Page{}, err
		}
		page.Keys = append(page.Keys, key)
	}
	return page, nil
}

// candidates yields ids that come after the cursor, in order: those of all keys of the list, and
// perhaps others.
func (k *Keystore) candidates(tx *store.Tx, a Authority, f Filter, now int64) iter.Seq2[string, error] {
	switch {
	case a.isOperator() && a.Caller.Tenant == "":
		return a.listEntries(tx, []byte(prefixKey), f.Cursor, nil)
	case a.isOperator() || f.All || a.manages(f.Scope) || k.hasUnlisted():
		return a.tenantEntries(tx, f, now)
	}
	return a.ownEntries(tx, f, now)
}

// ownEntries yields the ids, in order, of the keys that the caller created and that come after
// the cursor. If the caller is a key, its own id is one of them.
func (a Authority) ownEntries(tx *store.Tx, f Filter, now int64) iter.Seq2[string, error] {
	kind, id := a.owner()
	if id == "" {
		return func(func(string, error) bool) {}
	}
	own := a.listEntries(tx, ownerPrefix(a.Caller.Tenant, kind, id), f.Cursor, func(end int64) bool { return now < end })
	if kind != OwnerKey || id <= f.Cursor {
		return own
	}
	return func(yield func(string, error) bool) {
		self := true // still to be yielded
		for other, err := range own {
			if self && err == nil && id < other {
				if self = false; !yield(id, nil) {
					return
				}
			}
			if !yield(other, err) {
				return
			}
		}
		if self {
			yield(id, nil)
		}
	}
}

// tenantEntries yields the ids of the keys of the caller's tenant that come after the
// cursor, in order.
func (a Authority) tenantEntries(tx *store.Tx, f Filter, now int64) iter.Seq2[string, error] {
	live := listPrefix(prefixTenant, a.Caller.Tenant)
	if !f.All {
		return a.listEntries(tx, live, f.Cursor, func(end int64) bool { return now < end })
	}
	return merged(a.listEntries(tx, live, f.Cursor, nil),
		a.listEntries(tx, listPrefix(prefixDead, a.Caller.Tenant), f.Cursor, nil))
}

// listEntries yields the ids under the prefix that come after the cursor, in order. If
// takes is not nil, the values are ends of keys and only those that it accepts are yielded.
func (a Authority) listEntries(tx *store.Tx, prefix []byte, cursor string,
	takes func(end int64) bool) iter.Seq2[string, error] {
	var from []byte
	if cursor != "" {
		from = append([]byte(string(prefix)+cursor), 0)
	}
	return func(yield func(string, error) bool) {
		for item, err := range tx.Scan(prefix, from, false) {
			if err == nil {
				err = a.readsKey()
			}
			if err == nil && takes != nil {
				var end int64
				if end, err = decodeTime(item.Value); err == nil && !takes(end) {
					continue
				}
			}
			if err != nil {
				yield("", fmt.Errorf("read list of keys: %w", err))
				return
			}
			if !yield(string(item.Key[len(prefix):]), nil) {
				return
			}
		}
	}
}

// merged merges two ordered sequences. It must not be called in a handler's operation: iter.Pull2
// fails in a goroutine that a guest has locked to its thread.
func merged(a, b iter.Seq2[string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		next, stop := iter.Pull2(b)
		defer stop()
		other, err, ok := next()
		for id, failed := range a {
			for ; ok && err == nil && failed == nil && other < id; other, err, ok = next() {
				if !yield(other, nil) {
					return
				}
			}
			if !yield(id, failed) {
				return
			}
		}
		for ; ok; other, err, ok = next() {
			if !yield(other, err) {
				return
			}
		}
	}
}

// listed returns the key if it belongs to the list, else nil.
func (k *Keystore) listed(tx *store.Tx, a Authority, f Filter, id string, now int64) (*record, error) {
	r, err := k.reach(tx, a, id)
	if errors.Is(err, errNoKey) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !f.All && r.dead(now) || !a.ofScope(r, f.Scope) || f.Owner != "" && r.Owner != f.Owner {
		return nil, nil
	}
	return r, nil
}

// ofScope reports whether the key belongs to the scope with that name: the name that it
// was created with or, if the scope was renamed since, the current one.
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
