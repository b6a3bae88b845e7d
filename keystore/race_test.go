//go:build race

package keystore_test

const raceEnabled = true // the race detector makes pools drop items
