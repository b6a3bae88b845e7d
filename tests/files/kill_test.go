package files_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// contentsOf are the contents of the file with a title: equal ones for some titles, and up to 400 kB.
func contentsOf(random *rand.Rand, title string) string {
	if random.IntN(8) == 0 {
		return "the same in several rows"
	}
	return strings.Repeat(title+" ", 1+random.IntN(20_000))
}

// TestNoCrashLeavesARowWithoutItsFile kills the server during uploads, and looks whether each row has the bytes of its file.
func TestNoCrashLeavesARowWithoutItsFile(t *testing.T) {
	kills := 4
	if harness.Soak {
		kills = 100
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	a, s := serveUploads(t)
	var mu sync.Mutex
	sent, stored, removed := map[string]string{}, map[string]bool{}, map[string]bool{} // digests by title; what was answered
	check := func(prefix string) {
		t.Helper()
		for title, digest := range sent {
			if !strings.HasPrefix(title, prefix) {
				continue
			}
			var got row
			answer := s.Do("GET", "/v1/posts/"+title, "")
			switch {
			case answer.Status == 404 && (!stored[title] || removed[title]):
				continue
			case answer.Status != 200:
				t.Fatalf("%s was stored (%v), and is answered with %d %s", title, stored[title], answer.Status, answer.Body)
			}
			if err := json.Unmarshal([]byte(answer.Body), &got); err != nil {
				t.Fatal(err)
			}
			contents, err := os.ReadFile(filepath.Join(a.Dir, "data", "blobs", digest))
			if err != nil || got.Photo == nil || got.Photo.SHA256 != digest || digestOf(string(contents)) != digest {
				t.Fatalf("%s has %+v, want the bytes with the digest %s: %v", title, got.Photo, digest, err)
			}
		}
	}
	for round := range kills {
		random := rand.New(rand.NewPCG(seed, uint64(round)))
		var answered atomic.Int64
		killAfter := int64(1 + random.IntN(12))
		enough := make(chan struct{})
		var clients sync.WaitGroup
		for client := range 4 {
			mine := rand.New(rand.NewPCG(seed+1, uint64(round*4+client)))
			clients.Go(func() {
				for n := 0; ; n++ {
					title := fmt.Sprintf("r%dc%dn%d", round, client, n)
					contents := contentsOf(mine, title)
					mu.Lock()
					sent[title] = digestOf(contents)
					mu.Unlock()
					body, kind := formOf(part{"title", "", "", title}, part{"photo", title + ".txt", "", contents})
					got, err := s.Try("POST", "/v1/posts", body, "Content-Type: "+kind)
					if err != nil {
						return // killed
					}
					if got.Status != 201 {
						t.Errorf("%s: %d %s", title, got.Status, got.Body)
						return
					}
					mu.Lock()
					stored[title] = true
					mu.Unlock()
					if answered.Add(1) == killAfter {
						close(enough)
					}
					if mine.IntN(4) > 0 {
						continue
					}
					mu.Lock()
					removed[title] = true // perhaps
					mu.Unlock()
					if _, err := s.Try("DELETE", "/v1/posts/"+title, ""); err != nil {
						return
					}
				}
			})
		}
		<-enough
		s.Kill()
		clients.Wait()
		a.Must("store", "verify") // compares rows with the references to their files, and reads all contents
		s = a.Serve()
		check(fmt.Sprintf("r%dc", round)) // the files of earlier rounds are checked at the end
	}
	check("")
}
