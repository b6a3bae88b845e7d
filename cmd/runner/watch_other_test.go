//go:build !linux

package main

import "testing"

// watch skips the test.
func watch(t *testing.T, _ string) (seen func()) {
	t.Helper()
	t.Skip("this test needs Linux")
	return nil
}
