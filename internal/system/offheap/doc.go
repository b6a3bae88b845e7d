// Package offheap allocates whole pages outside of Go's heap, which would keep them until the next garbage collection.
// On Windows, where a mapping cannot be freed in parts, they are in the heap.
package offheap
