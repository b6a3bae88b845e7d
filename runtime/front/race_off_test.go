//go:build !race

package front_test

const raceDetector = false
