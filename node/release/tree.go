package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/tree"
	"runner.example/state/store"
)

// TreeInfo describes the tree of files of a module, or of assets.
type TreeInfo struct {
	// Name is the file of the release that lists them.
	Name  string `json:"name"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

// contents are the blobs of a release: its files, and those that its listings name.
type contents struct {
	// blobs has each content once, under the first name that it has. Those of a listing follow the files.
	blobs []File
	trees []TreeInfo
}

// add adds the files of a listing.
func (c *contents) add(listing File, files []tree.File, seen map[store.Digest]bool) {
	info := TreeInfo{Name: listing.Name, Files: len(files)}
	for _, f := range files {
		info.Bytes += f.Size
		if digest := store.Digest(f.SHA256); !seen[digest] {
			seen[digest] = true
			c.blobs = append(c.blobs, ContentOf(listing.Name, f))
		}
	}
	c.trees = append(c.trees, info)
}

// ContentOf returns a file of a tree as one of a release, for messages and uploads. name is that of its listing.
func ContentOf(name string, f tree.File) File {
	return File{Name: tree.Quoted(f.Path) + " of " + name, Size: f.Size, Digest: f.SHA256}
}

// checkTrees returns why the trees of a release are too large together, a fault with the code Invalid: those of modules,
// or those of assets.
func checkTrees(m Manifest, trees []TreeInfo) error {
	of := func(assets bool, what string) error {
		files, bytes := measure(m, slices.DeleteFunc(slices.Clone(trees), func(info TreeInfo) bool {
			_, is := AssetsDir(info.Name)
			return is != assets
		}))
		if files > tree.MaxFiles {
			return fault.New(fault.Invalid, "the directories of %s have %d files together, and the limit is %d", what, files, tree.MaxFiles)
		}
		if bytes > tree.MaxBytes {
			return fault.New(fault.Invalid, "the directories of %s have %d bytes together, and the limit is %d", what, bytes, tree.MaxBytes)
		}
		return nil
	}
	return errors.Join(of(false, "the modules"), of(true, "assets"))
}

// measure returns how many files, and bytes of them, the trees of a release have together. Equal ones count once.
func measure(m Manifest, trees []TreeInfo) (files int, bytes int64) {
	counted := map[store.Digest]bool{}
	for _, info := range trees {
		at := slices.IndexFunc(m.Files, func(f File) bool { return f.Name == info.Name })
		if digest := m.Files[at].Digest; !counted[digest] {
			counted[digest] = true
			files += info.Files
			bytes += info.Bytes
		}
	}
	return files, bytes
}

// given returns the contents of files that are here, with their manifest.
func given(m Manifest, files []FileData) (c contents, err error) {
	seen := map[store.Digest]bool{}
	c.addFiles(m, seen)
	for _, f := range files {
		if f.Tree != nil {
			listing := m.Files[slices.IndexFunc(m.Files, func(listed File) bool { return listed.Name == f.Name })]
			c.add(listing, f.Tree.List(), seen)
		}
	}
	return c, checkTrees(m, c.trees)
}

func (c *contents) addFiles(m Manifest, seen map[store.Digest]bool) {
	for _, f := range m.Files {
		if !seen[f.Digest] {
			seen[f.Digest] = true
			c.blobs = append(c.blobs, f)
		}
	}
}

// stored returns the contents of a release whose files are stored, or some of them. The error joins a fault with the code
// Invalid for each listing that is not valid.
func (r *Releases) stored(ctx context.Context, m Manifest) (c contents, err error) {
	seen := map[store.Digest]bool{}
	c.addFiles(m, seen)
	var all []error
	for _, f := range m.Files {
		if !IsTree(f.Name) {
			continue
		}
		if info, err := r.store.StatBlob(f.Digest); errors.Is(err, store.ErrNotFound) || err == nil && info.Size != f.Size {
			continue // it is not known which blobs it names
		}
		files, err := r.readListing(ctx, f)
		if err != nil {
			all = append(all, err)
			continue
		}
		c.add(f, files, seen)
	}
	if err := errors.Join(all...); err != nil {
		return c, err
	}
	return c, checkTrees(m, c.trees)
}

// readListing reads a listing that is stored. The error is an *UnreadableError if it is damaged.
func (r *Releases) readListing(ctx context.Context, f File) ([]tree.File, error) {
	data, err := r.content(ctx, f)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, unreadable(f, err)
	}
	files, err := tree.Parse(data)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s cannot be used: %v", f.Name, err)
	}
	return files, nil
}

// Listing returns the files that a listing of a stored release names. The error is a fault with the code NotFound if the
// release does not exist or has no file with that name.
func (r *Releases) Listing(ctx context.Context, id, name string) (listing []byte, err error) {
	var rel Release
	err = r.store.View(ctx, func(tx *store.Tx) (err error) {
		rel, err = Get(tx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(rel.Files, func(f File) bool { return f.Name == name && IsTree(name) })
	if at < 0 {
		return nil, fault.New(fault.NotFound, "release %s has no listing %.80q", id, name)
	}
	if listing, err = r.content(ctx, rel.Files[at]); err != nil && ctx.Err() == nil {
		err = unreadable(rel.Files[at], err)
	}
	return listing, err
}

// Tree returns a tree whose contents are blobs of the store. They are read when they are asked for, from this node alone.
// The error of a read is an *UnreadableError.
func (r *Releases) Tree(files []tree.File) (*tree.Tree, error) {
	return tree.New(files, func(f tree.File) ([]byte, error) {
		data, err := r.localContent(f)
		if err != nil {
			err = unreadable(File{Name: tree.Quoted(f.Path), Digest: f.SHA256}, err)
		}
		return data, err
	})
}

func (r *Releases) localContent(f tree.File) ([]byte, error) {
	blob, err := r.store.LocalBlob(context.Background(), f.SHA256)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	data := make([]byte, f.Size)
	_, err = io.ReadFull(blob, data)
	return data, err
}

// addTrees gives the listings among the files their trees, after all contents are here. The error joins an
// *UnreadableError for each content that is missing, and a few of many.
func (r *Releases) addTrees(ctx context.Context, m Manifest, files []FileData) error {
	c, err := r.stored(ctx, m)
	if err != nil {
		return &UnreadableError{fault.Wrap(err, fault.Unavailable, "%s", fault.Of(err).Detail)}
	}
	missing, err := r.storedBefore(c.blobs, time.Time{})
	if err != nil {
		return err
	}
	unfetched := r.fetch(ctx, missing)
	if missing, err = r.storedBefore(missing, time.Time{}); err != nil || ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if len(missing) > 0 {
		return &UnreadableError{fault.Wrap(unfetched, fault.Unavailable,
			"the contents of %s cannot be read: send them again with runner deploy, or restore a backup%s",
			namesOf(missing), because(unfetched))}
	}
	for i, f := range files {
		if !IsTree(f.Name) {
			continue
		}
		listed, err := tree.Parse(f.Data)
		if err != nil {
			return err // it was parsed before
		}
		if files[i].Tree, err = r.Tree(listed); err != nil {
			return err
		}
	}
	return nil
}

// damagedListings returns the listings among the files of a release that this node has and cannot read.
func (r *Releases) damagedListings(ctx context.Context, m Manifest) (damaged []File, err error) {
	for _, f := range m.Files {
		if _, err := r.store.StatBlob(f.Digest); !IsTree(f.Name) || err != nil {
			continue
		}
		_, err := r.readListing(ctx, f)
		if _, unreadable := errors.AsType[*UnreadableError](err); unreadable {
			damaged = append(damaged, f)
		} else if ctx.Err() != nil {
			return nil, err
		}
	}
	return damaged, nil
}

// MissingBlobs returns those of the blobs that this node does not have, after it has fetched those that another node of
// the cluster has. The names of the files are not used.
func (r *Releases) MissingBlobs(ctx context.Context, blobs []File) ([]File, error) {
	return r.fetchMissing(ctx, blobs)
}

// fetchMissing returns those of the blobs that this node does not have, after it has fetched those that another node of
// the cluster has.
func (r *Releases) fetchMissing(ctx context.Context, blobs []File) ([]File, error) {
	missing, err := r.storedBefore(blobs, time.Time{})
	if len(missing) == 0 || err != nil {
		return nil, err
	}
	// If the other nodes cannot be asked, the client sends them to this one.
	if err := r.fetch(ctx, missing); err != nil && ctx.Err() != nil {
		return nil, err
	}
	return r.storedBefore(missing, time.Time{})
}

// fetchAtOnce is how many blobs are fetched from another node at the same time.
const fetchAtOnce = 8

// fetch fetches blobs, unless no node has them.
func (r *Releases) fetch(ctx context.Context, files []File) error {
	errs := make([]error, len(files))
	slots := make(chan struct{}, fetchAtOnce)
	var running sync.WaitGroup
	for i, f := range files {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			blob, err := r.store.Blob(ctx, f.Digest)
			switch {
			case err == nil:
				_ = blob.Close()
			case !errors.Is(err, store.ErrNotFound):
				errs[i] = err
			}
		})
	}
	running.Wait()
	return joinFew(errs)
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// maxNamed limits the files that an error names.
const maxNamed = 10

// joinFew joins errors, and the first of many.
func joinFew(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if more := len(errs) - maxNamed; more > 0 {
		errs = append(errs[:maxNamed:maxNamed], fmt.Errorf("and %d more errors", more))
	}
	return errors.Join(errs...)
}
