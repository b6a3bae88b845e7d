package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"runner.example/internal/fault"
	"runner.example/state/store/datadir"
	"runner.example/state/store/space"
)

// Digest names a blob: the SHA-256 of its bytes. Its text is 64 hexadecimal digits, lower case.
type Digest = datadir.Digest

// BlobInfo describes a blob.
type BlobInfo = datadir.BlobInfo

// OpenedBlob is an open blob, with the methods of a file that is read.
type OpenedBlob = datadir.Blob

// ParseDigest reads what Digest.String returns.
func ParseDigest(s string) (Digest, error) { return datadir.ParseDigest(s) }

// PutBlob stores all that r yields and returns its digest. After it returned the blob is on
// disk; equal blobs are stored once. If it fails nothing is stored. The error matches
// ErrUnavailable if the disk is full.
func (s *Store) PutBlob(ctx context.Context, r io.Reader) (Digest, error) {
	return s.putBlob(ctx, r, func(Digest) error { return nil })
}

// PutBlobAs is PutBlob for a blob whose digest and size in bytes are known. It reads at most one
// byte more. If r yields anything else, nothing is stored, and the error is a fault with the
// code Invalid.
func (s *Store) PutBlobAs(ctx context.Context, r io.Reader, want Digest, size int64) error {
	bounded := &io.LimitedReader{R: r, N: size + 1}
	_, err := s.putBlob(ctx, bounded, func(d Digest) error {
		switch got := size + 1 - bounded.N; {
		case got > size:
			return fault.New(fault.Invalid, "more than the declared %d bytes were sent", size)
		case got < size:
			return fault.New(fault.Invalid, "%d of the declared %d bytes were sent", got, size)
		case d != want:
			return fault.New(fault.Invalid, "the bytes have the SHA-256 %v, not %v: they were changed on the way", d, want)
		}
		return nil
	})
	return err
}

// PutBlobs stores the blobs with these bytes. It is faster than PutBlob for each of many small ones. After it returned
// nil all of them are on disk; after an error some may be stored. The error matches ErrUnavailable if the disk is full.
func (s *Store) PutBlobs(ctx context.Context, blobs [][]byte) error {
	if s.isClosed() {
		return errClosed
	}
	err := s.orFull(s.blobs.PutAll(ctx, blobs))
	if err != nil {
		return fmt.Errorf("store %d blobs: %w", len(blobs), orUnavailable(ctx, err))
	}
	return nil
}

// putBlob stores what r yields unless check returns an error for its digest.
func (s *Store) putBlob(ctx context.Context, r io.Reader, check func(Digest) error) (Digest, error) {
	if s.isClosed() {
		return Digest{}, errClosed
	}
	d, err := s.blobs.Put(ctx, r, check)
	if err = s.orFull(err); err != nil {
		return Digest{}, fmt.Errorf("store blob: %w", orUnavailable(ctx, err))
	}
	return d, nil
}

// orFull returns the reason of Health in place of an error of a full disk. Other errors are returned unchanged.
func (s *Store) orFull(err error) error {
	if !space.IsFull(err) {
		return err
	}
	if reason := s.space.Reason(); reason != nil {
		return unavailable(reason)
	}
	return unavailable(fmt.Errorf("the disk is full: %w", err)) // such as by a quota
}

// Blob opens a blob, which the caller must close. Its bytes have been checked
// against the digest. A blob that this node lacks is fetched from another one first, and stored
// here, see Options.FetchBlob. The error is ErrNotFound if no node has it, and matches
// ErrUnavailable if that is not known.
func (s *Store) Blob(ctx context.Context, d Digest) (io.ReadCloser, error) {
	r, err := s.LocalBlob(ctx, d)
	if err != ErrNotFound || s.blobs.Fetch == nil {
		return r, err
	}
	if err := s.fetchBlob(ctx, d); err != nil {
		return nil, err
	}
	return s.LocalBlob(ctx, d)
}

// FetchBlob stores a blob that this node lacks and another node has. The errors are those of Blob.
func (s *Store) FetchBlob(ctx context.Context, d Digest) error {
	if s.blobs.Fetch == nil {
		return ErrNotFound
	}
	return s.fetchBlob(ctx, d)
}

// fetchBlob stores a blob that another node has.
func (s *Store) fetchBlob(ctx context.Context, d Digest) error {
	switch err := s.blobs.FetchOnce(ctx, d); {
	case errors.Is(err, ErrNotFound):
		return ErrNotFound
	case err != nil:
		return fmt.Errorf("fetch blob %v: %w", d, unavailable(err))
	}
	return nil
}

// OpenBlob opens a blob, which the caller must close, without reading it: its bytes were checked when they were
// stored. Else it is as Blob.
func (s *Store) OpenBlob(ctx context.Context, d Digest) (*OpenedBlob, error) {
	r, err := s.openLocal(d)
	if err != ErrNotFound || s.blobs.Fetch == nil {
		return r, err
	}
	if err := s.fetchBlob(ctx, d); err != nil {
		return nil, err
	}
	return s.openLocal(d)
}

func (s *Store) openLocal(d Digest) (*OpenedBlob, error) {
	if s.isClosed() {
		return nil, errClosed
	}
	r, err := s.blobs.OpenBlob(d)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("open blob %v: %w", d, unavailable(err))
	}
	return r, nil
}

// PutPinned is PutBlob for a blob that no release and no row names yet. It has a pin until release is called: see
// PinBlob. It leaves the space on the disk that commits need: else, or beyond Options.MaxFiles, the error matches
// ErrUnavailable. If nothing else had stored the blob, and no reference names it at release, it is deleted then. The store of a
// cluster's node leaves that to SweepBlobs, because a commit whose outcome is unknown may name it.
func (s *Store) PutPinned(ctx context.Context, r io.Reader) (info BlobInfo, release func(), err error) {
	if s.isClosed() {
		return info, nil, errClosed
	}
	admitted := &admittedReader{store: s, r: io.NopCloser(r)}
	defer admitted.Close()
	info, unpin, err := s.blobs.PutPinned(ctx, admitted)
	if errors.Is(err, datadir.ErrLimit) {
		err = unavailable(fmt.Errorf("[files] max_total is reached: %w", err))
	}
	if err = s.orFull(err); err != nil {
		return info, nil, fmt.Errorf("store blob: %w", orUnavailable(ctx, err))
	}
	return info, func() { s.releasePin(info.Digest, unpin) }, nil
}

// admitAtOnce is how many bytes of a blob are admitted together. Each upload that has begun keeps so much from others.
const admitAtOnce = 256 << 10

// admittedReader fails when the disk has no space for what it reads, and for what others that read at the same time were
// admitted to, beside what commits need. It must be closed.
type admittedReader struct {
	store    *Store
	r        io.ReadCloser
	admitted int64 // bytes that are not written
	read     int   // bytes of the last Read, which are written when the next one begins
}

func (r *admittedReader) Read(p []byte) (int, error) {
	if r.store.dir == "" {
		return r.r.Read(p)
	}
	r.admit(-int64(r.read))
	r.read = 0
	if r.admitted < int64(len(p)) {
		r.admit(max(admitAtOnce, int64(len(p))))
		if err := r.store.space.AdmitUpload(r.store.unwritten.Load()); err != nil {
			return 0, err
		}
	}
	n, err := r.r.Read(p)
	r.read = n
	return n, err
}

func (r *admittedReader) admit(bytes int64) {
	r.admitted += bytes
	r.store.unwritten.Add(bytes)
}

// Close ends the count. It closes what was read.
func (r *admittedReader) Close() error {
	r.admit(-r.admitted)
	return r.r.Close()
}

// PinBlob keeps a blob until release is called: until then no sweep and no release of another pin deletes it. The blob
// need not be there.
func (s *Store) PinBlob(d Digest) (release func()) {
	unpin := s.blobs.Pin(d)
	return func() { s.releasePin(d, unpin) }
}

// AdoptBlob leaves a blob to SweepBlobs, which no release of a pin deletes from now on: a key that is not a reference is about
// to name it. Ask after that whether the blob is there.
func (s *Store) AdoptBlob(d Digest) { s.blobs.Adopt(d) }

// pinBlobs pins several blobs; nil if there are none.
func (s *Store) pinBlobs(all []Digest) (release func()) {
	if len(all) == 0 {
		return nil
	}
	releases := make([]func(), len(all))
	for i, d := range all {
		releases[i] = s.PinBlob(d)
	}
	return func() {
		for _, release := range releases {
			release()
		}
	}
}

func (s *Store) releasePin(d Digest, unpin func(datadir.Referenced)) {
	if s.InCluster() || s.isClosed() || s.failure.Load() != nil { // a commit may be there after the next start
		unpin(nil)
		return
	}
	unpin(func() (bool, error) { return s.isBlobReferenced(d) })
}

// isBlobReferenced reports whether the blob has a reference as of the newest commit.
func (s *Store) isBlobReferenced(d Digest) (referenced bool, err error) {
	err = s.View(context.Background(), func(tx *Tx) error {
		referenced, err = tx.IsBlobReferenced(d)
		return err
	})
	return referenced, err
}

// sweepBatch is how many blobs are looked up in one transaction of a sweep.
const sweepBatch = 1000

// SweepBlobs deletes the blobs of this node that were not stored after a time, have no pin, are not kept and have no
// reference. It calls deleted after each. While a backup is being written it deletes none. It looks at each blob, and
// its memory does not grow with their number. In a cluster, the caller has waited for the commits of other nodes.
func (s *Store) SweepBlobs(ctx context.Context, until time.Time, keeps func(Digest) bool, deleted func(BlobInfo)) error {
	if s.isClosed() {
		return errClosed
	}
	batch := make([]BlobInfo, 0, sweepBatch)
	err := s.blobs.Each(func(d Digest) error {
		if ctx.Err() != nil {
			return unavailable(context.Cause(ctx))
		}
		info, err := s.blobs.Info(d)
		if err != nil || info.Stored.After(until) || keeps(d) {
			return ignoreAbsent(err)
		}
		if batch = append(batch, info); len(batch) == cap(batch) {
			err = s.sweep(ctx, batch, deleted)
			batch = batch[:0]
		}
		return err
	})
	if err == nil {
		err = s.sweep(ctx, batch, deleted)
	}
	if errors.Is(err, datadir.ErrKept) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweep blobs: %w", err)
	}
	return nil
}

// sweep deletes those of the blobs that have no reference.
func (s *Store) sweep(ctx context.Context, batch []BlobInfo, deleted func(BlobInfo)) error {
	var unused []BlobInfo
	err := s.View(ctx, func(tx *Tx) error {
		for _, b := range batch {
			referenced, err := tx.IsBlobReferenced(b.Digest)
			if err != nil {
				return err
			}
			if !referenced {
				unused = append(unused, b)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, b := range unused {
		removed, err := s.blobs.RemoveUnless(b.Digest, func() (bool, error) {
			// The blob may have been stored again, or got a reference, since it was looked up.
			now, err := s.blobs.Info(b.Digest)
			if err != nil || now.Stored.After(b.Stored) {
				return true, err
			}
			return s.isBlobReferenced(b.Digest)
		})
		switch {
		case errors.Is(err, datadir.ErrPinned), errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case removed:
			deleted(b)
		}
	}
	return nil
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// LocalBlob is Blob without a fetch from other nodes. It serves their fetches.
func (s *Store) LocalBlob(ctx context.Context, d Digest) (io.ReadCloser, error) {
	if s.isClosed() {
		return nil, errClosed
	}
	r, err := s.blobs.Read(ctx, d)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("read blob %v: %w", d, orUnavailable(ctx, err))
	}
	return r, nil
}

// StatBlob describes a blob that this node has, without reading it. The error is ErrNotFound if this node does not have
// it.
func (s *Store) StatBlob(d Digest) (BlobInfo, error) {
	if s.isClosed() {
		return BlobInfo{}, errClosed
	}
	info, err := s.blobs.Info(d)
	if errors.Is(err, fs.ErrNotExist) {
		return BlobInfo{}, ErrNotFound
	}
	return info, err
}

// Blobs returns all blobs that this node has, in the order of their digests.
func (s *Store) Blobs() (all []BlobInfo, err error) {
	if s.isClosed() {
		return nil, errClosed
	}
	digests, err := s.blobs.List()
	if err != nil {
		return nil, fmt.Errorf("list blobs: %w", err)
	}
	for _, d := range digests {
		info, err := s.blobs.Info(d)
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted meanwhile
		case err != nil:
			return nil, fmt.Errorf("list blobs: %w", err)
		default:
			all = append(all, info)
		}
	}
	return all, nil
}

// DeleteBlob removes a blob of this node; if there is none it does nothing. While a backup is
// being written, or if the blob has a pin, it removes nothing, and the error matches ErrUnavailable. The caller makes sure that
// no key names the blob.
func (s *Store) DeleteBlob(d Digest) error {
	if s.isClosed() {
		return errClosed
	}
	err := s.blobs.Remove(d)
	switch {
	case errors.Is(err, datadir.ErrKept), errors.Is(err, datadir.ErrPinned):
		return unavailable(err)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("delete blob %v: %w", d, err)
	}
	return nil
}

// ReplicateBlob copies a blob to a majority of the voters of the cluster. When it returns nil, the blob is on their
// disks. In a standalone store it does nothing. The error matches ErrUnavailable.
func (s *Store) ReplicateBlob(ctx context.Context, d Digest) error {
	if s.replicate == nil {
		return nil
	}
	if err := s.replicate(ctx, d); err != nil {
		return fmt.Errorf("replicate blob %v: %w", d, unavailable(err))
	}
	return nil
}

// replicateBlobs is ReplicateBlob for several.
func (s *Store) replicateBlobs(ctx context.Context, blobs []Digest) error {
	for _, d := range blobs {
		if err := s.ReplicateBlob(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// keepTime is how long a blob is kept that a commit of another node is about to name.
const keepTime = 10 * time.Minute

// KeepBlob serves ReplicateBlob of another node. It fetches the blob if this node lacks it, and keeps it from sweeps for
// ten minutes. When it returns nil, the blob is on disk. The errors are those of Blob.
func (s *Store) KeepBlob(ctx context.Context, d Digest) error {
	unpin := s.blobs.Pin(d)
	time.AfterFunc(keepTime, func() { unpin(nil) })
	_, err := s.StatBlob(d)
	if err == ErrNotFound {
		return s.FetchBlob(ctx, d)
	}
	return err
}
