//go:build race

package front_test

// raceDetector says that pools forget at random, so allocations mean nothing.
const raceDetector = true
