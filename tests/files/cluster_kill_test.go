package files_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// serveUploadCluster serves the app with uploads on three nodes.
func serveUploadCluster(t *testing.T) *harness.Cluster {
	t.Helper()
	var first *harness.App
	c := harness.NewCluster(t, nil, func() *harness.App {
		a := uploadApp(t)
		if first == nil {
			first = a
			a.Must("build")
		} else if err := os.CopyFS(a.Path("build"), os.DirFS(first.Path("build"))); err != nil {
			t.Fatal(err)
		}
		return a
	})
	c.Nodes[0].Serve()
	c.Add().Serve()
	c.Add().Serve()
	for _, n := range c.Nodes {
		n.WaitReady()
	}
	return c
}

// uploads are what clients have sent to a cluster, by the titles of the rows.
type uploads struct {
	t    *testing.T
	c    *harness.Cluster
	seed uint64

	mu sync.Mutex
	// sent has the digest of each file. The other two say what was answered, and unsure has the rows whose deletion was not.
	sent                    map[string]string
	stored, removed, unsure map[string]bool
}

// send uploads to a node until the node does not answer, or done is closed. It calls answered after each row.
func (u *uploads) send(node *harness.Node, prefix string, random *rand.Rand, done <-chan struct{}, answered func()) {
	s := node.Server
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		default:
		}
		title := fmt.Sprint(prefix, "n", n)
		contents := contentsOf(random, title)
		u.note(func() { u.sent[title] = digestOf(contents) })
		body, kind := formOf(part{"title", "", "", title}, part{"photo", title + ".txt", "", contents})
		switch got, err := s.Try("POST", "/v1/posts", body, "Content-Type: "+kind); {
		case err != nil:
			return // killed
		case got.Status == 503: // the commit waits for the new leader
			continue
		case got.Status != 201:
			u.t.Errorf("%s on %s: %d %s", title, node.Name, got.Status, got.Body)
			return
		}
		u.note(func() { u.stored[title] = true })
		answered()
		if random.IntN(4) > 0 {
			continue
		}
		u.note(func() { u.unsure[title] = true })
		got, err := s.Try("DELETE", "/v1/posts/"+title, "")
		if err != nil {
			return
		}
		if got.Status == 200 {
			u.note(func() { u.removed[title] = true })
		}
	}
}

func (u *uploads) note(change func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change()
}

// killOne kills a node during uploads to all of them, and starts it again.
func (u *uploads) killOne(round int) {
	u.t.Helper()
	random := rand.New(rand.NewPCG(u.seed, uint64(round)))
	var answered atomic.Int64
	enough := [2]chan struct{}{make(chan struct{}), make(chan struct{})} // for the kill, and for the restart
	killAfter := int64(1 + random.IntN(12))
	startAfter := killAfter + 2 + int64(random.IntN(8))
	count := func() {
		switch answered.Add(1) {
		case killAfter:
			close(enough[0])
		case startAfter:
			close(enough[1])
		}
	}
	done := make(chan struct{})
	var clients sync.WaitGroup
	for i, node := range u.c.Nodes {
		for client := range 2 {
			mine := rand.New(rand.NewPCG(u.seed+1, uint64(round*6+i*2+client)))
			clients.Go(func() { u.send(node, fmt.Sprintf("r%dc%d", round, i*2+client), mine, done, count) })
		}
	}
	wait := func(enough <-chan struct{}) {
		u.t.Helper()
		select {
		case <-enough:
		case <-time.After(2 * harness.Timeout): // the nodes elect a leader
			close(done)
			u.t.Fatalf("round %d: only %d uploads were answered", round, answered.Load())
		}
	}
	wait(enough[0])
	node := u.c.Nodes[random.IntN(len(u.c.Nodes))]
	node.Server.Kill()
	wait(enough[1]) // so the node lacks files
	node.Serve()
	node.WaitReady()
	close(done)
	clients.Wait()
}

// rows compares the rows of all nodes with what was answered, and returns the digests of their files.
func (u *uploads) rows() (named []string) {
	u.t.Helper()
	for title, digest := range u.sent {
		var statuses []int
		for _, n := range u.c.Nodes {
			var got row
			answer := n.Server.Do("GET", "/v1/posts/"+title, "")
			statuses = append(statuses, answer.Status)
			switch {
			case answer.Status == 404 && (!u.stored[title] || u.unsure[title]):
				continue
			case answer.Status != 200 || u.removed[title]:
				u.t.Errorf("%s: %s was stored (%v) and removed (%v), and is answered with %d %s", n.Name, title, u.stored[title], u.removed[title], answer.Status, answer.Body)
				continue
			}
			if err := json.Unmarshal([]byte(answer.Body), &got); err != nil {
				u.t.Fatal(err)
			}
			if got.Photo == nil || got.Photo.SHA256 != digest {
				u.t.Errorf("%s: %s has %+v, want the digest %s", n.Name, title, got.Photo, digest)
			}
		}
		if slices.Min(statuses) != slices.Max(statuses) {
			u.t.Errorf("the nodes answer %s with %v", title, statuses)
		}
		if statuses[0] == 200 {
			named = append(named, digest)
		}
	}
	slices.Sort(named)
	return slices.Compact(named)
}

// settle waits until each node has applied the last commits.
func (u *uploads) settle() {
	u.t.Helper()
	for _, by := range u.c.Nodes {
		title := "last of " + by.Name
		u.sent[title], u.stored[title] = digestOf(title), true
		body, kind := formOf(part{"title", "", "", title}, part{"photo", "last.txt", "", title})
		by.Server.Want(201, nil, "POST", "/v1/posts", body, "Content-Type: "+kind)
		for _, n := range u.c.Nodes {
			n.Server.WaitUntil(n.Name+" has "+title, func() bool {
				return n.Server.Do("GET", "/v1/posts/last%20of%20"+by.Name, "").Status == 200
			})
		}
	}
}

// missing returns those of the files that a node lacks, and what else it has.
func missing(t *testing.T, n *harness.Node, want []string) (lacks, more []string) {
	t.Helper()
	has := blobs(t, n.App)
	for _, digest := range want {
		if !slices.Contains(has, digest) {
			lacks = append(lacks, digest)
		}
	}
	for _, name := range has {
		if !slices.Contains(want, name) {
			more = append(more, name)
		}
	}
	return lacks, more
}

// TestNoCrashOfANodeLeavesARowWithoutItsFile kills nodes of a cluster during uploads to all of them. At the end each node has
// the same rows with the files that were sent, and after a sweep nothing else.
func TestNoCrashOfANodeLeavesARowWithoutItsFile(t *testing.T) {
	kills := 2
	if harness.Soak {
		kills = 100
	}
	u := &uploads{
		t: t, c: serveUploadCluster(t), seed: uint64(time.Now().UnixNano()),
		sent: map[string]string{}, stored: map[string]bool{}, removed: map[string]bool{}, unsure: map[string]bool{},
	}
	t.Logf("seed %d", u.seed)
	released := blobs(t, u.c.Nodes[0].App)
	for round := range kills {
		u.killOne(round)
		if t.Failed() {
			return
		}
	}
	u.settle()
	named := u.rows()
	want := append(slices.Clone(released), named...)
	unnamed := 0
	for _, n := range u.c.Nodes {
		n.Server.WaitUntil(n.Name+" has the files of all rows", func() bool {
			lacks, _ := missing(t, n, want)
			return len(lacks) == 0
		})
		n.Server.WaitUntil(n.Name+" says that it lacks none", func() bool {
			self := n.Status().Self()
			return self.MissingFiles == 0 && self.NotReady == ""
		})
		_, more := missing(t, n, want)
		unnamed += len(more)
	}
	t.Logf("%d rows were answered of %d that were sent; %d files are named, and %d more are on the three nodes", len(u.stored), len(u.sent), len(named), unnamed)
	if unnamed == 0 {
		t.Error("no row was removed: the sweep has nothing to do")
	}
	for _, n := range u.c.Nodes {
		n.Server.Stop()
		for _, digest := range want {
			if contents, err := os.ReadFile(n.Path("data/blobs/" + digest)); err != nil || digestOf(string(contents)) != digest {
				t.Errorf("%s: the file %s has other bytes: %v", n.Name, digest, err)
			}
		}
		age(t, n.Path("data/blobs"))
	}
	for _, n := range u.c.Nodes {
		n.Serve()
	}
	for _, n := range u.c.Nodes {
		n.WaitReady()
		n.Server.WaitUntil("the sweep of "+n.Name, func() bool {
			_, more := missing(t, n, want)
			return len(more) == 0
		})
		if lacks, _ := missing(t, n, want); len(lacks) > 0 {
			t.Errorf("after a sweep %s lacks %v", n.Name, lacks)
		}
	}
}

// age makes files two hours old, for the sweep, which keeps what is younger than an hour.
func age(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Hour)
	for _, e := range entries {
		if err := os.Chtimes(filepath.Join(dir, e.Name()), old, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}
