package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runner.example/state/store"
)

// BenchmarkCommit measures durable read-modify-write transactions of a
// 200-byte value, one of 20,000 keys, at 1, 16 and 64 writers, and the same
// on Badger alone.
func BenchmarkCommit(b *testing.B) {
	value := make([]byte, 200)
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("store/writers=%d", writers), func(b *testing.B) {
			s := mustOpen(b, store.Options{Dir: b.TempDir()})
			ctx := b.Context()
			spread(b, writers, func(key []byte) error {
				_, err := s.Update(ctx, func(tx *store.Tx) error {
					if _, err := tx.Get(key); err != nil && err != store.ErrNotFound {
						return err
					}
					return tx.Set(key, value)
				})
				return err
			})
			b.ReportMetric(float64(b.N)/float64(s.Health().Applied), "commits/sync")
		})
		b.Run(fmt.Sprintf("badger/writers=%d", writers), func(b *testing.B) {
			db, err := badger.Open(badger.DefaultOptions(b.TempDir()).WithSyncWrites(true).WithLogger(nil))
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			spread(b, writers, func(key []byte) error {
				for {
					err := db.Update(func(tx *badger.Txn) error {
						if item, err := tx.Get(key); err == nil {
							if _, err := item.ValueCopy(nil); err != nil {
								return err
							}
						}
						return tx.Set(key, value)
					})
					if err != badger.ErrConflict {
						return err
					}
				}
			})
		})
	}
}

// spread distributes b.N calls of commit over writers.
func spread(b *testing.B, writers int, commit func(key []byte) error) {
	var next atomic.Int64
	var all sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for w := range writers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for next.Add(1) <= int64(b.N) {
				if err := commit(fmt.Appendf(nil, "key%05d", random.IntN(20_000))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}

// BenchmarkRead measures one Get and a scan of 20 keys, each in a View.
func BenchmarkRead(b *testing.B) {
	s := mustOpen(b, store.Options{Dir: b.TempDir()})
	update(b, s, func(tx *store.Tx) error {
		for i := range 20_000 {
			if err := tx.Set(fmt.Appendf(nil, "key%05d", i), make([]byte, 200)); err != nil {
				return err
			}
		}
		return nil
	})
	ctx := b.Context()
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			key := fmt.Appendf(nil, "key%05d", i*7919%20_000)
			if err := s.View(ctx, func(tx *store.Tx) error { _, err := tx.Get(key); return err }); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, reverse := range []bool{false, true} {
		b.Run(fmt.Sprintf("scan20/reverse=%v", reverse), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				from := fmt.Appendf(nil, "key%05d", 20+i*7919%19_960)
				err := s.View(ctx, func(tx *store.Tx) error {
					n := 0
					for _, err := range tx.Scan([]byte("key"), from, reverse) {
						if err != nil {
							return err
						}
						if n++; n == 20 {
							break
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkIdle measures the cost of a request without reads and writes.
func BenchmarkIdle(b *testing.B) {
	s := mustOpen(b, store.Options{})
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Update(ctx, func(*store.Tx) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen measures opening, one write and closing: in memory, as in tests of other
// packages, and on disk, as for a command without a server.
func BenchmarkOpen(b *testing.B) {
	for name, dir := range map[string]string{"memory": "", "disk": b.TempDir()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s, err := store.Open(store.Options{Dir: dir})
				if err != nil {
					b.Fatal(err)
				}
				put(b, s, "k", "v")
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMark compares durable commits with and without a mark, alternately.
func BenchmarkMark(b *testing.B) {
	const perRound = 8
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			var stores [2]*store.Store
			for i := range stores {
				stores[i] = mustOpen(b, store.Options{Dir: b.TempDir()})
			}
			stores[1].LeaveMark()
			var ratios []float64
			for n := 0; b.Loop(); n++ {
				var took [2]time.Duration
				for i := range stores { // alternate which is first
					i = (i + n) % 2
					took[i] = commitRound(b, stores[i], n, writers, perRound)
				}
				ratios = append(ratios, took[1].Seconds()/took[0].Seconds())
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "of-rate-without")
		})
	}
}

// BenchmarkWatched compares commits in a store with 8,000 watches of 20 keys and 2 ranges each with those in one
// without, alternately. No commit writes what is watched.
func BenchmarkWatched(b *testing.B) {
	const perRound = 64
	for _, kind := range []string{"disk", "memory"} {
		for _, writers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/writers=%d", kind, writers), func(b *testing.B) {
				var stores [2]*store.Store
				for i := range stores {
					o := store.Options{}
					if kind == "disk" {
						o.Dir = b.TempDir()
					}
					stores[i] = mustOpen(b, o)
				}
				for i := range 8000 {
					watch(b, stores[1], reads(b, stores[1], func(tx *store.Tx) {
						for k := range 20 {
							get(tx, fmt.Sprintf("watched/%d/%d", i, k))
						}
						scan(tx, fmt.Sprintf("list/%d/", i), "", false)
						scan(tx, fmt.Sprintf("page/%d/", i), "", true)
					}))
				}
				var ratios []float64
				for n := 0; b.Loop(); n++ {
					var took [2]time.Duration
					for i := range stores { // alternate which is first
						i = (i + n) % 2
						took[i] = commitRound(b, stores[i], n, writers, max(1, perRound/writers))
					}
					ratios = append(ratios, took[0].Seconds()/took[1].Seconds())
				}
				slices.Sort(ratios)
				b.ReportMetric(ratios[len(ratios)/2], "of-rate-without")
			})
		}
	}
}

// commitRound returns how long it takes each writer to commit n keys, one after the other.
func commitRound(b *testing.B, s *store.Store, round, writers, n int) time.Duration {
	began := time.Now()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range n {
				put(b, s, fmt.Sprintf("%d/%d/%d", round, w, i), strings.Repeat("v", 200))
			}
		})
	}
	all.Wait()
	return time.Since(began)
}
