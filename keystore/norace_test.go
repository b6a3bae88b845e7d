//go:build !race

package keystore_test

const raceEnabled = false
