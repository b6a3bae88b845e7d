//go:build race

package runtime_test

// raceDetector reports whether the race detector is on. Then a sync.Pool drops values at
// random, so tests cannot count allocations.
const raceDetector = true
