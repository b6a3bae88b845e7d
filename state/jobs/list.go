package jobs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"runner.example/internal/fault"
	"runner.example/state/store"
)

func invalidf(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// Filter selects jobs. The zero value selects the newest of all.
type Filter struct {
	State  State  `json:"state,omitempty"`
	Name   string `json:"name,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// Page is a part of a list of jobs, the newest first.
type Page struct {
	Jobs []Job `json:"jobs"`
	// NextCursor continues after it; empty at the end. A page with a cursor may have no jobs:
	// the jobs that were read do not match.
	NextCursor string `json:"nextCursor,omitempty"`
}

const (
	// DefaultPage is Filter.Limit if it is zero.
	DefaultPage = 100
	maxPage     = 1000
	// maxLooked is how many jobs are read for a page.
	maxLooked = 10_000
)

// Get returns a job.
func Get(tx *store.Tx, id string) (*Job, error) {
	r, err := read(tx, id)
	if err != nil {
		return nil, err
	}
	return &r.Job, nil
}

// List returns the jobs that the filter selects, the newest first: with State Failed by the time of the
// failure, otherwise by the time at which they were enqueued.
func List(tx *store.Tx, f Filter) (page Page, err error) {
	switch {
	case f.Limit == 0:
		f.Limit = DefaultPage
	case f.Limit < 0 || f.Limit > maxPage:
		return page, invalidf("limit must be between 1 and %d", maxPage)
	}
	if f.State != "" && !slices.Contains(States, f.State) {
		return page, invalidf("unknown state %q: use waiting, running, done, failed or cancelled", f.State)
	}
	prefix, skip := []byte(recordPrefix), 0
	if f.State == Failed {
		prefix, skip = []byte(failedPrefix), 8
	}
	var from []byte
	if f.Cursor != "" {
		if from, err = readCursor(f.Cursor, prefix); err != nil {
			return page, err
		}
	}
	page.Jobs = []Job{}
	looked := 0
	for item, err := range tx.Scan(prefix, from, true) {
		if err != nil {
			return page, err
		}
		if bytes.Equal(item.Key, from) {
			continue
		}
		id := string(item.Key[len(prefix)+skip:])
		var r *record
		if skip == 0 {
			r, err = decode(id, item.Value)
		} else {
			r, err = read(tx, id)
		}
		switch {
		case errors.Is(err, ErrNotFound): // of a record that could not be read when it expired
			continue
		case errors.Is(err, errUnreadable):
			r, err = &record{Job: Job{ID: id, Error: err.Error()}}, nil
		}
		if err != nil {
			return page, err
		}
		if (f.State == "" || r.State == f.State) && (f.Name == "" || r.Name == f.Name) &&
			(f.Tenant == "" || r.Caller.Tenant == f.Tenant) {
			page.Jobs = append(page.Jobs, r.Job)
		}
		if looked++; len(page.Jobs) == f.Limit || looked == maxLooked {
			page.NextCursor = fmt.Sprintf("%x", item.Key)
			return page, nil
		}
	}
	return page, nil
}

func readCursor(text string, prefix []byte) (key []byte, err error) {
	if _, err = fmt.Sscanf(text, "%x", &key); err != nil || !bytes.HasPrefix(key, prefix) {
		return nil, invalidf("the cursor is not one of this list")
	}
	return key, nil
}

// SweepEvery is the interval at which Sweep should be called.
const SweepEvery = 10 * time.Minute

const sweepBatch = 1000

// Sweep deletes the jobs that ended and have expired at now, and pauses that are over, in its own transactions. On a node that is
// not the owner of its cluster it does nothing.
func Sweep(ctx context.Context, st *store.Store, now time.Time) error {
	for full := st.IsOwner(); full; {
		_, err := st.UpdateAsOwner(ctx, func(tx *store.Tx) error {
			if err := sweepPauses(tx, now); err != nil {
				return err
			}
			n := 0
			for item, err := range tx.Scan([]byte(expiresPrefix), nil, false) {
				if err != nil {
					return err
				}
				if Time(binary.BigEndian.Uint64(item.Key[len(expiresPrefix):])) > timeOf(now) || n == sweepBatch {
					break
				}
				n++
				if err := remove(tx, bytes.Clone(item.Key)); err != nil {
					return err
				}
			}
			full = n == sweepBatch
			return nil
		})
		if errors.Is(err, store.ErrNotOwner) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("delete expired jobs: %w", err)
		}
	}
	return nil
}

func remove(tx *store.Tx, key []byte) error {
	id := string(key[len(expiresPrefix)+8:])
	r, err := read(tx, id)
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, errUnreadable) {
		return err
	}
	err = errors.Join(tx.Delete(key), tx.Delete(recordKey(id)))
	if r != nil {
		err = errors.Join(err, tx.Delete(timedKey(failedPrefix, r.Ended, id)))
	}
	return err
}
