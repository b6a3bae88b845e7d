//go:build race

package auth_test

// raced: the race detector is on, and pools forget on purpose.
const raced = true
