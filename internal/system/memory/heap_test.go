package memory_test

import (
	"testing"

	"runner.example/internal/system/memory"
)

func TestPagesAreZeroAndAreFreedInParts(t *testing.T) {
	pages := memory.Allocate(3 * memory.PageBytes)
	if len(pages) != 3*memory.PageBytes {
		t.Fatalf("%d bytes", len(pages))
	}
	for i, b := range pages {
		if b != 0 {
			t.Fatalf("byte %d is %d", i, b)
		}
		pages[i] = 1
	}
	memory.Free(pages[:memory.PageBytes])
	pages[len(pages)-1]++
	memory.Free(pages[memory.PageBytes:])
}
