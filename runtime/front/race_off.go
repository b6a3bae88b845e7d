//go:build !race

package front

// raceDetector reports whether the race detector is on. It learns from package syscall that
// a byte is received after it was sent. And a sync.Pool then drops values at random, so
// tests cannot count allocations.
const raceDetector = false
