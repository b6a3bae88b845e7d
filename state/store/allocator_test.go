package store_test

import (
	"testing"

	"github.com/dgraph-io/ristretto/v2/z"

	"runner.example/internal/patches"
)

// A compaction of a large store builds tables of 4 MiB and more, each in memory of twice that
// size, which is lent from a pool. Memory that was given back without its first part let the next
// compaction run without end.
func TestMemoryForLargeTablesIsLentAgain(t *testing.T) {
	if !patches.Applied {
		t.Skip("built without the change of ristretto")
	}
	for _, size := range []int{4 << 20, 8 << 20, 16 << 20, 128 << 20} {
		pool := z.NewAllocatorPool(2)
		defer pool.Release()
		for range 3 {
			a := pool.Get(size, "test")
			for range 20 {
				if n := len(a.Allocate(1 << 20)); n != 1<<20 {
					t.Fatalf("%d bytes, want 1 MiB", n)
				}
			}
			pool.Return(a)
		}
	}
}

// A compaction that ends at damaged data does not wait for the tables that it has begun: they give their memory back
// when the store may be closed.
func TestMemoryIsGivenBackToAReleasedPool(t *testing.T) {
	if !patches.Applied {
		t.Skip("built without the change of ristretto")
	}
	pool := z.NewAllocatorPool(2)
	lent := pool.Get(4<<20, "test")
	pool.Release()
	pool.Return(lent)
}
