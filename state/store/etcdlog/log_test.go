package etcdlog_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/state/store/commitlog"
	"runner.example/state/store/etcdlog"
)

// delivered is an entry as a node got it.
type delivered struct {
	revision uint64
	entry    string
}

// node collects what the log delivers.
type node struct {
	*etcdlog.Log
	client *etcdlog.Client
	mu     sync.Mutex
	got    []delivered
	grown  chan struct{} // closed when got grows
}

// open opens the log of a node that has applied a revision.
func open(t *testing.T, servers []string, after uint64) *node {
	t.Helper()
	client, err := etcdlog.Dial(servers, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{client: client, grown: make(chan struct{})}
	n.Log = etcdlog.Open(etcdlog.Options{Client: client, After: after, Deliver: func(revision uint64, entry []byte) error {
		n.mu.Lock()
		defer n.mu.Unlock()
		if string(entry) == "refused" {
			return errors.New("refused")
		}
		n.got = append(n.got, delivered{revision, string(entry)})
		close(n.grown)
		n.grown = make(chan struct{})
		return nil
	}})
	t.Cleanup(func() {
		n.Close()
		client.Close()
	})
	return n
}

// wait returns what the node got when done returns true for it.
func (n *node) wait(t *testing.T, done func(got []delivered) bool) []delivered {
	t.Helper()
	late := time.After(time.Minute)
	for {
		n.mu.Lock()
		got, grown := n.got, n.grown
		n.mu.Unlock()
		if done(got) {
			return got
		}
		select {
		case <-grown:
		case <-late:
			t.Fatalf("%d entries arrived in a minute", len(got))
		}
	}
}

// has waits for so many entries, and returns their contents.
func (n *node) has(t *testing.T, count int) (entries []string) {
	t.Helper()
	for _, d := range n.wait(t, func(got []delivered) bool { return len(got) >= count }) {
		entries = append(entries, d.entry)
	}
	return entries
}

// oneServer starts a cluster of one server in this process.
func oneServer(t *testing.T) (address string) {
	t.Helper()
	o := options(t, t.TempDir(), 1)[0]
	s, err := etcdlog.StartServer(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return o.ClientURL
}

func put(t *testing.T, n *node, proposer, batch uint64, entry string) {
	t.Helper()
	if err := n.Append(t.Context(), commitlog.ID{Proposer: proposer, Batch: batch}, []byte(entry)); err != nil {
		t.Fatal(err)
	}
}

func TestEachNodeGetsAllEntriesInOneOrder(t *testing.T) {
	t.Parallel()
	servers := []string{oneServer(t)}
	one, two := open(t, servers, 0), open(t, servers, 0)
	if tip, err := one.Tip(t.Context()); tip != 0 || err != nil {
		t.Errorf("the tip of an empty log is %d, %v", tip, err)
	}
	put(t, one, 1, 1, "a")
	put(t, two, 2, 1, "b")
	put(t, one, 1, 1, "another entry with the same id")
	put(t, two, 2, 2, "c")
	long := strings.Repeat("x", etcdlog.MaxEntryBytes)
	put(t, one, 1, 2, long)
	want := []string{"a", "b", "c", long}
	for i, n := range []*node{one, two} {
		if got := n.has(t, 4); !slices.Equal(got, want) {
			t.Errorf("node %d got %.200q", i, got)
		}
	}
	tip, err := two.Tip(t.Context())
	got := one.wait(t, func([]delivered) bool { return true })
	if last := got[3].revision; err != nil || tip != last {
		t.Errorf("the tip is %d, %v; the last entry has revision %d", tip, err, last)
	}
	// A node that was away begins after what it has applied.
	if got := open(t, servers, got[1].revision).has(t, 2); !slices.Equal(got, want[2:]) {
		t.Errorf("a node that was away got %.200q", got)
	}
}

func TestATruncatedLogIsFollowedByNodesThatHaveTheRest(t *testing.T) {
	t.Parallel()
	servers := []string{oneServer(t)}
	n := open(t, servers, 0)
	entries := 0
	for round := range 3 {
		for range 200 {
			entries++
			put(t, n, 7, uint64(entries), strings.Repeat("y", 1000))
		}
		n.has(t, entries)
		got := n.wait(t, func([]delivered) bool { return true })
		keep := got[entries-10].revision
		if err := n.Truncate(t.Context(), keep-1); err != nil {
			t.Fatal(err)
		}
		near := open(t, servers, keep-1)
		if got := near.has(t, 10); len(got) != 10 {
			t.Errorf("round %d: a node that lacks ten entries got %d", round, len(got))
		}
		far := open(t, servers, got[0].revision-1)
		<-far.Stopped()
		if err := far.Err(); !errors.Is(err, etcdlog.ErrTruncated) {
			t.Errorf("round %d: a node that lacks deleted entries ends with %v", round, err)
		}
	}
	entries++
	put(t, n, 7, uint64(entries), "after it")
	if got := n.has(t, entries); got[entries-1] != "after it" || n.Err() != nil {
		t.Errorf("got %.30q, %v", got[entries-1], n.Err())
	}
}

func TestNothingIsDeliveredAfterAnErrorOrTheEnd(t *testing.T) {
	t.Parallel()
	servers := []string{oneServer(t)}
	n, closed := open(t, servers, 0), open(t, servers, 0)
	put(t, n, 1, 1, "a")
	closed.has(t, 1)
	closed.Close()
	put(t, n, 1, 2, "refused")
	put(t, n, 1, 3, "b")
	<-n.Stopped()
	if err := n.Err(); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("it ended with %v", err)
	}
	for _, n := range []*node{n, closed} {
		if got := n.has(t, 1); !slices.Equal(got, []string{"a"}) {
			t.Errorf("got %q", got)
		}
	}
	if closed.Err() != nil {
		t.Errorf("a closed log has ended with %v", closed.Err())
	}
}

func TestAnAddressThatIsNotValidIsRefused(t *testing.T) {
	o := options(t, t.TempDir(), 1)[0]
	o.ClientURL = "localhost"
	if _, err := etcdlog.StartServer(t.Context(), o); err == nil || !bytes.Contains([]byte(err.Error()), []byte(`"localhost"`)) {
		t.Errorf("got %v", err)
	}
}

func TestAServerAloneWaitsForTheOthers(t *testing.T) {
	t.Parallel()
	o := options(t, t.TempDir(), 3)[0]
	o.ReadyWait = 100 * time.Millisecond
	if _, err := etcdlog.StartServer(t.Context(), o); err == nil || !strings.Contains(err.Error(), "a majority") {
		t.Errorf("got %v", err)
	}
}
