package admin_test

import (
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/admin"
)

// gcPercent returns what the heap may grow between collections.
func gcPercent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

func TestTheCollectorRunsMoreOftenUntilAnImportHasEnded(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(90))
	synctest.Test(t, func(t *testing.T) {
		var gc admin.ImportGC
		for range 3 {
			gc.Lower()
			time.Sleep(4 * time.Second)
			if got := gcPercent(); got != 20 {
				t.Errorf("the heap grows by %d %% between batches, want 20", got)
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := gcPercent(); got != 90 {
			t.Errorf("the heap grows by %d %% after the import, want 90", got)
		}
	})
}

func TestAnImportedBatchLowersTheTargetOfTheCollector(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(90))
	importBatch(t, importer(t), "Partner", 1, func(int) string { return `{"code":"a"}` })
	if got := gcPercent(); got != 20 {
		t.Errorf("the heap grows by %d %% during an import, want 20", got)
	}
}
