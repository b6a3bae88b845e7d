package etcdlog_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/state/store"
	"runner.example/state/store/etcdlog"
)

// timed runs do so many times in each of the given number of goroutines. It returns the median
// time, and how many ended in a second.
func timed(t *testing.T, writers, each int, do func(writer, n int) error) (median time.Duration, perSecond float64) {
	t.Helper()
	var all sync.WaitGroup
	times := make([][]time.Duration, writers)
	began := time.Now()
	for w := range writers {
		all.Go(func() {
			for n := range each {
				before := time.Now()
				if err := do(w, n); err != nil {
					t.Error(err)
					return
				}
				times[w] = append(times[w], time.Since(before))
			}
		})
	}
	all.Wait()
	perSecond = float64(writers*each) / time.Since(began).Seconds()
	sorted := slices.Sorted(slices.Values(slices.Concat(times...)))
	return sorted[len(sorted)/2], perSecond
}

// A commit takes at most twice as long as a put of the same bytes into etcd, and many commits at a
// time are at least three times as many as puts, because one entry has several of them.
func TestCommitsAreAsFastAsTheLog(t *testing.T) {
	if os.Getenv("RUNNER_SOAK") == "" {
		t.Skip("compares times: in the long form only")
	}
	c := startCluster(t)
	s := openStore(t, t.TempDir(), c.addresses(0))
	client, err := etcdlog.Dial(c.addresses(0), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	value := strings.Repeat("v", 200)
	put := func(w, n int) error {
		_, err := client.Etcd().Put(context.Background(), fmt.Sprintf("put/%d/%d", w, n), value)
		return err
	}
	commit := func(w, n int) error {
		_, err := s.Update(context.Background(), func(tx *store.Tx) error {
			return tx.Set(fmt.Appendf(nil, "key/%d/%d", w, n), []byte(value))
		})
		return err
	}
	var slower, more []float64
	for range 15 {
		bare, _ := timed(t, 1, 50, put)
		own, _ := timed(t, 1, 50, commit)
		slower = append(slower, float64(own)/float64(bare))
		_, puts := timed(t, 64, 20, put)
		_, commits := timed(t, 64, 20, commit)
		more = append(more, commits/puts)
		t.Logf("one writer: %s and %s; 64 writers: %.0f and %.0f a second", bare, own, puts, commits)
	}
	slices.Sort(slower)
	slices.Sort(more)
	t.Logf("a commit takes %.2f times as long as a put; 64 writers commit %.2f times as often as they put", slower[7], more[7])
	if slower[7] > 2 || more[7] < 3 {
		t.Error("want at most 2 times as long, and at least 3 times as often")
	}
}
