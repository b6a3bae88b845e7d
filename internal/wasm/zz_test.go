package wasm_test

import "testing"

func TestZZ(t *testing.T) {
	for i := 0; i < 60; i++ {
		TestNoWayThroughCodeIsForNothing(t)
	}
}
