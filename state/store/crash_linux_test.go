package store_test

import (
	"testing"

	"runner.example/state/store"
	"runner.example/tests/harness"
)

// What was not synced is gone when the power is cut: an acknowledged commit is on the disk.
func TestNoAcknowledgedCommitIsLostInAPowerCut(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the file system of the test")
	}
	disk := harness.NewForgetfulDisk(t)
	random := newRandom(t)()
	acked := map[string]bool{} // over all rounds
	for round := range 3 {
		acks := runAndKill(t, disk.Dir, round, 1+random.IntN(200))
		for _, op := range acks {
			acked[op] = true
		}
		disk.Cut()
		disk.Mount(0)
		s, err := store.OpenWindow(store.Options{Dir: disk.Dir}, 50)
		if err != nil {
			t.Fatalf("round %d, after %d acknowledged: %v", round, len(acks), err)
		}
		checkCrashed(t, s, acked)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("round %d, after %d acknowledged", round, len(acks))
		}
	}
}
