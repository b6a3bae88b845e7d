package release_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/node/release"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// pair opens the stores of two nodes. The first one is the owner. The second one fetches blobs from
// it unless cut is true.
func pair(t *testing.T) (a, b *store.Store, cut *atomic.Bool) {
	t.Helper()
	cut = &atomic.Bool{}
	log := storetest.NewLog()
	a = log.Open(t, store.Options{Name: "a"})
	b = log.Open(t, store.Options{Name: "b", FetchBlob: func(ctx context.Context, d store.Digest) (io.ReadCloser, error) {
		if cut.Load() {
			return nil, errors.New("no connection")
		}
		return a.LocalBlob(ctx, d)
	}})
	storetest.Own(t, a)
	return a, b, cut
}

func TestAReleaseOfAnotherNodeIsRead(t *testing.T) {
	a, b, cut := pair(t)
	onA, onB := release.New(a, release.Options{Keep: 1}), release.New(b, release.Options{Keep: 1})
	rel := add(t, a, onA, "one")
	storetest.CatchUp(t, b)
	cut.Store(true)
	if _, _, err := onB.Read(t.Context(), rel.ID); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("without a connection: %v", err)
	}
	cut.Store(false)
	for range 2 {
		_, got, err := onB.Read(t.Context(), rel.ID)
		if err != nil || string(got[1].Data) != "one" {
			t.Errorf("read %v, %v", got, err)
		}
		cut.Store(true) // it has them now
	}
}

// A client sends contents to one node, and the record to another one.
func TestContentsThatWereSentToAnotherNodeAreNotMissing(t *testing.T) {
	a, b, cut := pair(t)
	onB := release.New(b, release.Options{Keep: 1})
	m := release.Describe("shop", files("one"))
	for _, f := range files("one") {
		if _, err := a.PutBlob(t.Context(), bytes.NewReader(f.Data)); err != nil {
			t.Fatal(err)
		}
	}
	cut.Store(true)
	if missing, err := onB.Missing(t.Context(), m); err != nil || len(missing) != 2 {
		t.Errorf("without a connection %v are missing, %v", missing, err)
	}
	if _, err := onB.Add(t.Context(), m, nil, someone); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("added without a connection: %v", err)
	}
	cut.Store(false)
	if missing, err := onB.Missing(t.Context(), m); err != nil || len(missing) != 0 {
		t.Errorf("%v are missing, %v", missing, err)
	}
	if _, err := onB.Add(t.Context(), m, nil, someone); err != nil {
		t.Error(err)
	}
}

func TestANodeGetsTheContentsOfAllReleases(t *testing.T) {
	a, b, cut := pair(t)
	var log bytes.Buffer
	onA, onB := release.New(a, release.Options{Keep: 5}), release.New(b, release.Options{Keep: 5, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	releases := []release.Release{add(t, a, onA, "one"), add(t, a, onA, "two")}
	storetest.CatchUp(t, b)
	cut.Store(true)
	if err := onB.Fetch(t.Context()); err != nil || strings.Count(log.String(), "contents of a release not fetched") != 2 {
		t.Errorf("without a connection: %v, %s", err, &log)
	}
	cut.Store(false)
	if err := onB.Sweep(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	cut.Store(true)
	for i, rel := range releases {
		got, err := onB.Contents(t.Context(), rel.Manifest)
		if err != nil || string(got[1].Data) != []string{"one", "two"}[i] {
			t.Errorf("read %v, %v", got, err)
		}
	}
}

func TestTheOwnerSweepsRecordsAndEachNodeItsBlobs(t *testing.T) {
	a, b, _ := pair(t)
	onA, onB := release.New(a, release.Options{Keep: 1}), release.New(b, release.Options{Keep: 1})
	add(t, a, onA, "one")
	add(t, a, onA, "two")
	storetest.CatchUp(t, b)
	later := time.Now().Add(2 * time.Hour)
	left := func(r *release.Releases, st *store.Store) (records, blobs int) {
		t.Helper()
		if err := r.Sweep(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		all, _, err := r.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stored, err := st.Blobs()
		if err != nil {
			t.Fatal(err)
		}
		return len(all), len(stored)
	}
	if records, blobs := left(onB, b); records != 2 || blobs != 3 {
		t.Errorf("a node that is not the owner has left %d records and %d blobs", records, blobs)
	}
	if records, blobs := left(onA, a); records != 1 || blobs != 2 {
		t.Errorf("the owner has left %d records and %d blobs", records, blobs)
	}
	if records, blobs := left(onB, b); records != 1 || blobs != 2 {
		t.Errorf("after the owner, the other node has left %d records and %d blobs", records, blobs)
	}
	storetest.Own(t, b)
	add(t, b, onB, "three")
	storetest.CatchUp(t, a)
	if records, _ := left(onA, a); records != 2 {
		t.Errorf("the former owner has left %d records", records)
	}
	if records, _ := left(onB, b); records != 1 {
		t.Errorf("the new owner has left %d records", records)
	}
}
