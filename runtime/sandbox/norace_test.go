//go:build !race

package sandbox_test

const raceDetector = false
