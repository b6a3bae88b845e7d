package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// tenure is work of several transactions, which one node of a cluster does. Each of them fails with
// store.ErrNotOwner if another node has been the owner since the work began: that one may have undone
// what the first of them did.
type tenure struct {
	store *store.Store
	since store.Seq
}

// beginTenure returns the tenure of this node. The error matches store.ErrNotOwner if it has none.
func beginTenure(ctx context.Context, st *store.Store) (tenure, error) {
	t := tenure{store: st}
	err := st.View(ctx, func(tx *store.Tx) (err error) {
		t.since, err = tx.Tenure()
		return err
	})
	return t, err
}

// update is store.Update in this tenure.
func (t tenure) update(ctx context.Context, fn func(*store.Tx) error) (store.Seq, error) {
	return t.store.Update(ctx, func(tx *store.Tx) error {
		since, err := tx.Tenure()
		if err == nil && since != t.since {
			err = store.ErrNotOwner
		}
		if err != nil {
			return err
		}
		return fn(tx)
	})
}

// TakeOver ends what activations of an earlier owner of the cluster, or of an earlier process, have
// left: writers that they stopped can write again, and indexes that they began are dropped. It must
// not run at the same time as an activation, which does the same at its begin. The error matches
// store.ErrNotOwner if this node is not the owner (any more).
func TakeOver(ctx context.Context, st *store.Store) error {
	t, err := beginTenure(ctx, st)
	if err == nil {
		err = t.takeOver(ctx)
	}
	if err != nil {
		return fmt.Errorf("end interrupted activations: %w", err)
	}
	return nil
}

func (t tenure) takeOver(ctx context.Context) error {
	return errors.Join(t.thaw(ctx), t.dropAll(ctx, markReserved))
}

// thaw ends the freeze of an activation that did not end.
func (t tenure) thaw(ctx context.Context) error {
	_, err := t.update(ctx, func(tx *store.Tx) error {
		generation, err := readNumber(tx, layout.KeyGeneration)
		if err != nil || generation&frozen == 0 {
			return err
		}
		return writeGeneration(tx, generation&^frozen)
	})
	return err
}

// dropAll removes the entries of all indexes with that mark.
func (t tenure) dropAll(ctx context.Context, mark byte) error {
	var numbers []uint32
	err := t.store.View(ctx, func(tx *store.Tx) (err error) {
		numbers, err = numbersIn(tx, layout.SpaceDropped, func(value []byte) bool {
			return len(value) == 1 && value[0] == mark
		})
		return err
	})
	for _, number := range numbers {
		for more := true; more && err == nil; {
			_, err = t.update(ctx, func(tx *store.Tx) error {
				more, err = dropSome(tx, number)
				return err
			})
		}
	}
	return err
}

// followBuilt marks indexes of the tables as built when another node has built them. It returns when
// this node is the owner. The error is that of store.WaitOwner, or of a read.
func followBuilt(ctx context.Context, st *store.Store, tables []*layout.Table) error {
	unbuilt := map[uint32]*layout.Index{}
	for _, t := range tables {
		for _, x := range t.Indexes {
			if !x.IsBuilt() {
				unbuilt[x.Number] = x
			}
		}
	}
	if len(unbuilt) > 0 {
		// Followed first, then read: an index that is built in between is marked twice.
		defer st.OnApply([]byte(layout.SpaceUnbuilt), func(seq store.Seq, c store.Change) {
			if number := c.Key[len(layout.SpaceUnbuilt):]; c.Deleted && len(number) == 4 {
				if x := unbuilt[binary.BigEndian.Uint32(number)]; x != nil {
					x.MarkBuilt(seq)
				}
			}
		})()
		if err := MarkBuilt(ctx, st, tables); err != nil {
			return err
		}
	}
	_, err := st.WaitOwner(ctx, 0)
	return err
}
