package cluster_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/node/cluster"
	"runner.example/state/store"
)

// put stores a blob on this node alone.
func (m *member) put(text string) store.Digest {
	m.t.Helper()
	d, err := m.store.PutBlob(m.t.Context(), strings.NewReader(text))
	if err != nil {
		m.t.Fatal(err)
	}
	return d
}

// commitReference commits a reference to a blob.
func (m *member) commitReference(ctx context.Context, d store.Digest) error {
	_, err := m.store.Update(ctx, func(tx *store.Tx) error {
		return tx.Set(store.AppendBlobReference(nil, d, []byte("a row")), nil)
	})
	return err
}

func TestABlobIsOnAMajorityOfTheVotersBeforeItsCommit(t *testing.T) {
	first := found(t)
	second, third := start(t, first.joined(cluster.Voter, "n2")), start(t, first.joined(cluster.Voter, "n3"))
	edge := start(t, first.joined(cluster.Edge, "edge"))
	voters := []*member{first, second, third}
	having := func(d store.Digest) (n int) {
		for _, m := range voters {
			if _, err := m.store.StatBlob(d); err == nil {
				n++
			}
		}
		return n
	}
	for _, by := range []*member{first, edge} {
		d := by.put("a file that " + by.Name() + " has got")
		if err := by.commitReference(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if n := having(d); n < 2 {
			t.Errorf("after the commit by %s, %d of 3 voters have the file", by.Name(), n)
		}
	}

	third.stop()
	d := first.put("a file while one voter is away")
	if err := first.commitReference(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if n := having(d); n != 2 {
		t.Errorf("while a voter is away, %d have the file", n)
	}

	second.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := first.commitReference(ctx, first.put("a file without a majority"))
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "not on a majority of the voters") {
		t.Errorf("without a majority: %v", err)
	}
}

func TestANodeFetchesTheFilesThatItLacks(t *testing.T) {
	first := found(t)
	before := first.put("a file from before the edge node")
	if err := first.commitReference(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	data := first.joined(cluster.Edge, "edge")
	late := first.put("a file while the edge node is away")
	if err := first.commitReference(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	edge := start(t, data)
	gets := func(when string, d store.Digest) {
		for end := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
			if _, err := edge.store.StatBlob(d); err == nil {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: the edge node lacks the file", when)
			}
		}
	}
	gets("of the backup", before)
	gets("at its start", late)
	d := first.put("a file while it runs")
	if err := first.commitReference(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	gets("after a commit", d)

	lost := first.put("a file that is lost")
	if err := first.commitReference(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	gets("before it is lost", lost)
	for _, m := range []*member{first, edge} {
		err := m.store.DeleteBlob(lost)
		for end := time.Now().Add(time.Minute); errors.Is(err, store.ErrUnavailable) && time.Now().Before(end); err = m.store.DeleteBlob(lost) {
			<-time.After(10 * time.Millisecond) // the fetch has its pin until the directory is synced
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	first.stop()
	again := start(t, first.data)
	for end := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		s := again.status()
		if at := slices.IndexFunc(s.Nodes, func(n cluster.NodeStatus) bool { return n.Name == "n1" }); s.Nodes[at].MissingFiles == 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no node has a file, and the status does not say so: %+v", s)
		}
	}
}
