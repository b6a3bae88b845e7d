package offheap

// Allocate returns n bytes of zeros, a multiple of PageBytes.
func Allocate(n int) []byte { return make([]byte, n) }

// Free does nothing: the garbage collector frees the pages when no part of them is used.
func Free([]byte) {}
