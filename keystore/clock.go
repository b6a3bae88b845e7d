package keystore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/state/audit"
	"runner.example/state/store"
)

// ClockState is the credential time and the wall clock.
type ClockState struct {
	// Time is the credential time, Wall what the wall clock shows. Both are in UTC.
	Time time.Time `json:"time"`
	Wall time.Time `json:"clock"`
	// Quarantined says why the wall clock is quarantined; empty: it is not.
	Quarantined string `json:"quarantined"`
}

// ClockChange is what AcceptClock did.
type ClockChange struct {
	// From is the credential time before, To the wall clock's.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Revoked counts the keys, sessions and platform keys that were revoked because they were created
	// after To.
	Revoked int `json:"revoked"`
}

// Clock returns the state of the clock.
func (k *Keystore) Clock() ClockState {
	s := ClockState{Time: timeOf(k.clock.Now()), Wall: k.clock.Wall()}
	if cause := k.Ready(); cause != nil {
		s.Quarantined = cause.Error()
	}
	return s
}

// AcceptClock sets the credential time to the wall clock. If that is earlier, it first
// revokes the credentials that were created later, because their lifetimes were counted
// from a future time. No other goroutine may create credentials meanwhile. The fault is
// Denied unless a is an operator.
func (k *Keystore) AcceptClock(ctx context.Context, a Authority) (ClockChange, error) {
	if !a.isOperator() {
		return ClockChange{}, fault.New(fault.Denied, "only an operator may accept the wall clock")
	}
	change := ClockChange{From: timeOf(k.clock.Now()), To: k.clock.Wall()}
	if change.To.Before(change.From) {
		from, to := change.From.UnixMilli(), change.To.UnixMilli()
		later, revived, err := credentialsBetween(ctx, k.store, to, from)
		if err != nil {
			return change, err
		}
		for some := range slices.Chunk(later, deadPerWrite) {
			if err := k.revokeAll(ctx, a, some, to); err != nil {
				return change, err
			}
		}
		for some := range slices.Chunk(revived, deadPerWrite) {
			if err := reviveAll(ctx, k.store, some); err != nil {
				return change, err
			}
		}
		change.Revoked = len(later)
	}
	_, err := k.store.Update(ctx, func(tx *store.Tx) error {
		return audit.Append(tx, audit.Record{
			RequestID: a.RequestID, Actor: audit.ActorOf(a.Caller), Action: "clock.accept", Result: audit.OK, Address: a.Address,
			Reason: fmt.Sprintf("from %s to %s", change.From.Format(timeLayout), change.To.Format(timeLayout)),
			Count:  change.Revoked,
		})
	})
	if err != nil {
		return change, err
	}
	k.clock.Accept()
	return change, nil
}

// credentialsBetween returns the ids of the keys, sessions and platform keys that were created after to, in ms, and
// of the older keys that expired from then up to from.
func credentialsBetween(ctx context.Context, st *store.Store, to, from int64) (later, revived []string, err error) {
	err = st.View(ctx, func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte(prefixKey), nil, false) {
			if err != nil {
				return err
			}
			switch r, err := decodeRecord(item.Value); {
			case err != nil || r.Revoked != 0: // refused anyway
			case r.Created > to:
				later = append(later, r.ID)
			case r.Expires > to && r.Expires <= from:
				revived = append(revived, r.ID)
			}
		}
		for item, err := range tx.Scan([]byte(prefixSession), nil, false) {
			if err != nil {
				return err
			}
			if r, err := decodeSession(item.Value); err == nil && r.Created > to && r.Revoked == 0 {
				later = append(later, r.ID)
			}
		}
		for item, err := range tx.Scan([]byte(prefixPlatform), nil, false) {
			if err != nil {
				return err
			}
			if r, err := decodePlatform(item.Value); err == nil && r.Created > to && r.Revoked == 0 {
				later = append(later, r.ID)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("find credentials created after %s: %w", timeOf(to).Format(time.RFC3339), err)
	}
	return later, revived, nil
}

func (k *Keystore) revokeAll(ctx context.Context, a Authority, ids []string, now int64) error {
	_, err := k.store.Update(ctx, func(tx *store.Tx) error {
		for _, id := range ids {
			var err error
			switch {
			case validID(keyIDs, id):
				err = k.revokeKeyAt(tx, a, id, now)
			case validID(platformIDs, id):
				if _, err = k.Platform.revokeAt(tx, a, id, now); errors.Is(err, errNoPlatformKey) {
					err = nil
				}
			default:
				err = k.replaceSession(tx, a, id, now)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

func (k *Keystore) revokeKeyAt(tx *store.Tx, a Authority, id string, now int64) error {
	r, err := read(tx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	r.Revoked = now
	_, err = k.commit(tx, a, "apiKeys.revoke", r, now, secret.Token{})
	return err
}

// reviveAll moves keys that are not expired any more back to the lists of live keys.
func reviveAll(ctx context.Context, st *store.Store, ids []string) error {
	_, err := st.Update(ctx, func(tx *store.Tx) error {
		for _, id := range ids {
			r, err := read(tx, id)
			if err == nil {
				err = r.moveToLive(tx)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
