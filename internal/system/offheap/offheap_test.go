package offheap_test

import (
	"testing"

	"runner.example/internal/system/offheap"
)

func TestPagesAreZeroAndAreFreedInParts(t *testing.T) {
	pages := offheap.Allocate(3 * offheap.PageBytes)
	if len(pages) != 3*offheap.PageBytes {
		t.Fatalf("%d bytes", len(pages))
	}
	for i, b := range pages {
		if b != 0 {
			t.Fatalf("byte %d is %d", i, b)
		}
		pages[i] = 1
	}
	offheap.Free(pages[:offheap.PageBytes])
	pages[len(pages)-1]++
	offheap.Free(pages[offheap.PageBytes:])
}
