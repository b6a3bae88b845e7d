package front

import "runner.example/internal/system/memory"

// BodyMemory allocates n bytes for the body of the answer. They are valid until the
// exchange is over, or until the next call. Send does not copy a body in this memory. It
// counts for MaxAnswerMemory; if that is used up, BodyMemory returns nil.
func (x *Exchange) BodyMemory(n int) []byte {
	if n > len(x.memory) {
		x.freeMemory()
		x.memory = x.srv.backlog.allocate(n)
	}
	return x.memory[:min(n, len(x.memory))]
}

func (x *Exchange) freeMemory() {
	if n := len(x.memory); n > 0 {
		memory.Free(x.memory)
		x.memory = nil
		x.srv.backlog.giveBack(int64(n))
	}
}

// allocate returns whole pages for n bytes; nil: the limit or the memory is exhausted. They
// are outside the heap, which would keep them until the next garbage collection.
func (b *backlog) allocate(n int) []byte {
	n = (n + memory.PageBytes - 1) / memory.PageBytes * memory.PageBytes
	if !b.take(int64(n)) {
		return nil
	}
	pages := memory.Allocate(n)
	if pages == nil {
		b.giveBack(int64(n))
	}
	return pages
}
