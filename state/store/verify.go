package store

import (
	"context"
	"errors"
	"io/fs"

	"runner.example/state/store/files"
)

// WaitChecked waits until all tables have been read once since Open, or until ctx ends,
// and returns the damage found so far. Before that, reads detect a block with a changed
// content, but not one with a changed checksum length, and may miss its keys.
func (s *Store) WaitChecked(ctx context.Context) error {
	if s.scrubber != nil {
		select {
		case <-s.scrubber.settled:
		case <-s.scrubber.done:
		case <-ctx.Done():
		}
	}
	if cause := s.damage.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Verify reads all tables and blobs of the store and checks them. The error matches
// ErrDamaged and names the first file that is not as the store wrote it, or
// ErrUnavailable. Open has checked the other files.
func (s *Store) Verify(ctx context.Context) error {
	return s.View(ctx, func(tx *Tx) error {
		if _, err := tx.Snapshot(); err != nil { // the snapshot keeps the store open
			return err
		}
		if s.scrubber != nil {
			for _, id := range s.scrubber.ids() {
				if ctx.Err() != nil {
					return unavailable(context.Cause(ctx))
				}
				if _, err := s.scrubber.check(id); err != nil {
					return err
				}
			}
		}
		return s.blobs.Each(func(d Digest) error {
			r, err := s.blobs.Read(ctx, d)
			switch {
			case errors.Is(err, ErrUnavailable):
				return err
			case errors.Is(err, fs.ErrNotExist): // deleted meanwhile
				return nil
			case err != nil:
				return files.InFile(s.blobs.Path(d), err)
			}
			return r.Close()
		})
	})
}
