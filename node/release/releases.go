package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/settings"
	"runner.example/state/audit"
	"runner.example/state/store"
)

const (
	keyActive    = "release/active"
	prefixRecord = "release/record/"
)

// Options configure Releases.
type Options struct {
	// Keep is how many of the releases that were activated last are kept, besides the active and the
	// previous one, and how many of the newest ones that were never activated.
	Keep int `toml:"release.keep" default:"10" min:"1" max:"1000"`
	// TrustedKeys are the Ed25519 public keys of those who may release, each as the line between
	// BEGIN and END that `openssl pkey -pubout` prints. If the list is not empty, a release without a
	// valid signature of one of them is not accepted, activated or served.
	TrustedKeys TrustedKeys `toml:"release.trusted_keys" reload:"true"`
	// Logger gets a line for each release and each blob that is deleted; nil: none is logged.
	Logger *slog.Logger
}

// CheckSetting checks a trusted key.
func (o *Options) CheckSetting(_, value string) error {
	if _, err := ParseKey(value); err != nil {
		return fmt.Errorf("an entry %w", err)
	}
	return nil
}

// Releases are the releases in a store. They are safe for concurrent use.
type Releases struct {
	store *store.Store
	opt   Options
	// trusted are the trusted keys in force.
	trusted atomic.Pointer[TrustedKeys]
	// adding is held while a release is staged or added, and while blobs are deleted.
	adding sync.Mutex
}

// New returns the releases in st.
func New(st *store.Store, opt Options) *Releases {
	settings.FillZero(&opt)
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Releases{store: st, opt: opt}
	r.SetTrustedKeys(opt.TrustedKeys)
	return r
}

// SetTrustedKeys changes the keys whose signatures Add accepts from now on. It does not check
// releases that are stored already.
func (r *Releases) SetTrustedKeys(keys TrustedKeys) { r.trusted.Store(&keys) }

// TrustedKeys returns the keys whose signatures Add accepts. The caller must not change them.
func (r *Releases) TrustedKeys() TrustedKeys { return *r.trusted.Load() }

// Author is who changes something, for the audit.
type Author struct {
	Actor audit.Actor
	// RequestID is that of the command; Address that of a remote client, or empty.
	RequestID, Address string
}

// Release is a stored release.
type Release struct {
	ID string `json:"id"`
	Manifest
	// Added is when it was added last, By who did it.
	Added audit.Timestamp `json:"added"`
	By    audit.Actor     `json:"by"`
	// First is when it was added first.
	First audit.Timestamp `json:"first"`
	// Activated is when it was activated last; the zero time: it never was.
	Activated audit.Timestamp `json:"activated,omitzero"`
	// Trees describe the files of modules. The node counts them when the release is added.
	Trees []TreeInfo `json:"trees,omitempty"`
	// Signatures are in the order in which they were added.
	Signatures []Signature `json:"signatures,omitempty"`
}

// Origin is where the active release came from.
type Origin string

// The origins.
const (
	Folder Origin = "folder" // the app directory of the server
	Deploy Origin = "deploy" // an operator's command: a deployment or a rollback
)

// Pointer names the active release.
type Pointer struct {
	ID string `json:"id"`
	// Previous is the id of the release that was active before; empty for the first.
	Previous string          `json:"previous"`
	Origin   Origin          `json:"origin"`
	Time     audit.Timestamp `json:"time"`
	By       audit.Actor     `json:"by"`
}

// Missing returns the files of a manifest whose contents this node does not have, after it has fetched
// those that another node of the cluster has. If it has a listing, these are also the contents that it names. The
// error is a fault with the code Invalid if a listing is not valid.
func (r *Releases) Missing(ctx context.Context, m Manifest) ([]File, error) {
	missing, err := r.fetchMissing(ctx, m.Files) // the listings too
	if err != nil {
		return nil, err
	}
	damaged, err := r.damagedListings(ctx, m)
	if err != nil {
		return nil, err
	}
	c, err := r.stored(ctx, m.without(func(name string) bool {
		return slices.ContainsFunc(damaged, func(f File) bool { return f.Name == name })
	}))
	if err != nil {
		return nil, err
	}
	more, err := r.fetchMissing(ctx, slices.DeleteFunc(c.blobs, func(f File) bool { return slices.Contains(m.Files, f) }))
	return slices.Concat(missing, damaged, more), err
}

// Fetch fetches the contents of stored releases that this node does not have, from other nodes of the
// cluster. With them, this node can go back to any of these releases without the others, and its backups
// are complete. What cannot be fetched is logged.
func (r *Releases) Fetch(ctx context.Context) error {
	all, _, err := r.List(ctx)
	if err != nil {
		return err
	}
	for _, rel := range all {
		if err := r.fetchRelease(ctx, rel.Manifest); err != nil && ctx.Err() == nil {
			r.opt.Logger.Warn("contents of a release not fetched", "release", rel.ID, "cause", err)
		}
	}
	return ctx.Err()
}

// fetchRelease fetches the contents of a release that this node does not have.
func (r *Releases) fetchRelease(ctx context.Context, m Manifest) error {
	fetch := func(blobs []File) error {
		missing, err := r.storedBefore(blobs, time.Time{})
		if err == nil {
			err = r.fetch(ctx, missing)
		}
		return err
	}
	if err := fetch(m.Files); err != nil {
		return err
	}
	c, err := r.stored(ctx, m)
	if err != nil {
		return err
	}
	return fetch(c.blobs)
}

// storedBefore returns those of the files whose contents this node does not have, or has stored before
// oldest.
func (r *Releases) storedBefore(files []File, oldest time.Time) (found []File, err error) {
	for _, f := range files {
		r.store.AdoptBlob(f.Digest) // it may be that of an upload, which ends without a row
		blob, err := r.store.StatBlob(f.Digest)
		switch {
		case errors.Is(err, store.ErrNotFound) || err == nil && (blob.Size != f.Size || blob.Stored.Before(oldest)):
			found = append(found, f)
		case err != nil:
			return nil, err
		}
	}
	return found, nil
}

// Add stores the record of a release, whose contents are in the store already, with a signature;
// nil: without one. A release that was added before counts as new from then on, and keeps its other
// signatures. The error is that of TrustedKeys.Add if the signature is not valid, or if a signature
// of a trusted key is needed and neither this one is nor one that is stored. If contents are
// missing on this node and cannot be fetched, it is a fault with the code Conflict that names them.
// Then nothing is stored.
func (r *Releases) Add(ctx context.Context, m Manifest, signature *Signature, by Author) (rel Release, err error) {
	if err := m.Check(); err != nil {
		return rel, err
	}
	if _, err := r.Missing(ctx, m); err != nil { // which fetches without the lock
		return rel, err
	}
	r.adding.Lock()
	defer r.adding.Unlock()
	c, err := r.stored(ctx, m)
	if err != nil {
		return rel, err
	}
	missing, err := r.storedBefore(c.blobs, time.Time{})
	if err != nil {
		return rel, err
	}
	_, err = r.store.Update(ctx, func(tx *store.Tx) (err error) {
		if rel, err = newRecord(tx, m, c.trees, by); err != nil {
			return err
		}
		if rel, err = r.TrustedKeys().Add(rel, signature); err != nil {
			return err
		}
		if len(missing) > 0 {
			return lacking(missing)
		}
		reason := ""
		if signature != nil {
			reason = "signed by " + signature.Key
		}
		return rel.write(tx, by, reason)
	})
	return rel, err
}

// lacking is the error for files whose contents are missing.
func lacking(files []File) error {
	return fault.New(fault.Conflict, "the server lacks the contents of %s: send them first", namesOf(files))
}

func namesOf(files []File) string {
	var names []string
	for _, f := range files[:min(maxNamed, len(files))] {
		names = append(names, fmt.Sprintf("%s (%v)", f.Name, f.Digest))
	}
	if more := len(files) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// newRecord returns the record of a release that is added now. If it was added before, it keeps its
// signatures and when it was activated.
func newRecord(tx *store.Tx, m Manifest, trees []TreeInfo, by Author) (Release, error) {
	m.Files = slices.Clone(m.Files)
	m.sort()
	now := audit.Timestamp{Time: tx.Now()}
	rel := Release{ID: m.ID(), Manifest: m, Added: now, By: by.Actor, First: now, Trees: trees}
	switch before, err := Get(tx, rel.ID); {
	case err == nil:
		rel.First, rel.Activated, rel.Signatures = before.First, before.Activated, before.Signatures
	case fault.CodeOf(err) != fault.NotFound:
		return rel, err
	}
	return rel, nil
}

// write writes the record in tx.
func (rel Release) write(tx *store.Tx, by Author, reason string) error {
	if err := set(tx, prefixRecord+rel.ID, rel); err != nil {
		return err
	}
	return by.record(tx, "releases.add", rel.ID, reason)
}

// Staged is a release whose contents are stored, and whose record is not stored yet.
type Staged struct {
	ID       string
	releases *Releases
	manifest Manifest
	contents contents
	by       Author
}

// Stage stores the contents of a release that are missing, or that a sweep might delete soon. Add must
// follow within half an hour.
func (r *Releases) Stage(ctx context.Context, app string, files []FileData, by Author) (*Staged, error) {
	m := Describe(app, files)
	if err := m.Check(); err != nil {
		return nil, err
	}
	c, err := given(m, files)
	if err != nil {
		return nil, err
	}
	staged := &Staged{m.ID(), r, m, c, by}
	r.adding.Lock() // a sweep that has read the age of a blob deletes it before
	defer r.adding.Unlock()
	var missing []File
	err = r.store.View(ctx, func(tx *store.Tx) (err error) {
		missing, err = staged.unsafe(tx, blobAge/4)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := r.storeContents(ctx, files, missing); err != nil {
		return nil, err
	}
	return staged, nil
}

// batchBytes is how many bytes of contents are in memory while those of a tree are stored.
const batchBytes = 8 << 20

// storeContents stores those of the contents that are missing.
func (r *Releases) storeContents(ctx context.Context, files []FileData, missing []File) error {
	lacks := map[store.Digest]File{}
	for _, f := range missing {
		lacks[f.Digest] = f
	}
	var batch [][]byte
	bytes := 0
	store := func(data []byte) error {
		batch, bytes = append(batch, data), bytes+len(data)
		if bytes < batchBytes {
			return nil
		}
		all := batch
		batch, bytes = nil, 0
		return r.store.PutBlobs(ctx, all)
	}
	for _, f := range files {
		if digest := digestOf(f.Data); lacks[digest].Name != "" {
			delete(lacks, digest)
			if err := store(f.Data); err != nil {
				return fmt.Errorf("store %s: %w", f.Name, err)
			}
		}
		if f.Tree == nil {
			continue
		}
		for _, listed := range f.Tree.List() {
			if lacks[listed.SHA256].Name == "" {
				continue
			}
			delete(lacks, listed.SHA256)
			data, err := f.Tree.ReadFile(listed.Path)
			if err == nil {
				err = store(data)
			}
			if err != nil {
				return fmt.Errorf("store files of %s: %w", f.Name, err)
			}
		}
	}
	return r.store.PutBlobs(ctx, batch)
}

// unsafe returns the files whose contents are missing, or older than that while no record names them.
func (s *Staged) unsafe(tx *store.Tx, age time.Duration) ([]File, error) {
	oldest := clock.System().Add(-age)
	if _, err := Get(tx, s.ID); err == nil {
		oldest = time.Time{} // no sweep deletes what a record names
	} else if fault.CodeOf(err) != fault.NotFound {
		return nil, err
	}
	return s.releases.storedBefore(s.contents.blobs, oldest)
}

// Add writes the record in tx. If the release is the active one already, it writes nothing. It does
// not check signatures. The error is a fault with the code Conflict if a sweep has deleted the record of
// the release since Stage, and with it contents that Stage has found.
func (s *Staged) Add(tx *store.Tx) error {
	active, err := Active(tx)
	if err != nil {
		return err
	}
	if active.ID == s.ID {
		if _, err := Get(tx, s.ID); err == nil {
			return nil
		}
	}
	lost, err := s.unsafe(tx, 3*blobAge/4)
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		return fault.New(fault.Conflict,
			"the contents of %s were deleted meanwhile, because no release that is kept names them: try again", namesOf(lost))
	}
	rel, err := newRecord(tx, s.manifest, s.contents.trees, s.by)
	if err != nil {
		return err
	}
	return rel.write(tx, s.by, "")
}

// record writes an audit record in tx.
func (by Author) record(tx *store.Tx, action, id, reason string) error {
	return audit.Append(tx, audit.Record{
		RequestID: by.RequestID, Actor: by.Actor, Action: action, Target: id, Result: audit.OK, Reason: reason,
		Address: by.Address,
	})
}

func set(tx *store.Tx, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return tx.Set([]byte(key), text)
}

// get reads the value of a key; the error matches store.ErrNotFound if there is none.
func get[T any](tx *store.Tx, key string) (value T, err error) {
	text, err := tx.Get([]byte(key))
	if err != nil {
		return value, err
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return value, fmt.Errorf("read %s: %w", key, err)
	}
	return value, nil
}

// Get returns a stored release. The error is a fault with the code NotFound if there is none with
// this id.
func Get(tx *store.Tx, id string) (Release, error) {
	rel, err := get[Release](tx, prefixRecord+id)
	if errors.Is(err, store.ErrNotFound) {
		return rel, Unknown(id)
	}
	return rel, err
}

// Unknown returns the fault about an id of no stored release.
func Unknown(id string) error {
	return fault.New(fault.NotFound, "there is no release %s", id).WithHint(KeptHint)
}

// KeptHint says which command lists the stored releases.
const KeptHint = "runner releases lists those that are kept"

// Active returns the pointer; the zero value if no release is active.
func Active(tx *store.Tx) (Pointer, error) {
	p, err := get[Pointer](tx, keyActive)
	if errors.Is(err, store.ErrNotFound) {
		return p, nil
	}
	return p, err
}

// IsOlder reports whether a stored release was first added before the active one was: to activate
// it is a rollback, even if it was added again since. The error is a fault with the code NotFound if
// there is no release with this id.
func IsOlder(tx *store.Tx, id string) (bool, error) {
	next, err := Get(tx, id)
	if err != nil {
		return false, err
	}
	pointer, err := Active(tx)
	if err != nil || pointer.ID == "" {
		return false, err
	}
	active, err := Get(tx, pointer.ID)
	return err == nil && next.First.Before(active.First.Time), err
}

// List returns all stored releases, the newest first, and the pointer.
func (r *Releases) List(ctx context.Context) (all []Release, active Pointer, err error) {
	err = r.store.View(ctx, func(tx *store.Tx) (err error) {
		all, active, err = list(tx)
		return err
	})
	return all, active, err
}

func list(tx *store.Tx) (all []Release, active Pointer, err error) {
	if active, err = Active(tx); err != nil {
		return nil, active, err
	}
	for item, err := range tx.Scan([]byte(prefixRecord), nil, false) {
		if err != nil {
			return nil, active, err
		}
		var rel Release
		if err := json.Unmarshal(item.Value, &rel); err != nil {
			return nil, active, fmt.Errorf("read %s: %w", item.Key, err)
		}
		all = append(all, rel)
	}
	slices.SortStableFunc(all, func(a, b Release) int { return b.Added.Compare(a.Added.Time) })
	return all, active, nil
}

// Read reads a stored release and its files without debug files: serving the release does not need them. Its trees are
// complete on this node, and their contents are read later. The error is
// a fault with the code NotFound if there is no such release, or one of Contents.
func (r *Releases) Read(ctx context.Context, id string) (rel Release, files []FileData, err error) {
	err = r.store.View(ctx, func(tx *store.Tx) (err error) {
		rel, err = Get(tx, id)
		return err
	})
	if err != nil {
		return rel, nil, err
	}
	m := rel.Manifest.without(IsDebug)
	if files, err = r.Contents(ctx, m); err != nil {
		return rel, nil, err
	}
	return rel, files, r.addTrees(ctx, m, files)
}

// without returns the manifest without the files whose names match.
func (m Manifest) without(names func(string) bool) Manifest {
	m.Files = slices.DeleteFunc(slices.Clone(m.Files), func(f File) bool { return names(f.Name) })
	return m
}

// Module reads the file of the module with a digest, and its debug file; nil: it has none. They come from the active
// release if it has the module, else from the newest release that has it. If only the debug file cannot be read,
// Module returns the module and the error. If no release has the module, the error is a fault with the code NotFound.
func (r *Releases) Module(ctx context.Context, digest store.Digest) (module, debug []byte, err error) {
	all, active, err := r.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	if i := slices.IndexFunc(all, func(rel Release) bool { return rel.ID == active.ID }); i > 0 {
		all[0], all[i] = all[i], all[0]
	}
	for _, rel := range all {
		at := slices.IndexFunc(rel.Files, func(f File) bool { return IsModule(f.Name) && f.Digest == digest })
		if at < 0 {
			continue
		}
		if module, err = r.content(ctx, rel.Files[at]); err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", rel.Files[at].Name, err)
		}
		debugName := DebugOf(rel.Files[at].Name)
		if at = slices.IndexFunc(rel.Files, func(f File) bool { return f.Name == debugName }); at < 0 {
			return module, nil, nil
		}
		if debug, err = r.content(ctx, rel.Files[at]); err != nil {
			return module, nil, fmt.Errorf("read %s: %w", debugName, err)
		}
		return module, debug, nil
	}
	return nil, nil, fault.New(fault.NotFound, "no release has a module with the SHA-256 %v", digest)
}

// UnreadableError says that a file of a release is missing or damaged.
type UnreadableError struct{ *fault.Fault }

// Unwrap returns the fault, whose code is Unavailable.
func (e *UnreadableError) Unwrap() error { return e.Fault }

func unreadable(f File, err error) error {
	return &UnreadableError{fault.New(fault.Unavailable,
		"file %s with the SHA-256 %v cannot be read: send it again with runner deploy --send-all, or restore a backup: %v",
		f.Name, f.Digest, err)}
}

// Contents reads the files of a release, and compares them with their digests. The error joins an
// *UnreadableError for each file that is missing or damaged.
func (r *Releases) Contents(ctx context.Context, m Manifest) (files []FileData, err error) {
	var all []error
	for _, f := range m.Files {
		data, err := r.content(ctx, f)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			all = append(all, unreadable(f, err))
		}
		files = append(files, FileData{Name: f.Name, Data: data})
	}
	return files, errors.Join(all...)
}

func (r *Releases) content(ctx context.Context, f File) ([]byte, error) {
	blob, err := r.store.Blob(ctx, f.Digest)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	data := make([]byte, f.Size) // io.ReadAll would allocate several times as much
	_, err = io.ReadFull(blob, data)
	return data, err
}

// Activation changes the pointer.
type Activation struct {
	ID     string
	Origin Origin
	By     Author
	// Expected, if not nil, is the id of the release that must still be active; empty for none.
	Expected *string
	// ReplaceApp and AllowEmpty are for whoever decides whether to activate: the active release may be one of another app,
	// and the schema may declare nothing that is served or stored.
	ReplaceApp bool
	AllowEmpty bool
}

// Activate makes a stored release the active one. It is called in the transaction that activates
// its schema, for the caller's other reads and writes to be one change with it. The error is a
// fault with the code NotFound if the release is not stored (any more), or Conflict if another
// one than expected is active. If the pointer is right already, nothing is written.
func (a Activation) Activate(tx *store.Tx) error {
	rel, err := Get(tx, a.ID)
	if err != nil {
		return err
	}
	old, err := Active(tx)
	if err != nil {
		return err
	}
	if a.Expected != nil && *a.Expected != old.ID {
		return fault.New(fault.Conflict,
			"another release has been activated meanwhile: %s, and not %s: look at the difference again",
			nameOf(old.ID), nameOf(*a.Expected))
	}
	if old.ID == a.ID && old.Origin == a.Origin {
		return nil
	}
	now := audit.Timestamp{Time: tx.Now()}
	rel.Activated = now
	if err := set(tx, prefixRecord+a.ID, rel); err != nil {
		return err
	}
	next := Pointer{ID: a.ID, Previous: old.ID, Origin: a.Origin, Time: now, By: a.By.Actor}
	if old.ID == a.ID {
		next.Previous = old.Previous
	}
	if err := set(tx, keyActive, next); err != nil {
		return err
	}
	reason := "from the app directory"
	if a.Origin == Deploy {
		reason = "was " + nameOf(old.ID)
	}
	return a.By.record(tx, "releases.activate", a.ID, reason)
}

func nameOf(id string) string {
	if id == "" {
		return "none"
	}
	return id
}

// Deactivate removes the pointer: what is served is not a stored release.
func Deactivate(tx *store.Tx) error {
	old, err := Active(tx)
	if err != nil || old.ID == "" {
		return err
	}
	return tx.Delete([]byte(keyActive))
}
