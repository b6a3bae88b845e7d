package cluster_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"runner.example/tests/harness"
)

// The power of all nodes is cut at once. Their disks have what was synced, and of the rest nothing, or some
// pages.
func TestAPowerCutOfAllNodesLosesNothing(t *testing.T) {
	if !harness.Soak {
		t.Skip("takes a minute")
	}
	var disks []*harness.ForgetfulDisk
	l := loadedClusterOn(t, nil, func(_ int, a *harness.App) {
		disk := harness.NewForgetfulDisk(t)
		disks = append(disks, disk)
		a.Move(disk.Dir)
		disk.Sync()
	}, 3, 1)
	l.run()
	seed := rand.Uint64()
	t.Logf("seed of the disks %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 6 {
		for range 50 + random.IntN(100) {
			l.writtenSince(l.now(), l.others()...)
		}
		l.kill(l.others()...)
		var mounting sync.WaitGroup
		for _, disk := range disks {
			keep := random.Uint64() * random.Uint64N(2)
			mounting.Go(func() {
				disk.Cut()
				disk.Mount(keep)
			})
		}
		mounting.Wait()
		l.start(l.others()...)
	}
	l.check()
}
