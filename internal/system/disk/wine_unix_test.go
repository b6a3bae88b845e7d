//go:build unix

package disk_test

import "testing"

func notInWine(*testing.T, string) {}
