package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"runner.example/keystore"
	"runner.example/node/backup"
	"runner.example/node/release"
	"runner.example/state/audit"
	"runner.example/state/store"
)

// DrillOptions are what a restore drill needs.
type DrillOptions struct {
	// Dir is the directory in which a temporary directory is made; "": that of the system. The restored store
	// takes about as much space as the one that was backed up.
	Dir string
	// Pepper is the path of the pepper of the backed-up store.
	Pepper string
	// Step is called at the beginning of each step after the restore, with its name.
	Step func(name string)
}

// Drill is what a restore drill has found in a backup.
type Drill struct {
	backup.Info
	// Keys and Sessions are how many API keys and sessions the store has, also revoked and expired ones.
	Keys     int `json:"keys"`
	Sessions int `json:"sessions"`
	// AuditRecords is the number of records of the audit chain.
	AuditRecords uint64 `json:"auditRecords"`
	// Releases and Blobs are how many releases the store has, and files with their contents.
	Releases int `json:"releases"`
	Blobs    int `json:"blobs"`
	// ActiveRelease is the id of the active one, or empty.
	ActiveRelease string `json:"activeRelease"`
}

// VerifyBackup restores a backup into a temporary directory, checks what it has restored, and removes it: the
// checksums of all tables and the digests of all blobs, the newest commit, the keys, the audit chain with the head
// of the backup, and the contents of all releases. The error matches backup.ErrInvalid if the backup cannot
// replace the store.
func VerifyBackup(ctx context.Context, in io.Reader, opt DrillOptions) (d Drill, err error) {
	dir, err := os.MkdirTemp(opt.Dir, "runner-verify-")
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	data := filepath.Join(dir, "data")
	if d.Info, err = backup.Restore(ctx, in, backup.RestoreOptions{Dir: data, Pepper: opt.Pepper}); err != nil {
		return d, err
	}
	return d, d.check(ctx, data, opt.Step)
}

// check checks a restored data directory, and counts what is in it.
func (d *Drill) check(ctx context.Context, data string, step func(string)) (err error) {
	begin := ""
	defer func() {
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
			err = fmt.Errorf("%w: %s: %w", backup.ErrInvalid, begin, err)
		}
	}()
	next := func(name string) { begin = name; step(name) }
	next("open the restored store")
	st, err := store.Open(store.Options{Dir: data})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if applied := uint64(st.Health().Applied); applied != d.Sequence {
		return fmt.Errorf("the newest commit is %d, and %d in the head of the backup", applied, d.Sequence)
	}
	next("check tables and blobs")
	if err := st.Verify(ctx); err != nil {
		return err
	}
	blobs, err := st.Blobs()
	if err != nil {
		return err
	}
	d.Blobs = len(blobs)
	next("check keys")
	keys, err := keystore.Open(ctx, st, keystore.Options{Dir: data})
	if err != nil {
		return err
	}
	counts := keys.Counts()
	for _, n := range counts.Keys {
		d.Keys += n
	}
	for _, n := range counts.Sessions {
		d.Sessions += n
	}
	if err := keys.Close(); err != nil {
		return err
	}
	next("check the audit chain")
	want, err := audit.ParseHead(d.AuditHead)
	if err != nil {
		return err
	}
	head, err := audit.Verify(ctx, st, want)
	if err != nil {
		return err
	}
	d.AuditRecords = head.Count
	next("check releases")
	return d.checkReleases(ctx, st)
}

// checkReleases checks that each release is the one of its id, and that all its contents are there.
func (d *Drill) checkReleases(ctx context.Context, st *store.Store) error {
	releases := release.New(st, release.Options{})
	all, active, err := releases.List(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if id := r.Manifest.ID(); id != r.ID {
			return fmt.Errorf("the files of release %s are those of %s", r.ID, id)
		}
		missing, err := releases.Missing(ctx, r.Manifest)
		if err != nil {
			return fmt.Errorf("release %s: %w", r.ID, err)
		}
		if len(missing) > 0 {
			return fmt.Errorf("release %s lacks the contents of %q", r.ID, missing[0].Name)
		}
	}
	if active.ID != "" && !slices.ContainsFunc(all, func(r release.Release) bool { return r.ID == active.ID }) {
		return fmt.Errorf("the active release %s is missing", active.ID)
	}
	d.Releases, d.ActiveRelease = len(all), active.ID
	return nil
}
