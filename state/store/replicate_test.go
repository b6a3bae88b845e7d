package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/state/store"
)

func TestABlobIsReplicatedBeforeTheCommitThatRefersToIt(t *testing.T) {
	diskAndMemory(t, func(t *testing.T, open opener) {
		var replicated []store.Digest
		var refuse error
		s := open(store.Options{ReplicateBlob: func(_ context.Context, d store.Digest) error {
			replicated = append(replicated, d)
			return refuse
		}})
		d, err := s.PutBlob(t.Context(), strings.NewReader("a file"))
		if err != nil {
			t.Fatal(err)
		}
		commit := func(owners ...string) error {
			_, err := s.Update(t.Context(), func(tx *store.Tx) error {
				for _, owner := range owners {
					if err := tx.Set(store.AppendBlobReference(nil, d, []byte(owner)), nil); err != nil {
						return err
					}
				}
				return nil
			})
			return err
		}
		if err := commit("a", "b"); err != nil || !slices.Equal(replicated, []store.Digest{d}) {
			t.Errorf("%v, replicated: %v", err, replicated)
		}
		refuse = errors.New("the others do not answer")
		if err := commit("c"); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, refuse) {
			t.Errorf("the reference to a blob that is not replicated is committed: %v", err)
		}
		err = s.View(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Get(store.AppendBlobReference(nil, d, []byte("c")))
			return err
		})
		if err != store.ErrNotFound {
			t.Errorf("after the refused commit: %v", err)
		}
		_, err = s.Update(t.Context(), func(tx *store.Tx) error { return tx.Delete(store.AppendBlobReference(nil, d, []byte("a"))) })
		if err != nil {
			t.Errorf("a reference is deleted: %v", err)
		}
	})
}

func TestASweepKeepsABlobThatAnotherNodeIsAboutToReferTo(t *testing.T) {
	diskAndMemory(t, func(t *testing.T, open opener) {
		source := &blobSource{content: "of the other node"}
		s := open(store.Options{FetchBlob: source.fetch})
		fetched := store.Digest(sha256.Sum256([]byte(source.content)))
		old, err := s.PutBlob(t.Context(), strings.NewReader("an old one"))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []store.Digest{fetched, old} {
			if err := s.KeepBlob(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		later := time.Now().Add(2 * time.Hour)
		err = s.SweepBlobs(t.Context(), later, func(store.Digest) bool { return false }, func(store.BlobInfo) { t.Error("deleted") })
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []store.Digest{fetched, old} {
			if _, err := s.StatBlob(d); err != nil {
				t.Error(err)
			}
		}
		source.err = store.ErrNotFound
		if err := s.KeepBlob(t.Context(), store.Digest{1}); err != store.ErrNotFound {
			t.Errorf("a blob that no node has: %v", err)
		}
	})
}

// diskAndMemory runs test with a store on disk and with one in memory, but without forks, which are not part of a cluster.
func diskAndMemory(t *testing.T, test func(t *testing.T, open opener)) {
	for _, dir := range []string{t.TempDir(), ""} {
		test(t, func(o store.Options, window ...int) *store.Store {
			o.Dir = dir
			return mustOpen(t, o, window...)
		})
	}
}
