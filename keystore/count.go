package keystore

import (
	"errors"
	"fmt"

	"runner.example/internal/fault"
	"runner.example/state/store"
)

// The number of a tenant's keys is stored besides their list, so that creating a key need
// not scan deleted records: the store skips them one by one until it has compacted them.
// The number is that of the list's entries that count, including expired ones until they
// are moved. If no number is stored, the list is counted.

// counted reports whether the key counts for maxPerTenant. Keys that an operator created
// without a tenant do not.
func (r *record) counted() bool { return r.Tenant != "" || r.Owner != "" }

// countNew counts the new key r, and refuses it if its tenant is at the limit.
func countNew(tx *store.Tx, a Authority, r *record, now int64) error {
	limit := a.Schema.APIKeys.MaxPerTenant
	switch {
	case !r.counted():
		return nil
	case limit == 0: // not read, so that concurrent creations do not conflict
		return tx.Delete(countKeyOf(r.Tenant))
	}
	n, known, err := readCount(tx, r.Tenant)
	if err != nil {
		return err
	}
	if !known || n >= int64(limit) {
		live := 0
		if n, live, err = a.countList(tx, r.Tenant, now); err != nil {
			return err
		}
		if live >= limit {
			return fault.New(fault.Conflict, "the tenant has %d live keys, the limit (maxPerTenant): revoke one first", limit)
		}
	}
	return tx.Set(countKeyOf(r.Tenant), encodeTime(n+1))
}

// countDead subtracts a key that leaves its tenant's list.
func (r *record) countDead(tx *store.Tx) error {
	if !r.counted() {
		return nil
	}
	_, err := tx.Get(listKey(prefixTenant, r.Tenant, r.ID))
	if errors.Is(err, store.ErrNotFound) { // it left before
		return nil
	}
	if err != nil {
		return err
	}
	n, known, err := readCount(tx, r.Tenant)
	if err != nil || !known {
		return err
	}
	return tx.Set(countKeyOf(r.Tenant), encodeTime(n-1))
}

func readCount(tx *store.Tx, tenant string) (n int64, known bool, err error) {
	value, err := tx.Get(countKeyOf(tenant))
	if errors.Is(err, store.ErrNotFound) {
		return 0, false, nil
	}
	if err == nil {
		n, err = decodeTime(value)
	}
	if err != nil {
		return 0, false, fmt.Errorf("read number of keys of a tenant: %w", err)
	}
	return n, true, nil
}

// countList counts the entries of a tenant's list, and those of them that are live at
// now.
func (a Authority) countList(tx *store.Tx, tenant string, now int64) (all int64, live int, err error) {
	prefix := listPrefix(prefixTenant, tenant)
	for item, err := range tx.Scan(prefix, nil, false) {
		if err == nil {
			err = a.readsKey()
		}
		if err != nil {
			return 0, 0, err
		}
		end, err := decodeTime(item.Value)
		if err != nil {
			return 0, 0, fmt.Errorf("read keys of a tenant: %w", err)
		}
		if tenant == "" {
			r, err := read(tx, string(item.Key[len(prefix):]))
			if err != nil {
				return 0, 0, err
			}
			if !r.counted() {
				continue
			}
		}
		all++
		if now < end {
			live++
		}
	}
	return all, live, nil
}

func countKeyOf(tenant string) []byte { return []byte(prefixCount + tenant) }
