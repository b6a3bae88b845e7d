//go:build race

package auth_test

// raced reports whether the race detector is on. Then a sync.Pool drops values at random.
const raced = true
