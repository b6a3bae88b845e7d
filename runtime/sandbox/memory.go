package sandbox

import (
	"fmt"

	"github.com/tetratelabs/wazero/experimental"

	"runner.example/internal/settings"
	"runner.example/runtime/guard"
	"runner.example/runtime/pages"
)

// memory is the linear memory of one sandbox, with its limit and what it takes of the budget. Package pages keeps its
// bytes.
type memory struct {
	pages.Memory
	limit  uint64 // of the guest; there may be more addresses
	spare  uint64 // that the guest may have beyond it after it was refused memory
	budget *budget

	charged int64 // bytes taken from the budget
	counted bool  // chargeWritten has counted the written pages
	// shrinking makes the next Reallocate return the image's size.
	shrinking bool
	// faulted means that a run since the last restore may have written to pages that no
	// earlier run wrote to (faults.go).
	faulted bool
	// restored is how many pages the last restore copied.
	restored int
	// refused says why the guest last got no more memory; nil: it always did.
	refused  error
	refusals int
}

// reserve reserves a memory that may grow to limit bytes, with spare bytes more.
func (m *memory) reserve(in pages.System, guarded bool, limit, spare uint64, b *budget) error {
	reserved, err := in.Reserve(max(limit+spare, pageBytes), guarded)
	if err != nil {
		return fmt.Errorf("reserve %d KiB of memory for a sandbox: %w", limit>>10, err)
	}
	*m = memory{Memory: reserved, limit: limit, spare: spare, budget: b}
	return nil
}

// release releases the memory. The guest must not run any more.
func (m *memory) release() {
	if m.budget == nil {
		return
	}
	m.Release()
	m.budget.give(m.charged)
	*m = memory{}
}

// Allocate hands the memory to the one instance it was reserved for.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory {
	if region := m.Guard(); region != nil {
		return guardedMemory{m, region}
	}
	return m
}

// guardedMemory has the methods of both that code for guarded memories needs: see guard.Region.
type guardedMemory struct {
	*memory
	*guard.Region
}

// Reallocate changes the size in place; nil: it is refused.
func (m *memory) Reallocate(size uint64) []byte {
	if m.shrinking {
		size = m.Image().Size()
	}
	limit := m.limit
	if m.refusals >= refusalsBeforeSpare {
		limit += m.spare
	}
	switch {
	case size > limit:
		m.refuse("handler needed more than %s of memory ([sandbox] memory)", settings.FormatSize(int64(m.limit)))
		return nil
	case !m.charge(int64(size)):
		m.refuse("handlers needed more memory together ([sandbox] total_memory)")
		return nil
	}
	if err := m.Resize(size); err != nil {
		m.refuse("the system refused a handler more memory: %v", err)
		return nil
	}
	return m.Bytes()[:size:size]
}

func (m *memory) refuse(format string, args ...any) {
	m.refused = fmt.Errorf(format, args...)
	m.refusals++
}

// Free does nothing: wazero calls it while the guest is still being unwound, or not at all
// if an instance could not be made. The sandbox calls release.
func (m *memory) Free() {}

// cost is what a memory of so many bytes takes of the budget, with the private pages behind
// the image. A memory that grew includes those pages.
func (m *memory) cost(size int64) int64 {
	if m.Image() == nil {
		return size + m.Tail()
	}
	return max(size, int64(m.Image().Size())+m.Tail())
}

// charge takes from the budget what a memory of so many bytes costs.
func (m *memory) charge(size int64) bool {
	more := m.cost(size) - m.charged
	if more <= 0 {
		return true
	}
	if !m.budget.take(more, size) {
		return false
	}
	m.charged += more
	return true
}

// settle returns to the budget what was charged for memory that is released.
func (m *memory) settle() {
	if less := m.charged - m.cost(int64(m.Size())); less > 0 {
		m.budget.give(less)
		m.charged -= less
	}
}

// countPagesFrom is the size of the smallest image whose pages chargeWritten counts. Counting takes some microseconds.
const countPagesFrom = 1 << 20

// chargeWritten charges the guest only for the pages of the image that it has written, until chargeAll, if the system
// can tell. It is for a guest that waits: one that runs can write to any page before the host knows.
func (m *memory) chargeWritten() {
	if m.counted || m.Image() == nil || m.Image().Size() < countPagesFrom {
		return
	}
	written := m.Written()
	if written < 0 {
		return // all of the image stays charged
	}
	m.counted = true
	if less := min(m.charged, int64(m.Image().Size())) - int64(written)*int64(pages.Size); less > 0 {
		m.charged -= less
		m.budget.give(less)
	}
}

// chargeAll charges the guest for all of its memory again, because it runs. If the budget does not suffice, the guest
// runs uncharged. Only as many guests run at once as there are instance slots, so this is at most one image each.
func (m *memory) chargeAll() {
	if m.counted {
		m.counted = false
		m.charge(int64(m.Size()))
	}
}

// Hold takes memory of the budget for what the host keeps for the guest. It leaves the reserve to small guests.
func (s *sandbox) Hold(bytes int) bool {
	b := &s.engine.memory
	return b.take(int64(bytes), b.limit)
}

// Release gives it back.
func (s *sandbox) Release(bytes int) { s.engine.memory.give(int64(bytes)) }
