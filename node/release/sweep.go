package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"runner.example/internal/fault"
	"runner.example/state/store"
)

// blobAge is how old a blob must be before it is deleted because neither a release nor a row names it: an upload
// writes blobs first, and the record after all of them.
const blobAge = time.Hour

// Sweep deletes the records of all releases but those that are kept, and then the blobs that neither a
// record nor a row names. It is the only sweep of blobs. now is the time that the age of blobs ends with. While a backup is written no blob
// is deleted; the next Sweep does it. In a cluster the owner deletes the records. Each node deletes its
// blobs, and fetches those that it lacks.
func (r *Releases) Sweep(ctx context.Context, now time.Time) error {
	if r.store.IsOwner() {
		if err := r.sweepRecords(ctx); err != nil && !errors.Is(err, store.ErrNotOwner) {
			return fmt.Errorf("sweep releases: %w", err)
		}
	}
	var errs []error
	if err := r.sweepBlobs(ctx, now); err != nil {
		errs = append(errs, fmt.Errorf("sweep blobs of releases: %w", err))
	}
	if err := r.Fetch(ctx); err != nil {
		errs = append(errs, fmt.Errorf("fetch blobs of releases: %w", err))
	}
	return errors.Join(errs...)
}

func (r *Releases) sweepRecords(ctx context.Context) error {
	var dropped []string
	_, err := r.store.UpdateAsOwner(ctx, func(tx *store.Tx) error {
		dropped = nil
		all, active, err := list(tx)
		if err != nil {
			return err
		}
		// Releases that were never activated, such as refused ones, do not take the places of those to
		// which a rollback returns.
		slices.SortStableFunc(all, func(a, b Release) int { return b.Activated.Compare(a.Activated.Time) })
		places := map[bool]int{true: r.opt.Keep, false: r.opt.Keep}
		for _, rel := range all {
			never := rel.Activated.IsZero()
			places[never]--
			if places[never] >= 0 || rel.ID == active.ID || rel.ID == active.Previous {
				continue
			}
			if err := tx.Delete([]byte(prefixRecord + rel.ID)); err != nil {
				return err
			}
			dropped = append(dropped, rel.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range dropped {
		r.opt.Logger.Info("release deleted", "release", id)
	}
	return nil
}

// ReferencedBlobs returns the blobs that belong to the releases. The error is one of the store, or says that this node
// lacks a listing or cannot read it.
func (r *Releases) ReferencedBlobs(ctx context.Context) (map[store.Digest]bool, error) {
	all, _, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	referenced, err := r.referencedBlobs(ctx, all)
	if err == nil && referenced == nil {
		err = fault.New(fault.Unavailable, "this node lacks the files of a release: try again when it has fetched them")
	}
	return referenced, err
}

// referencedBlobs returns the blobs that belong to the releases. It returns nil if this node lacks a listing, until Fetch
// gets it, and an error if a listing is damaged: then the blobs of the listing are unknown, and none may be deleted.
func (r *Releases) referencedBlobs(ctx context.Context, all []Release) (map[store.Digest]bool, error) {
	referenced := map[store.Digest]bool{}
	for _, rel := range all {
		for _, f := range rel.Files {
			if referenced[f.Digest] {
				continue // the releases share it
			}
			referenced[f.Digest] = true
			if !IsTree(f.Name) {
				continue
			}
			if _, err := r.store.StatBlob(f.Digest); errors.Is(err, store.ErrNotFound) {
				return nil, nil
			}
			files, err := r.readListing(ctx, f)
			if err != nil {
				return nil, fmt.Errorf("read %s of release %s: %w", f.Name, rel.ID, err)
			}
			for _, listed := range files {
				referenced[listed.SHA256] = true
			}
		}
	}
	return referenced, nil
}

func (r *Releases) sweepBlobs(ctx context.Context, now time.Time) error {
	if err := r.store.Barrier(ctx); err != nil { // the records of other nodes count too
		return err
	}
	r.adding.Lock()
	defer r.adding.Unlock()
	all, _, err := r.List(ctx)
	if err != nil {
		return err
	}
	referenced, err := r.referencedBlobs(ctx, all)
	if referenced == nil || err != nil {
		return err
	}
	return r.store.SweepBlobs(ctx, now.Add(-blobAge), func(d store.Digest) bool { return referenced[d] }, func(b store.BlobInfo) {
		r.opt.Logger.Info("blob deleted", "sha256", b.Digest.String(), "bytes", b.Size)
	})
}
