package jobs_test

import (
	"testing"

	"runner.example/state/jobs"
	"runner.example/state/store"
)

func BenchmarkEnqueue(b *testing.B) {
	w := newWorld(b)
	request := mail("ada@example.com")
	for b.Loop() {
		if _, err := w.stores[0].Update(b.Context(), func(tx *store.Tx) error {
			_, err := jobs.Enqueue(tx, w.schema, &ada, request, w.clock.Now(), nil)
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCommit is a transaction with one key, for comparison.
func BenchmarkCommit(b *testing.B) {
	w := newWorld(b)
	for i := 0; b.Loop(); i++ {
		if _, err := w.stores[0].Update(b.Context(), func(tx *store.Tx) error {
			return tx.Set([]byte{byte(i), byte(i >> 8), byte(i >> 16), byte(i >> 24)}, make([]byte, 300))
		}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRun is a job from its enqueuing to its end, several of them in each claim.
func BenchmarkRun(b *testing.B) {
	w := newWorld(b)
	for b.Loop() {
		for range 12 {
			if _, err := w.stores[0].Update(b.Context(), func(tx *store.Tx) error {
				_, err := jobs.Enqueue(tx, w.schema, &ada, mail("a"), w.clock.Now(), nil)
				return err
			}); err != nil {
				b.Fatal(err)
			}
		}
		all, err := w.queues[0].Claim(b.Context())
		if err != nil || len(all) == 0 {
			b.Fatal(len(all), err)
		}
		for _, c := range all {
			if err := w.complete(0, c); err != nil {
				b.Fatal(err)
			}
		}
	}
}
