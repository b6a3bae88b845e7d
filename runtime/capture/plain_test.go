//go:build !patched

package capture_test

import (
	"context"
	"errors"
	"testing"

	"runner.example/runtime/capture"
)

func TestWithoutThePatchesNothingIsCaptured(t *testing.T) {
	if capture.Available() {
		t.Error("calls can be captured")
	}
	_, taken := capture.Take(nil)
	_, shared := capture.Compare(nil, nil)
	for _, err := range []error{
		capture.Call(context.Background(), nil), taken, shared, new(capture.State).Resume(context.Background(), nil, nil),
	} {
		if !errors.Is(err, capture.ErrUnavailable) {
			t.Error(err)
		}
	}
}
